"""One partition on one broker: leading it, or following its leader. No messages, no timers: only what is known of whom.

The high watermark is the lowest end among the in-sync replicas. It never goes back while one leader leads, and does not
move while too few replicas are in sync.
"""

from collections.abc import Callable

import msgspec

from cluster.broker.image import NO_LEADER, PartitionState
from cluster.broker.log import Log
from cluster.wire.errors import Error

UNKNOWN = -1                                   # a follower that has not been heard of since this leader leads


class Follower(msgspec.Struct):
    """What a leader knows of a follower, from its fetches."""

    end_offset: int = UNKNOWN
    fetched_at: int = 0
    leader_end_then: int = UNKNOWN             # where the leader's log ended at that fetch
    caught_up_at: int = 0                      # when it last had everything

    def fetched(self, offset: int, now: int, leader_end: int) -> None:
        """Whoever asks for the end has everything now; whoever asks for where the end was, had it at its last fetch."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self.leader_end_then > UNKNOWN:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end_offset = offset
        self.fetched_at = now
        self.leader_end_then = leader_end

    def falls_behind(self, fetched_at: int) -> None:
        """There is something new. Whoever was at the end had everything up to its last fetch, which needs not have
        mentioned this partition."""
        if self.end_offset == self.leader_end_then:
            self.caught_up_at = max(self.caught_up_at, fetched_at)
            self.leader_end_then = UNKNOWN


class Partition:
    def __init__(self, topic: str, number: int, log: Log, me: int, min_isr: int, lag_ms: int,
                 is_active: Callable[[int], bool] = lambda broker_id: True) -> None:
        self.topic = topic
        self.number = number
        self.key = topic, number
        self.log = log
        self.me = me
        self.min_isr = min_isr
        self.lag_ms = lag_ms
        self.is_active = is_active             # may a broker come into sync, as far as the controller is concerned?
        self.agreed = PartitionState((), (), NO_LEADER, -1, -1)    # as the controller has it
        self.leads = False
        self.followers: dict[int, Follower] = {}
        self.proposed: tuple[int, ...] | None = None      # in-sync replicas that the controller has not agreed to yet

    def change(self, agreed: PartitionState, now: int) -> bool:
        """What the controller says. True if a new epoch begins: whoever leads now has just begun to."""
        begins = agreed.leader_epoch > self.agreed.leader_epoch
        self.agreed = agreed
        self.leads = agreed.leader == self.me
        self.proposed = None
        if begins and self.leads:
            self.log.begin_epoch(agreed.leader_epoch)
            self.followers = {each: Follower(caught_up_at=now if each in agreed.isr else 0)
                              for each in agreed.replicas if each != self.me}
        elif not self.leads:
            self.followers = {}
        return begins

    # Leading

    def objection(self, epoch: int) -> Error:
        """Why a request cannot be served here: we do not lead, or who asks knows another leader than us."""
        if not self.leads:
            return Error.NOT_LEADER_OR_FOLLOWER
        if epoch < 0 or epoch == self.agreed.leader_epoch:
            return Error.NONE
        return Error.FENCED_LEADER_EPOCH if epoch < self.agreed.leader_epoch else Error.UNKNOWN_LEADER_EPOCH

    def needed(self) -> int:
        """How many replicas must be in sync."""
        return min(self.min_isr, len(self.agreed.replicas))

    def maximal_isr(self) -> tuple[int, ...]:
        """Those in sync, and those that are about to be: whatever the controller decides, nothing is lost."""
        return self.agreed.isr if self.proposed is None else tuple(dict.fromkeys((*self.agreed.isr, *self.proposed)))

    def advance(self, now: int) -> bool:
        """Move the high watermark to where all in-sync replicas have everything. Has it moved?"""
        if not self.leads or len(self.agreed.isr) < self.needed():
            return False
        isr = self.maximal_isr()
        lowest = self.log.end_offset
        for each, follower in self.followers.items():
            if follower.end_offset < lowest and (each in isr or self._is_coming(each, follower, now)):
                lowest = follower.end_offset
        if lowest <= self.log.high_watermark:
            return False
        self.log.high_watermark = lowest
        return True

    def _is_coming(self, broker_id: int, follower: Follower, now: int) -> bool:
        """A replica that has caught up and is not in sync officially yet holds the high watermark back, too."""
        return follower.end_offset >= self.log.high_watermark and self.is_active(broker_id) and (
            follower.caught_up_at > 0 and now - follower.caught_up_at <= self.lag_ms)

    def may_join(self, broker_id: int) -> bool:
        """Has a replica that is not in sync reached the high watermark, and the beginning of this leader's epoch?"""
        follower = self.followers[broker_id]
        return self.proposed is None and broker_id not in self.agreed.isr and (
            follower.end_offset >= self.log.high_watermark and follower.end_offset >= self.log.last_epoch_start())

    def lagging(self, now: int) -> list[int]:
        """In-sync replicas that have not had everything for too long."""
        if not self.leads or self.proposed is not None:
            return []
        return [each for each, follower in self.followers.items()
                if each in self.agreed.isr and follower.end_offset != self.log.end_offset
                and now - follower.caught_up_at > self.lag_ms]


Partitions = dict[tuple[str, int], Partition]
