"""Every action of a timeline that breaks nothing does what it says."""

from pathlib import Path

from cluster.events import (
    BrokerStopped,
    FaultBegan,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
    MemberLeft,
    MemberRemoved,
    PartitionsAssigned,
    ProcessDied,
    ProcessStarted,
    RecordsProcessed,
    TopicCreated,
    TopicDeleted,
    TopicGrown,
)
from tests.unit.sim_stage import SMALL, Stage


def owned(stage: Stage) -> dict[str, set[tuple[str, int]]]:
    """Who has what now."""
    found: dict[str, set[tuple[str, int]]] = {}
    for where, members in stage.owners().items():
        for member in members:
            found.setdefault(member, set()).add(where)
    return found


def test_members_that_join_get_their_share(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, join: {group: g, members: 2}").play(20_000)
    assert {each.client_id for each in stage.events(MemberAdded, since=5000)} == {"g-3", "g-4"}
    assert {member: len(what) for member, what in owned(stage).items()} == {f"g-{number}": 1 for number in range(1, 5)}
    assert stage.simulation.nodes["g-3"] == "node-1"


def test_subscribing_anew_changes_what_is_wanted(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path,
        "at: 4s, create-topic: {topic: late, partitions: 2}",
        "at: 8s, subscribe: {who: members of group g, topics: [late]}",
    )
    stage.play(20_000)
    assert {where for what in owned(stage).values() for where in what} == {("late", 0), ("late", 1)}


def test_a_pattern_finds_topics_that_come_later(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path,
        "at: 4s, subscribe: {who: members of group g, pattern: late.*}",
        "at: 8s, create-topic: {topic: late-1, partitions: 2}",
        "at: 15s, create-topic: {topic: late-2}",
    )
    stage.play(30_000)
    assert {where for what in owned(stage).values() for where in what} == {("late-1", 0), ("late-1", 1), ("late-2", 0)}


def test_whoever_unsubscribes_leaves_and_its_process_stays(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path,
        "at: 5s, unsubscribe: {who: member g/2}",
        "at: 15s, subscribe: {who: member g/2, topics: [orders]}",
    )
    stage.play(14_000)
    assert [each.cause for each in stage.events(MemberLeft)] == ["unsubscribed"]
    assert [each.cause for each in stage.events(MemberRemoved)] == ["left"]
    assert stage.host("g-2").is_up
    assert len(owned(stage)["g-1"]) == 4
    stage.play(30_000)
    assert {member: len(what) for member, what in owned(stage).items()} == {"g-1": 2, "g-2": 2}


def test_processing_takes_as_long_as_it_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 10s, process: {who: member g/1, per.record: 2s}", produces=True).play(30_000)
    before = sum(each.count for each in stage.events(RecordsProcessed, "g-1", 2000, 10_000))
    after = sum(each.count for each in stage.events(RecordsProcessed, "g-1", 12_000, 30_000))
    assert before > 20
    assert after <= 9
    assert sum(each.count for each in stage.events(RecordsProcessed, "g-2", 12_000, 30_000)) > 40


def test_brokers_are_rolled_one_after_the_other(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, "at: 5s, roll: {who: brokers, every: 12s, down: 3s}", brokers=3, produces=True, until="60s"
    ).play(60_000)
    assert stage.times(FaultBegan) == [5000, 17_000, 29_000]
    assert [(each.what, each.who, each.target) for each in stage.events(FaultBegan)] == [
        ("stop", f"broker-{number}", "brokers") for number in (1, 2, 3)
    ]
    for number in (1, 2, 3):
        (stopped,) = stage.times(BrokerStopped, broker=number)
        assert stage.times(ProcessDied, name=f"broker-{number}") == [stopped]
        assert stage.times(ProcessStarted, name=f"broker-{number}") == [stopped + 3000]
    assert stage.events(MemberRemoved) == []
    assert stage.broken_rules() == []


def test_members_are_rolled_and_leave_and_come_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, roll: {who: members of group g, every: 5s, down: 1s}").play(30_000)
    assert [each.cause for each in stage.events(MemberRemoved)] == ["left", "left"]
    assert [(each.name, each.incarnation) for each in stage.events(ProcessStarted)] == [("g-1", 1), ("g-2", 1)]
    assert {member: len(what) for member, what in owned(stage).items()} == {"g-1": 2, "g-2": 2}


def test_a_topic_is_made_and_grows_and_goes(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path,
        "at: 5s, create-topic: {topic: new, partitions: 2, replication.factor: 2}",
        "at: 7s, grow: {topic: new, partitions: 3}",
        "at: 9s, delete-topic: {topic: new}",
    )
    stage.play(8000)
    assert stage.machine("broker-1").image.topics["new"][2].replicas != ()
    assert [len(each.replicas) for each in stage.machine("broker-2").image.topics["new"]] == [2, 2, 2]
    stage.play(20_000)
    assert TopicCreated("new", 2) in stage.events(TopicCreated)
    assert stage.events(TopicGrown) == [TopicGrown("new", 3)]
    assert stage.events(TopicDeleted) == [TopicDeleted("new")]
    assert "new" not in stage.machine("broker-1").image.topics


def test_a_group_notices_that_its_topic_grows(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "at: 5s, grow: {topic: orders, partitions: 6}").play(20_000)
    assert {member: len(what) for member, what in owned(stage).items()} == {"g-1": 3, "g-2": 3}
    assert len(stage.events(GenerationStarted, since=5000)) == 1


def test_a_group_notices_that_its_topic_is_gone(tmp_path: Path) -> None:
    text = SMALL.replace("auto.commit.interval.ms: 500", "commit: async")  # else it tries to commit before it rejoins
    stage = Stage(tmp_path, "at: 5s, delete-topic: {topic: orders}", text=text).play(20_000)
    assert owned(stage) == {}
    assert stage.events(PartitionsAssigned, since=5000)[-1].owned == {}


def test_preferred_leaders_lead_again_when_they_are_asked_to(tmp_path: Path) -> None:
    """A broker that comes back leads nothing, until somebody says so."""
    stage = Stage(tmp_path, "at: 5s, crash: {who: broker 1, for: 5s}", "at: 20s, elect: {}").play(19_999)
    back = stage.machine("broker-2").image.topics["orders"]
    assert {each.leader for each in back} == {2}
    stage.play(25_000)
    image = stage.machine("broker-2").image.topics["orders"]
    assert all(each.leader == each.replicas[0] for each in image)
    assert {each.leader for each in stage.events(LeaderElected, since=20_000)} == {1}


def test_somebody_else_is_asked_if_the_first_broker_is_down(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path, "at: 5s, crash: {who: broker 1}", "at: 10s, create-topic: {topic: new, partitions: 2}"
    ).play(15_000)
    assert stage.times(TopicCreated, topic="new") != []


def test_whoever_is_down_is_told_nothing(tmp_path: Path) -> None:
    stage = Stage(
        tmp_path,
        "at: 5s, crash: {who: member g/1, for: 5s}",
        "at: 7s, unsubscribe: {who: members of group g}",
    )
    stage.play(30_000)
    assert set(owned(stage)) == {"g-1"}
