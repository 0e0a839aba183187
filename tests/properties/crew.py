"""A crew: members that do what a schedule says, with real plans, and everything about them that can be checked."""

from typing import Any

from hypothesis import strategies as st

from cluster.assignors.range import Range
from cluster.broker.broker import INTRODUCE
from cluster.broker.image import OFFSETS_TOPIC
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.coordinator.group import Group
from cluster.coordinator.records import GroupRecord, decode
from cluster.coordinator.view import View
from cluster.events import GroupDeleted, Stamped
from cluster.java import partition_for
from cluster.machine import Effect, Received, Send, Told
from cluster.subscription import Assignment, Subscription
from cluster.wire.errors import Error
from cluster.wire.groups import JoinGroupResponse, SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from scenarios.dialogue import Call, Dialogue
from scenarios.verbs import Commit, DeleteGroup, Describe, Fetch, Heartbeat, Join, Leave, Verb
from tests.slow_log import THAW, SlowLog

TOPICS = {"t": 3, "u": 2}
SETTINGS = {
    "offsets.topic.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.max.size": 5,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 20000,
}
MEMBERS = ("a", "b", "c", "s")  # s is a static member, and b speaks old versions
ACTIONS = (
    "gather",
    "gather",
    "join",
    "join",
    "restart",
    "restart",
    "change",
    "sync",
    "sync",
    "heartbeat",
    "leave",
    "commit",
    "fetch",
    "describe",
    "delete",
    "coordinator",
    "freeze",
    "thaw",
)
LONG_MS = 1_800_000  # by then every timer has fired

Schedule = list[tuple[int, str, str]]  # (milliseconds later, who, what)
schedules: st.SearchStrategy[Schedule] = st.lists(
    st.tuples(st.sampled_from([0, 1, 5, 500, 3000, 7000]), st.sampled_from(MEMBERS), st.sampled_from(ACTIONS)),
    min_size=1,
    max_size=30,
)


class Crew(Dialogue):
    def __init__(self, *, seed: int = 0) -> None:
        self.joined: dict[str, JoinGroupResponse] = {}
        self.owned: list[
            tuple[int, int, str, Assignment]
        ] = []  # (life of the group, generation, member id, what it got)
        self.life = 0  # a group that was deleted counts its generations anew
        self.deaths: list[int] = []  # when a coordinator died
        self.frames: list[tuple[int, Any]] = []
        super().__init__(SETTINGS, TOPICS, seed=seed, broker=SlowLog)
        self.world.observers.append(self._observed)
        self.world.listeners.append(lambda now, envelope: self.frames.append((now, envelope)))

    def _observed(self, stamped: Stamped) -> None:
        self.life += isinstance(stamped.event, GroupDeleted)

    def play(self, schedule: Schedule) -> "Crew":
        for later, who, what in schedule:
            self.wait(later)
            self.act(who, what)
            self.wait(0)
        return self

    def act(self, who: str, what: str) -> None:
        if what == "coordinator":
            self.deaths.append(self.world.now)
            self.restart_coordinator()
            return
        if what in ("freeze", "thaw"):
            self.freeze(what == "freeze")
            return
        if what == "gather":
            self.gather()
            return
        if what == "sync":
            self._sync(who)
            return
        verb = self._verb(who, what)
        self.send(verb.build(self), member=who, version=verb.asked_version())

    def gather(self) -> None:
        """All join until they have joined together, then all sync: the short way to a stable group."""
        for _ in range(3):
            for who in MEMBERS:
                self.act(who, "join")
            self.wait(4)
        for who in MEMBERS:
            self.act(who, "sync")
        self.wait(4)

    def freeze(self, is_frozen: bool) -> None:
        """Whether the log keeps what it commits to itself."""
        assert isinstance(self.broker, SlowLog)
        self.broker.is_frozen = is_frozen
        if not is_frozen:
            self.world.tell("broker-1", THAW)

    def rest(self) -> "Crew":
        """Whatever can still happen, happens."""
        self.freeze(False)
        self.wait(LONG_MS)
        return self

    def _verb(self, who: str, what: str) -> Verb:
        instance = "i" if who == "s" else None
        version = 2 if who == "b" else None
        timeouts = {"session_ms": 6000, "rebalance_ms": 9000 if who == "a" else 3000}
        verbs: dict[str, Verb] = {
            "join": Join(member=who, instance=instance, version=version, **timeouts),
            "restart": Join(member=who, instance=instance, version=version, member_id="", **timeouts),
            "change": Join(
                member=who,
                instance=instance,
                version=version,
                protocols={"range": ["t", "u"], "sticky": ["t"]},
                **timeouts,
            ),
            "heartbeat": Heartbeat(member=who, instance=instance),
            "leave": Leave(member=who, instance=instance),
            "commit": Commit(member=who, instance=instance, offsets={"t": {0: self.world.now % 1000}}),
            "fetch": Fetch(all=True, require_stable=True),
            "describe": Describe(),
            "delete": DeleteGroup(),
        }
        return verbs[what]

    def _sync(self, who: str) -> None:
        """With the plan that follows from what the leader was told; nobody syncs who never joined."""
        answer = self.joined.get(who)
        if answer is None:
            return
        plan: tuple[SyncGroupRequestAssignment, ...] = ()
        if answer.members:
            wanted = {each.member_id: Subscription.decode(each.metadata) for each in answer.members}
            plan = tuple(
                SyncGroupRequestAssignment(
                    member_id, Assignment(partitions={k: tuple(v) for k, v in share.items()}).encode()
                )
                for member_id, share in Range().plan(wanted, TOPICS).items()
            )
        self.send(
            SyncGroupRequest(
                "main",
                answer.generation_id,
                answer.member_id,
                "i" if who == "s" else None,
                "consumer",
                answer.protocol_name or "",
                plan,
            ),
            member=who,
        )

    def _heard(self, call: Call) -> None:
        super()._heard(call)
        answer = call.answer
        if isinstance(answer, JoinGroupResponse) and answer.error_code is Error.NONE and call.member is not None:
            self.joined[call.member] = answer
        if isinstance(answer, SyncGroupResponse) and answer.error_code is Error.NONE and answer.assignment:
            asked = call.envelope.body
            self.owned.append((self.life, asked.generation_id, asked.member_id, Assignment.decode(answer.assignment)))

    # What can be checked

    def logged_generations(self) -> list[int | None]:
        """The generation of each record of the group, in the order of the log; None for a tombstone."""
        log = self.broker.partitions[OFFSETS_TOPIC, partition_for("main", 4)].log
        stored = [decode(record) for batch in log.read(0, 1 << 30, log.end_offset) for record in batch.records]
        return [
            None if each.metadata is None else each.metadata.generation
            for each in stored
            if isinstance(each, GroupRecord)
        ]

    def twin(self) -> GroupCoordinator:
        """Another coordinator, that has just loaded the same log."""
        other = self._coordinator()
        waiting: list[Effect] = self.broker.step(self.world.now, Told(INTRODUCE))
        while waiting:
            effect = waiting.pop(0)
            if isinstance(effect, Send):
                machine = other if effect.to == "coordinator-1" else self.broker
                waiting += machine.step(self.world.now, Received(effect.envelope.source, effect.envelope))
        return other


def remembered(coordinator: GroupCoordinator) -> dict[str, Any]:
    """What a coordinator must know after a failover: of its groups, what is persisted; of the offsets, everything."""
    return {
        "groups": {
            group_id: _persisted(group) for view in _views(coordinator) for group_id, group in view.groups.items()
        },
        "offsets": {group_id: offsets for view in _views(coordinator) for group_id, offsets in view.offsets.items()},
    }


def _views(coordinator: GroupCoordinator) -> list[View]:
    return [shard.committed for shard in coordinator.shards.values()]


def _persisted(group: Group) -> Any:
    """A group that is rebalancing is persisted as it was before, which its memory does not hold."""
    if group.state in ("PreparingRebalance", "CompletingRebalance"):
        return "rebalancing"
    members = [
        (
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout_ms,
            each.rebalance_timeout_ms,
            each.metadata(group.protocol_name),
            each.assignment,
        )
        for each in group.members.values()
    ]
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        sorted(members),
        group.static,
        group.subscribed,
    )
