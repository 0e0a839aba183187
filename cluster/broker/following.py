"""Following: for each broker that leads something we have, one Fetch after the other, for all of it at once.

A follower asks for what comes after the end of its own log, and says under whom its last record was written. If the
leader has another history, it says where the two part, and the follower cuts its log off there.
"""

from collections.abc import Callable

from cluster.broker.partition import Partition
from cluster.config import BrokerConfig
from cluster.events import LogTruncated
from cluster.outbox import Outbox
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.log import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

SOCKET_TIMEOUT_MS = 30000                      # replica.socket.timeout.ms
PATIENCE, RESTED = "patience/", "rested/"

Key = tuple[str, int]


class Leader:
    """What we follow at one broker."""

    def __init__(self) -> None:
        self.partitions: dict[Key, Partition] = {}
        self.changed: dict[Key, None] = {}     # what it must be told: where we are in these,
        self.forgotten: dict[Key, None] = {}   # and that we do not follow those any more
        self.session_epoch = 0
        self.asked: int | None = None          # the correlation id of the Fetch under way
        self.is_resting = False                # after an error, for replica.fetch.backoff.ms

    def forget_session(self) -> None:
        self.asked = None
        self.session_epoch = 0
        self.changed = dict.fromkeys(self.partitions)
        self.forgotten = {}


class Following:
    def __init__(self, name: str, broker_id: int, config: BrokerConfig, out: Outbox, number: Callable[[], int],
                 incarnation: int, is_active: Callable[[int], bool]) -> None:
        self.name = name
        self.broker_id = broker_id
        self.config = config
        self.out = out
        self.number = number                   # the next correlation id
        self.incarnation = incarnation
        self.is_active = is_active             # does the controller count on a broker?
        self.broker_epoch = -1
        self.leaders: dict[int, Leader] = {}

    def follow(self, partition: Partition, leader_id: int) -> None:
        leader = self.leaders.setdefault(leader_id, Leader())
        if partition.key not in leader.partitions:
            self.forget(partition)
            leader.partitions[partition.key] = partition
            leader.forgotten.pop(partition.key, None)
        leader.changed[partition.key] = None

    def forget(self, partition: Partition) -> None:
        for leader in self.leaders.values():
            if leader.partitions.pop(partition.key, None) is not None:
                leader.changed.pop(partition.key, None)
                leader.forgotten[partition.key] = None

    def go_on(self) -> None:
        """Ask every leader that is not being asked already. One that waits for news at a leader is not disturbed: a
        change of leaders is told to those who follow at once."""
        for leader_id, leader in self.leaders.items():
            if not leader.partitions and leader.asked is not None and not self.is_active(leader_id):
                self.out.disconnect(f"broker-{leader_id}")    # it is gone, and will not answer
                self.out.cancel_timer(f"{PATIENCE}{leader_id}")
                leader.forget_session()
            elif leader.partitions and leader.asked is None and not leader.is_resting:
                self._ask(leader_id, leader)

    def _ask(self, leader_id: int, leader: Leader) -> None:
        topics: dict[str, list[FetchPartition]] = {}
        for topic, number in leader.changed:
            partition = leader.partitions[topic, number]
            topics.setdefault(topic, []).append(FetchPartition(
                number, partition.log.end_offset, partition.agreed.leader_epoch, self.config.replica_fetch_max_bytes,
                partition.log.last_epoch()))
        forgotten: dict[str, list[int]] = {}
        for topic, number in leader.forgotten:
            forgotten.setdefault(topic, []).append(number)
        body = FetchRequest(tuple(FetchTopic(topic, tuple(wanted)) for topic, wanted in topics.items()), self.broker_id,
                            self.broker_epoch, self.config.replica_fetch_wait_max_ms, 1,
                            self.config.replica_fetch_response_max_bytes, leader.session_epoch,
                            tuple(ForgottenTopic(topic, tuple(numbers)) for topic, numbers in forgotten.items()))
        leader.changed, leader.forgotten = {}, {}
        leader.session_epoch += 1
        leader.asked = self.number()
        self.out.send(request(body, source=self.name, destination=f"broker-{leader_id}", correlation_id=leader.asked,
                              client_id=self.name, incarnation=self.incarnation))
        self.out.set_timer(f"{PATIENCE}{leader_id}", self.out.now + SOCKET_TIMEOUT_MS)

    def fetched(self, leader_id: int, correlation_id: int, answer: FetchResponse) -> None:
        leader = self.leaders.get(leader_id)
        if leader is None or leader.asked != correlation_id:
            return
        leader.asked = None
        if answer.error_code is not Error.NONE:
            leader.forget_session()
        troubled = False
        for topic in answer.responses:
            for data in topic.partitions:
                partition = leader.partitions.get((topic.topic, data.partition_index))
                if partition is not None and not self._take(leader, partition, data):
                    troubled = True
        if troubled:
            self._rest(leader_id, leader)
        elif leader.partitions:
            self._ask(leader_id, leader)
        else:
            leader.forget_session()
            self.out.cancel_timer(f"{PATIENCE}{leader_id}")

    def _take(self, leader: Leader, partition: Partition, data: PartitionData) -> bool:
        """Take what came for one partition. False if there was trouble, so that we had better wait before we ask
        again."""
        log = partition.log
        if data.error_code is not Error.NONE:
            if data.error_code is Error.OFFSET_OUT_OF_RANGE:
                self._truncate(partition, min(log.end_offset, max(data.high_watermark, 0)))
            leader.changed[partition.key] = None
            return False
        if data.diverging_epoch is not None:
            self._part_ways(partition, data)
            leader.changed[partition.key] = None
            return True
        if data.records:
            log.follow(data.records)
            leader.changed[partition.key] = None
        log.high_watermark = max(log.high_watermark, min(data.high_watermark, log.end_offset))
        return True

    def _part_ways(self, partition: Partition, data: PartitionData) -> None:
        """Cut the log off where the leader's history and ours part. If we do not know the leader's epoch, where ours
        ends that is older; then ask again."""
        assert data.diverging_epoch is not None
        theirs, log = data.diverging_epoch, partition.log
        ours = log.end_of_epoch(theirs.epoch)
        self._truncate(partition, max(min(ours.end_offset, theirs.end_offset, log.end_offset), 0))

    def _truncate(self, partition: Partition, to_offset: int) -> None:
        lost = partition.log.truncate(to_offset)
        if lost:
            self.out.emit(LogTruncated(*partition.key, partition.agreed.leader_epoch, to_offset, lost))

    def disconnected(self, leader_id: int) -> None:
        leader = self.leaders.get(leader_id)
        if leader is not None and leader.asked is not None:
            leader.forget_session()
            self._rest(leader_id, leader)

    def lose_patience(self, leader_id: int) -> None:
        self.out.disconnect(f"broker-{leader_id}")
        self.disconnected(leader_id)

    def _rest(self, leader_id: int, leader: Leader) -> None:
        leader.is_resting = True
        self.out.cancel_timer(f"{PATIENCE}{leader_id}")
        self.out.set_timer(f"{RESTED}{leader_id}", self.out.now + self.config.replica_fetch_backoff_ms)

    def rested(self, leader_id: int) -> None:
        self.leaders[leader_id].is_resting = False
        self.go_on()
