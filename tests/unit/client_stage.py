"""A client between peers that answer what a test says: everything that needs an exact answer at an exact time.

Left alone, the peers are a friendly cluster of one broker: it knows the topics of the stage, lets the client in as a
follower, assigns what the stage says, keeps records and offsets. `answer` scripts the next answers to a request.
"""

from collections import deque
from random import Random
from typing import Any, TypeVar

import msgspec

from cluster.assignors.range import Range
from cluster.assignors.roundrobin import RoundRobin
from cluster.assignors.sticky import CooperativeSticky, Sticky
from cluster.config import ConsumerConfig, settings
from cluster.consumer.commands import Subscribe
from cluster.consumer.consumer import Consumer
from cluster.events import Event, Stamped
from cluster.machine import Disconnect, Effect, Envelope, Input, Received, Send, SetTimer, TimerFired, Told
from cluster.sim.world import World
from cluster.subscription import Assignment, Subscription
from cluster.wire.apis import response
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from cluster.wire.log import (
    EpochEndOffsetResponse,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
    PartitionData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Record,
    RecordBatch,
    TopicProduceResponse,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

ASSIGNORS = {each.name: each for each in (Range(), RoundRobin(), Sticky(), CooperativeSticky())}
Kind = TypeVar("Kind", bound=Event)
Body = TypeVar("Body", bound=Message)


class Hold(msgspec.Struct):
    """Do not answer; `release` does, later."""


class Close(msgspec.Struct):
    """Close the connection instead of answering."""


class After(msgspec.Struct):
    """Answer so much later."""

    ms: int
    answer: Any = Error.NONE


class Edited(msgspec.Struct):
    """The friendly answer, with some fields changed."""

    changes: dict[str, Any]


def edited(**changes: Any) -> Edited:
    return Edited(changes)


class Sent(msgspec.Struct):
    at: int
    to: str
    body: Any
    envelope: Envelope


class Peer:
    """A broker or a coordinator that does what the stage says."""

    def __init__(self, stage: "Stage") -> None:
        self.stage = stage
        self.later: dict[str, tuple[Envelope, Any]] = {}

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Received):
            return self.asked(now, event.envelope)
        if isinstance(event, TimerFired):
            return self.tell(*self.later.pop(event.name)) if event.name in self.later else []
        if isinstance(event, Told):
            effects: list[Effect] = event.command
            return effects
        return []

    def asked(self, now: int, envelope: Envelope) -> list[Effect]:
        stage = self.stage
        kind = type(envelope.body)
        scripted = stage.script.get(kind)
        if not scripted:
            return self.answer(now, envelope, Error.NONE)
        return self.answer(
            now, envelope, scripted.popleft() if len(scripted) > 1 or not stage.repeats.get(kind) else scripted[0]
        )

    def answer(self, now: int, envelope: Envelope, answer: Any) -> list[Effect]:
        if isinstance(answer, Hold):
            self.stage.held.append((self, envelope))
            return []
        if isinstance(answer, After):
            name = f"{envelope.source}/{envelope.correlation_id}"
            self.later[name] = envelope, answer.answer
            return [SetTimer(name, now + answer.ms)]
        if isinstance(envelope.body, FetchRequest) and answer is Error.NONE:
            return self.fetch(now, envelope)
        return self.tell(envelope, answer)

    def fetch(self, now: int, envelope: Envelope) -> list[Effect]:
        """A long poll: until there is something, or max_wait_ms."""
        body = self.stage.friendly(envelope.body)
        if any(data.records or data.error_code for topic in body.responses for data in topic.partitions):
            return self.tell(envelope, body)
        name = f"{envelope.source}/{envelope.correlation_id}"
        self.later[name] = envelope, Error.NONE
        return [SetTimer(name, now + envelope.body.max_wait_ms)]

    def wake(self) -> None:
        """Records have come: fetches that wait for some are answered."""
        for name, (envelope, _) in list(self.later.items()):
            if isinstance(envelope.body, FetchRequest):
                del self.later[name]
                self.stage.world.tell(envelope.destination, self.fetch(self.stage.world.now, envelope))

    def tell(self, envelope: Envelope, answer: Any) -> list[Effect]:
        if isinstance(answer, Close):
            return [Disconnect(envelope.source)]
        if isinstance(answer, Error):
            answer = self.stage.friendly(envelope.body) if answer is Error.NONE else refusal(envelope.body, answer)
        elif isinstance(answer, Edited):
            answer = msgspec.structs.replace(self.stage.friendly(envelope.body), **answer.changes)
        if isinstance(envelope.body, ProduceRequest) and envelope.body.acks == 0:
            return []
        return [Send(envelope.source, response(envelope, answer))]


class Stage:
    def __init__(self, *, topics: dict[str, int] | None = None, nodes: tuple[int, ...] = (1,), **config: Any) -> None:
        self.world = World(through_codec=True)
        self.begin = self.world.now
        self.topics = {"t": 2} if topics is None else topics
        self.nodes = nodes
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}  # partition -> (node, epoch), where not (nodes[0], 0)
        self.coordinator = nodes[0]
        self.generation = 1
        self.assignment: dict[str, tuple[int, ...]] = {"t": (0, 1)}
        self.logs: dict[tuple[str, int], list[RecordBatch]] = {}
        self.starts: dict[tuple[str, int], int] = {}  # where a log begins
        self.committed: dict[tuple[str, int], tuple[int, int]] = {}  # offset and epoch
        self.script: dict[type, deque[Any]] = {}
        self.repeats: dict[type, bool] = {}
        self.held: list[tuple[Peer, Envelope]] = []
        self.heard: list[Sent] = []
        self.seen: list[Stamped] = []
        self.peers = {f"{role}-{node}": Peer(self) for node in nodes for role in ("broker", "coordinator")}
        for name, peer in self.peers.items():
            self.world.add(name, peer, host=name)
        self.world.observers.append(self.seen.append)
        self.world.listeners.append(self._listen)
        self.config = settings(ConsumerConfig, {key.replace("_", "."): value for key, value in config.items()})

    def consumer(self, name: str = "c", assignors: Any = ASSIGNORS) -> Consumer:
        machine = Consumer(name, "g", self.config, ("broker-1",), assignors, Random(f"7/{name}"))
        self.world.add(name, machine)
        return machine

    def _listen(self, now: int, envelope: Envelope) -> None:
        if envelope.source not in self.peers:
            self.heard.append(Sent(now - self.begin, envelope.destination, envelope.body, envelope))

    # Scripts

    def answer(self, kind: type, *answers: Any, always: bool = False) -> None:
        """The next answers to this kind of request; the last one for ever, if `always`."""
        self.script[kind] = deque(answers)
        self.repeats[kind] = always

    def friendlier(self, kind: type) -> None:
        self.script.pop(kind, None)

    def release(self, answer: Any = Error.NONE, kind: type | None = None) -> None:
        """Answer what was held."""
        held, self.held = self.held, []
        for peer, envelope in held:
            if kind is not None and not isinstance(envelope.body, kind):
                self.held.append((peer, envelope))
                continue
            self.world.tell(envelope.destination, peer.answer(self.world.now, envelope, answer))

    def produce(self, topic: str = "t", partition: int = 0, count: int = 1, *, epoch: int = 0) -> None:
        log = self.logs.setdefault((topic, partition), [])
        base = log[-1].next_offset() if log else 0
        log.append(RecordBatch(base, epoch, tuple([Record(None, b"x")] * count)))
        for peer in self.peers.values():
            peer.wake()

    # Time, and what was seen in it

    @property
    def now(self) -> int:
        return self.world.now - self.begin

    def run(self, ms: int) -> None:
        self.world.run(self.world.now + ms)

    def tell(self, command: Any, name: str = "c") -> None:
        self.world.tell(name, command)

    def join(self, *topics: str, ms: int = 200) -> Consumer:
        """A consumer that is subscribed, and has had time to join."""
        consumer = self.consumer()
        self.tell(Subscribe(topics or ("t",)))
        self.run(ms)
        return consumer

    def sent(self, kind: type[Body], since: int = 0) -> list[Body]:
        return [each.body for each in self.heard if isinstance(each.body, kind) and each.at >= since]

    def times(self, kind: type[Message], since: int = 0) -> list[int]:
        return [each.at for each in self.heard if isinstance(each.body, kind) and each.at >= since]

    def events(self, kind: type[Kind], since: int = 0) -> list[Kind]:
        return [each.event for each in self.seen if isinstance(each.event, kind) and each.at - self.begin >= since]

    def event_times(self, kind: type[Event]) -> list[int]:
        return [each.at - self.begin for each in self.seen if isinstance(each.event, kind)]

    # What a friendly cluster says

    def leader(self, topic: str, partition: int) -> tuple[int, int]:
        return self.leaders.get((topic, partition), (self.nodes[0], 0))

    def friendly(self, body: Any) -> Any:
        return FRIENDLY[type(body)](self, body)

    def metadata(self, body: MetadataRequest) -> MetadataResponse:
        names = tuple(self.topics) if body.topics is None else body.topics
        return MetadataResponse(
            tuple(MetadataResponseBroker(node, f"broker-{node}", 9092) for node in self.nodes),
            self.nodes[0],
            tuple(self._topic(name) for name in names),
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseTopic(
            name,
            is_internal=name.startswith("__"),
            partitions=tuple(
                MetadataResponsePartition(number, *self.leader(name, number), self.nodes, self.nodes)
                for number in range(self.topics[name])
            ),
        )

    def find(self, body: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=(Coordinator("g", self.coordinator, "", 9092),))

    def joined(self, body: JoinGroupRequest) -> JoinGroupResponse:
        return JoinGroupResponse(
            Error.NONE, self.generation, "consumer", body.protocols[0].name, "leader", False, body.member_id or "m"
        )

    def synced(self, body: SyncGroupRequest) -> SyncGroupResponse:
        share = Assignment(partitions=self.assignment).encode()
        for each in body.assignments:
            share = each.assignment if each.member_id == body.member_id else share
        return SyncGroupResponse(Error.NONE, "consumer", body.protocol_name, share)

    def commit(self, body: OffsetCommitRequest) -> OffsetCommitResponse:
        for topic in body.topics:
            for one in topic.partitions:
                self.committed[topic.name, one.partition_index] = one.committed_offset, one.committed_leader_epoch
        return refusal(body, Error.NONE)

    def offsets(self, body: OffsetFetchRequest) -> OffsetFetchResponse:
        (group,) = body.groups
        return OffsetFetchResponse(
            groups=(
                OffsetFetchResponseGroup(
                    group.group_id,
                    tuple(
                        OffsetFetchResponseTopic(
                            topic.name,
                            tuple(
                                OffsetFetchResponsePartition(n, *self.committed.get((topic.name, n), (-1, -1)))
                                for n in topic.partition_indexes
                            ),
                        )
                        for topic in group.topics or ()
                    ),
                ),
            )
        )

    def list_offsets(self, body: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            tuple(
                ListOffsetsTopicResponse(
                    topic.name,
                    tuple(
                        ListOffsetsPartitionResponse(
                            one.partition_index,
                            offset=self.end(topic.name, one.partition_index)
                            if one.timestamp == -1
                            else self.starts.get((topic.name, one.partition_index), 0),
                        )
                        for one in topic.partitions
                    ),
                )
                for topic in body.topics
            )
        )

    def end(self, topic: str, partition: int) -> int:
        log = self.logs.get((topic, partition))
        return log[-1].next_offset() if log else 0

    def epochs(self, body: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            tuple(
                OffsetForLeaderTopicResult(
                    topic.topic,
                    tuple(
                        EpochEndOffsetResponse(
                            one.partition, Error.NONE, one.leader_epoch, self.end(topic.topic, one.partition)
                        )
                        for one in topic.partitions
                    ),
                )
                for topic in body.topics
            )
        )

    def fetched(self, body: FetchRequest) -> FetchResponse:
        return FetchResponse(
            tuple(
                FetchableTopicResponse(topic.topic, tuple(self._read(topic.topic, one) for one in topic.partitions))
                for topic in body.topics
            )
        )

    def _read(self, topic: str, wanted: FetchPartition) -> PartitionData:
        end = self.end(topic, wanted.partition)
        start = self.starts.get((topic, wanted.partition), 0)
        if not start <= wanted.fetch_offset <= end:
            return PartitionData(wanted.partition, Error.OFFSET_OUT_OF_RANGE, end, start)
        batches = [
            batch for batch in self.logs.get((topic, wanted.partition), ()) if batch.next_offset() > wanted.fetch_offset
        ]
        return PartitionData(wanted.partition, Error.NONE, end, start, tuple(batches))

    def produced(self, body: ProduceRequest) -> ProduceResponse:
        answers = []
        for topic in body.topic_data:
            for data in topic.partition_data:
                base = self.end(topic.name, data.index)
                self.logs.setdefault((topic.name, data.index), []).append(
                    RecordBatch(base, 0, data.records, data.producer_id, data.base_sequence)
                )
                answers.append(PartitionProduceResponse(data.index, Error.NONE, base))
        return ProduceResponse((TopicProduceResponse(body.topic_data[0].name, tuple(answers)),))


FRIENDLY: dict[type, Any] = {
    MetadataRequest: Stage.metadata,
    FindCoordinatorRequest: Stage.find,
    JoinGroupRequest: Stage.joined,
    SyncGroupRequest: Stage.synced,
    HeartbeatRequest: lambda stage, body: HeartbeatResponse(),
    LeaveGroupRequest: lambda stage, body: LeaveGroupResponse(),
    OffsetCommitRequest: Stage.commit,
    OffsetFetchRequest: Stage.offsets,
    ListOffsetsRequest: Stage.list_offsets,
    OffsetForLeaderEpochRequest: Stage.epochs,
    FetchRequest: Stage.fetched,
    ProduceRequest: Stage.produced,
}


def refusal(body: Any, error: Error) -> Any:
    """The answer with this error, wherever that kind of answer has its errors."""
    simple = {
        JoinGroupRequest: JoinGroupResponse,
        SyncGroupRequest: SyncGroupResponse,
        HeartbeatRequest: HeartbeatResponse,
        LeaveGroupRequest: LeaveGroupResponse,
    }
    if type(body) in simple:
        return simple[type(body)](error)
    if isinstance(body, FindCoordinatorRequest):
        return FindCoordinatorResponse(coordinators=(Coordinator("g", error_code=error),))
    if isinstance(body, OffsetCommitRequest):
        return OffsetCommitResponse(
            tuple(
                OffsetCommitResponseTopic(
                    topic.name,
                    tuple(OffsetCommitResponsePartition(one.partition_index, error) for one in topic.partitions),
                )
                for topic in body.topics
            )
        )
    if isinstance(body, OffsetFetchRequest):
        return OffsetFetchResponse(groups=(OffsetFetchResponseGroup("g", error_code=error),))
    if isinstance(body, FetchRequest):
        return FetchResponse(
            tuple(
                FetchableTopicResponse(
                    topic.topic, tuple(PartitionData(one.partition, error) for one in topic.partitions)
                )
                for topic in body.topics
            )
        )
    if isinstance(body, ListOffsetsRequest):
        return ListOffsetsResponse(
            tuple(
                ListOffsetsTopicResponse(
                    topic.name,
                    tuple(ListOffsetsPartitionResponse(one.partition_index, error) for one in topic.partitions),
                )
                for topic in body.topics
            )
        )
    if isinstance(body, ProduceRequest):
        return ProduceResponse(
            tuple(
                TopicProduceResponse(
                    topic.name, tuple(PartitionProduceResponse(one.index, error) for one in topic.partition_data)
                )
                for topic in body.topic_data
            )
        )
    if isinstance(body, MetadataRequest):
        return MetadataResponse((), 1, tuple(MetadataResponseTopic(name, error) for name in body.topics or ()))
    assert isinstance(body, OffsetForLeaderEpochRequest)
    return OffsetForLeaderEpochResponse(
        tuple(
            OffsetForLeaderTopicResult(
                topic.topic, tuple(EpochEndOffsetResponse(one.partition, error) for one in topic.partitions)
            )
            for topic in body.topics
        )
    )


def as_leader(*members: tuple[str, tuple[str, ...]], me: str = "m") -> Edited:
    """The friendly answer to a join, to the leader of these members: (id, topics)."""
    return edited(
        leader=me,
        members=tuple(
            JoinGroupResponseMember(member, Subscription(topics=topics).encode()) for member, topics in members
        ),
    )
