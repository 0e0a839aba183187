"""Everything that can be observed, one struct each, in the past tense. There is no second log.

A machine emits an event; its host stamps it with the instant of the step, its own name and a sequence number. Nothing
in the protocol ever reads one: checks, transcripts, stories, reports and Spark do.
"""

from typing import Any, dataclass_transform

import msgspec


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Event(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, tag_field="kind", tag=_snake):
    """Something that happened. `kind` is the name of the struct in snake case."""


class Stamped(msgspec.Struct, frozen=True, gc=False):
    """An event, when and where it was observed. `sequence` counts the events of that machine."""

    at: int
    machine: str
    sequence: int
    event: Event


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
    """A committed offset changed: it was accepted at `accepted_at`, and is on all in-sync replicas now. `member_id` is
    empty where it was committed from outside the group."""

    group_id: str
    topic: str
    partition: int
    offset: int
    member_id: str = ""
    generation: int = -1
    accepted_at: int = 0


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


class GroupLoaded(Event):
    """A group as its new coordinator found it in the log."""

    group_id: str
    state: str
    generation: int
    members: tuple[str, ...] = ()


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


# Brokers and the controller.


class TopicCreated(Event):
    topic: str
    partitions: int


class TopicGrown(Event):
    topic: str
    partitions: int


class TopicDeleted(Event):
    topic: str


class LeaderElected(Event):
    """The controller chose a leader; -1: there is none. `unclean`: from outside the in-sync replicas."""

    topic: str
    partition: int
    leader: int
    epoch: int
    isr: tuple[int, ...] = ()
    unclean: bool = False


class IsrChanged(Event):
    """The set of in-sync replicas changed, the leader did not."""

    topic: str
    partition: int
    isr: tuple[int, ...]
    epoch: int                                 # of the leader


class BrokerRegistered(Event):
    broker: int
    broker_epoch: int


class BrokerFenced(Event):
    """The controller counts a broker as gone. `cause`: session expired, shutting down, restarted."""

    broker: int
    cause: str


class BrokerUnfenced(Event):
    broker: int


class BrokerStopped(Event):
    """A broker that was told to stop leads nothing any more, and everybody knows: its process may end."""

    broker: int


class RecordsAppended(Event):
    """A leader took records into its log."""

    topic: str
    partition: int
    epoch: int
    base_offset: int
    count: int
    producer_id: int = -1
    base_sequence: int = -1


class HighWatermarkMoved(Event):
    """A leader knows that everything below this is on all in-sync replicas."""

    topic: str
    partition: int
    epoch: int
    high_watermark: int


class LogTruncated(Event):
    """A follower threw away the end of its log, because the leader's is another."""

    topic: str
    partition: int
    epoch: int
    to_offset: int
    records: int


class LogCompacted(Event):
    topic: str
    partition: int
    before: int                                # records
    after: int


class RecordsLeft(Event):
    """Read at the end of a run: what a partition holds, batch by batch; no records at all mark the end."""

    topic: str
    partition: int
    base_offset: int
    count: int
    producer_id: int = -1
    base_sequence: int = -1


# Producers.


class RecordsAcked(Event):
    """The producer was told that its records are written, as its acks promise."""

    topic: str
    partition: int
    base_offset: int                           # -1: acks=0 does not say
    count: int
    producer_id: int
    base_sequence: int
    acks: str


class RecordsGivenUp(Event):
    """The producer does not try any more. If `definite`, they are not in the log; else they may be."""

    topic: str
    partition: int
    count: int
    producer_id: int
    base_sequence: int
    error: str
    definite: bool


# Consumers.


class CoordinatorFound(Event):
    group_id: str
    node: int


class CoordinatorLost(Event):
    group_id: str
    cause: str


class JoinStarted(Event):
    group_id: str
    member_id: str
    reason: str = ""


class Joined(Event):
    """The answer to a join: this member is in that generation."""

    group_id: str
    member_id: str
    generation: int
    leads: bool
    protocol: str


class PlanMade(Event):
    """The leader ran the assignor: member id -> topic -> partitions."""

    group_id: str
    generation: int
    assignor: str
    plan: dict[str, dict[str, tuple[int, ...]]]


class PartitionsAssigned(Event):
    """`partitions`: what was added; `owned`: all that the member has now."""

    group_id: str
    member_id: str
    generation: int
    partitions: dict[str, tuple[int, ...]]
    owned: dict[str, tuple[int, ...]]


class PartitionsRevoked(Event):
    group_id: str
    member_id: str
    generation: int
    partitions: dict[str, tuple[int, ...]]


class PartitionsLost(Event):
    """They belong to somebody else already."""

    group_id: str
    member_id: str
    partitions: dict[str, tuple[int, ...]]


class PositionSet(Event):
    """Where a member begins to read. `how`: committed, earliest, latest, truncated."""

    group_id: str
    member_id: str
    topic: str
    partition: int
    offset: int
    how: str


class RecordsProcessed(Event):
    """The application is done with these records: `first_offset` to `last_offset`, both included."""

    group_id: str
    member_id: str
    generation: int
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    count: int


class CommitAnswered(Event):
    """`error` is NONE, a Kafka error, or what the client said without asking."""

    group_id: str
    member_id: str
    error: str
    offsets: dict[str, dict[int, int]] = {}


class PollIntervalExceeded(Event):
    """The application did not poll for max.poll.interval.ms: the client leaves by itself."""

    group_id: str
    member_id: str


class MemberLeft(Event):
    """The client sent LeaveGroup, or would have, were it not static. `cause`: closed, unsubscribed, poll interval."""

    group_id: str
    member_id: str
    cause: str


class ConsumerFailed(Event):
    """An error that the application must deal with; the consumer does not go on."""

    group_id: str
    member_id: str
    error: str


# What was done to the world.


class FaultBegan(Event):
    """`how`: signal, withheld, simulated. Everything that breaks something has a beginning and an end."""

    fault: int
    what: str                                  # pause, crash, cut, delay, loss, ...
    who: str                                   # the host, or `a -> b`
    target: str = ""                           # the role it was aimed at
    how: str = "simulated"
    detail: dict[str, Any] = {}


class FaultEnded(Event):
    fault: int


class ProcessStarted(Event):
    name: str
    incarnation: int


class ProcessDied(Event):
    name: str
    incarnation: int


class RequestSent(Event):
    """The journal of messages: a host saw a request leave. `size` in bytes, where it is known."""

    destination: str
    api: str
    version: int
    correlation_id: int
    timeout_ms: int = 30000                    # how long its sender may wait for the answer; 0: there is none
    size: int = 0


class ResponseArrived(Event):
    source: str
    api: str
    correlation_id: int
    error: str = "NONE"


class ConnectionClosed(Event):
    """Whatever was asked on it and not answered will not be. `by_us`: this side closed it."""

    peer: str
    by_us: bool = False


class RequestGivenUp(Event):
    """A client closed the connection because nothing came back in time."""

    destination: str
    api: str
    correlation_id: int


# Any machine.


class RequestRefused(Event):
    """A message that this machine does not serve, or that nobody waits for."""

    sender: str
    api_key: int
    problem: str


def kinds() -> dict[str, type[Event]]:
    """Every kind of event there is, by its name."""
    return {_snake(kind.__name__): kind for kind in Event.__subclasses__()}

