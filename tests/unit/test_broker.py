"""One broker: its logs, its topics, and who coordinates a group."""

import pytest

from cluster.broker.broker import INTRODUCE, READ_BACK
from cluster.broker.log import Log
from cluster.broker.storage import MemoryDisk
from cluster.events import LogCompacted, RecordsLeft, RequestRefused
from cluster.wire.errors import Error
from cluster.wire.groups import FindCoordinatorRequest, HeartbeatRequest
from cluster.wire.log import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    Record,
)
from tests.unit.brokers import CLOSED, Brokers


def one(**config: int) -> Brokers:
    brokers = Brokers(1, **config)
    assert brokers.create() is Error.NONE
    return brokers


def test_what_is_written_is_read_again_and_is_committed_at_once() -> None:
    brokers = one()
    assert brokers.produce(b"1", b"2").base_offset == 0
    assert brokers.produce(b"3").base_offset == 2
    data = brokers.fetch(1)
    assert (data.high_watermark, data.log_start_offset) == (3, 0)
    assert [(batch.base_offset, len(batch.records)) for batch in data.records] == [(0, 2), (2, 1)]
    assert [record.value for record in brokers.fetch(2).records[0].records] == [b"3"]
    assert brokers.fetch(3).records == ()


def test_a_fetch_brings_one_batch_whatever_its_size_and_more_while_they_fit() -> None:
    brokers = one()
    for _ in range(3):
        brokers.produce(b"x" * 100)
    assert len(brokers.fetch(0, max_bytes=1).records) == 1
    assert len(brokers.fetch(0, max_bytes=300).records) == 2


@pytest.mark.parametrize(
    ("offset", "error"), [(-1, Error.OFFSET_OUT_OF_RANGE), (0, Error.NONE), (1, Error.OFFSET_OUT_OF_RANGE)]
)
def test_a_fetch_stays_within_the_log(offset: int, error: Error) -> None:
    assert one().fetch(offset).error_code is error


def test_a_fetch_of_another_epoch_is_refused() -> None:
    brokers = one()
    assert brokers.fetch(0, epoch=0).error_code is Error.NONE
    assert brokers.fetch(0, epoch=1).error_code is Error.UNKNOWN_LEADER_EPOCH


def test_a_write_of_another_epoch_is_refused() -> None:
    brokers = one()
    assert brokers.produce(b"k", epoch=1).error_code is Error.NOT_LEADER_OR_FOLLOWER
    assert brokers.produce(b"k", epoch=0).error_code is Error.NONE


def test_a_record_that_is_too_large_is_refused_before_it_is_written() -> None:
    brokers = one(message_max_bytes=100)
    assert brokers.produce(b"x" * 100).error_code is Error.MESSAGE_TOO_LARGE
    assert brokers.fetch().high_watermark == 0


def test_there_is_no_reading_or_writing_where_there_is_no_partition() -> None:
    brokers = one()
    assert brokers.produce(b"k", partition=1).error_code is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert brokers.fetch(topic="u").error_code is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_acks_0_is_not_answered_and_others_than_minus_1_to_1_are_refused() -> None:
    brokers = one()
    unanswered = brokers.produce(b"k", acks=0, wait=False)
    brokers.wait(5000)
    assert unanswered.answer is None
    assert brokers.fetch().high_watermark == 1
    assert brokers.produce(b"k", acks=2).error_code is Error.INVALID_REQUIRED_ACKS


# Producers that number their records


def test_a_batch_that_comes_again_is_written_once_and_has_the_same_offset() -> None:
    brokers = one()
    assert brokers.produce(b"a", b"b", producer=(7, 0)).base_offset == 0
    assert brokers.produce(b"c", producer=(7, 2)).base_offset == 2
    assert brokers.produce(b"a", b"b", producer=(7, 0)).base_offset == 0
    assert brokers.values() == [b"a", b"b", b"c"]


def test_a_batch_that_skips_numbers_is_refused() -> None:
    brokers = one()
    brokers.produce(b"a", producer=(7, 0))
    assert brokers.produce(b"c", producer=(7, 2)).error_code is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert brokers.values() == [b"a"]


# Long polls


def fetch_request(max_wait_ms: int, min_bytes: int = 1, offset: int = 0) -> FetchRequest:
    return FetchRequest((FetchTopic("t", (FetchPartition(0, offset),)),), max_wait_ms=max_wait_ms, min_bytes=min_bytes)


def test_a_fetch_that_finds_nothing_waits_and_comes_back_empty_when_its_time_is_up() -> None:
    brokers = one()
    begin = brokers.world.now
    call = brokers.send(fetch_request(500))
    brokers.until(lambda: call.answered_at is not None)
    assert call.answered_at == begin + 502  # there and back
    assert call.answer.responses[0].partitions[0].records == ()


def test_a_fetch_that_waits_has_new_records_at_once() -> None:
    brokers = one()
    call = brokers.send(fetch_request(500))
    brokers.wait(100)
    brokers.produce(b"new")
    brokers.wait(2)
    assert call.answer.responses[0].partitions[0].records[0].records[0].value == b"new"


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for() -> None:
    brokers = one()
    call = brokers.send(fetch_request(500, min_bytes=100))
    brokers.produce(b"x" * 20)
    brokers.wait(10)
    assert call.answer is None
    brokers.produce(b"x" * 60)
    brokers.wait(10)
    assert len(call.answer.responses[0].partitions[0].records) == 2


def test_whoever_hangs_up_waits_for_nothing() -> None:
    brokers = one()
    brokers.send(fetch_request(500))
    brokers.wait(10)
    brokers.world.close(brokers.world.processes["client"], "broker-1")
    brokers.wait(10)
    assert brokers.broker().reading.parked == {}
    brokers.produce(b"new")
    assert brokers.values() == [b"new"]


# Where a log begins and ends


@pytest.mark.parametrize(("timestamp", "offset"), [(-2, 0), (-1, 3), (0, 0)])
def test_a_log_tells_where_it_begins_and_ends(timestamp: int, offset: int) -> None:
    brokers = one()
    brokers.produce(b"a", b"b", b"c")
    answer = brokers.ask(ListOffsetsRequest((ListOffsetsTopic("t", (ListOffsetsPartition(0, timestamp),)),)))
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset) == (Error.NONE, offset)


def test_a_log_tells_what_came_first_after_an_instant() -> None:
    brokers = one()
    brokers.produce(b"a")
    instant = brokers.world.now
    brokers.wait(100)
    brokers.produce(b"b")
    for timestamp, offset in ((instant, 1), (instant + 1000, -1)):
        answer = brokers.ask(ListOffsetsRequest((ListOffsetsTopic("t", (ListOffsetsPartition(0, timestamp),)),)))
        assert answer.topics[0].partitions[0].offset == offset


def test_a_log_tells_where_an_epoch_ended() -> None:
    brokers = one()
    brokers.produce(b"a", b"b")
    wanted = tuple(OffsetForLeaderPartition(number, 0) for number in (0, 9))
    answer = brokers.ask(OffsetForLeaderEpochRequest((OffsetForLeaderTopic("t", wanted),)))
    known, unknown = answer.topics[0].partitions
    assert (known.leader_epoch, known.end_offset) == (0, 2)
    assert unknown.error_code is Error.UNKNOWN_TOPIC_OR_PARTITION


# Topics


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
    brokers = Brokers(1)
    brokers.create("old")
    assert brokers.create(name, partitions, replicas) is error
    assert (name in brokers.broker().image.topics) is (error is Error.NONE or name == "old")


def test_a_topic_only_grows() -> None:
    brokers = Brokers(1)
    brokers.create("t", 2)
    grow = CreatePartitionsRequest((CreatePartitionsTopic("t", 4), CreatePartitionsTopic("u", 4)))
    assert [each.error_code for each in brokers.ask(grow).results] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    brokers.wait(10)
    assert brokers.coordinator().topics == {"t": 4}
    again = brokers.ask(CreatePartitionsRequest((CreatePartitionsTopic("t", 4),)))
    assert again.results[0].error_code is Error.INVALID_PARTITIONS
    assert brokers.produce(b"k", partition=3).error_code is Error.NONE


def test_a_deleted_topic_is_gone_and_its_successor_is_empty() -> None:
    brokers = one()
    brokers.produce(b"k")
    answer = brokers.ask(DeleteTopicsRequest(("t", "u")))
    assert [each.error_code for each in answer.responses] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]
    brokers.wait(10)
    assert brokers.coordinator().topics == {}
    assert brokers.produce(b"k").error_code is Error.UNKNOWN_TOPIC_OR_PARTITION
    brokers.create("t")
    assert brokers.fetch().high_watermark == 0


def test_metadata_tells_who_leads_what() -> None:
    brokers = Brokers(1)
    brokers.create("t", 2)
    answer = brokers.ask(MetadataRequest())
    assert [topic.name for topic in answer.topics] == ["t"]
    assert [(each.node_id, each.host, each.port) for each in answer.brokers] == [(1, "broker-1", 9092)]
    assert [(one.partition_index, one.leader_id, one.isr_nodes) for one in answer.topics[0].partitions] == [
        (0, 1, (1,)),
        (1, 1, (1,)),
    ]
    answer = brokers.ask(MetadataRequest(("t", "nope")))
    assert [topic.error_code for topic in answer.topics] == [Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION]


# Who coordinates a group


def test_p1_the_offsets_topic_is_made_when_somebody_first_looks_for_a_coordinator() -> None:
    brokers = Brokers(1, offsets_topic_num_partitions=50)
    answer = brokers.ask(FindCoordinatorRequest(coordinator_keys=("g", "h")))
    assert [each.error_code for each in answer.coordinators] == [Error.COORDINATOR_NOT_AVAILABLE] * 2
    brokers.wait(10)
    assert len(brokers.coordinator().shards) == 50
    answer = brokers.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    assert [(each.error_code, each.node_id, each.host, each.port) for each in answer.coordinators] == [
        (Error.NONE, 1, "broker-1", 9092)
    ]
    old = brokers.ask(FindCoordinatorRequest("g"), version=0)
    assert (old.error_code, old.node_id) == (Error.NONE, 1)


def test_too_few_brokers_for_the_offsets_topic_are_never_explained_to_a_client() -> None:
    brokers = Brokers(1, offsets_topic_replication_factor=3)
    for _ in range(3):
        answer = brokers.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
        assert answer.coordinators[0].error_code is Error.COORDINATOR_NOT_AVAILABLE
    assert brokers.broker().image.topics == {}


def test_only_groups_have_coordinators_here() -> None:
    answer = Brokers(1).ask(FindCoordinatorRequest(key_type=1, coordinator_keys=("tx",)))
    assert (answer.coordinators[0].error_code, answer.coordinators[0].error_message) == (
        Error.INVALID_REQUEST,
        "key type 1 is not emulated",
    )


@pytest.mark.parametrize("whom", ["broker-1", "controller"])
def test_a_request_for_somebody_else_closes_the_connection(whom: str) -> None:
    brokers = Brokers(1)
    assert brokers.ask(HeartbeatRequest("g", 1, "m"), whom) == CLOSED
    assert [event.sender for event in brokers.events(RequestRefused)] == ["client"]


def test_a_broker_tells_its_coordinator_what_there_is_whenever_it_is_asked_to() -> None:
    brokers = one()
    brokers.coordinator().topics.clear()
    brokers.world.tell("broker-1", INTRODUCE)
    brokers.wait(0)
    assert brokers.coordinator().topics == {"t": 1}


# Compaction, and what is left


def test_compaction_keeps_the_newest_record_of_each_key_in_closed_segments() -> None:
    log = Log(MemoryDisk().log("t", 0, 0))
    for number in range(20):
        log.append((Record(b"k%d" % (number % 2), b"%d" % number, number),), 0)
    log.append((Record(b"k2", None, 20), Record(b"k3", b"x", 20)), 0)
    log.high_watermark = 22
    assert log.compact(segment_bytes=53, no_tombstones_until=100) == (20, 2)
    left = [(offset, record.key) for batch in log.read(0, 1 << 20, 22) for offset, record in batch.numbered()]
    assert left == [(18, b"k0"), (19, b"k1"), (20, b"k2"), (21, b"k3")]
    assert (log.end_offset, log.compact(53, 100)) == (22, None)


def test_compaction_leaves_alone_what_is_not_committed() -> None:
    log = Log(MemoryDisk().log("t", 0, 0))
    for number in range(20):
        log.append((Record(b"k", b"%d" % number, number),), 0)
    log.high_watermark = 10
    assert log.compact(segment_bytes=1, no_tombstones_until=0) == (10, 1)
    assert [batch.base_offset for batch in log.read(0, 1 << 20, 20)] == [9, *range(10, 20)]


def test_a_tombstone_goes_when_it_is_old() -> None:
    log = Log(MemoryDisk().log("t", 0, 0))
    log.append((Record(b"k", b"1", 0),), 0)
    log.append((Record(b"k", None, 1000),), 0)
    log.append((Record(b"k2", b"2", 2000),), 0)
    log.high_watermark = 3
    assert log.compact(segment_bytes=1, no_tombstones_until=500) == (2, 1)
    log.append((Record(b"k3", b"3", 3000), Record(b"k4", b"4", 3000)), 0)
    log.append((Record(b"k5", b"5", 3000),), 0)
    log.high_watermark = 6
    assert log.compact(segment_bytes=1, no_tombstones_until=1500) == (4, 3)


def test_only_the_offsets_topic_is_compacted() -> None:
    brokers = one(offsets_topic_segment_bytes=100, log_cleaner_backoff_ms=1000)
    brokers.ask(FindCoordinatorRequest(coordinator_keys=("g",)))
    brokers.wait(10)
    for topic in ("t", "__consumer_offsets"):
        for _ in range(50):
            brokers.produce(b"x", topic=topic)
    brokers.wait(2000)
    assert {event.topic for event in brokers.events(LogCompacted)} == {"__consumer_offsets"}
    assert brokers.fetch(0, topic="__consumer_offsets").high_watermark == 50


def test_at_the_end_a_broker_tells_what_its_logs_hold() -> None:
    brokers = one()
    brokers.produce(b"a", b"b", producer=(7, 0))
    brokers.world.tell("broker-1", READ_BACK)
    assert brokers.events(RecordsLeft) == [RecordsLeft("t", 0, 0, 2, 7, 0), RecordsLeft("t", 0, 2, 0)]


def test_an_empty_log_ends_at_its_beginning() -> None:
    log = Log(MemoryDisk().log("t", 0, 0))
    assert (log.end_offset, log.high_watermark, log.read(0, 100, 0)) == (0, 0, ())
