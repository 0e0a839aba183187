"""The four phases of a rebalance, at the coordinator and at the client; the id of the claim is in the test's name."""

import re
from typing import Any

import pytest

from cluster.config import BrokerConfig, ConsumerConfig
from cluster.consumer.commands import Close, SetProcessing, Subscribe
from cluster.events import (
    CoordinatorFound,
    GenerationStarted,
    Joined,
    LeaderChosen,
    MemberLeft,
    MemberRemoved,
    PartitionsAssigned,
    PartitionsRevoked,
    PlanMade,
    PositionSet,
    RebalanceStarted,
)
from cluster.java import partition_for, string_hash
from cluster.sim import hosts
from cluster.subscription import Subscription
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupResponse,
)
from cluster.wire.offsets import OffsetCommitRequest
from tests.unit.group_stage import Cluster
from tests.unit.scene import Scene


def group(*names: str, topics: dict[str, int] | None = None, brokers: int = 1, **config: Any) -> Cluster:
    cluster = Cluster(topics, brokers=brokers, delay_ms=1000)
    for name in names:
        cluster.consumer(name, **config)
    cluster.run(5000)
    return cluster


def at(cluster: Cluster, kind: type, who: str, since: int = 0) -> list[int]:
    """When messages of a kind left somebody, or left for it."""
    return [
        now
        for now, each in cluster.heard
        if isinstance(each.body, kind) and who in (each.source, each.destination) and now >= since
    ]


# Find the coordinator


def test_p1_any_broker_can_be_asked_and_tells_node_host_and_port() -> None:
    cluster = group("a", brokers=3)
    found = {
        (one.node_id, one.host, one.port)
        for number in (1, 2, 3)
        for one in cluster.ask(FindCoordinatorRequest(coordinator_keys=("g",)), f"broker-{number}").coordinators
    }
    node = cluster.events(CoordinatorFound)[0].node
    assert found == {(node, f"broker-{node}", 9092)}


def test_p2_the_coordinator_leads_the_partition_that_javas_hash_of_the_group_id_says() -> None:
    assert BrokerConfig().offsets_topic_num_partitions == 50
    assert partition_for("g", 50) == abs(string_hash("g")) % 50 == 103 % 50
    assert string_hash("polygenelubricants") == -(2**31)
    assert partition_for("polygenelubricants", 50) == 0  # Java's abs would be negative
    cluster = group("a", brokers=3)
    for name in ("g", "h", "i", "j"):
        (one,) = cluster.ask(FindCoordinatorRequest(coordinator_keys=(name,))).coordinators
        assert one.node_id == cluster.leader_of("__consumer_offsets", partition_for(name, 4))


def test_p3_a_known_coordinator_is_not_looked_for_again() -> None:
    cluster = group("a", "b", brokers=3, session_timeout_ms=20_000)
    asked = len(cluster.sent(FindCoordinatorRequest))
    cluster.tell("b", Subscribe(("t", "u")))
    cluster.run(5000)
    assert len(cluster.events(GenerationStarted)) == 2
    assert len(cluster.sent(FindCoordinatorRequest)) == asked
    hosts.crash(cluster.world, cluster.coordinator().broker)  # control
    cluster.run(1000)
    assert len(cluster.sent(FindCoordinatorRequest)) > asked


# Join


def test_p4_a_join_carries_timeouts_id_protocol_type_and_the_assignors_with_their_metadata() -> None:
    cluster = group("a", session_timeout_ms=7000, max_poll_interval_ms=70_000)
    first, second = cluster.sent(JoinGroupRequest)
    assert (first.session_timeout_ms, first.rebalance_timeout_ms, first.protocol_type) == (7000, 70_000, "consumer")
    assert first.member_id == ""
    assert second.member_id == cluster.events(Joined)[0].member_id
    assert [each.name for each in first.protocols] == ["range", "cooperative-sticky"]
    told = Subscription.decode(first.protocols[0].metadata)
    assert (told.version, told.topics, told.user_data) == (3, ("t",), None)


def test_p5_the_coordinator_makes_the_member_id_of_client_id_and_uuid_and_asks_to_come_back_with_it() -> None:
    scene = Scene()
    assert scene.say("join", "a")["error"] == "MEMBER_ID_REQUIRED"
    assert re.fullmatch(r"a-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", scene.dialogue.newest_id("a"))


def test_p5_control_before_version_4_it_was_taken_at_once() -> None:
    assert Scene().say("join", "a", version=3)["error"] == "NONE"


def test_p6_the_first_to_join_leads_and_if_it_goes_the_first_in_the_map() -> None:
    scene = Scene()
    scene.preparing()
    scene.say("leave", "a")
    assert [scene.dialogue.name_of(event.member_id) for event in scene.events(LeaderChosen)] == ["$a", "$b"]


def test_p7_the_assignor_is_voted_among_the_common_ones() -> None:
    scene = Scene(group_initial_rebalance_delay_ms=500)
    scene.say("join", "a", version=3, protocols={"range": ["t"], "sticky": ["t"]}, async_="a")
    scene.say("join", "b", version=3, protocols={"sticky": ["t"], "range": ["t"]}, async_="b")
    scene.say("join", "c", version=3, protocols={"roundrobin": ["t"], "sticky": ["t"], "range": ["t"]}, async_="c")
    scene.wait(2000)
    assert scene.hear("a")["protocol"] == "sticky"


def test_p8_only_the_leader_is_told_the_members() -> None:
    scene = Scene()
    scene.alone()
    scene.say("join", "b")
    scene.say("join", "b", async_="b")
    assert scene.say("join", "a")["members"] == ["$a", "$b"]
    assert scene.hear("b")["members"] == []


def test_p10_the_plan_is_stored_before_anybody_is_answered() -> None:
    scene = Scene()
    scene.together()
    order: list[str] = []
    scene.dialogue.world.listeners.append(lambda _, envelope: order.append(type(envelope.body).__name__))
    scene.say("sync", "b", async_="bs")
    scene.say("sync", "a", assign={"a": "p0", "b": "p1"})
    assert order == [
        "SyncGroupRequest",
        "SyncGroupRequest",
        "ProduceRequest",
        "ProduceResponse",
        "SyncGroupResponse",
        "SyncGroupResponse",
    ]


def test_p13_members_learn_of_a_rebalance_from_their_heartbeat() -> None:
    scene = Scene()
    scene.stable()
    assert scene.say("heartbeat", "a") == {"error": "NONE"}
    scene.say("leave", "b")
    assert scene.say("heartbeat", "a") == {"error": "REBALANCE_IN_PROGRESS"}


def test_p20_members_that_the_plan_leaves_out_get_nothing() -> None:
    scene = Scene()
    scene.together()
    assert scene.say("sync", "a", assign={"a": "all"})["assignment"] == "all"
    assert scene.say("sync", "b") == {
        "error": "NONE",
        "assignment": "",
        "protocol": "range",
        "protocol_type": "consumer",
    }


def test_p21_a_member_must_sync_before_its_session_is_over() -> None:
    scene = Scene()
    scene.together(session_ms=1000, rebalance_ms=30000)
    scene.wait(1100)
    assert {event.cause for event in scene.events(MemberRemoved)} == {"session expired"}


def test_p21_a_member_that_beats_and_does_not_sync_has_until_the_rebalance_timeout() -> None:
    scene = Scene()
    scene.together(session_ms=30000, rebalance_ms=1000)
    scene.say("sync", "a", assign={"a": "x", "b": "y"})
    scene.wait(1100)
    assert [(scene.dialogue.name_of(event.member_id), event.cause) for event in scene.events(MemberRemoved)] == [
        ("$b", "did not sync")
    ]


# What the client does around it


def test_p9_before_an_eager_member_rejoins_it_commits_then_revokes_and_its_heartbeats_rest() -> None:
    cluster = group("a", auto_commit_interval_ms=3_600_000)
    cluster.producer(records=20, records_per_second=100)
    cluster.run(2000)
    since = cluster.now
    cluster.consumer("b")
    cluster.run(300)
    hosts.pause(cluster.world, "b")  # so that the join phase lasts
    cluster.run(4000)
    (committed,), (revoked,) = at(cluster, OffsetCommitRequest, "a", since), cluster.times(PartitionsRevoked, "a")
    (joined,) = at(cluster, JoinGroupRequest, "a", since)
    assert committed <= revoked <= joined
    assert [each for each in at(cluster, HeartbeatRequest, "a", joined) if each < joined + 900] == []


def test_p9_control_a_cooperative_member_revokes_after_the_sync() -> None:
    cluster = group("a", partition_assignment_strategy=["cooperative-sticky"])
    since = cluster.now
    cluster.consumer("b", partition_assignment_strategy=["cooperative-sticky"])
    cluster.run(4000)
    (revoked,) = cluster.times(PartitionsRevoked, "a")
    assert at(cluster, SyncGroupResponse, "a", since)[0] < revoked


def test_p11_partitions_are_assigned_after_the_sync_but_heartbeats_start_with_the_answer_to_the_join() -> None:
    cluster = group("a", commit="none")
    cluster.consumer("b", commit="none")
    since = cluster.now
    cluster.world.run_until(lambda: bool(at(cluster, JoinGroupRequest, "a", since)), cluster.world.now + 5000)
    hosts.pause(cluster.world, "a")  # it leads: there will be no plan for a while
    cluster.run(3000)
    (joined,) = cluster.times(Joined, "b")
    assert cluster.times(PartitionsAssigned, "b") == at(cluster, SyncGroupResponse, "b") == []
    assert [each - joined for each in at(cluster, HeartbeatRequest, "b")] == [1000, 2000]
    hosts.wake(cluster.world, "a")
    cluster.run(1000)
    assert cluster.times(PartitionsAssigned, "b")[0] > at(cluster, SyncGroupResponse, "b")[0]


def test_p12_reading_starts_at_the_committed_offset() -> None:
    cluster = group("a")
    cluster.producer(records=80, records_per_second=100)
    cluster.run(3000)
    cluster.tell("a", Close())
    cluster.run(1000)
    committed = cluster.committed()
    assert sum(committed.values()) == 80
    cluster.consumer("b")
    cluster.run(3000)
    begun = {(event.topic, event.partition): event.offset for event in cluster.events(PositionSet, "b")}
    assert begun == committed
    assert {event.how for event in cluster.events(PositionSet, "b")} == {"committed"}


@pytest.mark.parametrize("beat_ms", [300, 3000])
def test_p13_so_the_heartbeat_interval_sets_how_fast_they_learn(beat_ms: int) -> None:
    took = []
    for wait_ms in (0, 700, 1400, 2100):
        cluster = group("a", heartbeat_interval_ms=beat_ms, session_timeout_ms=10_000, commit="none")
        cluster.run(wait_ms)
        cluster.consumer("b", heartbeat_interval_ms=beat_ms, session_timeout_ms=10_000, commit="none")
        cluster.run(5000)
        began = cluster.times(RebalanceStarted)[-1]
        took.append(at(cluster, JoinGroupRequest, "a", began)[0] - began)
    assert max(took) <= beat_ms + 100
    assert max(took) > beat_ms // 3


@pytest.mark.parametrize("thread", [True, False])
def test_p14_without_a_heartbeat_thread_slow_processing_looks_like_death(thread: bool) -> None:
    cluster = group("a", heartbeat_thread=thread)
    cluster.producer(records=1)
    cluster.tell("a", SetProcessing(9000))
    cluster.run(8000)
    assert [event.cause for event in cluster.events(MemberRemoved)] == ([] if thread else ["session expired"])


@pytest.mark.parametrize(
    ("session_ms", "error"),
    [(5999, "INVALID_SESSION_TIMEOUT"), (6000, "NONE"), (1800000, "NONE"), (1800001, "INVALID_SESSION_TIMEOUT")],
)
def test_p15_the_session_timeout_has_bounds(session_ms: int, error: str) -> None:
    scene = Scene(group_min_session_timeout_ms=BrokerConfig().group_min_session_timeout_ms)
    assert scene.say("join", "a", version=3, session_ms=session_ms)["error"] == error


def test_p16_whoever_does_not_poll_in_time_leaves_by_itself() -> None:
    cluster = group("a", "b", max_poll_interval_ms=5000)
    cluster.producer(records_per_second=20)
    cluster.run(2000)
    cluster.tell("b", SetProcessing(60_000))
    cluster.run(8000)
    assert [(event.cause) for event in cluster.events(MemberLeft, "b")] == ["poll interval"]
    assert [event.cause for event in cluster.events(MemberRemoved)] == ["left"]


def test_p17_by_default_range_is_chosen() -> None:
    assert ConsumerConfig().partition_assignment_strategy == ("range", "cooperative-sticky")
    assert [event.protocol for event in group("a", "b").events(GenerationStarted)] == ["range"]


def test_p18_a_subscription_has_version_3_today_with_what_the_member_owns() -> None:
    cluster = group("a", partition_assignment_strategy=["cooperative-sticky"])
    cluster.consumer("b", partition_assignment_strategy=["cooperative-sticky"])
    cluster.run(5000)
    told = [Subscription.decode(each.protocols[0].metadata) for each in cluster.sent(JoinGroupRequest, "a")]
    assert {each.version for each in told} == {3}
    assert (told[-1].owned, told[-1].generation) == ({"t": (0, 1)}, 2)
    assert Subscription.decode(Subscription(topics=("t",), version=0).encode()) == Subscription(
        topics=("t",), version=0
    )


def test_p19_the_leader_watches_topics_that_only_others_want() -> None:
    cluster = Cluster({"t": 2, "u": 2}, delay_ms=1000)
    cluster.consumer("a", "t", metadata_max_age_ms=5000)
    cluster.consumer("b", "u", metadata_max_age_ms=600_000)
    cluster.run(4000)
    assert list(cluster.events(PlanMade, "a")[0].plan) == [event.member_id for event in cluster.events(Joined)]
    cluster.grow("u", 4)
    cluster.run(8000)
    assert len(cluster.events(GenerationStarted)) == 2
    assert sorted(cluster.owners("u")) == [0, 1, 2, 3]
