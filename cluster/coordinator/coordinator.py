"""The GroupCoordinator machine, one beside each broker: it leads the groups whose offsets partition its broker leads.

It is a client of its broker's log, and of nothing else. From `MetadataChanged` it learns which partitions it leads;
those it loads by Fetch; what it decides it writes by Produce, and answers when that is committed.
"""

from random import Random

from cluster.config import BrokerConfig
from cluster.coordinator.loading import TAIL, TAIL_POLL_MS, Load
from cluster.coordinator.offsets import forget_topics
from cluster.coordinator.outbox import Alarm, Outbox, shard_alarm
from cluster.coordinator.records import encode
from cluster.coordinator.requests import Requests
from cluster.coordinator.shard import Phase, Shard
from cluster.coordinator.states import On
from cluster.events import LoadFailed, RequestRefused, ShardLoading, ShardUnloaded
from cluster.machine import Disconnect, Effect, Envelope, Input, Received, TimerFired
from cluster.primitives import Malformed
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    MetadataChanged,
    PartitionData,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

OFFSETS_TOPIC = "__consumer_offsets"
GROUP_ALARMS = {"delay": On.DELAY_OVER, "join": On.JOIN_OVER, "sync": On.SYNC_OVER}


class GroupCoordinator:
    def __init__(self, name: str, broker: str, node_id: int, config: BrokerConfig, rng: Random,
                 incarnation: int = 0) -> None:
        self.name = name
        self.incarnation = incarnation
        self.broker = broker
        self.node_id = node_id
        self.config = config
        self.rng = rng
        self.out = Outbox()
        self.topics: dict[str, int] = {}
        self.shards: dict[int, Shard] = {}
        self.loads: dict[int, Load] = {}       # partition -> a load under way, or a tail that is not committed yet
        self.writing: list[Shard] = []
        self.calls: dict[int, Shard] = {}      # correlation id of what we asked our broker -> for whom
        self.correlation_id = 0
        self.requests = Requests(self.out, self.shards, self.topics, config)

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.out.begin(now)
        if isinstance(event, Received):
            self._received(event.envelope)
        elif isinstance(event, TimerFired):
            alarm = self.out.fired(event.name)
            if alarm is not None:
                self._fired(alarm)
        if self.writing:
            self._write()
        return effects

    def _received(self, envelope: Envelope) -> None:
        body = envelope.body
        serve = self.requests.served.get(type(body))
        if serve is not None:
            serve(envelope)
        elif isinstance(body, ProduceResponse):
            self._produced(envelope.correlation_id, body)
        elif isinstance(body, FetchResponse):
            self._fetched(envelope.correlation_id, body)
        elif isinstance(body, MetadataChanged):
            self._metadata_changed(body)
        else:
            self.out.emit(RequestRefused(envelope.source, envelope.api_key, "not served by a coordinator"))
            self.out.effects.append(Disconnect(envelope.source))

    def _fired(self, alarm: Alarm) -> None:
        shard = self.shards.get(alarm.partition)
        if shard is None or shard.phase is not Phase.ACTIVE:
            return
        if alarm.what == "write":
            shard.overdue()
        elif alarm.what == "expire":
            self._expire(shard)
        elif alarm.what == "tail":
            self._fetch(self.loads[alarm.partition])
        elif (group := shard.latest.groups.get(alarm.group_id)) is None:
            return
        elif alarm.what in GROUP_ALARMS:
            shard.happen(GROUP_ALARMS[alarm.what], group)
        elif alarm.member_id in group.pending:
            shard.happen(On.PENDING_OVER, group, about=alarm.member_id)
        elif alarm.member_id in group.members:
            shard.happen(On.SESSION_OVER, group, member=group.members[alarm.member_id])

    def _expire(self, shard: Shard) -> None:
        for group in list(shard.latest.groups.values()):
            shard.happen(On.EXPIRE, group)
        self.out.arm(shard_alarm("expire", shard.partition),
                     self.out.now + self.config.offsets_retention_check_interval_ms)

    # Who leads what

    def _metadata_changed(self, news: MetadataChanged) -> None:
        """How many partitions there are is decided once, when the coordinator starts, and never again (as in Kafka)."""
        if self.requests.partitions is None:
            self.requests.partitions = len(news.offsets_leaders) or self.config.offsets_topic_num_partitions
        leaders = {each.partition: each for each in news.offsets_leaders}
        for partition, shard in list(self.shards.items()):
            leader = leaders.get(partition)
            if leader is None or (leader.leader_id != self.node_id and leader.leader_epoch > shard.epoch):
                self._resign(shard)
        gone = set(self.topics) - set(news.topics)
        self.topics.clear()
        self.topics.update(news.topics)
        if gone:
            for shard in self.shards.values():
                for group in list(shard.latest.groups.values()):
                    forget_topics(shard, group, gone)
        for partition, leader in leaders.items():
            if leader.leader_id == self.node_id:
                self._elected(partition, leader.leader_epoch)

    def _elected(self, partition: int, epoch: int) -> None:
        """Load, unless we have; a coordinator that is elected again only learns the new epoch."""
        shard = self.shards.get(partition)
        if shard is not None and (epoch <= shard.epoch or shard.phase is not Phase.FAILED):
            shard.epoch = max(epoch, shard.epoch)
            return
        shard = Shard(partition, epoch, self.config, self.rng, self.out, self.topics, self.writing)
        self.shards[partition] = shard
        self.loads[partition] = Load(shard)
        self.out.emit(ShardLoading(partition, epoch))
        self._fetch(self.loads[partition])

    def _resign(self, shard: Shard) -> None:
        shard.unload()
        del self.shards[shard.partition]
        self.loads.pop(shard.partition, None)
        self.out.emit(ShardUnloaded(shard.partition, shard.epoch))

    # Reading and writing the log

    def _fetch(self, load: Load) -> None:
        """To the end of the log, past the high watermark: what the last coordinator wrote may still be committed."""
        wanted = FetchPartition(load.shard.partition, load.position, -1, self.config.offsets_load_buffer_size)
        self._ask(FetchRequest((FetchTopic(OFFSETS_TOPIC, (wanted,)),), replica_id=-2), load.shard)

    def _fetched(self, correlation_id: int, body: FetchResponse) -> None:
        shard = self.calls.pop(correlation_id, None)
        load = None if shard is None else self.loads.get(shard.partition)
        if shard is None or load is None or load.shard is not shard:
            return
        (data,) = body.responses[0].partitions
        if shard.phase is Phase.LOADING:
            self._load(load, data)
        elif data.error_code is Error.NONE:
            self._catch_up(load, data.high_watermark)

    def _load(self, load: Load, data: PartitionData) -> None:
        shard = load.shard
        try:
            if data.error_code is not Error.NONE:
                raise Malformed(data.error_code.name)
            done = load.take(data)
        except Malformed as problem:
            shard.phase = Phase.FAILED
            del self.loads[shard.partition]
            self.out.emit(LoadFailed(shard.partition, shard.epoch, str(problem)))
            return
        if not done:
            self._fetch(load)
            return
        load.finish()
        self._wait_for_tail(load)

    def _catch_up(self, load: Load, high_watermark: int) -> None:
        load.commit(high_watermark)
        self._wait_for_tail(load)

    def _wait_for_tail(self, load: Load) -> None:
        shard = load.shard
        if load.tail:
            self.out.arm(shard_alarm("tail", shard.partition), self.out.now + TAIL_POLL_MS)
            return
        del self.loads[shard.partition]
        if TAIL in shard.in_flight:
            shard.landed(TAIL, Error.NONE)

    def _write(self) -> None:
        """What each shard wrote in this step goes to the log, as one batch."""
        for shard in self.writing:
            assert shard.batch is not None
            records = tuple([encode(change.stored, self.out.now) for change in shard.batch.changes])
            data = PartitionProduceData(shard.partition, records, shard.epoch)
            shard.sent(self._ask(ProduceRequest(-1, self.config.offsets_commit_timeout_ms,
                                                (TopicProduceData(OFFSETS_TOPIC, (data,)),)), shard))
        self.writing.clear()

    def _produced(self, correlation_id: int, body: ProduceResponse) -> None:
        """What is committed is committed up to there: so is what our predecessor wrote."""
        shard = self.calls.pop(correlation_id, None)
        if shard is None or self.shards.get(shard.partition) is not shard:
            return
        error = body.responses[0].partition_responses[0].error_code
        if error is Error.NONE and TAIL in shard.in_flight:
            del self.loads[shard.partition]
            self.out.cancel(shard_alarm("tail", shard.partition))
            shard.landed(TAIL, Error.NONE)
        shard.landed(correlation_id, error)

    def _ask(self, body: Message, shard: Shard) -> int:
        self.correlation_id += 1
        self.calls[self.correlation_id] = shard
        self.out.send(request(body, source=self.name, destination=self.broker, correlation_id=self.correlation_id,
                              client_id=self.name, incarnation=self.incarnation))
        return self.correlation_id
