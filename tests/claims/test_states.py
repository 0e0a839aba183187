"""What the articles claim about the states of a group, each tried; the id is in the test's name."""

import pytest

from cluster.config import BrokerConfig
from cluster.coordinator.states import REACTIONS, GroupState, On
from cluster.events import (
    GroupMoved,
    MemberRemoved,
    OffsetsExpired,
    RebalanceStarted,
)
from scenarios.playing import step_from
from tests.unit.scene import Scene


def test_g01_there_are_five_states_and_empty_is_the_first() -> None:
    scene = Scene()
    scene.say("join", "a")
    assert scene.state() == "Empty"
    assert len(GroupState) == 5


@pytest.mark.parametrize("begin", ["alone", "stable"])
def test_g02_a_join_makes_members_rejoin(begin: str) -> None:
    scene = Scene()
    if begin == "stable":
        scene.stable()
    scene.say("join", "n")
    scene.say("join", "n", async_="n")
    assert "PreparingRebalance" in [event.after for event in scene.events(GroupMoved)]
    assert scene.events(RebalanceStarted)[-1].cause == "member joined"


def test_g03_a_join_while_preparing_starts_no_second_rebalance_and_may_end_the_first() -> None:
    scene = Scene()
    scene.preparing()
    before = len(scene.events(RebalanceStarted))
    scene.say("join", "a", async_="a")
    assert scene.state() == "PreparingRebalance"
    scene.say("join", "b", async_="b2")
    assert (scene.state(), len(scene.events(RebalanceStarted))) == ("CompletingRebalance", before)


def test_g04_the_join_phase_ends_when_all_have_rejoined_or_time_is_up() -> None:
    scene = Scene()
    scene.preparing(session_ms=30000, rebalance_ms=2000)
    scene.wait(1800)
    assert scene.state() == "PreparingRebalance"
    scene.wait(200)
    assert scene.state() == "CompletingRebalance"


def test_g05_with_nobody_left_the_group_is_empty() -> None:
    scene = Scene()
    scene.preparing()
    scene.say("leave", members=[{"member_id": f"${name}"} for name in "abc"])
    assert scene.state() == "Empty"


def test_g06_the_followers_syncs_wait_for_the_leaders_and_are_answered_together() -> None:
    scene = Scene()
    scene.together()
    scene.say("sync", "b", async_="bs")
    assert scene.hear("bs") is None
    scene.say("sync", "a", assign={"a": "p0", "b": "p1"}, async_="as")
    assert (scene.hear("as")["assignment"], scene.hear("bs")["assignment"]) == ("p0", "p1")


def test_g07_the_leaders_sync_makes_the_group_stable() -> None:
    scene = Scene()
    scene.together()
    scene.say("sync", "a", assign={"a": "p0", "b": "p1"})
    assert scene.state() == "Stable"


@pytest.mark.parametrize("how", ["join", "leave", "expiry"])
def test_g08_while_completing_a_change_sends_those_who_wait_back_to_join(how: str) -> None:
    scene = Scene()
    scene.together(session_ms=1000, rebalance_ms=30000)
    scene.say("sync", "b", async_="bs")
    if how == "join":
        scene.say("join", "c")
        scene.say("join", "c", async_="c")
    elif how == "leave":
        scene.say("leave", "a")
    else:
        scene.wait(1000)
    assert scene.hear("bs")["error"] == "REBALANCE_IN_PROGRESS"
    assert scene.state() == "PreparingRebalance"


def test_g09_while_completing_an_unchanged_join_is_answered_again() -> None:
    scene = Scene()
    scene.together()
    again = scene.say("join", "a")
    assert (again["generation"], again["members"], scene.state()) == (2, ["$a", "$b"], "CompletingRebalance")


def test_g10_in_a_stable_group_a_sync_gets_the_assignment_again() -> None:
    scene = Scene()
    scene.stable()
    assert scene.say("sync", "b")["assignment"] == "p1"


def test_g11_empty_knows_nobody_and_preparing_sends_syncs_away() -> None:
    scene = Scene()
    scene.alone()
    scene.say("leave", "a")
    assert (scene.say("sync", "a")["error"], scene.say("heartbeat", "a")["error"]) == (
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_MEMBER_ID",
    )
    other = Scene()
    other.preparing()
    assert other.say("sync", "a")["error"] == "REBALANCE_IN_PROGRESS"


def test_g12_while_completing_a_heartbeat_is_welcome() -> None:
    """The article says REBALANCE_IN_PROGRESS, which older versions said."""
    scene = Scene()
    scene.together()
    assert scene.say("heartbeat", "b") == {"error": "NONE"}


def test_g13_while_preparing_a_heartbeat_warns_and_renews_the_session() -> None:
    scene = Scene()
    scene.preparing()
    before = scene.renewals("a")
    assert scene.say("heartbeat", "a") == {"error": "REBALANCE_IN_PROGRESS"}
    assert scene.renewals("a") == before + 1


@pytest.mark.parametrize("how", ["expiry", "leave", "leader rejoins", "new member"])
def test_g14_what_makes_a_stable_group_rebalance(how: str) -> None:
    scene = Scene()
    scene.stable(session_ms=1000, rebalance_ms=30000)
    if how == "expiry":
        scene.wait(700)
        scene.say("heartbeat", "a")
        scene.wait(400)
    elif how == "leave":
        scene.say("leave", "b")
    elif how == "leader rejoins":
        scene.say("join", "a", session_ms=1000, rebalance_ms=30000, async_="a")
    else:
        scene.say("join", "c", version=3, async_="c")
    assert scene.state() == "PreparingRebalance"


def test_g14_control_a_follower_that_rejoins_unchanged_does_not() -> None:
    scene = Scene()
    scene.stable()
    scene.say("join", "b")
    assert scene.state() == "Stable"


def test_g15_leaving_may_end_the_join_phase_starts_one_or_does_nothing() -> None:
    scene = Scene()
    scene.preparing()
    scene.say("join", "a", async_="a")
    scene.say("leave", "b")
    assert scene.state() == "CompletingRebalance"
    scene.say("leave", "c")
    assert scene.state() == "PreparingRebalance"
    scene.say("leave", "a")
    assert scene.state() == "Empty"
    scene.say("leave", "a")
    assert scene.state() == "Empty"


def test_g16_whoever_does_not_rejoin_in_time_is_removed_but_static_members_stay() -> None:
    scene = Scene()
    fields = {"session_ms": 30000, "rebalance_ms": 1000}
    scene.say("join", "a", version=3, **fields)
    scene.say("join", "s", instance="i", async_="s", **fields)
    scene.say("join", "a", **fields)
    scene.say("sync", "a", assign={"a": "x", "s": "y"})
    scene.say("sync", "s", instance="i")
    scene.say("join", "n", version=3, async_="n", **fields)
    scene.wait(1000)
    assert scene.hear("n")["members"] == ["$n", "$s"]
    assert [event.cause for event in scene.events(MemberRemoved)] == ["did not rejoin"]


def test_g17_a_completed_join_and_the_sync_that_makes_stable_renew_the_session_a_repeated_sync_does_not() -> None:
    scene = Scene()
    scene.together()
    assert scene.renewals("b") == 1
    scene.say("sync", "b", async_="bs")
    scene.say("sync", "a", assign={"a": "p0", "b": "p1"})
    assert scene.renewals("b") == 2
    scene.say("sync", "b")
    assert scene.renewals("b") == 2


def test_g18_an_id_that_nobody_came_back_with_is_dropped() -> None:
    scene = Scene()
    scene.say("join", "a", session_ms=1000)
    scene.wait(1000)
    assert [event.cause for event in scene.events(MemberRemoved)] == ["id not used"]
    assert scene.say("join", "a")["error"] == "UNKNOWN_MEMBER_ID"


def test_g19_does_not_hold_dead_accepts_nothing() -> None:
    assert REACTIONS[On.COMMIT][list(GroupState).index(GroupState.DEAD)] == "MOVED"
    scene = Scene()
    assert scene.say("commit", member_id="x", generation=1, offsets={"t": {0: 1}}) == {
        "partitions": {"t": {0: "GROUP_ID_NOT_FOUND"}}
    }


def test_g20_offsets_expire_seven_days_after_the_group_became_empty() -> None:
    assert BrokerConfig().offsets_retention_minutes == 7 * 24 * 60
    scene = Scene(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000)
    scene.alone(session_ms=600000)
    scene.say("sync", "a", assign={"a": "x"})
    scene.say("commit", "a", offsets={"t": {0: 1}, "u": {0: 2}})
    scene.wait(90_000)
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [1, ""]}}
    scene.say("leave", "a")
    scene.wait(58_000)
    assert scene.say("fetch", all=True)["partitions"] == {"t": {0: [1, ""]}}
    scene.wait(3_000)
    assert scene.say("fetch", all=True)["partitions"] == {}
    assert [event.count for event in scene.events(OffsetsExpired)] == [1, 1]


def test_g21_a_new_coordinator_knows_members_and_their_partitions() -> None:
    scene = Scene()
    scene.stable()
    before = scene.say("describe")
    scene.dialogue.restart_coordinator()
    scene.wait(1)
    assert scene.say("describe") == before
    assert scene.say("heartbeat", "b") == {"error": "NONE"}


def test_g22_joins_that_come_at_one_instant_are_taken_one_after_the_other() -> None:
    scene = Scene()
    scene.stable()
    calls = [
        scene.dialogue.send(step.build(scene.dialogue), member=name)
        for name in "ab"
        for step in [step_from({"do": "join", "member": name})]
        if hasattr(step, "build")
    ]
    scene.wait(10)
    assert [call.answer.generation_id for call in calls] == [3, 3]
    assert len(scene.events(RebalanceStarted)) == 3


def test_g23_awaiting_sync_is_completing_rebalance() -> None:
    """Only a name: nothing here answers to the old one."""
    assert GroupState.COMPLETING == "CompletingRebalance"
    assert "AwaitingSync" not in list(GroupState)


def test_g24_does_not_hold_the_group_is_stable_before_all_have_received_the_plan() -> None:
    scene = Scene()
    scene.together()
    scene.say("sync", "a", assign={"a": "p0", "b": "p1"})
    assert scene.state() == "Stable"
    assert scene.say("sync", "b")["assignment"] == "p1"


def test_g25_while_preparing_offsets_and_leaving_are_still_served() -> None:
    scene = Scene()
    scene.preparing()
    assert scene.say("commit", "a", offsets={"t": {0: 4}}) == {"partitions": {"t": {0: "NONE"}}}
    assert scene.say("fetch", partitions={"t": [0]})["partitions"] == {"t": {0: [4, ""]}}
    assert scene.say("leave", "a")["error"] == "NONE"
