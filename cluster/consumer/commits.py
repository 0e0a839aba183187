"""Commits: automatic ones, and those the application asks for, with and without waiting.

A commit says where the application will read next. It is refused here, without asking, while the member is not STABLE.
Nothing but commitSync tries again by itself: two commits that overtake each other would set the group back.
"""

from enum import StrEnum
from random import Random

import msgspec

from cluster.config import ConsumerConfig
from cluster.consumer.connections import Connections
from cluster.consumer.discovery import Discovery
from cluster.consumer.member import Member
from cluster.consumer.outbox import NEVER, Backoff, Outbox
from cluster.consumer.positions import Partition, Positions
from cluster.consumer.states import STABLE, Asked
from cluster.events import CommitAnswered
from cluster.wire.errors import Error
from cluster.wire.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

Offsets = dict[Partition, tuple[int, int]]     # offset and leader epoch


class Outcome(StrEnum):
    DONE = "done"
    AGAIN = "may be tried again"
    LATER = "RebalanceInProgress"
    FAILED = "CommitFailed"
    THROWN = "refused"
    TIMED_OUT = "Timeout"                      # of commitSync alone


class Commit(msgspec.Struct, eq=False):
    offsets: Offsets
    is_auto: bool = False
    outcome: Outcome | None = None             # None: not answered yet
    error: str = Error.NONE.name


class Blocking(msgspec.Struct, eq=False):
    """A commitSync: one commit after the other, until one is answered for good or the time is over."""

    offsets: Offsets
    until: int
    commit: Commit | None = None
    failures: int = 0
    not_before: int = 0


class Commits:
    def __init__(self, out: Outbox, connections: Connections, discovery: Discovery, member: Member,
                 positions: Positions, config: ConsumerConfig, backoff: Backoff, rng: Random) -> None:
        self.out = out
        self.connections = connections
        self.discovery = discovery
        self.member = member
        self.positions = positions
        self.backoff = backoff
        self.rng = rng
        self.interval_ms = config.auto_commit_interval_ms
        self.is_auto = config.commit == "auto" and config.enable_auto_commit
        self.next_auto = NEVER
        self.blocking: Blocking | None = None
        self._waiting: list[Commit] = []       # for a coordinator
        self._unanswered = 0

    # Beginnings

    def restart_interval(self) -> None:
        if self.is_auto:
            self.next_auto = self.out.now + self.interval_ms

    def commit_when_due(self) -> None:
        """What poll does at its beginning: so a commit covers what earlier polls returned, and no more."""
        if self.out.now >= self.next_auto:
            self.restart_interval()
            self.begin(is_auto=True)
        if self.next_auto != NEVER:
            self.out.wake(self.next_auto)

    def begin(self, *, is_auto: bool = False) -> Commit:
        """commitAsync. Without a coordinator it waits until one is found, or is not."""
        commit = Commit(self.positions.consumed(), is_auto)
        if commit.offsets and not self.discovery.ensure():
            self._waiting.append(commit)
        else:
            self._send(commit)
        return commit

    def begin_blocking(self, until: int) -> None:
        self.blocking = Blocking(self.positions.consumed(), until)

    def go_on(self) -> Commit | None:
        """commitSync, as far as it gets now. Its end, if this is it."""
        blocking = self.blocking
        assert blocking is not None
        while True:
            commit = blocking.commit
            if commit is not None and commit.outcome is Outcome.AGAIN:
                blocking.not_before = self.out.now + self.backoff.ms(blocking.failures, self.rng)
                blocking.failures += 1
                blocking.commit = commit = None
            if commit is not None and commit.outcome is not None:
                self.blocking = None
                return commit
            if self.out.now >= blocking.until:
                self.blocking = None
                return Commit(blocking.offsets, outcome=Outcome.TIMED_OUT, error=Outcome.TIMED_OUT.value)
            self.out.wake(blocking.until)
            if commit is not None or not self._may_send(blocking):
                return None
            blocking.commit = Commit(blocking.offsets)
            self._send(blocking.commit)

    def _may_send(self, blocking: Blocking) -> bool:
        if self.out.now < blocking.not_before:
            self.out.wake(blocking.not_before)
            return False
        return not blocking.offsets or self.discovery.ensure()

    def are_pending(self) -> bool:
        return bool(self._waiting) or self._unanswered > 0

    def _send(self, commit: Commit) -> None:
        member, coordinator = self.member, self.discovery.coordinator
        if not commit.offsets:
            commit.outcome = Outcome.DONE
        elif member.state is not STABLE:
            outcome = Outcome.LATER if member.is_rebalancing() else Outcome.FAILED
            self.finish(commit, outcome, outcome.value)
        else:
            assert coordinator is not None
            self._unanswered += 1
            self.connections.ask(coordinator, Asked.COMMIT, self._request(commit.offsets), commit, member.generation)

    def _request(self, offsets: Offsets) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, number), (offset, epoch) in offsets.items():
            topics.setdefault(topic, []).append(OffsetCommitRequestPartition(number, offset, epoch,
                                                                             committed_metadata=""))
        named = tuple([OffsetCommitRequestTopic(name, tuple(parts)) for name, parts in topics.items()])
        generation = self.member.generation
        return OffsetCommitRequest(self.member.group_id, named, generation.number, generation.member_id,
                                   self.member.instance_id)

    # Ends

    def flush(self) -> None:
        """A coordinator was found."""
        waiting, self._waiting = self._waiting, []
        for commit in waiting:
            self._send(commit)

    def turn_away(self) -> None:
        """No coordinator was found; nobody keeps a commit for later."""
        waiting, self._waiting = self._waiting, []
        for commit in waiting:
            self.finish(commit, Outcome.AGAIN, Error.COORDINATOR_NOT_AVAILABLE.name)

    def answered(self, commit: Commit, outcome: Outcome, error: Error) -> None:
        self._unanswered -= 1
        self.finish(commit, outcome, error.name)

    def finish(self, commit: Commit, outcome: Outcome, error: str) -> None:
        commit.outcome, commit.error = outcome, error
        if commit.is_auto and outcome is Outcome.AGAIN:
            self.next_auto = self.out.now + self.backoff.first_ms
        offsets: dict[str, dict[int, int]] = {}
        for (topic, number), (offset, _) in commit.offsets.items():
            offsets.setdefault(topic, {})[number] = offset
        self.out.emit(CommitAnswered(self.member.group_id, self.member.public.member_id, error, offsets))

