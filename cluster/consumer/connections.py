"""Requests in flight, over connections that break. Whoever asks is answered, or learns that the request is lost.

A request that nobody answers in its time is given up: its connection is closed, and with it goes all that was asked on
it. A peer that could not be reached is left alone for a while, longer each time. What is lost is put into `failed`; the
machine takes it from there at the end of each step, so that a loss is told after whatever caused it.
"""

from random import Random
from typing import Any

import msgspec

from cluster.consumer.outbox import NEVER, Backoff, Outbox
from cluster.consumer.states import Asked
from cluster.events import RequestGivenUp
from cluster.machine import Envelope
from cluster.wire.apis import API_OF_REQUEST
from cluster.wire.fields import Message

TIMER = "requests"


def broker_name(node: int) -> str:
    """Where a broker listens for everything that is about topics and records."""
    return f"broker-{node}"


def coordinator_name(node: int) -> str:
    """Where it listens for what is about groups: a connection of its own, which no fetch can block."""
    return f"coordinator-{node}"


class Call(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A request that is on its way."""

    number: int                                # its correlation id
    peer: str
    asked: Asked
    body: Message
    sent: int
    due: int                                   # then it is given up
    about: Any = None                          # what its answer is for
    generation: Any = None                     # of the member that asks, if it is about a group


class Peer(msgspec.Struct):
    is_open: bool = False
    failures: int = 0                          # in a row, without an answer in between
    not_before: int = 0                        # no new connection until then


class Connections:
    def __init__(self, out: Outbox, name: str, incarnation: int, request_timeout_ms: int, backoff: Backoff,
                 rng: Random) -> None:
        self.out = out
        self.name = name
        self.incarnation = incarnation
        self.request_timeout_ms = request_timeout_ms
        self.backoff = backoff
        self.rng = rng
        self.calls: dict[int, Call] = {}
        self.peers: dict[str, Peer] = {}
        self.failed: list[Call] = []
        self._number = 0

    def ask(self, peer: str, asked: Asked, body: Message, about: Any = None, generation: Any = None,
            timeout_ms: int | None = None) -> Call:
        out = self.out
        self._number = number = self._number + 1
        due = out.now + (self.request_timeout_ms if timeout_ms is None else timeout_ms)
        call = self.calls[number] = Call(number, peer, asked, body, out.now, due, about, generation)
        api = API_OF_REQUEST[type(body)]
        out.send(Envelope(self.name, self.incarnation, peer, api.key, api.last, number, self.name, body))
        out.arm_sooner(TIMER, due)
        return call

    def tell(self, peer: str, body: Message) -> None:
        """Send something that nobody answers."""
        self._number += 1
        api = API_OF_REQUEST[type(body)]
        self.out.send(Envelope(self.name, self.incarnation, peer, api.key, api.last, self._number, self.name, body))

    def answered(self, envelope: Envelope) -> Call | None:
        """Which request this answers; None if nobody waits for it any more."""
        peer = self.peers.get(envelope.source)
        if peer is None:
            peer = self.peers[envelope.source] = Peer()
        peer.is_open = True
        peer.failures = 0
        return self.calls.pop(envelope.correlation_id, None)

    # What breaks

    def close(self, name: str) -> None:
        self.out.disconnect(name)
        self.disconnected(name)

    def disconnected(self, name: str) -> None:
        """The connection is gone: so is what was asked on it, and the next one has to wait a little."""
        peer = self.peers.setdefault(name, Peer())
        peer.is_open = False
        peer.not_before = self.out.now + self.backoff.ms(peer.failures, self.rng)
        peer.failures += 1
        for call in [call for call in self.calls.values() if call.peer == name]:
            del self.calls[call.number]
            self.failed.append(call)

    def give_up(self) -> None:
        """Close the connections on which something is overdue."""
        now = self.out.now
        for call in [call for call in self.calls.values() if call.due <= now]:
            self.out.emit(RequestGivenUp(call.peer, call.asked, call.number))
            if call.number in self.calls:
                self.close(call.peer)
        if self.calls:
            self.out.arm_sooner(TIMER, min(call.due for call in self.calls.values()))

    def close_all(self) -> None:
        """Without telling anybody: whoever waited is gone as well."""
        asked = [call.peer for call in self.calls.values()]
        for name in dict.fromkeys([*[name for name, peer in self.peers.items() if peer.is_open], *asked]):
            self.out.disconnect(name)
        self.calls.clear()
        self.failed.clear()
        self.peers.clear()
        self.out.disarm(TIMER)

    # Whom to ask

    def is_down(self, name: str) -> bool:
        """Is it too early to try this peer again?"""
        peer = self.peers.get(name)
        return peer is not None and not peer.is_open and self.out.now < peer.not_before

    def up_at(self, names: tuple[str, ...]) -> int:
        """When the first of these may be tried."""
        return min([self.peers[name].not_before if name in self.peers else 0 for name in names], default=NEVER)

    def least_loaded(self, names: tuple[str, ...]) -> str | None:
        """The peer with the fewest requests in flight, any of them if several; None if all are down."""
        usable = [name for name in names if not self.is_down(name)]
        if len(usable) <= 1:
            return usable[0] if usable else None
        load = dict.fromkeys(usable, 0)
        for call in self.calls.values():
            if call.peer in load:
                load[call.peer] += 1
        start = self.rng.randrange(len(usable))
        return min([*usable[start:], *usable[:start]], key=load.__getitem__)

    def is_busy(self, name: str) -> bool:
        return any(call.peer == name for call in self.calls.values())
