"""Who waits for a record to be committed, and what each does then; or when it fails, or takes too long.

A reply never outruns its record. After `offsets.commit.timeout.ms` whoever waits is told that it failed, although the
record may still be committed later: nothing is undone then.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from cluster.coordinator.answers import fetch_answer, fetch_refused, join_refused, refusal
from cluster.coordinator.group import Group, Held, Member
from cluster.coordinator.outbox import Outbox
from cluster.coordinator.states import On
from cluster.coordinator.view import Change
from cluster.machine import Envelope
from cluster.wire.apis import ApiKey
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import DeletableGroupResult, DeleteGroupsResponse, SyncGroupResponse
from cluster.wire.offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup

if TYPE_CHECKING:
    from cluster.coordinator.shard import Shard


class Waiter(msgspec.Struct, eq=False):
    """Waits for a record, and by default does nothing with the news."""

    def committed(self, shard: "Shard") -> None:
        pass

    def failed(self, shard: "Shard", error: Error) -> None:
        pass


class Batch(msgspec.Struct, eq=False):
    """What one step wrote to one partition: it is committed as a whole or not at all."""

    changes: list[Change] = []
    waiters: list[tuple[int, Waiter]] = []     # (when it has waited long enough, who)


class Reply(Waiter):
    """An answer that must not be given before the record is committed."""

    asked: Envelope
    body: Message

    def committed(self, shard: "Shard") -> None:
        shard.out.answer(self.asked, self.body)

    def failed(self, shard: "Shard", error: Error) -> None:
        shard.out.answer(self.asked, refusal(self.asked, error, shard.topics))


class Gather(msgspec.Struct, eq=False):
    """An answer made of parts, each from a shard of its own: it is given when all are there."""

    asked: Envelope
    parts: list[Any]
    missing: int

    def put(self, out: Outbox, index: int, part: Any) -> None:
        """A part is there; the last one makes the answer."""
        self.parts[index] = part
        self.missing -= 1
        if not self.missing:
            out.answer(self.asked, self.body())

    def body(self) -> Message:
        if self.asked.api_key == ApiKey.OFFSET_FETCH:
            return fetch_answer(self.asked, self.parts)
        return DeleteGroupsResponse(tuple(self.parts))


class FetchPart(Waiter):
    """The offsets of one group, read past the committed ones: they must be committed before they are told."""

    whole: Gather
    index: int
    wanted: OffsetFetchRequestGroup
    part: OffsetFetchResponseGroup

    def committed(self, shard: "Shard") -> None:
        self.whole.put(shard.out, self.index, self.part)

    def failed(self, shard: "Shard", error: Error) -> None:
        told = Error.NOT_COORDINATOR if error is Error.COORDINATOR_NOT_AVAILABLE else error
        self.whole.put(shard.out, self.index, fetch_refused(self.wanted, told))


class DeletePart(Waiter):
    """The deletion of one group."""

    whole: Gather
    index: int
    part: DeletableGroupResult

    def committed(self, shard: "Shard") -> None:
        self.whole.put(shard.out, self.index, self.part)

    def failed(self, shard: "Shard", error: Error) -> None:
        self.whole.put(shard.out, self.index, DeletableGroupResult(self.part.group_id, error))


class Open(Waiter):
    """A join or sync that is held for other reasons while older records are not committed: it must not wait for ever.
    Its member goes on counting as one that waits."""

    held: Held

    def failed(self, shard: "Shard", error: Error) -> None:
        shard.answer_held(self.held, _refused(self.held.envelope, error))


class Plan(Waiter):
    """The leader's plan."""

    group: Group
    generation: int
    plan: dict[str, bytes]

    def committed(self, shard: "Shard") -> None:
        shard.happen(On.PLAN_STORED, self.group, about=self)

    def failed(self, shard: "Shard", error: Error) -> None:
        shard.happen(On.PLAN_LOST, self.group, about=self, error=error)


class Place(Waiter):
    """A static member that restarted and keeps its place: the record with its new id."""

    group: Group
    member: Member
    old: Member
    old_leader: str
    held: Held

    def committed(self, shard: "Shard") -> None:
        shard.happen(On.PLACE_STORED, self.group, about=self)

    def failed(self, shard: "Shard", error: Error) -> None:
        shard.happen(On.PLACE_LOST, self.group, about=self, error=error)


def _refused(asked: Envelope, error: Error) -> Message:
    if asked.api_key == ApiKey.JOIN_GROUP:
        return join_refused(error, "", asked.api_version)
    return SyncGroupResponse(error)


COORDINATOR_ERROR = {                          # what became of the write -> what a client is told
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
}
