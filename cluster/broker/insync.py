"""Who is in sync: a leader proposes, the controller agrees. One proposal for a partition at a time, one request in
flight.

Until the controller has agreed, a leader counts on the larger of the two sets, so that whatever comes of its proposal,
nothing that it has acknowledged is lost.
"""

from collections.abc import Callable

import msgspec

from cluster.broker.changes import Changes
from cluster.broker.partition import Partition, Partitions
from cluster.outbox import Outbox
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.fields import Message

RETRY, CHECK = "propose", "lag"
RETRY_MS = 100


class InSync:
    def __init__(self, broker_id: int, lag_ms: int, out: Outbox, partitions: Partitions, changes: Changes,
                 ask: Callable[[Message], int]) -> None:
        self.broker_id = broker_id
        self.lag_ms = lag_ms
        self.out = out
        self.partitions = partitions
        self.changes = changes
        self.ask = ask                         # send something to the controller
        self.broker_epoch = -1
        self.waiting: dict[tuple[str, int], None] = {}     # proposals that are not on their way yet
        self.asked: int | None = None
        self.is_resting = False                # after trouble, for a moment

    def start(self) -> None:
        self.out.set_timer(CHECK, self.out.now + self.lag_ms // 2)

    def check(self) -> None:
        """Half as often as a replica may lag: so one that lags leaves after once to one and a half times that."""
        for partition in self.partitions.values():
            lagging = partition.lagging(self.out.now)
            if lagging:
                self._propose(partition, tuple(each for each in partition.agreed.isr if each not in lagging))
            self.changes.advance(partition)    # nobody waits any longer for one that was coming, and does not
        self.start()

    def join(self, partition: Partition, follower: int) -> None:
        self._propose(partition, (*partition.agreed.isr, follower))

    def _propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        partition.proposed = isr
        self.waiting[partition.key] = None

    def flush(self) -> None:
        """At the end of a step: everything that is proposed, in one request."""
        if not self.waiting or self.asked is not None or self.is_resting:
            return
        topics: dict[str, list[control.AlterPartitionPartition]] = {}
        for key in self.waiting:
            partition = self.partitions.get(key)
            if partition is not None and partition.proposed is not None:
                agreed = partition.agreed
                topics.setdefault(partition.topic, []).append(control.AlterPartitionPartition(
                    partition.number, agreed.leader_epoch, partition.proposed, agreed.partition_epoch))
        self.waiting = {}
        if topics:
            self.asked = self.ask(control.AlterPartitionRequest(self.broker_id, self.broker_epoch, tuple(
                control.AlterPartitionTopic(topic, tuple(wanted)) for topic, wanted in topics.items())))

    def answered(self, correlation_id: int, answer: control.AlterPartitionResponse) -> None:
        if correlation_id != self.asked:
            return
        self.asked = None
        if answer.error_code is not Error.NONE:
            self._again()
            return
        for topic in answer.topics:
            for result in topic.partitions:
                partition = self.partitions.get((topic.topic, result.partition_index))
                if partition is not None:
                    self._agreed(partition, result)

    def _agreed(self, partition: Partition, result: control.AlterPartitionResult) -> None:
        """What was refused is not proposed any more; the controller's log says why, sooner or later."""
        if result.error_code is Error.NONE and result.partition_epoch > partition.agreed.partition_epoch:
            if result.leader_epoch == partition.agreed.leader_epoch:
                partition.change(msgspec.structs.replace(
                    partition.agreed, isr=result.isr, partition_epoch=result.partition_epoch), self.out.now)
                self.changes.advance(partition)
        else:
            partition.proposed = None

    def disconnected(self) -> None:
        if self.asked is not None:
            self.asked = None
            self._again()

    def _again(self) -> None:
        """Whatever is still proposed is proposed again, soon."""
        self.is_resting = True
        self.waiting = {key: None for key, partition in self.partitions.items() if partition.proposed is not None}
        self.out.set_timer(RETRY, self.out.now + RETRY_MS)

    def rested(self) -> None:
        self.is_resting = False
