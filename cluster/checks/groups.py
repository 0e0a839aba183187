"""Rules about groups: who owns what, whose commits count, and that nothing a group was told is taken back."""

import msgspec

from cluster.broker.image import OFFSETS_TOPIC
from cluster.checks.rule import Handler, Rule
from cluster.events import (
    Event,
    GenerationStarted,
    GroupDeleted,
    GroupLoaded,
    LeaderElected,
    MemberRemoved,
    MemberReplaced,
    OffsetCommitted,
    OffsetsExpired,
    PartitionsAssigned,
    PlanPublished,
    PositionSet,
    ShardLoaded,
    TopicDeleted,
)

REMEMBERED = 50                                # generations of a group

Where = tuple[str, str, int]                   # group, topic, partition


class TwoOwners(Rule):
    """One partition is assigned to two members of one group in one generation."""

    name = "two-owners"

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, dict[int, dict[tuple[str, int], str]]] = {}

    def hears(self) -> dict[type[Event], Handler]:
        return {PartitionsAssigned: self._assigned, MemberReplaced: self._replaced, GroupDeleted: self._deleted}

    def _assigned(self, at: int, _: str, event: PartitionsAssigned) -> None:
        self.seen += 1
        generations = self.owners.setdefault(event.group_id, {})
        owners = generations.setdefault(event.generation, {})
        for topic, partitions in event.owned.items():
            for partition in partitions:
                owner = owners.setdefault((topic, partition), event.member_id)
                if owner != event.member_id:
                    self.broken(at, f"generation {event.generation}", group_id=event.group_id, topic=topic,
                                partition=partition, members=(owner, event.member_id))
        if len(generations) > REMEMBERED:
            del generations[min(generations)]

    def _replaced(self, _: int, __: str, event: MemberReplaced) -> None:
        """A static member that restarted keeps what it had, under another id."""
        for owners in self.owners.get(event.group_id, {}).values():
            for where in [where for where, owner in owners.items() if owner == event.old_member_id]:
                del owners[where]

    def _deleted(self, _: int, __: str, event: GroupDeleted) -> None:
        self.owners.pop(event.group_id, None)  # its successor counts its generations anew


class _Generation(msgspec.Struct):
    at: int
    number: int
    members: set[str]


class _Life(msgspec.Struct):
    """A group at one coordinator: which generation was when, and when members went."""

    generations: list[_Generation] = []
    removed: dict[str, int] = {}

    def at(self, instant: int) -> list[_Generation]:
        """The generation of an instant; both where one ends and the next begins at the same instant."""
        found = [each for each in self.generations if each.at <= instant][-2:]
        return found if len(found) == 2 and found[1].at == instant else found[-1:]


class ZombieCommit(Rule):
    """A commit of a member that is not in the group, or of another generation, is accepted."""

    name = "zombie-commit"

    def __init__(self) -> None:
        super().__init__()
        self.lives: dict[tuple[str, str], _Life] = {}

    def hears(self) -> dict[type[Event], Handler]:
        return {GenerationStarted: self._began, GroupLoaded: self._began, MemberRemoved: self._removed,
                MemberReplaced: self._replaced, OffsetCommitted: self._committed}

    def _began(self, at: int, machine: str, event: GenerationStarted | GroupLoaded) -> None:
        life = self.lives.setdefault((machine, event.group_id), _Life())
        if isinstance(event, GroupLoaded):
            life.removed.clear()
        life.generations.append(_Generation(at, event.generation, set(event.members)))
        del life.generations[:-REMEMBERED]

    def _removed(self, at: int, machine: str, event: MemberRemoved) -> None:
        self.lives.setdefault((machine, event.group_id), _Life()).removed[event.member_id] = at

    def _replaced(self, at: int, machine: str, event: MemberReplaced) -> None:
        life = self.lives.setdefault((machine, event.group_id), _Life())
        life.removed[event.old_member_id] = at
        if life.generations:
            life.generations[-1].members.add(event.member_id)

    def _committed(self, at: int, machine: str, event: OffsetCommitted) -> None:
        life = self.lives.get((machine, event.group_id), _Life())
        accepted_at = event.accepted_at
        now = life.at(accepted_at)
        if event.member_id:
            self.seen += 1
            if not any(each.number == event.generation and event.member_id in each.members for each in now):
                current = ", ".join(str(each.number) for each in now) or "none"
                self._broken(at, event, f"of generation {event.generation}; current: {current}")
            elif life.removed.get(event.member_id, accepted_at) < accepted_at:
                self._broken(at, event, f"the member was removed at {life.removed[event.member_id]}")
        elif now and all(any(life.removed.get(member, accepted_at) >= accepted_at for member in each.members)
                         for each in now):
            self._broken(at, event, "from outside, while the group has members")

    def _broken(self, at: int, event: OffsetCommitted, evidence: str) -> None:
        self.broken(at, evidence, group_id=event.group_id, topic=event.topic, partition=event.partition,
                    offset=event.offset, members=(event.member_id,))


class OffsetWentBack(Rule):
    """A committed offset decreases, and nobody set a position anew, let it expire, or committed from outside."""

    name = "offset-went-back"

    def __init__(self) -> None:
        super().__init__()
        self.committed: dict[Where, int] = {}
        self.reset: set[Where] = set()         # somebody began to read there anew, since the last commit

    def hears(self) -> dict[type[Event], Handler]:
        return {OffsetCommitted: self._committed, PositionSet: self._set, OffsetsExpired: self._forget_group,
                GroupDeleted: self._forget_group, TopicDeleted: self._forget_topic}

    def _committed(self, at: int, _: str, event: OffsetCommitted) -> None:
        self.seen += 1
        where = event.group_id, event.topic, event.partition
        before = self.committed.get(where, -1)
        if event.offset < before and event.member_id and where not in self.reset:
            self.broken(at, f"was {before}", group_id=event.group_id, topic=event.topic, partition=event.partition,
                        offset=event.offset, members=(event.member_id,))
        self.committed[where] = event.offset
        self.reset.discard(where)

    def _set(self, _: int, __: str, event: PositionSet) -> None:
        if event.how != "committed":
            self.reset.add((event.group_id, event.topic, event.partition))

    def _forget_group(self, _: int, __: str, event: OffsetsExpired | GroupDeleted) -> None:
        for where in [where for where in self.committed if where[0] == event.group_id]:
            del self.committed[where]

    def _forget_topic(self, _: int, __: str, event: TopicDeleted) -> None:
        for where in [where for where in self.committed if where[1] == event.topic]:
            del self.committed[where]


class GenerationWentBack(Rule):
    """A persisted generation decreases. One that was not finished may be lost in a failover."""

    name = "generation-went-back"

    def __init__(self) -> None:
        super().__init__()
        self.persisted: dict[str, int] = {}
        self.elected: dict[int, int] = {}      # partition of the offsets topic -> the newest epoch
        self.loaded: dict[str, tuple[int, int]] = {}       # coordinator -> the partition it loaded last, and its epoch

    def hears(self) -> dict[type[Event], Handler]:
        return {PlanPublished: self._published, GroupLoaded: self._loaded, GroupDeleted: self._deleted,
                LeaderElected: self._elected, ShardLoaded: self._shard}

    def _elected(self, _: int, __: str, event: LeaderElected) -> None:
        if event.topic == OFFSETS_TOPIC:
            self.elected[event.partition] = event.epoch
            if event.unclean:
                self.doubts[f"unclean election of {OFFSETS_TOPIC}-{event.partition}"] = None
                self.persisted.clear()

    def _shard(self, _: int, machine: str, event: ShardLoaded) -> None:
        self.loaded[machine] = event.partition, event.epoch

    def _published(self, at: int, _: str, event: PlanPublished) -> None:
        self.seen += 1
        self._compare(at, event.group_id, event.generation, "published")
        self.persisted[event.group_id] = max(event.generation, self.persisted.get(event.group_id, -1))

    def _loaded(self, at: int, machine: str, event: GroupLoaded) -> None:
        """Whoever is not the leader any more, and does not know it yet, may load an old log."""
        partition, epoch = self.loaded.get(machine, (-1, -1))
        if epoch >= self.elected.get(partition, -1):
            self.seen += 1
            self._compare(at, event.group_id, event.generation, f"loaded by {machine}")

    def _compare(self, at: int, group_id: str, generation: int, how: str) -> None:
        persisted = self.persisted.get(group_id, -1)
        if generation < persisted:
            self.broken(at, f"{how}: {generation}, after {persisted} was persisted", group_id=group_id)

    def _deleted(self, _: int, __: str, event: GroupDeleted) -> None:
        self.persisted.pop(event.group_id, None)
