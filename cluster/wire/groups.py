"""Requests and responses about groups and their members, named as in Kafka. No quotas: no throttle times."""

from typing import Annotated

from cluster.wire.errors import Error
from cluster.wire.fields import Int8, Int32, Label, Message, Text, between, since, until


class FindCoordinatorRequest(Message):
    key: Annotated[Text, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0                     # 0 group, 1 transaction, 2 share
    coordinator_keys: Annotated[tuple[Text, ...], since(4)] = ()


class Coordinator(Message):
    key: Text
    node_id: Int32 = -1
    host: Text = ""
    port: Int32 = -1
    error_code: Error = Error.NONE
    error_message: Text | None = None


class FindCoordinatorResponse(Message):
    error_code: Annotated[Error, until(3)] = Error.NONE
    error_message: Annotated[Text | None, between(1, 3, ignorable=True)] = None
    node_id: Annotated[Int32, until(3)] = -1
    host: Annotated[Text, until(3)] = ""
    port: Annotated[Int32, until(3)] = -1
    coordinators: Annotated[tuple[Coordinator, ...], since(4)] = ()


class JoinGroupRequestProtocol(Message):
    name: Text
    metadata: bytes


class JoinGroupRequest(Message):
    group_id: Text
    session_timeout_ms: Int32
    protocol_type: Text
    protocols: tuple[JoinGroupRequestProtocol, ...]
    rebalance_timeout_ms: Annotated[Int32, since(1, ignorable=True)] = -1
    member_id: Text = ""
    group_instance_id: Annotated[Label | None, since(5)] = None
    reason: Annotated[Text | None, since(8, ignorable=True)] = None


class JoinGroupResponseMember(Message):
    member_id: Text
    metadata: bytes
    group_instance_id: Annotated[Label | None, since(5, ignorable=True)] = None


class JoinGroupResponse(Message):
    error_code: Error = Error.NONE
    generation_id: Int32 = -1
    protocol_type: Annotated[Text | None, since(7, ignorable=True)] = None
    protocol_name: Text | None = None                           # null since v7, empty before
    leader: Text = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: Text = ""
    members: tuple[JoinGroupResponseMember, ...] = ()


class SyncGroupRequestAssignment(Message):
    member_id: Text
    assignment: bytes


class SyncGroupRequest(Message):
    group_id: Text
    generation_id: Int32
    member_id: Text
    group_instance_id: Annotated[Label | None, since(3)] = None
    protocol_type: Annotated[Text | None, since(5, ignorable=True)] = None
    protocol_name: Annotated[Text | None, since(5, ignorable=True)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


class SyncGroupResponse(Message):
    error_code: Error = Error.NONE
    protocol_type: Annotated[Text | None, since(5, ignorable=True)] = None
    protocol_name: Annotated[Text | None, since(5, ignorable=True)] = None
    assignment: bytes = b""


class HeartbeatRequest(Message):
    group_id: Text
    generation_id: Int32
    member_id: Text
    group_instance_id: Annotated[Label | None, since(3)] = None


class HeartbeatResponse(Message):
    error_code: Error = Error.NONE


class MemberIdentity(Message):
    member_id: Text = ""
    group_instance_id: Label | None = None
    reason: Annotated[Text | None, since(5, ignorable=True)] = None


class LeaveGroupRequest(Message):
    group_id: Text
    member_id: Annotated[Text, until(2)] = ""
    members: Annotated[tuple[MemberIdentity, ...], since(3)] = ()


class MemberResponse(Message):
    member_id: Text = ""
    group_instance_id: Label | None = None
    error_code: Error = Error.NONE


class LeaveGroupResponse(Message):
    error_code: Error = Error.NONE
    members: Annotated[tuple[MemberResponse, ...], since(3, ignorable=True)] = ()


class DescribeGroupsRequest(Message):
    groups: tuple[Text, ...]


class DescribedGroupMember(Message):
    member_id: Text
    group_instance_id: Annotated[Label | None, since(4, ignorable=True)] = None
    client_id: Text = ""
    client_host: Text = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    group_id: Text
    error_code: Error = Error.NONE
    error_message: Annotated[Text | None, since(6, ignorable=True)] = None
    group_state: Text = ""
    protocol_type: Text = ""
    protocol_data: Text = ""
    members: tuple[DescribedGroupMember, ...] = ()


class DescribeGroupsResponse(Message):
    groups: tuple[DescribedGroup, ...] = ()


class ListGroupsRequest(Message):
    states_filter: Annotated[tuple[Text, ...], since(4)] = ()
    types_filter: Annotated[tuple[Text, ...], since(5)] = ()


class ListedGroup(Message):
    group_id: Text
    protocol_type: Text = ""
    group_state: Annotated[Text, since(4, ignorable=True)] = ""
    group_type: Annotated[Text, since(5, ignorable=True)] = ""


class ListGroupsResponse(Message):
    error_code: Error = Error.NONE
    groups: tuple[ListedGroup, ...] = ()


class DeleteGroupsRequest(Message):
    groups_names: tuple[Text, ...]


class DeletableGroupResult(Message):
    group_id: Text
    error_code: Error = Error.NONE


class DeleteGroupsResponse(Message):
    results: tuple[DeletableGroupResult, ...] = ()
