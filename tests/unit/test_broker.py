"""The single broker: its logs, its topics, and who coordinates a group."""

from typing import Any

import pytest

from cluster.broker.broker import START, Broker
from cluster.broker.log import Log, MemoryStorage
from cluster.config import BrokerConfig, settings
from cluster.machine import Disconnect, Emit, Received, Send, Told
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import FindCoordinatorRequest, HeartbeatRequest
from cluster.wire.log import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataChanged,
    MetadataRequest,
    PartitionProduceData,
    ProduceRequest,
    Record,
    TopicProduceData,
)


def a_broker(**config: Any) -> Broker:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return Broker(
        "broker-1", "coordinator-1", 1, settings(BrokerConfig, {"offsets.topic.replication.factor": 1, **given})
    )


def ask(broker: Broker, body: Message, version: int | None = None) -> Any:
    """The answer, and what the coordinator is told."""
    envelope = request(body, source="client", destination="broker-1", correlation_id=1, version=version)
    sent = [effect for effect in broker.step(0, Received("client", envelope)) if isinstance(effect, Send)]
    broker_told = [effect.envelope.body for effect in sent if effect.to == "coordinator-1"]
    answers = [effect.envelope.body for effect in sent if effect.to == "client"]
    return (answers[0] if answers else None), (broker_told[0] if broker_told else None)


def create(broker: Broker, name: str, partitions: int = 1, replicas: int = 1) -> Error:
    answer, _ = ask(broker, CreateTopicsRequest((CreatableTopic(name, partitions, replicas),)))
    error: Error = answer.topics[0].error_code
    return error


def produce(
    broker: Broker, *records: Record, topic: str = "t", partition: int = 0, acks: int = -1, epoch: int = -1
) -> Any:
    data = (TopicProduceData(topic, (PartitionProduceData(partition, records, epoch),)),)
    answer, _ = ask(broker, ProduceRequest(acks, 1000, data))
    return None if answer is None else answer.responses[0].partition_responses[0]


def fetch(
    broker: Broker, offset: int, topic: str = "t", partition: int = 0, epoch: int = -1, max_bytes: int = 1 << 20
) -> Any:
    wanted = (FetchTopic(topic, (FetchPartition(partition, offset, epoch, max_bytes),)),)
    answer, _ = ask(broker, FetchRequest(wanted))
    return answer.responses[0].partitions[0]


def test_what_is_written_is_read_again_and_is_committed_at_once() -> None:
    broker = a_broker()
    create(broker, "t")
    assert produce(broker, Record(b"k", b"1"), Record(b"k", b"2")).base_offset == 0
    assert produce(broker, Record(b"k", b"3")).base_offset == 2
    data = fetch(broker, 1)
    assert (data.high_watermark, data.log_start_offset) == (3, 0)
    assert [(batch.base_offset, len(batch.records)) for batch in data.records] == [(0, 2), (2, 1)]
    assert fetch(broker, 2).records[0].records == (Record(b"k", b"3"),)
    assert fetch(broker, 3).records == ()


def test_a_fetch_brings_one_batch_whatever_its_size_and_more_while_they_fit() -> None:
    broker = a_broker()
    create(broker, "t")
    for _ in range(3):
        produce(broker, Record(b"k", b"x" * 100))
    assert len(fetch(broker, 0, max_bytes=1).records) == 1
    assert len(fetch(broker, 0, max_bytes=300).records) == 2


@pytest.mark.parametrize(
    ("offset", "error"), [(-1, Error.OFFSET_OUT_OF_RANGE), (0, Error.NONE), (1, Error.OFFSET_OUT_OF_RANGE)]
)
def test_a_fetch_stays_within_the_log(offset: int, error: Error) -> None:
    broker = a_broker()
    create(broker, "t")
    assert fetch(broker, offset).error_code is error


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, Error.NONE), (1, Error.UNKNOWN_LEADER_EPOCH), (-7, Error.FENCED_LEADER_EPOCH)]
)
def test_a_fetch_of_another_epoch_is_refused(epoch: int, error: Error) -> None:
    broker = a_broker()
    create(broker, "t")
    assert fetch(broker, 0, epoch=epoch).error_code is error


def test_a_write_of_another_epoch_is_refused() -> None:
    broker = a_broker()
    create(broker, "t")
    assert produce(broker, Record(b"k"), epoch=1).error_code is Error.NOT_LEADER_OR_FOLLOWER
    assert produce(broker, Record(b"k"), epoch=0).error_code is Error.NONE


def test_a_record_that_is_too_large_is_refused_before_it_is_written() -> None:
    broker = a_broker(message_max_bytes=100)
    create(broker, "t")
    assert produce(broker, Record(b"k", b"x" * 100)).error_code is Error.MESSAGE_TOO_LARGE
    assert fetch(broker, 0).high_watermark == 0


def test_there_is_no_reading_or_writing_where_there_is_no_partition() -> None:
    broker = a_broker()
    create(broker, "t")
    assert produce(broker, Record(b"k"), partition=1).error_code is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(broker, 0, topic="u").error_code is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_acks_0_is_not_answered_and_others_than_minus_1_to_1_are_refused() -> None:
    broker = a_broker()
    create(broker, "t")
    assert produce(broker, Record(b"k"), acks=0) is None
    assert fetch(broker, 0).high_watermark == 1
    assert produce(broker, Record(b"k"), acks=2).error_code is Error.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "error"),
    [
        ("orders", 3, 1, Error.NONE),
        ("orders", -1, -1, Error.NONE),
        ("old", 1, 1, Error.TOPIC_ALREADY_EXISTS),
        ("a b", 1, 1, Error.INVALID_TOPIC_EXCEPTION),
        ("..", 1, 1, Error.INVALID_TOPIC_EXCEPTION),
        ("", 1, 1, Error.INVALID_TOPIC_EXCEPTION),
        ("orders", 0, 1, Error.INVALID_PARTITIONS),
        ("orders", 1_000_000, 1, Error.INVALID_PARTITIONS),
        ("orders", 1, 2, Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_topic_is_made_if_it_can_be(name: str, partitions: int, replicas: int, error: Error) -> None:
    broker = a_broker()
    create(broker, "old")
    assert create(broker, name, partitions, replicas) is error
    assert (name in broker.topics.partitions) is (error is Error.NONE or name == "old")


def test_a_topic_only_grows() -> None:
    broker = a_broker()
    create(broker, "t", 2)
    answer, told = ask(broker, CreatePartitionsRequest((CreatePartitionsTopic("t", 4), CreatePartitionsTopic("u", 4))))
    assert [each.error_code for each in answer.results] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert told == MetadataChanged((), {"t": 4})
    answer, told = ask(broker, CreatePartitionsRequest((CreatePartitionsTopic("t", 4),)))
    assert (answer.results[0].error_code, told) == (Error.INVALID_PARTITIONS, None)


def test_a_deleted_topic_is_gone_and_its_successor_is_empty() -> None:
    broker = a_broker()
    create(broker, "t")
    produce(broker, Record(b"k"))
    answer, told = ask(broker, DeleteTopicsRequest(("t", "u")))
    assert [each.error_code for each in answer.responses] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    assert told == MetadataChanged((), {})
    create(broker, "t")
    assert fetch(broker, 0).high_watermark == 0


def test_metadata_tells_who_leads_what() -> None:
    broker = a_broker()
    create(broker, "t", 2)
    answer, told = ask(broker, MetadataRequest())
    assert ([topic.name for topic in answer.topics], answer.controller_id, told) == (["t"], 1, None)
    assert [(one.partition_index, one.leader_id, one.isr_nodes) for one in answer.topics[0].partitions] == [
        (0, 1, (1,)),
        (1, 1, (1,)),
    ]
    answer, _ = ask(broker, MetadataRequest(("t", "nope")))
    assert [topic.error_code for topic in answer.topics] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_p1_the_offsets_topic_is_made_when_somebody_first_looks_for_a_coordinator() -> None:
    broker = a_broker()
    answer, told = ask(broker, FindCoordinatorRequest(coordinator_keys=("g", "h")))
    assert [each.error_code for each in answer.coordinators] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    assert told is not None
    assert len(told.offsets_leaders) == 50
    answer, _ = ask(broker, FindCoordinatorRequest(coordinator_keys=("g",)))
    assert [(each.error_code, each.node_id, each.host, each.port) for each in answer.coordinators] == [
        (Error.NONE, 1, "broker-1", 9092)
    ]
    old, _ = ask(broker, FindCoordinatorRequest("g"), version=0)
    assert (old.error_code, old.node_id) == (Error.NONE, 1)


def test_too_few_brokers_for_the_offsets_topic_are_never_explained_to_a_client() -> None:
    broker = a_broker(offsets_topic_replication_factor=3)
    for _ in range(3):
        answer, _ = ask(broker, FindCoordinatorRequest(coordinator_keys=("g",)))
        assert answer.coordinators[0].error_code is Error.COORDINATOR_NOT_AVAILABLE
    assert broker.topics.partitions == {}


def test_only_groups_have_coordinators_here() -> None:
    answer, _ = ask(a_broker(), FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",)))
    assert (answer.coordinators[0].error_code, answer.coordinators[0].error_message) == (
        Error.INVALID_REQUEST,
        "key type 1 is not emulated",
    )


def test_a_request_for_somebody_else_closes_the_connection() -> None:
    envelope = request(HeartbeatRequest("g", 1, "m"), source="client", destination="broker-1", correlation_id=1)
    effects = a_broker().step(0, Received("client", envelope))
    assert [type(effect) for effect in effects] == [Emit, Disconnect]


def test_a_broker_tells_its_coordinator_what_there_is_when_it_starts() -> None:
    (effect,) = a_broker().step(0, Told(START))
    assert isinstance(effect, Send)
    assert effect.envelope.body == MetadataChanged((), {})


def test_an_empty_log_ends_at_its_beginning() -> None:
    log = Log(MemoryStorage())
    assert (log.end_offset, log.high_watermark, log.read(0, 100)) == (0, 0, ())
