"""Fetch, ListOffsets and OffsetForLeaderEpoch: what consumers and coordinators read here.

A consumer reads below the high watermark. If there is not enough for it, it waits: until there is, or its time is up.
"""

import msgspec

from cluster.broker.partition import Partition, Partitions
from cluster.broker.storage import size_of
from cluster.machine import Envelope
from cluster.outbox import Outbox
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    EpochEndOffsetResponse,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
    PartitionData,
    RecordBatch,
)

TIMER = "fetch/"
TO_THE_END = -2                                # who reads past the high watermark: a coordinator that loads
LATEST, EARLIEST = -1, -2


class Parked(msgspec.Struct, eq=False):
    """A Fetch that waits, and what it would be answered if its time were up now."""

    asked: Envelope
    answer: FetchResponse


class Reading:
    def __init__(self, out: Outbox, partitions: Partitions) -> None:
        self.out = out
        self.partitions = partitions
        self.parked: dict[str, Parked] = {}    # by who asked
        self.waiting: dict[tuple[str, int], dict[str, Parked]] = {}

    # Fetch

    def fetch(self, asked: Envelope) -> Message | None:
        body: FetchRequest = asked.body
        answer, is_enough = self._read_all(body)
        if is_enough or body.max_wait_ms == 0:
            return answer
        parked = self.parked[asked.source] = Parked(asked, answer)
        for topic in body.topics:
            for wanted in topic.partitions:
                self.waiting.setdefault((topic.topic, wanted.partition), {})[asked.source] = parked
        self.out.set_timer(TIMER + asked.source, self.out.now + body.max_wait_ms)
        return None

    def _read_all(self, body: FetchRequest) -> tuple[FetchResponse, bool]:
        """What there is, and whether that is enough; trouble is always enough."""
        size, troubled = 0, False
        topics = []
        for topic in body.topics:
            found = []
            for wanted in topic.partitions:
                data = self._read(topic.topic, wanted, body.replica_id, body.max_bytes - size)
                if data.error_code is not Error.NONE:
                    troubled = True
                for batch in data.records:
                    size += sum(map(size_of, batch.records))
                found.append(data)
            topics.append(FetchableTopicResponse(topic.topic, tuple(found)))
        return FetchResponse(tuple(topics)), troubled or size >= body.min_bytes

    def _read(self, topic: str, wanted: FetchPartition, replica_id: int, left: int) -> PartitionData:
        partition = self.partitions.get((topic, wanted.partition))
        if partition is None:
            return PartitionData(wanted.partition, Error.UNKNOWN_TOPIC_OR_PARTITION)
        error = partition.objection(wanted.current_leader_epoch)
        if error is not Error.NONE:
            return PartitionData(wanted.partition, error)
        log = partition.log
        if not log.start_offset <= wanted.fetch_offset <= log.end_offset:
            return PartitionData(wanted.partition, Error.OFFSET_OUT_OF_RANGE, log.high_watermark, log.start_offset)
        end = log.end_offset if replica_id == TO_THE_END else log.high_watermark
        batches: tuple[RecordBatch, ...] = ()
        if left > 0 and wanted.fetch_offset < end:
            batches = log.read(wanted.fetch_offset, min(wanted.partition_max_bytes, left), end)
        return PartitionData(wanted.partition, Error.NONE, log.high_watermark, log.start_offset, batches)

    def wake(self, partitions: Partitions) -> None:
        """There may be something for those who wait; if it is enough, they have it."""
        for key in partitions:
            for parked in list(self.waiting.get(key, {}).values()):
                if parked.asked.source in self.parked:
                    self._look_again(parked)

    def _look_again(self, parked: Parked) -> None:
        parked.answer, is_enough = self._read_all(parked.asked.body)
        if is_enough:
            self.out.cancel_timer(TIMER + parked.asked.source)
            self.time_is_up(parked.asked.source)

    def time_is_up(self, source: str) -> None:
        """A reader gets what there is, which may be nothing."""
        parked = self.parked.get(source)
        if parked is not None:
            self.gone(source)
            self.out.answer(parked.asked, parked.answer)

    def gone(self, source: str) -> None:
        """It waits no more."""
        parked = self.parked.pop(source, None)
        if parked is not None:
            for topic in parked.asked.body.topics:
                for wanted in topic.partitions:
                    del self.waiting[topic.topic, wanted.partition][source]

    # Where a log begins and ends

    def list_offsets(self, asked: Envelope) -> Message:
        return ListOffsetsResponse(tuple(
            ListOffsetsTopicResponse(topic.name, tuple(self._list(topic.name, wanted) for wanted in topic.partitions))
            for topic in asked.body.topics))

    def _list(self, topic: str, wanted: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        partition = self.partitions.get((topic, wanted.partition_index))
        if partition is None:
            return ListOffsetsPartitionResponse(wanted.partition_index, Error.UNKNOWN_TOPIC_OR_PARTITION)
        error = partition.objection(wanted.current_leader_epoch)
        if error is not Error.NONE:
            return ListOffsetsPartitionResponse(wanted.partition_index, error)
        log, epoch = partition.log, partition.agreed.leader_epoch
        if wanted.timestamp == EARLIEST:
            return ListOffsetsPartitionResponse(wanted.partition_index, Error.NONE, -1, log.start_offset, epoch)
        if wanted.timestamp == LATEST:
            return self._latest(partition)
        for batch in log.read(log.start_offset, 1 << 62, log.high_watermark):
            for offset, record in batch.numbered():
                if record.timestamp >= wanted.timestamp:
                    return ListOffsetsPartitionResponse(
                        wanted.partition_index, Error.NONE, record.timestamp, offset, batch.leader_epoch)
        return ListOffsetsPartitionResponse(wanted.partition_index)

    def _latest(self, partition: Partition) -> ListOffsetsPartitionResponse:
        """A new leader does not know yet what is committed, until its followers have fetched: then it asks for
        patience, since what it knows may be older than what was read elsewhere."""
        log = partition.log
        if log.high_watermark < log.last_epoch_start() and len(partition.agreed.isr) > 1:
            return ListOffsetsPartitionResponse(partition.number, Error.OFFSET_NOT_AVAILABLE)
        return ListOffsetsPartitionResponse(partition.number, Error.NONE, -1, log.high_watermark,
                                            partition.agreed.leader_epoch)

    def end_of_epoch(self, asked: Envelope) -> Message:
        return OffsetForLeaderEpochResponse(tuple(
            OffsetForLeaderTopicResult(topic.topic, tuple(
                self._end_of_epoch(topic.topic, wanted) for wanted in topic.partitions))
            for topic in asked.body.topics))

    def _end_of_epoch(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffsetResponse:
        partition = self.partitions.get((topic, wanted.partition))
        if partition is None:
            return EpochEndOffsetResponse(wanted.partition, Error.UNKNOWN_TOPIC_OR_PARTITION)
        error = partition.objection(wanted.current_leader_epoch)
        if error is not Error.NONE:
            return EpochEndOffsetResponse(wanted.partition, error)
        end = partition.log.end_of_epoch(wanted.leader_epoch)
        return EpochEndOffsetResponse(wanted.partition, Error.NONE, end.epoch, end.end_offset)
