"""Where a consumer begins to read, what it fetches, and what it does when a log or a leader is not what it was."""

from itertools import pairwise
from typing import Any

import pytest

from cluster.consumer.commands import Close as CloseConsumer
from cluster.consumer.commands import SetProcessing, Subscribe
from cluster.events import ConsumerFailed, PositionSet, RecordsProcessed, RequestGivenUp
from cluster.sim import hosts
from cluster.wire.errors import Error
from cluster.wire.groups import HeartbeatRequest
from cluster.wire.log import (
    EpochEndOffsetResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
    PartitionData,
    Record,
    RecordBatch,
)
from cluster.wire.offsets import OffsetCommitRequest, OffsetFetchRequest
from tests.unit.client_stage import Close, Hold, Stage

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}


def reading(**config: Any) -> Stage:
    """A stage whose consumer will get partition 0 of t."""
    stage = Stage(**QUICK, **config)
    stage.assignment = {"t": (0,)}
    return stage


def offsets(stage: Stage) -> list[int]:
    return [one.fetch_offset for fetch in stage.sent(FetchRequest) for one in fetch.topics[0].partitions]


def processed(stage: Stage) -> list[tuple[int, int]]:
    return [(event.first_offset, event.last_offset) for event in stage.events(RecordsProcessed)]


# Where to begin


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 2), ("latest", 5)])
def test_without_a_committed_offset_it_begins_as_the_policy_says(policy: str, offset: int) -> None:
    stage = reading(auto_offset_reset=policy)
    stage.produce(count=5)
    stage.starts["t", 0] = 2
    stage.join()
    assert [(event.offset, event.how) for event in stage.events(PositionSet)] == [(offset, policy)]
    assert offsets(stage)[0] == offset
    assert stage.sent(ListOffsetsRequest)[0].topics[0].partitions[0].timestamp == (-2 if policy == "earliest" else -1)


def test_without_a_policy_that_is_an_error_of_the_application() -> None:
    stage = reading(auto_offset_reset="none")
    stage.join()
    assert [event.error for event in stage.events(ConsumerFailed)] == ["NoOffsetForPartition"]
    assert stage.sent(ListOffsetsRequest) == stage.sent(FetchRequest) == []


def test_a_committed_offset_without_an_epoch_is_simply_adopted() -> None:
    stage = reading()
    stage.produce(count=5)
    stage.committed["t", 0] = 3, -1
    stage.join()
    assert [(event.offset, event.how) for event in stage.events(PositionSet)] == [(3, "committed")]
    assert stage.sent(OffsetForLeaderEpochRequest) == []
    assert processed(stage) == [(3, 4)]


def test_a_committed_offset_with_an_epoch_is_confirmed_by_the_leader_first() -> None:
    stage = reading()
    stage.produce(count=5)
    stage.committed["t", 0] = 3, 0
    stage.answer(OffsetForLeaderEpochRequest, Hold())
    stage.join()
    (asked,) = stage.sent(OffsetForLeaderEpochRequest)
    assert (asked.topics[0].partitions[0].leader_epoch, asked.topics[0].partitions[0].current_leader_epoch) == (0, 0)
    assert stage.sent(FetchRequest) == []
    stage.release()
    stage.run(10)
    assert processed(stage) == [(3, 4)]


def ends(offset: int, epoch: int = 0) -> OffsetForLeaderEpochResponse:
    said = EpochEndOffsetResponse(0, Error.NONE, epoch, offset)
    return OffsetForLeaderEpochResponse((OffsetForLeaderTopicResult("t", (said,)),))


@pytest.mark.parametrize(
    ("answer", "policy", "set_to", "thrown"),
    [
        (ends(2), "latest", [(5, "committed"), (2, "truncated")], []),
        (ends(2), "none", [(5, "committed")], ["LogTruncation"]),
        (ends(-1, -1), "earliest", [(5, "committed"), (0, "earliest")], []),
        (ends(-1, -1), "none", [(5, "committed")], ["LogTruncation"]),
        (ends(9), "none", [(5, "committed")], []),
    ],
)
def test_a_log_that_was_cut_off_sets_the_position_back(
    answer: OffsetForLeaderEpochResponse, policy: str, set_to: list[tuple[int, str]], thrown: list[str]
) -> None:
    stage = reading(auto_offset_reset=policy)
    stage.produce(count=9)
    stage.committed["t", 0] = 5, 0
    stage.answer(OffsetForLeaderEpochRequest, answer)
    stage.join()
    assert [(event.offset, event.how) for event in stage.events(PositionSet)] == set_to
    assert [event.error for event in stage.events(ConsumerFailed)] == thrown


def test_an_epoch_that_is_newer_than_the_known_leader_asks_for_new_metadata() -> None:
    stage = reading()
    stage.produce(count=5)
    stage.committed["t", 0] = 3, 7
    stage.join(ms=300)
    assert len(stage.sent(MetadataRequest)) == 2


@pytest.mark.parametrize("error", [Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_SERVER_ERROR, Close()])
@pytest.mark.parametrize("kind", [ListOffsetsRequest, OffsetForLeaderEpochRequest])
def test_questions_to_a_leader_that_fail_are_asked_again_with_new_metadata(kind: type, error: Any) -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.produce(count=2)
    if kind is OffsetForLeaderEpochRequest:
        stage.committed["t", 0] = 1, 0
    stage.answer(kind, error)
    stage.join(ms=900)
    first, second = stage.times(kind)
    assert second - first >= 100
    assert len(stage.sent(MetadataRequest)) >= 2
    assert len(stage.events(RecordsProcessed)) == 1


@pytest.mark.parametrize("kind", [ListOffsetsRequest, OffsetForLeaderEpochRequest])
def test_questions_that_are_forbidden_are_thrown(kind: type) -> None:
    stage = reading()
    stage.produce(count=2)
    if kind is OffsetForLeaderEpochRequest:
        stage.committed["t", 0] = 1, 0
    stage.answer(kind, Error.TOPIC_AUTHORIZATION_FAILED)
    stage.join()
    assert [event.error for event in stage.events(ConsumerFailed)] == ["TOPIC_AUTHORIZATION_FAILED"]


def test_a_leader_that_does_not_know_an_offset_is_asked_again() -> None:
    stage = reading()
    nothing = ListOffsetsResponse((ListOffsetsTopicResponse("t", (ListOffsetsPartitionResponse(0),)),))
    stage.answer(ListOffsetsRequest, nothing)
    stage.join(ms=900)
    assert len(stage.sent(ListOffsetsRequest)) == 2


def test_a_partition_without_a_leader_waits_for_one() -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.leaders["t", 0] = -1, 0
    stage.produce()
    stage.join(ms=2000)
    assert stage.sent(ListOffsetsRequest) == []
    asked = len(stage.sent(MetadataRequest))
    assert 3 <= asked <= 10  # again and again, after pauses that grow
    stage.leaders["t", 0] = 1, 1
    stage.run(2000)
    assert processed(stage) == [(0, 0)]


def test_answers_for_a_partition_that_is_no_longer_ours_are_ignored() -> None:
    stage = reading(commit="none")
    stage.answer(ListOffsetsRequest, Hold())
    stage.join()
    stage.assignment = {"t": (1,)}
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1200)
    stage.release(kind=ListOffsetsRequest)
    stage.run(500)
    assert [event.partition for event in stage.events(PositionSet)] == [1]


def test_an_answer_about_committed_offsets_of_an_older_assignment_is_ignored() -> None:
    stage = reading(commit="none")
    stage.answer(OffsetFetchRequest, Hold())
    stage.join(ms=500)
    stage.assignment = {"t": (1,)}
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1000)
    assert len(stage.sent(OffsetFetchRequest)) == 2
    stage.committed["t", 0] = 4, -1
    stage.release(kind=OffsetFetchRequest)
    stage.run(200)
    assert [event.partition for event in stage.events(PositionSet)] == [1]


# Fetching


def test_one_fetch_is_in_flight_for_each_broker_and_it_waits_there() -> None:
    stage = Stage(nodes=(1, 2), **QUICK)
    stage.leaders["t", 1] = 2, 0
    stage.join(ms=2600)
    sent = [(each.at, each.to) for each in stage.heard if isinstance(each.body, FetchRequest)]
    for broker in ("broker-1", "broker-2"):
        times = [at for at, to in sent if to == broker]
        assert [later - sooner for sooner, later in pairwise(times)] == [502] * (len(times) - 1)
        assert len(times) >= 5
    fetch = stage.sent(FetchRequest)[0]
    assert (fetch.max_wait_ms, fetch.min_bytes, fetch.max_bytes, fetch.replica_id) == (500, 1, 52428800, -1)
    assert fetch.topics[0].partitions[0].partition_max_bytes == 1048576


def test_a_poll_returns_no_more_than_max_poll_records_and_the_rest_is_not_fetched_again() -> None:
    stage = reading(auto_offset_reset="earliest", max_poll_records=3, processing_ms_per_record=10)
    stage.produce(count=4)
    stage.produce(count=4)
    stage.join(ms=100)
    assert processed(stage) == [(0, 2), (3, 5), (6, 7)]
    assert offsets(stage) == [0, 8]


def test_the_next_fetch_leaves_while_records_are_processed() -> None:
    stage = reading(auto_offset_reset="earliest", processing_ms_per_record=100)
    stage.produce(count=3)
    stage.join(ms=150)
    assert processed(stage) == []
    assert offsets(stage) == [0, 3]
    stage.produce(count=1)
    stage.run(300)
    assert processed(stage) == [(0, 2), (3, 3)]
    assert offsets(stage) == [0, 3, 4]


def test_records_before_the_position_are_skipped_although_the_batch_holds_them() -> None:
    stage = reading()
    stage.produce(count=5)
    stage.committed["t", 0] = 3, -1
    stage.join()
    (event,) = stage.events(RecordsProcessed)
    assert (event.first_offset, event.last_offset, event.count) == (3, 4, 2)


def test_a_compacted_log_has_gaps_and_the_position_goes_past_them() -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.logs["t", 0] = [
        RecordBatch(0, 0, (Record(), Record()), offsets=(1, 4), last_offset=6),
        RecordBatch(7, 0, (), offsets=(), last_offset=8),
    ]
    stage.join()
    (event,) = stage.events(RecordsProcessed)
    assert (event.first_offset, event.last_offset, event.count) == (1, 4, 2)
    assert offsets(stage)[-1] == 9


def test_partitions_take_turns_in_what_is_fetched() -> None:
    stage = Stage(auto_offset_reset="earliest", **QUICK)
    stage.produce(partition=0)
    stage.join()
    orders = [[one.partition for one in fetch.topics[0].partitions] for fetch in stage.sent(FetchRequest)]
    assert orders[0] == [0, 1]
    assert orders[-1] == [1, 0]


@pytest.mark.parametrize(
    "error",
    [
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.KAFKA_STORAGE_ERROR,
        Error.OFFSET_NOT_AVAILABLE,
        Close(),
    ],
)
def test_a_broker_that_does_not_lead_is_asked_again_with_new_metadata(error: Any) -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.answer(FetchRequest, error)
    stage.produce()
    stage.join(ms=900)
    assert len(stage.sent(MetadataRequest)) >= 2
    assert processed(stage) == [(0, 0)]


@pytest.mark.parametrize("error", [Error.UNKNOWN_LEADER_EPOCH, Error.UNKNOWN_SERVER_ERROR])
def test_a_broker_that_does_not_know_the_epoch_yet_is_simply_asked_again(error: Error) -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.answer(FetchRequest, error)
    stage.produce()
    stage.join(ms=900)
    assert len(stage.sent(MetadataRequest)) == 1
    assert processed(stage) == [(0, 0)]


@pytest.mark.parametrize("error", [Error.TOPIC_AUTHORIZATION_FAILED, Error.CORRUPT_MESSAGE, Error.INVALID_REQUEST])
def test_other_errors_of_a_fetch_are_thrown(error: Error) -> None:
    stage = reading(auto_offset_reset="earliest")
    stage.answer(FetchRequest, error)
    stage.produce()
    stage.join(ms=900)
    assert [event.error for event in stage.events(ConsumerFailed)] == [error.name]


@pytest.mark.parametrize(("policy", "how"), [("earliest", (2, "earliest")), ("latest", (5, "latest"))])
def test_a_position_out_of_range_is_reset_as_the_policy_says(policy: str, how: tuple[int, str]) -> None:
    stage = reading(auto_offset_reset=policy)
    stage.produce(count=5)
    stage.starts["t", 0] = 2
    stage.committed["t", 0] = 1, -1
    stage.join(ms=900)
    assert [(event.offset, event.how) for event in stage.events(PositionSet)] == [(1, "committed"), how]


def test_without_a_policy_a_position_out_of_range_is_thrown() -> None:
    stage = reading(auto_offset_reset="none")
    stage.produce(count=5)
    stage.committed["t", 0] = 9, -1
    stage.join(ms=900)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["OFFSET_OUT_OF_RANGE"]


def test_a_new_leader_is_asked_whether_the_position_still_holds() -> None:
    stage = Stage(nodes=(1, 2), auto_offset_reset="earliest", **QUICK)
    stage.assignment = {"t": (0,)}
    stage.produce(count=3)
    stage.join()
    stage.leaders["t", 0] = 2, 1
    stage.answer(FetchRequest, Error.NOT_LEADER_OR_FOLLOWER)
    stage.run(1000)
    asked = [each for each in stage.heard if isinstance(each.body, OffsetForLeaderEpochRequest)]
    assert [each.to for each in asked] == ["broker-2"]
    assert asked[0].body.topics[0].partitions[0].current_leader_epoch == 1
    stage.produce(count=2, epoch=1)
    stage.run(100)
    assert processed(stage) == [(0, 2), (3, 4)]


def test_an_answer_about_a_position_that_has_moved_on_is_ignored() -> None:
    stage = Stage(nodes=(1, 2), auto_offset_reset="earliest", metadata_max_age_ms=3000, **QUICK)
    stage.assignment = {"t": (0,)}
    stage.produce(count=3)
    stage.join()
    stage.answer(OffsetForLeaderEpochRequest, Hold())
    stage.leaders["t", 0] = 2, 1
    stage.answer(FetchRequest, Error.NOT_LEADER_OR_FOLLOWER)
    stage.run(1000)
    stage.leaders["t", 0] = 1, 2
    stage.run(3000)
    stage.release(ends(-1, -1), OffsetForLeaderEpochRequest)
    stage.run(1000)
    assert [event.how for event in stage.events(PositionSet)] == ["earliest"]
    assert stage.sent(FetchRequest)[-1].topics[0].partitions[0].current_leader_epoch == 2


def test_a_broker_that_answers_at_once_that_there_is_nothing_is_left_alone_for_a_while() -> None:
    stage = reading()
    nothing = FetchResponse((FetchableTopicResponse("t", (PartitionData(0, Error.NONE, 0, 0),)),))
    stage.answer(FetchRequest, nothing, always=True)
    stage.join(ms=5000)
    assert 9 <= len(stage.sent(FetchRequest)) <= 11


def test_a_broker_that_is_silent_is_given_up_after_the_request_timeout() -> None:
    stage = reading(request_timeout_ms=5000)
    stage.join()
    hosts.silence(stage.world, "broker-1")
    stage.run(5000)
    assert [(event.api, event.destination) for event in stage.events(RequestGivenUp)] == [("Fetch", "broker-1")]
    stage.run(20_000)
    assert stage.events(ConsumerFailed) == []


def test_a_broker_that_is_down_is_tried_after_pauses_that_grow() -> None:
    stage = reading()
    stage.join()
    hosts.crash(stage.world, "broker-1")
    since = stage.now
    stage.run(10_000)
    assert 8 <= len(stage.times(FetchRequest, since)) <= 25


def test_what_was_fetched_for_topics_that_are_not_wanted_any_more_is_thrown_away() -> None:
    stage = Stage(topics={"t": 1, "u": 1}, auto_offset_reset="earliest", max_poll_records=1, commit="none", **QUICK)
    stage.assignment = {"t": (0,), "u": (0,)}
    stage.produce("t", count=5)
    stage.consumer()
    stage.tell(SetProcessing(50))
    stage.tell(Subscribe(("t", "u")))
    stage.run(60)
    stage.assignment = {"u": (0,)}
    stage.tell(Subscribe(("u",)))
    stage.run(1000)
    assert [event.topic for event in stage.events(RecordsProcessed)] == ["t"]


def test_records_of_partitions_that_were_lost_meanwhile_are_not_returned() -> None:
    stage = reading(auto_offset_reset="earliest", max_poll_records=1, commit="none", processing_ms_per_record=400)
    stage.produce(count=9)
    stage.join(ms=100)
    stage.answer(HeartbeatRequest, Error.UNKNOWN_MEMBER_ID)
    stage.assignment = {"t": (1,)}
    stage.run(3000)
    assert processed(stage) == [(0, 0), (1, 1), (2, 2)]


def test_an_error_after_some_records_is_thrown_by_the_poll_after_the_one_that_returns_them() -> None:
    stage = Stage(auto_offset_reset="earliest", **QUICK)
    stage.produce(count=2)
    good = PartitionData(0, Error.NONE, 2, 0, tuple(stage.logs["t", 0]))
    bad = PartitionData(1, Error.INVALID_REQUEST)
    stage.answer(FetchRequest, FetchResponse((FetchableTopicResponse("t", (good, bad)),)))
    stage.join()
    kinds = [type(each.event).__name__ for each in stage.seen]
    assert kinds.index("RecordsProcessed") < kinds.index("ConsumerFailed")
    assert stage.committed["t", 0][0] == 2  # the application closes its client, and that commits


def test_a_closed_consumer_closes_its_connections() -> None:
    stage = reading()
    stage.join()
    stage.tell(CloseConsumer())
    stage.run(1000)
    assert stage.world.processes["c"].peers == {}
    assert stage.world.processes["c"].timers == {}
    assert stage.sent(OffsetCommitRequest)
