"""Twenty-eight things about Kafka's client that are easily got wrong, by their numbers in the specification."""

from itertools import pairwise

import pytest

from cluster.consumer.commands import Close as CloseConsumer
from cluster.consumer.commands import SetProcessing, Subscribe, Unsubscribe
from cluster.events import (
    CommitAnswered,
    ConsumerFailed,
    CoordinatorFound,
    CoordinatorLost,
    GenerationStarted,
    Joined,
    JoinStarted,
    MemberLeft,
    MemberRemoved,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PlanMade,
    PollIntervalExceeded,
    RebalanceStarted,
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
from cluster.wire.log import FetchRequest, MetadataRequest
from cluster.wire.offsets import OffsetCommitRequest
from tests.unit.client_stage import Close, Hold, Stage, as_leader, edited
from tests.unit.group_stage import Cluster

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}


def test_01_the_default_assignors_run_eager_although_one_of_them_could_do_more() -> None:
    cluster = Cluster()
    cluster.consumer("a")
    cluster.run(2000)
    cluster.consumer("b")
    cluster.run(3000)
    told = [each.event for each in cluster.seen if each.machine == "a"]
    revoked = next(n for n, event in enumerate(told) if isinstance(event, PartitionsRevoked))
    rejoined = next(n for n, event in enumerate(told) if isinstance(event, JoinStarted) and n > 3)
    assert told[revoked].partitions == {"t": (0, 1, 2, 3)}  # type: ignore[attr-defined]
    assert revoked < rejoined


def test_02_heartbeats_flow_between_join_and_sync_and_not_before_the_join_is_answered() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, Hold())
    stage.answer(SyncGroupRequest, Hold())
    stage.join(ms=3000)
    assert stage.sent(HeartbeatRequest) == []
    stage.release(kind=JoinGroupRequest)
    stage.run(2500)
    assert len(stage.sent(HeartbeatRequest)) == 2
    assert len(stage.sent(SyncGroupRequest)) == 1


def test_03_a_member_whose_join_waits_is_not_expelled_though_it_cannot_beat() -> None:
    cluster = Cluster()
    cluster.consumer("a", processing_ms_per_record=20_000, max_poll_records=1)
    cluster.producer(records=1, records_per_second=1)
    cluster.run(2000)
    cluster.consumer("b")
    cluster.run(15_000)
    assert cluster.events(Joined, "b") == []
    cluster.run(10_000)
    assert cluster.events(MemberRemoved) == []
    assert [event.generation for event in cluster.events(Joined, "b")] == [2]


def test_04_a_heartbeat_that_is_told_to_rejoin_restarts_the_local_session() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS, always=True)
    stage.produce()
    stage.tell(SetProcessing(18_500))
    stage.produce(partition=1)
    stage.run(18_000)
    assert len(stage.sent(HeartbeatRequest)) >= 17
    assert stage.events(CoordinatorLost) == []
    assert len(stage.sent(JoinGroupRequest)) == 1


def test_05_the_end_of_the_local_session_only_makes_the_coordinator_unknown() -> None:
    stage = Stage(**QUICK)
    stage.join()
    before = stage.sent(HeartbeatRequest)
    stage.answer(HeartbeatRequest, Hold(), always=True)
    stage.run(7000)
    assert [event.cause for event in stage.events(CoordinatorLost)] == ["session timed out"]
    assert len(stage.sent(FindCoordinatorRequest)) >= 2
    stage.friendlier(HeartbeatRequest)
    stage.run(2000)
    beats = {(beat.member_id, beat.generation_id) for beat in [*before, *stage.sent(HeartbeatRequest)]}
    assert beats == {("m", 1)}
    assert len(stage.sent(JoinGroupRequest)) == 1


@pytest.mark.parametrize(
    ("error", "member_id"), [(Error.ILLEGAL_GENERATION, "m"), (Error.UNKNOWN_MEMBER_ID, "")], ids=lambda each: str(each)
)
def test_06_an_illegal_generation_keeps_the_member_id_an_unknown_member_does_not(error: Error, member_id: str) -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, error)
    stage.run(1500)
    first, second = stage.sent(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", member_id)


def test_07_an_error_to_a_heartbeat_of_an_older_generation_is_ignored() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, Hold(), Error.REBALANCE_IN_PROGRESS)
    stage.run(1000)
    stage.generation = 2
    stage.run(1500)
    assert [event.generation for event in stage.events(Joined)] == [1, 2]
    stage.release(Error.UNKNOWN_MEMBER_ID)
    stage.run(3000)
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert stage.events(PartitionsLost) == []


def test_08_a_member_that_is_given_an_id_joins_once_more_and_at_once() -> None:
    stage = Stage()
    named = edited(error_code=Error.MEMBER_ID_REQUIRED, member_id="m-1", generation_id=-1)
    stage.answer(JoinGroupRequest, named)
    stage.join()
    first, second = stage.sent(JoinGroupRequest)
    assert (first.member_id, second.member_id) == ("", "m-1")
    asked, again = stage.times(JoinGroupRequest)
    assert again - asked == 2
    assert stage.events(PartitionsRevoked) == []


def test_09_the_listener_is_called_with_empty_sets_where_kafka_calls_it() -> None:
    stage = Stage(**QUICK)
    stage.assignment = {}
    stage.join()
    assert stage.events(PartitionsRevoked) == []
    assert [event.partitions for event in stage.events(PartitionsAssigned)] == [{}]
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    assert [event.partitions for event in stage.events(PartitionsRevoked)] == [{}]
    assert [event.partitions for event in stage.events(PartitionsAssigned)] == [{}, {}]


def test_10_what_is_lost_is_told_once_and_not_revoked_as_well() -> None:
    stage = Stage(max_poll_interval_ms=5000)
    stage.join()
    stage.tell(SetProcessing(8000))
    stage.produce()
    stage.run(10_000)
    assert [event.partitions for event in stage.events(PartitionsLost)] == [{"t": (0, 1)}]
    assert stage.events(PartitionsRevoked) == []


def test_11_the_poll_interval_ends_in_the_background_and_the_listener_hears_of_it_in_the_next_poll() -> None:
    stage = Stage(max_poll_interval_ms=5000)
    stage.join()
    stage.tell(SetProcessing(8000))
    stage.produce()
    polled = stage.now
    stage.run(7000)
    (left,) = stage.times(LeaveGroupRequest)
    assert polled + 5000 <= left <= polled + 5100
    assert stage.events(PartitionsLost) == []
    assert [event.cause for event in stage.events(MemberLeft)] == ["poll interval"]
    stage.run(2000)
    assert len(stage.events(PollIntervalExceeded)) == 1
    assert stage.event_times(PartitionsLost) == stage.event_times(RecordsProcessed)


def test_12_a_static_member_that_is_closed_does_not_leave() -> None:
    cluster = Cluster()
    cluster.consumer("a", group_instance_id="i")
    cluster.consumer("b")
    cluster.run(5000)
    rebalances = len(cluster.events(RebalanceStarted))
    cluster.tell("a", CloseConsumer())
    closed = cluster.now
    cluster.run(5000)
    assert cluster.sent(LeaveGroupRequest, "a") == []
    assert len(cluster.events(RebalanceStarted)) == rebalances
    cluster.run(5000)
    assert len(cluster.events(RebalanceStarted)) == rebalances + 1
    assert 5000 <= cluster.times(MemberRemoved)[-1] - closed <= 6500
    assert cluster.owners() == {n: ["b"] for n in range(4)}


def test_12_nor_does_one_that_exceeds_its_poll_interval() -> None:
    stage = Stage(max_poll_interval_ms=5000, group_instance_id="i")
    stage.join()
    stage.tell(SetProcessing(8000))
    stage.produce()
    stage.run(7000)
    assert len(stage.events(PollIntervalExceeded)) == 1
    assert stage.sent(LeaveGroupRequest) == []
    stage.run(2000)
    assert stage.sent(JoinGroupRequest)[-1].member_id == ""


def test_13_a_join_may_take_the_poll_interval_and_five_seconds_longer_than_any_other_request() -> None:
    stage = Stage()
    stage.answer(JoinGroupRequest, Hold())
    stage.join(ms=60_000)
    stage.release()
    stage.run(100)
    assert len(stage.events(Joined)) == 1
    assert len(stage.sent(JoinGroupRequest)) == 1


@pytest.mark.parametrize("strategy", [["range"], ["cooperative-sticky"]], ids=["eager", "cooperative"])
def test_14_the_commit_before_a_rebalance_delays_the_join(strategy: list[str]) -> None:
    stage = Stage(partition_assignment_strategy=strategy, **QUICK)
    stage.join()
    stage.answer(OffsetCommitRequest, Hold())
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(4000)
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage.release(kind=OffsetCommitRequest)
    stage.run(10)
    assert len(stage.sent(JoinGroupRequest)) == 2


def test_14_but_not_for_longer_than_the_poll_interval() -> None:
    stage = Stage(max_poll_interval_ms=10_000, **QUICK)
    stage.join()
    stage.answer(OffsetCommitRequest, Hold(), always=True)
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(15_000)
    assert stage.times(JoinGroupRequest)[1] == stage.times(OffsetCommitRequest)[0] + 10_000


@pytest.mark.parametrize(("strategy", "returned"), [(["range"], 0), (["cooperative-sticky"], 3)], ids=["eager", "coop"])
def test_15_during_that_commit_an_eager_member_returns_nothing_a_cooperative_one_goes_on(
    strategy: list[str], returned: int
) -> None:
    stage = Stage(partition_assignment_strategy=strategy, **QUICK)
    stage.join()
    stage.answer(OffsetCommitRequest, Hold(), always=True)
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1500)
    stage.produce(count=3)
    stage.run(1000)
    assert sum(event.count for event in stage.events(RecordsProcessed)) == returned


@pytest.mark.parametrize(("command", "committed"), [(Unsubscribe(), {}), (CloseConsumer(), {("t", 0): 3})])
def test_16_closing_commits_and_unsubscribing_does_not(command: object, committed: dict[tuple[str, int], int]) -> None:
    stage = Stage(auto_offset_reset="earliest")
    stage.assignment = {"t": (0,)}
    stage.produce(count=3)
    stage.join()
    stage.tell(command)
    stage.run(100)
    assert {partition: offset for partition, (offset, _) in stage.committed.items()} == committed
    assert len(stage.sent(LeaveGroupRequest)) == 1


def test_17_an_automatic_commit_covers_what_earlier_polls_returned_and_no_more() -> None:
    stage = Stage(auto_offset_reset="earliest", max_poll_records=2, processing_ms_per_record=3000)
    stage.assignment = {"t": (0,)}
    stage.produce(count=6)
    stage.join(ms=7000)
    # two records take 6 s; the interval of 5 s is over when the second poll begins, before it returns the next two
    (commit,) = stage.sent(OffsetCommitRequest)
    assert commit.topics[0].partitions[0].committed_offset == 2
    hosts.crash(stage.world, "c")
    stage.run(60_000)
    assert stage.committed["t", 0][0] == 2


def test_18_a_commit_of_a_member_that_is_joining_fails_without_asking_anybody() -> None:
    stage = Stage(commit="async", partition_assignment_strategy=["cooperative-sticky"], **QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.answer(JoinGroupRequest, Hold())
    stage.run(1500)
    stage.produce()
    stage.run(500)
    assert [event.error for event in stage.events(CommitAnswered)] == ["RebalanceInProgress"]
    assert stage.sent(OffsetCommitRequest) == []


def test_18_a_commit_of_a_member_that_was_expelled_fails_without_asking_anybody() -> None:
    stage = Stage(commit="sync", processing_ms_per_record=2000, **QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, Error.UNKNOWN_MEMBER_ID)
    stage.produce()
    stage.run(2100)
    assert [event.error for event in stage.events(CommitAnswered)] == ["CommitFailed"]
    assert stage.sent(OffsetCommitRequest) == []
    assert len(stage.events(PartitionsLost)) == 1


def test_19_an_assignment_of_a_topic_that_is_not_wanted_any_more_is_dropped() -> None:
    stage = Stage(topics={"t": 2, "u": 1})
    stage.answer(SyncGroupRequest, Hold())
    stage.join("t")
    stage.tell(Subscribe(("u",)))
    stage.run(10)
    stage.assignment = {"u": (0,)}
    stage.answer(JoinGroupRequest, Hold())
    held = stage.held
    stage.assignment = {"t": (0, 1)}
    stage.release(kind=SyncGroupRequest)
    stage.run(10)
    assert held
    assert stage.events(PartitionsAssigned) == []
    assert [each.reason for each in stage.sent(JoinGroupRequest)] == [
        "",
        "received assignment does not match the current subscription",
    ]
    stage.assignment = {"u": (0,)}
    stage.release()
    stage.run(10)
    assert [event.owned for event in stage.events(PartitionsAssigned)] == [{"u": (0,)}]


@pytest.mark.parametrize("leads", [True, False])
def test_20_only_the_leader_reacts_to_new_partitions(leads: bool) -> None:
    stage = Stage(metadata_max_age_ms=10_000)
    if leads:
        stage.answer(JoinGroupRequest, as_leader(("m", ("t",))), always=True)
    stage.join(ms=5000)
    stage.topics["t"] = 3
    stage.run(4000)
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage.run(4000)
    assert len(stage.sent(JoinGroupRequest)) == (2 if leads else 1)
    if leads:
        assert stage.sent(JoinGroupRequest)[1].reason == "cached metadata has changed"
        assert stage.events(PlanMade)[-1].plan == {"m": {"t": (0, 1, 2)}}


def cooperative(*consumers: str) -> Cluster:
    cluster = Cluster({"t": 6})
    for name in consumers:
        cluster.consumer(name, partition_assignment_strategy=["cooperative-sticky"])
        cluster.run(4000)
    return cluster


def test_21_cooperative_members_need_a_second_rebalance_only_if_something_moves() -> None:
    cluster = cooperative("a")
    cluster.consumer("b", partition_assignment_strategy=["cooperative-sticky"])
    before = len(cluster.events(GenerationStarted))
    cluster.run(5000)
    assert len(cluster.events(GenerationStarted)) == before + 2
    cluster = cooperative("a", "b", "c")
    before = len(cluster.events(GenerationStarted))
    cluster.tell("c", CloseConsumer())
    cluster.run(5000)
    assert len(cluster.events(GenerationStarted)) == before + 1
    assert sorted(map(len, [cluster.owned["a"]["t"], cluster.owned["b"]["t"]])) == [3, 3]


def test_22_in_the_first_round_what_moves_belongs_to_nobody() -> None:
    cluster = cooperative("a", "b")
    first, second = cluster.events(PlanMade)[-2:]
    shared_out = sorted(n for share in first.plan.values() for n in share.get("t", ()))
    assert shared_out == [0, 1, 2]
    assert sorted(n for share in second.plan.values() for n in share.get("t", ())) == [0, 1, 2, 3, 4, 5]


def test_23_group_traffic_has_its_own_connection() -> None:
    stage = Stage(**QUICK)
    stage.join()
    hosts.cut(stage.world, "c", "broker-1")
    since = stage.now
    stage.run(10_000)
    assert len(stage.sent(HeartbeatRequest, since)) == 10
    assert stage.events(CoordinatorLost) == []


def test_24_without_a_coordinator_every_poll_takes_its_whole_time_and_returns_what_is_buffered() -> None:
    stage = Stage(auto_offset_reset="earliest", max_poll_records=2, poll_timeout_ms=1000, **QUICK)
    stage.join()
    stage.answer(FindCoordinatorRequest, Error.COORDINATOR_NOT_AVAILABLE, always=True)
    stage.answer(HeartbeatRequest, Close())
    stage.run(1000)
    assert len(stage.events(CoordinatorLost)) == 1
    lost = stage.now
    stage.produce(count=10)
    stage.run(6500)
    done = [at for at in stage.event_times(RecordsProcessed) if at > lost]
    assert [later - sooner for sooner, later in pairwise(done)] == [1000] * 4


def test_25_to_be_forbidden_is_thrown_for_a_join_and_not_for_a_heartbeat() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, *[Error.GROUP_AUTHORIZATION_FAILED] * 3)
    stage.run(5000)
    assert stage.events(ConsumerFailed) == []
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage = Stage()
    stage.answer(JoinGroupRequest, Error.GROUP_AUTHORIZATION_FAILED)
    stage.join(ms=5000)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["GROUP_AUTHORIZATION_FAILED"]
    assert len(stage.sent(JoinGroupRequest)) == 1


def gaps(times: list[int]) -> list[int]:
    return [later - sooner - 2 for sooner, later in pairwise(times)]  # two for the way there and back


def test_26_a_failed_join_is_tried_again_after_a_constant_pause_a_heartbeat_after_one_that_grows() -> None:
    stage = Stage()
    stage.answer(JoinGroupRequest, *[Error.COORDINATOR_LOAD_IN_PROGRESS] * 5)
    stage.join(ms=2000)
    assert gaps(stage.times(JoinGroupRequest)) == [100] * 5
    since = stage.now
    stage.answer(HeartbeatRequest, *[Error.UNKNOWN_SERVER_ERROR] * 6)
    stage.run(9000)
    pauses = gaps(stage.times(HeartbeatRequest, since))
    for pause, expected in zip(pauses, [100, 200, 400, 800, 1000, 1000], strict=False):
        assert expected * 0.8 <= pause <= min(expected * 1.2, 1000)


def test_27_nothing_that_interrupts_a_poll_loses_an_assignment() -> None:
    """The heartbeat thread takes the answer to SyncGroup; the application, woken by a command, then takes it over."""
    stage = Stage(partition_assignment_strategy=["cooperative-sticky"], **QUICK)
    stage.assignment = {"t": (0,)}
    stage.join()
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.answer(SyncGroupRequest, Hold())
    stage.run(1500)
    stage.tell(SetProcessing(5000))
    stage.produce()
    stage.run(1000)
    stage.assignment = {"t": (0, 1)}
    stage.release(kind=SyncGroupRequest)
    stage.run(1000)
    assert len(stage.events(PartitionsAssigned)) == 1
    stage.tell(Subscribe(("t",)))
    stage.run(4000)
    assert [event.partitions for event in stage.events(PartitionsAssigned)] == [{"t": (0,)}, {"t": (1,)}]
    assert len(stage.sent(JoinGroupRequest)) == 2


def test_28_leaving_is_said_once_and_only_to_a_coordinator_that_is_known() -> None:
    stage = Stage(**QUICK)
    stage.join()
    hosts.crash(stage.world, "coordinator-1")
    stage.answer(FindCoordinatorRequest, Error.COORDINATOR_NOT_AVAILABLE, always=True)
    stage.run(2000)
    stage.tell(CloseConsumer())
    stage.run(40_000)
    assert stage.sent(LeaveGroupRequest) == []
    assert stage.events(MemberLeft) == []
    quiet = stage.now
    stage.run(60_000)
    assert stage.sent(MetadataRequest, quiet) == stage.sent(FetchRequest, quiet) == []
    assert len(stage.events(CoordinatorFound)) == 1


def test_28_nor_is_it_repeated_if_nobody_answers() -> None:
    stage = Stage()
    stage.join()
    stage.answer(LeaveGroupRequest, Hold(), always=True)
    stage.tell(CloseConsumer())
    stage.run(120_000)
    assert len(stage.sent(LeaveGroupRequest)) == 1
