"""The partitions of this member, and where it reads each of them.

A partition begins INITIALIZING. If the group has committed an offset, it is read from there, once the leader has
confirmed that this offset still is what it was (AWAIT_VALIDATION); else from where auto.offset.reset says, which the
leader is asked for (AWAIT_RESET). FETCHING it can be fetched. A retained partition keeps its position in a rebalance.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from cluster.consumer.metadata import Leader, Metadata
from cluster.java import in_string_order
from cluster.subscription import Partitions

Partition = tuple[str, int]
ByTopic = dict[str, tuple[int, ...]]


class FetchState(StrEnum):
    INITIALIZING = "INITIALIZING"
    AWAIT_RESET = "AWAIT_RESET"
    AWAIT_VALIDATION = "AWAIT_VALIDATION"
    FETCHING = "FETCHING"


INITIALIZING, AWAIT_RESET, AWAIT_VALIDATION, FETCHING = FetchState


class Position(msgspec.Struct):
    fetch_state: FetchState = INITIALIZING
    offset: int = -1                           # the next to be returned
    epoch: int = -1                            # of the leader that wrote what lies before it, where that is known
    leader: Leader | None = None               # whom to ask
    is_revoking: bool = False                  # about to be given up: nothing of it is fetched or returned any more
    retry_at: int = 0                          # its leader is not asked about it before then


class Positions:
    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.assigned: dict[Partition, Position] = {}
        self.changes = 0                       # grows with every change that a fetch could depend on
        self._seen = -1                        # the version of the metadata that the leaders come from

    # Which partitions

    def owned(self) -> ByTopic:
        return by_topic(self.assigned)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """These and no others. What is retained keeps its position."""
        self.assigned = {each: self.assigned.get(each) or Position() for each in one_by_one(by_topic(partitions))}
        self.changes += 1

    def hold_back(self) -> None:
        for position in self.assigned.values():
            position.is_revoking = True
        self.changes += 1

    def move_to_end(self, partition: Partition) -> None:
        """Others come first in the next fetch."""
        self.assigned[partition] = self.assigned.pop(partition)

    # Where

    def consumed(self) -> dict[Partition, tuple[int, int]]:
        """Offset and epoch of every partition with a position that is known to be good: what a commit says."""
        return {each: (position.offset, position.epoch) for each, position in sorted(self.assigned.items(), key=_name)
                if position.fetch_state is FETCHING}

    def advance(self, partition: Partition, offset: int, epoch: int) -> None:
        position = self.assigned[partition]
        position.offset, position.epoch = offset, epoch
        self.changes += 1

    def seek(self, partition: Partition, offset: int, epoch: int = -1) -> None:
        """Read on from there; if it is known under which leader that was written, once its successor has agreed."""
        position = self.assigned[partition]
        leader = self.metadata.leader_of(*partition)
        position.offset, position.epoch, position.leader, position.retry_at = offset, epoch, leader, 0
        position.fetch_state = AWAIT_VALIDATION if epoch >= 0 and leader is not None else FETCHING
        self.changes += 1

    def trust(self, partition: Partition) -> None:
        self.assigned[partition].fetch_state = FETCHING
        self.changes += 1

    def reset(self, partition: Partition) -> None:
        """Its leader must say where to begin."""
        position = self.assigned[partition]
        position.fetch_state, position.offset, position.epoch, position.retry_at = AWAIT_RESET, -1, -1, 0
        self.changes += 1

    # Questions that follow

    def notice_leaders(self) -> None:
        """Where a partition has another leader, or the same one in another epoch, its log may be another."""
        if self._seen == self.metadata.version:
            return
        self._seen = self.metadata.version
        for partition, position in self.assigned.items():
            leader = self.metadata.leader_of(*partition)
            if leader is None or leader == position.leader or position.fetch_state in (INITIALIZING, AWAIT_RESET):
                continue
            position.leader, position.retry_at = leader, 0
            position.fetch_state = AWAIT_VALIDATION if position.epoch >= 0 else FETCHING
            self.changes += 1

    def all_are_good(self) -> bool:
        return all(position.fetch_state is FETCHING for position in self.assigned.values())

    def those(self, fetch_state: FetchState) -> Iterator[tuple[Partition, Position]]:
        for partition, position in self.assigned.items():
            if position.fetch_state is fetch_state:
                yield partition, position


def _name(item: tuple[Partition, Position]) -> Partition:
    return item[0]


def by_topic(partitions: Iterable[Partition]) -> ByTopic:
    """Sorted by topic, then by number, as Kafka passes them to listeners."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return {topic: tuple(sorted(numbers[topic])) for topic in in_string_order(numbers)}


def one_by_one(grouped: Partitions) -> list[Partition]:
    return [(topic, number) for topic, numbers in grouped.items() for number in numbers]
