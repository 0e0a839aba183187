"""Where logs are kept. A process may die; its disk stays. In the simulator it is memory, in an actor it is files.

A log on disk is batches and the history of its leaders. It is synchronous, and knows nothing of the protocol.
"""

from bisect import bisect_right
from typing import Protocol

from cluster.wire.log import Record, RecordBatch

DIRTY_RATIO = 0.5                              # min.cleanable.dirty.ratio


class Storage(Protocol):
    """One log."""

    epochs: list[tuple[int, int]]              # (leader epoch, the first offset written under it), ascending

    def append(self, batch: RecordBatch) -> None: ...
    def read(self, offset: int, max_bytes: int) -> tuple[RecordBatch, ...]: ...
    def truncate(self, to_offset: int) -> int: ...
    def start_offset(self) -> int: ...
    def end_offset(self) -> int: ...
    def compact(self, before: int, segment_bytes: int, no_tombstones_until: int) -> tuple[int, int] | None: ...


class Disk(Protocol):
    """All logs of one host. `writes` grows with every append, so that a host can tell that a step wrote."""

    writes: int

    def log(self, topic: str, topic_id: int, partition: int) -> Storage: ...
    def drop(self, topic: str, topic_id: int, partition: int) -> None: ...


class MemoryDisk:
    def __init__(self) -> None:
        self.writes = 0
        self.logs: dict[tuple[str, int, int], MemoryStorage] = {}

    def log(self, topic: str, topic_id: int, partition: int) -> "MemoryStorage":
        found = self.logs.get((topic, topic_id, partition))
        if found is None:
            found = self.logs[topic, topic_id, partition] = MemoryStorage(self)
        return found

    def drop(self, topic: str, topic_id: int, partition: int) -> None:
        self.logs.pop((topic, topic_id, partition), None)


class MemoryStorage:
    def __init__(self, disk: MemoryDisk) -> None:
        self.epochs: list[tuple[int, int]] = []
        self._disk = disk
        self._batches: list[RecordBatch] = []
        self._bases: list[int] = []
        self._sizes: list[int] = []
        self._size = 0
        self._end = 0
        self._cleaned = 0                      # up to where there is one record for each key

    def append(self, batch: RecordBatch) -> None:
        self._disk.writes += 1
        self._batches.append(batch)
        self._bases.append(batch.base_offset)
        size = sum(map(size_of, batch.records))
        self._sizes.append(size)
        self._size += size
        self._end = batch.next_offset()

    def read(self, offset: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        """The batches from the one that holds `offset` on: the first one whatever its size, more while they fit."""
        if offset >= self._end:
            return ()
        found: list[RecordBatch] = []
        size = 0
        for index in range(max(bisect_right(self._bases, offset) - 1, 0), len(self._batches)):
            batch = self._batches[index]
            if batch.next_offset() <= offset:
                continue
            size += self._sizes[index]
            if found and size > max_bytes:
                break
            found.append(batch)
        return tuple(found)

    def truncate(self, to_offset: int) -> int:
        """Throw away everything from `to_offset` on; how many records that were. A batch is kept whole or not at
        all."""
        lost = 0
        while self._batches and self._batches[-1].next_offset() > to_offset:
            lost += len(self._batches.pop().records)
            self._bases.pop()
            self._size -= self._sizes.pop()
        self._end = min(self._end, to_offset)
        self._cleaned = min(self._cleaned, to_offset)
        while self.epochs and self.epochs[-1][1] >= to_offset:
            self.epochs.pop()
        return lost

    def start_offset(self) -> int:
        return 0

    def end_offset(self) -> int:
        return self._end

    def compact(self, before: int, segment_bytes: int, no_tombstones_until: int) -> tuple[int, int] | None:
        """Keep the newest record of each key in closed segments below `before`, and no tombstone that is older than
        `no_tombstones_until`; how many records there were, and how many are left. None if it is not worth it: most of
        it is clean. The newest `segment_bytes` are the open segment, and stay as they are."""
        if self._size <= segment_bytes:
            return None
        closed, size, dirty = self._closed(before, segment_bytes)
        if dirty <= DIRTY_RATIO * size:
            return None
        newest = {record.key: offset for batch in self._batches[:closed] for offset, record in batch.numbered()}
        records_before = records_after = 0
        kept: list[RecordBatch] = []
        end = self._batches[closed - 1].next_offset()
        for batch in self._batches[:closed]:
            left = [(offset, record) for offset, record in batch.numbered() if newest[record.key] == offset and not (
                record.value is None and record.timestamp < no_tombstones_until)]
            records_before += len(batch.records)
            records_after += len(left)
            if left:
                kept.append(RecordBatch(batch.base_offset, batch.leader_epoch, tuple(record for _, record in left),
                                        batch.producer_id, batch.base_sequence, tuple(offset for offset, _ in left),
                                        batch.next_offset() - 1))
        self._batches[:closed] = kept
        self._bases = [batch.base_offset for batch in self._batches]
        self._sizes = [sum(map(size_of, batch.records)) for batch in self._batches]
        self._size = sum(self._sizes)
        self._cleaned = end
        return records_before, records_after

    def _closed(self, before: int, segment_bytes: int) -> tuple[int, int, int]:
        """How many batches, from the first on, are in closed segments; how large they are; how much of it is dirty."""
        closed = size = dirty = 0
        open_from = self._size - segment_bytes
        for batch, batch_size in zip(self._batches, self._sizes, strict=True):
            if size + batch_size > open_from or batch.next_offset() > before:
                break
            closed += 1
            size += batch_size
            dirty += batch_size if batch.base_offset >= self._cleaned else 0
        return closed, size, dirty


def size_of(record: Record) -> int:
    """What a record counts against the limits: its key and value, and what Kafka writes around them at most."""
    return 24 + len(record.key or b"") + len(record.value or b"")
