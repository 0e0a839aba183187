"""Which topics there are, how many partitions each has and who leads them: what a cluster knows about itself."""

import re

import msgspec

from cluster.wire.errors import Error
from cluster.wire.log import MetadataResponsePartition, MetadataResponseTopic, PartitionLeader

OFFSETS_TOPIC = "__consumer_offsets"
MAX_PARTITIONS = 100_000                       # of one topic: a mistyped number must not take the memory
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class Partition(msgspec.Struct, frozen=True):
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Topics:
    def __init__(self) -> None:
        self.partitions: dict[str, list[Partition]] = {}

    def create(self, name: str, partitions: int, replicas: tuple[int, ...]) -> None:
        self.partitions[name] = []
        self.grow(name, partitions, replicas)

    def grow(self, name: str, partitions: int, replicas: tuple[int, ...]) -> None:
        """New partitions, each led by the first of its replicas."""
        known = self.partitions[name]
        known.extend(Partition(replicas[0], 0, replicas, replicas) for _ in range(partitions - len(known)))

    def sizes(self) -> dict[str, int]:
        return {name: len(partitions) for name, partitions in self.partitions.items()}

    def find(self, name: str, partition: int) -> Partition | None:
        partitions = self.partitions.get(name, [])
        return partitions[partition] if 0 <= partition < len(partitions) else None

    def offsets_leaders(self) -> tuple[PartitionLeader, ...]:
        return tuple(PartitionLeader(number, partition.leader_id, partition.leader_epoch)
                     for number, partition in enumerate(self.partitions.get(OFFSETS_TOPIC, ())))

    def described(self, name: str) -> MetadataResponseTopic:
        if name not in self.partitions:
            return MetadataResponseTopic(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(name, is_internal=name == OFFSETS_TOPIC, partitions=tuple(
            MetadataResponsePartition(number, one.leader_id, one.leader_epoch, one.replicas, one.isr)
            for number, one in enumerate(self.partitions[name])))


def legal_name(name: str) -> bool:
    return name not in (".", "..") and _LEGAL.fullmatch(name) is not None
