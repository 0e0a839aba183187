"""Finding out where to read: what the group has committed, where logs begin and end, whether a position still holds.

The application waits for committed offsets; everything else is asked beside its poll, of the leaders of the partitions.
"""

from collections.abc import Iterable
from random import Random

from cluster.config import ConsumerConfig
from cluster.consumer.connections import Call, Connections, broker_name
from cluster.consumer.discovery import Discovery
from cluster.consumer.member import Member
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import Backoff, Outbox
from cluster.consumer.positions import (
    AWAIT_RESET,
    AWAIT_VALIDATION,
    INITIALIZING,
    Partition,
    Position,
    Positions,
    by_topic,
)
from cluster.consumer.states import Asked
from cluster.events import PositionSet
from cluster.wire.log import (
    EpochEndOffsetResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from cluster.wire.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

TIMESTAMPS = {"latest": -1, "earliest": -2}    # what ListOffsets calls them
Positioned = tuple[Partition, Position]
NO_OFFSET = "NoOffsetForPartition"
TRUNCATED = "LogTruncation"


class Seeking:
    def __init__(self, out: Outbox, connections: Connections, metadata: Metadata, discovery: Discovery,
                 member: Member, positions: Positions, config: ConsumerConfig, backoff: Backoff, rng: Random) -> None:
        self.out = out
        self.connections = connections
        self.metadata = metadata
        self.discovery = discovery
        self.member = member
        self.positions = positions
        self.config = config
        self.backoff = backoff
        self.rng = rng
        self.policy = config.auto_offset_reset
        self._asked: Call | None = None        # for committed offsets
        self._failures = 0
        self._not_before = 0
        self._good = -1                        # with these changes all positions were known to be good

    def resets(self) -> bool:
        return self.policy != "none"

    def go_on(self) -> bool:
        """Do what can be done now. False: the application has to wait for the committed offsets."""
        positions = self.positions
        positions.notice_leaders()
        if positions.changes == self._good:
            return True
        self._validate()
        if positions.all_are_good():
            self._good = positions.changes
            return True
        if not self._ask_committed():
            return False
        self._reset()
        return True

    # What the group has committed

    def _ask_committed(self) -> bool:
        wanted = tuple([partition for partition, _ in self.positions.those(INITIALIZING)])
        if not wanted:
            return True
        if self._asked is not None and (self._asked.about, self._asked.generation) != (wanted, self.member.generation):
            self._asked = None                 # the partitions have changed: whatever comes back is not for us
        if self._asked is None and self.out.now < self._not_before:
            self.out.wake(self._not_before)
        elif self._asked is None and self.discovery.ensure():
            assert self.discovery.coordinator is not None
            topics = tuple([OffsetFetchRequestTopic(*each) for each in by_topic(wanted).items()])
            self._asked = self.connections.ask(
                self.discovery.coordinator, Asked.OFFSETS,
                OffsetFetchRequest(groups=(OffsetFetchRequestGroup(self.member.group_id, topics=topics),),
                                   require_stable=True),
                about=wanted, generation=self.member.generation)
        return False

    def adopt(self, call: Call, body: OffsetFetchResponse) -> str | None:
        """Begin where the group left off. The name of an error, if there is nowhere to begin."""
        if call is not self._asked:
            return None
        self._asked = problem = None
        self._failures = 0
        for topic in body.groups[0].topics:
            for one in topic.partitions:
                partition = topic.name, one.partition_index
                if partition not in self.positions.assigned:
                    continue                   # it was taken away while the answer was on its way
                if one.committed_offset >= 0:
                    self._set(partition, one.committed_offset, "committed", one.committed_leader_epoch)
                    leader = self.positions.assigned[partition].leader
                    if leader is not None and leader.epoch < one.committed_leader_epoch:
                        self.metadata.request()
                elif self.resets():
                    self.positions.reset(partition)
                else:
                    problem = NO_OFFSET
        return problem

    def ask_again(self, call: Call) -> None:
        if call is not self._asked:
            return
        self._asked = None
        self._not_before = self.out.now + self.backoff.ms(self._failures, self.rng)
        self._failures += 1

    # Where a log begins or ends

    def _reset(self) -> None:
        for peer, partitions in self._by_leader(self.positions.those(AWAIT_RESET)).items():
            topics: dict[str, list[ListOffsetsPartition]] = {}
            for (topic, number), position in partitions:
                leader = self.metadata.leader_of(topic, number)
                topics.setdefault(topic, []).append(ListOffsetsPartition(
                    number, TIMESTAMPS[self.policy], -1 if leader is None else leader.epoch))
                position.retry_at = self.out.now + self.config.request_timeout_ms
            self.connections.ask(peer, Asked.LIST, ListOffsetsRequest(tuple(
                [ListOffsetsTopic(name, tuple(parts)) for name, parts in topics.items()])),
                about=tuple([partition for partition, _ in partitions]))

    def begin(self, partition: Partition, said: ListOffsetsPartitionResponse) -> None:
        position = self.positions.assigned.get(partition)
        if position is None or position.fetch_state is not AWAIT_RESET:
            return
        if said.offset < 0:
            self.ask_later(partition)
        else:
            self._set(partition, said.offset, self.policy)

    # Whether a position still holds

    def _validate(self) -> None:
        for peer, partitions in self._by_leader(self.positions.those(AWAIT_VALIDATION)).items():
            topics: dict[str, list[OffsetForLeaderPartition]] = {}
            about = {}
            for (topic, number), position in partitions:
                assert position.leader is not None
                topics.setdefault(topic, []).append(OffsetForLeaderPartition(
                    number, position.epoch, position.leader.epoch))
                about[topic, number] = _mark(position)
                position.retry_at = self.out.now + self.config.request_timeout_ms
            self.connections.ask(peer, Asked.VALIDATE, OffsetForLeaderEpochRequest(tuple(
                [OffsetForLeaderTopic(name, tuple(parts)) for name, parts in topics.items()])), about=about)

    def has_moved_on(self, call: Call, partition: Partition) -> bool:
        """Is the position another than the one whose validity was asked for?"""
        position = self.positions.assigned.get(partition)
        return (position is None or position.fetch_state is not AWAIT_VALIDATION
                or _mark(position) != call.about[partition])

    def verify(self, partition: Partition, said: EpochEndOffsetResponse) -> str | None:
        """Where the leader's log ends that our position comes from. The name of an error, if we may not set it back."""
        ends_before = said.end_offset < self.positions.assigned[partition].offset
        is_unknown = said.end_offset < 0 or said.leader_epoch < 0
        if not ends_before and not is_unknown:
            self.positions.trust(partition)
        elif not self.resets():
            return TRUNCATED
        elif is_unknown:
            self.positions.reset(partition)
        else:
            self._set(partition, said.end_offset, "truncated", said.leader_epoch)
            self.positions.trust(partition)
        return None

    # Both

    def ask_later(self, partition: Partition) -> None:
        position = self.positions.assigned.get(partition)
        if position is not None:
            position.retry_at = self.out.now + self.config.retry_backoff_ms

    def _by_leader(self, partitions: Iterable[Positioned]) -> dict[str, list[Positioned]]:
        """Those that may be asked for now, by the brokers that lead them."""
        grouped: dict[str, list[Positioned]] = {}
        for partition, position in partitions:
            leader = self.metadata.leader_of(*partition)
            if leader is None:
                self.metadata.request()
            elif position.retry_at > self.out.now:
                self.out.wake(position.retry_at)
            elif self.connections.is_down(peer := broker_name(leader.node)):
                self.out.wake(self.connections.up_at((peer,)))
            else:
                grouped.setdefault(peer, []).append((partition, position))
        return grouped

    def _set(self, partition: Partition, offset: int, how: str, epoch: int = -1) -> None:
        self.positions.seek(partition, offset, epoch)
        self.out.emit(PositionSet(self.member.group_id, self.member.public.member_id, *partition, offset, how))


def _mark(position: Position) -> tuple[int, int, object]:
    return position.offset, position.epoch, position.leader
