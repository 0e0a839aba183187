"""What comes before any group: has the coordinator started, does it lead, has it loaded; and the log."""

from random import Random
from typing import Any

import pytest

from cluster.config import BrokerConfig, settings
from cluster.coordinator.coordinator import OFFSETS_TOPIC, GroupCoordinator
from cluster.coordinator.group import Group
from cluster.coordinator.loading import restored
from cluster.coordinator.records import GroupMetadata, GroupRecord, MemberMetadata, Offset, OffsetRecord, encode
from cluster.coordinator.states import GroupState
from cluster.events import LoadFailed, ShardLoaded, ShardUnloaded
from cluster.java import partition_for
from cluster.machine import Disconnect, Disconnected, Effect, Emit, Envelope, Received, Send, TimerFired, Told
from cluster.wire.apis import request, response
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from cluster.wire.log import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    MetadataChanged,
    MetadataRequest,
    PartitionData,
    PartitionLeader,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Record,
    RecordBatch,
    TopicProduceResponse,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)

GROUP = "g"
HOME = partition_for(GROUP, 50)
PROTOCOLS = (JoinGroupRequestProtocol("range", b"x"),)
JOIN = JoinGroupRequest(GROUP, 10000, "consumer", PROTOCOLS, 10000, "m")
COMMIT = OffsetCommitRequest(GROUP, (OffsetCommitRequestTopic("t", (OffsetCommitRequestPartition(0, 5),)),))
FETCH = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(GROUP, topics=(OffsetFetchRequestTopic("t", (0,)),)),))
MEMBER = MemberMetadata("m", None, "c", "/c", 10000, 10000, b"x", b"all")
STORED = GroupRecord(GROUP, GroupMetadata("consumer", 3, "range", "m", 5, (MEMBER,)))


class Log:
    """A coordinator, and by hand what its broker says to it."""

    def __init__(self, **config: Any) -> None:
        given = {key.replace("_", "."): value for key, value in config.items()}
        self.coordinator = GroupCoordinator("coordinator-1", "broker-1", 1, settings(BrokerConfig, given), Random(0))
        self.now = 1000
        self.asked: list[Envelope] = []  # what the coordinator asked its broker, in order
        self.events: list[Any] = []
        self.answers: list[Any] = []

    def feel(self, event: Any) -> None:
        for effect in self.coordinator.step(self.now, event):
            if isinstance(effect, Send) and effect.to == "broker-1":
                self.asked.append(effect.envelope)
            elif isinstance(effect, Send):
                self.answers.append(effect.envelope.body)
            elif isinstance(effect, Emit):
                self.events.append(effect.event)

    def ask(self, body: Message, version: int | None = None) -> Any:
        """The answer if it comes at once."""
        self.answers.clear()
        self.feel(
            Received(
                "c",
                request(
                    body, source="c", destination="coordinator-1", correlation_id=1, client_id="c", version=version
                ),
            )
        )
        return self.answers[0] if self.answers else None

    def tell(self, leader: int | None, epoch: int = 0, topics: dict[str, int] | None = None) -> None:
        """Who leads the group's home partition; nobody: the topic is not there."""
        leaders = (
            ()
            if leader is None
            else tuple(
                PartitionLeader(number, leader if number == HOME else 9, epoch if number == HOME else 0)
                for number in range(50)
            )
        )
        news = MetadataChanged(leaders, {"t": 2} if topics is None else topics)
        self.feel(Received("broker-1", request(news, source="broker-1", destination="coordinator-1", correlation_id=1)))

    def read(self, *batches: RecordBatch, high_watermark: int = 0, error: Error = Error.NONE) -> None:
        """Answer the newest Fetch."""
        asked = next(each for each in reversed(self.asked) if isinstance(each.body, FetchRequest))
        data = PartitionData(HOME, error, high_watermark, 0, batches)
        body = FetchResponse((FetchableTopicResponse(OFFSETS_TOPIC, (data,)),))
        self.feel(Received("broker-1", response(asked, body)))

    def load(self, *stored: Any, high_watermark: int | None = None) -> None:
        """Lead the partition, with these records in its log."""
        self.tell(1)
        records = tuple(encode(each, 5) for each in stored)
        end = len(records) if high_watermark is None else high_watermark
        if records:
            self.read(RecordBatch(0, 0, records), high_watermark=end)
        self.read(high_watermark=end)

    def land(self, error: Error = Error.NONE, which: int = -1) -> None:
        """The log commits the newest write, or refuses it."""
        asked = [each for each in self.asked if isinstance(each.body, ProduceRequest)][which]
        body = ProduceResponse((TopicProduceResponse(OFFSETS_TOPIC, (PartitionProduceResponse(HOME, error, 0),)),))
        self.feel(Received("broker-1", response(asked, body)))


REQUESTS: dict[str, Message] = {
    "join": JOIN,
    "sync": SyncGroupRequest(GROUP, 3, "m", None, "consumer", "range"),
    "heartbeat": HeartbeatRequest(GROUP, 3, "m"),
    "leave": LeaveGroupRequest(GROUP, members=(MemberIdentity("m"),)),
    "commit": COMMIT,
    "fetch": FETCH,
    "prune": OffsetDeleteRequest(GROUP, (OffsetDeleteRequestTopic("t", (0,)),)),
    "describe": DescribeGroupsRequest((GROUP,)),
    "list": ListGroupsRequest(),
    "delete": DeleteGroupsRequest((GROUP,)),
}


def error_in(answer: Any) -> Error:
    """The error of an answer, wherever that stands."""
    for attribute in ("groups", "results"):
        if isinstance(parts := getattr(answer, attribute, None), tuple) and parts and not hasattr(answer, "error_code"):
            error: Error = parts[0].error_code
            return error
    if type(answer).__name__ == "OffsetFetchResponse":
        fetched: Error = answer.groups[0].error_code
        return fetched
    if type(answer).__name__ == "OffsetCommitResponse":
        committed: Error = answer.topics[0].partitions[0].error_code
        return committed
    top: Error = answer.error_code
    return top


@pytest.mark.parametrize("name", REQUESTS)
def test_a_coordinator_that_has_not_started_is_not_available(name: str) -> None:
    log = Log()
    log.coordinator.topics["t"] = 2
    assert error_in(log.ask(REQUESTS[name])) is Error.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("name", REQUESTS)
def test_a_broker_that_does_not_lead_the_partition_is_not_the_coordinator(name: str) -> None:
    log = Log()
    log.tell(2)
    expected = Error.NONE if name == "list" else Error.NOT_COORDINATOR
    assert error_in(log.ask(REQUESTS[name])) is expected


@pytest.mark.parametrize("name", REQUESTS)
def test_while_it_loads_only_heartbeats_are_welcome(name: str) -> None:
    log = Log()
    log.tell(1)
    expected = Error.NONE if name == "heartbeat" else Error.COORDINATOR_LOAD_IN_PROGRESS
    answer = log.ask(REQUESTS[name])
    assert error_in(answer) is expected
    assert getattr(answer, "member_id", "") == ""


@pytest.mark.parametrize("name", REQUESTS)
def test_once_it_has_loaded_it_serves(name: str) -> None:
    log = Log()
    log.load(STORED)
    answer = log.ask(REQUESTS[name])
    expected = {"commit": Error.UNKNOWN_MEMBER_ID, "delete": Error.NON_EMPTY_GROUP, "leave": None}.get(name, Error.NONE)
    assert (answer if expected is None else error_in(answer)) == expected


@pytest.mark.parametrize("name", ["join", "sync", "heartbeat", "leave", "prune"])
def test_these_need_a_group_with_a_name_even_before_anything_else(name: str) -> None:
    log = Log()
    log.tell(2)
    fields = {"group_id": ""}
    body = type(REQUESTS[name])(
        **{**{field: getattr(REQUESTS[name], field) for field in REQUESTS[name].__struct_fields__}, **fields}
    )
    assert error_in(log.ask(body)) is Error.INVALID_GROUP_ID


def test_p15_the_session_timeout_has_bounds_that_are_checked_before_who_leads() -> None:
    log = Log()
    log.tell(2)
    for timeout, error in (
        (5999, Error.INVALID_SESSION_TIMEOUT),
        (6000, Error.NOT_COORDINATOR),
        (1800000, Error.NOT_COORDINATOR),
        (1800001, Error.INVALID_SESSION_TIMEOUT),
    ):
        answer = log.ask(JoinGroupRequest(GROUP, timeout, "consumer", PROTOCOLS, 1, "m"))
        assert answer.error_code is error
        assert answer.member_id == ("m" if error is Error.INVALID_SESSION_TIMEOUT else "")


def test_since_v5_a_sync_must_name_its_protocol() -> None:
    log = Log()
    assert log.ask(SyncGroupRequest(GROUP, 1, "m")).error_code is Error.INCONSISTENT_GROUP_PROTOCOL
    log.load(STORED)
    assert log.ask(SyncGroupRequest(GROUP, 3, "m"), version=4).assignment == b"all"


def test_commits_for_partitions_that_do_not_exist_do_not_reach_the_group() -> None:
    log = Log()
    log.tell(2)
    stranger = OffsetCommitRequest(GROUP, (OffsetCommitRequestTopic("nope", (OffsetCommitRequestPartition(0, 5),)),))
    assert error_in(log.ask(stranger)) is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_the_number_of_partitions_is_decided_once() -> None:
    log = Log(offsets_topic_num_partitions=7)
    log.tell(None)
    assert log.coordinator.requests.partitions == 7
    log.tell(1)
    assert log.coordinator.requests.partitions == 7
    other = Log(offsets_topic_num_partitions=7)
    other.tell(1)
    assert other.coordinator.requests.partitions == 50


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


# What is not for a coordinator


def test_a_request_that_a_coordinator_does_not_serve_closes_the_connection() -> None:
    log = Log()
    envelope = request(MetadataRequest(), source="c", destination="coordinator-1", correlation_id=1)
    effects: list[Effect] = log.coordinator.step(0, Received("c", envelope))
    assert Disconnect("c") in effects


def test_a_client_that_is_gone_a_command_or_a_timer_that_nobody_knows_change_nothing() -> None:
    log = Log()
    log.load(STORED)
    for event in (Disconnected("c"), Told("anything"), TimerFired("session/g/nobody"), TimerFired("join/nowhere")):
        assert log.coordinator.step(log.now, event) == []


def test_a_timer_of_a_partition_that_was_given_up_does_nothing() -> None:
    log = Log()
    log.load(STORED)
    log.coordinator.shards.clear()
    assert log.coordinator.step(log.now, TimerFired("session/g/m")) == []


def test_timers_of_groups_and_members_with_slashes_in_their_names_are_kept_apart() -> None:
    log = Log()
    log.load()
    shard = log.coordinator.shards[HOME]
    assert shard.session_of(Group("a/b"), "c").name != shard.session_of(Group("a"), "b/c").name
    assert shard.session_of(Group("a%2Fb"), "c").name != shard.session_of(Group("a/b"), "c").name
