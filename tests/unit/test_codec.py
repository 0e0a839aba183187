"""Every message comes back as it was; nothing else ever comes in; and anybody's MessagePack can read it."""

import contextlib

import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.machine import Envelope
from cluster.wire.apis import APIS, ApiKey, request, response
from cluster.wire.codec import Fault, Refused, decode, encode
from cluster.wire.errors import Error
from cluster.wire.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from cluster.wire.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.unit.messages import envelopes

HEARTBEAT = request(
    HeartbeatRequest("billing", 3, "a-1"), source="a", destination="coordinator-1", correlation_id=7, client_id="a"
)


def frame(*parts: object) -> bytes:
    return msgspec.msgpack.encode(parts)


@settings(max_examples=400)
@given(envelopes())
def test_every_message_of_every_version_comes_back_as_it_was(envelope: Envelope) -> None:
    assert decode(encode(envelope)) == envelope


@settings(max_examples=200)
@given(envelopes())
def test_an_independent_reader_finds_the_same(envelope: Envelope) -> None:
    api_key, version, is_response, correlation_id, source, incarnation, destination, client_id, body = msgpack.unpackb(
        encode(envelope), strict_map_key=False, use_list=False
    )
    assert (source, incarnation, destination, api_key, version, correlation_id, client_id) == (
        envelope.source,
        envelope.incarnation,
        envelope.destination,
        envelope.api_key,
        envelope.api_version,
        envelope.correlation_id,
        envelope.client_id,
    )
    assert is_response is (type(envelope.body) is APIS[api_key].response)
    kind = APIS[api_key].response if is_response else APIS[api_key].request
    assert kind is not None
    assert msgspec.convert(body, kind) == envelope.body


@settings(max_examples=1000)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_and_never_crash(data: bytes) -> None:
    with pytest.raises(Refused):
        decode(data)


@settings(max_examples=400)
@given(envelopes(), st.data())
def test_a_truncated_frame_is_refused(envelope: Envelope, data: st.DataObject) -> None:
    whole = encode(envelope)
    with pytest.raises(Refused):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(max_examples=600)
@given(envelopes(), st.data())
def test_a_frame_with_a_flipped_byte_is_another_message_or_refused(envelope: Envelope, data: st.DataObject) -> None:
    whole = bytearray(encode(envelope))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(Refused):
        assert isinstance(decode(bytes(whole)), Envelope)


@pytest.mark.parametrize("data", [b"\x91" * 100_000, b"\x99\x0b\x09\xc2\x01\xa1a\x00\xa1b\xa1c" + b"\x91" * 100_000])
def test_deep_nesting_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as problem:
        decode(data)
    assert problem.value.fault is Fault.MALFORMED


@pytest.mark.parametrize(
    ("data", "fault", "said"),
    [
        (b"", Fault.MALFORMED, "malformed: Input data was truncated"),
        (frame(1, 2, 3), Fault.MALFORMED, "malformed: Expected `array` of at least length 9, got 3"),
        (frame(999, 0, False, 1, "a", 0, "b", "c", {}), Fault.UNKNOWN_API, "unknown api: there is no api 999"),
        (
            frame(28, 3, False, 1, "a", 0, "b", "c", {}),
            Fault.UNKNOWN_API,
            "unknown api: TxnOffsetCommit (api 28) is not emulated: transactions are not",
        ),
        (
            frame(11, 10, False, 1, "a", 0, "b", "c", {}),
            Fault.UNSUPPORTED_VERSION,
            "unsupported version: JoinGroup v10; v0 to v9 are understood",
        ),
        (
            frame(8, 0, False, 1, "a", 0, "b", "c", {}),
            Fault.UNSUPPORTED_VERSION,
            "unsupported version: OffsetCommit v0; v1 to v9 are understood",
        ),
        (
            frame(12, 4, False, 1, "a", 0, "b", "c", {"group_id": "g"}),
            Fault.MALFORMED,
            "malformed: Heartbeat request v4: Object missing required field `generation_id`",
        ),
        (
            frame(12, 4, False, 1, "a", 0, "b", "c", {"group_id": "g", "generation_id": 2**31, "member_id": "m"}),
            Fault.MALFORMED,
            "malformed: Heartbeat request v4: Expected `int` <= 2147483647 - at `$.generation_id`",
        ),
        (
            frame(12, 4, False, 1, "a", 0, "b", "c", {"group_id": "g", "generation_id": 1, "member_id": "m", "x": 1}),
            Fault.MALFORMED,
            "malformed: Heartbeat request v4: Object contains unknown field `x`",
        ),
        (
            frame(12, 4, True, 1, "a", 0, "b", "c", {"error_code": 4711}),
            Fault.MALFORMED,
            "malformed: Heartbeat response v4: Invalid enum value 4711 - at `$.error_code`",
        ),
        (frame(10001, 0, True, 1, "a", 0, "b", "c", {}), Fault.MALFORMED, "malformed: MetadataChanged has no response"),
        (
            frame(
                12,
                2,
                False,
                1,
                "a",
                0,
                "b",
                "c",
                {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": "i"},
            ),
            Fault.NOT_IN_VERSION,
            "not in this version: HeartbeatRequest.group_instance_id does not exist in Heartbeat v2",
        ),
    ],
)
def test_a_bad_frame_is_refused_with_what_is_wrong(data: bytes, fault: Fault, said: str) -> None:
    with pytest.raises(Refused) as problem:
        decode(data)
    assert (problem.value.fault, str(problem.value)) == (fault, said)


def test_a_frame_that_is_too_large_is_refused_unread_and_unsent() -> None:
    with pytest.raises(Refused, match="oversized: a frame of 101 bytes, more than 100"):
        decode(b"\x00" * 101, limit=100)
    with pytest.raises(Refused, match=r"oversized: HeartbeatRequest takes .* bytes, more than 20"):
        encode(HEARTBEAT, limit=20)


def test_a_request_must_not_say_what_its_version_cannot_say() -> None:
    asked = request(HeartbeatRequest("g", 1, "m", "i"), source="a", destination="b", correlation_id=1, version=2)
    with pytest.raises(Refused, match="group_instance_id does not exist in Heartbeat v2"):
        encode(asked)


def test_a_request_of_an_unknown_version_is_not_written() -> None:
    with pytest.raises(Refused, match="Heartbeat v5"):
        encode(request(HeartbeatRequest("g", 1, "m"), source="a", destination="b", correlation_id=1, version=5))


def test_a_request_loses_only_what_may_be_ignored() -> None:
    join = JoinGroupRequest("g", 1, "consumer", (JoinGroupRequestProtocol("range", b""),), 300000, reason="because")
    asked = request(join, source="a", destination="b", correlation_id=1, version=0)
    assert decode(encode(asked)).body == msgspec.structs.replace(join, rebalance_timeout_ms=-1, reason=None)


def test_a_response_leaves_out_what_its_version_does_not_know_also_in_its_parts() -> None:
    asked = request(JoinGroupRequest("g", 1, "consumer", ()), source="a", destination="b", correlation_id=1, version=4)
    answer = JoinGroupResponse(
        Error.NONE, 1, "consumer", "range", "m", False, "m", (JoinGroupResponseMember("m", b"x", "i"),)
    )
    read = decode(encode(response(asked, answer))).body
    assert (read.protocol_type, read.members) == (None, (JoinGroupResponseMember("m", b"x"),))


def test_a_part_of_a_request_is_held_to_its_version_too() -> None:
    part = OffsetCommitRequestPartition(0, 5, commit_timestamp=99)
    commit = OffsetCommitRequest("g", (OffsetCommitRequestTopic("t", (part,)),))
    asked = request(commit, source="a", destination="b", correlation_id=1, version=2)
    with pytest.raises(
        Refused, match=r"OffsetCommitRequestPartition.commit_timestamp does not exist in OffsetCommit v2"
    ):
        encode(asked)
    assert decode(encode(msgspec.structs.replace(asked, api_version=1))).body == commit
    honest = {
        "group_id": "g",
        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5, "commit_timestamp": 9}]}],
    }
    with pytest.raises(Refused, match="commit_timestamp"):
        decode(frame(8, 2, False, 1, "a", 0, "b", "c", honest))


def test_an_answer_goes_the_way_back() -> None:
    answer = response(HEARTBEAT, HeartbeatResponse())
    assert (answer.source, answer.destination, answer.correlation_id, answer.api_version) == (
        "coordinator-1",
        "a",
        7,
        4,
    )


def test_a_heartbeat_is_small() -> None:
    assert len(encode(HEARTBEAT)) < 90


def test_every_error_has_kafkas_number_once() -> None:
    assert len({error.value for error in Error}) == len(Error)
    assert (Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED, Error.FENCED_INSTANCE_ID) == (27, 79, 82)


def test_errors_know_whether_trying_again_helps_and_whether_it_may_have_happened() -> None:
    assert Error.COORDINATOR_LOAD_IN_PROGRESS.retriable
    assert Error.COORDINATOR_LOAD_IN_PROGRESS.definite
    assert not Error.REQUEST_TIMED_OUT.definite
    assert not Error.ILLEGAL_GENERATION.retriable


def test_api_keys_are_kafkas() -> None:
    assert (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.OFFSET_DELETE) == (11, 14, 12, 47)
    assert all(api.key == key for key, api in APIS.items())
