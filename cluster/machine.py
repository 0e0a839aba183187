"""The contract: an input and the time go in, a list of effects comes out. A machine can do nothing else.

It has no clock (`now` is an argument, in milliseconds), no socket (it returns `Send`), no thread, no randomness but the
stream it was given. So the same machine runs in the simulator and in an actor, and the same inputs give the same
effects, always. A host carries effects out in their order; it reads its clock once a step.
"""

from typing import Any, Protocol

import msgspec

from cluster.events import Event


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """One message on its way. The incarnation tells a process from its successor of the same name, so that an answer
    to one that died never reaches the next."""

    source: str
    incarnation: int
    destination: str
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    body: Any                                  # a struct of cluster.wire: a request, or the response to one


# Inputs: the only ways the world touches a machine.


class Received(msgspec.Struct, frozen=True, gc=False):
    sender: str
    envelope: Envelope


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The connection with this peer was closed; whatever was in flight on it is gone."""

    peer: str


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    name: str


class Told(msgspec.Struct, frozen=True, gc=False):
    """A command from whoever runs this machine: start, stop, subscribe."""

    command: Any


Input = Received | Disconnected | TimerFired | Told


# Effects: carried out by the host, in order.


class Send(msgspec.Struct, frozen=True, gc=False):
    to: str
    envelope: Envelope


class Disconnect(msgspec.Struct, frozen=True, gc=False):
    """Close our side of the connection; what was in flight on it is gone."""

    peer: str


class SetTimer(msgspec.Struct, frozen=True, gc=False):
    """Arm a timer, or move it if it is armed: it never fires for its old time. Timers are names, so they print, survive
    a replay, and come back as input."""

    name: str
    due: int


class CancelTimer(msgspec.Struct, frozen=True, gc=False):
    name: str


class Emit(msgspec.Struct, frozen=True, gc=False):
    """Something was observed. The host stamps and keeps it; no machine ever reads one."""

    event: Event


Effect = Send | Disconnect | SetTimer | CancelTimer | Emit


class Machine(Protocol):
    def step(self, now: int, event: Input) -> list[Effect]: ...
