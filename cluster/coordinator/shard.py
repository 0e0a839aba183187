"""The coordinator of one partition of __consumer_offsets: its groups, and the records on their way to the log.

One thing happens at a time. What a step writes goes to the log as one batch when the step ends; whoever must not be
answered before that is committed waits in the batch. What writes nothing waits for the newest batch under way, so that
nobody is told something that a failover could take back.
"""

from collections.abc import Mapping
from enum import StrEnum
from random import Random
from typing import Any
from uuid import UUID

from cluster.config import BrokerConfig
from cluster.coordinator.group import Group, Held, Member
from cluster.coordinator.outbox import Alarm, Outbox, group_alarm, session_alarm, shard_alarm
from cluster.coordinator.records import GroupMetadata, GroupRecord, MemberMetadata, OffsetRecord, Stored
from cluster.coordinator.states import On, Why
from cluster.coordinator.turn import Turn, play
from cluster.coordinator.view import Change, View
from cluster.coordinator.writes import COORDINATOR_ERROR, Batch, Open, Reply, Waiter
from cluster.events import GroupMoved, LeaderChosen, MemberRemoved, OffsetCommitted, SessionRenewed, WriteFailed
from cluster.machine import Envelope
from cluster.wire.errors import Error
from cluster.wire.fields import Message


class Phase(StrEnum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"                          # the log could not be read


class Shard:
    def __init__(self, partition: int, epoch: int, config: BrokerConfig, rng: Random, out: Outbox,
                 topics: Mapping[str, int], writing: "list[Shard]") -> None:
        self.partition = partition
        self.epoch = epoch
        self.config = config
        self.rng = rng
        self.out = out
        self.topics = topics                   # what exists; shared by all shards of a coordinator
        self.writing = writing                 # the shards that wrote in this step; shared likewise
        self.phase = Phase.LOADING
        self.latest = View()
        self.committed = View()
        self.batch: Batch | None = None        # what this step has written so far
        self.in_flight: dict[int, Batch] = {}  # by the correlation id of its Produce, oldest first

    # What happens to a group

    def happen(self, on: On, group: Group, envelope: Envelope | None = None, member: Member | None = None,
               about: Any = None, error: Error | None = None) -> Turn:
        turn = Turn(self, group, on, envelope, member, about, error)
        play(turn)
        return turn

    def move(self, group: Group, why: Why, reason: str = "") -> None:
        before = group.move(why, self.out.now)
        self.out.emit(GroupMoved(group.group_id, before, group.state, why.name, group.generation, len(group.members),
                                 reason))

    # Sessions and timers

    def renew(self, group: Group, member: Member, by: str, timeout_ms: int | None = None) -> None:
        until = self.out.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
        self.out.arm(member.session, until)
        self.out.emit(SessionRenewed(group.group_id, member.member_id, by, until))

    def session_of(self, group: Group, member_id: str) -> Alarm:
        return session_alarm(self.partition, group.group_id, member_id)

    def arm(self, what: str, group: Group, wait_ms: int) -> None:
        self.out.arm(group_alarm(what, self.partition, group.group_id), self.out.now + max(wait_ms, 0))

    def disarm(self, group: Group, *what: str) -> None:
        for each in what:
            self.out.cancel(group_alarm(each, self.partition, group.group_id))

    # Members

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(int=self.rng.getrandbits(128), version=4)}"

    def remove(self, group: Group, member_id: str, cause: str) -> None:
        """Take a member, or an id that was only given out, off the group, and tell the world."""
        led_by = group.leader
        member = group.remove(member_id)
        self.out.cancel(self.session_of(group, member_id) if member is None else member.session)
        self.out.emit(MemberRemoved(group.group_id, member_id, cause, None if member is None else member.instance_id))
        self.tell_leader(group, led_by)

    def tell_leader(self, group: Group, before: str | None) -> None:
        if group.leader is not None and group.leader != before:
            self.out.emit(LeaderChosen(group.group_id, group.leader))

    def forget(self, group: Group) -> None:
        """Disarm everything that could still happen to a group that is gone."""
        for member in group.members.values():
            self.out.cancel(member.session)
        for member_id in group.pending:
            self.out.cancel(self.session_of(group, member_id))
        self.disarm(group, "delay", "join", "sync")

    # Answers

    def answer_held(self, held: Held | None, body: Message) -> None:
        """Answer a join or sync that was held, unless it was answered while it was waiting."""
        if held is not None and held.is_open:
            held.is_open = False
            self.out.answer(held.envelope, body)

    def reply(self, asked: Envelope, body: Message) -> None:
        """Answer when all that was written before is committed."""
        if self.uncommitted():
            self.wait(Reply(asked, body))
        else:
            self.out.answer(asked, body)

    def must_not_wait_for_ever(self, held: Held | None) -> None:
        if held is not None and held.is_open and self.uncommitted():
            self.wait(Open(held))

    # Records

    def uncommitted(self) -> bool:
        return self.batch is not None or bool(self.in_flight)

    def write(self, group: Group, stored: list[Stored], waiter: Waiter | None = None,
              author: tuple[str, int, int] = ("", -1, 0)) -> None:
        """Write records; memory follows at once, the log when the step ends."""
        if self.batch is None:
            self.batch = Batch()
            self.writing.append(self)
        for each in stored:
            change = Change(each, group, author)
            self.latest.apply(change)
            self.batch.changes.append(change)
        if waiter is not None:
            self.wait(waiter)

    def wait(self, waiter: Waiter) -> None:
        """Have somebody wait for the newest record that is written but not committed."""
        batch = self.batch if self.batch is not None else next(reversed(self.in_flight.values()))
        due = self.out.now + self.config.offsets_commit_timeout_ms
        batch.waiters.append((due, waiter))
        self.out.arm_if_idle(shard_alarm("write", self.partition), due)

    def sent(self, correlation_id: int) -> None:
        """The batch of this step is on its way to the log."""
        assert self.batch is not None
        self.in_flight[correlation_id] = self.batch
        self.batch = None

    def landed(self, correlation_id: int, error: Error) -> None:
        """The log has committed a batch, or refused it; then memory goes back to what the other records say."""
        batch = self.in_flight.pop(correlation_id)
        if not self.in_flight:
            self.out.cancel(shard_alarm("write", self.partition))
        if error is Error.NONE:
            for change in batch.changes:
                self.committed.apply(change)
                self._tell(change)
            for _, waiter in batch.waiters:
                waiter.committed(self)
            return
        self._roll_back()
        self._fail(batch.waiters, error)

    def _tell(self, change: Change) -> None:
        """An offset is committed only now, and may be so long after its sender was told that it took too long."""
        stored = change.stored
        if isinstance(stored, OffsetRecord) and stored.offset is not None:
            self.out.emit(OffsetCommitted(stored.group_id, stored.topic, stored.partition, stored.offset.offset,
                                          *change.author))

    def _roll_back(self) -> None:
        before, self.latest = self.latest, self.committed.copy()
        for batch in self.in_flight.values():
            for change in batch.changes:
                self.latest.apply(change)
        for group_id, group in before.groups.items():
            if group_id not in self.latest.groups:
                self.forget(group)

    def overdue(self) -> None:
        """Those who have waited long enough are told so. Their records may still be committed."""
        now = self.out.now
        for batch in self.in_flight.values():
            late = [entry for entry in batch.waiters if entry[0] <= now]
            batch.waiters = [entry for entry in batch.waiters if entry[0] > now]
            self._fail(late, Error.REQUEST_TIMED_OUT)
        left = [due for batch in self.in_flight.values() for due, _ in batch.waiters]
        if left:
            self.out.arm(shard_alarm("write", self.partition), min(left))

    def _fail(self, waiters: list[tuple[int, Waiter]], error: Error) -> None:
        if waiters:
            self.out.emit(WriteFailed(self.partition, error.name))
        for _, waiter in waiters:
            waiter.failed(self, COORDINATOR_ERROR.get(error, error))

    def record_of(self, group: Group, assignments: Mapping[str, bytes]) -> GroupRecord:
        """The group as it is stored, with these assignments."""
        return GroupRecord(group.group_id, GroupMetadata(
            group.protocol_type or "", group.generation, group.protocol_name,
            group.leader if group.members else None, -1 if group.state_since is None else group.state_since,
            tuple([MemberMetadata(member.member_id, member.instance_id, member.client_id, member.client_host,
                                  member.rebalance_timeout_ms, member.session_timeout_ms,
                                  member.metadata(group.protocol_name), assignments.get(member.member_id, b""))
                   for member in group.members.values()])))

    # The end

    def unload(self) -> None:
        """Give everything up: whoever waits here, for a group or for a record, must look for the new coordinator."""
        for group in self.latest.groups.values():
            self.forget(group)
            self.happen(On.UNLOAD, group)
        for what in ("write", "expire", "tail"):
            self.out.cancel(shard_alarm(what, self.partition))
        for batch in self.in_flight.values():
            for _, waiter in batch.waiters:
                waiter.failed(self, Error.NOT_COORDINATOR)


