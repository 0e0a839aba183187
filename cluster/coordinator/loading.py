"""How a coordinator takes a partition over: it reads the log from start to end, and remembers what the records say.

What was not written is gone: ids given out, those who waited, unfinished rebalances. Sessions start anew in full.
"""

from cluster.coordinator.group import Group, Member
from cluster.coordinator.outbox import session_alarm, shard_alarm
from cluster.coordinator.records import GroupMetadata, OffsetRecord, Stored, decode
from cluster.coordinator.shard import Phase, Shard
from cluster.coordinator.states import EMPTY, STABLE, On
from cluster.coordinator.view import Change
from cluster.coordinator.writes import Batch
from cluster.events import GroupLoaded, ShardLoaded
from cluster.wire.groups import JoinGroupRequestProtocol
from cluster.wire.log import PartitionData

TAIL = 0                                       # stands for the records that were there, and not committed, when we came
TAIL_POLL_MS = 10


class Load:
    """A load under way: where it is in the log, and what it has read past the high watermark."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.position = 0
        self.records = 0
        self.tail: list[tuple[int, Change]] = []

    def take(self, data: PartitionData) -> bool:
        """Replay what was fetched. True at the end of the log. Raises Malformed if it cannot be read."""
        for batch in data.records:
            for offset, record in batch.numbered():
                if offset < self.position:
                    continue
                stored = decode(record)
                self.records += 1
                if stored is not None:
                    self._replay(offset, stored)
            self.position = max(self.position, batch.next_offset())
        self.commit(data.high_watermark)
        return not data.records

    def _replay(self, offset: int, stored: Stored) -> None:
        latest = self.shard.latest
        group = latest.groups.get(stored.group_id)
        if isinstance(stored, OffsetRecord):
            change = Change(stored, group or Group(stored.group_id))
        elif stored.metadata is not None:
            change = Change(stored, restored(self.shard.partition, stored.group_id, stored.metadata))
        else:
            change = Change(stored, group or Group(stored.group_id))
        latest.apply(change)
        self.tail.append((offset, change))

    def commit(self, high_watermark: int) -> None:
        """Everything below the high watermark is committed."""
        while self.tail and self.tail[0][0] < high_watermark:
            self.shard.committed.apply(self.tail.pop(0)[1])

    def finish(self) -> None:
        """The whole log is read: serve. What is not committed yet holds replies back, as if it were our own."""
        shard = self.shard
        shard.phase = Phase.ACTIVE
        if self.tail:
            shard.in_flight[TAIL] = Batch([change for _, change in self.tail])
        offsets = sum(len(each) for each in shard.latest.offsets.values())
        shard.out.emit(ShardLoaded(shard.partition, shard.epoch, self.records, len(shard.latest.groups), offsets))
        for group in list(shard.latest.groups.values()):
            shard.out.emit(GroupLoaded(group.group_id, group.state, group.generation, tuple(group.members)))
            for member in group.members.values():
                shard.renew(group, member, "load")
            if len(group.members) > shard.config.group_max_size:
                shard.happen(On.TOO_LARGE, group)
        shard.out.arm(shard_alarm("expire", shard.partition),
                      shard.out.now + shard.config.offsets_retention_check_interval_ms)


def restored(partition: int, group_id: str, stored: GroupMetadata) -> Group:
    """A group as its record tells it: each member knows only the protocol that was selected."""
    group = Group(group_id, STABLE if stored.members else EMPTY,
                  None if stored.state_timestamp == -1 else stored.state_timestamp, stored.generation)
    for one in stored.members:
        protocols = (JoinGroupRequestProtocol(stored.protocol or "", one.subscription),)
        timeout_ms = one.session_timeout_ms if one.rebalance_timeout_ms == -1 else one.rebalance_timeout_ms
        group.add(Member(one.member_id, one.instance_id, one.client_id, one.client_host, one.session_timeout_ms,
                         timeout_ms, protocols, (stored.protocol or "",),
                         session_alarm(partition, group_id, one.member_id), one.assignment), stored.protocol_type)
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol
    group.leader = stored.leader if stored.leader is not None else group.leader
    group.subscribed = group.subscribed_topics()
    return group
