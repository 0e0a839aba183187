"""One replica of one partition: its records, the epochs of its leaders, and up to where it is known to be committed.

Offsets tell where a record is, epochs under whom it was written. Two replicas agree on everything up to the point where
their epochs part, and that is where a follower cuts its log off (KIP-101, KIP-279).
"""

from cluster.broker.storage import Storage
from cluster.wire.errors import Error
from cluster.wire.log import EpochEndOffset, Record, RecordBatch

REMEMBERED = 5                                 # batches of each producer, by which a repeated one is known again


class Log:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.high_watermark = storage.start_offset()
        self.end_offset = storage.end_offset()
        self._producers: dict[int, list[tuple[int, int, int]]] = {}    # id -> (first number, count, offset), in order
        for batch in storage.read(0, 1 << 62):
            self._remember(batch)

    @property
    def start_offset(self) -> int:
        return self._storage.start_offset()

    def last_epoch(self) -> int:
        """Under whom the last record was written; -1 if there is none."""
        return self._storage.epochs[-1][0] if self._storage.epochs else -1

    def last_epoch_start(self) -> int:
        return self._storage.epochs[-1][1] if self._storage.epochs else 0

    def begin_epoch(self, epoch: int) -> None:
        """A leader notes where its epoch begins, before it writes anything."""
        if epoch > self.last_epoch():
            self._storage.epochs.append((epoch, self.end_offset))

    def append(self, records: tuple[Record, ...], epoch: int, producer_id: int = -1, base_sequence: int = -1) -> int:
        """As a leader: write records as one batch; the offset of the first one."""
        base_offset = self.end_offset
        self._write(RecordBatch(base_offset, epoch, records, producer_id, base_sequence))
        return base_offset

    def follow(self, batches: tuple[RecordBatch, ...]) -> None:
        """As a follower: take what the leader has."""
        for batch in batches:
            if batch.next_offset() > self.end_offset:
                self.begin_epoch(batch.leader_epoch)
                self._write(batch)

    def _write(self, batch: RecordBatch) -> None:
        self._storage.append(batch)
        self.end_offset = batch.next_offset()
        if batch.producer_id >= 0:
            self._remember(batch)

    def read(self, offset: int, max_bytes: int, before: int) -> tuple[RecordBatch, ...]:
        """From `offset` on, but nothing at or after `before`."""
        if offset >= before:
            return ()
        batches = self._storage.read(offset, max_bytes)
        if batches and batches[-1].next_offset() > before:
            return tuple(batch for batch in batches if batch.next_offset() <= before)
        return batches

    def truncate(self, to_offset: int) -> int:
        """Throw the end away; how many records that were."""
        lost = self._storage.truncate(to_offset)
        self.end_offset = self._storage.end_offset()
        self.high_watermark = min(self.high_watermark, self.end_offset)
        self._producers = {producer: left for producer, numbered in self._producers.items()
                           if (left := [each for each in numbered if each[2] < to_offset])}
        return lost

    def compact(self, segment_bytes: int, no_tombstones_until: int) -> tuple[int, int] | None:
        """Only what is committed: what is not may be truncated yet, and then the older record counts again."""
        return self._storage.compact(self.high_watermark, segment_bytes, no_tombstones_until)

    # Where two histories part

    def end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """The newest epoch up to this one that the log knows, and where it ended; -1 if it knows none."""
        found, end = -1, -1
        for index, (known, _) in enumerate(self._storage.epochs):
            if known <= epoch:
                later = self._storage.epochs[index + 1 :]
                found, end = known, later[0][1] if later else self.end_offset
        return EpochEndOffset(found, end)

    def parts_from(self, last_epoch: int, offset: int) -> EpochEndOffset | None:
        """Where this history ends that a follower has, if that is not where the follower is; None if it is."""
        if last_epoch < 0 or (last_epoch == self.last_epoch() and offset <= self.end_offset):
            return None
        end = self.end_of_epoch(last_epoch)
        return end if end.epoch < last_epoch or end.end_offset < offset else None

    # Producers that number their records

    def known_already(self, producer_id: int, base_sequence: int, count: int) -> tuple[Error, int]:
        """A batch that was written before has its offset; one that skips numbers has an error."""
        if producer_id < 0:
            return Error.NONE, -1
        numbered = self._producers.get(producer_id, [])
        for first, length, offset in numbered:
            if (first, length) == (base_sequence, count):
                return Error.DUPLICATE_SEQUENCE_NUMBER, offset
        expected = numbered[-1][0] + numbered[-1][1] if numbered else 0
        if base_sequence != expected and numbered:
            return Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return Error.NONE, -1

    def _remember(self, batch: RecordBatch) -> None:
        if batch.producer_id >= 0:
            numbered = self._producers.setdefault(batch.producer_id, [])
            numbered.append((batch.base_sequence, len(batch.records), batch.base_offset))
            del numbered[:-REMEMBERED]
