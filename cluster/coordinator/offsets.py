"""The words of the table about offsets, and about a group as a whole: commit, read, delete, expire, describe."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster.coordinator.answers import commit_answer, prune_answer
from cluster.coordinator.group import Group
from cluster.coordinator.records import Offset, OffsetRecord, Stored
from cluster.coordinator.states import Do
from cluster.coordinator.view import Offsets, group_tombstone, tombstones
from cluster.events import GroupDeleted, OffsetsExpired
from cluster.primitives import MAX_STRING
from cluster.wire.errors import Error
from cluster.wire.groups import DescribedGroupMember
from cluster.wire.offsets import (
    OffsetCommitRequestPartition,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

if TYPE_CHECKING:
    from cluster.coordinator.shard import Shard
    from cluster.coordinator.turn import Turn


def commit(turn: "Turn") -> None:
    """Each partition for itself: one with too much metadata does not keep the others back."""
    shard, group, request, envelope = turn.shard, turn.group, turn.request, turn.envelope
    assert envelope is not None
    errors: dict[tuple[str, int], Error] = {}
    stored: list[Stored] = []
    for topic in request.topics:
        for one in topic.partitions:
            where = topic.name, one.partition_index
            if one.partition_index not in range(shard.topics.get(topic.name, 0)):
                continue
            if _too_large(one.committed_metadata, shard.config.offset_metadata_max_bytes):
                errors[where] = Error.OFFSET_METADATA_TOO_LARGE
                continue
            stored.append(OffsetRecord(group.group_id, *where, _offset(turn, one)))
    if stored:
        shard.write(group, stored, author=(request.member_id, request.generation_id, shard.out.now))
    turn.body = commit_answer(envelope, shard.topics, lambda *where: errors.get(where, Error.NONE))


def _too_large(metadata: str | None, limit: int) -> bool:
    """Measured as Java measures strings; and it must fit into a record."""
    if metadata is None:
        return False
    return len(metadata.encode("utf-16-be")) // 2 > limit or len(metadata.encode()) > MAX_STRING


def _offset(turn: "Turn", one: OffsetCommitRequestPartition) -> Offset:
    now, retention_ms = turn.shard.out.now, turn.request.retention_time_ms
    return Offset(one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "",
                  now if one.commit_timestamp == -1 else one.commit_timestamp,
                  -1 if retention_ms == -1 else now + retention_ms)


def read(turn: "Turn") -> None:
    """`about` is what is asked for and the view to read."""
    wanted, view = turn.about
    turn.about = offsets_read(wanted, view.offsets_of(turn.group.group_id))


def offsets_read(wanted: OffsetFetchRequestGroup, offsets: Offsets) -> OffsetFetchResponseGroup:
    """What was committed; -1 where nothing was. A group that is not there has committed nothing."""
    asked: dict[str, list[int]] = {}
    if wanted.topics is None:
        for topic, partition in sorted(offsets):
            asked.setdefault(topic, []).append(partition)
    else:
        for each in wanted.topics:
            asked.setdefault(each.name, []).extend(each.partition_indexes)
    return OffsetFetchResponseGroup(wanted.group_id, tuple([
        OffsetFetchResponseTopic(topic, tuple([_read(partition, offsets.get((topic, partition)))
                                               for partition in partitions]))
        for topic, partitions in asked.items()]))


def _read(partition: int, offset: Offset | None) -> OffsetFetchResponsePartition:
    if offset is None:
        return OffsetFetchResponsePartition(partition)
    return OffsetFetchResponsePartition(partition, offset.offset, offset.leader_epoch, offset.metadata)


def prune(turn: "Turn") -> None:
    shard, group, envelope = turn.shard, turn.group, turn.envelope
    assert envelope is not None
    offsets = shard.latest.offsets_of(group.group_id)
    doomed = {(topic.name, partition): offsets[topic.name, partition] for topic in turn.request.topics
              for partition in topic.partitions
              if (topic.name, partition) in offsets and partition in range(shard.topics.get(topic.name, 0))
              and not group.subscribes_to(topic.name)}
    if doomed:
        shard.write(group, tombstones(group, doomed))
    turn.body = prune_answer(envelope, shard.topics, lambda topic: Error.GROUP_SUBSCRIBED_TO_TOPIC
                             if group.subscribes_to(topic) else Error.NONE)


def delete(turn: "Turn") -> None:
    """The offsets first, then the group, so that a load that sees only the first half finds a group without offsets."""
    _bury_records(turn.shard, turn.group, "deleted")


def _bury_records(shard: "Shard", group: Group, cause: str) -> None:
    shard.forget(group)
    shard.write(group, [*tombstones(group, shard.latest.offsets_of(group.group_id)), group_tombstone(group)])
    shard.out.emit(GroupDeleted(group.group_id, cause))


def expire(turn: "Turn") -> None:
    """An empty group's offsets age from when it became empty; without any members ever, from their commit."""
    shard, group = turn.shard, turn.group
    since = group.state_since if group.protocol_type is not None else None
    offsets = shard.latest.offsets_of(group.group_id)
    old = {where: offset for where, offset in offsets.items()
           if _is_old(shard, offset, offset.commit_timestamp if since is None else since)}
    left = len(offsets) - len(old)
    _expire(shard, group, old)
    if not left:
        _bury_records(shard, group, "expired")


def expire_rest(turn: "Turn") -> None:
    shard, group = turn.shard, turn.group
    if group.subscribed is None:
        return
    _expire(shard, group, {
        (topic, partition): offset
        for (topic, partition), offset in shard.latest.offsets_of(group.group_id).items()
        if topic not in group.subscribed and _is_old(shard, offset, offset.commit_timestamp)
    })


def _is_old(shard: "Shard", offset: Offset, since: int) -> bool:
    if offset.expire_timestamp != -1:
        return shard.out.now >= offset.expire_timestamp
    return shard.out.now - since >= shard.config.offsets_retention_minutes * 60_000


def _expire(shard: "Shard", group: Group, old: Offsets) -> None:
    if old:
        shard.write(group, tombstones(group, old))
        shard.out.emit(OffsetsExpired(group.group_id, len(old)))


def forget_topics(shard: "Shard", group: Group, gone: set[str]) -> None:
    """Topics were deleted: what was committed for them goes at once, whoever subscribes."""
    offsets = shard.latest.offsets_of(group.group_id)
    doomed = {where: offset for where, offset in offsets.items() if where[0] in gone}
    if doomed:
        shard.write(group, tombstones(group, doomed))


def describe(turn: "Turn") -> None:
    """`about` becomes the protocol and the members, as they may be told."""
    turn.about = "", tuple([
        DescribedGroupMember(member.member_id, member.instance_id, member.client_id, member.client_host, b"",
                             member.assignment)
        for member in turn.group.members.values()])


def describe_all(turn: "Turn") -> None:
    protocol = turn.group.protocol_name
    turn.about = protocol or "", tuple([
        DescribedGroupMember(member.member_id, member.instance_id, member.client_id, member.client_host,
                             member.metadata(protocol), member.assignment)
        for member in turn.group.members.values()])


WORDS: dict[Do, Callable[["Turn"], bool | None]] = {
    Do.COMMIT: commit, Do.READ: read, Do.PRUNE: prune, Do.DELETE: delete, Do.EXPIRE: expire,
    Do.EXPIRE_REST: expire_rest, Do.DESCRIBE: describe, Do.DESCRIBE_ALL: describe_all,
}
