"""What the articles claim about the four phases, as far as the coordinator goes; the id is in the test's name."""

import re

from cluster.events import (
    LeaderChosen,
    MemberRemoved,
)
from cluster.wire.groups import JoinGroupRequest
from tests.unit.scene import Scene


def test_p4_a_join_carries_timeouts_id_protocol_type_and_the_assignors_with_their_metadata() -> None:
    assert {"session_timeout_ms", "rebalance_timeout_ms", "member_id", "protocol_type", "protocols"} <= set(
        JoinGroupRequest.__struct_fields__
    )


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
