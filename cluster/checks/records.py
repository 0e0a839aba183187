"""Rules about records: what a producer was promised, and what a group does with it.

Both are decided at the end, against what the logs hold then. Counted beside them, since the contract allows it: records
that are processed again, processed by somebody who is not the owner any more, or skipped.
"""

import msgspec

from cluster.checks.rule import Handler, Rule
from cluster.events import (
    Event,
    LeaderElected,
    OffsetCommitted,
    PartitionsAssigned,
    PositionSet,
    RecordsAcked,
    RecordsLeft,
    RecordsProcessed,
    TopicDeleted,
)
from cluster.ranges import Ranges

Where = tuple[str, int]
Batch = tuple[int, int]                        # producer, first number


class Ledger(msgspec.Struct):
    """What is known of one partition: what producers were told, and what is there at the end."""

    acked: dict[Batch, RecordsAcked] = {}
    left: dict[Batch, tuple[int, int]] = {}    # offset and count of each batch that is in the log,
    unnumbered: dict[int, int] = {}            # and of those that nobody numbered
    was_read: bool = False
    unclean: bool = False

    def find(self, event: RecordsAcked) -> tuple[int, int] | None:
        """Where acknowledged records are: known by their numbers, or else by where they were said to be."""
        found = self.left.get((event.producer_id, event.base_sequence))
        if found is None and event.base_offset in self.unnumbered:
            return event.base_offset, self.unnumbered[event.base_offset]
        return found


class Ledgers:
    """Of all partitions; shared by the rules about records."""

    def __init__(self) -> None:
        self.of: dict[Where, Ledger] = {}

    def hears(self) -> dict[type[Event], Handler]:
        return {RecordsAcked: self._acked, RecordsLeft: self._left, LeaderElected: self._elected,
                TopicDeleted: self._deleted}

    def _ledger(self, event: RecordsAcked | RecordsLeft | LeaderElected) -> Ledger:
        return self.of.setdefault((event.topic, event.partition), Ledger())

    def _acked(self, _: int, __: str, event: RecordsAcked) -> None:
        self._ledger(event).acked[event.producer_id, event.base_sequence] = event

    def _left(self, _: int, __: str, event: RecordsLeft) -> None:
        ledger = self._ledger(event)
        if event.count and event.producer_id < 0:
            ledger.unnumbered[event.base_offset] = event.count
        elif event.count:
            ledger.left[event.producer_id, event.base_sequence] = event.base_offset, event.count
        else:
            ledger.was_read = True

    def _elected(self, _: int, __: str, event: LeaderElected) -> None:
        if event.unclean:
            self._ledger(event).unclean = True

    def _deleted(self, _: int, __: str, event: TopicDeleted) -> None:
        for where in [where for where in self.of if where[0] == event.topic]:
            del self.of[where]


class AckedThenLost(Rule):
    """A record acknowledged with acks=all is no longer in the log, and there was no unclean election."""

    name = "acked-then-lost"

    def __init__(self) -> None:
        super().__init__()
        self.ledgers = Ledgers()

    def hears(self) -> dict[type[Event], Handler]:
        return self.ledgers.hears()

    def conclude(self, now: int) -> None:
        self.seen = 0
        self.doubts.clear()
        for (topic, partition), ledger in self.ledgers.of.items():
            promised = [event for event in ledger.acked.values() if event.acks == "all"]
            self.seen += len(promised)
            if promised and ledger.unclean:
                self.doubts[f"unclean election of {topic}-{partition}"] = None
            elif promised and not ledger.was_read:
                self.doubts[f"{topic}-{partition} was not read at the end"] = None
            else:
                for event in promised:
                    self._look(now, event, ledger.find(event))

    def _look(self, now: int, event: RecordsAcked, found: tuple[int, int] | None) -> None:
        if found != (event.base_offset, event.count):
            there = "nothing" if found is None else f"{found[1]} at {found[0]}"
            self.broken(now, f"producer {event.producer_id}, numbers from {event.base_sequence}: {event.count} records "
                        f"acknowledged, and there is {there}", topic=event.topic, partition=event.partition,
                        offset=event.base_offset)


class Reader(msgspec.Struct):
    """What one group did with one partition."""

    first: int | None = None                   # where it began to read
    position: int = 0                          # where it would go on: the newest committed offset, or where it began
    committed: int = -1
    processed: Ranges = msgspec.field(default_factory=Ranges)
    skipped: Ranges = msgspec.field(default_factory=Ranges)
    owner: str = ""
    reread: int = 0
    overlap: int = 0


class LostRecord(Rule):
    """A record that was acknowledged, and is in the log behind the group's first position, is passed over by a
    committed offset and was never processed."""

    name = "lost-record"

    def __init__(self) -> None:
        super().__init__()
        self.ledgers = Ledgers()
        self.readers: dict[tuple[str, str, int], Reader] = {}

    def hears(self) -> dict[type[Event], Handler]:
        return {**self.ledgers.hears(), PositionSet: self._set, RecordsProcessed: self._processed,
                OffsetCommitted: self._committed, PartitionsAssigned: self._assigned}

    def _reader(self, event: PositionSet | RecordsProcessed | OffsetCommitted) -> Reader:
        return self.readers.setdefault((event.group_id, event.topic, event.partition), Reader())

    def _set(self, _: int, __: str, event: PositionSet) -> None:
        """Whoever jumps to the end, because nothing was committed or what was is gone, skips what lies between."""
        reader = self._reader(event)
        if reader.first is None:
            reader.first = reader.position = event.offset
        elif event.how == "latest":
            reader.skipped.add(reader.position, event.offset)
        if event.how != "committed":
            reader.position = event.offset

    def _processed(self, _: int, __: str, event: RecordsProcessed) -> None:
        reader = self._reader(event)
        reader.reread += reader.processed.add(event.first_offset, event.last_offset + 1)
        if reader.owner not in ("", event.member_id):
            reader.overlap += event.count

    def _committed(self, _: int, __: str, event: OffsetCommitted) -> None:
        self.seen += 1
        reader = self._reader(event)
        reader.position = event.offset
        reader.committed = max(reader.committed, event.offset)
        if not event.member_id:                # set from outside: what lies before is not this group's any more
            reader.skipped.add(reader.first or 0, event.offset)

    def _assigned(self, _: int, __: str, event: PartitionsAssigned) -> None:
        for topic, partitions in event.owned.items():
            for partition in partitions:
                self.readers.setdefault((event.group_id, topic, partition), Reader()).owner = event.member_id

    def conclude(self, now: int) -> None:
        self.doubts.clear()
        for (group_id, topic, partition), reader in self.readers.items():
            ledger = self.ledgers.of.get((topic, partition))
            if reader.first is None or reader.committed < 0 or ledger is None or not ledger.acked:
                continue
            if ledger.unclean:
                self.doubts[f"unclean election of {topic}-{partition}"] = None
            elif not ledger.was_read:
                self.doubts[f"{topic}-{partition} was not read at the end"] = None
            else:
                self._look(now, group_id, (topic, partition), reader, ledger)

    def _look(self, now: int, group_id: str, where: Where, reader: Reader, ledger: Ledger) -> None:
        passed_over = [
            gap for offset, count in filter(None, map(ledger.find, ledger.acked.values()))
            for start, end in reader.processed.missing(max(offset, reader.first or 0),
                                                       min(offset + count, reader.committed))
            for gap in reader.skipped.missing(start, end)]
        for start, end in passed_over:
            self.broken(now, f"{end - start} records from {start} on, committed up to {reader.committed}",
                        group_id=group_id, topic=where[0], partition=where[1], offset=start)

    def counted(self) -> dict[str, int]:
        """What the contract allows, summed over all groups."""
        readers = self.readers.values()
        return {"reread": sum(reader.reread for reader in readers),
                "overlap": sum(reader.overlap for reader in readers),
                "skipped": sum(len(reader.skipped) for reader in readers)}

    def reread(self, group_id: str) -> int:
        return sum(reader.reread for where, reader in self.readers.items() if where[0] == group_id)
