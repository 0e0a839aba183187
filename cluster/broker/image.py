"""What a cluster knows about itself: its brokers, its topics, who leads what. The controller's log, applied in order.

The controller writes these records; every broker follows its log and has the same image, a moment later.
"""

import re

import msgspec

from cluster.wire.errors import Error
from cluster.wire.log import MetadataResponsePartition, MetadataResponseTopic, PartitionLeader, Record

OFFSETS_TOPIC = "__consumer_offsets"
METADATA_TOPIC = "__cluster_metadata"
NO_LEADER = -1
MAX_PARTITIONS = 100_000                       # of one topic: a mistyped number must not take the memory
_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class PartitionState(msgspec.Struct, frozen=True):
    """`replicas` in the order of preference; `isr` is what may lead; each change makes `partition_epoch` grow, each
    election `leader_epoch`, too."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0


class BrokerState(msgspec.Struct, frozen=True):
    broker_epoch: int
    is_fenced: bool = True
    is_shutting_down: bool = False

    @property
    def is_active(self) -> bool:
        return not self.is_fenced and not self.is_shutting_down


# The records of the controller's log


class BrokerChanged(msgspec.Struct, frozen=True, tag="broker"):
    broker_id: int
    state: BrokerState


class TopicMade(msgspec.Struct, frozen=True, tag="topic"):
    """A topic, or more partitions of one: those from `first` on. Its id tells it from one that had its name before."""

    name: str
    topic_id: int
    first: int
    partitions: tuple[PartitionState, ...]


class PartitionChanged(msgspec.Struct, frozen=True, tag="partition"):
    topic: str
    partition: int
    state: PartitionState


class TopicGone(msgspec.Struct, frozen=True, tag="gone"):
    name: str
    topic_id: int


Change = BrokerChanged | TopicMade | PartitionChanged | TopicGone
_decode = msgspec.msgpack.Decoder(Change).decode
_encode = msgspec.msgpack.Encoder().encode


def to_record(change: Change, now: int) -> Record:
    return Record(None, _encode(change), now)


def from_record(record: Record) -> Change:
    assert record.value is not None
    change: Change = _decode(record.value)
    return change


class Image:
    def __init__(self) -> None:
        self.brokers: dict[int, BrokerState] = {}
        self.topics: dict[str, list[PartitionState]] = {}
        self.ids: dict[str, int] = {}
        self._described: dict[str, MetadataResponseTopic] = {}     # as long as nothing of it changes

    def apply(self, change: Change) -> None:
        self._described.pop(getattr(change, "topic", getattr(change, "name", "")), None)
        if isinstance(change, PartitionChanged):
            self.topics[change.topic][change.partition] = change.state
        elif isinstance(change, BrokerChanged):
            self.brokers[change.broker_id] = change.state
        elif isinstance(change, TopicMade):
            self.topics[change.name] = [*self.topics.get(change.name, [])[: change.first], *change.partitions]
            self.ids[change.name] = change.topic_id
        else:
            self.topics.pop(change.name, None)
            self.ids.pop(change.name, None)

    def partition(self, topic: str, number: int) -> PartitionState | None:
        partitions = self.topics.get(topic, ())
        return partitions[number] if 0 <= number < len(partitions) else None

    def is_active(self, broker_id: int) -> bool:
        state = self.brokers.get(broker_id)
        return state is not None and state.is_active

    def active_brokers(self) -> list[int]:
        return sorted(broker_id for broker_id, state in self.brokers.items() if state.is_active)

    def sizes(self) -> dict[str, int]:
        return {name: len(partitions) for name, partitions in self.topics.items()}

    def offsets_leaders(self) -> tuple[PartitionLeader, ...]:
        return tuple(PartitionLeader(number, state.leader, state.leader_epoch)
                     for number, state in enumerate(self.topics.get(OFFSETS_TOPIC, ())))

    def described(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        described = self._described.get(name)
        if described is None:
            described = self._described[name] = MetadataResponseTopic(
                name, is_internal=name == OFFSETS_TOPIC, partitions=tuple(
                    MetadataResponsePartition(number, one.leader, one.leader_epoch, one.replicas, one.isr,
                                              Error.LEADER_NOT_AVAILABLE if one.leader == NO_LEADER else Error.NONE)
                    for number, one in enumerate(self.topics[name])))
        return described


def legal_name(name: str) -> bool:
    return name not in (".", "..") and _LEGAL.fullmatch(name) is not None
