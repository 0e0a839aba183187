"""How what is said in a dialogue is written down, and how what comes back is shown: plain data in place of bytes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from cluster.primitives import Malformed
from cluster.subscription import Assignment, Subscription
from cluster.wire.errors import Error
from cluster.wire.offsets import OffsetFetchResponseTopic

EMPTY_ID = "(empty id)"
Numbers = dict[str, list[int]]                 # topic -> partitions


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription with all that it may say."""

    topics: list[str]
    owned: Numbers = {}
    generation: int = -1


def subscription_bytes(wanted: str | list[str] | Wanted) -> bytes:
    """Topics, or what a member wants and holds, in the bytes of the consumer protocol; text is these very bytes."""
    if isinstance(wanted, str):
        return wanted.encode()
    if isinstance(wanted, list):
        return Subscription(topics=tuple(wanted)).encode()
    owned = {topic: tuple(numbers) for topic, numbers in wanted.owned.items()}
    return Subscription(topics=tuple(wanted.topics), owned=owned, generation=wanted.generation).encode()


def subscription_shown(data: bytes) -> str | list[str]:
    try:
        return list(Subscription.decode(data).topics)
    except Malformed:
        return data.decode(errors="replace")


def assignment_bytes(share: str | Numbers) -> bytes:
    if isinstance(share, str):
        return share.encode()
    return Assignment(partitions={topic: tuple(numbers) for topic, numbers in share.items()}).encode()


def assignment_shown(data: bytes) -> str | Numbers:
    try:
        return {topic: list(numbers) for topic, numbers in Assignment.decode(data).partitions.items()}
    except Malformed:
        return data.decode(errors="replace")


def errors_shown(topics: Any) -> dict[str, dict[int, str]]:
    return {topic.name: {one.partition_index: one.error_code.name for one in topic.partitions} for topic in topics}


def offsets_shown(topics: tuple[OffsetFetchResponseTopic, ...]) -> dict[str, Any]:
    return {topic.name: {
        one.partition_index: [one.committed_offset, one.metadata] if one.error_code is Error.NONE
        else [one.committed_offset, one.metadata, one.error_code.name]
        for one in topic.partitions} for topic in topics}


SHOWN_EMPTY = ("assignment", "members", "groups", "partitions")


def filled(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer without its empty fields, but for those that say something by being empty."""
    return {key: value for key, value in answer.items()
            if key in SHOWN_EMPTY or value not in ("", None, False, [], {})}
