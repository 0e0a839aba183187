"""Fetches of followers: how far each one is, what is new for it, and whether it may count as in sync.

A follower's fetches are one session (KIP-227): it names only the partitions where it has moved, and is told only those
that have something new: records, a higher watermark, or trouble. So an idle cluster costs nothing, whatever its
partitions. A higher watermark alone is no reason to answer: a follower hears of it with what comes next, or when its
time is up.
"""

from collections.abc import Callable

import msgspec

from cluster.broker.changes import Changes
from cluster.broker.image import Image
from cluster.broker.partition import Partition, Partitions
from cluster.broker.storage import size_of
from cluster.machine import Envelope
from cluster.outbox import Outbox
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse, PartitionData

TIMER = "fetch/"

Key = tuple[str, int]


class Session(msgspec.Struct, eq=False):
    """What one follower follows here, as it last said."""

    follower: int
    broker_epoch: int
    epoch: int = 0                             # how often it has fetched
    fetched_at: int = 0
    wanted: dict[Key, FetchPartition] = {}
    told: dict[Key, int] = {}                  # the high watermarks it knows
    dirty: dict[Key, None] = {}                # where there may be records for it, or trouble,
    raised: dict[Key, None] = {}               # and where it may not know the high watermark
    parked: Envelope | None = None


class Feeding:
    def __init__(self, out: Outbox, image: Image, partitions: Partitions, changes: Changes,
                 join: Callable[[Partition, int], None]) -> None:
        self.out = out
        self.image = image
        self.partitions = partitions
        self.changes = changes
        self.join = join                       # propose that a follower counts as in sync
        self.sessions: dict[str, Session] = {}

    def fetch(self, asked: Envelope) -> Message | None:
        body: FetchRequest = asked.body
        session = self.sessions.get(asked.source)
        if body.session_epoch <= 0:
            session = self.sessions[asked.source] = Session(body.replica_id, body.replica_epoch)
        elif session is None:
            return FetchResponse((), Error.FETCH_SESSION_ID_NOT_FOUND)
        elif body.session_epoch != session.epoch + 1:
            return FetchResponse((), Error.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = body.session_epoch
        self._hear(session, body)
        news = self._news(session, body.max_bytes)
        if news or body.max_wait_ms == 0:
            return self._answer(session, news)
        session.parked = asked
        self.out.set_timer(TIMER + asked.source, self.out.now + body.max_wait_ms)
        return None

    def _hear(self, session: Session, body: FetchRequest) -> None:
        """A follower says how far it is. What it does not mention is as it was."""
        for gone in body.forgotten_topics:
            for number in gone.partitions:
                session.wanted.pop((gone.topic, number), None)
        for topic in body.topics:
            for wanted in topic.partitions:
                key = topic.topic, wanted.partition
                session.wanted[key] = wanted
                session.dirty[key] = None
                partition = self.partitions.get(key)
                if partition is not None and session.follower in partition.followers:
                    self._hear_one(session, partition, wanted)
        session.fetched_at = self.out.now

    def _hear_one(self, session: Session, partition: Partition, wanted: FetchPartition) -> None:
        """If it is on another branch of history, that is no progress."""
        if wanted.current_leader_epoch != partition.agreed.leader_epoch or (
                partition.log.parts_from(wanted.last_fetched_epoch, wanted.fetch_offset) is not None):
            return
        follower = partition.followers[session.follower]
        follower.fetched_at = max(follower.fetched_at, session.fetched_at)
        follower.fetched(wanted.fetch_offset, self.out.now, partition.log.end_offset)
        self.changes.advance(partition)
        self.consider(session, partition)

    def consider(self, session: Session, partition: Partition) -> None:
        """May this follower count as in sync? Not if it is fenced, or stopping, or another process than the controller
        knows."""
        state = self.image.brokers.get(session.follower)
        if state is not None and state.is_active and state.broker_epoch == session.broker_epoch and (
                partition.may_join(session.follower)):
            self.join(partition, session.follower)

    def consider_all(self) -> None:
        """The controller says something new of brokers: whoever could not join before may be able to now."""
        for session in self.sessions.values():
            for key in session.wanted:
                partition = self.partitions.get(key)
                if partition is not None and session.follower in partition.followers:
                    self.consider(session, partition)

    # What is new

    def _news(self, session: Session, left: int) -> dict[Key, PartitionData]:
        news: dict[Key, PartitionData] = {}
        for key in list(session.dirty):
            if left <= 0:
                break
            del session.dirty[key]
            wanted = session.wanted.get(key)
            data = None if wanted is None else self._look(session, key, wanted)
            if data is not None:
                left -= sum([size_of(record) for batch in data.records for record in batch.records])
                news[key] = data
        return news

    def _answer(self, session: Session, news: dict[Key, PartitionData]) -> FetchResponse:
        """What is new, and high watermarks that a follower does not know."""
        raised, session.raised = session.raised, {}
        for key in raised:
            partition, wanted = self.partitions.get(key), session.wanted.get(key)
            if key not in news and partition is not None and partition.leads and wanted is not None:
                log = partition.log
                if wanted.current_leader_epoch == partition.agreed.leader_epoch and (
                        session.told.get(key) != log.high_watermark):
                    session.told[key] = log.high_watermark
                    news[key] = PartitionData(wanted.partition, Error.NONE, log.high_watermark, log.start_offset)
        topics: dict[str, list[PartitionData]] = {}
        for (topic, _), data in news.items():
            topics.setdefault(topic, []).append(data)
        return FetchResponse(tuple([FetchableTopicResponse(topic, tuple(found)) for topic, found in topics.items()]))

    def _look(self, session: Session, key: Key, wanted: FetchPartition) -> PartitionData | None:
        partition = self.partitions.get(key)
        if partition is None:
            return PartitionData(wanted.partition, Error.UNKNOWN_TOPIC_OR_PARTITION)
        log = partition.log
        if (partition.leads and wanted.current_leader_epoch == partition.agreed.leader_epoch
                and wanted.fetch_offset == log.end_offset and wanted.last_fetched_epoch == log.last_epoch()
                and session.follower in partition.followers):
            session.raised[key] = None         # it has all there is
            return None
        error = partition.objection(wanted.current_leader_epoch)
        if error is Error.NONE and session.follower not in partition.followers:
            error = Error.UNKNOWN_LEADER_EPOCH
        if error is not Error.NONE:
            return PartitionData(wanted.partition, error)
        parting = log.parts_from(wanted.last_fetched_epoch, wanted.fetch_offset)
        if parting is not None:
            return PartitionData(wanted.partition, Error.NONE, log.high_watermark, log.start_offset, (), parting)
        if wanted.fetch_offset > log.end_offset:
            return PartitionData(wanted.partition, Error.OFFSET_OUT_OF_RANGE, log.end_offset, log.start_offset)
        if wanted.fetch_offset == log.end_offset:
            session.raised[key] = None
            return None
        session.told[key] = log.high_watermark
        batches = log.read(wanted.fetch_offset, wanted.partition_max_bytes, log.end_offset)
        return PartitionData(wanted.partition, Error.NONE, log.high_watermark, log.start_offset, batches)

    # When something happens

    def wake(self, appended: Partitions, moved: Partitions) -> None:
        """Records are for followers at once. A new high watermark alone is told with their next fetch."""
        for source, session in self.sessions.items():
            is_new = False
            for key, partition in appended.items():
                follower = partition.followers.get(session.follower)
                if follower is not None and key in session.wanted:
                    follower.falls_behind(session.fetched_at)
                    session.dirty[key] = None
                    is_new = True
            for key in moved:
                if key in session.wanted:
                    session.raised[key] = None
            if is_new and session.parked is not None:
                self.out.cancel_timer(TIMER + source)
                self.time_is_up(source)

    def changed(self, partition: Partition) -> None:
        """Its leader or its replicas have changed: whoever follows it must hear of that."""
        for source, session in self.sessions.items():
            if partition.key in session.wanted:
                session.dirty[partition.key] = None
                if session.parked is not None:
                    self.out.cancel_timer(TIMER + source)
                    self.time_is_up(source)

    def time_is_up(self, source: str) -> None:
        session = self.sessions[source]
        asked, session.parked = session.parked, None
        if asked is not None:
            self.out.answer(asked, self._answer(session, self._news(session, asked.body.max_bytes)))

    def gone(self, source: str) -> None:
        self.sessions.pop(source, None)
