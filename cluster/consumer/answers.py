"""An answer, or the lack of one, as the table sees it: what was asked, and which error came back."""

from typing import Any

import msgspec

from cluster.consumer.connections import Call
from cluster.consumer.membership import CONSUMER
from cluster.consumer.positions import Partition
from cluster.wire.errors import Error
from cluster.wire.groups import (
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroupResponse,
)
from cluster.wire.offsets import OffsetCommitResponse, OffsetFetchResponse

LOST = Error.NETWORK_EXCEPTION                 # the connection was closed, or nothing came in time


class Answer(msgspec.Struct, frozen=True, gc=False):
    call: Call
    error: Error
    body: Any = None                           # the response; None if it is lost
    partition: Partition | None = None         # which one the error is about, where each has its own
    part: Any = None                           # and what the response says of it


def error_of(call: Call, body: Any) -> Error:
    """The error of a response as a whole; where only its parts have errors, NONE."""
    if isinstance(body, HeartbeatResponse):
        return body.error_code
    if isinstance(body, JoinGroupResponse):
        return body.error_code or (Error.NONE if body.protocol_type in (None, CONSUMER)
                                   else Error.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(body, SyncGroupResponse):
        joined = call.generation.protocol
        fits = body.protocol_type in (None, CONSUMER) and body.protocol_name in (None, joined)
        return body.error_code or (Error.NONE if fits else Error.INCONSISTENT_GROUP_PROTOCOL)
    if isinstance(body, FindCoordinatorResponse):
        return body.coordinators[0].error_code
    if isinstance(body, OffsetCommitResponse):
        return _verdict_of_commit(body)
    if isinstance(body, OffsetFetchResponse):
        return _verdict_of_offsets(body)
    return Error.NONE


def _verdict_of_commit(body: OffsetCommitResponse) -> Error:
    """The first error decides over all of it; that some topics are forbidden comes last."""
    errors = [one.error_code for topic in body.topics for one in topic.partitions if one.error_code is not Error.NONE]
    decisive = [error for error in errors if error is not Error.TOPIC_AUTHORIZATION_FAILED]
    return next(iter(decisive or errors), Error.NONE)


def _verdict_of_offsets(body: OffsetFetchResponse) -> Error:
    """The group's error, or that of the first partition that has one; what is forbidden or unstable comes last."""
    (group,) = body.groups
    errors = [one.error_code for topic in group.topics for one in topic.partitions if one.error_code is not Error.NONE]
    late = (Error.TOPIC_AUTHORIZATION_FAILED, Error.UNSTABLE_OFFSET_COMMIT)
    ordered = [error for error in errors if error not in late] + [error for error in late if error in errors]
    return group.error_code or next(iter(ordered), Error.NONE)
