"""Virtual time: machines, their messages and their timers, one event after the other, always in the same order.

Time passes only from event to event. At one instant messages come before timers, as they came and as they were set, so
a machine that was beaten just in time is not late. What machines emit goes to `observers`, stamped.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

import msgspec

from cluster.events import Event
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
from cluster.wire.codec import decode, encode

START_MS = 1_704_067_200_000                   # 2024-01-01T00:00:00Z: virtual time lies in the past, but after 1970

MESSAGE, TIMER = 0, 1                          # which of two things at one instant comes first


class Stamped(msgspec.Struct, frozen=True, gc=False):
    """An event, when and where it was observed. `sequence` counts the events of that machine."""

    at: int
    machine: str
    sequence: int
    event: Event


class Timer(msgspec.Struct):
    """An armed timer. Its place in the queue may be older than itself: a session that is renewed a thousand times costs
    one entry, which finds out when its time comes that it was moved."""

    due: int
    number: int                                # of its last setting
    queued_due: int
    queued_number: int


class Host(msgspec.Struct):
    """One machine and what belongs to it."""

    name: str
    machine: Machine
    place: str                                 # machines in one place (a broker and its coordinator) are never apart
    timers: dict[str, Timer] = {}
    events: int = 0


class World:
    def __init__(self, *, latency_ms: int = 1, through_codec: bool = True) -> None:
        self.now = START_MS
        self.latency_ms = latency_ms
        self.through_codec = through_codec     # machines cannot tell: the transcript is the same
        self.hosts: dict[str, Host] = {}
        self.observers: list[Callable[[Stamped], None]] = []
        self.listeners: list[Callable[[int, Envelope], None]] = []      # they see every message that is sent
        self._queue: list[tuple[int, int, int, Host, Input]] = []
        self._numbers = count()

    def add(self, name: str, machine: Machine, place: str | None = None) -> None:
        assert name not in self.hosts, name
        self.hosts[name] = Host(name, machine, place or name)

    def restart(self, name: str, machine: Machine) -> None:
        """The process behind a name dies and another takes its place; its timers, and what was on its way, are gone."""
        self.hosts[name] = Host(name, machine, self.hosts[name].place, events=self.hosts[name].events)

    def tell(self, name: str, command: object) -> None:
        """Give a command to a machine, now."""
        self._step(self.hosts[name], Told(command))

    def run(self, until: int) -> None:
        """Let everything happen that is due until then, and be there."""
        while self._queue and self._queue[0][0] <= until:
            self._next()
        self.now = max(self.now, until)

    def run_until(self, is_done: Callable[[], bool], until: int) -> bool:
        """Let things happen until it is done, but not longer than until then. Was it done?"""
        while not is_done():
            if not self._queue or self._queue[0][0] > until:
                self.now = max(self.now, until)
                return False
            self._next()
        return True

    def _next(self) -> None:
        due, _, number, host, event = heappop(self._queue)
        if self.hosts[host.name] is not host:
            return
        if isinstance(event, TimerFired):
            timer = host.timers.get(event.name)
            if timer is None or timer.queued_number != number:
                return
            if timer.number != number:
                self._queue_timer(host, event, timer)
                return
            del host.timers[event.name]
        self.now = due
        self._step(host, event)

    def _step(self, host: Host, event: Input) -> None:
        for effect in host.machine.step(self.now, event):
            self._carry_out(host, effect)

    def _carry_out(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._send(host, effect.envelope)
        elif isinstance(effect, SetTimer):
            self._set_timer(host, effect.name, max(effect.due, self.now))
        elif isinstance(effect, Emit):
            host.events += 1
            stamped = Stamped(self.now, host.name, host.events, effect.event)
            for observe in self.observers:
                observe(stamped)
        elif isinstance(effect, CancelTimer):
            host.timers.pop(effect.name, None)
        elif isinstance(effect, Disconnect) and effect.peer in self.hosts:
            self._deliver(host, self.hosts[effect.peer], Disconnected(host.name))

    def _send(self, host: Host, envelope: Envelope) -> None:
        """Nobody listens at an address that is not there: the sender finds its connection closed."""
        for listen in self.listeners:
            listen(self.now, envelope)
        if self.through_codec:
            envelope = decode(encode(envelope))
        peer = self.hosts.get(envelope.destination)
        if peer is None:
            self._deliver(host, host, Disconnected(envelope.destination))
        else:
            self._deliver(host, peer, Received(host.name, envelope))

    def _deliver(self, sender: Host, receiver: Host, event: Input) -> None:
        due = self.now if sender.place == receiver.place else self.now + self.latency_ms
        heappush(self._queue, (due, MESSAGE, next(self._numbers), receiver, event))

    def _set_timer(self, host: Host, name: str, due: int) -> None:
        number = next(self._numbers)
        timer = host.timers.get(name)
        if timer is None:
            timer = host.timers[name] = Timer(due, number, due, number)
        elif due >= timer.queued_due:
            timer.due, timer.number = due, number
            return
        else:
            timer.due, timer.number = due, number
        self._queue_timer(host, TimerFired(name), timer)

    def _queue_timer(self, host: Host, event: TimerFired, timer: Timer) -> None:
        timer.queued_due, timer.queued_number = timer.due, timer.number
        heappush(self._queue, (timer.due, TIMER, timer.number, host, event))
