"""Requests and responses about committed offsets, named as in Kafka."""

from typing import Annotated

from cluster.wire.errors import Error
from cluster.wire.fields import Int32, Int64, Label, LongText, Message, Text, between, since, until


class OffsetCommitRequestPartition(Message):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6, ignorable=True)] = -1
    commit_timestamp: Annotated[Int64, between(1, 1)] = -1
    committed_metadata: LongText | None = None


class OffsetCommitRequestTopic(Message):
    name: Text
    partitions: tuple[OffsetCommitRequestPartition, ...]


class OffsetCommitRequest(Message):
    group_id: Text
    topics: tuple[OffsetCommitRequestTopic, ...]
    generation_id_or_member_epoch: Int32 = -1
    member_id: Text = ""
    group_instance_id: Annotated[Label | None, since(7)] = None
    retention_time_ms: Annotated[Int64, between(2, 4)] = -1

    @property
    def generation_id(self) -> int:
        """Its name before v9, and what a classic group calls it."""
        return self.generation_id_or_member_epoch


class OffsetCommitResponsePartition(Message):
    partition_index: Int32
    error_code: Error = Error.NONE


class OffsetCommitResponseTopic(Message):
    name: Text
    partitions: tuple[OffsetCommitResponsePartition, ...]


class OffsetCommitResponse(Message):
    topics: tuple[OffsetCommitResponseTopic, ...] = ()


class OffsetFetchRequestTopic(Message):
    name: Text
    partition_indexes: tuple[Int32, ...]


class OffsetFetchRequestGroup(Message):
    group_id: Text
    member_id: Annotated[Text | None, since(9, ignorable=True)] = None
    member_epoch: Annotated[Int32, since(9, ignorable=True)] = -1
    topics: tuple[OffsetFetchRequestTopic, ...] | None = None   # null: all that were ever committed


class OffsetFetchRequest(Message):
    group_id: Annotated[Text, until(7)] = ""
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, until(7)] = None
    groups: Annotated[tuple[OffsetFetchRequestGroup, ...], since(8)] = ()
    require_stable: Annotated[bool, since(7)] = False


class OffsetFetchResponsePartition(Message):
    partition_index: Int32
    committed_offset: Int64 = -1
    committed_leader_epoch: Annotated[Int32, since(5, ignorable=True)] = -1
    metadata: LongText | None = ""
    error_code: Error = Error.NONE


class OffsetFetchResponseTopic(Message):
    name: Text
    partitions: tuple[OffsetFetchResponsePartition, ...]


class OffsetFetchResponseGroup(Message):
    group_id: Text
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: Error = Error.NONE


class OffsetFetchResponse(Message):
    topics: Annotated[tuple[OffsetFetchResponseTopic, ...], until(7)] = ()
    error_code: Annotated[Error, between(2, 7, ignorable=True)] = Error.NONE
    groups: Annotated[tuple[OffsetFetchResponseGroup, ...], since(8)] = ()


class OffsetDeleteRequestTopic(Message):
    name: Text
    partitions: tuple[Int32, ...]


class OffsetDeleteRequest(Message):
    group_id: Text
    topics: tuple[OffsetDeleteRequestTopic, ...]


class OffsetDeleteResponsePartition(Message):
    partition_index: Int32
    error_code: Error = Error.NONE


class OffsetDeleteResponseTopic(Message):
    name: Text
    partitions: tuple[OffsetDeleteResponsePartition, ...]


class OffsetDeleteResponse(Message):
    error_code: Error = Error.NONE
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
