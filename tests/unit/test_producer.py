"""The producer: rate, keys, batches, acks, and records that are never written twice."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from cluster.config import ProducerConfig, settings
from cluster.events import RecordsAcked, RecordsAppended, RecordsGivenUp, RequestGivenUp
from cluster.producer import BATCH_BYTES, BUFFER_BYTES, Producer, Start, Stop, murmur2
from cluster.sim import hosts
from cluster.wire.errors import Error
from cluster.wire.log import MetadataRequest, ProduceRequest, RecordBatch
from tests.unit.client_stage import After, Close, Hold, Stage
from tests.unit.group_stage import Cluster


def producing(*, partitions: int = 1, nodes: tuple[int, ...] = (1,), **config: Any) -> Stage:
    stage = Stage(topics={"t": partitions}, nodes=nodes)
    given = settings(ProducerConfig, {key.replace("_", "."): value for key, value in config.items()})
    stage.world.add("c", Producer("c", "t", given, ("broker-1",), Random("7/p"), 7))
    stage.tell(Start())
    return stage


def written(stage: Stage) -> list[bytes]:
    return [record.value or b"" for log in stage.logs.values() for batch in log for record in batch.records]


def batches(stage: Stage) -> list[RecordBatch]:
    return [batch for log in stage.logs.values() for batch in log]


# Records


def test_records_come_at_their_rate_each_with_a_number_of_its_own() -> None:
    stage = producing(records_per_second=20, linger_ms=0)
    stage.run(1000)
    assert len(stage.sent(ProduceRequest)) == 20
    assert [later - sooner for sooner, later in pairwise(stage.times(ProduceRequest))] == [50] * 19
    assert [value.rstrip(b".") for value in written(stage)] == [f"7.0-{n}".encode() for n in range(20)]
    assert {len(value) for value in written(stage)} == {64}


def test_records_wait_for_company() -> None:
    stage = producing(records_per_second=1000, linger_ms=50)
    stage.run(1000)
    sizes = [len(data.records) for each in stage.sent(ProduceRequest) for data in each.topic_data[0].partition_data]
    assert set(sizes) == {51}
    first = stage.sent(ProduceRequest)[0].topic_data[0].partition_data[0].records
    assert [later.timestamp - sooner.timestamp for sooner, later in pairwise(first)] == [1] * 50


def test_a_key_always_goes_to_the_same_partition_as_in_kafka() -> None:
    stage = producing(partitions=4, records_per_second=1000, keys=20)
    stage.run(2000)
    for (_, partition), log in stage.logs.items():
        for batch in log:
            for record in batch.records:
                assert record.key is not None
                assert (murmur2(record.key) & 0x7FFFFFFF) % 4 == partition
    assert len(stage.logs) == 4


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_kafkas(key: bytes, value: int) -> None:
    assert murmur2(key) == value & 0xFFFFFFFF


def test_it_ends_after_the_records_it_was_asked_for() -> None:
    stage = producing(records_per_second=100, records=7)
    stage.run(10_000)
    assert len(written(stage)) == 7
    assert sum(event.count for event in stage.events(RecordsAcked)) == 7


def test_it_can_be_stopped_and_started_again_and_what_waits_is_still_sent() -> None:
    stage = producing(records_per_second=100, linger_ms=100)
    stage.run(1000)
    stage.tell(Stop())
    stage.run(1000)
    before = written(stage)
    assert len(before) >= 80
    stage.run(5000)
    assert written(stage) == before
    stage.tell(Start())
    stage.tell(Start())
    stage.run(1000)
    values = [value.rstrip(b".") for value in written(stage)]
    assert values == [f"7.0-{n}".encode() for n in range(len(values))]
    assert len(before) + 80 <= len(values) <= len(before) + 110


def test_a_batch_is_no_larger_than_batch_size() -> None:
    stage = producing(records_per_second=1000, linger_ms=100, record_bytes=1000)
    stage.run(2000)
    assert max(len(batch.records) for batch in batches(stage)) == BATCH_BYTES // 1000


def test_an_application_whose_buffer_is_full_has_to_wait() -> None:
    stage = producing(records_per_second=1000, record_bytes=1_000_000, linger_ms=0)
    stage.answer(ProduceRequest, Hold(), always=True)
    stage.run(2000)
    producer = stage.world.processes["c"].machine
    assert producer.made == BUFFER_BYTES // 1_000_000 + 1  # type: ignore[attr-defined]
    stage.friendlier(ProduceRequest)
    stage.release()
    stage.run(1000)
    assert len(written(stage)) > BUFFER_BYTES // 1_000_000


def test_nothing_is_sent_before_the_topic_is_known() -> None:
    stage = producing(records_per_second=100)
    stage.topics.clear()
    stage.run(3000)
    assert stage.sent(ProduceRequest) == []
    assert 4 <= len(stage.sent(MetadataRequest)) <= 12
    stage.topics["t"] = 1
    stage.run(2000)
    assert len(written(stage)) > 50


# Acknowledgements


@pytest.mark.parametrize(("acks", "code"), [("0", 0), ("1", 1), ("all", -1)])
def test_acks_are_what_was_configured_and_only_all_numbers_its_records(acks: str, code: int) -> None:
    stage = producing(acks=acks, records=5, records_per_second=100)
    stage.run(1000)
    asked = stage.sent(ProduceRequest)
    assert {each.acks for each in asked} == {code}
    data = [data for each in asked for data in each.topic_data[0].partition_data]
    assert {one.producer_id for one in data} == ({7} if acks == "all" else {-1})
    events = stage.events(RecordsAcked)
    assert sum(event.count for event in events) == 5
    assert {event.acks for event in events} == {acks}
    assert all((event.base_offset == -1) is (acks == "0") for event in events)
    assert [event.base_sequence for event in events] == [0, 1, 2, 3, 4]


def test_numbering_can_be_switched_off() -> None:
    stage = producing(enable_idempotence=False, records=1)
    stage.run(1000)
    assert stage.sent(ProduceRequest)[0].topic_data[0].partition_data[0].producer_id == -1


def test_without_acks_everything_that_waits_is_sent_at_once() -> None:
    stage = producing(acks="0", records=100, records_per_second=10_000, linger_ms=20, record_bytes=1000)
    stage.run(1000)
    assert sum(event.count for event in stage.events(RecordsAcked)) == 100


def test_one_batch_of_a_partition_is_in_flight_and_the_order_is_kept() -> None:
    stage = producing(records_per_second=100, linger_ms=0)
    stage.answer(ProduceRequest, *[After(300)] * 20)
    stage.run(3000)
    numbers = [int(value.rstrip(b".").split(b"-")[1]) for value in written(stage)]
    assert numbers == list(range(len(numbers)))
    assert all(later - sooner == 302 for sooner, later in pairwise(stage.times(ProduceRequest)[:9]))


def test_one_request_carries_the_batches_of_all_partitions_that_a_broker_leads() -> None:
    stage = producing(partitions=4, nodes=(1, 2), records_per_second=1000, linger_ms=100)
    stage.leaders = {("t", n): (1 + n % 2, 0) for n in range(4)}
    stage.run(500)
    for each in stage.heard:
        if isinstance(each.body, ProduceRequest):
            partitions = {data.index for data in each.body.topic_data[0].partition_data}
            assert partitions <= ({0, 2} if each.to == "broker-1" else {1, 3})


# What goes wrong

RETRIED: list[Any] = [
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Error.REQUEST_TIMED_OUT,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.KAFKA_STORAGE_ERROR,
    Close(),
]


@pytest.mark.parametrize("answer", RETRIED)
def test_what_may_be_mended_is_tried_again_with_the_same_numbers_and_new_metadata(answer: Any) -> None:
    stage = producing(records=1)
    stage.answer(ProduceRequest, answer)
    stage.run(2000)
    first, second = [each.topic_data[0].partition_data[0] for each in stage.sent(ProduceRequest)]
    assert (first.producer_id, first.base_sequence) == (second.producer_id, second.base_sequence)
    asked, again = stage.times(ProduceRequest)
    assert 80 <= again - asked <= 130
    assert len(stage.sent(MetadataRequest)) >= 2
    assert [event.base_sequence for event in stage.events(RecordsAcked)] == [0]


def test_pauses_between_attempts_grow() -> None:
    stage = producing(records=1)
    stage.answer(ProduceRequest, *[Error.NOT_ENOUGH_REPLICAS] * 5)
    stage.run(5000)
    for (sooner, later), expected in zip(
        pairwise(stage.times(ProduceRequest)), (100, 200, 400, 800, 1000), strict=True
    ):
        assert expected * 0.8 <= later - sooner - 2 <= expected * 1.2


def test_what_was_written_already_counts_as_written() -> None:
    stage = producing(records=1)
    stage.answer(ProduceRequest, Error.DUPLICATE_SEQUENCE_NUMBER)
    stage.run(1000)
    assert len(stage.sent(ProduceRequest)) == 1
    assert len(stage.events(RecordsAcked)) == 1


@pytest.mark.parametrize(("before", "definite"), [((), True), ((Close(),), False)])
def test_what_is_refused_is_given_up_and_in_doubt_only_if_an_attempt_was(
    before: tuple[Any, ...], definite: bool
) -> None:
    stage = producing(records=1)
    stage.answer(ProduceRequest, *before, Error.MESSAGE_TOO_LARGE)
    stage.run(2000)
    (event,) = stage.events(RecordsGivenUp)
    assert (event.error, event.definite, event.count) == ("MESSAGE_TOO_LARGE", definite, 1)
    assert stage.events(RecordsAcked) == []


def test_after_records_in_doubt_it_counts_anew_under_another_identity() -> None:
    stage = producing(records=2, records_per_second=1, linger_ms=0)
    stage.answer(ProduceRequest, Close(), Error.MESSAGE_TOO_LARGE)
    stage.run(5000)
    data = [each.topic_data[0].partition_data[0] for each in stage.sent(ProduceRequest)]
    assert [one.base_sequence for one in data] == [0, 0, 0]
    assert data[0].producer_id == data[1].producer_id == 7
    assert data[2].producer_id == 7 + (1 << 32)


def test_a_number_out_of_order_begins_a_new_series_and_is_sent_again_at_once() -> None:
    stage = producing(records=1)
    stage.answer(ProduceRequest, Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
    stage.run(1000)
    first, second = [each.topic_data[0].partition_data[0] for each in stage.sent(ProduceRequest)]
    assert (second.producer_id, second.base_sequence) == (7 + (1 << 32), 0)
    assert first.records == second.records
    assert len(stage.events(RecordsAcked)) == 1


def test_another_process_counts_under_another_identity() -> None:
    config = settings(ProducerConfig, {})
    lanes = [Producer("p", "t", config, ("broker-1",), Random(0), 7, incarnation)._lane(0) for incarnation in (0, 1)]
    assert lanes[0].identity == 7
    assert lanes[1].identity == 7 + (1 << 48)


def test_what_waits_too_long_without_ever_being_sent_is_certainly_not_written() -> None:
    stage = producing(records=3, records_per_second=10, delivery_timeout_ms=5000)
    stage.leaders["t", 0] = -1, 0
    stage.run(20_000)
    (event,) = stage.events(RecordsGivenUp)
    assert (event.error, event.definite, event.base_sequence, event.count) == ("REQUEST_TIMED_OUT", True, -1, 3)


def test_what_was_sent_and_not_answered_until_its_time_was_over_is_in_doubt() -> None:
    stage = producing(records=3, records_per_second=10, delivery_timeout_ms=5000)
    stage.run(5)
    hosts.crash(stage.world, "broker-1")
    stage.run(20_000)
    assert sum(event.count for event in stage.events(RecordsGivenUp)) == 3
    assert stage.events(RecordsGivenUp)[0].definite is False


def test_what_is_in_flight_too_long_is_given_up_and_whatever_is_answered_later_does_not_matter() -> None:
    stage = producing(records=2, records_per_second=10, delivery_timeout_ms=3000, request_timeout_ms=10_000)
    stage.answer(ProduceRequest, After(5000))
    stage.run(9000)
    given_up = stage.events(RecordsGivenUp)
    assert [(event.base_sequence, event.definite) for event in given_up] == [(0, False), (-1, True)]
    assert stage.events(RecordsAcked) == []
    assert len(written(stage)) == 1  # that is what not definite means


def test_a_silent_broker_is_given_up_after_the_request_timeout() -> None:
    stage = producing(records=1, request_timeout_ms=2000)
    stage.answer(ProduceRequest, Hold())
    stage.run(5000)
    assert [event.api for event in stage.events(RequestGivenUp)] == ["Produce"]
    assert len(stage.events(RecordsAcked)) == 1


def test_metadata_that_nobody_answers_is_asked_for_again() -> None:
    stage = producing(records=1, request_timeout_ms=2000)
    stage.answer(MetadataRequest, Hold())
    stage.run(5000)
    assert len(stage.sent(MetadataRequest)) >= 2
    assert len(stage.events(RecordsAcked)) == 1


def test_a_partition_without_a_leader_waits_for_one() -> None:
    stage = producing(records=1)
    stage.leaders["t", 0] = -1, 0
    stage.run(3000)
    assert stage.sent(ProduceRequest) == []
    stage.leaders["t", 0] = 1, 1
    stage.run(2000)
    assert len(stage.events(RecordsAcked)) == 1


def test_an_old_answer_is_ignored() -> None:
    stage = producing(records=1, request_timeout_ms=1000)
    stage.answer(ProduceRequest, Hold())
    stage.run(3000)
    stage.release()
    stage.run(100)
    assert len(stage.events(RecordsAcked)) == 1


# With real brokers


def test_all_that_is_acknowledged_is_in_the_log_once() -> None:
    cluster = Cluster(brokers=1)
    cluster.producer(records_per_second=200, records=500)
    cluster.run(10_000)
    assert sum(event.count for event in cluster.events(RecordsAcked)) == 500
    appended = [event for event in cluster.events(RecordsAppended) if event.topic == "t"]
    assert {event.producer_id for event in appended} == {7}
    assert sum(event.count for event in appended) == 500


def calm(cluster: Cluster) -> None:
    pass


def crash_and_restart(cluster: Cluster) -> None:
    hosts.crash(cluster.world, "broker-2")
    cluster.run(15_000)
    hosts.restart(cluster.world, "broker-2")


def cut_off(cluster: Cluster) -> None:
    hosts.cut(cluster.world, "p", "broker-2")
    cluster.run(15_000)
    hosts.mend(cluster.world, "p", "broker-2")


@pytest.mark.parametrize("trouble", [calm, crash_and_restart, cut_off])
def test_whatever_happens_to_a_leader_nothing_is_lost_or_written_twice(trouble: Callable[[Cluster], None]) -> None:
    cluster = Cluster(brokers=3, min_insync_replicas=2)
    cluster.producer(records_per_second=100, records=2000)
    cluster.run(5000)
    trouble(cluster)
    cluster.run(60_000)
    acked = sum(event.count for event in cluster.events(RecordsAcked))
    assert acked == 2000
    assert cluster.events(RecordsGivenUp) == []
    logs = [
        cluster.world.processes[f"broker-{n}"].machine.partitions  # type: ignore[attr-defined]
        for n in (1, 2, 3)
    ]
    for partition in range(4):
        (leader,) = [log["t", partition] for log in logs if log["t", partition].leads]
        records = [
            record.value for batch in leader.log.read(0, 1 << 30, leader.log.end_offset) for record in batch.records
        ]
        assert len(records) == len(set(records))
        numbers = [int(value.rstrip(b".").split(b"-")[1]) for value in records]
        assert numbers == sorted(numbers)
