"""The Broker machine: it keeps logs, leads some partitions, follows the leaders of others, and tells everybody who does
what.

What it knows of the cluster it has from the controller's log, and only from there; so two brokers may disagree for a
moment, and epochs tell who is right. Its rooms: `citizen` (the controller), `following`, `writing`, `reading`,
`feeding` (followers), `insync`. What changes in a step is answered at its end.
"""

from collections.abc import Callable
from typing import Any

from cluster.broker import citizen, following, insync, reading, writing
from cluster.broker.changes import Changes
from cluster.broker.citizen import Citizen
from cluster.broker.feeding import Feeding
from cluster.broker.following import Following
from cluster.broker.image import (
    OFFSETS_TOPIC,
    BrokerChanged,
    Change,
    PartitionChanged,
    PartitionState,
    TopicGone,
    TopicMade,
)
from cluster.broker.insync import InSync
from cluster.broker.log import Log
from cluster.broker.partition import Partition, Partitions
from cluster.broker.reading import Reading
from cluster.broker.storage import Disk
from cluster.broker.writing import Writing
from cluster.config import BrokerConfig
from cluster.events import BrokerStopped, LogCompacted, RecordsLeft, RequestRefused
from cluster.java import partition_for
from cluster.machine import Disconnected, Effect, Envelope, Input, Received, TimerFired, Told
from cluster.outbox import Outbox
from cluster.wire import control
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from cluster.wire.log import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataChanged,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)

PORT = 9092
START, STOP = "start", "stop"                  # what a broker is told: begin; hand over what you lead, and end;
INTRODUCE, READ_BACK = "introduce", "read back"    # tell your coordinator what there is; tell what your logs hold
CLEAN = "clean"
FETCH = reading.TIMER.removesuffix("/")
FORWARDED = (CreateTopicsRequest, CreatePartitionsRequest, DeleteTopicsRequest, control.ElectLeadersRequest)
RELAYED = (CreateTopicsResponse, CreatePartitionsResponse, DeleteTopicsResponse, control.ElectLeadersResponse)


class Broker:
    def __init__(self, name: str, coordinator: str, node_id: int, config: BrokerConfig, disk: Disk,
                 controller: str = "controller", incarnation: int = 0) -> None:
        self.name = name
        self.coordinator = coordinator
        self.node_id = node_id
        self.config = config
        self.disk = disk
        self.controller = controller
        self.incarnation = incarnation
        self.out = Outbox()
        self.partitions: Partitions = {}       # those of which we have a replica
        self.correlation_id = 0
        self.forwarded: dict[int, Envelope | None] = {}    # what the controller was asked -> for whom; None: ourselves
        self.has_news = False                  # the coordinator does not know yet
        self.has_stopped = False
        changes = self.changes = Changes(self.out)
        self.citizen = Citizen(node_id, config, self.out, self._ask_controller, incarnation, self._learned)
        self.image = self.citizen.image
        self.following = Following(name, node_id, config, self.out, self._number, incarnation,
                                   self.image.is_active)
        self.insync = InSync(node_id, config.replica_lag_time_max_ms, self.out, self.partitions, changes,
                             self._ask_controller)
        self.writing = Writing(config, self.out, self.partitions, changes)
        self.reading = Reading(self.out, self.partitions)
        self.feeding = Feeding(self.out, self.image, self.partitions, changes, self.insync.join)
        self.served: dict[type, Callable[[Envelope], Message | None]] = {
            ProduceRequest: self.writing.produce, FetchRequest: self._fetch, MetadataRequest: self._metadata,
            ListOffsetsRequest: self.reading.list_offsets, OffsetForLeaderEpochRequest: self.reading.end_of_epoch,
            FindCoordinatorRequest: self._find_coordinator, **dict.fromkeys(FORWARDED, self._forward)}

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.out.begin(now)
        if isinstance(event, Received):
            self._received(event.envelope)
        elif isinstance(event, TimerFired):
            self._fired(event.name)
        elif isinstance(event, Disconnected):
            self._disconnected(event.peer)
        elif isinstance(event, Told):
            self._told(event.command)
        self._answer_the_waiting()
        return effects

    def _told(self, command: Any) -> None:
        if command == START:
            self.has_news = True
            self.citizen.start()
            self.insync.start()
            self.out.set_timer(CLEAN, self.out.now + self.config.log_cleaner_backoff_ms)
        elif command == STOP:
            self.citizen.stop()
        elif command == INTRODUCE:
            self.has_news = True
        elif command == READ_BACK:
            self._read_back()

    def _answer_the_waiting(self) -> None:
        """What has changed in this step matters to those who wait for it."""
        changes = self.changes
        while changes.appended or changes.moved:
            appended, changes.appended = changes.appended, {}
            moved, changes.moved = changes.moved, {}
            for partition in moved.values():
                self.writing.settle(partition)
            self.reading.wake(moved)
            self.feeding.wake(appended, moved)
        self.insync.flush()
        if self.has_news:
            self._tell_coordinator()

    # Messages

    def _received(self, envelope: Envelope) -> None:
        body = envelope.body
        serve = self.served.get(type(body))
        if serve is not None:
            answer = serve(envelope)
            if answer is not None:
                self.out.answer(envelope, answer)
        elif isinstance(body, FetchResponse):
            self._fetched(envelope, body)
        elif isinstance(body, control.BrokerHeartbeatResponse):
            self.citizen.beaten(envelope.correlation_id, body)
            if self.citizen.may_stop and not self.has_stopped:
                self.has_stopped = True
                self.out.emit(BrokerStopped(self.node_id))
        elif isinstance(body, control.BrokerRegistrationResponse):
            self.citizen.registered(body)
            self.following.broker_epoch = self.insync.broker_epoch = self.citizen.broker_epoch
        elif isinstance(body, control.AlterPartitionResponse):
            self.insync.answered(envelope.correlation_id, body)
        elif isinstance(body, RELAYED):
            self._relay(envelope)
        else:
            self.out.emit(RequestRefused(envelope.source, envelope.api_key, "not served by a broker"))
            self.out.disconnect(envelope.source)

    def _fetch(self, asked: Envelope) -> Message | None:
        return self.feeding.fetch(asked) if asked.body.replica_id >= 0 else self.reading.fetch(asked)

    def _fetched(self, envelope: Envelope, answer: FetchResponse) -> None:
        if envelope.source == self.controller:
            self.citizen.fetched(envelope.correlation_id, answer)
        else:
            self.following.fetched(_number_of(envelope.source), envelope.correlation_id, answer)

    def _fired(self, timer: str) -> None:
        what, _, whom = timer.partition("/")
        if what == FETCH:
            (self.feeding if whom in self.feeding.sessions else self.reading).time_is_up(whom)
        elif timer.startswith(writing.TIMER):
            self.writing.time_is_up(timer)
        elif timer.startswith(following.PATIENCE):
            self.following.lose_patience(int(whom))
        elif timer.startswith(following.RESTED):
            self.following.rested(int(whom))
        elif timer == insync.CHECK:
            self.insync.check()
        elif timer == insync.RETRY:
            self.insync.rested()
        elif timer == CLEAN:
            self._clean()
        elif timer == citizen.PATIENCE:        # nothing came back: try another connection
            self.out.disconnect(self.controller)
            self._disconnected(self.controller)
        else:
            self.citizen.fired(what)

    def _disconnected(self, peer: str) -> None:
        self.reading.gone(peer)
        self.feeding.gone(peer)
        if peer == self.controller:
            self.citizen.disconnected()
            self.insync.disconnected()
            forwarded, self.forwarded = self.forwarded, {}
            for asked in forwarded.values():   # nobody can say what became of it
                if asked is not None:
                    self.out.disconnect(asked.source)
        elif peer.startswith("broker-"):
            self.following.disconnected(_number_of(peer))

    def _number(self) -> int:
        self.correlation_id += 1
        return self.correlation_id

    def _ask_controller(self, body: Message) -> int:
        number = self._number()
        self.out.send(request(body, source=self.name, destination=self.controller, correlation_id=number,
                              client_id=self.name, incarnation=self.incarnation))
        return number

    def _forward(self, asked: Envelope) -> None:
        self.forwarded[self._ask_controller(asked.body)] = asked

    def _relay(self, answer: Envelope) -> None:
        asked = self.forwarded.pop(answer.correlation_id, None)
        if asked is not None:
            self.out.answer(asked, answer.body)

    # What the controller says

    def _learned(self, news: list[Change]) -> None:
        """Only what is so now counts, not how it came about; but a topic that is gone is gone, whoever has its name
        now."""
        touched: dict[tuple[str, int], None] = {}
        for change in news:
            if isinstance(change, TopicGone):
                self._drop(change)
            elif isinstance(change, PartitionChanged):
                touched[change.topic, change.partition] = None
            elif isinstance(change, TopicMade):
                for number in range(len(change.partitions)):
                    touched[change.name, change.first + number] = None
            self.has_news |= not isinstance(change, BrokerChanged) and (
                not isinstance(change, PartitionChanged) or change.topic == OFFSETS_TOPIC)
        for topic, number in touched:
            state = self.image.partition(topic, number)
            if state is not None and self.node_id in state.replicas:
                self._change(self._partition(topic, number), state)
        if any(isinstance(change, BrokerChanged) for change in news):
            for partition in self.partitions.values():     # nobody waits for a broker that is gone
                self.changes.advance(partition)
        self.feeding.consider_all()
        self.following.go_on()

    def _partition(self, topic: str, number: int) -> Partition:
        partition = self.partitions.get((topic, number))
        if partition is None:
            log = Log(self.disk.log(topic, self.image.ids[topic], number))
            partition = self.partitions[topic, number] = Partition(
                topic, number, log, self.node_id, self.config.min_insync_replicas, self.config.replica_lag_time_max_ms,
                self.image.is_active)
        return partition

    def _change(self, partition: Partition, state: PartitionState) -> None:
        if state.partition_epoch <= partition.agreed.partition_epoch:
            return
        led = partition.leads
        if partition.change(state, self.out.now):
            if led and not partition.leads:
                self.writing.resigned(partition)
            self.reading.wake({partition.key: partition})
            self.feeding.changed(partition)
        if partition.leads:
            self.following.forget(partition)
            self.changes.advance(partition)
        elif state.leader in self.image.brokers:
            self.following.follow(partition, state.leader)
        else:
            self.following.forget(partition)

    def _drop(self, gone: TopicGone) -> None:
        for key, partition in list(self.partitions.items()):
            if partition.topic == gone.name:
                del self.partitions[key]
                self.following.forget(partition)
                self.writing.resigned(partition)
                self.reading.wake({key: partition})
                self.feeding.changed(partition)
                self.disk.drop(partition.topic, gone.topic_id, partition.number)

    def _tell_coordinator(self) -> None:
        self.has_news = False
        news = MetadataChanged(self.image.offsets_leaders(), self.image.sizes())
        self.out.send(request(news, source=self.name, destination=self.coordinator, correlation_id=self._number(),
                              client_id=self.name, incarnation=self.incarnation))

    # What clients ask

    def _metadata(self, asked: Envelope) -> Message:
        wanted = asked.body.topics
        names = self.image.topics if wanted is None else wanted
        brokers = tuple(MetadataResponseBroker(each, f"broker-{each}", PORT) for each in self.image.active_brokers())
        return MetadataResponse(brokers, self.node_id, tuple(self.image.described(name) for name in names))

    def _find_coordinator(self, asked: Envelope) -> Message:
        """Any broker answers. If the offsets topic is missing, it is made, and whoever asks is told to ask again."""
        body: FindCoordinatorRequest = asked.body
        keys = body.coordinator_keys if asked.api_version >= 4 else (body.key,)
        found = [self._coordinator_of(key, body.key_type) for key in keys]
        if OFFSETS_TOPIC not in self.image.topics and None not in self.forwarded.values() and any(
                each.error_code is Error.COORDINATOR_NOT_AVAILABLE for each in found):
            wanted = CreatableTopic(OFFSETS_TOPIC, self.config.offsets_topic_num_partitions,
                                    self.config.offsets_topic_replication_factor)
            self.forwarded[self._ask_controller(CreateTopicsRequest((wanted,)))] = None
        if asked.api_version >= 4:
            return FindCoordinatorResponse(coordinators=tuple(found))
        (one,) = found
        return FindCoordinatorResponse(one.error_code, one.error_message, one.node_id, one.host, one.port)

    def _coordinator_of(self, key: str, key_type: int) -> Coordinator:
        if key_type != 0:
            problem = f"key type {key_type} is not emulated"
            return Coordinator(key, error_code=Error.INVALID_REQUEST, error_message=problem)
        partitions = self.image.topics.get(OFFSETS_TOPIC)
        leader = partitions[partition_for(key, len(partitions))].leader if partitions else -1
        if leader < 0:
            return Coordinator(key, error_code=Error.COORDINATOR_NOT_AVAILABLE)
        return Coordinator(key, leader, f"broker-{leader}", PORT)

    # Its logs

    def _clean(self) -> None:
        for partition in self.partitions.values():
            if partition.topic == OFFSETS_TOPIC:
                cleaned = partition.log.compact(self.config.offsets_topic_segment_bytes,
                                                self.out.now - self.config.log_cleaner_delete_retention_ms)
                if cleaned is not None:
                    self.out.emit(LogCompacted(*partition.key, *cleaned))
        self.out.set_timer(CLEAN, self.out.now + self.config.log_cleaner_backoff_ms)

    def _read_back(self) -> None:
        """At the end of a run: what is in the partitions that we lead, as far as it is committed."""
        for partition in self.partitions.values():
            if partition.leads:
                log = partition.log
                for batch in log.read(log.start_offset, 1 << 62, log.high_watermark):
                    self.out.emit(RecordsLeft(*partition.key, batch.base_offset, len(batch.records), batch.producer_id,
                                              batch.base_sequence))
                self.out.emit(RecordsLeft(*partition.key, log.high_watermark, 0))


def _number_of(broker: str) -> int:
    return int(broker.removeprefix("broker-"))
