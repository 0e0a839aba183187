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

    def tags(self) -> None:
        """The tagged fields at the end of a struct: there are none in this encoding."""

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


class FlexibleReader(Reader):
    """The same values in Kafka's flexible encoding: lengths are unsigned varints, one more than they say; 0 is null."""

    __slots__ = ()

    def nullable_string(self) -> str | None:
        raw = self.nullable_blob()
        try:
            return None if raw is None else raw.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as problem:
            raise Malformed(str(problem)) from None

    def nullable_blob(self) -> bytes | None:
        length = self._varint()
        return None if length == 0 else self._take(length - 1)

    def count(self, smallest: int) -> int:
        count = self._varint() - 1
        if count < 0 or count > self.left():
            raise Malformed(f"an array claims {count} elements with {self.left()} bytes left")
        return count

    def tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._take(self._varint())

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("a number of more than five bytes")
