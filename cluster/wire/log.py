"""Requests and responses about records, topics and who leads what, named as in Kafka.

Records travel as structs, not as Kafka's packed batches. `leader_epoch` in Produce and `MetadataChanged` are ours: a
coordinator is a client of its own broker's log, and these two are what Kafka gives it by a call inside the process.
"""

from collections.abc import Iterable

from cluster.wire.errors import Error
from cluster.wire.fields import Int16, Int32, Int64, Message, Text


class Record(Message):
    key: bytes | None = None
    value: bytes | None = None
    timestamp: Int64 = -1


class RecordBatch(Message):
    """Records with consecutive offsets, written under one leader, perhaps by an idempotent producer. Compaction leaves
    gaps: then `offsets` says which are left, and `last_offset` where the batch ended."""

    base_offset: Int64
    leader_epoch: Int32
    records: tuple[Record, ...]
    producer_id: Int64 = -1
    base_sequence: Int32 = -1
    offsets: tuple[Int64, ...] | None = None
    last_offset: Int64 = -1

    def next_offset(self) -> int:
        return (self.base_offset + len(self.records)) if self.offsets is None else self.last_offset + 1

    def numbered(self) -> Iterable[tuple[int, Record]]:
        """The records with their offsets."""
        if self.offsets is None:
            return enumerate(self.records, self.base_offset)
        return zip(self.offsets, self.records, strict=True)


class PartitionProduceData(Message):
    index: Int32
    records: tuple[Record, ...]
    leader_epoch: Int32 = -1                                    # a coordinator's write is good for this epoch only
    producer_id: Int64 = -1                                     # an idempotent producer numbers its records
    base_sequence: Int32 = -1


class TopicProduceData(Message):
    name: Text
    partition_data: tuple[PartitionProduceData, ...]


class ProduceRequest(Message):
    acks: Int16
    timeout_ms: Int32
    topic_data: tuple[TopicProduceData, ...]


class PartitionProduceResponse(Message):
    index: Int32
    error_code: Error = Error.NONE
    base_offset: Int64 = -1


class TopicProduceResponse(Message):
    name: Text
    partition_responses: tuple[PartitionProduceResponse, ...]


class ProduceResponse(Message):
    responses: tuple[TopicProduceResponse, ...]


class FetchPartition(Message):
    partition: Int32
    fetch_offset: Int64
    current_leader_epoch: Int32 = -1
    partition_max_bytes: Int32 = 1048576
    last_fetched_epoch: Int32 = -1                              # a follower says how its log ends


class FetchTopic(Message):
    topic: Text
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Message):
    topic: Text
    partitions: tuple[Int32, ...]


class FetchRequest(Message):
    """`replica_id`: -1 a consumer, -2 somebody who reads to the end of the log, else the broker that follows.

    Within a session only partitions that have changed are named, on both sides: epoch 0 begins one, each fetch of it
    counts on, and -1 is a fetch without."""

    topics: tuple[FetchTopic, ...]
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 1
    max_bytes: Int32 = 52428800
    session_epoch: Int32 = -1
    forgotten_topics: tuple[ForgottenTopic, ...] = ()


class EpochEndOffset(Message):
    epoch: Int32
    end_offset: Int64


class PartitionData(Message):
    partition_index: Int32
    error_code: Error = Error.NONE
    high_watermark: Int64 = -1
    log_start_offset: Int64 = -1
    records: tuple[RecordBatch, ...] = ()
    diverging_epoch: EpochEndOffset | None = None               # where the leader's history ends that the follower had


class FetchableTopicResponse(Message):
    topic: Text
    partitions: tuple[PartitionData, ...]


class FetchResponse(Message):
    responses: tuple[FetchableTopicResponse, ...]
    error_code: Error = Error.NONE                              # of the session


class ListOffsetsPartition(Message):
    partition_index: Int32
    timestamp: Int64                                            # -1 the end, -2 the beginning
    current_leader_epoch: Int32 = -1


class ListOffsetsTopic(Message):
    name: Text
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsRequest(Message):
    topics: tuple[ListOffsetsTopic, ...]
    replica_id: Int32 = -1


class ListOffsetsPartitionResponse(Message):
    partition_index: Int32
    error_code: Error = Error.NONE
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Int32 = -1


class ListOffsetsTopicResponse(Message):
    name: Text
    partitions: tuple[ListOffsetsPartitionResponse, ...]


class ListOffsetsResponse(Message):
    topics: tuple[ListOffsetsTopicResponse, ...]


class OffsetForLeaderPartition(Message):
    partition: Int32
    leader_epoch: Int32                                         # whose end is asked for
    current_leader_epoch: Int32 = -1


class OffsetForLeaderTopic(Message):
    topic: Text
    partitions: tuple[OffsetForLeaderPartition, ...]


class OffsetForLeaderEpochRequest(Message):
    topics: tuple[OffsetForLeaderTopic, ...]
    replica_id: Int32 = -1


class EpochEndOffsetResponse(Message):
    partition: Int32
    error_code: Error = Error.NONE
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(Message):
    topic: Text
    partitions: tuple[EpochEndOffsetResponse, ...]


class OffsetForLeaderEpochResponse(Message):
    topics: tuple[OffsetForLeaderTopicResult, ...]


class MetadataRequest(Message):
    topics: tuple[Text, ...] | None = None                      # null: all topics


class MetadataResponseBroker(Message):
    node_id: Int32
    host: Text
    port: Int32


class MetadataResponsePartition(Message):
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    error_code: Error = Error.NONE


class MetadataResponseTopic(Message):
    name: Text
    error_code: Error = Error.NONE
    is_internal: bool = False
    partitions: tuple[MetadataResponsePartition, ...] = ()


class MetadataResponse(Message):
    brokers: tuple[MetadataResponseBroker, ...]
    controller_id: Int32
    topics: tuple[MetadataResponseTopic, ...]


class CreatableTopic(Message):
    name: Text
    num_partitions: Int32 = -1
    replication_factor: Int16 = -1


class CreateTopicsRequest(Message):
    topics: tuple[CreatableTopic, ...]


class TopicResult(Message):
    """What came of creating, growing or deleting one topic."""

    name: Text
    error_code: Error = Error.NONE
    error_message: Text | None = None


class CreateTopicsResponse(Message):
    topics: tuple[TopicResult, ...]


class CreatePartitionsTopic(Message):
    name: Text
    count: Int32                                                # the new total


class CreatePartitionsRequest(Message):
    topics: tuple[CreatePartitionsTopic, ...]


class CreatePartitionsResponse(Message):
    results: tuple[TopicResult, ...]


class DeleteTopicsRequest(Message):
    topic_names: tuple[Text, ...]


class DeleteTopicsResponse(Message):
    responses: tuple[TopicResult, ...]


class PartitionLeader(Message):
    partition: Int32
    leader_id: Int32
    leader_epoch: Int32


class MetadataChanged(Message):
    """What a broker tells its coordinator: who leads each partition of __consumer_offsets, how large each topic is."""

    offsets_leaders: tuple[PartitionLeader, ...]
    topics: dict[Text, Int32]


