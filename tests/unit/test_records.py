"""The records of __consumer_offsets and the consumers' blobs, against bytes that Kafka 4.3's own classes wrote."""

import pytest

from cluster.coordinator.records import GroupMetadata, GroupRecord, MemberMetadata, Offset, OffsetRecord, decode, encode
from cluster.primitives import Malformed
from cluster.subscription import Assignment, Subscription, subscribed_topics
from cluster.wire.log import Record

AT = 1704067200000
OFFSET_KEY = bytes.fromhex("0001000762696c6c696e6700066f726465727300000007")
GROUP_KEY = bytes.fromhex("00020009e6b688e8b2bbe88085")
OFFSET_V3 = bytes.fromhex("0003000000000000002a0000000300036dc3a90000018cc251f400")
GROUP_V3 = bytes.fromhex(
    "00030008636f6e73756d657200000005000572616e67650003612d310000018cc251f47b000000020003612d31ffff000161000a2f3132372e30"
    "2e302e31000493e00000afc800000003010203000000000003622d31000162000000022f680000000100000002000000000000000109"
)
GROUP_V4 = bytes.fromhex(
    "000409636f6e73756d6572000000050672616e676504612d310000018cc251f47b0304612d310002610b2f3132372e302e302e31000493e00000"
    "afc804010203010004622d31026201032f6800000001000000020102090000"
)
OFFSET = Offset(42, 3, "mé", AT)
GROUP = GroupMetadata(
    "consumer",
    5,
    "range",
    "a-1",
    AT + 123,
    (
        MemberMetadata("a-1", None, "a", "/127.0.0.1", 300000, 45000, b"\x01\x02\x03", b""),
        MemberMetadata("b-1", "b", "", "/h", 1, 2, b"", b"\x09"),
    ),
)


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    assert encode(OffsetRecord("billing", "orders", 7, OFFSET), AT) == Record(OFFSET_KEY, OFFSET_V3, AT)


def test_an_offset_with_an_expiry_of_its_own_is_written_in_version_1() -> None:
    record = encode(OffsetRecord("billing", "orders", 7, Offset(42, -1, "", AT, AT + 60000)), AT)
    assert record.value == bytes.fromhex("0001000000000000002a00000000018cc251f4000000018cc252de60")


def test_a_group_is_written_as_kafka_writes_it() -> None:
    assert encode(GroupRecord("消費者", GROUP), AT) == Record(GROUP_KEY, GROUP_V3, AT)


def test_an_empty_group_is_written_as_kafka_writes_it() -> None:
    record = encode(GroupRecord("g", GroupMetadata("", 0, None, None, AT, ())), AT)
    assert record.value == bytes.fromhex("0003000000000000ffffffff0000018cc251f40000000000")


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("0000000000000000002a00036dc3a90000018cc251f400", Offset(42, -1, "mé", AT)),
        ("0001000000000000002a00000000018cc251f4000000018cc252de60", Offset(42, -1, "", AT, AT + 60000)),
        ("0002000000000000002a00036dc3a90000018cc251f400", Offset(42, -1, "mé", AT)),
        ("0003000000000000002a0000000300036dc3a90000018cc251f400", OFFSET),
        ("0004000000000000002a00000003046dc3a90000018cc251f40000", OFFSET),
    ],
)
def test_every_version_of_an_offset_is_read(value: str, read: Offset) -> None:
    assert decode(Record(OFFSET_KEY, bytes.fromhex(value))) == OffsetRecord("billing", "orders", 7, read)


OLD = "0008636f6e73756d657200000005000572616e67650003612d31000000010003612d31000161000a2f3132372e302e302e31"


@pytest.mark.parametrize(
    ("value", "rebalance_timeout_ms"),
    [
        (f"0000{OLD}0000afc80000000301020300000000", -1),
        (f"0001{OLD}000493e00000afc80000000301020300000000", 300000),
    ],
)
def test_old_versions_of_a_group_are_read(value: str, rebalance_timeout_ms: int) -> None:
    member = MemberMetadata("a-1", None, "a", "/127.0.0.1", rebalance_timeout_ms, 45000, b"\x01\x02\x03", b"")
    read = GroupMetadata("consumer", 5, "range", "a-1", -1, (member,))
    assert decode(Record(GROUP_KEY, bytes.fromhex(value))) == GroupRecord("消費者", read)


@pytest.mark.parametrize("value", [GROUP_V3, GROUP_V4])
def test_new_versions_of_a_group_are_read(value: bytes) -> None:
    assert decode(Record(GROUP_KEY, value)) == GroupRecord("消費者", GROUP)


def test_a_record_without_value_is_a_tombstone() -> None:
    assert decode(Record(OFFSET_KEY)) == OffsetRecord("billing", "orders", 7, None)
    assert decode(Record(GROUP_KEY)) == GroupRecord("消費者", None)
    assert encode(GroupRecord("消費者", None), AT) == Record(GROUP_KEY, None, AT)


def test_a_key_of_an_unknown_version_is_skipped() -> None:
    assert decode(Record(b"\x00\x63rest", b"anything")) is None


@pytest.mark.parametrize(
    "record",
    [
        Record(None, GROUP_V3),
        Record(b"", GROUP_V3),
        Record(GROUP_KEY[:-1], GROUP_V3),
        Record(GROUP_KEY, GROUP_V3[:-1]),
        Record(GROUP_KEY, b"\x00\x09"),
        Record(OFFSET_KEY, b"\xff\xff"),
        Record(GROUP_KEY, GROUP_V4[:-1]),
        Record(GROUP_KEY, b"\x00\x04\xff\xff\xff\xff\xff\xff"),
        Record(OFFSET_KEY, b"\x00\x04" + b"\x00" * 12 + b"\x00"),
        Record(GROUP_KEY, b"\x00\x03\x00\x02\xff\xfe"),
    ],
)
def test_anything_else_that_cannot_be_read_is_malformed(record: Record) -> None:
    with pytest.raises(Malformed):
        decode(record)


SUBSCRIPTION = Subscription(
    topics=("orders", "refunds"), user_data=b"\x07", owned={"orders": (0, 2)}, generation=4, rack="r1"
)
SUBSCRIPTION_V3 = bytes.fromhex(
    "00030000000200066f72646572730007726566756e647300000001070000000100066f72646572730000000200000000000000020000000400027231"
)


def test_a_subscription_is_written_and_read_as_kafka_does() -> None:
    assert SUBSCRIPTION.encode() == SUBSCRIPTION_V3
    assert Subscription.decode(SUBSCRIPTION_V3) == SUBSCRIPTION


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_subscription_of_every_version_comes_back(version: int) -> None:
    said = Subscription(
        topics=("orders",),
        user_data=None,
        version=version,
        owned={"orders": (1,)} if version >= 1 else {},
        generation=7 if version >= 2 else -1,
        rack="r" if version >= 3 else None,
    )
    assert Subscription.decode(said.encode()) == said


def test_version_0_of_a_subscription_is_what_kafka_wrote_once() -> None:
    assert Subscription(topics=("orders",), version=0).encode() == bytes.fromhex("00000000000100066f7264657273ffffffff")


def test_a_newer_subscription_is_read_as_far_as_it_is_known() -> None:
    newer = b"\x00\x09" + SUBSCRIPTION_V3[2:] + b"something new"
    assert Subscription.decode(newer).topics == ("orders", "refunds")


def test_an_assignment_is_written_and_read_as_kafka_does() -> None:
    assignment = Assignment(partitions={"orders": (1, 3)})
    assert assignment.encode() == bytes.fromhex("00030000000100066f7264657273000000020000000100000003ffffffff")
    assert Assignment.decode(assignment.encode()) == assignment


def test_a_topic_that_is_listed_twice_in_an_assignment_counts_with_both() -> None:
    twice = bytes.fromhex(
        "000300000002" + "00066f72646572730000000100000001" + "00066f72646572730000000100000003" + "ffffffff"
    )
    assert Assignment.decode(twice).partitions == {"orders": (1, 3)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"x",
        SUBSCRIPTION_V3[:-1],
        SUBSCRIPTION_V3 + b"x",
        b"\xff\xff\x00\x00\x00\x00",
        b"\x00\x00\x7f\xff\xff\xff",
        b"\x00\x01\x00\x00\x00\x01\xff\xff",
    ],
)
def test_what_is_no_subscription_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        Subscription.decode(data)


@pytest.mark.parametrize("data", [b"", b"all", bytes.fromhex("000300000000ffffffff00")])
def test_what_is_no_assignment_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        Assignment.decode(data)


def test_the_coordinator_reads_topics_of_any_version_and_never_hangs_on_a_huge_claim() -> None:
    assert subscribed_topics(SUBSCRIPTION_V3) == frozenset({"orders", "refunds"})
    assert subscribed_topics(b"garbage") is None
    assert subscribed_topics(b"\x00\x01\x7f\xff\xff\xff") is None
    assert subscribed_topics(b"x") is None
