"""Everything that can be observed, one struct each, in the past tense. There is no second log.

A machine emits an event; its host stamps it with the instant of the step, its own name and a sequence number. Nothing
in the protocol ever reads one: checks, transcripts, stories, reports and Spark do.
"""

from typing import dataclass_transform

import msgspec


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind", tag=_snake):
    """Something that happened. `kind` is the name of the struct in snake case."""


# The group, at its coordinator.


class GroupMoved(Event):
    """The state of a group changed. `why` is the move in the table, `reason` what made it necessary."""

    group_id: str
    before: str
    after: str
    why: str
    generation: int
    members: int
    reason: str = ""


class RebalanceStarted(Event):
    """Members must rejoin: why, because of whom, and what was said about it."""

    group_id: str
    generation: int                            # the one that ends
    cause: str
    trigger_member: str = ""
    detail: str = ""


class GenerationStarted(Event):
    """The join phase closed: these are the members of the next generation."""

    group_id: str
    generation: int
    protocol: str
    leader: str
    members: tuple[str, ...]


class PlanPublished(Event):
    """The leader's plan is stored, and each member may have its share."""

    group_id: str
    generation: int
    members: int
    empty: tuple[str, ...] = ()                # members that the plan left out


class MemberNamed(Event):
    """An id was given out; its bearer must come back with it within its session timeout."""

    group_id: str
    member_id: str
    session_timeout_ms: int


class MemberAdded(Event):
    group_id: str
    member_id: str
    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None = None


class MemberReplaced(Event):
    """A static member restarted: its instance has a new member id, and the old one is fenced."""

    group_id: str
    instance_id: str
    old_member_id: str
    member_id: str


class MemberRemoved(Event):
    """`cause`: session expired, left, did not rejoin, did not sync, group full, place not stored, id not used."""

    group_id: str
    member_id: str
    cause: str
    instance_id: str | None = None


class LeaderChosen(Event):
    group_id: str
    member_id: str


class SessionRenewed(Event):
    """The member counts as alive until `until`. `by`: heartbeat, join, sync, commit, replace, load."""

    group_id: str
    member_id: str
    by: str
    until: int


class OffsetCommitted(Event):
    """A committed offset changed. `member_id` is empty where it was committed from outside the group."""

    group_id: str
    topic: str
    partition: int
    offset: int
    member_id: str = ""
    generation: int = -1


class OffsetsExpired(Event):
    group_id: str
    count: int


class GroupDeleted(Event):
    """`cause`: deleted, expired."""

    group_id: str
    cause: str


# The coordinator's share of __consumer_offsets.


class ShardLoading(Event):
    partition: int
    epoch: int


class ShardLoaded(Event):
    partition: int
    epoch: int
    records: int
    groups: int
    offsets: int


class ShardUnloaded(Event):
    partition: int
    epoch: int


class LoadFailed(Event):
    partition: int
    epoch: int
    problem: str


class WriteFailed(Event):
    """A record was not committed in time, or was refused. What it says may still become true if it only timed out."""

    partition: int
    error: str


# The broker.


class TopicCreated(Event):
    topic: str
    partitions: int


class TopicGrown(Event):
    topic: str
    partitions: int


class TopicDeleted(Event):
    topic: str


class LeaderElected(Event):
    topic: str
    partition: int
    leader: int
    epoch: int


# Any machine.


class RequestRefused(Event):
    """A message that this machine does not serve, or that nobody waits for."""

    sender: str
    api_key: int
    problem: str


def kinds() -> dict[str, type[Event]]:
    """Every kind of event there is, by its name."""
    return {_snake(kind.__name__): kind for kind in Event.__subclasses__()}

