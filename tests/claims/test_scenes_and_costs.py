"""The four scenes, and what a rebalance costs; the id of the claim is in the test's name."""

from random import Random
from typing import Any

import pytest

from cluster.consumer.commands import Close, SetProcessing
from cluster.events import (
    GenerationStarted,
    MemberRemoved,
    OffsetsExpired,
    PartitionsAssigned,
    PartitionsRevoked,
    PositionSet,
    RebalanceStarted,
    RecordsAcked,
    RecordsProcessed,
    SessionRenewed,
)
from cluster.sim import hosts
from cluster.wire.groups import JoinGroupRequest, SyncGroupRequest
from cluster.wire.log import FetchRequest, FetchResponse
from tests.unit.group_stage import Cluster
from tests.unit.scene import Scene

COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}
TOLD = ("JoinGroup", "SyncGroup", "LeaveGroup", "OffsetCommit")


def group(*names: str, topics: dict[str, int] | None = None, **config: Any) -> Cluster:
    cluster = Cluster(topics, delay_ms=1000)
    for name in names:
        cluster.consumer(name, **config)
    cluster.run(5000)
    return cluster


# Four scenes at the broker: who says what, in which order


def scene_of(cluster: Cluster, since: int) -> list[str]:
    """What was said about the group, in order; heartbeats only where they are answered with an error."""
    lines = []
    for at, envelope in cluster.heard:
        kind, body = type(envelope.body).__name__, envelope.body
        if at < since:
            continue
        if kind == "HeartbeatResponse" and body.error_code:
            lines.append(f"Heartbeat -> {envelope.destination}: {body.error_code.name}")
        elif kind.endswith("Request") and kind.removesuffix("Request") in TOLD:
            lines.append(f"{envelope.source}: {kind.removesuffix('Request')}")
        elif kind.endswith("Response") and kind.removesuffix("Response") in TOLD[:3]:
            lines.append(f"{kind.removesuffix('Response')} -> {envelope.destination}: {body.error_code.name}")
    return lines


def test_s1_a_member_joins_a_stable_group() -> None:
    cluster = group("a", commit="none")
    cluster.consumer("b", commit="none")
    since = cluster.now
    cluster.run(3000)
    assert scene_of(cluster, since) == [
        "b: JoinGroup",
        "JoinGroup -> b: MEMBER_ID_REQUIRED",
        "b: JoinGroup",
        "Heartbeat -> a: REBALANCE_IN_PROGRESS",
        "a: JoinGroup",
        "JoinGroup -> a: NONE",
        "JoinGroup -> b: NONE",
        "a: SyncGroup",
        "b: SyncGroup",
        "SyncGroup -> a: NONE",
        "SyncGroup -> b: NONE",
    ]


def test_s2_a_member_leaves() -> None:
    cluster = group("a", "b", commit="none")
    since = cluster.now
    cluster.tell("b", Close())
    cluster.run(3000)
    assert scene_of(cluster, since) == [
        "b: LeaveGroup",
        "LeaveGroup -> b: NONE",
        "Heartbeat -> a: REBALANCE_IN_PROGRESS",
        "a: JoinGroup",
        "JoinGroup -> a: NONE",
        "a: SyncGroup",
        "SyncGroup -> a: NONE",
    ]


def test_s3_a_member_crashes() -> None:
    cluster = group("a", "b", commit="none")
    since = cluster.now
    hosts.crash(cluster.world, "b")
    cluster.run(10_000)
    (removed,) = cluster.times(MemberRemoved)
    assert removed - since <= 6000
    assert scene_of(cluster, since) == [
        "Heartbeat -> a: REBALANCE_IN_PROGRESS",
        "a: JoinGroup",
        "JoinGroup -> a: NONE",
        "a: SyncGroup",
        "SyncGroup -> a: NONE",
    ]
    said = [at for at, each in cluster.heard if isinstance(each.body, JoinGroupRequest) and at > since]
    assert min(said) >= removed  # nothing is said of it before


def test_s4_a_member_commits_during_a_rebalance() -> None:
    """What a consumer does: it commits before it rejoins, and that is taken."""
    cluster = group("a", commit="auto", auto_commit_interval_ms=3_600_000)
    cluster.producer(records=40, records_per_second=100)
    cluster.run(2000)
    assert cluster.committed() == {}
    cluster.consumer("b", commit="none")
    since = cluster.now
    cluster.run(3000)
    said = scene_of(cluster, since)
    assert said[3:6] == ["Heartbeat -> a: REBALANCE_IN_PROGRESS", "a: OffsetCommit", "a: JoinGroup"]
    assert sum(cluster.committed().values()) == 40
    assert sum(event.offset for event in cluster.events(PositionSet, since=since)) == 40  # both begin there


# Costs


def test_c1_a_crash_is_noticed_exactly_the_session_timeout_after_the_last_heartbeat() -> None:
    scene = Scene()
    scene.stable(session_ms=6000, rebalance_ms=60000)
    scene.wait(4321)
    last = [stamped.at for stamped in scene.seen if isinstance(stamped.event, SessionRenewed)][-1]
    scene.wait(6000)
    assert [stamped.at - last for stamped in scene.seen if isinstance(stamped.event, MemberRemoved)][-1] == 6000
    assert scene.state() == "Empty"


def test_c2_commits_are_taken_while_preparing_and_refused_while_completing() -> None:
    scene = Scene()
    scene.preparing()
    assert scene.say("commit", "a", offsets={"t": {0: 4}}) == {"partitions": {"t": {0: "NONE"}}}
    scene.say("join", "a", async_="a")
    scene.say("join", "b", async_="b2")
    assert scene.say("commit", "a", offsets={"t": {0: 5}}) == {"partitions": {"t": {0: "REBALANCE_IN_PROGRESS"}}}


def test_c1_seen_from_the_crash_it_takes_up_to_a_heartbeat_interval_less() -> None:
    took = []
    for seed in range(30):
        cluster = Cluster(seed=seed, delay_ms=1000)
        for name in "ab":
            cluster.consumer(name, commit="none")
        cluster.run(6000 + Random(seed).randrange(1000))
        hosts.crash(cluster.world, "b")
        died = cluster.now
        cluster.run(7000)
        (removed,) = cluster.times(MemberRemoved)
        took.append(removed - died)
    assert all(6000 - 1000 <= each <= 6000 + 1 for each in took)
    assert max(took) - min(took) > 500  # spread over the interval, as the moment falls


@pytest.mark.parametrize(("config", "goes_on"), [({}, False), (COOPERATIVE, True)], ids=["eager", "cooperative"])
def test_c3_c6_nobody_reads_during_an_eager_rebalance_and_whoever_keeps_partitions_does_during_a_cooperative_one(
    config: dict[str, Any], goes_on: bool
) -> None:
    cluster = group("a", "b", **config)
    cluster.producer(records_per_second=100)
    cluster.run(2000)
    cluster.tell("b", SetProcessing(10_000))  # it will take its time to rejoin
    cluster.run(1000)
    cluster.consumer("c", **config)
    cluster.run(1500)
    since = cluster.now
    assert cluster.events(RebalanceStarted)[-1].cause == "member joined"
    cluster.run(1000)
    assert len(cluster.events(GenerationStarted)) == 1  # still waiting for b
    assert bool(cluster.processed("a", since)) is goes_on


def test_c6_with_numbers_partition_seconds_without_an_owner() -> None:
    stopped = {}
    for name, config in {"eager": {}, "cooperative": COOPERATIVE}.items():
        cluster = group("a", "b", topics={"t": 12}, **config)
        cluster.consumer("c", **config)
        cluster.run(10_000)
        revoked = [len(numbers) for event in cluster.events(PartitionsRevoked) for numbers in event.partitions.values()]
        stopped[name] = sum(revoked)
        assert sorted(map(len, cluster.owners().values())) == [1] * 12
    assert stopped == {"eager": 12, "cooperative": 4}


def rebalance_of(members: int, slow_ms: int = 0) -> tuple[int, int]:
    """How long a rebalance takes, from the cause to the last assignment, and how many messages of the protocol."""
    names = [f"m{number}" for number in range(members)]
    cluster = group(*names, topics={"t": members}, commit="none", max_poll_interval_ms=60_000)
    if slow_ms:
        cluster.producer(records_per_second=200, records=members * 20)
        cluster.run(1000)
        cluster.tell("m0", SetProcessing(slow_ms))
        cluster.producer("p2", records_per_second=200, records=members * 20)
        cluster.run(200)
    since = cluster.now
    cluster.consumer("late", commit="none")
    cluster.run(30_000)
    began = min(at for at in cluster.times(RebalanceStarted) if at >= since)
    ended = max(at for at in cluster.times(PartitionsAssigned) if at >= since)
    kinds = (JoinGroupRequest, SyncGroupRequest)
    return ended - began, sum(len(cluster.sent(kind, since=since)) for kind in kinds)


def test_c4_how_long_it_takes_depends_on_the_slowest_poll_not_on_the_number_of_members() -> None:
    (few_ms, few), (many_ms, many) = rebalance_of(5), rebalance_of(50)
    assert (few, many) == (2 * 6 + 1, 2 * 51 + 1)  # one join and one sync each; the newcomer joins twice
    assert max(few_ms, many_ms) <= 1000 + 1000  # a heartbeat interval, and a poll
    slow_ms, _ = rebalance_of(5, slow_ms=500)
    assert slow_ms > 5000  # one member has ten seconds' worth of records in its hands


def test_c5_what_was_processed_since_the_last_commit_is_processed_again() -> None:
    cluster = group("a", "b", commit="auto", auto_commit_interval_ms=4000)
    cluster.producer(records_per_second=100)
    cluster.run(6500)
    hosts.crash(cluster.world, "b")
    died = cluster.now
    done = {where: max(offsets) + 1 for where, offsets in cluster.processed("b").items()}
    committed = cluster.committed()
    lost = sum(end - committed.get(where, 0) for where, end in done.items())
    assert lost > 0
    cluster.run(15_000)
    again = [
        offset
        for where, offsets in cluster.processed("a", died).items()
        for offset in offsets
        if offset < done.get(where, 0)
    ]
    assert len(again) == lost


def test_c5_control_with_a_commit_after_each_batch_nothing_is() -> None:
    cluster = group("a", "b", commit="sync")
    cluster.producer(records_per_second=100)
    cluster.run(6500)
    hosts.crash(cluster.world, "b")
    cluster.run(15_000)
    for offsets in cluster.processed().values():
        assert offsets == list(range(len(offsets)))


def test_c7_one_owner_for_each_partition_and_members_beyond_their_number_idle() -> None:
    cluster = group("a", "b", "c", topics={"t": 2})
    assert sorted(cluster.owners()) == [0, 1]
    assert sorted(map(len, cluster.owned.values())) == [0, 1, 1]
    assert all(len(owners) == 1 for owners in cluster.owners().values())


def test_c8_an_empty_fetch_waits_at_the_broker_and_is_answered_as_soon_as_there_is_something() -> None:
    cluster = group("a", topics={"t": 1}, fetch_max_wait_ms=500, commit="none")
    since = cluster.now
    cluster.run(10_000)
    assert 19 <= len(cluster.sent(FetchRequest, "a", since=since)) <= 21
    assert {body.error_code for body in cluster.sent(FetchResponse, since=since)} == {0}
    cluster.producer(records=1, linger_ms=0)
    cluster.run(300)
    (acked,) = cluster.times(RecordsAcked)
    (processed,) = cluster.times(RecordsProcessed)
    assert processed - acked <= 2


def test_c9_only_the_group_that_rebalances_stops() -> None:
    cluster = Cluster(delay_ms=1000)
    for name, owner in (("a", "g"), ("b", "g"), ("x", "other")):
        cluster.consumer(name, group=owner)
    cluster.producer(records_per_second=100)
    cluster.run(6000)
    cluster.tell("b", SetProcessing(10_000))
    cluster.run(1000)
    cluster.consumer("c")
    cluster.run(2000)
    since = cluster.now
    cluster.run(1000)
    assert cluster.processed("a", since) == {}
    read = sum(map(len, cluster.processed("x", since).values()))
    acked = sum(event.count for event in cluster.events(RecordsAcked, since=since))
    assert min(read, acked) >= 90


def test_c10_the_emulator_says_how_many_offsets_expired() -> None:
    scene = Scene(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    scene.say("commit", offsets={"t": {0: 1, 1: 2}})
    scene.wait(62_000)
    assert [(event.group_id, event.count) for event in scene.events(OffsetsExpired)] == [("main", 2)]
