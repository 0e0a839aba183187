"""The two blobs that consumers exchange through the coordinator, byte for byte as Kafka's consumers write them.

A Subscription rides in JoinGroup (what a member wants and holds), an Assignment in SyncGroup (what it shall hold).
The coordinator passes both on unread; only to guard and expire offsets does it look at a subscription's topics.
"""

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cluster.primitives import (
    Malformed,
    Reader,
    int16,
    int32,
    int32s,
    nullable_blob,
    nullable_string,
    string,
)

LATEST = 3
Partitions = Mapping[str, tuple[int, ...]]     # topic -> partition numbers


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """What one member tells the leader. Version 0: topics and user data; 1 adds owned, 2 generation, 3 rack."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: Partitions = {}
    generation: int = -1
    rack: str | None = None
    instance_id: str | None = None             # not in the blob: the leader takes it from the member's entry
    version: int = LATEST

    def encode(self) -> bytes:
        parts = [int16(self.version), int32(len(self.topics)), *map(string, self.topics), nullable_blob(self.user_data)]
        if self.version >= 1:
            parts.append(_encode_partitions(self.owned))
        if self.version >= 2:
            parts.append(int32(self.generation))
        if self.version >= 3:
            parts.append(nullable_string(self.rack))
        return b"".join(parts)

    @staticmethod
    def decode(data: bytes, instance_id: str | None = None) -> "Subscription":
        """Read a subscription; one of a newer version is read as far as we know the layout."""
        reader = Reader(data)
        version = _version(reader)
        topics = tuple(reader.string() for _ in range(reader.count(2)))
        user_data = reader.nullable_blob()
        owned = _decode_partitions(reader) if version >= 1 else {}
        generation = reader.int32() if version >= 2 else -1
        rack = reader.nullable_string() if version >= 3 else None
        if version <= LATEST and reader.left():
            raise Malformed(f"{reader.left()} bytes after the end of a subscription")
        return Subscription(topics=topics, user_data=user_data, owned=owned, generation=generation, rack=rack,
                            instance_id=instance_id, version=version)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What the leader tells one member."""

    partitions: Partitions
    user_data: bytes | None = None
    version: int = LATEST

    def encode(self) -> bytes:
        return int16(self.version) + _encode_partitions(self.partitions) + nullable_blob(self.user_data)

    @staticmethod
    def decode(data: bytes) -> "Assignment":
        reader = Reader(data)
        version = _version(reader)
        partitions = _decode_partitions(reader)
        assignment = Assignment(partitions=partitions, user_data=reader.nullable_blob(), version=version)
        if version <= LATEST and reader.left():
            raise Malformed(f"{reader.left()} bytes after the end of an assignment")
        return assignment


@lru_cache(maxsize=4096)
def subscribed_topics(data: bytes) -> frozenset[str] | None:
    """The topics of a subscription of any version, read as version 0, which prefixes them all; None if unreadable."""
    reader = Reader(data)
    try:
        reader.int16()
        topics = frozenset([reader.string() for _ in range(reader.count(2))])
        reader.nullable_blob()
    except Malformed:
        return None
    return topics


def _version(reader: Reader) -> int:
    version = reader.int16()
    if version < 0:
        raise Malformed(f"version {version}")
    return version


def _encode_partitions(partitions: Partitions) -> bytes:
    return int32(len(partitions)) + b"".join(string(topic) + int32s(numbers) for topic, numbers in partitions.items())


def _decode_partitions(reader: Reader) -> dict[str, tuple[int, ...]]:
    partitions: dict[str, tuple[int, ...]] = {}
    for _ in range(reader.count(6)):
        topic = reader.string()
        partitions[topic] = partitions.get(topic, ()) + reader.int32s()
    return partitions
