"""Consumers, coordinator and brokers together: groups that form, change, break and heal."""

from itertools import chain

import pytest

from cluster.consumer.commands import Close, SetProcessing, Subscribe, Unsubscribe
from cluster.events import (
    ConsumerFailed,
    CoordinatorFound,
    CoordinatorLost,
    GenerationStarted,
    Joined,
    MemberRemoved,
    MemberReplaced,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PollIntervalExceeded,
    PositionSet,
    RebalanceStarted,
)
from cluster.sim import hosts
from cluster.wire.groups import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from tests.unit.group_stage import Cluster

COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}


def formed(*names: str, topics: dict[str, int] | None = None, brokers: int = 1, **config: object) -> Cluster:
    """A stable group of these."""
    cluster = Cluster(topics, brokers=brokers, delay_ms=1000)
    for name in names:
        cluster.consumer(name, *(topics or ("t",)), **config)
    cluster.run(5000)
    return cluster


def test_a_group_forms_in_one_rebalance_if_its_members_come_in_time() -> None:
    cluster = formed("a", "b", "c", "d")
    assert len(cluster.events(GenerationStarted)) == 1
    assert cluster.owners() == {0: ["a"], 1: ["b"], 2: ["c"], 3: ["d"]}


def test_members_beyond_the_number_of_partitions_idle() -> None:
    cluster = formed("a", "b", "c", topics={"t": 2})
    assert sorted(map(len, cluster.owners().values())) == [1, 1]
    assert sorted(map(len, cluster.owned.values())) == [0, 1, 1]


def test_a_member_that_joins_gets_its_share_within_a_heartbeat_interval() -> None:
    cluster = formed("a")
    cluster.consumer("b")
    joined = cluster.now
    cluster.run(3000)
    assert cluster.owners() == {0: ["a"], 1: ["a"], 2: ["b"], 3: ["b"]}
    assert cluster.times(PartitionsAssigned, "b")[0] - joined <= 1100


def test_a_member_that_leaves_gives_its_share_back_at_once() -> None:
    cluster = formed("a", "b")
    cluster.tell("b", Close())
    left = cluster.now
    cluster.run(3000)
    assert cluster.owners() == {n: ["a"] for n in range(4)}
    assert cluster.times(RebalanceStarted)[-1] - left <= 5
    assert len(cluster.sent(LeaveGroupRequest, "b")) == 1


def test_a_member_that_crashes_is_noticed_after_its_session_timeout() -> None:
    cluster = formed("a", "b")
    cluster.producer(records_per_second=20)
    cluster.run(3000)
    hosts.crash(cluster.world, "b")
    cluster.owned.pop("b")
    died = cluster.now
    cluster.run(10_000)
    (removed,) = cluster.times(MemberRemoved)
    assert 5000 <= removed - died <= 6001
    assert cluster.owners() == {n: ["a"] for n in range(4)}


def test_a_member_that_comes_back_as_another_process_is_a_new_member() -> None:
    cluster = formed("a", "b")
    hosts.crash(cluster.world, "b")
    cluster.owned.pop("b")
    cluster.run(500)
    hosts.restart(cluster.world, "b")
    cluster.run(12_000)
    assert sorted(chain(*cluster.owners().values())) == ["a", "a", "b", "b"]
    assert len({event.member_id for event in cluster.events(Joined, "b")}) == 2


def test_a_pause_shorter_than_the_session_timeout_causes_nothing() -> None:
    cluster = formed("a", "b")
    hosts.pause(cluster.world, "b")
    cluster.run(4000)
    hosts.wake(cluster.world, "b")
    cluster.run(5000)
    assert len(cluster.events(GenerationStarted)) == 1
    assert cluster.events(MemberRemoved) == []


def test_a_member_that_pauses_for_longer_is_expelled_learns_it_and_rejoins() -> None:
    cluster = formed("a", "b")
    hosts.pause(cluster.world, "b")
    cluster.run(9000)
    hosts.wake(cluster.world, "b")
    cluster.run(6000)
    assert [event.cause for event in cluster.events(MemberRemoved)] == ["session expired"]
    assert len(cluster.events(PartitionsLost, "b")) == 1
    assert sorted(chain(*cluster.owners().values())) == ["a", "a", "b", "b"]


def test_cooperative_members_hand_over_only_what_moves() -> None:
    cluster = formed("a", topics={"t": 6}, **COOPERATIVE)
    cluster.consumer("b", **COOPERATIVE)
    cluster.run(4000)
    assert [event.partitions for event in cluster.events(PartitionsRevoked, "a")] == [{"t": (3, 4, 5)}]
    assert cluster.owners() == {0: ["a"], 1: ["a"], 2: ["a"], 3: ["b"], 4: ["b"], 5: ["b"]}
    assert [event.generation for event in cluster.events(GenerationStarted)] == [1, 2, 3]


@pytest.mark.parametrize(("config", "goes_on"), [({}, False), (COOPERATIVE, True)], ids=["eager", "cooperative"])
def test_while_somebody_is_slow_to_rejoin_only_cooperative_members_go_on_reading(
    config: dict[str, object], goes_on: bool
) -> None:
    cluster = formed("a", "b", **config)
    cluster.producer(records_per_second=50)
    cluster.run(2000)
    cluster.tell("b", SetProcessing(5000))
    cluster.run(1000)
    cluster.consumer("c", **config)
    cluster.run(2500)
    since = cluster.now
    cluster.run(1000)
    assert bool(cluster.processed("a", since)) is goes_on


def test_a_static_member_that_restarts_in_time_causes_no_rebalance() -> None:
    cluster = formed("a", "b", group_instance_id=None)
    cluster = Cluster(delay_ms=1000)
    for name in ("a", "b"):
        cluster.consumer(name, group_instance_id=name)
    cluster.run(5000)
    before = cluster.owners()
    hosts.crash(cluster.world, "b")
    cluster.run(1000)
    hosts.restart(cluster.world, "b")
    cluster.run(5000)
    assert cluster.owners() == before
    assert len(cluster.events(GenerationStarted)) == 1
    assert len(cluster.events(MemberReplaced)) == 1


def test_of_two_members_with_one_instance_id_the_newer_wins_and_the_older_dies() -> None:
    cluster = Cluster(delay_ms=1000)
    cluster.consumer("a", group_instance_id="i")
    cluster.run(4000)
    cluster.consumer("b", group_instance_id="i")
    cluster.run(5000)
    assert [event.error for event in cluster.events(ConsumerFailed, "a")] == ["FENCED_INSTANCE_ID"]
    assert cluster.owners() == {n: ["b"] for n in range(4)}


def test_unsubscribing_leaves_the_group() -> None:
    cluster = formed("a", "b")
    cluster.tell("b", Unsubscribe())
    cluster.run(3000)
    assert cluster.owners() == {n: ["a"] for n in range(4)}
    cluster.tell("b", Subscribe(("t",)))
    cluster.run(3000)
    assert sorted(chain(*cluster.owners().values())) == ["a", "a", "b", "b"]


def test_another_subscription_makes_the_group_rebalance() -> None:
    cluster = formed("a", "b", topics={"t": 2, "u": 2})
    cluster.tell("b", Subscribe(("u",)))
    cluster.run(3000)
    assert cluster.owners("t") == {0: ["a"], 1: ["a"]}
    assert sorted(chain(*cluster.owners("u").values())) == ["a", "b"]


def test_a_pattern_finds_a_new_topic_when_the_metadata_is_refreshed() -> None:
    cluster = Cluster({"orders-1": 2})
    cluster.consumer("a", pattern="orders-.*", metadata_max_age_ms=10_000)
    cluster.run(5000)
    assert cluster.owners("orders-1") == {0: ["a"], 1: ["a"]}
    cluster.create(**{"orders-2": 1})
    created = cluster.now
    cluster.run(4000)
    assert cluster.owners("orders-2") == {}
    cluster.run(8000)
    assert cluster.owners("orders-2") == {0: ["a"]}
    assert cluster.times(RebalanceStarted)[-1] - created <= 10_500


def test_new_partitions_are_noticed_by_the_leader_when_its_metadata_is_old() -> None:
    cluster = Cluster({"t": 2}, delay_ms=1000)
    cluster.consumer("a", metadata_max_age_ms=30_000)
    cluster.consumer("b", metadata_max_age_ms=5000)
    cluster.run(4000)
    leader = next(event.leads for event in cluster.events(Joined, "a"))
    assert leader is True
    cluster.grow("t", 4)
    cluster.run(15_000)
    assert len(cluster.events(GenerationStarted)) == 1  # the follower has seen it long since
    cluster.run(20_000)
    assert len(cluster.events(GenerationStarted)) == 2
    assert sorted(cluster.owners()) == [0, 1, 2, 3]


def test_a_member_that_does_not_poll_in_time_leaves_by_itself() -> None:
    cluster = formed("a", "b", max_poll_interval_ms=5000)
    cluster.producer(records_per_second=20)
    cluster.run(2000)
    cluster.tell("b", SetProcessing(30_000))
    cluster.run(10_000)
    assert len(cluster.events(PollIntervalExceeded, "b")) == 1
    assert [event.cause for event in cluster.events(MemberRemoved)] == ["left"]
    assert sorted(n for n, owners in cluster.owners().items() if "a" in owners) == [0, 1, 2, 3]
    cluster.tell("b", SetProcessing(0))
    cluster.run(10_000)
    assert sorted(chain(*cluster.owners().values())) == ["a", "a", "b", "b"]


@pytest.mark.parametrize("thread", [True, False])
def test_slow_processing_looks_like_death_only_without_the_heartbeat_thread(thread: bool) -> None:
    cluster = formed("a", "b", heartbeat_thread=thread)
    cluster.producer(records=1)
    cluster.tell("a", SetProcessing(8000))
    cluster.tell("b", SetProcessing(8000))
    cluster.run(9000)
    expelled = [event.cause for event in cluster.events(MemberRemoved)]
    assert expelled == ([] if thread else ["session expired"])


def test_nothing_is_read_twice_if_everybody_commits_in_time() -> None:
    cluster = formed("a", "b")
    cluster.producer(records_per_second=100)
    cluster.run(5000)
    cluster.tell("b", Close())
    cluster.run(5000)
    for offsets in cluster.processed().values():
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize(("commit", "reread"), [("auto", True), ("sync", False), ("none", True)])
def test_what_was_not_committed_before_a_crash_is_read_again(commit: str, reread: bool) -> None:
    cluster = formed("a", "b", commit=commit, auto_commit_interval_ms=3000)
    cluster.producer(records_per_second=100)
    cluster.run(5000)
    hosts.crash(cluster.world, "b")
    died = cluster.now
    before = cluster.processed("b")
    cluster.run(10_000)
    after = cluster.processed("a", died)
    twice = [offset for partition, offsets in before.items() for offset in set(offsets) & set(after[partition])]
    assert bool(twice) is reread
    for partition, offsets in before.items():
        assert min(after[partition]) <= max(offsets) + 1  # nothing is passed over


def test_a_group_starts_where_it_left_off() -> None:
    cluster = formed("a")
    cluster.producer(records=200, records_per_second=100)
    cluster.run(5000)
    cluster.tell("a", Close())
    cluster.run(1000)
    committed = cluster.committed()
    assert sum(committed.values()) == 200
    cluster.tell("a", Subscribe(("t",)))
    cluster.run(3000)
    resumed = {(event.topic, event.partition): event.offset for event in cluster.events(PositionSet, "a")[-4:]}
    assert resumed == committed
    assert {event.how for event in cluster.events(PositionSet, "a")[-4:]} == {"committed"}


def test_another_coordinator_takes_over_and_nobody_rebalances() -> None:
    cluster = formed("a", "b", "c", brokers=3, session_timeout_ms=20_000)
    cluster.producer(records_per_second=50)
    cluster.run(5000)
    node = cluster.events(CoordinatorFound, "a")[0].node
    hosts.crash(cluster.world, f"broker-{node}")
    died = cluster.now
    cluster.run(40_000)
    for name in "abc":  # brokers name the dead one until its session is over
        assert cluster.events(CoordinatorFound, name, since=died)[-1].node != node
    assert cluster.events(CoordinatorLost, since=died)
    assert len(cluster.events(GenerationStarted)) == 1
    assert cluster.events(MemberRemoved) == []
    since = cluster.now
    cluster.run(5000)
    assert {name for name in "abc" if cluster.processed(name, since)} == set("abc")
    assert cluster.sent(JoinGroupRequest, since=died) == []


def test_a_leader_of_a_partition_that_crashes_is_followed_to_its_successor() -> None:
    cluster = formed("a", brokers=3, session_timeout_ms=30_000)
    cluster.producer(records_per_second=50, records=1500)
    cluster.run(5000)
    hosts.crash(cluster.world, "broker-2")
    cluster.run(60_000)
    for offsets in cluster.processed().values():
        assert sorted(set(offsets)) == list(range(len(set(offsets))))
    assert sum(len(set(offsets)) for offsets in cluster.processed().values()) == 1500


def test_a_whole_group_can_beat_for_an_hour_without_a_rebalance() -> None:
    cluster = formed("a", "b", "c", "d", fetch_max_wait_ms=30_000, poll_timeout_ms=60_000, commit="none")
    cluster.run(3_600_000)
    assert len(cluster.events(GenerationStarted)) == 1
    assert 4 * 3590 <= len(cluster.sent(HeartbeatRequest)) <= 4 * 3610
