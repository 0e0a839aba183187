"""Requests and responses between brokers and the controller, named as in Kafka (KRaft).

Brokers follow the controller's log (`__cluster_metadata`) by Fetch, as they follow any other.
"""

from cluster.wire.errors import Error
from cluster.wire.fields import Int8, Int32, Int64, Message, Text


class BrokerRegistrationRequest(Message):
    broker_id: Int32
    incarnation: Int32                                          # another process of the same broker has another one


class BrokerRegistrationResponse(Message):
    error_code: Error = Error.NONE
    broker_epoch: Int64 = -1


class BrokerHeartbeatRequest(Message):
    broker_id: Int32
    broker_epoch: Int64
    current_metadata_offset: Int64                              # how far it has followed the controller's log
    want_shut_down: bool = False


class BrokerHeartbeatResponse(Message):
    error_code: Error = Error.NONE
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


class AlterPartitionPartition(Message):
    partition_index: Int32
    leader_epoch: Int32
    new_isr: tuple[Int32, ...]
    partition_epoch: Int32


class AlterPartitionTopic(Message):
    topic: Text
    partitions: tuple[AlterPartitionPartition, ...]


class AlterPartitionRequest(Message):
    """A leader proposes another set of in-sync replicas."""

    broker_id: Int32
    broker_epoch: Int64
    topics: tuple[AlterPartitionTopic, ...]


class AlterPartitionResult(Message):
    partition_index: Int32
    error_code: Error = Error.NONE
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    isr: tuple[Int32, ...] = ()
    partition_epoch: Int32 = -1


class AlterPartitionTopicResult(Message):
    topic: Text
    partitions: tuple[AlterPartitionResult, ...]


class AlterPartitionResponse(Message):
    error_code: Error = Error.NONE
    topics: tuple[AlterPartitionTopicResult, ...] = ()


class TopicPartitions(Message):
    topic: Text
    partitions: tuple[Int32, ...]


class ElectLeadersRequest(Message):
    election_type: Int8 = 0                                     # 0 the preferred replica, 1 unclean
    topic_partitions: tuple[TopicPartitions, ...] | None = None     # null: all


class PartitionElectionResult(Message):
    partition_id: Int32
    error_code: Error = Error.NONE


class ReplicaElectionResult(Message):
    topic: Text
    partition_result: tuple[PartitionElectionResult, ...]


class ElectLeadersResponse(Message):
    error_code: Error = Error.NONE
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
