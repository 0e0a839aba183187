"""Requests and responses about records, topics and who leads what, named as in Kafka.

Records travel as structs, not as Kafka's packed batches. `leader_epoch` in Produce and `MetadataChanged` are ours: a
coordinator is a client of its own broker's log, and these two are what Kafka gives it by a call inside the process.
"""

from cluster.wire.errors import Error
from cluster.wire.fields import Int16, Int32, Int64, Message, Text


class Record(Message):
    key: bytes | None = None
    value: bytes | None = None
    timestamp: Int64 = -1


class RecordBatch(Message):
    """Records with consecutive offsets, written under one leader."""

    base_offset: Int64
    leader_epoch: Int32
    records: tuple[Record, ...]


class PartitionProduceData(Message):
    index: Int32
    records: tuple[Record, ...]
    leader_epoch: Int32 = -1                                    # a coordinator's write is good for this epoch only


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


class FetchTopic(Message):
    topic: Text
    partitions: tuple[FetchPartition, ...]


class FetchRequest(Message):
    topics: tuple[FetchTopic, ...]
    replica_id: Int32 = -1                                      # -1 a consumer; -2 reads to the end of the log
    max_bytes: Int32 = 52428800


class PartitionData(Message):
    partition_index: Int32
    error_code: Error = Error.NONE
    high_watermark: Int64 = -1
    log_start_offset: Int64 = -1
    records: tuple[RecordBatch, ...] = ()


class FetchableTopicResponse(Message):
    topic: Text
    partitions: tuple[PartitionData, ...]


class FetchResponse(Message):
    responses: tuple[FetchableTopicResponse, ...]


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


