"""Broken variants of the machines: each does one thing wrong, and breaks one safety rule sooner or later."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from cluster.assignors import Plan
from cluster.assignors.range import Range
from cluster.assignors.roundrobin import RoundRobin
from cluster.broker.partition import Partition
from cluster.consumer.connections import Connections
from cluster.consumer.positions import Positions
from cluster.coordinator import offsets, turn
from cluster.coordinator.loading import Load
from cluster.coordinator.records import OffsetRecord, Stored
from cluster.coordinator.states import Do, GroupState, On

Variant = Callable[[pytest.MonkeyPatch], None]


def an_assignor_that_gives_a_partition_to_two(patch: pytest.MonkeyPatch) -> None:
    for kind in (Range, RoundRobin):
        plan = kind.plan

        def shared(self: Any, members: Any, sizes: Mapping[str, int], plan: Any = plan) -> Plan:
            found: Plan = plan(self, members, sizes)
            everything = {topic: list(range(size)) for topic, size in sizes.items()}
            return dict.fromkeys(found, everything) if len(found) > 1 else found

        patch.setattr(kind, "plan", shared)


def a_consumer_that_commits_what_it_has_not_read(patch: pytest.MonkeyPatch) -> None:
    consumed = Positions.consumed

    def ahead(self: Positions) -> Any:
        return {each: (offset + 3 if offset else 0, epoch) for each, (offset, epoch) in consumed(self).items()}

    patch.setattr(Positions, "consumed", ahead)


def a_leader_that_does_not_wait_for_its_followers(patch: pytest.MonkeyPatch) -> None:
    def advance(self: Partition, now: int) -> bool:
        if not self.leads or self.log.high_watermark == self.log.end_offset:
            return False
        self.log.high_watermark = self.log.end_offset
        return True

    patch.setattr(Partition, "advance", advance)


def a_coordinator_that_finds_old_offsets(patch: pytest.MonkeyPatch) -> None:
    replay = Load._replay

    def first_only(self: Load, offset: int, stored: Stored) -> None:
        known = self.shard.latest.offsets.get(stored.group_id, {})
        if not (isinstance(stored, OffsetRecord) and (stored.topic, stored.partition) in known):
            replay(self, offset, stored)

    patch.setattr(Load, "_replay", first_only)


def a_coordinator_that_takes_commits_of_any_generation(patch: pytest.MonkeyPatch) -> None:
    for state in set(GroupState) - {GroupState.DEAD}:
        patch.setitem(turn.PROGRAM, (On.COMMIT, state), ((), (offsets.WORDS[Do.COMMIT],)))


def a_coordinator_that_forgets_its_generation(patch: pytest.MonkeyPatch) -> None:
    finish = Load.finish

    def forgetful(self: Load) -> None:
        for group in self.shard.latest.groups.values():
            group.generation = min(group.generation, 0)
        finish(self)

    patch.setattr(Load, "finish", forgetful)


def a_leader_that_lets_anybody_into_sync(patch: pytest.MonkeyPatch) -> None:
    """However far behind a replica is, it counts from its first fetch on, and what is committed is what all have."""

    def may_join(self: Partition, broker_id: int) -> bool:
        return self.proposed is None and broker_id not in self.agreed.isr and self.followers[broker_id].end_offset >= 0

    def advance(self: Partition, now: int) -> bool:
        ends = [each.end_offset for name, each in self.followers.items() if name in self.maximal_isr()]
        lowest = min([self.log.end_offset, *ends])
        if not self.leads or lowest in (-1, self.log.high_watermark):
            return False
        self.log.high_watermark = lowest
        return True

    patch.setattr(Partition, "may_join", may_join)
    patch.setattr(Partition, "advance", advance)


def a_client_that_never_gives_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connections, "give_up", lambda self: None)


VARIANTS: dict[str, Variant] = {               # the rule -> what breaks it
    "two-owners": an_assignor_that_gives_a_partition_to_two,
    "lost-record": a_consumer_that_commits_what_it_has_not_read,
    "acked-then-lost": a_leader_that_does_not_wait_for_its_followers,
    "split-coordinator": a_leader_that_does_not_wait_for_its_followers,
    "offset-went-back": a_coordinator_that_finds_old_offsets,
    "zombie-commit": a_coordinator_that_takes_commits_of_any_generation,
    "generation-went-back": a_coordinator_that_forgets_its_generation,
    "hw-went-back": a_leader_that_lets_anybody_into_sync,
    "unanswered": a_client_that_never_gives_up,
}
