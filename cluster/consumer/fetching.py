"""Reading: one Fetch in flight for each broker, what came back in a buffer, and a poll's worth of records out of it.

Fetched is what may be returned and is not in the buffer yet. Answers are looked at when a poll comes to them, not when
they arrive: by then the partition may be gone or its position another, and what was fetched for it is thrown away.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from cluster.config import ConsumerConfig
from cluster.consumer.answers import Answer
from cluster.consumer.connections import Call, Connections, broker_name
from cluster.consumer.metadata import Metadata
from cluster.consumer.outbox import Outbox
from cluster.consumer.positions import FETCHING, Partition, Position, Positions
from cluster.consumer.states import Asked
from cluster.wire.errors import Error
from cluster.wire.log import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData


class Taken(msgspec.Struct, frozen=True, gc=False):
    """Records of one partition that a poll returned: from `first` to `last`, perhaps with gaps."""

    partition: Partition
    first: int
    last: int
    count: int


class Fetched(msgspec.Struct, eq=False):
    """What one Fetch brought of one partition, as far as it is not returned yet."""

    call: Call
    partition: Partition
    offset: int                                # the next one that it can serve
    data: PartitionData
    is_open: bool = False                      # somebody has looked at it, and it is good
    batch: int = 0                             # the one that is being read
    epoch: int = -1                            # of the last one that was

    def read(self, limit: int) -> Taken | None:
        """The next records of one batch; None if none are left in it."""
        batch = self.data.records[self.batch]
        offsets: Sequence[int] = (range(batch.base_offset, batch.next_offset()) if batch.offsets is None
                                  else batch.offsets)
        start = bisect_left(offsets, self.offset)          # a fetch returns whole batches
        piece = offsets[start : start + limit]
        self.epoch = batch.leader_epoch
        if start + len(piece) < len(offsets):
            self.offset = piece[-1] + 1
        else:
            self.offset = max(self.offset, batch.next_offset())
            self.batch += 1
        return Taken(self.partition, piece[0], piece[-1], len(piece)) if piece else None

    def is_used_up(self) -> bool:
        return self.batch >= len(self.data.records)


class Fetching:
    def __init__(self, out: Outbox, connections: Connections, metadata: Metadata, positions: Positions,
                 config: ConsumerConfig, judge: Callable[[Answer], None]) -> None:
        self.out = out
        self.connections = connections
        self.metadata = metadata
        self.positions = positions
        self.config = config
        self.judge = judge
        self.buffer: deque[Fetched] = deque()
        self._asked: dict[str, Call] = {}      # broker -> the Fetch that it has not answered
        self._quiet: dict[str, int] = {}       # broker -> it is not asked again before then
        self._requests: dict[str, FetchRequest] = {}
        self._requests_for = -1                # the changes of positions that these requests are good for

    # Asking

    def send(self) -> None:
        """Ask every broker that leads something we can read, unless it has not answered yet."""
        if self.config.paused:
            return
        if self.buffer:
            requests = self._make_requests()
        else:
            if self._requests_for != self.positions.changes:
                self._requests = self._make_requests()
                self._requests_for = self.positions.changes
            requests = self._requests
        now = self.out.now
        for peer, request in requests.items():
            if peer in self._asked:
                continue
            not_before = self._quiet.get(peer, 0)
            if self.connections.is_down(peer):
                not_before = max(not_before, self.connections.up_at((peer,)))
            if now < not_before:
                self.out.wake(not_before)
            else:
                self._asked[peer] = self.connections.ask(peer, Asked.FETCH, request)

    def _make_requests(self) -> dict[str, FetchRequest]:
        buffered = {fetched.partition for fetched in self.buffer}
        wanted: dict[str, dict[str, list[FetchPartition]]] = {}
        for partition, position in self.positions.assigned.items():
            if not _can_be_fetched(position) or partition in buffered:
                continue
            if position.leader is None:
                self.metadata.request()
                continue
            topic, number = partition
            topics = wanted.setdefault(broker_name(position.leader.node), {})
            topics.setdefault(topic, []).append(FetchPartition(number, position.offset, position.leader.epoch,
                                                               self.config.max_partition_fetch_bytes))
        config = self.config
        return {peer: FetchRequest(tuple([FetchTopic(topic, tuple(parts)) for topic, parts in topics.items()]), -1, -1,
                                   config.fetch_max_wait_ms, config.fetch_min_bytes, config.fetch_max_bytes)
                for peer, topics in wanted.items()}

    # What comes back

    def arrived(self, call: Call, body: FetchResponse) -> bool:
        """Keep what is not empty. Was there any? A broker that had nothing, and said so at once, is left alone for as
        long as it might have waited; one that had only errors, for retry.backoff.ms."""
        self._asked.pop(call.peer, None)
        found = [(topic.topic, data) for topic in body.responses for data in topic.partitions
                 if data.records or data.error_code is not Error.NONE]
        if not found:
            self._quiet[call.peer] = call.sent + self.config.fetch_max_wait_ms
            return False
        asked: FetchRequest = call.body  # type: ignore[assignment]
        offsets = {(topic.topic, one.partition): one.fetch_offset for topic in asked.topics for one in topic.partitions}
        for topic_name, data in found:
            partition = topic_name, data.partition_index
            self.buffer.append(Fetched(call, partition, offsets[partition], data))
        if not any(data.records for _, data in found):
            self._quiet[call.peer] = self.out.now + self.config.retry_backoff_ms
        return True

    def lost(self, call: Call) -> None:
        self._asked.pop(call.peer, None)

    def forget(self, topics: tuple[str, ...]) -> None:
        """Throw away what is buffered of other topics than these."""
        self.buffer = deque([fetched for fetched in self.buffer if fetched.partition[0] in topics])

    # What a poll returns

    def collect(self) -> list[Taken]:
        """At most max.poll.records, partition by partition. The positions are behind them now."""
        taken: dict[Partition, Taken] = {}
        left = self.config.max_poll_records
        while left > 0 and self.buffer:
            fetched = self.buffer[0]
            if not self._is_good(fetched):
                self.buffer.popleft()
                continue
            piece = fetched.read(left)
            self.positions.advance(fetched.partition, fetched.offset, fetched.epoch)
            if piece is not None:
                left -= piece.count
                before = taken.get(piece.partition)
                taken[piece.partition] = piece if before is None else Taken(
                    piece.partition, before.first, piece.last, before.count + piece.count)
            if fetched.is_used_up():
                self.buffer.popleft()
                self.positions.move_to_end(fetched.partition)
        return list(taken.values())

    def _is_good(self, fetched: Fetched) -> bool:
        """May it be returned? The first time, its error is looked at."""
        position = self.positions.assigned.get(fetched.partition)
        if position is None or position.fetch_state is not FETCHING:
            return False
        if not fetched.is_open:
            self.judge(Answer(fetched.call, fetched.data.error_code, None, fetched.partition, fetched))
        return fetched.is_open and _can_be_fetched(position) and position.offset == fetched.offset

    def has_moved_on(self, fetched: Fetched) -> bool:
        return self.positions.assigned[fetched.partition].offset != fetched.offset


def _can_be_fetched(position: Position) -> bool:
    return position.fetch_state is FETCHING and not position.is_revoking
