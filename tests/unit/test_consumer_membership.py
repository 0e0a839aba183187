"""Who a member is and what it owns: joins, plans, resets, the listener, leaving (A.2, A.4, A.7 to A.11, A.14)."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from cluster.assignors import Plan
from cluster.config import BadSetting
from cluster.consumer.commands import Close as CloseConsumer
from cluster.consumer.commands import EnforceRebalance, SetProcessing, Subscribe, Unsubscribe
from cluster.consumer.consumer import Consumer
from cluster.consumer.states import COMPLETING, PREPARING, STABLE, UNJOINED
from cluster.events import (
    ConsumerFailed,
    CoordinatorLost,
    JoinStarted,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    PlanMade,
    RecordsProcessed,
    RequestGivenUp,
)
from cluster.sim import hosts
from cluster.subscription import Assignment, Partitions, Subscription
from cluster.wire.errors import Error
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from cluster.wire.log import FetchRequest, MetadataRequest
from cluster.wire.offsets import OffsetCommitRequest, OffsetFetchRequest
from tests.unit.client_stage import ASSIGNORS, After, Close, Hold, Stage, as_leader, edited

QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"], **QUICK}


def subscription(stage: Stage, nth: int = -1) -> Subscription:
    return Subscription.decode(stage.sent(JoinGroupRequest)[nth].protocols[0].metadata)


def rebalance(stage: Stage, **assignment: tuple[int, ...]) -> None:
    """The group rebalances, and this is what comes of it."""
    stage.generation += 1
    stage.assignment = assignment
    stage.answer(HeartbeatRequest, Error.REBALANCE_IN_PROGRESS)
    stage.run(1200)


# JoinGroup


def test_a_join_says_all_that_the_leader_needs_to_know() -> None:
    stage = Stage(topics={"b": 1, "a": 1})
    stage.assignment = {}
    stage.join("b", "a")
    (join,) = stage.sent(JoinGroupRequest)
    assert (join.group_id, join.session_timeout_ms, join.rebalance_timeout_ms) == ("g", 45000, 300000)
    assert (join.protocol_type, join.member_id, join.group_instance_id) == ("consumer", "", None)
    assert [each.name for each in join.protocols] == ["range", "cooperative-sticky"]
    said = subscription(stage)
    assert (said.version, said.topics, said.owned, said.generation) == (3, ("a", "b"), {}, -1)
    assert stage.heard[-1].envelope.client_id == "c"


def test_an_eager_member_owns_nothing_when_it_rejoins_a_cooperative_one_says_what_it_keeps() -> None:
    for config, owned in ((QUICK, {}), (COOPERATIVE, {"t": (0, 1)})):
        stage = Stage(**config)  # type: ignore[arg-type]
        stage.join()
        rebalance(stage, t=(0, 1))
        assert (subscription(stage).owned, subscription(stage).generation) == (owned, 1)


def test_sticky_says_in_its_user_data_what_it_was_given_last() -> None:
    stage = Stage(partition_assignment_strategy=["sticky"], **QUICK)
    stage.join()
    assert subscription(stage).user_data is None
    rebalance(stage, t=(0,))
    assert subscription(stage).user_data == ASSIGNORS["sticky"].user_data({"t": (0, 1)}, 1)


def test_a_static_member_says_who_it_is_in_everything_but_never_that_it_leaves() -> None:
    stage = Stage(group_instance_id="i", **QUICK)
    stage.join()
    stage.produce()
    stage.run(6000)
    for kind in (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, OffsetCommitRequest):
        assert {request.group_instance_id for request in stage.sent(kind)} == {"i"}, kind
    stage.tell(CloseConsumer())
    stage.run(100)
    assert stage.sent(LeaveGroupRequest) == []


@pytest.mark.parametrize(
    ("strategy", "cooperative"),
    [
        (["range", "cooperative-sticky"], False),
        (["cooperative-sticky"], True),
        (["cooperative-sticky", "sticky"], False),
        (["roundrobin"], False),
    ],
)
def test_a_member_is_cooperative_if_all_of_its_assignors_are(strategy: list[str], cooperative: bool) -> None:
    assert Stage(partition_assignment_strategy=strategy).consumer().ownership.is_cooperative is cooperative


@pytest.mark.parametrize("strategy", [[], ["range", "range"], ["unheard-of"]])
def test_a_strategy_that_kafka_would_refuse_is_refused(strategy: list[str]) -> None:
    with pytest.raises(BadSetting, match=r"partition\.assignment\.strategy"):
        Stage(partition_assignment_strategy=strategy).consumer()


def test_a_reason_is_cut_off_at_255_characters() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.tell(EnforceRebalance("because " * 100))
    stage.run(100)
    assert stage.sent(JoinGroupRequest)[-1].reason == ("because " * 100)[:255]


def test_a_join_that_nobody_answers_is_given_up_after_the_rebalance_timeout_and_five_seconds() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, Hold())
    stage.join(ms=304_900)
    assert stage.events(RequestGivenUp) == []
    stage.run(500)
    assert [(event.api, event.destination) for event in stage.events(RequestGivenUp)] == [
        ("JoinGroup", "coordinator-1")
    ]
    assert stage.event_times(RequestGivenUp) == [2 + 305_000]
    assert len(stage.sent(JoinGroupRequest)) == 2


# What is forgotten when (A.14): seen in the next JoinGroup and in what the listener is told until then

REVOKED, LOST = "revoked", "lost"
BUSY = Error.REBALANCE_IN_PROGRESS


def beat(answer: Any) -> Callable[[Stage], None]:
    return lambda stage: stage.answer(HeartbeatRequest, answer)


def rejoin(kind: type, answer: Any) -> Callable[[Stage], None]:
    def told(stage: Stage) -> None:
        stage.answer(HeartbeatRequest, BUSY)
        stage.answer(kind, answer)

    return told


def commit(answer: Any) -> Callable[[Stage], None]:
    def told(stage: Stage) -> None:
        stage.answer(OffsetCommitRequest, answer)
        stage.produce()

    return told


def slow(stage: Stage) -> None:
    stage.tell(SetProcessing(31_000))
    stage.produce()
    stage.run(30_500)


def unsubscribed(stage: Stage) -> None:
    stage.tell(Unsubscribe())
    stage.tell(Subscribe(("t",)))


def reset_before_taken_over(stage: Stage) -> None:
    """A cooperative member is given its share while it processes, and learns in the same while that it is nobody."""
    stage.answer(HeartbeatRequest, BUSY, Error.ILLEGAL_GENERATION)
    stage.answer(SyncGroupRequest, After(300))
    stage.run(1000)
    stage.tell(SetProcessing(3000))
    stage.produce()
    stage.run(2900)


NAMED = edited(error_code=Error.MEMBER_ID_REQUIRED, member_id="m-2", generation_id=-1)
RESETS: list[tuple[str, Callable[[Stage], None], list[tuple[str, int]], list[str]]] = [
    # what happens, (member id, generation) of the joins that follow, what the listener is told
    ("MEMBER_ID_REQUIRED", rejoin(JoinGroupRequest, NAMED), [("m", 1), ("m-2", -1)], [REVOKED]),
    ("Join UNKNOWN", rejoin(JoinGroupRequest, Error.UNKNOWN_MEMBER_ID), [("m", 1), ("", -1)], [REVOKED]),
    ("Sync UNKNOWN", rejoin(SyncGroupRequest, Error.UNKNOWN_MEMBER_ID), [("m", 1), ("", -1)], [REVOKED]),
    ("Sync ILLEGAL", rejoin(SyncGroupRequest, Error.ILLEGAL_GENERATION), [("m", 1), ("m", -1)], [REVOKED]),
    ("Heartbeat ILLEGAL", beat(Error.ILLEGAL_GENERATION), [("m", -1)], [LOST]),
    ("Heartbeat UNKNOWN", beat(Error.UNKNOWN_MEMBER_ID), [("", -1)], [LOST]),
    ("Commit UNKNOWN", commit(Error.UNKNOWN_MEMBER_ID), [("", -1)], [LOST]),
    ("Commit ILLEGAL", commit(Error.ILLEGAL_GENERATION), [("m", -1)], [LOST]),
    ("poll interval", slow, [("", -1)], [LOST]),
    ("unsubscribe", unsubscribed, [("", -1)], [REVOKED]),
    ("Heartbeat BUSY", beat(BUSY), [("m", 1)], [REVOKED]),
    ("Commit BUSY", commit(BUSY), [("m", 1)], [REVOKED]),
    ("Join BUSY", rejoin(JoinGroupRequest, BUSY), [("m", 1), ("m", 1)], [REVOKED]),
    ("Sync BUSY", rejoin(SyncGroupRequest, BUSY), [("m", 1), ("m", 1)], [REVOKED]),
    ("disconnect", beat(Close()), [], []),
    ("disconnect in a join", rejoin(JoinGroupRequest, Close()), [("m", 1), ("m", 1)], [REVOKED]),
    ("thrown", rejoin(JoinGroupRequest, Error.NOT_ENOUGH_REPLICAS), [("m", 1), ("m", 1)], [REVOKED]),
]


def told_listener(stage: Stage) -> list[str]:
    names = {PartitionsRevoked: REVOKED, PartitionsLost: LOST}
    return [names[type(each.event)] for each in stage.seen if type(each.event) in names]


@pytest.mark.parametrize(("happens", "joins", "told"), [row[1:] for row in RESETS], ids=[row[0] for row in RESETS])
def test_what_is_forgotten_and_what_is_not(
    happens: Callable[[Stage], None], joins: list[tuple[str, int]], told: list[str]
) -> None:
    stage = Stage(commit="sync", partition_assignment_strategy=["range"], max_poll_interval_ms=30_000, **QUICK)
    stage.join()
    happens(stage)
    stage.run(1500)
    asked = stage.sent(JoinGroupRequest)[1:]
    said = [(each.member_id, Subscription.decode(each.protocols[0].metadata).generation) for each in asked]
    assert said == joins
    assert told_listener(stage) == told


def test_a_generation_that_is_reset_before_the_assignment_is_taken_over_costs_the_member_its_id() -> None:
    stage = Stage(**COOPERATIVE)
    stage.join()
    reset_before_taken_over(stage)
    stage.run(1000)
    assert [each.member_id for each in stage.sent(JoinGroupRequest)] == ["", "m", ""]
    assert told_listener(stage) == [LOST]
    assert [event.reason for event in stage.events(JoinStarted)][-1] == (
        "the generation was reset before the assignment was taken over"
    )


def test_a_thrown_error_leaves_the_preparation_done_until_a_join_completes() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.answer(HeartbeatRequest, BUSY)
    stage.answer(JoinGroupRequest, *[Error.NOT_ENOUGH_REPLICAS] * 3)
    stage.run(2000)
    assert len(stage.events(ConsumerFailed)) == 3
    assert told_listener(stage) == [REVOKED]


# The listener


def test_a_cooperative_member_keeps_reading_what_it_keeps_and_gives_up_the_rest_afterwards() -> None:
    stage = Stage(**COOPERATIVE)
    stage.join()
    stage.answer(JoinGroupRequest, After(500))
    rebalance(stage, t=(0,))
    stage.assignment = {"t": (0,)}
    stage.run(1000)
    assert [event.partitions for event in stage.events(PartitionsRevoked)] == [{"t": (1,)}]
    assert [event.partitions for event in stage.events(PartitionsAssigned)] == [{"t": (0, 1)}, {}, {}]
    assert [event.reason for event in stage.events(JoinStarted)] == [
        "",
        "group is already rebalancing",
        "need to revoke partitions and re-join",
    ]


def test_a_cooperative_member_reads_on_while_it_joins() -> None:
    stage = Stage(**COOPERATIVE)
    stage.join()
    stage.answer(JoinGroupRequest, Hold())
    rebalance(stage, t=(0, 1))
    stage.produce(count=3)
    stage.run(100)
    assert sum(event.count for event in stage.events(RecordsProcessed)) == 3


def test_what_a_cooperative_member_does_not_want_any_more_it_gives_up_before_it_joins() -> None:
    stage = Stage(topics={"t": 2, "u": 1}, **COOPERATIVE)
    stage.assignment = {"t": (0, 1), "u": (0,)}
    stage.join("t", "u")
    stage.assignment = {"u": (0,)}
    stage.tell(Subscribe(("u",)))
    stage.run(100)
    assert [event.partitions for event in stage.events(PartitionsRevoked)] == [{"t": (0, 1)}]
    assert subscription(stage).owned == {"u": (0,)}
    assert subscription(stage).topics == ("u",)
    assert stage.events(JoinStarted)[-1].reason == "subscription has changed"


def test_a_retained_partition_keeps_its_position_and_a_new_one_gets_its_own() -> None:
    stage = Stage(auto_offset_reset="earliest", **COOPERATIVE)
    stage.assignment = {"t": (0,)}
    stage.produce(count=3)
    stage.join()
    rebalance(stage, t=(0, 1))
    asked = stage.sent(OffsetFetchRequest)
    assert [each.groups[0].topics[0].partition_indexes for each in asked] == [(0,), (1,)]  # type: ignore[index]
    fetch = stage.sent(FetchRequest)[-1]
    assert {one.partition: one.fetch_offset for one in fetch.topics[0].partitions} == {0: 3, 1: 0}


@pytest.mark.parametrize("config", [QUICK, COOPERATIVE], ids=["eager", "cooperative"])
def test_leaving_while_a_rebalance_is_on_loses_what_is_owned(config: dict[str, Any]) -> None:
    stage = Stage(enable_auto_commit=False, **config)
    stage.join()
    stage.answer(JoinGroupRequest, Hold())
    stage.answer(HeartbeatRequest, BUSY)
    stage.run(1200)
    stage.tell(Unsubscribe())
    assert told_listener(stage) == ([REVOKED] if config is QUICK else [LOST])


# The leader


def test_the_leader_makes_the_plan_with_the_topics_of_all_members() -> None:
    stage = Stage(topics={"t": 2, "u": 3}, **QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("t", "u"))))
    stage.join()
    (made,) = stage.events(PlanMade)
    assert made.plan == {"m": {"t": (0,)}, "n": {"t": (1,), "u": (0, 1, 2)}}
    assert (made.assignor, made.generation) == ("range", 1)
    (synced,) = stage.sent(SyncGroupRequest)
    shares = {each.member_id: Assignment.decode(each.assignment).partitions for each in synced.assignments}
    assert shares == made.plan
    assert [each.topics for each in stage.sent(MetadataRequest)] == [("t",), ("t", "u")]
    assert [event.owned for event in stage.events(PartitionsAssigned)] == [{"t": (0,)}]


def test_the_leader_waits_for_topics_it_did_not_know_as_long_as_it_takes() -> None:
    stage = Stage(topics={"t": 2, "u": 1}, poll_timeout_ms=100, **QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("u",))))
    stage.answer(MetadataRequest, Error.NONE, Hold(), always=True)
    stage.join(ms=20_000)
    assert stage.sent(SyncGroupRequest) == []
    stage.friendlier(MetadataRequest)
    stage.release(kind=MetadataRequest)
    stage.run(100)
    assert len(stage.sent(SyncGroupRequest)) == 1


def test_a_topic_of_another_member_that_does_not_exist_is_left_out() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("missing",))))
    stage.join(ms=1000)
    assert stage.events(PlanMade)[0].plan == {"m": {"t": (0, 1)}, "n": {}}


def test_a_leader_that_restarted_may_be_told_to_make_no_plan() -> None:
    stage = Stage(group_instance_id="i", metadata_max_age_ms=5000, **QUICK)
    leads = as_leader(("m", ("t",)), ("n", ("t",)))
    leads.changes["skip_assignment"] = True
    stage.answer(JoinGroupRequest, leads)
    stage.join()
    assert stage.events(PlanMade) == []
    assert stage.sent(SyncGroupRequest)[0].assignments == ()
    stage.topics["t"] = 3
    stage.run(6000)
    assert stage.sent(JoinGroupRequest)[-1].reason == "cached metadata has changed"  # it leads, so it watches


def test_a_leader_that_becomes_a_follower_watches_no_more() -> None:
    stage = Stage(topics={"t": 2, "u": 1}, metadata_max_age_ms=5000, **QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("u",))))
    stage.join()
    rebalance(stage, t=(0, 1))
    stage.topics |= {"t": 3, "u": 2}
    stage.run(8000)
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert stage.sent(MetadataRequest)[-1].topics == ("t",)


def test_a_subscription_that_cannot_be_read_is_thrown_at_the_leader() -> None:
    stage = Stage(**QUICK)
    stage.answer(JoinGroupRequest, edited(leader="m", members=(JoinGroupResponseMember("m", b"?"),)))
    stage.join()
    assert [event.error for event in stage.events(ConsumerFailed)] == ["SchemaException"]


class Odd:
    """An assignor of one's own: everything to the last member, and one more topic that nobody asked for."""

    name = "odd"

    def __init__(self, cooperative: bool = False, more: str = "") -> None:
        self.cooperative = cooperative
        self.more = more

    def user_data(self, owned: Partitions, generation: int) -> None:
        return None

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        shares: Plan = {member: {} for member in members}
        shares[max(members)] = {topic: list(range(count)) for topic, count in topics.items()}
        if self.more:
            shares[max(members)][self.more] = [0]
        return shares


def led_by(odd: Odd, **config: Any) -> Stage:
    stage = Stage(topics={"t": 2, "extra": 1}, partition_assignment_strategy=["odd"], **QUICK, **config)
    stage.consumer(assignors={"odd": odd})
    return stage


def test_a_custom_assignor_may_hand_out_topics_that_nobody_asked_for_and_they_are_watched() -> None:
    stage = led_by(Odd(more="extra"), metadata_max_age_ms=5000)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("t",))), always=True)
    stage.assignment = {}
    stage.tell(Subscribe(("t",)))
    stage.run(1000)
    assert stage.events(PlanMade)[0].plan == {"m": {}, "n": {"t": (0, 1), "extra": (0,)}}
    assert stage.sent(MetadataRequest)[-1].topics == ("extra", "t")
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage.topics["extra"] = 2
    stage.run(6000)
    assert len(stage.sent(JoinGroupRequest)) == 2


def test_a_cooperative_plan_that_gives_away_what_is_still_held_is_refused() -> None:
    stage = led_by(Odd(cooperative=True))
    held = Subscription(topics=("t",), owned={"t": (0,)}, generation=1).encode()
    free = Subscription(topics=("t",)).encode()
    members = JoinGroupResponseMember("m", held), JoinGroupResponseMember("n", free)
    stage.answer(JoinGroupRequest, edited(leader="m", members=members))
    stage.tell(Subscribe(("t",)))
    stage.run(1000)
    assert [event.error for event in stage.events(ConsumerFailed)] == ["IllegalState"]
    assert stage.sent(SyncGroupRequest) == []


def test_a_protocol_that_the_leader_does_not_know_is_refused() -> None:
    stage = Stage(**QUICK)
    leads = as_leader(("m", ("t",)))
    leads.changes["protocol_name"] = "unheard-of"
    stage.answer(JoinGroupRequest, leads)
    stage.join()
    assert [event.error for event in stage.events(ConsumerFailed)] == ["IllegalState"]


# Patterns


def test_a_pattern_is_matched_here_against_whole_names_and_internal_topics_do_not_count() -> None:
    stage = Stage(topics={"orders": 1, "orders-2": 1, "reorders": 1, "__orders": 1}, **QUICK)
    stage.assignment = {}
    stage.consumer()
    stage.tell(Subscribe(pattern="_*orders.*"))
    stage.run(200)
    assert subscription(stage).topics == ("orders", "orders-2")
    assert {each.topics for each in stage.sent(MetadataRequest)} == {None}


def test_internal_topics_can_be_asked_for() -> None:
    stage = Stage(topics={"orders": 1, "__orders": 1}, exclude_internal_topics=False, **QUICK)
    stage.assignment = {}
    stage.consumer()
    stage.tell(Subscribe(pattern=".*orders"))
    stage.run(200)
    assert subscription(stage).topics == ("__orders", "orders")


def test_a_new_topic_that_matches_is_found_when_the_metadata_is_refreshed() -> None:
    stage = Stage(metadata_max_age_ms=5000, **QUICK)
    stage.assignment = {"t": (0,)}
    stage.consumer()
    stage.tell(Subscribe(pattern="t.*"))
    stage.run(1000)
    stage.topics["t2"] = 1
    stage.run(3000)
    assert len(stage.sent(JoinGroupRequest)) == 1
    stage.run(3000)
    assert subscription(stage).topics == ("t", "t2")
    assert stage.sent(JoinGroupRequest)[-1].reason == "subscription has changed"


def test_a_pattern_joins_with_fresh_metadata() -> None:
    stage = Stage(**QUICK)
    stage.answer(MetadataRequest, Hold())
    stage.consumer()
    stage.tell(Subscribe(pattern="t.*"))
    stage.run(3000)
    assert stage.sent(JoinGroupRequest) == []
    stage.release()
    stage.run(100)
    assert subscription(stage).topics == ("t",)


def test_a_topic_that_the_leader_saw_first_is_taken_if_it_matches() -> None:
    stage = Stage(topics={"t": 1}, **QUICK)
    stage.consumer()
    stage.assignment = {"t": (0,), "t2": (0,)}
    stage.answer(SyncGroupRequest, Hold())
    stage.tell(Subscribe(pattern="t.*"))
    stage.run(5)
    stage.topics["t2"] = 1
    stage.release()
    stage.run(1000)
    assert [event.owned for event in stage.events(PartitionsAssigned)] == [{"t": (0,), "t2": (0,)}]
    assert len(stage.sent(JoinGroupRequest)) == 1


def test_a_topic_that_does_not_match_is_not_taken() -> None:
    stage = Stage(topics={"t": 1}, **QUICK)
    consumer = stage.consumer()
    stage.assignment = {"u": (0,)}
    stage.answer(JoinGroupRequest, Error.NONE, Hold())
    stage.tell(Subscribe(pattern="t.*"))
    stage.run(300)
    assert stage.events(PartitionsAssigned) == []
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert consumer.member.state is PREPARING


# Coordinators that go away


def test_a_sync_that_has_nobody_to_go_to_starts_the_join_again() -> None:
    """The leader waits for metadata; meanwhile its coordinator closes the connection."""
    stage = Stage(topics={"t": 2, "u": 1}, **QUICK)
    stage.answer(JoinGroupRequest, as_leader(("m", ("t",)), ("n", ("u",))))
    stage.answer(MetadataRequest, Error.NONE, After(300))
    stage.join(ms=100)
    stage.world.close(stage.world.processes["coordinator-1"], "c")
    stage.run(1000)
    assert [event.cause for event in stage.events(CoordinatorLost)] == ["disconnected"]
    assert len(stage.sent(JoinGroupRequest)) == 2
    assert len(stage.events(PartitionsAssigned)) == 1


def test_a_coordinator_that_cannot_be_reached_is_looked_for_after_pauses_that_grow() -> None:
    stage = Stage(**QUICK)
    hosts.crash(stage.world, "coordinator-1")
    stage.join(ms=5000)
    joins = stage.times(JoinGroupRequest)
    assert 4 <= len(joins) <= 12
    assert len(stage.sent(FindCoordinatorRequest)) <= 40


def test_an_idle_connection_that_is_closed_makes_the_coordinator_unknown_and_nothing_else() -> None:
    stage = Stage(**QUICK)
    consumer = stage.join()
    stage.world.close(stage.world.processes["coordinator-1"], "c")
    stage.run(1000)
    assert len(stage.events(CoordinatorLost)) == 1
    assert len(stage.sent(JoinGroupRequest)) == 1
    assert consumer.member.state is STABLE


# Commands


def test_a_rebalance_can_be_enforced() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.tell(EnforceRebalance())
    stage.run(10)
    assert stage.sent(JoinGroupRequest)[-1].reason == "rebalance enforced by user"


def test_to_subscribe_to_nothing_is_to_unsubscribe() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.tell(Subscribe())
    stage.run(5000)
    assert len(stage.sent(LeaveGroupRequest)) == 1
    assert told_listener(stage) == [REVOKED]
    assert stage.sent(FetchRequest, since=1000) == []


def test_commands_to_somebody_who_is_not_there_are_ignored() -> None:
    stage = Stage(**QUICK)
    consumer = stage.consumer()
    for command in (Unsubscribe(), CloseConsumer(), EnforceRebalance("?")):
        stage.tell(command)
    stage.run(1000)
    assert stage.heard == []
    assert isinstance(consumer, Consumer)


def test_a_subscription_to_the_same_topics_changes_nothing() -> None:
    stage = Stage(**QUICK)
    stage.join()
    stage.tell(Subscribe(("t",)))
    stage.run(500)
    assert len(stage.sent(JoinGroupRequest)) == 1
    assert len(stage.sent(MetadataRequest)) == 1


def test_one_that_was_closed_can_start_again_as_somebody_new() -> None:
    stage = Stage(**QUICK)
    consumer = stage.join()
    stage.tell(CloseConsumer())
    stage.run(1000)
    assert consumer.member.state is UNJOINED
    stage.tell(Subscribe(("t",)))
    stage.run(1000)
    assert [each.member_id for each in stage.sent(JoinGroupRequest)] == ["", ""]
    assert len(stage.events(PartitionsAssigned)) == 2
    numbers = [each.envelope.correlation_id for each in stage.heard]
    assert len(set(numbers)) == len(numbers)


def test_completing_is_a_state_of_its_own() -> None:
    stage = Stage(**QUICK)
    stage.answer(SyncGroupRequest, Hold())
    consumer = stage.join()
    assert consumer.member.state is COMPLETING
    assert msgspec.structs.astuple(consumer.member.generation) == (1, "m", "range")
    assert consumer.member.public.number == -1  # what the application sees comes with the assignment
