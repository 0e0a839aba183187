"""Rules about logs: what is committed stays committed, and only one leader commits."""

from cluster.broker.image import OFFSETS_TOPIC
from cluster.checks.rule import Handler, Rule
from cluster.events import Event, HighWatermarkMoved, LeaderElected, RecordsAppended, TopicDeleted

Where = tuple[str, int]


class HighWatermarkWentBack(Rule):
    """A high watermark decreases within one leader epoch."""

    name = "hw-went-back"

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[Where, tuple[int, int]] = {}      # epoch, high watermark

    def hears(self) -> dict[type[Event], Handler]:
        return {HighWatermarkMoved: self._moved, TopicDeleted: self._deleted}

    def _moved(self, at: int, _: str, event: HighWatermarkMoved) -> None:
        self.seen += 1
        where = event.topic, event.partition
        epoch, before = self.known.get(where, (-1, -1))
        if event.epoch == epoch and event.high_watermark < before:
            self.broken(at, f"epoch {epoch}: {before} before", topic=event.topic, partition=event.partition,
                        offset=event.high_watermark)
        if event.epoch >= epoch:
            self.known[where] = event.epoch, event.high_watermark

    def _deleted(self, _: int, __: str, event: TopicDeleted) -> None:
        for where in [where for where in self.known if where[0] == event.topic]:
            del self.known[where]


class SplitCoordinator(Rule):
    """Two coordinators get writes for one group committed in overlapping leader epochs: an older leader of their
    partition commits past the point where a newer one has begun to write."""

    name = "split-coordinator"

    def __init__(self) -> None:
        super().__init__()
        self.begins: dict[int, dict[int, int]] = {}        # partition -> epoch -> the first offset written under it
        self.commits: dict[int, dict[int, int]] = {}       # partition -> epoch -> how far it committed

    def hears(self) -> dict[type[Event], Handler]:
        return {RecordsAppended: self._appended, HighWatermarkMoved: self._moved, LeaderElected: self._elected}

    def _elected(self, _: int, __: str, event: LeaderElected) -> None:
        if event.topic == OFFSETS_TOPIC and event.unclean:
            self.doubts[f"unclean election of {OFFSETS_TOPIC}-{event.partition}"] = None
            self.begins.pop(event.partition, None)
            self.commits.pop(event.partition, None)

    def _appended(self, at: int, _: str, event: RecordsAppended) -> None:
        if event.topic == OFFSETS_TOPIC:
            begins = self.begins.setdefault(event.partition, {})
            if event.epoch not in begins:
                begins[event.epoch] = event.base_offset
                self._compare(at, event.partition)

    def _moved(self, at: int, _: str, event: HighWatermarkMoved) -> None:
        if event.topic == OFFSETS_TOPIC:
            self.seen += 1
            commits = self.commits.setdefault(event.partition, {})
            commits[event.epoch] = max(event.high_watermark, commits.get(event.epoch, 0))
            if len(self.begins.get(event.partition, ())) > 1:
                self._compare(at, event.partition)

    def _compare(self, at: int, partition: int) -> None:
        begins = self.begins[partition]
        for older, committed in self.commits.get(partition, {}).items():
            for newer, begin in begins.items():
                if older < newer and committed > begin:
                    self.broken(at, f"epoch {older} committed up to {committed}, epoch {newer} wrote from {begin} on",
                                topic=OFFSETS_TOPIC, partition=partition, offset=begin)
