"""Produce: what is written here, and who waits until all in-sync replicas have it.

With acks=all a writer is answered when the high watermark has passed its records, or its time is up, or somebody else
leads.
"""

import msgspec

from cluster.broker.changes import Changes
from cluster.broker.partition import Partition, Partitions
from cluster.broker.storage import size_of
from cluster.config import BrokerConfig
from cluster.events import RecordsAppended
from cluster.machine import Envelope
from cluster.outbox import Outbox
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

TIMER = "produce/"


class Write(msgspec.Struct, eq=False):
    """A Produce of several partitions, answered when all of them are done."""

    asked: Envelope
    results: dict[tuple[str, int], PartitionProduceResponse]
    waiting: dict[tuple[str, int], tuple[int, int]]        # partition -> where its records begin, and end
    of_coordinator: bool                       # it names its epoch: it waits as long as that lasts


class Writing:
    def __init__(self, config: BrokerConfig, out: Outbox, partitions: Partitions, changes: Changes) -> None:
        self.config = config
        self.out = out
        self.partitions = partitions
        self.changes = changes
        self.waiting: dict[tuple[str, int], list[Write]] = {}

    def produce(self, asked: Envelope) -> Message | None:
        body: ProduceRequest = asked.body
        write = Write(asked, {}, {}, any(data.leader_epoch >= 0 for topic in body.topic_data
                                         for data in topic.partition_data))
        for topic in body.topic_data:
            for data in topic.partition_data:
                self._write(topic.name, data, body.acks, write)
        if body.acks == 0:
            return None
        if not write.waiting:
            return _answer(write)
        for key in write.waiting:
            self.waiting.setdefault(key, []).append(write)
        if not write.of_coordinator:
            self.out.set_timer(_timer(asked), self.out.now + body.timeout_ms)
        return None

    def _write(self, topic: str, data: PartitionProduceData, acks: int, write: Write) -> None:
        key = topic, data.index
        partition = self.partitions.get(key)
        if partition is None:
            write.results[key] = PartitionProduceResponse(data.index, Error.UNKNOWN_TOPIC_OR_PARTITION)
            return
        error, base = self._refusal(partition, data, acks), -1
        if error is Error.NONE:
            error, base = partition.log.known_already(data.producer_id, data.base_sequence, len(data.records))
        if error is Error.NONE:
            base = self._append(partition, data)
        elif error is not Error.DUPLICATE_SEQUENCE_NUMBER:
            write.results[key] = PartitionProduceResponse(data.index, error)
            return
        if acks == -1 and partition.log.high_watermark < base + len(data.records):
            write.waiting[key] = base, base + len(data.records)
        else:
            write.results[key] = PartitionProduceResponse(data.index, Error.NONE, base)

    def _refusal(self, partition: Partition, data: PartitionProduceData, acks: int) -> Error:
        if acks not in (-1, 0, 1):
            return Error.INVALID_REQUIRED_ACKS
        if not partition.leads or data.leader_epoch not in (-1, partition.agreed.leader_epoch):
            return Error.NOT_LEADER_OR_FOLLOWER
        for record in data.records:
            if size_of(record) > self.config.message_max_bytes:
                return Error.MESSAGE_TOO_LARGE
        if acks == -1 and data.leader_epoch < 0 and len(partition.agreed.isr) < partition.needed():
            return Error.NOT_ENOUGH_REPLICAS
        return Error.NONE

    def _append(self, partition: Partition, data: PartitionProduceData) -> int:
        epoch = partition.agreed.leader_epoch
        base = partition.log.append(data.records, epoch, data.producer_id, data.base_sequence)
        self.out.emit(RecordsAppended(partition.topic, data.index, epoch, base, len(data.records), data.producer_id,
                                      data.base_sequence))
        self.changes.append(partition)
        return base

    def settle(self, partition: Partition) -> None:
        """The high watermark has moved: whoever waited for that is answered."""
        for write in list(self.waiting.get(partition.key, ())):
            if partition.log.high_watermark >= write.waiting[partition.key][1]:
                enough = write.of_coordinator or len(partition.maximal_isr()) >= partition.needed()
                self._done(write, partition.key, Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def resigned(self, partition: Partition) -> None:
        """Somebody else leads: nobody here can say what became of what was written."""
        for write in list(self.waiting.get(partition.key, ())):
            self._done(write, partition.key, Error.NOT_LEADER_OR_FOLLOWER)

    def time_is_up(self, timer: str) -> None:
        """A writer has waited long enough. Its records may still be committed."""
        for writes in list(self.waiting.values()):
            for write in writes:
                if _timer(write.asked) == timer:
                    for key in list(write.waiting):
                        self._done(write, key, Error.REQUEST_TIMED_OUT)
                    return

    def _done(self, write: Write, key: tuple[str, int], error: Error) -> None:
        base, _ = write.waiting.pop(key)
        self.waiting[key].remove(write)
        write.results[key] = PartitionProduceResponse(key[1], error, base if error is Error.NONE else -1)
        if not write.waiting:
            if not write.of_coordinator:
                self.out.cancel_timer(_timer(write.asked))
            self.out.answer(write.asked, _answer(write))


def _timer(asked: Envelope) -> str:
    return f"{TIMER}{asked.source}/{asked.correlation_id}"


def _answer(write: Write) -> Message:
    return ProduceResponse(tuple(
        TopicProduceResponse(topic.name, tuple(write.results[topic.name, data.index] for data in topic.partition_data))
        for topic in write.asked.body.topic_data))
