"""Brokers and their controller in the simulator, asked by hand, and what can be seen of them."""

from collections.abc import Callable
from typing import Any

import msgspec

from cluster.broker.broker import Broker
from cluster.broker.controller import Controller
from cluster.broker.image import PartitionState
from cluster.config import BrokerConfig, ControllerConfig, settings
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.events import Event, Stamped
from cluster.machine import Disconnected, Effect, Input, Received, Send, Told
from cluster.sim.deploy import deploy, is_ready
from cluster.sim.world import World
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    CreatableTopic,
    CreateTopicsRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    Record,
    TopicProduceData,
)

CLOSED = "closed"
PATIENCE_MS = 60_000


class Call(msgspec.Struct, eq=False):
    to: str
    body: Any
    version: int | None
    answer: Any = None
    answered_at: int | None = None


class Client:
    """Sends what it is told to, and keeps what comes back, or that the connection was closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Call] = []

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told):
            call = event.command
            self.calls.append(call)
            envelope = request(
                call.body,
                source=self.name,
                destination=call.to,
                correlation_id=len(self.calls) - 1,
                client_id=self.name,
                version=call.version,
            )
            return [Send(call.to, envelope)]
        if isinstance(event, Received):
            self._keep(self.calls[event.envelope.correlation_id], event.envelope.body, now)
        elif isinstance(event, Disconnected):
            for call in self.calls:
                if call.to == event.peer and call.answered_at is None:
                    self._keep(call, CLOSED, now)
        return []

    def _keep(self, call: Call, answer: Any, now: int) -> None:
        call.answer, call.answered_at = answer, now


class Brokers:
    def __init__(self, count: int = 1, controller: dict[str, Any] | None = None, seed: int = 0, **config: Any) -> None:
        given = {"offsets.topic.replication.factor": min(count, 3), "offsets.topic.num.partitions": 4}
        given |= {key.replace("_", "."): value for key, value in config.items()}
        self.world = World(seed=seed)
        self.seen: list[Stamped] = []
        self.world.observers.append(self.seen.append)
        self.world.add("client", Client("client"))
        deploy(self.world, count, settings(BrokerConfig, given), settings(ControllerConfig, controller or {}))
        assert self.world.run_until(lambda: is_ready(self.world), self.world.now + 10_000)
        self.wait(1000)

    # Whom

    def broker(self, number: int = 1) -> Broker:
        machine = self.world.processes[f"broker-{number}"].machine
        assert isinstance(machine, Broker)
        return machine

    def coordinator(self, number: int = 1) -> GroupCoordinator:
        machine = self.world.processes[f"coordinator-{number}"].machine
        assert isinstance(machine, GroupCoordinator)
        return machine

    def controller(self) -> Controller:
        machine = self.world.processes["controller"].machine
        assert isinstance(machine, Controller)
        return machine

    def state(self, topic: str = "t", partition: int = 0) -> PartitionState:
        """As the controller has it."""
        return self.controller().image.topics[topic][partition]

    def end(self, number: int, topic: str = "t", partition: int = 0) -> tuple[int, int]:
        """The high watermark and the end of one replica."""
        log = self.broker(number).partitions[topic, partition].log
        return log.high_watermark, log.end_offset

    # Talking to them

    def send(self, body: Message, to: int | str = 1, version: int | None = None) -> Call:
        call = Call(f"broker-{to}" if isinstance(to, int) else to, body, version)
        self.world.tell("client", call)
        return call

    def ask(self, body: Message, to: int | str = 1, version: int | None = None) -> Any:
        call = self.send(body, to, version)
        self.world.run_until(lambda: call.answered_at is not None, self.world.now + PATIENCE_MS)
        return call.answer

    def create(self, name: str = "t", partitions: int = 1, replicas: int = 1, *, to: int = 1) -> Error:
        error: Error = (
            self.ask(CreateTopicsRequest((CreatableTopic(name, partitions, replicas),)), to).topics[0].error_code
        )
        self.wait(10)
        return error

    def produce(
        self,
        *values: bytes,
        to: int = 1,
        acks: int = -1,
        timeout_ms: int = 1000,
        wait: bool = True,
        topic: str = "t",
        partition: int = 0,
        epoch: int = -1,
        producer: tuple[int, int] = (-1, -1),
    ) -> Any:
        """The answer for the partition; the call if it is not to be waited for."""
        records = tuple(Record(b"k", value, self.world.now) for value in values)
        data = TopicProduceData(topic, (PartitionProduceData(partition, records, epoch, *producer),))
        call = self.send(ProduceRequest(acks, timeout_ms, (data,)), to)
        if not wait:
            return call
        self.world.run_until(lambda: call.answered_at is not None, self.world.now + PATIENCE_MS)
        return call.answer if call.answer in (None, CLOSED) else call.answer.responses[0].partition_responses[0]

    def fetch(
        self,
        offset: int = 0,
        *,
        to: int = 1,
        topic: str = "t",
        partition: int = 0,
        epoch: int = -1,
        max_bytes: int = 1 << 20,
        replica_id: int = -1,
    ) -> Any:
        wanted = FetchTopic(topic, (FetchPartition(partition, offset, epoch, max_bytes),))
        return self.ask(FetchRequest((wanted,), replica_id), to).responses[0].partitions[0]

    def values(self, *, to: int = 1, topic: str = "t", partition: int = 0) -> list[bytes | None]:
        """What a consumer can read of a partition."""
        data = self.fetch(to=to, topic=topic, partition=partition)
        return [record.value for batch in data.records for record in batch.records]

    # Time

    def wait(self, ms: int) -> None:
        self.world.run(self.world.now + ms)

    def until(self, is_done: Callable[[], bool], within_ms: int = PATIENCE_MS) -> int:
        """How long it took."""
        begin = self.world.now
        assert self.world.run_until(is_done, begin + within_ms), "it did not happen"
        return self.world.now - begin

    def events(self, kind: type[Event]) -> list[Any]:
        return [stamped.event for stamped in self.seen if isinstance(stamped.event, kind)]
