"""The application's loop: poll, process, commit, close; commands; and the commits it makes (A.11, A.12)."""

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from cluster.consumer.commands import Close as CloseConsumer
from cluster.consumer.commands import SetProcessing, Subscribe, Unsubscribe
from cluster.consumer.outbox import Backoff
from cluster.consumer.polling import Doing
from cluster.events import (
    CommitAnswered,
    ConsumerFailed,
    CoordinatorLost,
    JoinStarted,
    MemberLeft,
    PartitionsRevoked,
    PositionSet,
    RecordsProcessed,
)
from cluster.sim import hosts
from cluster.wire.errors import Error
from cluster.wire.groups import FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from cluster.wire.log import FetchRequest, MetadataRequest
from cluster.wire.offsets import OffsetCommitRequest, OffsetFetchRequest
from tests.unit.client_stage import After, Close, Hold, Stage

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}


def reading(**config: Any) -> Stage:
    stage = Stage(**{"auto_offset_reset": "earliest", **QUICK, **config})
    stage.assignment = {"t": (0,)}
    return stage


def committed(stage: Stage) -> list[int]:
    return [each.topics[0].partitions[0].committed_offset for each in stage.sent(OffsetCommitRequest)]


# Processing


def test_records_take_their_time_and_are_done_together() -> None:
    stage = reading(processing_ms_per_record=100)
    stage.produce(count=3)
    stage.join(ms=1000)
    (position,) = stage.event_times(PositionSet)
    assert stage.event_times(RecordsProcessed) == [position + 2 + 300]


def test_processing_can_become_slow_and_fast_while_it_is_going_on() -> None:
    stage = reading(processing_ms_per_record=100)
    stage.produce(count=10)
    stage.join(ms=12)
    stage.run(500)  # half of it is done
    stage.tell(SetProcessing(1000))
    stage.run(2500)  # three quarters
    stage.tell(SetProcessing(10))
    stage.run(100)
    assert stage.event_times(RecordsProcessed) == [12 + 500 + 2500 + 25]


def test_processing_that_takes_no_time_ends_where_it_began() -> None:
    stage = reading()
    stage.produce(count=1000)
    stage.join(ms=50)
    assert [event.count for event in stage.events(RecordsProcessed)] == [500, 500]
    assert len(set(stage.event_times(RecordsProcessed))) == 1


def test_records_are_processed_in_the_name_of_the_member_that_polled_them() -> None:
    stage = reading(processing_ms_per_record=2000)
    stage.produce()
    stage.join()
    stage.answer(HeartbeatRequest, Error.UNKNOWN_MEMBER_ID)
    stage.run(3000)
    (event,) = stage.events(RecordsProcessed)
    assert (event.member_id, event.generation) == ("m", 1)


def test_a_poll_that_does_not_wait_still_lets_time_pass() -> None:
    stage = Stage(poll_timeout_ms=0, **QUICK)
    stage.join(ms=100)
    stage.produce()
    stage.run(100)
    assert len(stage.events(RecordsProcessed)) == 1


def test_commands_wait_until_a_batch_is_processed() -> None:
    stage = reading(processing_ms_per_record=5000)
    stage.produce()
    stage.join()
    stage.tell(Unsubscribe())
    stage.run(4000)
    assert stage.sent(LeaveGroupRequest) == []
    stage.run(1000)
    assert len(stage.sent(LeaveGroupRequest)) == 1
    assert stage.event_times(PartitionsRevoked) == stage.event_times(RecordsProcessed)


def test_a_poll_is_interrupted_for_a_command() -> None:
    stage = reading()
    stage.join()
    stage.tell(Unsubscribe())
    assert len(stage.events(PartitionsRevoked)) == 1
    assert [event.cause for event in stage.events(MemberLeft)] == ["unsubscribed"]


def test_commands_while_it_closes_wait_for_the_end() -> None:
    stage = reading()
    stage.produce()
    stage.join()
    stage.answer(OffsetCommitRequest, After(500))
    stage.tell(CloseConsumer())
    stage.tell(Subscribe(("t",)))
    stage.run(2000)
    assert len(stage.events(MemberLeft)) == 1
    assert len(stage.events(JoinStarted)) == 2


# Automatic commits


def test_commits_leave_at_every_interval_counted_from_the_assignment() -> None:
    stage = reading()
    stage.produce(count=2)
    stage.join(ms=16_000)
    times = stage.times(OffsetCommitRequest)
    assert [later - sooner for sooner, later in pairwise(times)] == [5000, 5000]
    assert times[0] == 5006
    assert committed(stage) == [2, 2, 2]


def test_nothing_is_committed_before_there_is_a_position() -> None:
    stage = reading()
    stage.answer(OffsetFetchRequest, Hold())
    stage.join(ms=12_000)
    assert stage.sent(OffsetCommitRequest) == stage.events(CommitAnswered) == []


def test_a_commit_that_may_be_tried_again_is_after_a_moment() -> None:
    stage = reading()
    stage.produce(count=2)
    stage.answer(OffsetCommitRequest, Error.COORDINATOR_LOAD_IN_PROGRESS)
    stage.join(ms=6000)
    first, second = stage.times(OffsetCommitRequest)
    assert second - first == 102
    assert [event.error for event in stage.events(CommitAnswered)] == ["COORDINATOR_LOAD_IN_PROGRESS", "NONE"]


def test_a_commit_that_is_refused_for_good_waits_for_the_next_interval() -> None:
    stage = reading()
    stage.produce(count=2)
    stage.answer(OffsetCommitRequest, Error.OFFSET_METADATA_TOO_LARGE)
    stage.join(ms=10_500)
    first, second = stage.times(OffsetCommitRequest)
    assert second - first == 5000
    assert stage.events(ConsumerFailed) == []


def test_automatic_commits_can_be_switched_off() -> None:
    for config in ({"enable_auto_commit": False}, {"commit": "none"}):
        stage = reading(**config)
        stage.produce(count=2)
        stage.join(ms=20_000)
        stage.tell(CloseConsumer())
        stage.run(1000)
        assert stage.sent(OffsetCommitRequest) == []


def test_a_commit_before_a_rebalance_that_may_be_tried_again_holds_the_join_back() -> None:
    stage = reading()
    stage.produce()
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.answer(OffsetCommitRequest, *[Error.COORDINATOR_LOAD_IN_PROGRESS] * 2)
    stage.run(2000)
    commits = stage.times(OffsetCommitRequest)
    assert [later - sooner for sooner, later in pairwise(commits)] == [102, 102]
    assert stage.times(JoinGroupRequest)[1] == commits[2] + 2


def test_a_commit_before_a_rebalance_that_is_refused_does_not() -> None:
    stage = reading()
    stage.produce()
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.answer(OffsetCommitRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1000)
    assert stage.times(JoinGroupRequest)[1] == stage.times(OffsetCommitRequest)[0] + 2


def test_a_commit_waits_for_a_coordinator_and_leaves_when_one_is_found() -> None:
    stage = reading(commit="async")
    stage.join()
    stage.answer(FindCoordinatorRequest, After(500))
    stage.world.close(stage.world.processes["coordinator-1"], "c")
    stage.tell(SetProcessing(5))
    stage.produce()
    stage.run(100)
    assert stage.sent(OffsetCommitRequest) == []
    stage.run(1500)
    assert committed(stage) == [1]
    assert [event.error for event in stage.events(CommitAnswered)] == ["NONE"]


def test_a_commit_that_waits_for_a_coordinator_in_vain_may_be_tried_again() -> None:
    stage = reading(commit="async")
    stage.join()
    stage.tell(SetProcessing(100))
    stage.produce()
    stage.run(50)
    stage.answer(FindCoordinatorRequest, Error.COORDINATOR_NOT_AVAILABLE, always=True)
    stage.world.close(stage.world.processes["coordinator-1"], "c")
    stage.run(1000)
    assert [event.error for event in stage.events(CommitAnswered)] == ["COORDINATOR_NOT_AVAILABLE"]
    assert stage.sent(OffsetCommitRequest) == []


# commitSync


def test_an_application_that_commits_synchronously_waits_for_the_answer() -> None:
    stage = reading(commit="sync", max_poll_records=1)
    stage.answer(OffsetCommitRequest, After(300), After(300))
    stage.produce(count=2)
    stage.join(ms=1000)
    first, second = stage.event_times(RecordsProcessed)
    assert second - first == 302
    assert committed(stage) == [1, 2]


def test_it_tries_again_after_pauses_that_grow_until_its_time_is_over() -> None:
    stage = reading(commit="sync", default_api_timeout_ms=3000)
    stage.answer(OffsetCommitRequest, Error.COORDINATOR_LOAD_IN_PROGRESS, always=True)
    stage.produce()
    stage.join(ms=5000)
    times = stage.times(OffsetCommitRequest)
    pauses = [later - sooner for sooner, later in pairwise(times)]
    for pause, expected in zip(pauses, (100, 200, 400, 800), strict=False):
        assert expected * 0.8 <= pause - 2 <= expected * 1.2
    assert times[-1] - times[0] < 3000
    assert stage.events(ConsumerFailed) == []  # a timeout: the application goes on
    assert stage.world.processes["c"].machine.application.doing is Doing.POLLING  # type: ignore[attr-defined]


def test_it_waits_for_a_coordinator_too() -> None:
    stage = reading(commit="sync", processing_ms_per_record=100)
    stage.join()
    stage.produce()
    stage.run(50)
    stage.answer(FindCoordinatorRequest, *[Error.COORDINATOR_NOT_AVAILABLE] * 3)
    stage.world.close(stage.world.processes["coordinator-1"], "c")
    stage.run(5000)
    assert committed(stage) == [1]


def test_a_commit_that_nobody_answers_is_given_up_and_tried_again() -> None:
    stage = reading(commit="sync", request_timeout_ms=2000)
    stage.answer(OffsetCommitRequest, Hold())
    stage.produce()
    stage.join(ms=5000)
    assert committed(stage) == [1, 1]
    assert [event.error for event in stage.events(CommitAnswered)] == ["NETWORK_EXCEPTION", "NONE"]


# Close


def test_closing_commits_leaves_and_waits_for_both() -> None:
    stage = reading()
    stage.produce(count=3)
    stage.join()
    stage.answer(OffsetCommitRequest, After(100))
    stage.answer(LeaveGroupRequest, After(100))
    stage.tell(CloseConsumer())
    closed = stage.now
    stage.run(1000)
    assert stage.times(OffsetCommitRequest) == [closed]
    assert stage.times(LeaveGroupRequest) == [closed + 102]
    assert stage.sent(LeaveGroupRequest)[0].members[0].reason == "the consumer is being closed"
    assert [event.cause for event in stage.events(MemberLeft)] == ["closed"]
    assert stage.world.processes["c"].timers == {}


def test_closing_does_not_wait_longer_than_it_may() -> None:
    stage = reading(request_timeout_ms=10_000)
    stage.produce(count=3)
    stage.join()
    stage.answer(OffsetCommitRequest, Hold(), always=True)
    stage.tell(CloseConsumer())
    stage.run(9000)
    assert stage.sent(LeaveGroupRequest) == []
    stage.run(2000)
    assert stage.world.processes["c"].timers == {}


def test_closing_waits_for_commits_that_nobody_waited_for() -> None:
    stage = reading(commit="async")
    stage.join()
    stage.answer(OffsetCommitRequest, After(700))
    stage.produce()
    stage.run(10)
    stage.tell(CloseConsumer())
    stage.run(500)
    assert stage.sent(LeaveGroupRequest) == []
    stage.run(500)
    assert len(stage.sent(LeaveGroupRequest)) == 1


def test_closing_before_it_has_joined_leaves_nothing() -> None:
    stage = reading()
    stage.answer(FindCoordinatorRequest, Error.COORDINATOR_NOT_AVAILABLE, always=True)
    stage.join()
    stage.tell(CloseConsumer())
    stage.run(1000)
    assert stage.sent(LeaveGroupRequest) == stage.events(MemberLeft) == []
    assert stage.world.processes["c"].timers == {}


# Errors


def test_an_application_goes_on_after_an_error_that_may_pass_and_stops_after_any_other() -> None:
    stage = reading()
    stage.answer(JoinGroupRequest, Error.NOT_ENOUGH_REPLICAS, Error.GROUP_MAX_SIZE_REACHED)
    stage.join(ms=1000)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["NOT_ENOUGH_REPLICAS", "GROUP_MAX_SIZE_REACHED"]
    since = stage.now
    stage.run(100_000)
    assert [each for each in stage.heard if each.at > since] == []
    stage.tell(Subscribe(("t",)))
    stage.run(1000)
    assert len(stage.sent(JoinGroupRequest)) == 3


# The cluster


def test_metadata_is_refreshed_when_it_is_old() -> None:
    stage = Stage(metadata_max_age_ms=10_000, **QUICK)
    stage.join(ms=35_000)
    times = stage.times(MetadataRequest)
    assert [later - sooner for sooner, later in pairwise(times)] == [10_002] * 3
    assert len(stage.sent(JoinGroupRequest)) == 1


def test_metadata_is_refreshed_even_while_the_application_is_busy() -> None:
    stage = reading(metadata_max_age_ms=10_000, processing_ms_per_record=60_000)
    stage.produce()
    stage.join(ms=35_000)
    assert len(stage.sent(MetadataRequest)) == 4


def test_a_topic_that_does_not_exist_is_asked_for_again_and_again() -> None:
    stage = Stage(topics={}, **QUICK)
    stage.assignment = {}
    stage.join(ms=6000)
    assert 8 <= len(stage.sent(MetadataRequest)) <= 16
    assert len(stage.sent(JoinGroupRequest)) == 1  # the group forms all the same


def test_a_topic_that_is_forbidden_is_thrown() -> None:
    stage = Stage(**QUICK)
    stage.answer(MetadataRequest, Error.TOPIC_AUTHORIZATION_FAILED)
    stage.join(ms=500)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["TOPIC_AUTHORIZATION_FAILED"]


def test_another_broker_is_asked_if_one_is_down_and_those_it_started_with_if_all_are() -> None:
    stage = Stage(nodes=(1, 2), metadata_max_age_ms=3000, **QUICK)
    stage.leaders = {("t", n): (2, 0) for n in range(2)}
    stage.coordinator = 2
    stage.join()
    hosts.crash(stage.world, "broker-1")
    stage.nodes = (2,)
    stage.run(10_000)
    assert {each.to for each in stage.heard if isinstance(each.body, MetadataRequest) and each.at > 5000} == {
        "broker-2"
    }
    hosts.crash(stage.world, "broker-2")
    since = stage.now
    stage.run(5000)
    asked = {each.to for each in stage.heard if isinstance(each.body, MetadataRequest) and each.at > since}
    assert "broker-1" in asked


def test_a_broker_that_lags_behind_does_not_bring_an_older_leader_back() -> None:
    stage = Stage(nodes=(1, 2), metadata_max_age_ms=2000, **QUICK)
    stage.leaders["t", 0] = 2, 5
    stage.join()
    stage.leaders["t", 0] = 1, 4
    stage.run(5000)
    fetches = {
        (each.to, one.current_leader_epoch)
        for each in stage.heard
        if isinstance(each.body, FetchRequest)
        for one in each.body.topics[0].partitions
        if one.partition == 0
    }
    assert fetches == {("broker-2", 5)}


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    stage = Stage(request_timeout_ms=2000, **QUICK)
    stage.answer(HeartbeatRequest, Hold())
    stage.join(ms=4000)
    assert len(stage.events(CoordinatorLost)) == 1
    before = len(stage.seen)
    stage.release()
    stage.run(5)
    assert len(stage.seen) == before


def test_losing_a_connection_with_a_broker_asks_for_new_metadata() -> None:
    stage = Stage(**QUICK)
    stage.answer(FetchRequest, Close())
    stage.join(ms=500)
    assert len(stage.sent(MetadataRequest)) == 2


@pytest.mark.parametrize(
    ("first", "longest", "expected"),
    [(100, 1000, [100, 200, 400, 800, 1000, 1000]), (50, 50, [50] * 6), (0, 9, [0] * 6)],
)
def test_pauses_grow_up_to_a_limit_with_a_fifth_of_chance(first: int, longest: int, expected: list[int]) -> None:
    backoff, rng = Backoff(first, longest), Random(1)
    for _ in range(100):
        for failures, middle in enumerate(expected):
            pause = backoff.ms(failures, rng)
            assert middle * 0.8 - 1 <= pause <= min(middle * 1.2, longest)
    assert backoff.ms(1000, rng) <= longest
