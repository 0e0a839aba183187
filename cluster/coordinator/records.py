"""The records of __consumer_offsets, byte for byte as Kafka writes and reads them.

Key and value each start with an int16 version. A record without value is a tombstone. What failover restores is
exactly what these bytes say; a key of an unknown version is skipped, anything else that cannot be read fails the load.
"""

import msgspec

from cluster.primitives import (
    FlexibleReader,
    Malformed,
    Reader,
    blob,
    int16,
    int32,
    int64,
    nullable_string,
    string,
)
from cluster.wire.log import Record

OFFSET_KEY, GROUP_KEY = 1, 2                   # the versions of keys tell what a record is about


class Offset(msgspec.Struct, frozen=True, gc=False):
    """A committed offset. `expire_timestamp` is what OffsetCommit v2 to v4 could ask for; -1 if nothing was asked."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = -1
    expire_timestamp: int = -1


class OffsetRecord(msgspec.Struct, frozen=True, gc=False):
    group_id: str
    topic: str
    partition: int
    offset: Offset | None                      # None: a tombstone


class MemberMetadata(msgspec.Struct, frozen=True, gc=False):
    """A member as it is stored: of the protocols it offered, only the selected one's subscription."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupMetadata(msgspec.Struct, frozen=True):
    protocol_type: str                         # empty: none
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp: int                       # -1: unknown
    members: tuple[MemberMetadata, ...]


class GroupRecord(msgspec.Struct, frozen=True):
    group_id: str
    metadata: GroupMetadata | None             # None: a tombstone


Stored = OffsetRecord | GroupRecord


def encode(stored: Stored, now: int) -> Record:
    if isinstance(stored, OffsetRecord):
        key = int16(OFFSET_KEY) + string(stored.group_id) + string(stored.topic) + int32(stored.partition)
        return Record(key, None if stored.offset is None else _encode_offset(stored.offset), now)
    key = int16(GROUP_KEY) + string(stored.group_id)
    return Record(key, None if stored.metadata is None else _encode_group(stored.metadata), now)


def decode(record: Record) -> Stored | None:
    """What a record says; None for a key of a version that we do not know. Raises Malformed for anything unreadable."""
    if record.key is None:
        raise Malformed("a record without key")
    key = Reader(record.key)
    version = key.int16()
    if version in (0, OFFSET_KEY):
        group_id, topic, partition = key.string(), key.string(), key.int32()
        return OffsetRecord(group_id, topic, partition, None if record.value is None else _decode_offset(record.value))
    if version == GROUP_KEY:
        return GroupRecord(key.string(), None if record.value is None else _decode_group(record.value))
    return None


def _encode_offset(offset: Offset) -> bytes:
    if offset.expire_timestamp != -1:          # only version 1 of the value has a place for it
        return b"".join((int16(1), int64(offset.offset), string(offset.metadata), int64(offset.commit_timestamp),
                         int64(offset.expire_timestamp)))
    return b"".join((int16(3), int64(offset.offset), int32(offset.leader_epoch), string(offset.metadata),
                     int64(offset.commit_timestamp)))


def _decode_offset(value: bytes) -> Offset:
    version, reader = _value(value)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata, commit_timestamp = reader.string(), reader.int64()
    expire_timestamp = reader.int64() if version == 1 else -1
    reader.tags()
    return Offset(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp)


def _encode_group(group: GroupMetadata) -> bytes:
    parts = [int16(3), string(group.protocol_type), int32(group.generation), nullable_string(group.protocol),
             nullable_string(group.leader), int64(group.state_timestamp), int32(len(group.members))]
    for member in group.members:
        parts += (string(member.member_id), nullable_string(member.instance_id), string(member.client_id),
                  string(member.client_host), int32(member.rebalance_timeout_ms), int32(member.session_timeout_ms),
                  blob(member.subscription), blob(member.assignment))
    return b"".join(parts)


def _decode_group(value: bytes) -> GroupMetadata:
    version, reader = _value(value)
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    state_timestamp = reader.int64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(reader.count(18)))
    reader.tags()
    return GroupMetadata(protocol_type, generation, protocol, leader, state_timestamp, members)


def _decode_member(reader: Reader, version: int) -> MemberMetadata:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    session_timeout_ms, subscription, assignment = reader.int32(), reader.blob(), reader.blob()
    reader.tags()
    return MemberMetadata(member_id, instance_id, client_id, client_host, rebalance_timeout_ms, session_timeout_ms,
                          subscription, assignment)


def _value(value: bytes) -> tuple[int, Reader]:
    """The version of a value, and the rest of it. Version 3 is written, 4 is the same in the flexible encoding."""
    version = Reader(value).int16()
    if not 0 <= version <= 4:
        raise Malformed(f"a value of version {version}; 0 to 4 can be read")
    return version, FlexibleReader(value[2:]) if version == 4 else Reader(value[2:])
