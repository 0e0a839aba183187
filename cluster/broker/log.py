"""The log of one partition: batches of records, one offset each, never changed once they are written.

`Storage` is where the batches are kept: memory in the simulator, files in an actor. It is synchronous and knows nothing
but batches.
"""

from bisect import bisect_right
from typing import Protocol

from cluster.wire.log import Record, RecordBatch


class Storage(Protocol):
    def append(self, batch: RecordBatch) -> None: ...
    def read(self, offset: int, max_bytes: int) -> tuple[RecordBatch, ...]: ...
    def end_offset(self) -> int: ...


class MemoryStorage:
    """Batches in a list. Lost when the process is lost."""

    def __init__(self) -> None:
        self._batches: list[RecordBatch] = []
        self._bases: list[int] = []

    def append(self, batch: RecordBatch) -> None:
        self._batches.append(batch)
        self._bases.append(batch.base_offset)

    def read(self, offset: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        """The batches from the one that holds `offset` on: the first one whatever its size, more while they fit."""
        found: list[RecordBatch] = []
        size = 0
        for batch in self._batches[max(bisect_right(self._bases, offset) - 1, 0) :]:
            size += sum(map(size_of, batch.records))
            if found and size > max_bytes:
                break
            if batch.base_offset + len(batch.records) > offset:
                found.append(batch)
        return tuple(found)

    def end_offset(self) -> int:
        if not self._batches:
            return 0
        last = self._batches[-1]
        return last.base_offset + len(last.records)


class Log:
    """One replica of one partition. With a single replica, what is written is committed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def end_offset(self) -> int:
        return self._storage.end_offset()

    @property
    def high_watermark(self) -> int:
        return self._storage.end_offset()

    def append(self, records: tuple[Record, ...], leader_epoch: int) -> int:
        """Write records as one batch; the offset of the first one."""
        base_offset = self._storage.end_offset()
        self._storage.append(RecordBatch(base_offset, leader_epoch, records))
        return base_offset

    def read(self, offset: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        return self._storage.read(offset, max_bytes)


def size_of(record: Record) -> int:
    """What a record counts against the limits: its key and value, and what Kafka writes around them at most."""
    return 24 + len(record.key or b"") + len(record.value or b"")
