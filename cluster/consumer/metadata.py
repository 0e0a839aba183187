"""What a client knows of the cluster, how old that is, and when it asks again.

It asks when something turned out to be stale, and in any case every metadata.max.age.ms: this is how new partitions and
new topics are noticed at all. Between two questions there is a pause, which grows while the answers bring nothing new.
"""

from collections.abc import Callable
from random import Random

import msgspec

from cluster.consumer.connections import Call, Connections, broker_name
from cluster.consumer.outbox import Backoff, Outbox
from cluster.consumer.states import Asked
from cluster.wire.errors import Error
from cluster.wire.log import MetadataRequest, MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

TIMER = "metadata"


class Leader(msgspec.Struct, frozen=True, gc=False):
    node: int
    epoch: int


class Metadata:
    def __init__(self, out: Outbox, connections: Connections, wanted: Callable[[], tuple[str, ...] | None],
                 bootstrap: tuple[str, ...], max_age_ms: int, backoff: Backoff, rng: Random) -> None:
        self.out = out
        self.connections = connections
        self.wanted = wanted                   # which topics to ask for; None: all
        self.bootstrap = bootstrap
        self.max_age_ms = max_age_ms
        self.backoff = backoff
        self.rng = rng
        self.version = 0                       # of the answers
        self.topics: dict[str, tuple[MetadataResponsePartition, ...]] = {}     # partitions in their order
        self.internal: dict[str, None] = {}
        self.brokers: tuple[str, ...] = ()
        self.is_stale = True
        self._asked: Call | None = None
        self._wishes = 0                       # how often new topics were wished for
        self._failures = 0
        self._repeats = 0                      # answers in a row that brought nothing new
        self._allowed = 0                      # not before then
        self._expires = 0

    # Asking

    def request(self) -> None:
        """It is stale: ask as soon as the pause since the last question is over."""
        self.is_stale = True
        self.refresh()

    def request_topics(self) -> None:
        """Other topics are wanted: ask at once, even if a question is on its way."""
        self._wishes += 1
        self._allowed = self._repeats = 0
        self.request()

    def may_ask(self) -> bool:
        return self.out.now >= self._allowed

    def is_fresh(self) -> bool:
        return not self.is_stale and self.out.now < self._expires

    def refresh(self) -> None:
        """Ask, if that is due and possible; else set the timer for when it may be."""
        if self._asked is not None:
            return
        due = self._allowed if self.is_stale else max(self._allowed, self._expires)
        if due > self.out.now:
            self.out.arm(TIMER, due)
            return
        peer = self.any_broker()
        if peer is None:
            self.out.arm(TIMER, self.connections.up_at((*self.brokers, *self.bootstrap)))
            return
        self.out.disarm(TIMER)
        self._asked = self.connections.ask(peer, Asked.METADATA, MetadataRequest(self.wanted()), about=self._wishes)

    def any_broker(self) -> str | None:
        """The least loaded broker that is known; if all of them are down, one of those we started with."""
        return self.connections.least_loaded(self.brokers) or self.connections.least_loaded(self.bootstrap)

    # Answers

    def learn(self, call: Call, body: MetadataResponse) -> None:
        now = self.out.now
        topics = {topic.name: self._partitions(topic) for topic in body.topics if topic.error_code is Error.NONE}
        self._repeats = 0 if topics != self.topics else self._repeats + 1
        self.topics = topics
        self.internal = {topic.name: None for topic in body.topics if topic.is_internal}
        self.brokers = tuple([broker_name(broker.node_id) for broker in body.brokers])
        self.version += 1
        self.is_stale = call.about != self._wishes or any(
            each.leader_id < 0 for partitions in topics.values() for each in partitions)
        self._asked = None
        self._failures = 0
        self._expires = now + self.max_age_ms
        self._allowed = 0 if call.about != self._wishes else now + self.backoff.ms(max(self._repeats - 1, 0), self.rng)
        self.refresh()

    def _partitions(self, topic: MetadataResponseTopic) -> tuple[MetadataResponsePartition, ...]:
        """What is new of a topic. A broker that lags behind may not know the newest leader: then what we know is
        kept."""
        known, told = self.topics.get(topic.name, ()), topic.partitions
        if told is known:
            return known
        if any(each.partition_index != number for number, each in enumerate(told)):
            told = tuple(sorted(told, key=lambda each: each.partition_index))
        if not any(ours.leader_epoch > theirs.leader_epoch for ours, theirs in zip(known, told, strict=False)):
            return told
        return tuple([known[number] if number < len(known) and known[number].leader_epoch > each.leader_epoch else each
                      for number, each in enumerate(told)])

    def learn_later(self) -> None:
        """Nobody answered."""
        self._asked = None
        self._allowed = self.out.now + self.backoff.ms(self._failures, self.rng)
        self._failures += 1
        self.refresh()

    def leader_of(self, topic: str, partition: int) -> Leader | None:
        """Who leads a partition; None if nobody does, or nobody knows."""
        partitions = self.topics.get(topic, ())
        if partition >= len(partitions) or partitions[partition].leader_id < 0:
            return None
        return Leader(partitions[partition].leader_id, partitions[partition].leader_epoch)

    def sizes(self, topics: tuple[str, ...]) -> dict[str, int]:
        """How many partitions these topics have; those that do not exist are left out."""
        return {topic: len(self.topics[topic]) for topic in topics if topic in self.topics}

