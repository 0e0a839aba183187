"""Three brokers and a group driven by hand, whose coordinator goes: cleanly, killed or frozen."""

from collections.abc import Callable
from typing import Any

from cluster.broker import broker
from cluster.config import BrokerConfig, ControllerConfig, settings
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.events import BrokerFenced, BrokerStopped, Event, GroupLoaded, Stamped
from cluster.java import partition_for
from cluster.machine import Disconnected, Effect, Input
from cluster.sim import hosts
from cluster.sim.deploy import deploy, is_ready
from cluster.sim.world import World
from cluster.wire.apis import request
from cluster.wire.fields import Message
from cluster.wire.groups import FindCoordinatorRequest
from scenarios.dialogue import Call, Dialogue, Hand
from scenarios.playing import step_from
from scenarios.verbs import Verb
from tests.unit.scene import Scene

GROUP = "main"
PARTITIONS = 4
HOME = partition_for(GROUP, PARTITIONS)
CLOSED = "closed"
WAYS = ("clean", "killed", "frozen")


class Phone(Hand):
    """A hand that also feels when it is hung up on."""

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Disconnected):
            for call in self.calls.values():
                if call.envelope.destination == event.peer and call.answered_at is None:
                    call.answered_at, call.answer = now, CLOSED
        return super().step(now, event)


class Trio(Dialogue):
    """Members that do as they are told, and three brokers; what is said goes to `at`, whoever that is."""

    def __init__(self, seed: int = 0, **config: Any) -> None:
        given = {
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 500,
            "offsets.topic.num.partitions": PARTITIONS,
        } | {key.replace("_", "."): value for key, value in config.items()}
        self.config = settings(BrokerConfig, given)
        self.world = World(seed=seed)
        self.hand = Phone(self._heard)
        self.members, self.names, self.groups, self.waiting = {}, {}, {GROUP: None}, {}
        self.at = 1
        self.world.add("hand", self.hand)
        deploy(self.world, 3, self.config, ControllerConfig())
        self.world.run_until(lambda: is_ready(self.world), self.world.now + 10_000)
        self._warm_up({"t": 4, "u": 1})
        self.wait(1000)

    def send(
        self, body: Message, *, member: str | None = None, version: int | None = None, broker: bool = False
    ) -> Call:
        return self.send_to(f"{'broker' if broker else 'coordinator'}-{self.at}", body, member, version)

    def send_to(self, whom: str, body: Message, member: str | None = None, version: int | None = None) -> Call:
        envelope = request(
            body,
            source="hand",
            destination=whom,
            correlation_id=len(self.hand.calls) + 1,
            client_id=member or "hand",
            version=version,
        )
        call = Call(envelope, member, self.world.now)
        self.world.tell("hand", call)
        return call


class Failover(Scene):
    """A group of three brokers. Its coordinator can go in three ways; `take_over` waits for the next one."""

    def __init__(self, seed: int = 0, **config: Any) -> None:
        self.trio = self.dialogue = Trio(seed, **config)
        self.world = self.trio.world
        self.seen: list[Stamped] = []
        self.world.observers.append(self.seen.append)
        self.old = self.trio.at = self.named_by(1)
        self.gone_at = 0

    @property
    def now(self) -> int:
        return self.world.now

    def named_by(self, number: int) -> int:
        """Whom a broker names as the coordinator; -1: nobody."""
        call = self.trio.send_to(f"broker-{number}", FindCoordinatorRequest(coordinator_keys=(GROUP,)))
        self.trio.wait_for(call)
        return int(call.answer.coordinators[0].node_id)

    def others(self) -> list[int]:
        return [number for number in (1, 2, 3) if number != self.old]

    def other_brokers(self) -> list[str]:
        return [f"broker-{number}" for number in self.others()]

    def until(self, is_done: Callable[[], object], within_ms: int = 60_000) -> None:
        assert self.world.run_until(lambda: bool(is_done()), self.now + within_ms), "it did not happen"

    # The coordinator goes

    def go(self, how: str) -> None:
        self.gone_at = self.now
        if how == "clean":
            self.world.tell(f"broker-{self.old}", broker.STOP)
        elif how == "killed":
            hosts.crash(self.world, f"broker-{self.old}")
        else:
            hosts.pause(self.world, f"broker-{self.old}")

    def take_over(self) -> int:
        """Another broker has the group, and what its predecessor wrote is committed; what is said goes to it from now
        on. When it had loaded it."""
        self.until(lambda: self.at_of(GroupLoaded, self.gone_at))
        self.trio.at = int(self.machine_of(GroupLoaded).removeprefix("coordinator-"))
        assert self.trio.at != self.old
        machine = self.world.processes[f"coordinator-{self.trio.at}"].machine
        assert isinstance(machine, GroupCoordinator)
        self.until(lambda: HOME not in machine.loads)
        return self.at_of(GroupLoaded, self.gone_at)[0]

    def fail_over(self, how: str) -> int:
        self.go(how)
        return self.take_over()

    def end(self) -> None:
        """A broker that was told to stop has handed over, and its process ends."""
        self.until(lambda: self.events(BrokerStopped))
        hosts.crash(self.world, f"broker-{self.old}")

    def send(self, do: str, member: str, **fields: Any) -> Call:
        """Say something, and let no time pass."""
        step = step_from({"do": do, "member": member, **fields})
        assert isinstance(step, Verb)
        return self.trio.send(step.build(self.trio), member=member, version=step.VERSION)

    def cut_off(self, *whom: str) -> None:
        for other in whom:
            hosts.cut(self.world, f"broker-{self.old}", other)

    def mend(self, *whom: str) -> None:
        for other in whom:
            hosts.mend(self.world, f"broker-{self.old}", other)

    # What was seen

    def at_of(self, kind: type[Event], since: int = 0) -> list[int]:
        return [each.at for each in self.seen if isinstance(each.event, kind) and each.at >= since]

    def machine_of(self, kind: type[Event]) -> str:
        return [each.machine for each in self.seen if isinstance(each.event, kind)][-1]

    def fenced_at(self) -> int:
        return next(
            each.at
            for each in self.seen
            if isinstance(each.event, BrokerFenced) and each.event.broker == self.old and each.at >= self.gone_at
        )

    def said(self, name: str) -> Call:
        """The call that was made with that name."""
        return self.trio.waiting[name][1]
