"""A scenario in the simulator: the cluster is built, its clients start, and what the timeline says is done to it.

Everything that breaks is an event with a beginning and an end. Whatever is still broken at the end is mended.
"""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Any

import msgspec

from cluster import producer
from cluster.assignors import Assignor
from cluster.broker import broker
from cluster.consumer import commands
from cluster.events import BrokerStopped, FaultBegan, FaultEnded, MemberLeft, Stamped
from cluster.faults import (
    Action,
    Crash,
    Fault,
    Pause,
    Roles,
    Silence,
    SlowDisk,
    Stop,
    Target,
    Vacant,
)
from cluster.sim import hosts
from cluster.sim.deploy import CONTROLLER, deploy, is_ready, node_of
from cluster.sim.world import Only, World
from cluster.wire import control
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.log import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from scenarios import actions
from scenarios.assignors import find
from scenarios.cast import OPERATOR, Operator, has_ended, last_words, make_consumer, make_producer
from scenarios.links import DISTURBANCES, Disturbance, Links
from scenarios.schema import Group, Scenario

READY_MS = 60_000                              # a cluster that is not ready by then never will be
STOP_MS = 300_000                              # how long somebody who was asked to stop may take
RETRY_MS = 100                                 # a role that nobody plays now may be taken soon
DOWN = (Crash, Silence, Stop)                  # what keeps a host down


class NotReady(RuntimeError):
    """The cluster did not come up as the scenario wants it."""


class Broken(msgspec.Struct, frozen=True):
    """A fault under way: what ends it."""

    number: int
    fault: Fault
    hosts: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()


class Simulation:
    def __init__(self, scenario: Scenario, seed: int = 0, *, through_codec: bool = False) -> None:
        self.scenario = scenario
        self.seed = seed
        self.world = World(seed=seed, latency_ms=scenario.cluster.latency_ms, through_codec=through_codec)
        self.roles = Roles({}, scenario.cluster.config.offsets_topic_num_partitions)
        self.nodes: dict[str, str] = self.roles.nodes      # type: ignore[assignment]
        self.world.observers += [self.roles, Only((BrokerStopped, MemberLeft), self._observe)]
        self.begin = 0
        self.members: dict[str, int] = {}      # group -> how many there have been
        self.agenda: list[tuple[int, int, str, Any]] = []
        self.broken: dict[int, Broken] = {}
        self.links = Links(self.world)
        self.stopping: dict[str, int] = {}     # host that was asked to stop -> the number of the fault
        self._entries = 0
        self._faults = 0
        self._assignors: dict[str, Assignor] = {}
        self._does: dict[str, Callable[[Any], None]] = {
            "act": self.act, "end": self._end, "start": self._start, "down": self._down, "roll": self._roll,
            "look": self._look}

    # Building

    def prepare(self) -> None:
        """Brokers, a controller, the topics. The clock of the timeline starts when they are there."""
        cluster = self.scenario.cluster
        self.world.add(OPERATOR, Operator())
        deploy(self.world, cluster.brokers, cluster.config, cluster.controller, cluster.nodes)
        self.nodes.update({host.name: host.node for host in self.world.hosts.values() if host.name != OPERATOR})
        if not self.world.run_until(lambda: is_ready(self.world), self.world.now + READY_MS):
            raise NotReady("the brokers did not find each other")
        wanted = tuple(CreatableTopic(name, topic.partitions, topic.replication_factor)
                       for name, topic in cluster.topics.items())
        self._make(CreateTopicsRequest(wanted))
        self.begin = self.world.now
        for group in self.scenario.groups.values():
            for number in range(group.members):
                self._schedule(self.begin + number * group.start_every, "start", (group.name, number + 1))
            self.members[group.name] = group.members
        for number, each in enumerate(self.scenario.producers, 1):
            self._add_producer(number, each.topic)
        for step in self.scenario.timeline:
            self._schedule(self.begin + step.at, "act", (step.name, step.action))

    def _make(self, body: Message) -> None:
        operator = self.world.processes[OPERATOR].machine
        assert isinstance(operator, Operator)
        self._ask(body)
        self.world.run_until(lambda: operator.asked in operator.answers, self.world.now + READY_MS)
        answer = operator.answers.get(operator.asked)
        problems = [f"{each.name}: {each.error_message}" for each in getattr(answer, "topics", ())
                    if each.error_code is not Error.NONE]
        if answer is None or problems:
            raise NotReady("; ".join(problems) or "the topics were not made")
        self.world.run(self.world.now + 2 * self.world.network.latency_ms + 2)

    def _start(self, whom: tuple[str, int]) -> None:
        """A member's process begins: for the first time, or as if it never had."""
        group, number = whom
        name = f"{group}-{number}"
        if name not in self.world.processes:
            self._add_member(self.scenario.groups[group], number, name)
            self.world.begin(name)
        elif not self.world.hosts[name].is_up:
            hosts.restart(self.world, name)

    def _add_member(self, group: Group, number: int, name: str) -> None:
        config = group.config_of(number)
        for each in config.partition_assignment_strategy:
            self._assignors.setdefault(each, find(each))
        birth = partial(make_consumer, name, group.name, config, self._bootstrap(), self._assignors, self.seed)
        node = node_of(number, self.scenario.cluster.nodes)
        self.world.add(name, birth, name, node, opening=(commands.Subscribe(group.topics, group.pattern),))
        self.nodes[name] = node
        self._cut_off(name)

    def _add_producer(self, number: int, topic: str) -> None:
        name = f"producer-{number}"
        config = self.scenario.producers[number - 1].config
        birth = partial(make_producer, name, topic, config, self._bootstrap(), number, self.seed)
        node = node_of(number, self.scenario.cluster.nodes)
        self.world.add(name, birth, name, node, opening=(producer.Start(),))
        self.nodes[name] = node
        self.world.begin(name)

    def _bootstrap(self) -> tuple[str, ...]:
        return tuple(f"broker-{number}" for number in range(1, self.scenario.cluster.brokers + 1))

    # Running

    def play(self, until: int | None = None) -> None:
        """To an instant of the timeline, or its end."""
        end = self.begin + (self.scenario.until if until is None else until)
        world = self.world
        while self.agenda and self.agenda[0][0] <= end:
            if world.run(max(self.agenda[0][0], world.now)):
                _, _, what, about = heappop(self.agenda)
                self._does[what](about)
        if not world.run(end):
            self.play(until)

    def _schedule(self, due: int, what: str, about: Any) -> None:
        self._entries += 1
        heappush(self.agenda, (due, self._entries, what, about))

    def heal(self) -> None:
        """Mend whatever is broken, and start the brokers that are down; producers stop. Then wait a little."""
        self.agenda.clear()
        for number in list(self.broken):
            self._end(number)
        for name, host in self.world.hosts.items():
            if not host.is_up and (name.startswith("broker-") or name == CONTROLLER):
                hosts.restart(self.world, name)
        for number in range(1, len(self.scenario.producers) + 1):
            self.world.tell(f"producer-{number}", producer.Stop())
        self.world.run(self.world.now + self.scenario.settle)

    def read_back(self) -> None:
        """Have every broker tell what its logs hold."""
        for number in range(1, self.scenario.cluster.brokers + 1):
            self.world.tell(f"broker-{number}", broker.READ_BACK)

    def _observe(self, stamped: Stamped) -> None:
        """Whoever was asked to stop and is ready for it goes."""
        host, event = stamped.machine, stamped.event
        if host in self.stopping and getattr(event, "cause", "closed") == "closed":
            self._schedule(stamped.at, "down", (host, self.stopping[host]))
            self.world.is_halted = True        # there is something on the agenda for now

    # What the timeline says

    def act(self, entry: tuple[str, Action]) -> None:
        name, action = entry
        try:
            if isinstance(action, Fault):
                self._break(name, action)
            else:
                self._do(action)
        except Vacant:
            self._schedule(self.world.now + RETRY_MS, "act", entry)

    def _do(self, action: Action) -> None:
        if isinstance(action, actions.Join):
            for _ in range(action.members):
                self.members[action.group] += 1
                self._start((action.group, self.members[action.group]))
        elif isinstance(action, actions.Roll):
            for index, host in enumerate(self.roles.hosts(action.who)):
                self._schedule(self.world.now + index * action.every, "roll", (host, action.down, str(action.who)))
        elif isinstance(action, actions.Subscribe):
            self._tell(action.who, commands.Subscribe(action.topics, action.pattern))
        elif isinstance(action, actions.Unsubscribe):
            self._tell(action.who, commands.Unsubscribe())
        elif isinstance(action, actions.Process):
            self._tell(action.who, commands.SetProcessing(float(action.per_record)))
        elif isinstance(action, actions.CreateTopic):
            topic = CreatableTopic(action.topic, action.partitions, action.replication_factor)
            self._ask(CreateTopicsRequest((topic,)))
        elif isinstance(action, actions.Grow):
            self._ask(CreatePartitionsRequest((CreatePartitionsTopic(action.topic, action.partitions),)))
        elif isinstance(action, actions.DeleteTopic):
            self._ask(DeleteTopicsRequest((action.topic,)))
        elif isinstance(action, actions.Elect):
            self._ask(control.ElectLeadersRequest())

    def _tell(self, who: Target, command: object) -> None:
        for host in self.roles.hosts(who):
            if self.world.hosts[host].is_up:
                self.world.tell(host, command)

    def _ask(self, body: Message) -> None:
        """Of any broker: it passes it on."""
        self.world.tell(OPERATOR, (self._bootstrap(), body))

    # Faults

    def _break(self, name: str, fault: Fault) -> None:
        if isinstance(fault, DISTURBANCES):
            self._disturb(name, fault)
            return
        for host in self.roles.hosts(fault.who):           # type: ignore[attr-defined]
            self._hit(name, fault, host, str(fault.who))   # type: ignore[attr-defined]

    def _hit(self, name: str, fault: Fault, host: str, target: str) -> None:
        place = self.world.hosts[host]
        is_deaf = not place.is_up or (isinstance(fault, Stop) and host in self.stopping)
        if is_deaf and isinstance(fault, (Pause, Stop)):
            return                             # there is nobody to pause, or to ask
        number = self._begin(name, fault, target, (host,))
        if isinstance(fault, Pause):
            hosts.pause(self.world, host)
        elif isinstance(fault, SlowDisk):
            self._set_disk(host)
        elif isinstance(fault, (Crash, Silence)):
            self._kill(fault, host)
        elif isinstance(fault, Stop):
            self.stopping[host] = number
            self.world.tell(host, last_words(host))
            self._schedule(self.world.now + STOP_MS, "down", (host, number))
            self._schedule(self.world.now + RETRY_MS, "look", (host, number))

    def _kill(self, fault: Crash | Silence, host: str) -> None:
        """With what is dead its pause is over, and nobody waits for it to stop."""
        for pause in [each for each in self.broken.values() if isinstance(each.fault, Pause) and host in each.hosts]:
            self._end(pause.number)
        place = self.world.hosts[host]
        if place.is_up:
            (hosts.silence_host if isinstance(fault, Silence) else hosts.crash)(self.world, host)
        place.is_silent = place.is_silent or isinstance(fault, Silence)
        self._down((host, self.stopping.get(host, 0)))

    def _begin(self, name: str, fault: Fault, target: str, who: tuple[str, ...],
               links: tuple[tuple[str, str], ...] = ()) -> int:
        self._faults += 1
        processes = [process.name for host in who for process in self.world.hosts[host].processes]
        detail = {"hosts": list(who), "processes": processes} | {
            field.encode_name: _plain(getattr(fault, field.name)) for field in msgspec.structs.fields(fault)
            if field.encode_name not in ("who", "link") and getattr(fault, field.name) is not None}
        shown = ", ".join(f"{a} -> {b}" for a, b in links) or ", ".join(who)
        self.world.emit(FaultBegan(self._faults, name, shown, target, "simulated", detail))
        self.broken[self._faults] = Broken(self._faults, fault, who, links)
        lasts = getattr(fault, "for_", None)
        if lasts is not None and not isinstance(fault, Stop):
            self._schedule(self.world.now + lasts, "end", self._faults)
        return self._faults

    def _end(self, number: int) -> None:
        broken = self.broken.pop(number, None)
        if broken is None:
            return
        for pair in broken.links:
            self.links.mend(pair, number)
        for host in broken.hosts:
            self._mend(broken.fault, host)
        self.world.emit(FaultEnded(number))

    def _mend(self, fault: Fault, host: str) -> None:
        """Undo what it did, unless another fault does the same."""
        place = self.world.hosts[host]
        others = [each.fault for each in self.broken.values() if host in each.hosts]
        if isinstance(fault, Pause) and not any(isinstance(each, Pause) for each in others):
            hosts.wake(self.world, host)
        elif isinstance(fault, SlowDisk):
            self._set_disk(host)
        elif isinstance(fault, DOWN):
            if self.stopping.pop(host, None) is not None:
                hosts.crash(self.world, host)  # the end comes before it has managed to stop
            place.is_silent = any(isinstance(each, Silence) for each in others)
            if not place.is_up and not any(isinstance(each, DOWN) for each in others):
                hosts.restart(self.world, host)

    def _set_disk(self, host: str) -> None:
        """As slow as the worst that is wrong with it."""
        wrong = [each.fault.by for each in self.broken.values()
                 if isinstance(each.fault, SlowDisk) and host in each.hosts]
        hosts.slow_disk(self.world, host, max(wrong, default=0))

    def _look(self, whom: tuple[str, int]) -> None:
        """Some stop without a word: who is in no group has none to leave."""
        host, number = whom
        if self.stopping.get(host) != number:
            return
        place = self.world.hosts[host]
        if not place.is_paused and has_ended(place.processes[0].machine):
            self._down(whom)
        else:
            self._schedule(self.world.now + RETRY_MS, "look", whom)

    def _down(self, whom: tuple[str, int]) -> None:
        """Who was asked to stop has stopped, or has had its time. It comes back so long after that."""
        host, number = whom
        if self.stopping.get(host) != number:
            return
        del self.stopping[host]
        if self.world.hosts[host].is_up:
            hosts.crash(self.world, host)
        fault = self.broken[number].fault
        if isinstance(fault, Stop) and fault.for_ is not None:
            self._schedule(self.world.now + fault.for_, "end", number)

    def _roll(self, whom: tuple[str, int, str]) -> None:
        """One of several that are restarted one after the other."""
        host, down_ms, target = whom
        fault = Stop(Target("member", text=target), for_=down_ms)      # type: ignore[arg-type]
        self._hit("stop", fault, host, target)

    # The network

    def _disturb(self, name: str, fault: Disturbance) -> None:
        pairs = self._pairs(fault)
        hit = tuple(dict.fromkeys(host for pair in pairs for host in pair)) if fault.who is None else tuple(
            self.roles.hosts(fault.who))
        number = self._begin(name, fault, str(fault.link or fault.who), hit, tuple(pairs))
        for pair in pairs:
            self.links.disturb(pair, number, fault)

    def _cut_off(self, late: str) -> None:
        """Whoever comes when others are cut off from everybody is cut off from them, too."""
        for number, broken in list(self.broken.items()):
            fault = broken.fault
            if isinstance(fault, DISTURBANCES) and fault.who is not None:
                pairs = tuple(pair for host in broken.hosts for pair in ((host, late), (late, host)))
                self.broken[number] = msgspec.structs.replace(broken, links=broken.links + pairs)
                for pair in pairs:
                    self.links.disturb(pair, number, fault)

    def _pairs(self, fault: Disturbance) -> list[tuple[str, str]]:
        if fault.who is not None:
            inside = self.roles.hosts(fault.who)
            outside = [host for host in self.nodes if host not in inside]
            return [pair for a in inside for b in outside for pair in ((a, b), (b, a))]
        assert fault.link is not None
        ends = [(a, b) for a in self.roles.hosts(fault.link.source) for b in self.roles.hosts(fault.link.target)
                if a != b]
        return [pair for a, b in ends for pair in ([(a, b), (b, a)] if fault.link.both else [(a, b)])]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value
