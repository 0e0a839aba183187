"""The Broker machine, alone in its cluster: it keeps the logs, knows the topics, and is its own controller.

Every partition has one replica, here; so a record is committed when it is written.
"""

from collections.abc import Callable

from cluster.broker.log import Log, MemoryStorage, Storage, size_of
from cluster.broker.topics import MAX_PARTITIONS, OFFSETS_TOPIC, Topics, legal_name
from cluster.config import BrokerConfig
from cluster.events import Event, LeaderElected, RequestRefused, TopicCreated, TopicDeleted, TopicGrown
from cluster.java import partition_for
from cluster.machine import Disconnect, Effect, Emit, Envelope, Input, Received, Send, Told
from cluster.wire.apis import request, response
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from cluster.wire.log import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    MetadataChanged,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    PartitionData,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
    TopicResult,
)

PORT = 9092
START = "start"                                # what a broker is told when its process begins


class Broker:
    def __init__(self, name: str, coordinator: str, node_id: int, config: BrokerConfig,
                 storage: Callable[[], Storage] = MemoryStorage) -> None:
        self.name = name
        self.coordinator = coordinator
        self.node_id = node_id
        self.config = config
        self.storage = storage
        self.topics = Topics()
        self.logs: dict[tuple[str, int], Log] = {}
        self.effects: list[Effect] = []
        self.has_news = False                  # topics have changed, and the coordinator does not know yet
        self.told = 0                          # how often it was told
        self.served: dict[type, Callable[[Envelope], Message | None]] = {
            ProduceRequest: self._produce, FetchRequest: self._fetch, MetadataRequest: self._metadata,
            FindCoordinatorRequest: self._find_coordinator, CreateTopicsRequest: self._create_topics,
            CreatePartitionsRequest: self._create_partitions, DeleteTopicsRequest: self._delete_topics,
        }

    def step(self, now: int, event: Input) -> list[Effect]:
        self.effects = []
        if isinstance(event, Told) and event.command == START:
            self._tell_coordinator()
        elif isinstance(event, Received):
            self._received(event.envelope)
        return self.effects

    def _received(self, asked: Envelope) -> None:
        serve = self.served.get(type(asked.body))
        if serve is None:
            self._emit(RequestRefused(asked.source, asked.api_key, "not served by a broker"))
            self.effects.append(Disconnect(asked.source))
            return
        answer = serve(asked)
        if answer is not None:
            self.effects.append(Send(asked.source, response(asked, answer)))
        if self.has_news:
            self._tell_coordinator()

    def _emit(self, event: Event) -> None:
        self.effects.append(Emit(event))

    def _tell_coordinator(self) -> None:
        self.has_news = False
        self.told += 1
        news = MetadataChanged(self.topics.offsets_leaders(), self.topics.sizes())
        self.effects.append(Send(self.coordinator, request(
            news, source=self.name, destination=self.coordinator, correlation_id=self.told, client_id=self.name)))

    # Records

    def _produce(self, asked: Envelope) -> Message | None:
        body: ProduceRequest = asked.body
        answer = ProduceResponse(tuple(
            TopicProduceResponse(topic.name, tuple(
                self._append(topic.name, data, body.acks) for data in topic.partition_data))
            for topic in body.topic_data))
        return None if body.acks == 0 else answer

    def _append(self, topic: str, data: PartitionProduceData, acks: int) -> PartitionProduceResponse:
        partition = self.topics.find(topic, data.index)
        if partition is None:
            return PartitionProduceResponse(data.index, Error.UNKNOWN_TOPIC_OR_PARTITION)
        if acks not in (-1, 0, 1):
            return PartitionProduceResponse(data.index, Error.INVALID_REQUIRED_ACKS)
        if data.leader_epoch not in (-1, partition.leader_epoch):
            return PartitionProduceResponse(data.index, Error.NOT_LEADER_OR_FOLLOWER)
        if any(size_of(record) > self.config.message_max_bytes for record in data.records):
            return PartitionProduceResponse(data.index, Error.MESSAGE_TOO_LARGE)
        base_offset = self.logs[topic, data.index].append(data.records, partition.leader_epoch)
        return PartitionProduceResponse(data.index, Error.NONE, base_offset)

    def _fetch(self, asked: Envelope) -> Message:
        return FetchResponse(tuple(
            FetchableTopicResponse(topic.topic, tuple(self._read(topic.topic, wanted) for wanted in topic.partitions))
            for topic in asked.body.topics))

    def _read(self, topic: str, wanted: FetchPartition) -> PartitionData:
        partition = self.topics.find(topic, wanted.partition)
        if partition is None:
            return PartitionData(wanted.partition, Error.UNKNOWN_TOPIC_OR_PARTITION)
        if wanted.current_leader_epoch not in (-1, partition.leader_epoch):
            newer = wanted.current_leader_epoch > partition.leader_epoch
            return PartitionData(wanted.partition, Error.UNKNOWN_LEADER_EPOCH if newer else Error.FENCED_LEADER_EPOCH)
        log = self.logs[topic, wanted.partition]
        if not 0 <= wanted.fetch_offset <= log.end_offset:
            return PartitionData(wanted.partition, Error.OFFSET_OUT_OF_RANGE, log.high_watermark, 0)
        return PartitionData(wanted.partition, Error.NONE, log.high_watermark, 0,
                             log.read(wanted.fetch_offset, wanted.partition_max_bytes))

    # Topics

    def _metadata(self, asked: Envelope) -> Message:
        wanted = asked.body.topics
        names = self.topics.partitions if wanted is None else wanted
        return MetadataResponse((MetadataResponseBroker(self.node_id, self.name, PORT),), self.node_id,
                                tuple(self.topics.described(name) for name in names))

    def _create_topics(self, asked: Envelope) -> Message:
        return CreateTopicsResponse(tuple(
            self._create(topic.name, topic.num_partitions, topic.replication_factor) for topic in asked.body.topics))

    def _create(self, name: str, partitions: int, replication_factor: int) -> TopicResult:
        """One of a topic's numbers may be left to the broker's settings, with -1."""
        partitions = self.config.num_partitions if partitions == -1 else partitions
        replicas = self.config.default_replication_factor if replication_factor == -1 else replication_factor
        if not legal_name(name):
            return TopicResult(name, Error.INVALID_TOPIC_EXCEPTION, "a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -")
        if name in self.topics.partitions:
            return TopicResult(name, Error.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if not 1 <= partitions <= MAX_PARTITIONS:
            return TopicResult(name, Error.INVALID_PARTITIONS, f"{partitions}; 1 to {MAX_PARTITIONS} can be made")
        if replicas != 1:
            return TopicResult(name, Error.INVALID_REPLICATION_FACTOR, f"{replicas} replicas, and there is one broker")
        self.topics.create(name, partitions, (self.node_id,))
        self._emit(TopicCreated(name, partitions))
        self._open_logs(name, 0)
        return TopicResult(name)

    def _create_partitions(self, asked: Envelope) -> Message:
        return CreatePartitionsResponse(tuple(self._grow(topic.name, topic.count) for topic in asked.body.topics))

    def _grow(self, name: str, count: int) -> TopicResult:
        known = len(self.topics.partitions.get(name, ()))
        if not known:
            return TopicResult(name, Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic.")
        if not known < count <= MAX_PARTITIONS:
            return TopicResult(name, Error.INVALID_PARTITIONS,
                               f"it has {known} and can grow to {known + 1} to {MAX_PARTITIONS}, not to {count}")
        self.topics.grow(name, count, (self.node_id,))
        self._emit(TopicGrown(name, count))
        self._open_logs(name, known)
        return TopicResult(name)

    def _open_logs(self, name: str, first: int) -> None:
        """New partitions have a leader at once: this broker, in epoch 0."""
        self.has_news = True
        for number in range(first, len(self.topics.partitions[name])):
            self.logs[name, number] = Log(self.storage())
            self._emit(LeaderElected(name, number, self.node_id, 0))

    def _delete_topics(self, asked: Envelope) -> Message:
        return DeleteTopicsResponse(tuple(self._delete(name) for name in asked.body.topic_names))

    def _delete(self, name: str) -> TopicResult:
        partitions = self.topics.partitions.pop(name, None)
        if partitions is None:
            return TopicResult(name, Error.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic.")
        for number in range(len(partitions)):
            del self.logs[name, number]
        self.has_news = True
        self._emit(TopicDeleted(name))
        return TopicResult(name)

    # Who coordinates a group

    def _find_coordinator(self, asked: Envelope) -> Message:
        """Any broker answers. If the offsets topic is missing, it is made, and whoever asks is told to ask again."""
        body: FindCoordinatorRequest = asked.body
        keys = body.coordinator_keys if asked.api_version >= 4 else (body.key,)
        found = [self._coordinator_of(key, body.key_type) for key in keys]
        if any(each.error_code is Error.COORDINATOR_NOT_AVAILABLE for each in found) and (
                OFFSETS_TOPIC not in self.topics.partitions):
            self._create(OFFSETS_TOPIC, self.config.offsets_topic_num_partitions,
                         self.config.offsets_topic_replication_factor)
        if asked.api_version >= 4:
            return FindCoordinatorResponse(coordinators=tuple(found))
        (one,) = found
        return FindCoordinatorResponse(one.error_code, one.error_message, one.node_id, one.host, one.port)

    def _coordinator_of(self, key: str, key_type: int) -> Coordinator:
        if key_type != 0:
            problem = f"key type {key_type} is not emulated"
            return Coordinator(key, error_code=Error.INVALID_REQUEST, error_message=problem)
        partitions = self.topics.partitions.get(OFFSETS_TOPIC)
        if not partitions:
            return Coordinator(key, error_code=Error.COORDINATOR_NOT_AVAILABLE)
        leader = partitions[partition_for(key, len(partitions))].leader_id
        return Coordinator(key, leader, self.name, PORT)
