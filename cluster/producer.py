"""The Producer machine: keyed records at a steady rate, each with a number that no other record has.

Records wait up to linger.ms for company, in batches, one lane for each partition. A lane has one batch in flight, which
keeps its order; it is sent again until it is acknowledged, refused for good, or delivery.timeout.ms is over. With
acks=all batches are numbered, so that one that was written already is not written again (the idempotent producer).
"""

from collections import deque
from random import Random

import msgspec

from cluster.config import ProducerConfig
from cluster.consumer import connections, metadata
from cluster.consumer.connections import Call, Connections, broker_name
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import NEVER, Backoff, Outbox
from cluster.consumer.states import Asked
from cluster.events import RecordsAcked, RecordsGivenUp
from cluster.machine import Disconnected, Effect, Envelope, Input, Received, TimerFired, Told
from cluster.wire.errors import Error
from cluster.wire.log import (
    MetadataResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    Record,
    TopicProduceData,
)

TIMER = "records"
ACKS = {"0": 0, "1": 1, "all": -1}
BATCH_BYTES = 16384                            # batch.size
BUFFER_BYTES = 33554432                        # buffer.memory: an application that fills it has to wait
RECONNECT = Backoff(50, 1000)                  # reconnect.backoff.ms and its maximum
LOST = Error.NETWORK_EXCEPTION                 # the connection was closed, or nothing came in time


class Start(msgspec.Struct, frozen=True):
    """Begin to send, or go on."""


class Stop(msgspec.Struct, frozen=True):
    """Make no more records; those that wait are still sent."""


class Batch(msgspec.Struct, eq=False):
    records: list[Record]
    expires: int
    size: int = 0
    base_sequence: int = -1                    # -1: it was never sent
    failures: int = 0
    in_doubt: bool = False                     # an attempt ended without a clear answer: it may be in the log
    is_over: bool = False                      # given up, whatever the answer to the last attempt will be


class Lane(msgspec.Struct, eq=False):
    """The way to one partition."""

    partition: int
    identity: int                              # the producer id under which it numbers
    next_sequence: int = 0
    batches: deque[Batch] = msgspec.field(default_factory=deque)
    in_flight: Batch | None = None
    not_before: int = 0


class Producer:
    def __init__(self, name: str, topic: str, config: ProducerConfig, bootstrap: tuple[str, ...], rng: Random,
                 producer_id: int, incarnation: int = 0) -> None:
        self.name = name
        self.topic = topic
        self.config = config
        self.rng = rng
        self.producer_id = producer_id
        self.incarnation = incarnation
        self.out = Outbox()
        self.connections = Connections(self.out, name, incarnation, config.request_timeout_ms, RECONNECT, rng)
        self.backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.metadata = Metadata(self.out, self.connections, self._topics, bootstrap, config.metadata_max_age_ms,
                                 self.backoff, rng)
        self.acks = ACKS[config.acks]
        self.numbers = config.enable_idempotence and config.acks == "all"      # Kafka's rule
        self.lanes: dict[int, Lane] = {}
        self.is_started = False
        self.made = 0                          # records so far
        self._first_due: float | None = None   # when the record of number 0 was due, or would have been
        self._first_expiry = NEVER             # no batch expires before
        self._buffered = 0                     # bytes
        self._fresh_identities = 0
        self._keys: tuple[int, dict[int, int]] = 0, {}     # number of partitions, and where keys go then

    def _topics(self) -> tuple[str, ...]:
        return (self.topic,)

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.out.begin(now)
        if isinstance(event, Told):
            self._told(event.command)
        elif isinstance(event, Received):
            self._received(event.envelope)
        elif isinstance(event, Disconnected):
            self.connections.disconnected(event.peer)
            self.metadata.request()
        elif isinstance(event, TimerFired):
            self._fired(event.name)
        for call in self.connections.failed:
            self._lost(call)
        self.connections.failed.clear()
        self._go_on()
        return effects

    def _told(self, command: object) -> None:
        if isinstance(command, Start) and not self.is_started:
            self.is_started = True
            self._first_due = None
            self.metadata.request()
        elif isinstance(command, Stop):
            self.is_started = False

    def _received(self, envelope: Envelope) -> None:
        call = self.connections.answered(envelope)
        if call is None:
            return
        if isinstance(envelope.body, MetadataResponse):
            self.metadata.learn(call, envelope.body)
            if self.topic not in self.metadata.topics:
                self.metadata.request()
        else:
            self._answered(call, envelope.body)

    def _fired(self, timer: str) -> None:
        self.out.fired(timer)
        if timer == connections.TIMER:
            self.connections.give_up()
        elif timer == metadata.TIMER:
            self.metadata.refresh()

    def _go_on(self) -> None:
        """Make the records that are due, expire and send batches, and come back when there is more of that to do."""
        wakes_at = min(self._make_records(), self._expire(), self._send())
        if wakes_at == NEVER:
            self.out.disarm(TIMER)
        else:
            self.out.arm(TIMER, wakes_at)

    # Records

    def _make_records(self) -> int:
        """Those that are due, once the oldest of them has lingered. Returns when it is time for the next ones."""
        partitions = len(self.metadata.topics.get(self.topic, ()))
        if not self.is_started or not partitions:
            return NEVER
        interval_ms = 1000 / self.config.records_per_second
        if self._first_due is None:            # it has just been started, and the topic is known
            self._first_due = self.out.now - self.made * interval_ms
        now, limit = self.out.now, self.config.records or NEVER
        if now >= self._due(self.made, interval_ms) + self.config.linger_ms:
            while self.made < limit and self._buffered < BUFFER_BYTES and self._due(self.made, interval_ms) <= now:
                self._make_record(self._due(self.made, interval_ms), partitions)
        if self.made >= limit or self._buffered >= BUFFER_BYTES:
            return NEVER
        return self._due(self.made, interval_ms) + self.config.linger_ms

    def _due(self, number: int, interval_ms: float) -> int:
        assert self._first_due is not None
        return int(self._first_due + number * interval_ms)

    def _make_record(self, due: int, partitions: int) -> None:
        key = self.rng.randrange(self.config.keys)
        value = f"{self.producer_id}.{self.incarnation}-{self.made}".encode()
        record = Record(f"k-{key}".encode(), value.ljust(self.config.record_bytes, b"."), due)
        self.made += 1
        lane = self._lane(self._partition_of(key, partitions))
        size = self.config.record_bytes
        batch = lane.batches[-1] if lane.batches else None
        if batch is None or batch.base_sequence >= 0 or batch.failures or batch.size + size > BATCH_BYTES:
            batch = Batch([], due + self.config.delivery_timeout_ms)
            self._first_expiry = min(self._first_expiry, batch.expires)
            lane.batches.append(batch)
        batch.records.append(record)
        batch.size += size
        self._buffered += size

    def _partition_of(self, key: int, partitions: int) -> int:
        """Kafka's default: murmur2 of the key's bytes, its sign dropped, modulo the number of partitions."""
        if self._keys[0] != partitions:
            self._keys = partitions, {}
        known = self._keys[1]
        if key not in known:
            known[key] = (murmur2(f"k-{key}".encode()) & 0x7FFFFFFF) % partitions
        return known[key]

    def _lane(self, partition: int) -> Lane:
        lane = self.lanes.get(partition)
        if lane is None:
            lane = self.lanes[partition] = Lane(partition, self._identity())
        return lane

    def _identity(self) -> int:
        """The producer id, with all that would make its numbers ambiguous above it: which process, which new start."""
        return self.producer_id + ((self.incarnation << 16) + self._fresh_identities << 32)

    # Sending

    def _send(self) -> int:
        """One batch of every lane that may, in one request for each broker. Returns when another lane may."""
        while True:
            ready, wakes_at = self._ready()
            for peer, lanes in ready.items():
                self._produce(peer, lanes)
            if not ready or self.acks:
                return wakes_at

    def _ready(self) -> tuple[dict[str, list[Lane]], int]:
        """The lanes that may send, by the broker that leads their partition; and when the next of the others may."""
        wakes_at = NEVER
        ready: dict[str, list[Lane]] = {}
        for lane in self.lanes.values():
            if lane.in_flight is not None or not lane.batches:
                continue
            leader = self.metadata.leader_of(self.topic, lane.partition)
            if leader is None:
                self.metadata.request()
                continue
            peer = broker_name(leader.node)
            not_before = lane.not_before
            if self.connections.is_down(peer):
                not_before = max(not_before, self.connections.up_at((peer,)))
            if self.out.now < not_before:
                wakes_at = min(wakes_at, not_before)
            else:
                ready.setdefault(peer, []).append(lane)
        return ready, wakes_at

    def _produce(self, peer: str, lanes: list[Lane]) -> None:
        data = []
        for lane in lanes:
            lane.in_flight = batch = lane.batches.popleft()
            if batch.base_sequence < 0:
                batch.base_sequence = lane.next_sequence
                lane.next_sequence += len(batch.records)
            numbers = (lane.identity, batch.base_sequence) if self.numbers else (-1, -1)
            data.append(PartitionProduceData(lane.partition, tuple(batch.records), -1, *numbers))
        body = ProduceRequest(self.acks, self.config.request_timeout_ms, (TopicProduceData(self.topic, tuple(data)),))
        if self.acks:
            self.connections.ask(peer, Asked.PRODUCE, body, about=tuple(lanes))
            return
        self.connections.tell(peer, body)      # nobody will answer: sent is as good as written
        for lane in lanes:
            self._acked(lane, -1)

    # What comes of it

    def _answered(self, call: Call, body: ProduceResponse) -> None:
        said = {each.index: each for topic in body.responses for each in topic.partition_responses}
        for lane in call.about:
            answer = said[lane.partition]
            if answer.error_code in (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER):
                self._acked(lane, answer.base_offset)
            else:
                self._failed(lane, answer.error_code)

    def _lost(self, call: Call) -> None:
        self.metadata.request()
        if call.asked is Asked.METADATA:
            self.metadata.learn_later()
            return
        for lane in call.about:
            self._failed(lane, LOST)

    def _acked(self, lane: Lane, base_offset: int) -> None:
        batch = self._landed(lane)
        if not batch.is_over:
            self.out.emit(RecordsAcked(self.topic, lane.partition, base_offset, len(batch.records), lane.identity,
                                       batch.base_sequence, self.config.acks))
            self._buffered -= batch.size

    def _failed(self, lane: Lane, error: Error) -> None:
        """Try again later if that may help. A number that is out of order was never written, and needs a new series."""
        batch = self._landed(lane)
        batch.in_doubt = batch.in_doubt or not error.definite
        if batch.is_over:
            self._renumber(lane)
        elif error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
            batch.base_sequence = -1
            lane.batches.appendleft(batch)
            self._renumber(lane)
        elif error.retriable:
            lane.not_before = self.out.now + self.backoff.ms(batch.failures, self.rng)
            batch.failures += 1
            lane.batches.appendleft(batch)
            self.metadata.request()
        else:
            self._give_up(lane, batch, error)
            self._renumber(lane)

    def _landed(self, lane: Lane) -> Batch:
        batch, lane.in_flight = lane.in_flight, None
        assert batch is not None
        return batch

    def _expire(self) -> int:
        """Give up what has waited for too long; in flight or not. Returns when the next batch may expire."""
        if self.out.now < self._first_expiry:
            return self._first_expiry
        wakes_at = NEVER
        for lane in self.lanes.values():
            while lane.batches and lane.batches[0].expires <= self.out.now:
                batch = lane.batches.popleft()
                self._give_up(lane, batch, Error.REQUEST_TIMED_OUT)
                if batch.base_sequence >= 0:
                    self._renumber(lane)
            flying = lane.in_flight
            if flying is not None and not flying.is_over and flying.expires <= self.out.now:
                flying.in_doubt = True
                self._give_up(lane, flying, Error.REQUEST_TIMED_OUT)
            for batch in (flying, *([lane.batches[0]] if lane.batches else ())):
                if batch is not None and not batch.is_over:
                    wakes_at = min(wakes_at, batch.expires)
        self._first_expiry = wakes_at
        return wakes_at

    def _give_up(self, lane: Lane, batch: Batch, error: Error) -> None:
        batch.is_over = True
        self._buffered -= batch.size
        self.out.emit(RecordsGivenUp(self.topic, lane.partition, len(batch.records), lane.identity,
                                     batch.base_sequence, error.name, not batch.in_doubt))

    def _renumber(self, lane: Lane) -> None:
        """Numbers were used that may be in the log, or may not: nobody can go on counting there. So begin anew, under
        an identity that the broker does not know (Kafka raises the producer's epoch)."""
        self._fresh_identities += 1
        lane.identity = self._identity()
        lane.next_sequence = 0


def murmur2(data: bytes) -> int:
    """The hash of Kafka's default partitioner, as an unsigned number (Utils.murmur2)."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * multiplier & mask
        part = (part ^ part >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ part
    if len(data) > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15
