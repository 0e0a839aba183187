"""What has changed in one step of a broker: records that were appended, high watermarks that moved.

Whoever waits for such a thing is answered at the end of the step, once, for everything that changed in it.
"""

from cluster.broker.partition import Partition, Partitions
from cluster.events import HighWatermarkMoved
from cluster.outbox import Outbox


class Changes:
    def __init__(self, out: Outbox) -> None:
        self.out = out
        self.appended: Partitions = {}
        self.moved: Partitions = {}

    def append(self, partition: Partition) -> None:
        self.appended[partition.key] = partition
        self.advance(partition)

    def advance(self, partition: Partition) -> None:
        if partition.advance(self.out.now):
            self.moved[partition.key] = partition
            self.out.emit(HighWatermarkMoved(partition.topic, partition.number, partition.agreed.leader_epoch,
                                             partition.log.high_watermark))
