"""What comes before any group: has the coordinator started, does it lead, has it loaded; and the log."""

import pytest

from cluster.coordinator.group import Group
from cluster.machine import Disconnect, Disconnected, Effect, Received, TimerFired, Told
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from cluster.wire.log import (
    MetadataRequest,
)
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
)
from tests.unit.by_hand import COMMIT, FETCH, GROUP, HOME, JOIN, PROTOCOLS, STORED, Log, error_in

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
