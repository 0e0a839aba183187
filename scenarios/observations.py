"""What was seen in a run, as expectations ask for it. An observer like any other; times are those of the timeline."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from cluster.broker.image import OFFSETS_TOPIC
from cluster.checks import Checks, Verdict
from cluster.checks.records import LostRecord
from cluster.events import (
    CommitAnswered,
    ConsumerFailed,
    FaultBegan,
    GenerationStarted,
    GroupDeleted,
    GroupLoaded,
    GroupMoved,
    LeaderElected,
    MemberAdded,
    MemberLeft,
    MemberRemoved,
    MemberReplaced,
    OffsetsExpired,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    ProcessDied,
    RebalanceStarted,
    RecordsProcessed,
    SessionRenewed,
    ShardLoaded,
    Stamped,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from cluster.faults import Target
from cluster.java import partition_for

FOREVER = 1 << 62
GOING = ("crash", "silence", "stop", "cut")     # faults after which a coordinator is somewhere else
NOBODY = "nobody"                              # coordinates a group whose partition has no leader
Where = tuple[str, int]
Value = TypeVar("Value")


class Detection(msgspec.Struct, frozen=True):
    """A member that failed and was missed. `error_ms`: how much later than when its session was over."""

    at: int
    detection_ms: int
    error_ms: int
    timeout_ms: int


class Removal(msgspec.Struct, frozen=True):
    at: int
    group_id: str
    member_id: str
    client: str
    cause: str
    due: int                                   # when its session was over
    timeout_ms: int


class Blow(msgspec.Struct, frozen=True):
    """A fault, and whom it hit."""

    at: int
    what: str
    target: str
    hosts: tuple[str, ...]
    coordinates: tuple[int, ...]               # the partitions of the offsets topic that they led then


class Interest(msgspec.Struct, frozen=True):
    """What a group wants: these topics, or those that match."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None

    def wants(self, topic: str) -> bool:
        return topic in self.topics or (
            self.pattern is not None and re.fullmatch(self.pattern, topic) is not None)


class Observations:
    def __init__(self, until: int, interests: Mapping[str, Interest], produced: set[str],
                 checks: Checks) -> None:
        self.begin = 0                         # of the timeline; what is built before it counts as there
        self.until = until
        self.end = FOREVER
        self.interests = interests
        self.produced = produced               # topics
        self.checks = checks
        self.verdicts: list[Verdict] = []
        self.blows: list[Blow] = []
        self.removed: list[Removal] = []
        self._clients: dict[str, str] = {}     # member id -> client
        self._sessions: dict[str, tuple[int, int]] = {}    # member id -> when renewed, until when
        self._causes: dict[str, str] = {}      # group -> why its newest rebalance began
        self._generations: list[tuple[int, str, str]] = []
        self._states: dict[str, list[tuple[int, str]]] = {}
        self._groups: dict[str, set[str]] = {}
        self._counts: dict[str, list[tuple[int, int]]] = {}
        self._topics: list[tuple[int, str, int]] = []
        self._owned: list[tuple[int, str, str, frozenset[Where]]] = []     # when, group, client, what it has then
        self._processed: dict[str, tuple[list[int], list[int]]] = {}       # group -> instants, running sums
        self._errors: dict[str, list[str]] = {}
        self._leaves: list[tuple[str, str]] = []           # client, cause
        self._commits: list[tuple[int, str, str]] = []     # when, group, error
        self._restored: dict[str, list[tuple[int, GroupLoaded]]] = {}
        self._expired: dict[str, int] = {}
        self._leaders: dict[Where, list[int]] = {}
        self._loaded: list[tuple[int, int, str]] = []
        self.offsets_partitions = 50
        self._coordinators: dict[str, str] = {}            # group -> who speaks for it
        groups: dict[type, Callable[..., None]] = {
            SessionRenewed: self._renewed, MemberAdded: self._added, MemberRemoved: self._gone,
            MemberReplaced: self._replaced, GroupLoaded: self._group_loaded, GroupMoved: self._moved,
            RebalanceStarted: self._rebalance, GenerationStarted: self._generation,
            GroupDeleted: self._deleted, OffsetsExpired: self._offsets_expired}
        self.hears: dict[type, Callable[..., None]] = {
            **{kind: self._if_current(hear) for kind, hear in groups.items()}, RecordsProcessed: self._worked,
            FaultBegan: self._fault, TopicCreated: self._topic, TopicGrown: self._topic, TopicDeleted: self._no_topic,
            PartitionsAssigned: self._assigned, PartitionsRevoked: self._released, PartitionsLost: self._released,
            MemberLeft: self._left, ProcessDied: self._died, ConsumerFailed: self._gave_up,
            CommitAnswered: self._committed, LeaderElected: self._elected, ShardLoaded: self._shard_loaded}

    def __call__(self, stamped: Stamped) -> None:
        hear = self.hears.get(type(stamped.event))
        if hear is not None and stamped.at <= self.end:
            hear(stamped.at, stamped.machine, stamped.event)

    def start(self, begin: int) -> None:
        self.begin, self.end = begin, begin + self.until

    # Hearing

    def _if_current(self, hear: Callable[..., None]) -> Callable[..., None]:
        """A coordinator that was deposed and does not know it goes on talking about its groups: that does not count."""
        def heard(at: int, machine: str, event: Any) -> None:
            speaks = self._coordinators.get(event.group_id) or self._find_coordinator(event.group_id)
            if speaks in (machine, NOBODY):
                hear(at, machine, event)
        return heard

    def _find_coordinator(self, group_id: str) -> str:
        leaders = self._leaders.get((OFFSETS_TOPIC, partition_for(group_id, self.offsets_partitions)), [-1])
        self._coordinators[group_id] = found = NOBODY if leaders[-1] < 0 else f"coordinator-{leaders[-1]}"
        return found

    def _renewed(self, at: int, _: str, event: SessionRenewed) -> None:
        self._sessions[event.member_id] = at, event.until

    def _worked(self, at: int, _: str, event: RecordsProcessed) -> None:
        instants, sums = self._processed.setdefault(event.group_id, ([], []))
        instants.append(at)
        sums.append((sums[-1] if sums else 0) + event.count)

    def _added(self, at: int, _: str, event: MemberAdded) -> None:
        self._clients[event.member_id] = event.client_id
        self._groups.setdefault(event.group_id, set()).add(event.member_id)
        self._count(at, event.group_id)

    def _gone(self, at: int, _: str, event: MemberRemoved) -> None:
        renewed, due = self._sessions.get(event.member_id, (at, at))
        client = self._clients.get(event.member_id, "")
        self.removed.append(Removal(at, event.group_id, event.member_id, client, event.cause, due, due - renewed))
        self._groups.setdefault(event.group_id, set()).discard(event.member_id)
        self._count(at, event.group_id)

    def _replaced(self, _: int, __: str, event: MemberReplaced) -> None:
        self._clients[event.member_id] = self._clients.get(event.old_member_id, "")
        members = self._groups.setdefault(event.group_id, set())
        members.discard(event.old_member_id)
        members.add(event.member_id)

    def _group_loaded(self, at: int, _: str, event: GroupLoaded) -> None:
        self._restored.setdefault(event.group_id, []).append((at, event))
        self._groups[event.group_id] = set(event.members)
        self._states.setdefault(event.group_id, []).append((at, event.state))
        self._count(at, event.group_id)

    def _count(self, at: int, group_id: str) -> None:
        self._counts.setdefault(group_id, []).append((at, len(self._groups[group_id])))

    def _moved(self, at: int, _: str, event: GroupMoved) -> None:
        self._states.setdefault(event.group_id, []).append((at, event.after))

    def _deleted(self, at: int, _: str, event: GroupDeleted) -> None:
        self._states.setdefault(event.group_id, []).append((at, "Dead"))

    def _rebalance(self, _: int, __: str, event: RebalanceStarted) -> None:
        self._causes[event.group_id] = event.cause

    def _generation(self, at: int, _: str, event: GenerationStarted) -> None:
        self._generations.append((at, event.group_id, self._causes.get(event.group_id, "")))

    def _fault(self, at: int, _: str, event: FaultBegan) -> None:
        hosts = tuple(event.detail.get("hosts", ()))
        led = tuple(partition for (topic, partition), leaders in self._leaders.items()
                    if topic == OFFSETS_TOPIC and f"broker-{leaders[-1]}" in hosts)
        self.blows.append(Blow(at, event.what, event.target, hosts, led))

    def _topic(self, at: int, _: str, event: TopicCreated | TopicGrown) -> None:
        self._topics.append((at, event.topic, event.partitions))
        if event.topic == OFFSETS_TOPIC:
            self.offsets_partitions = event.partitions

    def _no_topic(self, at: int, _: str, event: TopicDeleted) -> None:
        self._topics.append((at, event.topic, 0))

    def _assigned(self, at: int, machine: str, event: PartitionsAssigned) -> None:
        self._owned.append((at, event.group_id, machine, _flat(event.owned)))

    def _released(self, at: int, machine: str, event: PartitionsRevoked | PartitionsLost) -> None:
        before = next((owned for _, _, who, owned in reversed(self._owned) if who == machine), frozenset())
        self._owned.append((at, event.group_id, machine, before - _flat(event.partitions)))

    def _left(self, at: int, machine: str, event: MemberLeft) -> None:
        self._leaves.append((machine, event.cause))
        self._owned.append((at, event.group_id, machine, frozenset()))

    def _died(self, at: int, _: str, event: ProcessDied) -> None:
        for group_id in {group_id for _, group_id, who, _ in self._owned if who == event.name}:
            self._owned.append((at, group_id, event.name, frozenset()))

    def _committed(self, at: int, _: str, event: CommitAnswered) -> None:
        self._commits.append((at, event.group_id, event.error))

    def _gave_up(self, _: int, machine: str, event: ConsumerFailed) -> None:
        self._errors.setdefault(machine, []).append(event.error)

    def _offsets_expired(self, _: int, __: str, event: OffsetsExpired) -> None:
        self._expired[event.group_id] = self._expired.get(event.group_id, 0) + event.count

    def _elected(self, _: int, __: str, event: LeaderElected) -> None:
        self._leaders.setdefault((event.topic, event.partition), []).append(event.leader)
        if event.topic == OFFSETS_TOPIC:
            self._coordinators.clear()

    def _shard_loaded(self, at: int, machine: str, event: ShardLoaded) -> None:
        self._loaded.append((at, event.partition, machine))

    # Answering

    def _instant(self, at: int | None) -> int:
        return self.begin + (self.until if at is None else at)

    def _span(self, during: tuple[int, int] | None) -> tuple[int, int]:
        return (0, self._instant(None)) if during is None else (self._instant(during[0]), self._instant(during[1]))

    def _hosts(self, who: Target) -> set[str]:
        """Whom a target means: the member itself, or whoever played the role when it was hit."""
        if who.kind == "member":
            return {f"{who.name}-{who.number}"}
        return {host for blow in self.blows if blow.target == str(who) for host in blow.hosts}

    def failures(self, who: Target) -> list[int]:
        hosts = self._hosts(who)
        return [blow.at for blow in self.blows if hosts & set(blow.hosts)]

    def detection(self, who: Target, began: int) -> Detection | None:
        for removal in self.removals(who, began):
            if removal.cause == "session expired":
                return Detection(removal.at, removal.at - began, removal.at - removal.due, removal.timeout_ms)
        return None

    def removals(self, who: Target, after: int) -> list[Removal]:
        hosts = self._hosts(who)
        return [each for each in self.removed if each.client in hosts and each.at >= after]

    def removed_for(self, who: Target, cause: str, during: tuple[int, int] | None) -> int:
        begin, end = self._span(during)
        hosts = self._hosts(who)
        return sum(1 for each in self.removed if each.client in hosts and each.cause == cause
                   and begin <= each.at <= end)

    def left(self, who: Target, cause: str) -> int:
        hosts = self._hosts(who)
        return sum(1 for client, why in self._leaves if client in hosts and why == cause)

    def generations(self, group: str, after: int, before: int | None, cause: str | None) -> int:
        begin, end = self._instant(after), self._instant(before)
        return sum(1 for at, group_id, why in self._generations
                   if group_id == group and begin <= at <= end and cause in (None, why))

    def state(self, group: str, at: int | None) -> str | None:
        return _last(self._states.get(group, []), self._instant(at))

    def members(self, group: str, at: int | None) -> int | None:
        return _last(self._counts.get(group, []), self._instant(at))

    def wanted(self, group: str, at: int | None) -> list[Where]:
        sizes = {topic: size for instant, topic, size in self._topics if instant <= self._instant(at)}
        return [(topic, number) for topic, size in sizes.items() if self.interests[group].wants(topic)
                for number in range(size)]

    def owners(self, group: str, at: int | None) -> dict[Where, list[str]]:
        owned = {who: what for instant, group_id, who, what in self._owned
                 if group_id == group and instant <= self._instant(at)}
        owners: dict[Where, list[str]] = {}
        for who, what in owned.items():
            for where in what:
                owners.setdefault(where, []).append(who)
        return owners

    def owned(self, who: Target, at: int | None) -> int:
        member = f"{who.name}-{who.number}"
        return sum(1 for owners in self.owners(who.name, at).values() if member in owners)

    def restored(self, group: str) -> GroupLoaded | None:
        """What was found by whoever loaded the group first after its coordinator was hit."""
        home = partition_for(group, self.offsets_partitions)
        hit = min((blow.at for blow in self.blows if home in blow.coordinates and blow.what in GOING), default=FOREVER)
        return next((event for at, event in self._restored.get(group, []) if at >= hit), None)

    def failover(self, group: str) -> int | None:
        """How long the longest one took, in ms; -1 if nobody took over from a coordinator that went; None if none
        did."""
        home = partition_for(group, self.offsets_partitions)
        took = [self._taken_over(home, blow) for blow in self.blows
                if home in blow.coordinates and blow.what in GOING]
        return None if not took else -1 if -1 in took else max(took)

    def _taken_over(self, home: int, blow: Blow) -> int:
        return next((at - blow.at for at, partition, machine in self._loaded if partition == home and at >= blow.at
                     and machine.replace("coordinator", "broker") not in blow.hosts), -1)

    def is_produced_for(self, group: str) -> bool:
        return any(self.interests[group].wants(topic) for topic in self.produced)

    def processed(self, group: str, begin: int = 0, end: int | None = None) -> int:
        instants, sums = self._processed.get(group, ([], []))
        until = bisect_right(instants, self._instant(end))
        since = bisect_left(instants, self._instant(begin))
        return 0 if until <= since else sums[until - 1] - (sums[since - 1] if since else 0)

    def reread(self, group: str) -> int:
        return sum(rule.reread(group) for rule in self.checks.rules if isinstance(rule, LostRecord))

    def commits(self, group: str, error: str, during: tuple[int, int] | None) -> int:
        begin, end = self._span(during)
        return sum(1 for at, group_id, answer in self._commits
                   if group_id == group and answer == error and begin <= at <= end)

    def failed(self, who: Target) -> list[str]:
        return [error for host in self._hosts(who) for error in self._errors.get(host, [])]

    def expired(self, group: str) -> int:
        return self._expired.get(group, 0)

    def elections(self, topic: str, partition: int) -> int | None:
        leaders = self._leaders.get((topic, partition))
        return None if leaders is None else len([leader for leader in leaders[1:] if leader >= 0])


def _flat(partitions: Mapping[str, tuple[int, ...]]) -> frozenset[Where]:
    return frozenset((topic, number) for topic, numbers in partitions.items() for number in numbers)


def _last(history: list[tuple[int, Value]], at: int) -> Value | None:
    return next((value for instant, value in reversed(history) if instant <= at), None)
