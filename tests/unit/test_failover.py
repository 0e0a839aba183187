"""A coordinator goes, and another takes over: what everybody answers meanwhile, what is restored, and when."""

from random import Random
from typing import Any

import pytest

from cluster.broker import broker
from cluster.events import (
    BrokerFenced,
    BrokerStopped,
    CoordinatorFound,
    CoordinatorLost,
    GenerationStarted,
    GroupLoaded,
    LogTruncated,
    MemberRemoved,
    RebalanceStarted,
    SessionRenewed,
    ShardLoaded,
    ShardLoading,
)
from cluster.machine import Envelope
from cluster.sim import hosts
from cluster.wire.control import BrokerHeartbeatRequest
from cluster.wire.errors import Error
from cluster.wire.groups import HeartbeatRequest, JoinGroupRequest
from tests.unit.failover_stage import CLOSED, HOME, WAYS, Failover
from tests.unit.group_stage import Cluster

BROKER_SESSION_MS = 9000
TWO = {"range": ["t"], "sticky": ["t"]}

ways = pytest.mark.parametrize("how", WAYS)


def beats_of(scene: Failover, number: int) -> list[int]:
    """When the controller received heartbeats of a broker, from now on."""
    received: list[int] = []

    def listen(now: int, envelope: Envelope) -> None:
        if isinstance(envelope.body, BrokerHeartbeatRequest) and envelope.body.broker_id == number:
            received.append(now + scene.world.network.latency_ms)

    scene.world.listeners.append(listen)
    return received


def found(scene: Failover) -> GroupLoaded:
    """The group as its new coordinator found it."""
    (loaded,) = [each.event for each in scene.seen if isinstance(each.event, GroupLoaded) and each.at >= scene.gone_at]
    return loaded


def shown(scene: Failover) -> tuple[str, int, list[str]]:
    """State, generation and members that the new coordinator found, by their names."""
    loaded = found(scene)
    return loaded.state, loaded.generation, [scene.trio.name_of(each) for each in loaded.members]


def error(answer: Any) -> str:
    return str(answer["error"])


# How long, and what everyone answers meanwhile


@ways
def test_a_broker_that_is_gone_is_fenced_exactly_a_session_after_its_last_heartbeat_and_a_clean_one_at_once(
    how: str,
) -> None:
    scene = Failover()
    scene.stable()
    beats = beats_of(scene, scene.old)
    scene.wait(3000)
    scene.fail_over(how)
    if how == "clean":
        assert scene.fenced_at() - scene.gone_at == 1
    else:
        assert scene.fenced_at() == beats[-1] + BROKER_SESSION_MS
        assert BROKER_SESSION_MS - 2002 <= scene.fenced_at() - scene.gone_at <= BROKER_SESSION_MS


@pytest.mark.parametrize("seed", range(20))
def test_however_the_moment_falls_the_new_coordinator_has_the_group_7_to_9_seconds_after_a_kill(seed: int) -> None:
    scene = Failover(seed)
    scene.stable(session_ms=30_000)
    beats = beats_of(scene, scene.old)
    scene.wait(3000 + 101 * seed)
    loaded = scene.fail_over("killed")
    assert loaded - beats[-1] - BROKER_SESSION_MS in (1, 2, 3)  # the controller's news, and the log is read
    assert 7000 - 2 <= loaded - scene.gone_at <= 9000 + 3


@ways
def test_other_brokers_name_the_old_one_until_it_is_fenced_then_the_new_one_and_never_nobody(how: str) -> None:
    scene = Failover()
    scene.stable()
    scene.go(how)
    other = scene.others()[0]
    named = [scene.named_by(other)]
    while named[-1] == scene.old:
        named.append(scene.named_by(other))
    assert named[-1] in scene.others()
    assert 0 <= scene.now - scene.fenced_at() <= 5  # the controller's news, and a question that was under way
    took = scene.now - scene.gone_at
    assert took < 200 if how == "clean" else 7000 - 2 <= took <= 9000 + 2


@ways
def test_before_it_is_elected_a_broker_sends_everybody_away(how: str) -> None:
    scene = Failover()
    scene.stable()
    scene.go(how)
    for other in scene.others():
        scene.trio.at = other
        assert error(scene.say("heartbeat", "a")) == "NOT_COORDINATOR"
        if how == "clean":  # the first question takes longer than that handover
            break


def test_stopped_cleanly_it_says_none_then_sends_everybody_away_then_its_process_ends() -> None:
    scene = Failover()
    scene.stable()
    scene.go("clean")
    assert error(scene.say("heartbeat", "a")) == "NONE"
    scene.until(lambda: scene.at_of(GroupLoaded, scene.gone_at))
    assert error(scene.say("heartbeat", "a")) == "NOT_COORDINATOR"
    assert scene.now - scene.gone_at < 1000
    scene.end()
    scene.say("heartbeat", "a", async_="late")
    assert (scene.said("late").answer, scene.said("late").answered_at) == (CLOSED, scene.said("late").asked_at + 1)
    assert scene.now - scene.gone_at < 3000
    scene.take_over()
    assert error(scene.say("heartbeat", "a")) == "NONE"


def test_killed_it_closes_its_connections_at_once() -> None:
    scene = Failover()
    scene.stable()
    scene.say("join", "a", async_="waits")  # the leader rejoins, and b does not yet
    scene.go("killed")
    scene.until(lambda: scene.said("waits").answered_at)
    assert (scene.said("waits").answer, scene.now) == (CLOSED, scene.gone_at + 1)


def test_frozen_it_answers_nothing_and_thawed_it_says_none_until_it_has_read_the_controllers_log() -> None:
    scene = Failover()
    scene.stable(session_ms=30_000)
    scene.go("frozen")
    scene.say("heartbeat", "a", async_="frozen")
    scene.take_over()
    assert error(scene.say("heartbeat", "b")) == "NONE"
    scene.wait(1100)
    assert scene.said("frozen").answered_at is None
    hosts.wake(scene.world, f"broker-{scene.old}")
    scene.trio.at = scene.old
    woken = scene.now
    assert error(scene.say("heartbeat", "a")) == "NONE"
    assert scene.said("frozen").answer.error_code is Error.NONE
    assert error(scene.say("heartbeat", "a")) == "NOT_COORDINATOR"
    assert scene.now - woken <= 120


def test_while_it_loads_a_heartbeat_is_welcome_even_a_strangers_and_everything_else_must_wait() -> None:
    scene = Failover()
    scene.stable()
    scene.go("killed")
    scene.until(lambda: scene.at_of(ShardLoading, scene.gone_at))
    new = scene.trio.at = int(scene.machine_of(ShardLoading).removeprefix("coordinator-"))
    hosts.slow_disk(scene.world, f"broker-{new}", 1)
    scene.world.hosts[f"broker-{new}"].busy_until = scene.now + 100  # something else is being written
    asked = {
        "NONE": [scene.send("heartbeat", "a"), scene.send("heartbeat", "b", member_id="a stranger")],
        "COORDINATOR_LOAD_IN_PROGRESS": [scene.send("join", "a"), scene.send("sync", "a"), scene.send("leave", "b")],
    }
    described = scene.send("describe", "a")
    scene.until(lambda: scene.at_of(GroupLoaded, scene.gone_at))
    scene.wait(1)
    assert {name: {call.answer.error_code.name for call in calls} for name, calls in asked.items()} == {
        name: {name} for name in asked
    }
    assert described.answer.groups[0].error_code is Error.COORDINATOR_LOAD_IN_PROGRESS
    assert error(scene.say("heartbeat", "b", member_id="a stranger")) == "UNKNOWN_MEMBER_ID"
    assert error(scene.say("heartbeat", "b")) == "NONE"  # its leaving was not heard


def test_with_the_controller_gone_as_well_a_whole_broker_session_begins_when_it_is_back() -> None:
    scene = Failover()
    scene.stable(session_ms=30_000)
    scene.go("killed")
    hosts.crash(scene.world, "controller")
    scene.wait(3400)
    hosts.restart(scene.world, "controller")
    back = scene.now
    scene.take_over()
    assert scene.fenced_at() == back + BROKER_SESSION_MS
    assert error(scene.say("heartbeat", "a")) == "NONE"


# Requests that wait


def test_stopped_cleanly_a_join_that_waits_is_sent_away_with_its_own_id() -> None:
    scene = Failover()
    scene.preparing()
    scene.go("clean")
    scene.until(lambda: scene.said("c").answered_at)
    answer = scene.said("c").answer
    assert (answer.error_code, answer.generation_id) == (Error.NOT_COORDINATOR, -1)
    assert answer.member_id == scene.trio.newest_id("c") != ""
    assert scene.now - scene.gone_at < 300


def test_stopped_cleanly_a_sync_that_waits_is_sent_away_with_nothing() -> None:
    scene = Failover()
    scene.together()
    scene.say("sync", "b", async_="bs")
    scene.go("clean")
    scene.until(lambda: scene.said("bs").answered_at)
    answer = scene.said("bs").answer
    assert (answer.error_code, answer.assignment) == (Error.NOT_COORDINATOR, b"")
    assert scene.now - scene.gone_at < 300


@pytest.mark.parametrize("waits", ["c", "bs"])
def test_killed_whoever_waits_is_hung_up_on(waits: str) -> None:
    scene = Failover()
    if waits == "c":
        scene.preparing()
    else:
        scene.together()
        scene.say("sync", "b", async_="bs")
    scene.go("killed")
    scene.until(lambda: scene.said(waits).answered_at)
    assert (scene.said(waits).answer, scene.now - scene.gone_at) == (CLOSED, 1)


# What the new coordinator restores


@ways
def test_a_stable_group_is_found_as_it_was_and_nobody_rejoins(how: str) -> None:
    scene = Failover()
    scene.stable()
    scene.say("commit", "a", offsets={"t": {0: 42}})
    before = scene.say("describe")
    scene.fail_over(how)
    assert shown(scene) == ("Stable", 2, ["$a", "$b"])
    assert scene.say("describe") == before
    assert {error(scene.say("heartbeat", name)) for name in "ab"} == {"NONE"}
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [42, ""]}}
    assert scene.say("commit", "b", offsets={"t": {0: 43}}) == {"partitions": {"t": {0: "NONE"}}}
    assert scene.at_of(RebalanceStarted, scene.gone_at) == []
    assert scene.at_of(GenerationStarted, scene.gone_at) == []


@ways
def test_after_that_a_follower_that_rejoins_with_one_protocol_has_not_changed(how: str) -> None:
    scene = Failover()
    scene.stable()
    scene.fail_over(how)
    again = scene.say("join", "b")
    assert (error(again), again["generation"], scene.state()) == ("NONE", 2, "Stable")


@ways
def test_but_with_two_it_seems_to_have_changed_since_only_the_selected_one_was_stored(how: str) -> None:
    scene = Failover()
    scene.stable(protocols=TWO)
    scene.fail_over(how)
    scene.say("join", "b", protocols=TWO, async_="b2")
    assert (scene.hear("b2"), scene.state()) == (None, "PreparingRebalance")
    assert error(scene.say("heartbeat", "a")) == "REBALANCE_IN_PROGRESS"


def alone_and_stable(scene: Failover, **fields: Any) -> None:
    scene.alone(**fields)
    scene.say("sync", "a", assign={"a": "p0"})


@ways
def test_a_join_phase_never_happened_the_old_member_goes_on_and_the_new_one_is_unknown(how: str) -> None:
    scene = Failover()
    alone_and_stable(scene)
    scene.say("join", "b")
    scene.say("join", "b", async_="b")
    assert scene.state() == "PreparingRebalance"
    scene.fail_over(how)
    assert shown(scene) == ("Stable", 1, ["$a"])
    assert error(scene.say("heartbeat", "a")) == "NONE"
    assert error(scene.say("heartbeat", "b", generation=1)) == "UNKNOWN_MEMBER_ID"
    assert error(scene.say("join", "b")) == "UNKNOWN_MEMBER_ID"
    assert error(scene.say("join", "b", member_id="")) == "MEMBER_ID_REQUIRED"


@ways
def test_a_generation_whose_plan_was_not_stored_is_lost(how: str) -> None:
    scene = Failover()
    one_then_two(scene)
    scene.fail_over(how)
    assert shown(scene) == ("Stable", 1, ["$a"])
    assert error(scene.say("heartbeat", "a")) == "ILLEGAL_GENERATION"
    assert error(scene.say("sync", "a", assign={"a": "p0"})) == "ILLEGAL_GENERATION"
    assert error(scene.say("heartbeat", "a", generation=1)) == "NONE"
    assert error(scene.say("heartbeat", "b")) == "UNKNOWN_MEMBER_ID"


@ways
def test_of_the_very_first_generation_nothing_is_left_but_an_empty_group(how: str) -> None:
    scene = Failover()
    scene.alone()
    assert scene.state() == "CompletingRebalance"
    scene.fail_over(how)
    assert shown(scene) == ("Empty", 0, [])
    for say in ("heartbeat", "sync", "join"):
        assert error(scene.say(say, "a")) == "UNKNOWN_MEMBER_ID"
    assert error(scene.say("join", "a", member_id="")) == "MEMBER_ID_REQUIRED"


@ways
def test_an_id_that_was_only_given_out_is_unknown_and_the_group_empty(how: str) -> None:
    scene = Failover()
    assert error(scene.say("join", "a")) == "MEMBER_ID_REQUIRED"
    scene.fail_over(how)
    assert shown(scene) == ("Empty", 0, [])
    assert error(scene.say("join", "a")) == "UNKNOWN_MEMBER_ID"


@ways
@pytest.mark.parametrize("left", ["members that left", "nobody ever"])
def test_offsets_without_members_are_there_and_the_group_is_empty(how: str, left: str) -> None:
    scene = Failover()
    if left == "nobody ever":
        scene.say("commit", offsets={"t": {0: 7}})
    else:
        alone_and_stable(scene)
        scene.say("commit", "a", offsets={"t": {0: 7}})
        scene.say("leave", "a")
    generation = 0 if left == "nobody ever" else 2
    scene.fail_over(how)
    assert shown(scene) == ("Empty", generation, [])
    assert scene.state() == "Empty"
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [7, ""]}}


@ways
def test_a_static_member_takes_its_place_at_the_new_coordinator_without_a_rebalance(how: str) -> None:
    scene = Failover()
    scene.say("join", "s", instance="i")
    scene.say("sync", "s", instance="i", assign={"s": "p0"})
    scene.fail_over(how)
    assert shown(scene) == ("Stable", 1, ["$s"])
    again = scene.say("join", "s", instance="i", member_id="")
    assert (again["generation"], again["skip_assignment"], again["member_id"]) == (1, True, "$s.2")
    assert error(scene.say("heartbeat", "s", member_id="$s", instance="i")) == "FENCED_INSTANCE_ID"
    assert scene.at_of(RebalanceStarted, scene.gone_at) == []


# Between the record and the answer


def one_then_two(scene: Failover) -> None:
    """Generation 1, a alone, is stored; of generation 2, a and b, the plan is awaited."""
    alone_and_stable(scene)
    scene.say("join", "b")
    scene.say("join", "b", async_="b")
    scene.say("join", "a")
    assert scene.state() == "CompletingRebalance"


def test_a_plan_that_followers_have_is_found_though_nobody_was_answered() -> None:
    scene = Failover()
    one_then_two(scene)
    call = scene.send("sync", "a", assign={"a": "p0", "b": "p1"})
    scene.wait(2)  # one to the coordinator, one to its followers; their answers are on the way
    scene.fail_over("killed")
    assert call.answer == CLOSED
    assert shown(scene) == ("Stable", 2, ["$a", "$b"])
    assert scene.say("sync", "a")["assignment"] == "p0"
    assert scene.say("sync", "b")["assignment"] == "p1"
    assert {error(scene.say("heartbeat", name)) for name in "ab"} == {"NONE"}


def test_a_plan_that_only_its_writer_had_is_lost_and_the_writer_forgets_it_when_it_is_back() -> None:
    scene = Failover()
    one_then_two(scene)
    scene.cut_off(*scene.other_brokers())
    call = scene.send("sync", "a", assign={"a": "p0", "b": "p1"})
    scene.wait(1000)
    assert call.answered_at is None
    scene.fail_over("killed")
    assert shown(scene) == ("Stable", 1, ["$a"])
    assert scene.say("commit", "a", generation=1, offsets={"t": {0: 1}}) == {"partitions": {"t": {0: "NONE"}}}
    scene.mend(*scene.other_brokers())
    hosts.restart(scene.world, f"broker-{scene.old}")
    scene.wait(5000)
    assert [(each.topic, each.partition, each.records) for each in scene.events(LogTruncated)] == [
        ("__consumer_offsets", HOME, 1)
    ]


@pytest.mark.parametrize("reached", [True, False])
def test_a_commit_that_nobody_answered_is_there_if_the_followers_have_it(reached: bool) -> None:
    scene = Failover()
    scene.stable()
    scene.say("commit", "a", offsets={"t": {0: 5}})
    if not reached:
        scene.cut_off(*scene.other_brokers())
    call = scene.send("commit", "a", offsets={"t": {0: 6}})
    scene.wait(2)
    scene.fail_over("killed")
    assert call.answer == CLOSED
    stable = scene.say("fetch", all=True, require_stable=True)  # waits until it is known what is committed
    assert stable["partitions"] == {"t": {0: [6 if reached else 5, ""]}}


# A deposed coordinator that lives


def test_cut_off_from_the_others_it_can_promise_nothing_and_what_it_wrote_is_thrown_away() -> None:
    scene = Failover(min_insync_replicas=2)
    scene.stable(session_ms=60_000)
    scene.say("commit", "a", offsets={"t": {0: 5}})
    scene.cut_off("controller", *scene.other_brokers())
    scene.gone_at = scene.now
    old = scene.trio.at
    asked = scene.now
    assert scene.say("commit", "a", offsets={"t": {0: 6}}) == {"partitions": {"t": {0: "COORDINATOR_NOT_AVAILABLE"}}}
    assert scene.now - asked == 5000 + 2  # offsets.commit.timeout.ms
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [5, ""]}}
    scene.take_over()
    assert scene.say("commit", "a", offsets={"t": {0: 9}}) == {"partitions": {"t": {0: "NONE"}}}
    new, scene.trio.at = scene.trio.at, old
    assert scene.say("commit", "a", offsets={"t": {0: 7}}) == {"partitions": {"t": {0: "COORDINATOR_NOT_AVAILABLE"}}}
    scene.mend("controller", *scene.other_brokers())
    scene.wait(5000)
    assert error(scene.say("heartbeat", "a")) == "NOT_COORDINATOR"
    scene.trio.at = new
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [9, ""]}}
    assert [(each.topic, each.partition) for each in scene.events(LogTruncated)] == [("__consumer_offsets", HOME)]


# Sessions start anew


@ways
def test_a_member_that_fell_silent_before_is_removed_a_session_after_the_load_to_the_millisecond(how: str) -> None:
    scene = Failover()
    scene.stable(session_ms=4000, rebalance_ms=60_000)
    scene.wait(3900)  # a moment later the old coordinator would have expelled both
    assert scene.events(MemberRemoved) == []
    loaded = scene.fail_over(how)
    assert {each.until for each in _renewals(scene, "load")} == {loaded + 4000}
    scene.wait(10_000)
    removed = [each for each in scene.seen if isinstance(each.event, MemberRemoved)]
    assert [(each.at, each.event.cause) for each in removed] == [(loaded + 4000, "session expired")] * 2
    assert loaded + 4000 - scene.gone_at <= 4000 + 9000 + 3


def _renewals(scene: Failover, by: str) -> list[SessionRenewed]:
    return [each for each in scene.events(SessionRenewed) if each.by == by]


def test_a_second_failover_gives_them_another_session() -> None:
    scene = Failover()
    scene.stable(session_ms=10_000, rebalance_ms=60_000)
    first = scene.fail_over("killed")
    scene.wait(500)
    hosts.restart(scene.world, f"broker-{scene.old}")
    scene.wait(3000)
    scene.old = scene.trio.at
    second = scene.fail_over("killed")
    assert second < first + 60_000
    scene.wait(12_000)
    assert set(scene.at_of(MemberRemoved)) == {second + 10_000}
    assert len(scene.at_of(ShardLoaded, scene.gone_at)) > 0
    assert [each.cause for each in scene.events(BrokerFenced)].count("session expired") == 2


# Groups of real consumers


def steady(seed: int, *names: str, brokers: int = 3, **config: Any) -> Cluster:
    cluster = Cluster(brokers=brokers, seed=seed, delay_ms=1000)
    for name in names:
        cluster.consumer(name, **config)
    cluster.run(6000)
    return cluster


def coordinator_of(cluster: Cluster) -> str:
    return cluster.coordinator().broker


@pytest.mark.parametrize("seed", range(50))
def test_a_crashed_member_is_removed_exactly_a_session_timeout_after_the_last_heartbeat_that_was_received(
    seed: int,
) -> None:
    cluster = steady(seed, "a", "b", brokers=1, commit="none")
    cluster.run(Random(seed).randrange(6000))
    hosts.crash(cluster.world, "b")
    died = cluster.now
    cluster.run(8000)
    last = [at for at, each in cluster.heard if isinstance(each.body, HeartbeatRequest) and each.source == "b"][-1]
    (removed,) = cluster.times(MemberRemoved)
    assert removed == last + 1 + 6000  # it takes 1 ms to arrive, also if its sender has just died
    assert 0 <= died - last <= 1000


@pytest.mark.parametrize("seed", range(20))
def test_a_member_that_dies_with_its_coordinator_is_removed_a_session_after_the_load(seed: int) -> None:
    cluster = steady(seed, "a", "b", session_timeout_ms=10_000)
    cluster.run(Random(seed).randrange(5000))
    hosts.crash(cluster.world, "b")
    cluster.run(Random(seed).randrange(3000))
    hosts.crash(cluster.world, coordinator_of(cluster))
    died = cluster.now
    cluster.run(25_000)
    (loaded,) = [at for at in cluster.times(GroupLoaded) if at >= died]
    assert cluster.times(MemberRemoved) == [loaded + 10_000]
    assert cluster.owners() == {n: ["a"] for n in range(4)} | {n: ["a", "b"] for n in cluster.owned["b"]["t"]}


@pytest.mark.parametrize("how", ["killed", "clean"])
@pytest.mark.parametrize("seed", range(5))
def test_whenever_a_coordinator_goes_a_stable_group_does_not_rebalance_and_loses_no_offset(seed: int, how: str) -> None:
    cluster = steady(seed, "a", "b", "c", session_timeout_ms=20_000, commit="sync")
    cluster.producer(records_per_second=20)
    cluster.run(2000 + Random(seed).randrange(3000))
    old = coordinator_of(cluster)
    before = cluster.committed()
    went = cluster.now
    if how == "clean":
        cluster.tell(old, broker.STOP)
        cluster.world.run_until(lambda: bool(cluster.events(BrokerStopped)), cluster.world.now + 5000)
    hosts.crash(cluster.world, old)
    cluster.run(40_000)
    assert {f"broker-{cluster.events(CoordinatorFound, name)[-1].node}" for name in "abc"} == {coordinator_of(cluster)}
    assert coordinator_of(cluster) != old
    assert (len(cluster.events(GenerationStarted)), cluster.events(MemberRemoved)) == (1, [])
    assert cluster.sent(JoinGroupRequest, since=went) == []
    assert all(cluster.committed()[where] > offset for where, offset in before.items())
    assert {name for name in "abc" if cluster.processed(name, cluster.now - 5000)} == set("abc")


@pytest.mark.parametrize("seed", range(5))
def test_members_of_a_frozen_coordinator_wait_for_their_own_session_to_end_before_they_look_for_another(
    seed: int,
) -> None:
    cluster = steady(seed, "a", "b", session_timeout_ms=12_000, commit="none")
    cluster.run(2000 + Random(seed).randrange(3000))
    hosts.pause(cluster.world, coordinator_of(cluster))
    went = cluster.now
    cluster.run(13_000)
    lost = cluster.events(CoordinatorLost, since=went)
    assert [event.cause for event in lost] == ["session timed out"] * 2
    for name in "ab":
        (at,) = [at for at in cluster.times(CoordinatorLost, name) if at >= went]
        assert 11_000 - 2 <= at - went <= 12_000 + 2


@pytest.mark.parametrize("seed", range(20))
def test_whatever_was_unfinished_when_the_coordinator_died_the_members_find_together_again(seed: int) -> None:
    """They come one after the other, about when it dies: in the join phase, before the plan, after it."""
    rng = Random(seed)
    cluster = Cluster(brokers=3, seed=seed)
    for name in "ab":
        cluster.consumer(name, session_timeout_ms=10_000)
        cluster.run(rng.randrange(1500))
    cluster.consumer("c", session_timeout_ms=10_000)
    cluster.run(rng.choice([1, 2, 3, 4, 5, 50, 500, 1000]) + rng.randrange(20))
    hosts.crash(cluster.world, coordinator_of(cluster))
    cluster.run(60_000)
    assert sorted(len(cluster.owned[name].get("t", ())) for name in "abc") == [1, 1, 2]
    assert sorted(map(len, cluster.owners().values())) == [1, 1, 1, 1]
