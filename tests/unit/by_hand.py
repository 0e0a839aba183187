"""A coordinator, and by hand what its broker and its clients say to it."""

from random import Random
from typing import Any

from cluster.config import BrokerConfig, settings
from cluster.coordinator.coordinator import OFFSETS_TOPIC, GroupCoordinator
from cluster.coordinator.records import GroupMetadata, GroupRecord, MemberMetadata, encode
from cluster.java import partition_for
from cluster.machine import Emit, Envelope, Received, Send
from cluster.wire.apis import request, response
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from cluster.wire.log import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    MetadataChanged,
    PartitionData,
    PartitionLeader,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    RecordBatch,
    TopicProduceResponse,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)

GROUP = "g"
HOME = partition_for(GROUP, 50)
PROTOCOLS = (JoinGroupRequestProtocol("range", b"x"),)
JOIN = JoinGroupRequest(GROUP, 10000, "consumer", PROTOCOLS, 10000, "m")
COMMIT = OffsetCommitRequest(GROUP, (OffsetCommitRequestTopic("t", (OffsetCommitRequestPartition(0, 5),)),))
FETCH = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(GROUP, topics=(OffsetFetchRequestTopic("t", (0,)),)),))
MEMBER = MemberMetadata("m", None, "c", "/c", 10000, 10000, b"x", b"all")
STORED = GroupRecord(GROUP, GroupMetadata("consumer", 3, "range", "m", 5, (MEMBER,)))


class Log:
    """A coordinator, and by hand what its broker says to it."""

    def __init__(self, **config: Any) -> None:
        given = {key.replace("_", "."): value for key, value in config.items()}
        self.coordinator = GroupCoordinator("coordinator-1", "broker-1", 1, settings(BrokerConfig, given), Random(0))
        self.now = 1000
        self.asked: list[Envelope] = []  # what the coordinator asked its broker, in order
        self.events: list[Any] = []
        self.answers: list[Any] = []

    def feel(self, event: Any) -> None:
        for effect in self.coordinator.step(self.now, event):
            if isinstance(effect, Send) and effect.to == "broker-1":
                self.asked.append(effect.envelope)
            elif isinstance(effect, Send):
                self.answers.append(effect.envelope.body)
            elif isinstance(effect, Emit):
                self.events.append(effect.event)

    def ask(self, body: Message, version: int | None = None) -> Any:
        """The answer if it comes at once."""
        self.answers.clear()
        self.feel(
            Received(
                "c",
                request(
                    body, source="c", destination="coordinator-1", correlation_id=1, client_id="c", version=version
                ),
            )
        )
        return self.answers[0] if self.answers else None

    def tell(self, leader: int | None, epoch: int = 0, topics: dict[str, int] | None = None) -> None:
        """Who leads the group's home partition; nobody: the topic is not there."""
        leaders = (
            ()
            if leader is None
            else tuple(
                PartitionLeader(number, leader if number == HOME else 9, epoch if number == HOME else 0)
                for number in range(50)
            )
        )
        news = MetadataChanged(leaders, {"t": 2} if topics is None else topics)
        self.feel(Received("broker-1", request(news, source="broker-1", destination="coordinator-1", correlation_id=1)))

    def read(self, *batches: RecordBatch, high_watermark: int = 0, error: Error = Error.NONE) -> None:
        """Answer the newest Fetch."""
        asked = next(each for each in reversed(self.asked) if isinstance(each.body, FetchRequest))
        data = PartitionData(HOME, error, high_watermark, 0, batches)
        body = FetchResponse((FetchableTopicResponse(OFFSETS_TOPIC, (data,)),))
        self.feel(Received("broker-1", response(asked, body)))

    def load(self, *stored: Any, high_watermark: int | None = None) -> None:
        """Lead the partition, with these records in its log."""
        self.tell(1)
        records = tuple(encode(each, 5) for each in stored)
        end = len(records) if high_watermark is None else high_watermark
        if records:
            self.read(RecordBatch(0, 0, records), high_watermark=end)
        self.read(high_watermark=end)

    def land(self, error: Error = Error.NONE, which: int = -1) -> None:
        """The log commits the newest write, or refuses it."""
        asked = [each for each in self.asked if isinstance(each.body, ProduceRequest)][which]
        body = ProduceResponse((TopicProduceResponse(OFFSETS_TOPIC, (PartitionProduceResponse(HOME, error, 0),)),))
        self.feel(Received("broker-1", response(asked, body)))


def error_in(answer: Any) -> Error:
    """The error of an answer, wherever that stands."""
    for attribute in ("groups", "results"):
        if isinstance(parts := getattr(answer, attribute, None), tuple) and parts and not hasattr(answer, "error_code"):
            error: Error = parts[0].error_code
            return error
    if type(answer).__name__ == "OffsetFetchResponse":
        fetched: Error = answer.groups[0].error_code
        return fetched
    if type(answer).__name__ == "OffsetCommitResponse":
        committed: Error = answer.topics[0].partitions[0].error_code
        return committed
    top: Error = answer.error_code
    return top
