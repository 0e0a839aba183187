"""The event log's files: `events/<machine>.msgpack`, one for each machine, appended to, never changed.

A frame is its length, four bytes, big end first, then an event as MessagePack: [when, machine, sequence, event]. A
reader takes every whole frame; whoever was killed while writing leaves at most a torn one at the end.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from pathlib import Path
from typing import Any, Union

import msgspec

from cluster.events import Stamped, kinds
from cluster.sim.journal import Level

BUFFER_BYTES = 1 << 18
MAX_FRAME = 1 << 24                            # a length above that is not a length


class BadLog(ValueError):
    """A file that is not an event log."""


_Frame = msgspec.defstruct("_Frame", [
    ("at", int), ("machine", str), ("sequence", int), ("event", Union[tuple(kinds().values())]),  # noqa: UP007
], array_like=True)


class EventLog:
    """Writes events as they come. The simulator may buffer: it is not killed in the middle of a write."""

    def __init__(self, folder: Path, level: Level = Level.PROTOCOL) -> None:
        self.folder = folder
        self.level = level
        self.events = 0
        self.bytes = 0
        self._buffers: dict[str, bytearray] = {}
        self._encode = msgspec.msgpack.Encoder().encode
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, stamped: Stamped) -> None:
        frame = self._encode((stamped.at, stamped.machine, stamped.sequence, stamped.event))
        buffer = self._buffers.get(stamped.machine)
        if buffer is None:
            buffer = self._buffers[stamped.machine] = bytearray()
        buffer += len(frame).to_bytes(4, "big")
        buffer += frame
        self.events += 1
        if len(buffer) > BUFFER_BYTES:
            self._write(stamped.machine, buffer)

    def journal(self, stamped: Stamped) -> None:
        """A message that a host saw: kept if the level says so."""
        if self.level.keeps(stamped.event):
            self(stamped)

    def flush(self) -> None:
        for machine, buffer in self._buffers.items():
            self._write(machine, buffer)

    def _write(self, machine: str, buffer: bytearray) -> None:
        with (self.folder / f"{machine}.msgpack").open("ab") as file:
            file.write(buffer)
        self.bytes += len(buffer)
        buffer.clear()


def read_file(path: Path) -> Iterator[Stamped]:
    """The events of one machine, in their order. A torn tail is left out."""
    data = path.read_bytes()
    decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(_Frame).decode
    position = 0
    while position + 4 <= len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        if length > MAX_FRAME:
            raise BadLog(f"{path}: not an event log: a frame of {length} bytes at byte {position}")
        if position + 4 + length > len(data):
            return
        try:
            frame = decode(data[position + 4 : position + 4 + length])
        except msgspec.MsgspecError as problem:
            raise BadLog(f"{path}: the frame at byte {position}: {problem}") from None
        yield Stamped(frame.at, frame.machine, frame.sequence, frame.event)
        position += 4 + length


def read_log(run: Path) -> Iterable[Stamped]:
    """All events of a run, in the order of time; those of one machine as it observed them."""
    files = sorted((run / "events").glob("*.msgpack"))
    return merge(*map(read_file, files), key=lambda stamped: (stamped.at, stamped.machine, stamped.sequence))


