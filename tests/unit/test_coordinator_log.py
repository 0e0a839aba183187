"""What a coordinator reads from its log, and what it writes there."""

import pytest

from cluster.coordinator.loading import restored
from cluster.coordinator.records import GroupMetadata, MemberMetadata, Offset, OffsetRecord, encode
from cluster.coordinator.states import GroupState
from cluster.events import LoadFailed, ShardLoaded, ShardUnloaded
from cluster.machine import TimerFired
from cluster.wire.errors import Error
from cluster.wire.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
)
from cluster.wire.log import (
    FetchRequest,
    ProduceRequest,
    Record,
    RecordBatch,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from tests.unit.by_hand import COMMIT, FETCH, GROUP, HOME, STORED, Log, error_in

# Loading


def test_a_load_reads_on_until_the_end_of_the_log_and_skips_what_it_has() -> None:
    log = Log()
    log.tell(1)
    first, second = encode(STORED, 5), encode(OffsetRecord(GROUP, "t", 0, Offset(7)), 5)
    log.read(RecordBatch(0, 0, (first,)), high_watermark=2)
    assert isinstance(log.asked[-1].body, FetchRequest)
    assert log.asked[-1].body.topics[0].partitions[0].fetch_offset == 1
    log.read(RecordBatch(0, 0, (first, second)), high_watermark=2)
    log.read(high_watermark=2)
    assert [event for event in log.events if isinstance(event, ShardLoaded)] == [ShardLoaded(HOME, 0, 2, 1, 1)]
    assert log.ask(FETCH).groups[0].topics[0].partitions[0].committed_offset == 7


def test_what_a_load_finds_past_the_high_watermark_holds_replies_back_until_it_is_committed() -> None:
    log = Log()
    log.load(STORED, OffsetRecord(GROUP, "t", 0, Offset(7)), high_watermark=1)
    assert log.ask(FETCH).groups[0].topics[0].partitions[0].committed_offset == -1
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")) is None
    log.answers.clear()
    log.feel(TimerFired(f"tail/{HOME}"))
    log.read(high_watermark=1)
    assert log.answers == []
    log.feel(TimerFired(f"tail/{HOME}"))
    log.read(high_watermark=2)
    assert [answer.error_code for answer in log.answers] == [Error.NONE]
    assert log.ask(FETCH).groups[0].topics[0].partitions[0].committed_offset == 7


def test_a_log_that_cannot_be_read_makes_the_partition_useless_until_the_next_election() -> None:
    log = Log()
    log.tell(1)
    log.read(RecordBatch(0, 0, (Record(b"\x00\x02", b"junk"),)), high_watermark=1)
    assert [event for event in log.events if isinstance(event, LoadFailed)] == [
        LoadFailed(HOME, 0, "2 bytes wanted, 0 left")
    ]
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.NOT_COORDINATOR
    log.tell(1, epoch=1)
    log.read(high_watermark=0)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.UNKNOWN_MEMBER_ID


def test_a_load_fails_if_the_broker_does_not_lead_any_more() -> None:
    log = Log()
    log.tell(1)
    log.read(error=Error.NOT_LEADER_OR_FOLLOWER)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.NOT_COORDINATOR


def test_a_key_of_a_newer_kafka_is_skipped() -> None:
    log = Log()
    log.tell(1)
    log.read(RecordBatch(0, 0, (Record(b"\x00\x63whatever", b"x"), encode(STORED, 5))), high_watermark=2)
    log.read(high_watermark=2)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.NONE


@pytest.mark.parametrize(("epoch", "leads"), [(0, True), (1, False)])
def test_a_stale_resignation_is_ignored(epoch: int, leads: bool) -> None:
    log = Log()
    log.load(STORED)
    log.tell(2, epoch=epoch)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is (Error.NONE if leads else Error.NOT_COORDINATOR)
    assert bool([event for event in log.events if isinstance(event, ShardUnloaded)]) is not leads


def test_being_elected_again_does_not_load_again() -> None:
    log = Log()
    log.load(STORED)
    before = len(log.asked)
    log.tell(1, epoch=5)
    assert len(log.asked) == before
    assert log.coordinator.shards[HOME].epoch == 5
    log.ask(COMMIT)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.NONE


def test_when_the_topic_is_gone_so_is_the_coordinator() -> None:
    log = Log()
    log.load(STORED)
    log.tell(None)
    assert log.ask(HeartbeatRequest(GROUP, 3, "m")).error_code is Error.NOT_COORDINATOR


def test_answers_of_the_log_that_come_after_resigning_are_nobodys() -> None:
    log = Log()
    log.load(OffsetRecord(GROUP, "t", 0, Offset(7)))
    log.ask(COMMIT)
    log.answers.clear()
    log.tell(2, epoch=1)
    assert [error_in(answer) for answer in log.answers] == [Error.NOT_COORDINATOR]
    log.answers.clear()
    log.land()
    log.read(high_watermark=0)
    assert log.answers == []


def test_a_group_is_restored_from_its_record_as_its_coordinator_knew_it() -> None:
    old = GroupMetadata(
        "consumer",
        4,
        "range",
        None,
        -1,
        (MemberMetadata("m", "i", "c", "/c", -1, 9000, b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff", b"all"),),
    )
    group = restored(3, GROUP, old)
    member = group.members["m"]
    assert (group.state, group.generation, group.leader, group.state_since) == (GroupState.STABLE, 4, "m", None)
    assert (member.rebalance_timeout_ms, member.offers, group.static) == (9000, ("range",), {"i": "m"})
    assert group.subscribed == frozenset({"t"})
    empty = restored(3, GROUP, GroupMetadata("", 2, None, None, 5, ()))
    assert (empty.state, empty.protocol_type, empty.generation) == (GroupState.EMPTY, None, 2)


# Writing


def test_a_write_names_the_epoch_it_is_good_for() -> None:
    log = Log()
    log.tell(1, epoch=8)
    log.read(high_watermark=0)
    log.ask(COMMIT)
    assert isinstance(log.asked[-1].body, ProduceRequest)
    data = log.asked[-1].body.topic_data[0].partition_data[0]
    assert (data.index, data.leader_epoch, log.asked[-1].body.acks) == (HOME, 8, -1)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_COORDINATOR),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
        (Error.RECORD_LIST_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
        (Error.INVALID_TOPIC_EXCEPTION, Error.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_became_of_a_write_is_told_in_a_coordinators_words(outcome: Error, told: Error) -> None:
    log = Log()
    log.load()
    log.ask(COMMIT)
    log.land(outcome)
    assert error_in(log.answers[0]) is told
    assert log.ask(FETCH).groups[0].topics[0].partitions[0].committed_offset == -1


def test_a_write_that_is_refused_takes_only_itself_back() -> None:
    log = Log()
    log.load()
    other = OffsetCommitRequest(GROUP, (OffsetCommitRequestTopic("t", (OffsetCommitRequestPartition(1, 9),)),))
    log.ask(COMMIT)
    log.ask(other)
    log.land(Error.NOT_ENOUGH_REPLICAS, which=0)
    log.land(which=1)
    wanted = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(GROUP),), require_stable=True)
    topics = log.ask(wanted).groups[0].topics
    assert [(one.partition_index, one.committed_offset) for one in topics[0].partitions] == [(1, 9)]


def test_a_deletion_that_is_refused_leaves_the_group_there() -> None:
    log = Log()
    log.load(OffsetRecord(GROUP, "t", 0, Offset(7)))
    log.ask(DeleteGroupsRequest((GROUP, GROUP, "other")))
    log.land(Error.NOT_ENOUGH_REPLICAS)
    assert [(each.group_id, each.error_code) for each in log.answers[0].results] == [
        (GROUP, Error.COORDINATOR_NOT_AVAILABLE),
        ("other", Error.NOT_COORDINATOR),
    ]
    assert log.ask(FETCH).groups[0].topics[0].partitions[0].committed_offset == 7
    assert log.ask(DescribeGroupsRequest((GROUP,))).groups[0].group_state == "Empty"


def test_requests_about_no_group_at_all_are_answered() -> None:
    log = Log()
    log.load()
    assert log.ask(DeleteGroupsRequest(())).results == ()
    assert log.ask(OffsetFetchRequest()).groups == ()
    assert log.ask(DescribeGroupsRequest(())).groups == ()


def test_before_v2_the_error_of_a_fetch_stands_in_each_partition_and_before_v8_at_the_top() -> None:
    log = Log()
    log.tell(2)
    wanted = (OffsetFetchRequestTopic("t", (0,)),)
    assert (
        log.ask(OffsetFetchRequest(GROUP, wanted), version=1).topics[0].partitions[0].error_code
        is Error.NOT_COORDINATOR
    )
    assert log.ask(OffsetFetchRequest(GROUP, wanted), version=7).error_code is Error.NOT_COORDINATOR


def test_an_explicit_commit_timestamp_of_v1_is_kept() -> None:
    log = Log()
    log.load()
    part = OffsetCommitRequestPartition(0, 5, commit_timestamp=77)
    log.ask(OffsetCommitRequest(GROUP, (OffsetCommitRequestTopic("t", (part,)),)), version=1)
    assert log.coordinator.shards[HOME].latest.offsets[GROUP]["t", 0].commit_timestamp == 77
