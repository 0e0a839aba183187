"""The heartbeat thread, rule by rule (A.6), and what happens without it."""

from itertools import pairwise
from typing import Any

import pytest

from cluster.config import BadSetting
from cluster.consumer.commands import SetProcessing
from cluster.consumer.states import MemberState
from cluster.events import (
    ConsumerFailed,
    CoordinatorFound,
    CoordinatorLost,
    Joined,
    PartitionsAssigned,
    PartitionsLost,
    PollIntervalExceeded,
    RecordsProcessed,
)
from cluster.sim import hosts
from cluster.wire.errors import Error
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from cluster.wire.log import MetadataRequest
from tests.unit.client_stage import After, Close, Hold, Stage, as_leader

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}


def busy(ms: int, **config: Any) -> Stage:
    """A member whose application has just begun to process one record, which takes so long."""
    stage = Stage(**QUICK, **config)
    stage.join()
    stage.tell(SetProcessing(ms))
    stage.produce()
    stage.run(1)
    return stage


def test_beats_leave_at_every_interval_counted_from_the_answer_to_the_join() -> None:
    stage = Stage(**QUICK)
    stage.join(ms=4500)
    (joined,) = stage.event_times(Joined)
    assert stage.times(HeartbeatRequest) == [joined + n * 1000 for n in (1, 2, 3, 4)]


def test_the_next_beat_does_not_wait_for_the_answer_to_the_last() -> None:
    stage = Stage(**QUICK)
    stage.answer(HeartbeatRequest, Hold(), always=True)
    stage.join(ms=4500)
    assert len(stage.sent(HeartbeatRequest)) == 4


def test_beats_go_on_while_the_application_processes() -> None:
    stage = busy(30_000)
    since = stage.now
    stage.run(29_000)
    assert len(stage.sent(HeartbeatRequest, since)) == 29
    assert stage.events(RecordsProcessed) == []


def test_every_answer_to_a_join_restarts_all_three_deadlines() -> None:
    stage = Stage(max_poll_interval_ms=3000, **QUICK)
    consumer = stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    joined = stage.event_times(Joined)[1]
    beats = consumer.heartbeats
    begin = stage.begin + joined
    assert (beats.next_due, beats.session_due) == (begin + 1000, begin + 6000)
    assert beats.poll_due >= begin + 3000


def test_while_a_join_is_in_flight_neither_session_nor_poll_interval_is_looked_at() -> None:
    stage = Stage(max_poll_interval_ms=5000, partition_assignment_strategy=["cooperative-sticky"], **QUICK)
    stage.join()
    stage.answer(JoinGroupRequest, Hold())
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    stage.tell(SetProcessing(20_000))
    stage.produce()
    since = stage.now
    stage.run(9000)
    assert stage.sent(HeartbeatRequest, since) == stage.sent(LeaveGroupRequest) == []
    assert stage.events(PollIntervalExceeded) == stage.events(CoordinatorLost) == []


def test_an_answer_to_a_join_that_comes_while_the_application_processes_waits_for_the_next_poll() -> None:
    """Kafka's heartbeat thread sleeps while JoinGroup is in flight: nobody reads the socket."""
    stage = Stage(partition_assignment_strategy=["cooperative-sticky"], **QUICK)
    stage.join()
    stage.answer(JoinGroupRequest, After(2000))
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    stage.tell(SetProcessing(10_000))
    stage.produce()
    stage.run(8000)
    assert len(stage.events(Joined)) == 1
    stage.run(3000)
    assert len(stage.events(Joined)) == 2
    assert stage.event_times(Joined)[1] == stage.event_times(RecordsProcessed)[0]


def test_an_answer_to_a_sync_is_taken_by_the_thread_and_taken_over_by_the_next_poll() -> None:
    stage = Stage(partition_assignment_strategy=["cooperative-sticky"], **QUICK)
    consumer = stage.join()
    stage.answer(SyncGroupRequest, After(2000))
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    stage.tell(SetProcessing(10_000))
    stage.produce()
    stage.run(4000)
    assert consumer.member.state is MemberState.STABLE
    assert len(stage.events(PartitionsAssigned)) == 1
    stage.run(7000)
    assert len(stage.events(PartitionsAssigned)) == 2


def test_a_thread_that_learns_that_it_is_nobody_stops_until_the_member_joins_again() -> None:
    stage = busy(10_000)
    stage.answer(HeartbeatRequest, Error.UNKNOWN_MEMBER_ID)
    stage.run(1000)
    since = stage.now
    stage.run(8500)
    assert stage.sent(HeartbeatRequest, since) == []
    assert stage.events(PartitionsLost) == []
    stage.run(2000)
    assert len(stage.events(PartitionsLost)) == 1
    assert len(stage.sent(JoinGroupRequest)) == 2


def test_while_the_application_is_busy_the_thread_looks_for_a_coordinator_every_other_pause() -> None:
    """One round drops a question that was not answered, the next one asks again."""
    stage = busy(60_000)
    stage.answer(FindCoordinatorRequest, Hold(), always=True)
    stage.answer(HeartbeatRequest, Close())
    stage.run(1000)
    since = stage.now
    stage.run(1000)
    assert len(stage.sent(FindCoordinatorRequest, since)) == 5


def test_an_answer_to_a_question_that_was_dropped_is_still_welcome() -> None:
    stage = busy(60_000)
    stage.answer(FindCoordinatorRequest, After(150))
    stage.answer(HeartbeatRequest, Close())
    stage.run(1500)
    assert len(stage.events(CoordinatorFound)) == 2


def test_between_two_polls_the_thread_drops_the_question_that_the_application_waited_for() -> None:
    """While a poll looks for the coordinator it holds the lock that the thread needs. Kafka's
    AbstractCoordinator.ensureCoordinatorReady is synchronized, and HeartbeatThread.run clears the future after it: a
    broker that is cut off holds a member up for one poll, not for request.timeout.ms."""
    stage = Stage(**QUICK, poll_timeout_ms=1000)
    stage.join()
    stage.answer(FindCoordinatorRequest, Hold(), always=True)
    stage.answer(HeartbeatRequest, Close())
    stage.run(2000)
    since = stage.now
    stage.run(5000)
    assert len(stage.sent(FindCoordinatorRequest, since)) == 5


def test_without_the_thread_nobody_drops_the_question() -> None:
    stage = Stage(**QUICK, poll_timeout_ms=1000, heartbeat_thread=False)
    stage.join()
    stage.answer(FindCoordinatorRequest, Hold(), always=True)
    stage.answer(HeartbeatRequest, Close())
    stage.run(2000)
    since = stage.now
    stage.run(5000)
    assert stage.sent(FindCoordinatorRequest, since) == []


def test_the_thread_finds_a_new_coordinator_and_the_session_goes_on() -> None:
    stage = Stage(nodes=(1, 2), **QUICK)
    stage.join()
    stage.tell(SetProcessing(60_000))
    stage.produce()
    hosts.crash(stage.world, "coordinator-1")
    stage.coordinator = 2
    stage.run(10_000)
    beats = [each for each in stage.heard if isinstance(each.body, HeartbeatRequest) and each.to == "coordinator-2"]
    assert len(beats) >= 8
    assert {(beat.body.member_id, beat.body.generation_id) for beat in beats} == {("m", 1)}
    assert [event.node for event in stage.events(CoordinatorFound)] == [1, 2]
    assert len(stage.sent(JoinGroupRequest)) == 1


def test_to_find_a_coordinator_restarts_the_local_session() -> None:
    stage = busy(60_000)
    stage.answer(HeartbeatRequest, Hold(), always=True)
    stage.run(20_000)
    lost = stage.event_times(CoordinatorLost)
    found = stage.event_times(CoordinatorFound)[1:]
    assert len(lost) >= 3
    assert all(later - sooner == 6000 for sooner, later in zip(found, lost[1:], strict=False))


def test_polling_keeps_the_poll_interval_from_ending_even_without_a_coordinator() -> None:
    stage = Stage(max_poll_interval_ms=3000, **QUICK)
    stage.join()
    stage.answer(FindCoordinatorRequest, Error.COORDINATOR_NOT_AVAILABLE, always=True)
    stage.answer(HeartbeatRequest, Close())
    stage.run(20_000)
    assert stage.events(PollIntervalExceeded) == []


def test_a_member_that_left_because_it_did_not_poll_joins_anew_when_it_does() -> None:
    stage = busy(8000, max_poll_interval_ms=5000)
    stage.run(12_000)
    first, second = stage.sent(JoinGroupRequest)
    assert second.member_id == ""
    assert second.reason == "consumer pro-actively leaving the group"
    (leave,) = stage.sent(LeaveGroupRequest)
    assert (leave.members[0].member_id, leave.members[0].reason) == ("m", "consumer poll timeout has expired.")
    assert first.rebalance_timeout_ms == 5000


def test_a_session_that_ended_comes_before_a_poll_interval_that_ended() -> None:
    """First match wins: the coordinator is given up, and only once there is one again the member leaves it."""
    stage = busy(60_000, max_poll_interval_ms=6000)
    stage.answer(HeartbeatRequest, Hold(), always=True)
    stage.run(8000)
    assert stage.event_times(CoordinatorLost)[0] < stage.event_times(PollIntervalExceeded)[0]
    assert stage.event_times(CoordinatorFound)[1] <= stage.event_times(PollIntervalExceeded)[0]


def test_a_leader_that_waits_for_metadata_does_not_beat() -> None:
    stage = Stage(topics={"t": 2, "u": 1}, **QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("u",))))
    stage.answer(MetadataRequest, Error.NONE, After(5000))
    stage.join(ms=4500)
    assert stage.sent(HeartbeatRequest) == stage.sent(SyncGroupRequest) == []
    stage.run(2000)
    assert len(stage.sent(SyncGroupRequest)) == 1
    assert len(stage.sent(HeartbeatRequest)) >= 1


def test_a_fenced_thread_is_dead_and_the_next_poll_throws() -> None:
    stage = busy(10_000, group_instance_id="i")
    stage.answer(HeartbeatRequest, Error.FENCED_INSTANCE_ID)
    stage.run(9000)
    assert stage.events(ConsumerFailed) == []
    since = stage.now
    stage.run(5000)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["FENCED_INSTANCE_ID"]
    assert stage.sent(HeartbeatRequest, since) == stage.sent(LeaveGroupRequest) == []


def test_a_heartbeat_interval_that_is_not_below_the_session_timeout_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"heartbeat\.interval\.ms"):
        Stage(session_timeout_ms=3000).consumer()


# Before 0.10.1


def test_without_the_thread_nothing_is_beaten_while_the_application_processes() -> None:
    stage = busy(5000, heartbeat_thread=False)
    since = stage.now
    stage.run(4900)
    assert stage.sent(HeartbeatRequest, since) == []
    stage.run(200)
    assert len(stage.sent(HeartbeatRequest, since)) == 1  # overdue, so it leaves at the beginning of the poll


def test_without_the_thread_beats_leave_from_inside_the_poll() -> None:
    stage = Stage(heartbeat_thread=False, **QUICK)
    stage.join(ms=4500)
    assert len(stage.sent(HeartbeatRequest)) == 4


def test_without_the_thread_there_is_no_poll_interval() -> None:
    stage = busy(30_000, heartbeat_thread=False, max_poll_interval_ms=5000)
    stage.run(40_000)
    assert stage.events(PollIntervalExceeded) == stage.sent(LeaveGroupRequest) == []
    assert stage.sent(JoinGroupRequest)[0].rebalance_timeout_ms == 6000  # JoinGroup v0 had only the session timeout


def test_without_the_thread_a_session_that_ended_meanwhile_gives_up_the_coordinator_first() -> None:
    stage = busy(10_000, heartbeat_thread=False)
    stage.run(12_000)
    assert [event.cause for event in stage.events(CoordinatorLost)] == ["session timed out"]
    assert len(stage.sent(JoinGroupRequest)) == 1
    assert stage.sent(HeartbeatRequest, since=10_000)


def test_without_the_thread_failures_are_tried_again_after_a_constant_pause() -> None:
    stage = Stage(heartbeat_thread=False, **QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, *[Error.UNKNOWN_SERVER_ERROR] * 4)
    stage.run(2000)
    times = stage.times(HeartbeatRequest)[:5]
    assert [later - sooner for sooner, later in pairwise(times)] == [102] * 4


def test_without_the_thread_answers_wait_for_the_next_poll() -> None:
    stage = Stage(heartbeat_thread=False, commit="async", **QUICK)
    stage.join()
    stage.tell(SetProcessing(3000))
    stage.produce()
    stage.run(1)
    consumer = stage.world.processes["c"].machine
    stage.run(2000)
    assert consumer.inbox  # type: ignore[attr-defined]
    stage.run(1500)
    assert not consumer.inbox  # type: ignore[attr-defined]
