"""The Controller machine: it alone decides who leads, who is in sync, and what topics there are.

Whatever it decides is a record in its log first; its image is that log, applied, and brokers follow it. So it may die
and come back: while it is gone nobody is elected, and groups go on. Brokers keep themselves alive by heartbeats; one
that is silent for `broker.session.timeout.ms` is fenced, and others lead what it led.
"""

from collections.abc import Callable, Iterable

import msgspec

from cluster.broker import elections
from cluster.broker.image import (
    MAX_PARTITIONS,
    METADATA_TOPIC,
    BrokerChanged,
    BrokerState,
    Change,
    Image,
    PartitionChanged,
    PartitionState,
    TopicGone,
    TopicMade,
    from_record,
    legal_name,
    to_record,
)
from cluster.broker.log import Log
from cluster.broker.storage import Disk
from cluster.config import ControllerConfig
from cluster.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    IsrChanged,
    LeaderElected,
    RequestRefused,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from cluster.machine import Effect, Envelope, Input, Received, TimerFired, Told
from cluster.outbox import Outbox
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    TopicResult,
)

START = "start"
IMBALANCE = "imbalance"
NOT_HOSTED = "This server does not host this topic-partition."


class Live(msgspec.Struct):
    """What the controller remembers of a broker, and does not write down."""

    incarnation: int
    metadata_offset: int = -1
    leaves_after: int = -1                     # shutting down: how far everybody must have followed before it may stop


class Controller:
    def __init__(self, name: str, config: ControllerConfig, disk: Disk, incarnation: int = 0) -> None:
        self.name = name
        self.config = config
        self.incarnation = incarnation
        self.out = Outbox()
        self.log = Log(disk.log(METADATA_TOPIC, 0, 0))
        self.image = Image()
        self.live: dict[int, Live] = {}
        self.waiting: dict[str, Envelope] = {}     # brokers that follow the log, by name, and have all of it
        self.placed = 0                        # where the replicas of the next partition begin
        self.served: dict[type, Callable[[Envelope], Message | None]] = {
            control.BrokerRegistrationRequest: self._register, control.BrokerHeartbeatRequest: self._heartbeat,
            control.AlterPartitionRequest: self._alter, control.ElectLeadersRequest: self._elect,
            CreateTopicsRequest: self._create_topics, CreatePartitionsRequest: self._create_partitions,
            DeleteTopicsRequest: self._delete_topics, FetchRequest: self._fetch,
        }
        for batch in self.log.read(0, 1 << 62, self.log.end_offset):
            for _, record in batch.numbered():
                self._apply(from_record(record))

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.out.begin(now)
        if isinstance(event, Received):
            self._received(event.envelope)
        elif isinstance(event, TimerFired):
            if event.name == IMBALANCE:
                self._prefer()
            elif event.name.startswith("session/"):
                self._fence(int(event.name.removeprefix("session/")), "session expired")
            elif event.name.startswith("fetch/"):
                self._give_up(event.name.removeprefix("fetch/"))
        elif isinstance(event, Told) and event.command == START:
            self._start()
        return effects

    def _start(self) -> None:
        """Brokers that were alive when the last controller died have a whole session to show that they still are."""
        self.log.begin_epoch(self.incarnation)
        for broker_id, state in self.image.brokers.items():
            if not state.is_fenced:
                self.out.set_timer(f"session/{broker_id}", self.out.now + self.config.broker_session_timeout_ms)
        if self.config.auto_leader_rebalance_enable:
            self._check_balance_later()

    def _received(self, asked: Envelope) -> None:
        serve = self.served.get(type(asked.body))
        if serve is None:
            self.out.emit(RequestRefused(asked.source, asked.api_key, "not served by the controller"))
            self.out.disconnect(asked.source)
            return
        answer = serve(asked)
        if answer is not None:
            self.out.answer(asked, answer)

    # Decisions

    def _decide(self, changes: Iterable[Change]) -> None:
        """What is decided is written, then it is so, and then everybody is told."""
        decided = list(changes)
        if not decided:
            return
        records = tuple(to_record(change, self.out.now) for change in decided)
        self.log.append(records, self.incarnation)
        self.log.high_watermark = self.log.end_offset
        for change in decided:
            self._apply(change)
        for name, asked in list(self.waiting.items()):
            self._stop_waiting(name)
            self.out.answer(asked, self._read(asked.body))

    def _apply(self, change: Change) -> None:
        self.image.apply(change)
        if isinstance(change, TopicMade):
            self.placed += len(change.partitions)

    def _elected(self, changes: Iterable[tuple[PartitionChanged, bool]]) -> None:
        decided = list(changes)
        before = {(each.topic, each.partition): self.image.topics[each.topic][each.partition] for each, _ in decided}
        self._decide(change for change, _ in decided)
        for change, unclean in decided:
            self._tell(change, before[change.topic, change.partition], unclean)

    def _tell(self, change: PartitionChanged, before: PartitionState, unclean: bool = False) -> None:
        after = change.state
        if after.leader_epoch > before.leader_epoch:
            self.out.emit(LeaderElected(change.topic, change.partition, after.leader, after.leader_epoch, after.isr,
                                        unclean))
        elif after.isr != before.isr:
            self.out.emit(IsrChanged(change.topic, change.partition, after.isr, after.leader_epoch))

    # Brokers

    def _register(self, asked: Envelope) -> Message:
        """Another process of a broker means that the one before is gone, whether its session is over or not."""
        body: control.BrokerRegistrationRequest = asked.body
        broker_id = body.broker_id
        known, state = self.live.get(broker_id), self.image.brokers.get(broker_id)
        if known is not None and state is not None and known.incarnation == body.incarnation:
            return control.BrokerRegistrationResponse(Error.NONE, state.broker_epoch)
        if state is not None and not state.is_fenced:
            self._fence(broker_id, "restarted")
        broker_epoch = self.log.end_offset
        self._decide([BrokerChanged(broker_id, BrokerState(broker_epoch))])
        self.live[broker_id] = Live(body.incarnation)
        self.out.emit(BrokerRegistered(broker_id, broker_epoch))
        return control.BrokerRegistrationResponse(Error.NONE, broker_epoch)

    def _heartbeat(self, asked: Envelope) -> Message:
        body: control.BrokerHeartbeatRequest = asked.body
        state = self.image.brokers.get(body.broker_id)
        if state is None:
            return control.BrokerHeartbeatResponse(Error.BROKER_ID_NOT_REGISTERED)
        if state.broker_epoch != body.broker_epoch:
            return control.BrokerHeartbeatResponse(Error.STALE_BROKER_EPOCH)
        live = self.live.setdefault(body.broker_id, Live(-1))
        live.metadata_offset = body.current_metadata_offset
        self.out.set_timer(f"session/{body.broker_id}", self.out.now + self.config.broker_session_timeout_ms)
        is_caught_up = body.current_metadata_offset > state.broker_epoch
        if body.want_shut_down:
            return self._let_go(body.broker_id, live)
        if state.is_fenced and is_caught_up:
            self._unfence(body.broker_id)
        return control.BrokerHeartbeatResponse(Error.NONE, is_caught_up, self.image.brokers[body.broker_id].is_fenced)

    def _unfence(self, broker_id: int) -> None:
        state = self.image.brokers[broker_id]
        self._decide([BrokerChanged(broker_id, BrokerState(state.broker_epoch, is_fenced=False))])
        self.out.emit(BrokerUnfenced(broker_id))
        self._elected(elections.back(self.image, broker_id, unclean=self.config.unclean_leader_election_enable))

    def _fence(self, broker_id: int, cause: str) -> None:
        state = self.image.brokers[broker_id]
        if state.is_fenced:
            return
        self._decide([BrokerChanged(broker_id, BrokerState(state.broker_epoch))])
        self.out.cancel_timer(f"session/{broker_id}")
        self.out.emit(BrokerFenced(broker_id, cause))
        self._elected(elections.without(self.image, broker_id, unclean=self.config.unclean_leader_election_enable))

    def _let_go(self, broker_id: int, live: Live) -> Message:
        """A broker that wants to stop leads nothing any more, and stops when everybody else knows."""
        state = self.image.brokers[broker_id]
        if not state.is_shutting_down:
            stopping = BrokerState(state.broker_epoch, state.is_fenced, is_shutting_down=True)
            self._decide([BrokerChanged(broker_id, stopping)])
            self.out.emit(BrokerFenced(broker_id, "shutting down"))
            self._elected(elections.without(self.image, broker_id, unclean=False))
            live.leaves_after = self.log.end_offset
        leads = any(each.leader == broker_id for partitions in self.image.topics.values() for each in partitions)
        others = [self.live[each].metadata_offset for each in self.image.active_brokers() if each in self.live]
        may_stop = not leads and all(offset >= live.leaves_after for offset in others)
        return control.BrokerHeartbeatResponse(Error.NONE, True, False, may_stop)

    # In-sync replicas and preferred leaders

    def _alter(self, asked: Envelope) -> Message:
        body: control.AlterPartitionRequest = asked.body
        state = self.image.brokers.get(body.broker_id)
        if state is None or state.broker_epoch != body.broker_epoch:
            return control.AlterPartitionResponse(Error.STALE_BROKER_EPOCH)
        return control.AlterPartitionResponse(topics=tuple(
            control.AlterPartitionTopicResult(topic.topic, tuple(
                self._alter_one(body.broker_id, topic.topic, wanted) for wanted in topic.partitions))
            for topic in body.topics))

    def _alter_one(self, leader: int, topic: str,
                   wanted: control.AlterPartitionPartition) -> control.AlterPartitionResult:
        before = self.image.partition(topic, wanted.partition_index)
        error = self._objection(leader, before, wanted)
        if error is not Error.NONE or before is None:
            return control.AlterPartitionResult(wanted.partition_index, error)
        after = elections.bumped(before, msgspec.structs.replace(before, isr=wanted.new_isr))
        change = PartitionChanged(topic, wanted.partition_index, after)
        self._decide([change])
        self._tell(change, before)
        return control.AlterPartitionResult(wanted.partition_index, Error.NONE, after.leader, after.leader_epoch,
                                            after.isr, after.partition_epoch)

    def _objection(self, leader: int, before: PartitionState | None, wanted: control.AlterPartitionPartition) -> Error:
        if before is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        if wanted.leader_epoch < before.leader_epoch:
            return Error.FENCED_LEADER_EPOCH
        if wanted.leader_epoch > before.leader_epoch or wanted.partition_epoch > before.partition_epoch:
            return Error.NOT_CONTROLLER
        if wanted.partition_epoch < before.partition_epoch:
            return Error.INVALID_UPDATE_VERSION
        if before.leader != leader or leader not in wanted.new_isr or not set(wanted.new_isr) <= set(before.replicas):
            return Error.INVALID_REQUEST
        if any(each not in before.isr and not self.image.is_active(each) for each in wanted.new_isr):
            return Error.INELIGIBLE_REPLICA
        return Error.NONE

    def _prefer(self) -> None:
        changes = []
        for topic, partitions in self.image.topics.items():
            for number, before in enumerate(partitions):
                after = elections.preferred(self.image, before)
                if after is not None:
                    changes.append((PartitionChanged(topic, number, elections.bumped(before, after)), False))
        self._elected(changes)
        self._check_balance_later()

    def _check_balance_later(self) -> None:
        self.out.set_timer(IMBALANCE, self.out.now + 1000 * self.config.leader_imbalance_check_interval_seconds)

    def _elect(self, asked: Envelope) -> Message:
        """By request: the preferred replica; or, where there is no leader, whoever is there."""
        body: control.ElectLeadersRequest = asked.body
        wanted = [(each.topic, number) for each in body.topic_partitions or () for number in each.partitions]
        if body.topic_partitions is None:
            wanted = [(topic, number) for topic, many in self.image.topics.items() for number in range(len(many))]
        results: dict[str, list[control.PartitionElectionResult]] = {}
        for topic, number in wanted:
            error = self._elect_one(topic, number, unclean=body.election_type == 1)
            results.setdefault(topic, []).append(control.PartitionElectionResult(number, error))
        return control.ElectLeadersResponse(replica_election_results=tuple(
            control.ReplicaElectionResult(topic, tuple(each)) for topic, each in results.items()))

    def _elect_one(self, topic: str, number: int, *, unclean: bool) -> Error:
        before = self.image.partition(topic, number)
        if before is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        if unclean:
            if before.leader != -1:
                return Error.ELECTION_NOT_NEEDED
            changed = [each for each in elections.back(self.image, next(
                (each for each in before.replicas if self.image.is_active(each)), -1), unclean=True)
                if (each[0].topic, each[0].partition) == (topic, number)]
            self._elected(changed)
            return Error.NONE if changed else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
        if before.leader == before.replicas[0]:
            return Error.ELECTION_NOT_NEEDED
        after = elections.preferred(self.image, before)
        if after is None:
            return Error.PREFERRED_LEADER_NOT_AVAILABLE
        self._elected([(PartitionChanged(topic, number, elections.bumped(before, after)), False)])
        return Error.NONE

    # Topics

    def _create_topics(self, asked: Envelope) -> Message:
        return CreateTopicsResponse(tuple(
            self._create(each.name, each.num_partitions, each.replication_factor) for each in asked.body.topics))

    def _create(self, name: str, partitions: int, replication_factor: int) -> TopicResult:
        """One of a topic's numbers may be left to the settings, with -1."""
        partitions = self.config.num_partitions if partitions == -1 else partitions
        replicas = self.config.default_replication_factor if replication_factor == -1 else replication_factor
        brokers = len(self.image.active_brokers())
        if not legal_name(name):
            return TopicResult(name, Error.INVALID_TOPIC_EXCEPTION, "a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -")
        if name in self.image.topics:
            return TopicResult(name, Error.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if not 1 <= partitions <= MAX_PARTITIONS:
            return TopicResult(name, Error.INVALID_PARTITIONS, f"{partitions}; 1 to {MAX_PARTITIONS} can be made")
        if not 1 <= replicas <= brokers:
            return TopicResult(name, Error.INVALID_REPLICATION_FACTOR, f"{replicas} replicas, and {brokers} brokers")
        self._place(name, 0, partitions, replicas)
        self.out.emit(TopicCreated(name, partitions))
        return TopicResult(name)

    def _place(self, name: str, first: int, count: int, replicas: int) -> None:
        """Replicas are dealt round the brokers, so that each leads about as many partitions as any other."""
        brokers = self.image.active_brokers()
        made = []
        for number in range(count):
            start = self.placed + number
            chosen = tuple(brokers[(start + each) % len(brokers)] for each in range(replicas))
            made.append(PartitionState(chosen, chosen, chosen[0]))
        topic_id = self.image.ids.get(name, self.log.end_offset)
        self._decide([TopicMade(name, topic_id, first, tuple(made))])
        for number, each in enumerate(made, first):
            self.out.emit(LeaderElected(name, number, each.leader, 0, each.isr))

    def _create_partitions(self, asked: Envelope) -> Message:
        return CreatePartitionsResponse(tuple(self._grow(each.name, each.count) for each in asked.body.topics))

    def _grow(self, name: str, count: int) -> TopicResult:
        known = self.image.topics.get(name, [])
        if not known:
            return TopicResult(name, Error.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
        if not len(known) < count <= MAX_PARTITIONS:
            return TopicResult(name, Error.INVALID_PARTITIONS, f"it has {len(known)} and can grow to "
                               f"{len(known) + 1} to {MAX_PARTITIONS}, not to {count}")
        replicas = len(known[0].replicas)
        if replicas > len(self.image.active_brokers()):
            return TopicResult(name, Error.INVALID_REPLICATION_FACTOR, f"{replicas} replicas, and too few brokers")
        self._place(name, len(known), count - len(known), replicas)
        self.out.emit(TopicGrown(name, count))
        return TopicResult(name)

    def _delete_topics(self, asked: Envelope) -> Message:
        return DeleteTopicsResponse(tuple(self._delete(name) for name in asked.body.topic_names))

    def _delete(self, name: str) -> TopicResult:
        if name not in self.image.topics:
            return TopicResult(name, Error.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
        self._decide([TopicGone(name, self.image.ids[name])])
        self.out.emit(TopicDeleted(name))
        return TopicResult(name)

    # Its log, for those who follow it

    def _fetch(self, asked: Envelope) -> Message | None:
        offset = asked.body.topics[0].partitions[0].fetch_offset
        if offset < self.log.end_offset or asked.body.max_wait_ms == 0:
            return self._read(asked.body)
        self.waiting[asked.source] = asked
        self.out.set_timer(f"fetch/{asked.source}", self.out.now + asked.body.max_wait_ms)
        return None

    def _read(self, wanted: FetchRequest) -> Message:
        one = wanted.topics[0].partitions[0]
        batches = self.log.read(one.fetch_offset, one.partition_max_bytes, self.log.end_offset)
        data = PartitionData(0, Error.NONE, self.log.high_watermark, 0, batches)
        return FetchResponse((FetchableTopicResponse(METADATA_TOPIC, (data,)),))

    def _stop_waiting(self, name: str) -> None:
        del self.waiting[name]
        self.out.cancel_timer(f"fetch/{name}")

    def _give_up(self, name: str) -> None:
        asked = self.waiting.pop(name, None)
        if asked is not None:
            self.out.answer(asked, self._read(asked.body))
