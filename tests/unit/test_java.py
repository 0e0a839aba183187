"""Java's hash and orders, where Kafka's behaviour follows from them."""

import pytest

from cluster.java import in_string_order, map_order, partition_for, string_hash


@pytest.mark.parametrize(
    ("group_id", "value", "partition"),
    [
        ("", 0, 0),
        ("foo", 101574, 24),
        ("grp", 102629, 29),
        ("group-id", 506313513, 13),
        ("test-group", 627841412, 12),
        ("my-group", -1906497762, 12),
        ("consumer-group", -1738392088, 38),
        ("polygenelubricants", -2147483648, 0),
        ("\U0001f600", 1772899, 49),
        ("消費者", 28096050, 0),
    ],
)
def test_p2_a_group_lives_in_the_partition_that_kafka_puts_it_in(group_id: str, value: int, partition: int) -> None:
    assert string_hash(group_id) == value
    assert partition_for(group_id, 50) == partition


def test_a_tie_between_protocols_goes_as_in_javas_map() -> None:
    assert map_order(["cooperative-sticky", "roundrobin", "range", "sticky"]) == [
        "sticky",
        "range",
        "roundrobin",
        "cooperative-sticky",
    ]


def test_a_map_grows_with_its_keys() -> None:
    keys = [f"key-{number}" for number in range(13)]
    assert sorted(map_order(keys)) == sorted(keys)
    assert map_order(keys) != map_order(keys[:12]) + keys[12:]


def test_strings_are_ordered_by_their_code_units() -> None:
    assert in_string_order(["b", "B", "a"]) == ["B", "a", "b"]
    assert in_string_order(["\uffee", "\U0001f600"]) == ["\U0001f600", "\uffee"]
