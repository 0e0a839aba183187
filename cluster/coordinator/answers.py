"""How each request is answered: the shape of a success, and of an error, in the version it was asked in."""

from collections.abc import Callable, Mapping

from cluster.coordinator.group import Group, Member
from cluster.machine import Envelope
from cluster.wire.apis import ApiKey
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import (
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    ListGroupsResponse,
    MemberResponse,
    SyncGroupResponse,
)
from cluster.wire.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

Topics = Mapping[str, int]                     # name -> number of partitions: what exists
UNGATED = frozenset((ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP))    # answered at once, whatever is not committed yet

HEARTBEATS = {error: HeartbeatResponse(error) for error in Error}


# Joins and syncs


def joined(group: Group, member: Member, *, with_members: bool) -> JoinGroupResponse:
    """The answer to a join: this generation. Only the leader is told the members, with what they asked for."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    if with_members:
        members = member_list(group)
    return JoinGroupResponse(Error.NONE, group.generation, group.protocol_type, group.protocol_name or "",
                             group.leader or "", False, member.member_id, members)


def member_list(group: Group) -> tuple[JoinGroupResponseMember, ...]:
    protocol = group.protocol_name
    return tuple([JoinGroupResponseMember(member.member_id, member.metadata(protocol), member.instance_id)
                  for member in group.members.values()])


def join_refused(error: Error, member_id: str, version: int) -> JoinGroupResponse:
    """Nothing but the error. The name of the protocol is null since v7 and empty before."""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None if version >= 7 else "")


def synced(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(Error.NONE, group.protocol_type, group.protocol_name, member.assignment)


# Errors


FORGETS_THE_ID = frozenset((Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR, Error.NOT_COORDINATOR,
                            Error.COORDINATOR_LOAD_IN_PROGRESS))


def refusal(asked: Envelope, error: Error, topics: Topics) -> Message:
    """The whole answer, where it is only an error. Requests about several groups have an error for each instead."""
    return _REFUSALS[asked.api_key](asked, error, topics)


def _join(asked: Envelope, error: Error, topics: Topics) -> Message:
    return join_refused(error, "" if error in FORGETS_THE_ID else asked.body.member_id, asked.api_version)


def _sync(asked: Envelope, error: Error, topics: Topics) -> Message:
    return SyncGroupResponse(error)


def _heartbeat(asked: Envelope, error: Error, topics: Topics) -> Message:
    return HEARTBEATS[error]


def _leave(asked: Envelope, error: Error, topics: Topics) -> Message:
    """A group that is not there is no error as such: each who leaves it is unknown."""
    if error is Error.UNKNOWN_MEMBER_ID and asked.api_version >= 3:
        return LeaveGroupResponse(members=tuple(
            MemberResponse(one.member_id, one.group_instance_id, error) for one in asked.body.members))
    return LeaveGroupResponse(error)


def _commit(asked: Envelope, error: Error, topics: Topics) -> Message:
    return commit_answer(asked, topics, lambda topic, partition: error)


def commit_answer(asked: Envelope, topics: Topics, error_of: Callable[[str, int], Error]) -> OffsetCommitResponse:
    """An error for each partition; those that do not exist have theirs already."""
    return OffsetCommitResponse(tuple(
        OffsetCommitResponseTopic(topic.name, tuple(
            OffsetCommitResponsePartition(
                one.partition_index,
                error_of(topic.name, one.partition_index) if one.partition_index in range(topics.get(topic.name, 0))
                else Error.UNKNOWN_TOPIC_OR_PARTITION)
            for one in topic.partitions))
        for topic in asked.body.topics))


def _list(asked: Envelope, error: Error, topics: Topics) -> Message:
    return ListGroupsResponse(error)


def _prune(asked: Envelope, error: Error, topics: Topics) -> Message:
    return OffsetDeleteResponse(error)


_REFUSALS: dict[int, Callable[[Envelope, Error, Topics], Message]] = {
    ApiKey.JOIN_GROUP: _join, ApiKey.SYNC_GROUP: _sync, ApiKey.HEARTBEAT: _heartbeat, ApiKey.LEAVE_GROUP: _leave,
    ApiKey.OFFSET_COMMIT: _commit, ApiKey.LIST_GROUPS: _list, ApiKey.OFFSET_DELETE: _prune,
}


# Offsets


def groups_to_fetch(asked: Envelope) -> tuple[OffsetFetchRequestGroup, ...]:
    """What an OffsetFetch of any version asks for: one group before v8, several since."""
    if asked.api_version >= 8:
        groups: tuple[OffsetFetchRequestGroup, ...] = asked.body.groups
        return groups
    return (OffsetFetchRequestGroup(asked.body.group_id, topics=asked.body.topics),)


def fetch_refused(group: OffsetFetchRequestGroup, error: Error) -> OffsetFetchResponseGroup:
    """An error for the whole group; before v2 there was no place for it but in each partition."""
    return OffsetFetchResponseGroup(group.group_id, tuple(
        OffsetFetchResponseTopic(topic.name, tuple(
            OffsetFetchResponsePartition(partition, error_code=error) for partition in topic.partition_indexes))
        for topic in group.topics or ()), error)


def fetch_answer(asked: Envelope, groups: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if asked.api_version >= 8:
        return OffsetFetchResponse(groups=tuple(
            group if group.error_code is Error.NONE else OffsetFetchResponseGroup(group.group_id, (), group.error_code)
            for group in groups))
    (group,) = groups
    if asked.api_version >= 2 and group.error_code is not Error.NONE:
        return OffsetFetchResponse(error_code=group.error_code)
    return OffsetFetchResponse(topics=group.topics, error_code=group.error_code)


def prune_answer(asked: Envelope, topics: Topics, error_of: Callable[[str], Error]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(topics=tuple(
        OffsetDeleteResponseTopic(topic.name, tuple(
            OffsetDeleteResponsePartition(
                partition, error_of(topic.name) if partition in range(topics.get(topic.name, 0))
                else Error.UNKNOWN_TOPIC_OR_PARTITION)
            for partition in topic.partitions))
        for topic in asked.body.topics))
