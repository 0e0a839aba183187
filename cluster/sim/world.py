"""Virtual time: machines, their messages and their timers, one event after the other, always in the same order.

Time passes only from event to event. At one instant messages come before timers, as they came and as they were set, so
a machine that was beaten just in time is not late. What machines emit goes to `observers`, stamped. A world's state is
a function of its seed and of what was done to it; `hosts.py` has what can be done to hosts.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

import msgspec

from cluster.events import Event, Stamped
from cluster.machine import (
    CancelTimer,
    Disconnect,
    Disconnected,
    Effect,
    Emit,
    Envelope,
    Input,
    Machine,
    Received,
    Send,
    SetTimer,
    TimerFired,
    Told,
)
from cluster.sim.network import FINE, Connection, Network
from cluster.wire.apis import API_OF_RESPONSE
from cluster.wire.codec import decode, encode

START_MS = 1_704_067_200_000                   # 2024-01-01T00:00:00Z: virtual time lies in the past, but after 1970

MESSAGE, TIMER = 0, 1                          # which of two things at one instant comes first


class Timer(msgspec.Struct):
    """An armed timer. Its place in the queue may be older than itself: a session that is renewed a thousand times costs
    one entry, which finds out when its time comes that it was moved."""

    due: int
    number: int                                # of its last setting
    queued_due: int
    queued_number: int


class Disk(Protocol):
    """What outlives a process. `writes` grows with every write."""

    writes: int


class NoDisk:
    writes = 0


class Journal(Protocol):
    def sent(self, sender: "Process", envelope: Envelope) -> None: ...
    def arrived(self, receiver: "Process", event: Input) -> None: ...
    def closed(self, process: "Process", peer: str) -> None: ...


class Only(msgspec.Struct, frozen=True):
    """An observer of some kinds of events."""

    hears: tuple[type[Event], ...]
    observe: Callable[[Stamped], None]

    def __call__(self, stamped: Stamped) -> None:
        self.observe(stamped)


Birth = Callable[[int], Machine]               # incarnation -> the machine of a process that begins


class Host(msgspec.Struct, eq=False):
    """The unit of pause, crash and cut: the processes in it live and die together, and nothing comes between them."""

    name: str
    node: str
    disk: Disk
    processes: list["Process"] = []
    is_up: bool = True
    is_silent: bool = False                    # its node is dead: nobody is told
    is_paused: bool = False
    backlog: list[tuple["Process", Input, Connection | None, int]] = []    # what came while it was paused
    slow_ms: int = 0                           # how long a write takes
    busy_until: int = 0                        # what a step did before is not done until then


class Process(msgspec.Struct, eq=False):
    """One incarnation of a machine."""

    name: str
    host: Host
    machine: Machine
    birth: Birth | None
    incarnation: int = 0
    opening: tuple[object, ...] = ()
    timers: dict[str, Timer] = {}
    events: int = 0
    is_alive: bool = True
    peers: dict[str, Connection] = {}          # with whom it has a connection


class Done(msgspec.Struct, frozen=True):
    """What a step did on a slow disk, done at last."""

    effects: list[Effect]


Entry = tuple[int, int, int, Process, Input | Done, Connection | None]    # due, kind, number, for whom, what, on what


class World:
    def __init__(self, *, seed: int = 0, latency_ms: int = 1, through_codec: bool = False) -> None:
        self.now = START_MS
        self.seed = seed
        self.network = Network(seed, latency_ms)
        self.through_codec = through_codec     # machines cannot tell: the transcript is the same
        self.hosts: dict[str, Host] = {}
        self.processes: dict[str, Process] = {}
        self.observers: list[Callable[[Stamped], None]] = []           # `hears`, if they have it: these kinds only
        self.listeners: list[Callable[[int, Envelope], None]] = []      # they see every message that is sent
        self.journal: Journal | None = None    # sees what leaves, what arrives, and what is closed
        self.held: list[tuple[Process, Process, Input, Connection | None]] = []    # what waits for a cut to heal
        self.events = 0                        # those of the world itself
        self.disturbed: set[str] = set()       # hosts that are paused, or whose disk is slow or was
        self.is_halted = False                 # somebody wants to interfere: `run` returns
        self._queue: list[Entry] = []
        self._number = 0
        self._audience: dict[type[Event], list[Callable[[Stamped], None]]] = {}
        self._audience_of = 0                  # how many observers there were when it was found out

    # Building

    def add(self, name: str, machine: Machine | Birth, host: str | None = None, node: str | None = None,
            disk: Disk | None = None, opening: tuple[object, ...] = ()) -> None:
        """A process that runs a machine; or that makes one, and makes it again when its host is restarted. The disk is
        its host's; the opening is what it is told whenever it begins."""
        assert name not in self.processes, name
        place = self.hosts.get(host or name)
        if place is None:
            place = self.hosts[host or name] = Host(host or name, node or host or name, NoDisk())
        if disk is not None:
            place.disk = disk
        birth = None if hasattr(machine, "step") else machine
        process = Process(name, place, machine(0) if birth is not None else machine, birth,  # type: ignore[operator,arg-type]
                          opening=opening)
        place.processes.append(process)
        self.processes[name] = process

    def replace(self, old: Process, machine: Machine) -> None:
        """The process behind a name is over; another takes its place. Its timers and what was on its way are gone."""
        old.is_alive = False
        old.timers.clear()
        process = Process(old.name, old.host, machine, old.birth, old.incarnation + 1, old.opening, events=old.events)
        old.host.processes[old.host.processes.index(old)] = process
        self.processes[old.name] = process

    def begin(self, host: str) -> None:
        """The processes of a host hear what they are told first."""
        for process in self.hosts[host].processes:
            for command in process.opening:
                self.tell(process.name, command)

    def tell(self, name: str, command: object) -> None:
        """Give a command to a machine, now; if its host is paused, when it wakes up."""
        self._arrive(self.processes[name], Told(command), None)

    def emit(self, event: Event) -> None:
        """Something that no machine can observe: what was done to the world."""
        self.events += 1
        self._observe(Stamped(self.now, "world", self.events, event))

    # Running

    def run(self, until: int) -> bool:
        """Let everything happen that is due until then, and be there. False if it was halted before."""
        queue, take = self._queue, self._take
        while queue and queue[0][0] <= until:
            take(heappop(queue))
            if self.is_halted:
                self.is_halted = False
                return False
        if until > self.now:
            self.now = until
        return True

    def run_until(self, is_done: Callable[[], bool], until: int) -> bool:
        """Let things happen until it is done, but not longer than until then. Was it done?"""
        while not is_done():
            if not self._queue or self._queue[0][0] > until:
                self.now = max(self.now, until)
                return False
            self._take(heappop(self._queue))
        return True

    def step(self) -> bool:
        """One event. False if nothing is left to happen."""
        if self._queue:
            self._take(heappop(self._queue))
        return bool(self._queue)

    def _take(self, entry: Entry) -> None:
        due, kind, number, process, event, connection = entry
        if not process.is_alive or (connection is not None and not connection.is_open):
            return
        if kind == TIMER:
            timer = process.timers.get(event.name)         # type: ignore[union-attr]
            if timer is None or timer.queued_number != number:
                return
            if timer.number != number:
                self._queue_timer(process, event, timer)   # type: ignore[arg-type]
                return
            if not self.disturbed or not process.host.is_paused:
                del process.timers[event.name]             # type: ignore[union-attr]
        if due > self.now:
            self.now = due
        if self.disturbed or self.journal is not None:
            self._arrive(process, event, connection, number)
        else:
            self._carry_out(process, process.machine.step(self.now, event))    # type: ignore[arg-type]

    def _arrive(self, process: Process, event: Input | Done, connection: Connection | None, number: int = 0) -> None:
        host = process.host
        if isinstance(event, Done):
            self._carry_out(process, event.effects)
            return
        if host.is_paused:
            host.backlog.append((process, event, connection, number))
            return
        if not process.is_alive:
            return
        if self.journal is not None:
            self.journal.arrived(process, event)
        if host.slow_ms or host.busy_until > self.now:
            writes = host.disk.writes
            effects = process.machine.step(self.now, event)
            self._finish_later(process, effects, host.disk.writes > writes)
        else:
            self.disturbed.discard(host.name)
            self._carry_out(process, process.machine.step(self.now, event))

    def _finish_later(self, process: Process, effects: list[Effect], wrote: bool) -> None:
        """On a slow disk what a step did is not done until its writes are; and nothing overtakes it. What it observed
        was so when it was observed."""
        host = process.host
        if wrote:
            host.busy_until = max(host.busy_until, self.now + host.slow_ms)
        if host.busy_until > self.now:
            self._carry_out(process, [effect for effect in effects if type(effect) is Emit])
            done = [effect for effect in effects if type(effect) is not Emit]
            self.enqueue(host.busy_until, MESSAGE, process, Done(done))
        else:
            self._carry_out(process, effects)

    def _carry_out(self, process: Process, effects: list[Effect]) -> None:
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                self._send(process, effect.envelope)       # type: ignore[union-attr]
            elif kind is SetTimer:
                self._set_timer(process, effect.name, effect.due)      # type: ignore[union-attr]
            elif kind is Emit:
                process.events += 1
                self._observe(Stamped(self.now, process.name, process.events, effect.event))  # type: ignore[union-attr]
            elif kind is CancelTimer:
                process.timers.pop(effect.name, None)      # type: ignore[union-attr]
            elif kind is Disconnect:
                self.close(process, effect.peer)           # type: ignore[union-attr]

    def _observe(self, stamped: Stamped) -> None:
        if len(self.observers) != self._audience_of:
            self._audience, self._audience_of = {}, len(self.observers)
        kind = type(stamped.event)
        audience = self._audience.get(kind)
        if audience is None:
            audience = self._audience[kind] = [
                each for each in self.observers if kind in getattr(each, "hears", (kind,))]
        for observe in audience:
            observe(stamped)

    # Messages

    def _send(self, sender: Process, envelope: Envelope) -> None:
        """A request opens a connection if there is none. An answer goes back on the one its request came on, and to the
        process that asked; if either is gone, it goes nowhere."""
        for listen in self.listeners:
            listen(self.now, envelope)
        if self.journal is not None:
            self.journal.sent(sender, envelope)
        if self.through_codec:
            envelope = decode(encode(envelope))
        receiver = self.processes.get(envelope.destination)
        is_answer = type(envelope.body) in API_OF_RESPONSE
        if is_answer and (receiver is None or receiver.incarnation != envelope.incarnation):
            return
        if receiver is not None and receiver.host is sender.host:
            self.enqueue(self.now, MESSAGE, receiver, Received(sender.name, envelope))
            return
        connection = sender.peers.get(envelope.destination)
        if connection is None or receiver not in connection.ends:
            connection = self._connect(sender, envelope.destination, receiver, connection, is_answer)
        if connection is not None and receiver is not None:
            self.deliver(sender, receiver, Received(sender.name, envelope), connection)

    def _connect(self, sender: Process, name: str, receiver: Process | None, known: Connection | None,
                 is_answer: bool) -> Connection | None:
        """A connection with whoever has that name. A successor of the one it was opened with knows nothing of it, and
        closes it; so does a host where nobody listens. A silent one does nothing."""
        if known is not None:
            _forget(known)
        if is_answer:
            return None
        if known is not None or receiver is None or not (receiver.host.is_up or receiver.host.is_silent):
            self.enqueue(self.now + self.network.latency_ms, MESSAGE, sender, Disconnected(name))
            return None
        connection = sender.peers[name] = receiver.peers[sender.name] = Connection(
            (sender, receiver), is_made=not self.network.conditions)
        return connection

    def deliver(self, sender: Process, receiver: Process, event: Input, connection: Connection | None) -> None:
        """Put something on its way from process to process; behind whatever went that way before."""
        if not receiver.is_alive:
            return                             # silent: nobody is told. Of one that crashed, they have been
        network = self.network
        condition = FINE
        due = self.now + network.latency_ms
        if network.conditions:
            source, target = sender.host.name, receiver.host.name
            condition = network.conditions.get((source, target), FINE)
            if condition.is_cut or not self._is_made(connection, target, source):
                self.held.append((sender, receiver, event, connection))
                return
            if condition is not FINE:
                due = self.now + network.travel_ms(source, target)
        if connection is not None and not condition.reordered_ms:
            if connection.ends[0] is receiver:
                connection.first_free = due = due if due > connection.first_free else connection.first_free
            else:
                connection.second_free = due = due if due > connection.second_free else connection.second_free
        self._number += 1
        heappush(self._queue, (due, MESSAGE, self._number, receiver, event, connection))
        if condition is not FINE and network.comes_twice(source, target):
            self.enqueue(due + network.travel_ms(source, target), MESSAGE, receiver, event, connection)

    def _is_made(self, connection: Connection | None, source: str, target: str) -> bool:
        """A new connection needs an answer before anything goes over it."""
        if connection is not None and not connection.is_made:
            connection.is_made = not self.network.condition(source, target).is_cut
            return connection.is_made
        return True

    def close(self, process: Process, peer: str) -> None:
        """One side closes: what was in flight is gone, and the other side feels it when it can."""
        connection = process.peers.get(peer)
        if connection is None:
            return
        connection.is_open = False
        _forget(connection)
        if self.journal is not None:
            self.journal.closed(process, peer)
        other = self.processes.get(peer)
        if other is not None and other in connection.ends:
            self.deliver(process, other, Disconnected(process.name), None)

    def enqueue(self, due: int, kind: int, process: Process, event: Input | Done,
                connection: Connection | None = None) -> None:
        self._number += 1
        heappush(self._queue, (due, kind, self._number, process, event, connection))

    # Timers

    def _set_timer(self, process: Process, name: str, due: int) -> None:
        self._number += 1
        if due < self.now:
            due = self.now
        timer = process.timers.get(name)
        if timer is None:
            timer = process.timers[name] = Timer(due, self._number, due, self._number)
        else:
            timer.due, timer.number = due, self._number
            if due >= timer.queued_due:
                return
        self._queue_timer(process, TimerFired(name), timer)

    def requeue_timer(self, process: Process, event: TimerFired, number: int) -> None:
        """A timer that came due while its host was paused fires now, unless somebody moves it before."""
        heappush(self._queue, (self.now, TIMER, number, process, event, None))

    def _queue_timer(self, process: Process, event: TimerFired, timer: Timer) -> None:
        timer.queued_due, timer.queued_number = timer.due, timer.number
        heappush(self._queue, (timer.due, TIMER, timer.number, process, event, None))


def _forget(connection: Connection) -> None:
    """Neither end has it any more, unless it has another one by now."""
    for one, other in (connection.ends, connection.ends[::-1]):
        if one.peers.get(other.name) is connection:
            del one.peers[other.name]
