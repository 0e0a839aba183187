"""Who takes part in a scenario beside its brokers: consumers, producers, and an operator."""

from random import Random
from typing import Any

from cluster import producer
from cluster.assignors import Assignor
from cluster.broker import broker
from cluster.config import ConsumerConfig, ProducerConfig
from cluster.consumer import commands
from cluster.consumer.consumer import Consumer
from cluster.consumer.polling import Doing
from cluster.machine import (
    Disconnect,
    Disconnected,
    Effect,
    Input,
    Machine,
    Received,
    Send,
    SetTimer,
    TimerFired,
    Told,
)
from cluster.producer import Producer
from cluster.wire.apis import request
from cluster.wire.fields import Message

OPERATOR = "operator"


class Operator:
    """Asks brokers for topics and elections, on behalf of the timeline: one after the other, until one has answered."""

    PATIENCE_MS = 10_000                       # then the next broker is asked
    PAUSE_MS = 500                             # after one that could not be reached

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {}
        self.asked = 0
        self._open: dict[int, tuple[tuple[str, ...], Message]] = {}    # whom to ask next, and what

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told):
            self.asked += 1
            self._open[self.asked] = event.command
            return self._ask(now, self.asked)
        if isinstance(event, Received):
            self._open.pop(event.envelope.correlation_id, None)
            self.answers[event.envelope.correlation_id] = event.envelope.body
        elif isinstance(event, TimerFired) and int(event.name) in self._open:
            brokers, body = self._open[int(event.name)]
            self._open[int(event.name)] = (*brokers[1:], brokers[0]), body
            return [Disconnect(brokers[0]), *self._ask(now, int(event.name))]
        elif isinstance(event, Disconnected):
            return [SetTimer(str(number), now + self.PAUSE_MS) for number, (brokers, _) in self._open.items()
                    if brokers[0] == event.peer]
        return []

    def _ask(self, now: int, number: int) -> list[Effect]:
        (broker, *_), body = self._open[number]
        asked = request(body, source=OPERATOR, destination=broker, correlation_id=number, client_id=OPERATOR)
        return [Send(broker, asked), SetTimer(str(number), now + self.PATIENCE_MS)]


def make_consumer(name: str, group_id: str, config: ConsumerConfig, bootstrap: tuple[str, ...],
                  assignors: dict[str, Assignor], seed: int, incarnation: int) -> Consumer:
    return Consumer(name, group_id, config, bootstrap, assignors, Random(f"{seed}/{name}/{incarnation}"), incarnation)


def make_producer(name: str, topic: str, config: ProducerConfig, bootstrap: tuple[str, ...], number: int, seed: int,
                  incarnation: int) -> Producer:
    return Producer(name, topic, config, bootstrap, Random(f"{seed}/{name}/{incarnation}"), number, incarnation)


def last_words(host: str) -> object:
    """What asks somebody to stop."""
    if host.startswith("broker-"):
        return broker.STOP
    return producer.Stop() if host.startswith("producer-") else commands.Close()


def has_ended(machine: Machine) -> bool:
    """Has a client that was told to stop nothing left to do?"""
    if isinstance(machine, Consumer):
        return machine.application.doing is Doing.NOTHING
    return isinstance(machine, Producer) and not machine.is_started and not any(
        lane.batches or lane.in_flight for lane in machine.lanes.values())
