"""Real consumers and producers over real brokers and coordinators, in virtual time."""

from functools import partial
from random import Random
from typing import Any, TypeVar

from cluster.broker.controller import Controller
from cluster.config import BrokerConfig, ConsumerConfig, ControllerConfig, ProducerConfig, settings
from cluster.consumer.commands import Subscribe
from cluster.consumer.consumer import Consumer
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.events import Event, PartitionsAssigned, PartitionsLost, PartitionsRevoked, RecordsProcessed, Stamped
from cluster.java import partition_for
from cluster.machine import Envelope
from cluster.producer import Producer, Start
from cluster.sim.deploy import deploy, is_ready
from cluster.sim.world import World
from cluster.wire.fields import Message
from cluster.wire.log import CreatableTopic, CreatePartitionsRequest, CreatePartitionsTopic, CreateTopicsRequest
from tests.unit.brokers import Call, Client
from tests.unit.client_stage import ASSIGNORS

QUICK = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
Kind = TypeVar("Kind", bound=Event)
Body = TypeVar("Body", bound=Message)


def _dotted(config: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in config.items()}


def make_consumer(
    name: str, group: str, config: ConsumerConfig, bootstrap: tuple[str, ...], seed: int, incarnation: int
) -> Consumer:
    rng = Random(f"{seed}/{name}/{incarnation}")
    return Consumer(name, group, config, bootstrap, ASSIGNORS, rng, incarnation)


def make_producer(
    name: str, topic: str, config: ProducerConfig, bootstrap: tuple[str, ...], seed: int, incarnation: int
) -> Producer:
    rng = Random(f"{seed}/{name}/{incarnation}")
    return Producer(name, topic, config, bootstrap, rng, 7, incarnation)


class Cluster:
    def __init__(
        self, topics: dict[str, int] | None = None, *, brokers: int = 1, seed: int = 0, delay_ms: int = 0, **config: Any
    ) -> None:
        self.world = World(seed=seed)
        self.seed = seed
        self.bootstrap = tuple(f"broker-{number}" for number in range(1, brokers + 1))
        self.seen: list[Stamped] = []
        self.heard: list[tuple[int, Envelope]] = []
        self.owned: dict[str, dict[str, tuple[int, ...]]] = {}  # consumer -> what its listener was last told
        given = {
            "offsets.topic.replication.factor": min(brokers, 3),
            "offsets.topic.num.partitions": 4,
            "group.initial.rebalance.delay.ms": delay_ms,
        }
        self.world.add("client", Client("client"))
        deploy(self.world, brokers, settings(BrokerConfig, given | _dotted(config)), ControllerConfig())
        assert self.world.run_until(lambda: is_ready(self.world), self.world.now + 10_000)
        self.replicas = min(brokers, 3)
        self.create(**(topics or {"t": 4}))
        self.begin = self.world.now
        self.world.observers.append(self._observe)
        self.world.listeners.append(self._listen)

    def _observe(self, stamped: Stamped) -> None:
        self.seen.append(stamped)
        event = stamped.event
        if isinstance(event, PartitionsAssigned):
            self.owned[stamped.machine] = event.owned
        elif isinstance(event, (PartitionsRevoked, PartitionsLost)):
            left = {
                topic: tuple(n for n in numbers if n not in event.partitions.get(topic, ()))
                for topic, numbers in self.owned.get(stamped.machine, {}).items()
            }
            self.owned[stamped.machine] = {topic: numbers for topic, numbers in left.items() if numbers}

    def _listen(self, now: int, envelope: Envelope) -> None:
        self.heard.append((now - self.begin, envelope))

    # Who takes part

    def consumer(self, name: str, *topics: str, pattern: str | None = None, group: str = "g", **config: Any) -> None:
        made = settings(ConsumerConfig, QUICK | {"auto.offset.reset": "earliest"} | _dotted(config))
        wanted = Subscribe((), pattern) if pattern else Subscribe(topics or ("t",))
        self.world.add(name, partial(make_consumer, name, group, made, self.bootstrap, self.seed), opening=(wanted,))
        self.world.begin(name)

    def producer(self, name: str = "p", topic: str = "t", **config: Any) -> None:
        made = settings(ProducerConfig, _dotted(config))
        birth = partial(make_producer, name, topic, made, self.bootstrap, self.seed)
        self.world.add(name, birth, opening=(Start(),))
        self.world.begin(name)

    def machine(self, name: str) -> Consumer:
        machine = self.world.processes[name].machine
        assert isinstance(machine, Consumer)
        return machine

    def ask(self, body: Message, to: str = "broker-1") -> Any:
        call = Call(to, body, None)
        self.world.tell("client", call)
        self.world.run_until(lambda: call.answered_at is not None, self.world.now + 60_000)
        return call.answer

    def create(self, **topics: int) -> None:
        self.ask(CreateTopicsRequest(tuple(CreatableTopic(name, n, self.replicas) for name, n in topics.items())))
        self.run(100)

    def grow(self, topic: str, partitions: int) -> None:
        self.ask(CreatePartitionsRequest((CreatePartitionsTopic(topic, partitions),)))

    # Time, and what was seen in it

    @property
    def now(self) -> int:
        return self.world.now - self.begin

    def run(self, ms: int) -> None:
        self.world.run(self.world.now + ms)

    def tell(self, name: str, command: Any) -> None:
        self.world.tell(name, command)

    def events(self, kind: type[Kind], who: str | None = None, since: int = 0) -> list[Kind]:
        return [
            each.event
            for each in self.seen
            if isinstance(each.event, kind) and who in (None, each.machine) and each.at - self.begin >= since
        ]

    def times(self, kind: type[Event], who: str | None = None) -> list[int]:
        return [
            each.at - self.begin for each in self.seen if isinstance(each.event, kind) and who in (None, each.machine)
        ]

    def sent(self, kind: type[Body], who: str | None = None, since: int = 0) -> list[Body]:
        return [
            each.body
            for at, each in self.heard
            if isinstance(each.body, kind) and who in (None, each.source) and at >= since
        ]

    def owners(self, topic: str = "t") -> dict[int, list[str]]:
        """Partition -> who has it."""
        owners: dict[int, list[str]] = {}
        for name, owned in sorted(self.owned.items()):
            for number in owned.get(topic, ()):
                owners.setdefault(number, []).append(name)
        return dict(sorted(owners.items()))

    def processed(self, who: str | None = None, since: int = 0) -> dict[tuple[str, int], list[int]]:
        """Partition -> the offsets that were processed, in order, as often as they were."""
        offsets: dict[tuple[str, int], list[int]] = {}
        for event in self.events(RecordsProcessed, who, since):
            offsets.setdefault((event.topic, event.partition), []).extend(
                range(event.first_offset, event.last_offset + 1)
            )
        return offsets

    def leader_of(self, topic: str, partition: int) -> int:
        """As the controller has it."""
        controller = self.world.processes["controller"].machine
        assert isinstance(controller, Controller)
        return controller.image.topics[topic][partition].leader

    def coordinator(self, group: str = "g") -> GroupCoordinator:
        for process in self.world.processes.values():
            machine = process.machine
            lives = process.is_alive and not process.host.is_paused
            if lives and isinstance(machine, GroupCoordinator) and partition_for(group, 4) in machine.shards:
                return machine
        raise AssertionError("nobody coordinates it")

    def committed(self, group: str = "g") -> dict[tuple[str, int], int]:
        shard = self.coordinator(group).shards[partition_for(group, 4)]
        return {key: offset.offset for key, offset in sorted(shard.committed.offsets.get(group, {}).items())}
