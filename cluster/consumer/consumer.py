"""The Consumer machine: one member of a classic group, with its application.

Two threads share the client, as in Kafka: the application's, and that of the heartbeats. What comes from the network is
heard while either of them is in the client. While the application processes records and there is nothing to beat for
(JoinGroup is sent, or the member is none), nobody listens: answers wait in the inbox until the next poll.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from cluster.assignors import Assignor
from cluster.config import BadSetting, ConsumerConfig
from cluster.consumer import connections, heartbeats, metadata, polling
from cluster.consumer.answers import LOST, Answer, error_of
from cluster.consumer.commits import Commits
from cluster.consumer.connections import Call, Connections
from cluster.consumer.discovery import Discovery
from cluster.consumer.fetching import Fetching
from cluster.consumer.heartbeats import Heartbeats
from cluster.consumer.interest import Interest
from cluster.consumer.leading import Leading
from cluster.consumer.member import Member
from cluster.consumer.membership import Membership
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import Backoff, Outbox
from cluster.consumer.ownership import Ownership
from cluster.consumer.polling import Application
from cluster.consumer.positions import Positions
from cluster.consumer.seeking import Seeking
from cluster.consumer.states import Asked
from cluster.consumer.words import LINES, Words
from cluster.events import PollIntervalExceeded
from cluster.machine import Disconnected, Effect, Input, Received, TimerFired, Told
from cluster.wire.errors import Error
from cluster.wire.groups import HeartbeatResponse
from cluster.wire.log import FetchResponse, ListOffsetsResponse, MetadataResponse, OffsetForLeaderEpochResponse

TIMERS = (polling.TIMER, heartbeats.TIMER, metadata.TIMER, connections.TIMER)


class Consumer:
    def __init__(self, name: str, group_id: str, config: ConsumerConfig, bootstrap: tuple[str, ...],
                 assignors: Mapping[str, Assignor], rng: Random, incarnation: int = 0) -> None:
        _check(config, assignors)
        self.name = name
        self.group_id = group_id
        self.config = config
        self.bootstrap = bootstrap
        self.assignors = assignors
        self.rng = rng
        self.out = Outbox()
        self.connections = Connections(self.out, name, incarnation, config.request_timeout_ms,
                                       Backoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms), rng)
        self.inbox: list[Input] = []           # what came while nobody listened
        self.is_stirred = False                # something happened that the application may wait for
        self._is_new = True
        self.application = Application(self)
        self.words = Words(self)
        self._hears: dict[type, Callable[[Call, Any], None]] = {
            FetchResponse: self._fetched, ListOffsetsResponse: self._listed,
            OffsetForLeaderEpochResponse: self._validated, MetadataResponse: self._learnt,
        }
        self._build()

    def _build(self) -> None:
        config, out, rng, backoff = self.config, self.out, self.rng, Backoff(self.config.retry_backoff_ms,
                                                                            self.config.retry_backoff_max_ms)
        self.interest = Interest(config.exclude_internal_topics)
        self.metadata = Metadata(out, self.connections, self.interest.wanted, self.bootstrap,
                                 config.metadata_max_age_ms, backoff, rng)
        self.discovery = Discovery(out, self.connections, self.metadata, self.group_id, backoff, rng)
        self.member = Member(self.group_id, config.group_instance_id)
        self.heartbeats = Heartbeats(out, self.connections, self.discovery, self.member, config, backoff, rng)
        self.positions = Positions(self.metadata)
        self.commits = Commits(out, self.connections, self.discovery, self.member, self.positions, config, backoff, rng)
        self.ownership = Ownership(out, self.member, self.interest, self.positions, self.commits, self.assignors,
                                   config)
        self.leading = Leading(out, self.member, self.interest, self.metadata, self.ownership.assignors,
                               self.ownership.is_cooperative)
        self.membership = Membership(out, self.connections, self.discovery, self.member, self.interest,
                                     self.ownership, self.leading, self.heartbeats, config)
        self.seeking = Seeking(out, self.connections, self.metadata, self.discovery, self.member, self.positions,
                               config, backoff, rng)
        self.fetching = Fetching(out, self.connections, self.metadata, self.positions, config, self.judge)

    def begin(self) -> None:
        """The application makes itself a client, if it has none."""
        if not self._is_new:
            return
        self._is_new = False
        self._build()

    def end(self) -> None:
        """The client is closed. Whatever comes for it now comes too late."""
        self._is_new = True
        self.connections.close_all()
        self.inbox.clear()
        for timer in TIMERS:
            self.out.disarm(timer)

    # What happens

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.out.begin(now)
        if isinstance(event, TimerFired) and event.name == heartbeats.TIMER:
            self.out.fired(event.name)
            if self.config.heartbeat_thread or self.application.is_inside():
                self.beat()
        elif isinstance(event, TimerFired) and event.name == polling.TIMER:
            self.out.fired(event.name)
            self.is_stirred = True
        elif isinstance(event, Told):
            self.application.told(event.command)
            self.is_stirred = True
        elif self._somebody_listens():
            self._hear(event)
        else:
            self.inbox.append(event)
        while self.is_stirred or self.connections.failed:
            self._tell_losses()
            self.is_stirred = False
            self.application.go_on()
        return effects

    def _somebody_listens(self) -> bool:
        return self.application.is_inside() or (self.config.heartbeat_thread and self.heartbeats.is_running())

    def listen(self) -> None:
        """Somebody is in the client: hear what came while nobody was."""
        while self.inbox:
            self._hear(self.inbox.pop(0))
        self._tell_losses()

    def beat(self) -> None:
        """The heartbeat thread's turn. While the leader waits for metadata it holds the lock that the thread needs."""
        if self.leading.answer is not None:
            self.out.arm(heartbeats.TIMER, self.out.now + self.config.retry_backoff_ms)
        elif self.heartbeats.beat(is_sought=self.application.is_inside()):
            self.out.emit(PollIntervalExceeded(self.group_id, self.member.generation.member_id))
            self.membership.leave("poll interval", "consumer poll timeout has expired.")
        elif self.connections.failed:
            self.is_stirred = True

    def _hear(self, event: Input) -> None:
        if isinstance(event, Received):
            call = self.connections.answered(event.envelope)
            if call is not None:
                self._answered(call, event.envelope.body)
        elif isinstance(event, Disconnected):
            self.is_stirred = True
            self.connections.disconnected(event.peer)
            self.discovery.lose(event.peer, "disconnected", is_closed=True)
            self.metadata.request()
        elif isinstance(event, TimerFired):
            self.out.fired(event.name)
            if event.name == connections.TIMER:
                self.connections.give_up()
            else:
                self.metadata.refresh()

    # Answers

    def _answered(self, call: Call, body: Any) -> None:
        hear = self._hears.get(type(body))
        if hear is not None:
            hear(call, body)
        else:
            self.judge(Answer(call, error_of(call, body), body))
        if not (type(body) is FetchResponse or (type(body) is HeartbeatResponse and body.error_code is Error.NONE)):
            self.is_stirred = True

    def judge(self, answer: Answer) -> None:
        """Find the first line of the table that holds, and carry it out."""
        words = self.words
        for is_so, line in LINES[answer.call.asked][answer.error]:
            if is_so is None or is_so(words, answer):
                for do in line:
                    do(words, answer)
                return

    def _tell_losses(self) -> None:
        """Some requests are lost. To lose a coordinator may lose more."""
        failed = self.connections.failed
        while failed:
            call = failed.pop(0)
            self.is_stirred = True
            if call.asked is Asked.FETCH:
                self.fetching.lost(call)
            if call.asked in (Asked.LIST, Asked.VALIDATE):
                for partition in call.about:
                    self.judge(Answer(call, LOST, None, partition))
            else:
                self.judge(Answer(call, LOST))

    def _fetched(self, call: Call, body: FetchResponse) -> None:
        """If a broker had nothing, it is asked again, and nobody is stirred."""
        if self.fetching.arrived(call, body) or not self.application.reads_on():
            self.is_stirred = True
        else:
            self.out.arm_sooner(polling.TIMER, self.out.wakes_at)

    def _listed(self, call: Call, body: ListOffsetsResponse) -> None:
        for topic in body.topics:
            for part in topic.partitions:
                self.judge(Answer(call, part.error_code, body, (topic.name, part.partition_index), part))

    def _validated(self, call: Call, body: OffsetForLeaderEpochResponse) -> None:
        for topic in body.topics:
            for part in topic.partitions:
                self.judge(Answer(call, part.error_code, body, (topic.topic, part.partition), part))

    def _learnt(self, call: Call, body: MetadataResponse) -> None:
        self.judge(Answer(call, Error.NONE, body))
        for topic in body.topics:
            if topic.error_code is not Error.NONE:
                self.judge(Answer(call, topic.error_code, body))


def _check(config: ConsumerConfig, assignors: Mapping[str, Assignor]) -> None:
    """What Kafka's client refuses when it is made."""
    names = config.partition_assignment_strategy
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise BadSetting(f"heartbeat.interval.ms: {config.heartbeat_interval_ms} must be less than session.timeout.ms")
    if not names or len(set(names)) != len(names):
        raise BadSetting("partition.assignment.strategy: at least one assignor, and none twice")
    unknown = [name for name in names if name not in assignors]
    if unknown:
        raise BadSetting(f"partition.assignment.strategy: no assignor {', '.join(unknown)}; "
                         f"there are: {', '.join(sorted(assignors))}")
