"""Where Kafka's behaviour follows from Java: the string hash, the order of a HashMap, the order of strings."""

from collections.abc import Iterable
from functools import lru_cache


def string_hash(text: str) -> int:
    """Java's String.hashCode: base 31 over UTF-16 code units, wrapped to a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=65536)
def partition_for(group_id: str, partitions: int) -> int:
    """The partition of __consumer_offsets that a group lives in. |-2147483648| counts as 0 (Utils.abs)."""
    value = string_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partitions


def map_order(keys: Iterable[str]) -> list[str]:
    """The order of a java.util.HashMap that was filled in this order. So Kafka breaks ties between voted protocols."""
    inserted = list(dict.fromkeys(keys))
    size = 16
    while len(inserted) > size * 3 // 4:
        size *= 2

    def bucket(key: str) -> int:
        value = string_hash(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (size - 1)

    return sorted(inserted, key=bucket)


def string_order(text: str) -> bytes:
    """A sort key: Java compares strings by UTF-16 code units, Python by code points."""
    return text.encode("utf-16-be", "surrogatepass")


def in_string_order(texts: Iterable[str]) -> list[str]:
    """Sorted as Java sorts strings."""
    listed = list(texts)
    return sorted(listed) if all(map(str.isascii, listed)) else sorted(listed, key=string_order)
