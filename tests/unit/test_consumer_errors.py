"""What the client does about every error, row by row of the specification (A.5), seen from outside."""

from typing import Any

import pytest

from cluster.consumer.commands import Subscribe, Unsubscribe
from cluster.consumer.states import MemberState
from cluster.events import CommitAnswered, ConsumerFailed, CoordinatorLost, PartitionsLost, RequestGivenUp
from cluster.wire.errors import Error
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from cluster.wire.log import MetadataRequest
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
from tests.unit.client_stage import Close, Hold, Stage, edited

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000, "partition_assignment_strategy": ["range"]}
AT_ONCE, PAUSED = 2, 102  # two milliseconds for the way there and back


def name_of(value: object) -> str:
    return value.name if isinstance(value, Error) else type(value).__name__ if not isinstance(value, str) else value


# FindCoordinator


@pytest.mark.parametrize(
    "answer", [Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Close()], ids=name_of
)
def test_a_coordinator_that_is_not_found_is_looked_for_again_with_fresh_metadata(answer: Any) -> None:
    stage = Stage()
    stage.answer(FindCoordinatorRequest, answer, answer)
    stage.join(ms=1000)
    first, second, third = stage.times(FindCoordinatorRequest)
    assert 80 <= second - first <= 130
    assert 160 <= third - second <= 250
    assert len(stage.sent(MetadataRequest)) >= 3
    assert len(stage.sent(JoinGroupRequest)) == 1


def test_a_lookup_that_nobody_answers_is_given_up_after_the_request_timeout() -> None:
    stage = Stage(request_timeout_ms=5000)
    stage.answer(FindCoordinatorRequest, Hold())
    stage.join(ms=6000)
    assert [event.api for event in stage.events(RequestGivenUp)] == ["FindCoordinator"]
    assert stage.times(FindCoordinatorRequest)[1] >= 5000
    assert len(stage.sent(JoinGroupRequest)) == 1


@pytest.mark.parametrize("error", [Error.GROUP_AUTHORIZATION_FAILED, Error.INVALID_GROUP_ID], ids=name_of)
def test_a_lookup_that_is_refused_for_good_is_thrown(error: Error) -> None:
    stage = Stage()
    stage.answer(FindCoordinatorRequest, error)
    stage.join(ms=5000)
    assert [event.error for event in stage.events(ConsumerFailed)] == [error.name]
    assert stage.sent(JoinGroupRequest) == []


# JoinGroup and SyncGroup of a member that was in the group as m in generation 1, and rejoins


def rejoining(kind: type, answer: Any, **config: Any) -> Stage:
    stage = Stage(**QUICK, **config)
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.answer(kind, answer)
    stage.run(1500)
    return stage


def seen(stage: Stage, kind: type) -> tuple[int, str, int, bool, list[str]]:
    """When it joins again after the second join, as whom; lookups; is the coordinator lost; what was thrown."""
    joins = stage.sent(JoinGroupRequest)
    failed = stage.times(kind)[1] if len(stage.times(kind)) > 1 else 0
    again = stage.times(JoinGroupRequest)[2] - failed if len(joins) > 2 else -1
    return (
        again,
        joins[2].member_id if len(joins) > 2 else "-",
        len(stage.sent(FindCoordinatorRequest)),
        bool(stage.events(CoordinatorLost)),
        [event.error for event in stage.events(ConsumerFailed)],
    )


JOINS = [
    (Error.COORDINATOR_LOAD_IN_PROGRESS, (PAUSED, "m", 1, False, [])),
    (Error.UNKNOWN_MEMBER_ID, (AT_ONCE, "", 1, False, [])),
    (edited(error_code=Error.MEMBER_ID_REQUIRED, member_id="m-2"), (AT_ONCE, "m-2", 1, False, [])),
    (Error.REBALANCE_IN_PROGRESS, (AT_ONCE, "m", 1, False, [])),
    *[
        (error, (-1, "-", 1, False, [error.name]))
        for error in (
            Error.FENCED_INSTANCE_ID,
            Error.INCONSISTENT_GROUP_PROTOCOL,
            Error.INVALID_SESSION_TIMEOUT,
            Error.INVALID_GROUP_ID,
            Error.GROUP_AUTHORIZATION_FAILED,
            Error.GROUP_MAX_SIZE_REACHED,
            Error.UNSUPPORTED_VERSION,
            Error.UNKNOWN_SERVER_ERROR,
        )
    ],
    (edited(protocol_type="connect"), (-1, "-", 1, False, ["INCONSISTENT_GROUP_PROTOCOL"])),
]
SYNCS = [
    (Error.REBALANCE_IN_PROGRESS, (AT_ONCE, "m", 1, False, [])),
    (Error.UNKNOWN_MEMBER_ID, (AT_ONCE, "", 1, False, [])),
    (Error.ILLEGAL_GENERATION, (AT_ONCE, "m", 1, False, [])),
    (Error.FENCED_INSTANCE_ID, (-1, "-", 1, False, ["FENCED_INSTANCE_ID"])),
    (Error.GROUP_AUTHORIZATION_FAILED, (-1, "-", 1, False, ["GROUP_AUTHORIZATION_FAILED"])),
    (Error.UNKNOWN_SERVER_ERROR, (-1, "-", 1, False, ["UNKNOWN_SERVER_ERROR"])),
    (edited(protocol_name="sticky"), (-1, "-", 1, False, ["INCONSISTENT_GROUP_PROTOCOL"])),
]


@pytest.mark.parametrize(("answer", "expected"), JOINS, ids=[name_of(each) for each, _ in JOINS])
def test_an_error_to_a_join(answer: Any, expected: object) -> None:
    assert seen(rejoining(JoinGroupRequest, answer), JoinGroupRequest) == expected


@pytest.mark.parametrize(("answer", "expected"), SYNCS, ids=[name_of(each) for each, _ in SYNCS])
def test_an_error_to_a_sync(answer: Any, expected: object) -> None:
    assert seen(rejoining(SyncGroupRequest, answer), SyncGroupRequest) == expected


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest])
@pytest.mark.parametrize("answer", [Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Close()], ids=name_of)
def test_a_coordinator_that_is_none_is_looked_for_again_and_the_member_keeps_its_id(kind: type, answer: Any) -> None:
    stage = rejoining(kind, answer)
    again, member_id, lookups, is_lost, thrown = seen(stage, kind)
    assert 100 <= again <= 400
    assert (member_id, is_lost, thrown) == ("m", True, [])
    assert lookups >= 2
    assert stage.events(PartitionsLost) == []


def test_a_sync_that_is_told_to_wait_for_loading_is_thrown_and_joined_again_a_moment_later() -> None:
    """The application goes on, since that may help; no rule of the client says so for SyncGroup."""
    again, member_id, _, is_lost, thrown = seen(
        rejoining(SyncGroupRequest, Error.COORDINATOR_LOAD_IN_PROGRESS), SyncGroupRequest
    )
    assert (again, member_id, is_lost) == (PAUSED, "m", False)
    assert thrown == ["COORDINATOR_LOAD_IN_PROGRESS"]


def test_a_join_that_is_thrown_is_tried_again_by_the_next_poll_without_preparing_again() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, Error.NOT_ENOUGH_REPLICAS)
    stage.join(ms=500)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["NOT_ENOUGH_REPLICAS"]
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert stage.sent(JoinGroupRequest)[1].reason == "rebalance failed due to NOT_ENOUGH_REPLICAS"


def test_an_answer_to_a_join_is_dropped_if_the_member_has_left_meanwhile() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, Hold())
    stage.join(ms=50)
    stage.tell(Unsubscribe())
    stage.tell(Subscribe(("t",)))
    stage.release()
    stage.run(10)
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage.run(200)
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert len(stage.sent(SyncGroupRequest)) == 1


# Heartbeat of a STABLE member

BEATS = [
    (Error.REBALANCE_IN_PROGRESS, "m", 2, False, []),
    (Error.ILLEGAL_GENERATION, "m", 2, True, []),
    (Error.UNKNOWN_MEMBER_ID, "", 2, True, []),
    (Error.GROUP_AUTHORIZATION_FAILED, "", 1, False, []),
    (Error.UNKNOWN_SERVER_ERROR, "", 1, False, []),
    (Error.COORDINATOR_NOT_AVAILABLE, "", 1, False, []),
    (Error.NOT_COORDINATOR, "", 1, False, []),
    (Close(), "", 1, False, []),
    (Error.FENCED_INSTANCE_ID, "", 1, True, ["FENCED_INSTANCE_ID"]),
]


@pytest.mark.parametrize(
    ("answer", "member_id", "joins", "loses", "thrown"), BEATS, ids=[name_of(row[0]) for row in BEATS]
)
def test_an_error_to_a_heartbeat(answer: Any, member_id: str, joins: int, loses: bool, thrown: list[str]) -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, answer)
    stage.run(2500)
    asked = stage.sent(JoinGroupRequest)
    assert (len(asked), asked[-1].member_id) == (joins, member_id)
    assert bool(stage.events(PartitionsLost)) is loses
    assert [event.error for event in stage.events(ConsumerFailed)] == thrown
    gone = answer in (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR) or isinstance(answer, Close)
    assert bool(stage.events(CoordinatorLost)) is gone


def test_a_heartbeat_that_is_told_to_rejoin_while_the_member_does_so_counts_as_any_other() -> None:
    stage = Stage(**QUICK)
    stage.answer(SyncGroupRequest, Hold())
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.join(ms=1500)
    stage.release()
    stage.run(3000)
    assert len(stage.sent(JoinGroupRequest)) == 1


# LeaveGroup


@pytest.mark.parametrize("answer", [Error.UNKNOWN_MEMBER_ID, Error.NOT_COORDINATOR, Close()], ids=name_of)
def test_whatever_is_answered_to_a_leave_nothing_follows_from_it(answer: Any) -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(LeaveGroupRequest, answer)
    stage.tell(Unsubscribe())
    stage.run(50)
    stage.tell(Subscribe(("t",)))
    stage.run(500)
    assert len(stage.sent(LeaveGroupRequest)) == 1
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert stage.events(ConsumerFailed) == []


# OffsetCommit, of an application that commits after every record and waits for it

COMMITS = [
    (Error.NONE, ["NONE"], 1, []),
    (Error.GROUP_AUTHORIZATION_FAILED, ["GROUP_AUTHORIZATION_FAILED"], 1, ["GROUP_AUTHORIZATION_FAILED"]),
    (Error.TOPIC_AUTHORIZATION_FAILED, ["TOPIC_AUTHORIZATION_FAILED"], 1, ["TOPIC_AUTHORIZATION_FAILED"]),
    (Error.OFFSET_METADATA_TOO_LARGE, ["OFFSET_METADATA_TOO_LARGE"], 1, ["OFFSET_METADATA_TOO_LARGE"]),
    (Error.INVALID_COMMIT_OFFSET_SIZE, ["INVALID_COMMIT_OFFSET_SIZE"], 1, ["INVALID_COMMIT_OFFSET_SIZE"]),
    (Error.COORDINATOR_LOAD_IN_PROGRESS, ["COORDINATOR_LOAD_IN_PROGRESS", "NONE"], 1, []),
    (Error.UNKNOWN_TOPIC_OR_PARTITION, ["UNKNOWN_TOPIC_OR_PARTITION", "NONE"], 1, []),
    (Error.COORDINATOR_NOT_AVAILABLE, ["COORDINATOR_NOT_AVAILABLE", "NONE"], 1, []),
    (Error.NOT_COORDINATOR, ["NOT_COORDINATOR", "NONE"], 1, []),
    (Error.REQUEST_TIMED_OUT, ["REQUEST_TIMED_OUT", "NONE"], 1, []),
    (Close(), ["NETWORK_EXCEPTION", "NONE"], 1, []),
    (Error.REBALANCE_IN_PROGRESS, ["REBALANCE_IN_PROGRESS"], 2, []),
    (Error.UNKNOWN_MEMBER_ID, ["UNKNOWN_MEMBER_ID"], 2, []),
    (Error.ILLEGAL_GENERATION, ["ILLEGAL_GENERATION"], 2, []),
    (Error.FENCED_INSTANCE_ID, ["FENCED_INSTANCE_ID"], 1, ["FENCED_INSTANCE_ID"]),
    (Error.UNKNOWN_SERVER_ERROR, ["UNKNOWN_SERVER_ERROR"], 1, ["UNKNOWN_SERVER_ERROR"]),
]


@pytest.mark.parametrize(("answer", "answered", "joins", "thrown"), COMMITS, ids=[name_of(row[0]) for row in COMMITS])
def test_an_error_to_a_commit(answer: Any, answered: list[str], joins: int, thrown: list[str]) -> None:
    stage = Stage(**QUICK, commit="sync")
    stage.join()
    stage.answer(OffsetCommitRequest, answer)
    stage.produce()
    stage.run(900)
    assert [event.error for event in stage.events(CommitAnswered)] == answered
    assert len(stage.sent(JoinGroupRequest)) == joins
    assert [event.error for event in stage.events(ConsumerFailed)] == thrown
    gone = (Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT)
    assert bool(stage.events(CoordinatorLost)) is (answer in gone or isinstance(answer, Close))


def test_the_first_decisive_error_of_a_commit_counts_and_what_is_forbidden_comes_last() -> None:
    def parts(*errors: Error) -> OffsetCommitResponse:
        answered = tuple(OffsetCommitResponsePartition(number, error) for number, error in enumerate(errors))
        return OffsetCommitResponse((OffsetCommitResponseTopic("t", answered),))

    for errors, expected in [
        ((Error.TOPIC_AUTHORIZATION_FAILED, Error.NONE), "TOPIC_AUTHORIZATION_FAILED"),
        ((Error.TOPIC_AUTHORIZATION_FAILED, Error.OFFSET_METADATA_TOO_LARGE), "OFFSET_METADATA_TOO_LARGE"),
        ((Error.OFFSET_METADATA_TOO_LARGE, Error.GROUP_AUTHORIZATION_FAILED), "OFFSET_METADATA_TOO_LARGE"),
    ]:
        stage = Stage(**QUICK, commit="sync")
        stage.join()
        stage.answer(OffsetCommitRequest, parts(*errors))
        stage.produce()
        stage.run(100)
        assert [event.error for event in stage.events(ConsumerFailed)] == [expected]


@pytest.mark.parametrize(
    "error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID], ids=name_of
)
def test_a_commit_of_an_older_generation_resets_nothing_while_the_member_rejoins(error: Error) -> None:
    stage = Stage(**QUICK, commit="async")
    consumer = stage.join()
    stage.answer(OffsetCommitRequest, Hold())
    stage.produce()
    stage.run(100)
    consumer.member.generation = type(consumer.member.generation)(2, "m", "range")  # it has been in another one since
    stage.answer(JoinGroupRequest, Hold())
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    stage.release(error, OffsetCommitRequest)
    stage.run(100)
    assert consumer.member.state is MemberState.PREPARING
    assert consumer.member.generation.number == 2
    assert [event.error for event in stage.events(CommitAnswered)] == [error.name]
    assert stage.events(ConsumerFailed) == []


def test_a_fenced_commit_of_an_older_generation_is_no_reason_to_stop() -> None:
    stage = Stage(**QUICK, commit="async")
    consumer = stage.join()
    stage.answer(OffsetCommitRequest, Hold())
    stage.produce()
    stage.run(100)
    consumer.member.generation = type(consumer.member.generation)(2, "m", "range")
    stage.release(Error.FENCED_INSTANCE_ID, OffsetCommitRequest)
    stage.run(2000)
    assert stage.events(ConsumerFailed) == []
    assert consumer.member.state is MemberState.STABLE


def test_a_fenced_commit_that_nobody_waits_for_is_thrown_by_the_next_poll() -> None:
    stage = Stage(**QUICK, commit="async")
    stage.join()
    stage.answer(OffsetCommitRequest, Error.FENCED_INSTANCE_ID)
    stage.produce()
    stage.run(100)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["FENCED_INSTANCE_ID"]


# OffsetFetch


def offsets(*errors: Error, group: Error = Error.NONE) -> OffsetFetchResponse:
    parts = tuple(OffsetFetchResponsePartition(n, error_code=error) for n, error in enumerate(errors))
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup("g", (OffsetFetchResponseTopic("t", parts),), group),))


FORBIDDEN, UNSTABLE = Error.TOPIC_AUTHORIZATION_FAILED, Error.UNSTABLE_OFFSET_COMMIT
OFFSETS = [
    (Error.COORDINATOR_NOT_AVAILABLE, True, []),
    (Error.NOT_COORDINATOR, True, []),
    (Close(), True, []),
    (Error.COORDINATOR_LOAD_IN_PROGRESS, False, []),
    (Error.GROUP_AUTHORIZATION_FAILED, False, ["GROUP_AUTHORIZATION_FAILED"]),
    (Error.UNKNOWN_SERVER_ERROR, False, ["UNKNOWN_SERVER_ERROR"]),
    (offsets(Error.NONE, UNSTABLE), False, []),
    (offsets(FORBIDDEN, Error.NONE), False, ["TOPIC_AUTHORIZATION_FAILED"]),
    (offsets(UNSTABLE, FORBIDDEN), False, ["TOPIC_AUTHORIZATION_FAILED"]),
]


@pytest.mark.parametrize(("answer", "loses", "thrown"), OFFSETS, ids=[name_of(row[0]) for row in OFFSETS])
def test_an_error_to_the_question_for_committed_offsets(answer: Any, loses: bool, thrown: list[str]) -> None:
    stage = Stage(**QUICK)
    stage.answer(OffsetFetchRequest, answer)
    stage.join(ms=900)
    assert bool(stage.events(CoordinatorLost)) is loses
    assert [event.error for event in stage.events(ConsumerFailed)] == thrown
    assert len(stage.sent(OffsetFetchRequest)) == (1 if thrown else 2)
    assert all(request.require_stable for request in stage.sent(OffsetFetchRequest))


def test_a_partition_that_does_not_exist_is_thrown_where_a_commit_would_try_again() -> None:
    stage = Stage(**QUICK)
    stage.answer(OffsetFetchRequest, offsets(Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION))
    stage.join(ms=900)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["UNKNOWN_TOPIC_OR_PARTITION"]


def test_committed_offsets_are_asked_for_again_after_pauses_that_grow() -> None:
    stage = Stage(**QUICK)
    stage.answer(OffsetFetchRequest, *[Error.COORDINATOR_LOAD_IN_PROGRESS] * 3)
    stage.join(ms=2000)
    first, second, third, fourth = stage.times(OffsetFetchRequest)
    assert 80 <= second - first <= 125
    assert 160 <= third - second <= 245
    assert 320 <= fourth - third <= 485
