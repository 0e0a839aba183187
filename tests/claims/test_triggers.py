"""What triggers a rebalance, and what does not; the id of the claim is in the test's name."""

import pytest

from cluster.consumer.commands import Close, Subscribe, Unsubscribe
from cluster.events import (
    CoordinatorFound,
    GenerationStarted,
    GroupLoaded,
    Joined,
    MemberRemoved,
    PartitionsAssigned,
    RebalanceStarted,
)
from cluster.sim import hosts
from cluster.sim.network import Condition
from cluster.wire.groups import JoinGroupRequest
from tests.unit.group_stage import Cluster

SESSION_MS, BEAT_MS = 6000, 1000


def group(*names: str, brokers: int = 1, topics: dict[str, int] | None = None, **config: object) -> Cluster:
    """A stable group in its first generation; everybody knows that nothing more is coming."""
    cluster = Cluster(topics, brokers=brokers, delay_ms=1000)
    for name in names:
        cluster.consumer(name, *(topics or ("t",)), **config)
    cluster.run(5000)
    assert len(cluster.events(GenerationStarted)) == 1
    return cluster


def causes(cluster: Cluster) -> list[str]:
    """Why it rebalanced, after it had formed."""
    return [event.cause for event in cluster.events(RebalanceStarted)[1:]]


def test_t1_new_partitions_trigger_one_when_the_leader_refreshes_its_metadata() -> None:
    cluster = group("a", "b", topics={"t": 2}, metadata_max_age_ms=20_000)
    assert [event.leads for event in cluster.events(Joined)] == [True, False]
    cluster.grow("t", 4)
    grown = cluster.now
    cluster.run(25_000)
    assert len(cluster.events(GenerationStarted)) == 2
    assert cluster.times(RebalanceStarted)[-1] - grown <= 20_000
    assert sorted(cluster.owners()) == [0, 1, 2, 3]


def test_t1_control_a_follower_that_sees_them_first_triggers_nothing() -> None:
    cluster = Cluster({"t": 2}, delay_ms=1000)
    cluster.consumer("a", metadata_max_age_ms=600_000)  # leads
    cluster.consumer("b", metadata_max_age_ms=2000)
    cluster.run(5000)
    cluster.grow("t", 4)
    cluster.run(60_000)
    assert len(cluster.events(GenerationStarted)) == 1


def test_t2_a_new_member_triggers_one() -> None:
    cluster = group("a", "b")
    cluster.run(60_000)
    assert causes(cluster) == []  # control: nobody comes
    cluster.consumer("c")
    cluster.run(5000)
    assert causes(cluster) == ["member joined"]


def test_t3_a_crash_triggers_one_when_the_session_is_over_and_not_before() -> None:
    cluster = group("a", "b")
    hosts.crash(cluster.world, "b")
    died = cluster.now
    cluster.run(SESSION_MS - BEAT_MS - 2)
    assert causes(cluster) == []
    cluster.run(BEAT_MS + 2)
    assert causes(cluster) == ["session expired"]
    assert cluster.times(MemberRemoved)[0] - died <= SESSION_MS


@pytest.mark.parametrize(("pause_ms", "expelled"), [(SESSION_MS - BEAT_MS - 2, False), (SESSION_MS + BEAT_MS, True)])
def test_t4_a_pause_looks_like_death_if_no_heartbeat_arrives_for_a_session_timeout(
    pause_ms: int, expelled: bool
) -> None:
    cluster = group("a", "b")
    hosts.pause(cluster.world, "b")
    cluster.run(pause_ms)
    hosts.wake(cluster.world, "b")
    cluster.run(10_000)
    assert causes(cluster) == (["session expired", "member joined"] if expelled else [])


def slow(cluster: Cluster, name: str, ms: int) -> None:
    for way in ((name, "broker-1"), ("broker-1", name)):
        hosts.set_link(cluster.world, *way, Condition(delay_ms=ms))


def test_t5_a_constant_delay_shifts_heartbeats_and_is_harmless() -> None:
    cluster = Cluster(delay_ms=25_000)
    cluster.consumer("a")
    cluster.consumer("b", request_timeout_ms=120_000)
    slow(cluster, "b", 2000)
    cluster.run(60_000)
    assert len(cluster.events(GenerationStarted)) == 1
    since = cluster.now
    cluster.run(120_000)
    assert cluster.events(MemberRemoved) == cluster.events(RebalanceStarted, since=since) == []


@pytest.mark.parametrize(("ms", "expelled"), [(4000, False), (8000, True)])
def test_t5_a_delay_that_grows_by_more_than_is_left_of_the_session_looks_like_death(ms: int, expelled: bool) -> None:
    cluster = group("a", "b")
    slow(cluster, "b", ms)
    cluster.run(7000)
    assert causes(cluster)[:1] == (["session expired"] if expelled else [])


@pytest.mark.parametrize(("ms", "expelled"), [(4000, False), (7000, True)])
def test_t5_so_does_a_cut_that_lasts_as_long(ms: int, expelled: bool) -> None:
    cluster = group("a", "b")
    hosts.cut(cluster.world, "b", "broker-1")
    cluster.run(ms)
    hosts.mend(cluster.world, "b", "broker-1")
    cluster.run(3000)
    assert causes(cluster)[:1] == (["session expired"] if expelled else [])


@pytest.mark.parametrize("command", [Close(), Unsubscribe()], ids=["t6", "t7"])
def test_t6_t7_leaving_and_unsubscribing_trigger_one_at_once(command: object) -> None:
    cluster = group("a", "b")
    cluster.tell("b", command)
    left = cluster.now
    cluster.run(5000)
    assert causes(cluster) == ["member left"]
    assert cluster.times(RebalanceStarted)[-1] - left <= 5
    assert cluster.owners() == {n: ["a"] for n in range(4)}


def test_t6_control_a_static_member_that_closes_leaves_nobody() -> None:
    cluster = group("a", "b", session_timeout_ms=30_000)
    cluster.consumer("s", group_instance_id="s", session_timeout_ms=30_000)
    cluster.run(5000)
    before = len(causes(cluster))
    cluster.tell("s", Close())
    cluster.run(20_000)
    assert len(causes(cluster)) == before


@pytest.mark.parametrize(("name", "triggers"), [("orders-eu", True), ("invoices", False)])
def test_t8_a_new_topic_triggers_one_if_it_matches_the_pattern(name: str, triggers: bool) -> None:
    cluster = Cluster({"orders-us": 2}, delay_ms=1000)
    cluster.consumer("a", pattern="orders-.*", metadata_max_age_ms=5000)
    cluster.run(5000)
    cluster.create(**{name: 1})
    cluster.run(10_000)
    assert len(causes(cluster)) == triggers
    assert cluster.owners(name) == ({0: ["a"]} if triggers else {})


def test_t9_does_not_hold_another_coordinator_finds_the_group_as_it_was() -> None:
    cluster = group("a", "b", brokers=3, session_timeout_ms=20_000)
    owners = cluster.owners()
    hosts.crash(cluster.world, f"broker-{cluster.events(CoordinatorFound)[-1].node}")
    cluster.run(40_000)
    assert [(event.state, event.generation) for event in cluster.events(GroupLoaded)] == [("Stable", 1)]
    assert (causes(cluster), cluster.owners()) == ([], owners)


def test_t9_control_an_unfinished_join_is_lost_and_starts_again() -> None:
    cluster = group("a", "b", brokers=3, session_timeout_ms=20_000)
    cluster.consumer("c", session_timeout_ms=20_000)
    cluster.run(10)  # it has asked to join; a and b do not know yet
    assert causes(cluster) == ["member joined"]
    hosts.crash(cluster.world, f"broker-{cluster.events(CoordinatorFound)[-1].node}")
    died = cluster.now
    cluster.run(60_000)
    assert [(event.state, event.generation, len(event.members)) for event in cluster.events(GroupLoaded)] == [
        ("Stable", 1, 2)
    ]
    assert causes(cluster) == ["member joined", "member joined"]
    assert len(cluster.sent(JoinGroupRequest, "c", since=died)) > 0
    assert sorted(map(len, cluster.owned.values())) == [1, 1, 1]
    assert len(cluster.events(PartitionsAssigned, "c")) == 1


def test_t10_another_set_of_topics_triggers_one() -> None:
    cluster = group("a", "b", topics={"t": 2, "u": 2})
    cluster.tell("b", Subscribe(("t", "u")))
    cluster.run(5000)
    assert causes(cluster) == []  # control: the same topics
    cluster.tell("b", Subscribe(("u",)))
    cluster.run(5000)
    assert causes(cluster) == ["subscription changed"]
    assert cluster.owners("t") == {0: ["a"], 1: ["a"]}


@pytest.mark.parametrize(("delay_ms", "generations"), [(0, 3), (3000, 1)])
def test_t11_members_that_start_one_after_another_cause_one_each_unless_the_first_join_waits_for_them(
    delay_ms: int, generations: int
) -> None:
    cluster = Cluster(delay_ms=delay_ms)
    for name in "abc":
        cluster.consumer(name)
        cluster.run(2000)
    cluster.run(10_000)
    assert len(cluster.events(GenerationStarted)) == generations
