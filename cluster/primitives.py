"""Kafka's primitive types as bytes: what the blobs inside a message and the records of __consumer_offsets are made of.

Big-endian integers; strings with an int16 length, bytes and arrays with an int32 length, -1 for null.
A reader never trusts a length: what does not fit into the bytes at hand is `Malformed`.
"""

from struct import Struct as Layout
from struct import pack, unpack_from

_INT16, _INT32, _INT64 = Layout(">h"), Layout(">i"), Layout(">q")
int16, int32, int64 = _INT16.pack, _INT32.pack, _INT64.pack

MAX_STRING = 32767


class Malformed(ValueError):
    """These bytes are not what they should be."""


def string(text: str) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_STRING:
        raise Malformed(f"a string of {len(raw)} bytes; at most {MAX_STRING} fit")
    return int16(len(raw)) + raw


def nullable_string(text: str | None) -> bytes:
    return int16(-1) if text is None else string(text)


def blob(data: bytes) -> bytes:
    return int32(len(data)) + data


def nullable_blob(data: bytes | None) -> bytes:
    return int32(-1) if data is None else blob(data)


def int32s(values: tuple[int, ...] | list[int]) -> bytes:
    return pack(f">i{len(values)}i", len(values), *values)


class Reader:
    """Takes primitive values off the front of some bytes."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def left(self) -> int:
        return len(self._data) - self._at

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise Malformed("a string is null")
        return text

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as problem:
            raise Malformed(str(problem)) from None

    def blob(self) -> bytes:
        data = self.nullable_blob()
        if data is None:
            raise Malformed("bytes are null")
        return data

    def nullable_blob(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def count(self, smallest: int) -> int:
        """The length of an array whose elements take at least `smallest` bytes each."""
        count = self.int32()
        if count < 0 or count * smallest > self.left():
            raise Malformed(f"an array claims {count} elements with {self.left()} bytes left")
        return count

    def int32s(self) -> tuple[int, ...]:
        count = self.count(4)
        values = unpack_from(f">{count}i", self._data, self._at)
        self._at += 4 * count
        return values

    def _number(self, layout: Layout) -> int:
        if self.left() < layout.size:
            raise Malformed(f"{layout.size} bytes wanted, {self.left()} left")
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return int(value)

    def _take(self, length: int) -> bytes:
        if length > self.left():
            raise Malformed(f"{length} bytes wanted, {self.left()} left")
        start = self._at
        self._at = start + length
        return self._data[start : self._at]
