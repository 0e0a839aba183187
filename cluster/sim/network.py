"""The network between hosts behaves like TCP: in order, nothing twice; what is lost comes late; what is cut off waits.

A connection joins two processes. It opens with the first message and is closed by either side, or by the death of a
process; the death of a whole machine (a node) closes nothing: it is only silent. Conditions are set for each direction
of a link between two hosts. Duplication and reordering exist only where `not_tcp` asks for them.
"""

from random import Random
from typing import Any

import msgspec

RETRANSMIT_MS = 200                            # the first wait before something lost is sent again; then twice as long


class Condition(msgspec.Struct, frozen=True):
    """What one direction of a link is like. `delay_ms` comes on top of the network's own latency."""

    delay_ms: int = 0
    jitter_ms: int = 0
    loss: float = 0.0                          # how often a transmission is lost, 0 to 1
    is_cut: bool = False
    duplicated: float = 0.0                    # not TCP: how often a message comes twice,
    reordered_ms: int = 0                      # and by how much it may overtake others


FINE = Condition()


class Connection(msgspec.Struct, eq=False):
    """Two processes that talk. `ends` are the processes themselves: a successor of the same name is another end."""

    ends: tuple[Any, Any]
    is_open: bool = True
    is_made: bool = False                     # until then a cut of either direction stops it
    first_free: int = 0                        # when the last message arrives at the first end: nothing overtakes it,
    second_free: int = 0                       # and at the second


class Network:
    def __init__(self, seed: int, latency_ms: int) -> None:
        self.seed = seed
        self.latency_ms = latency_ms
        self.conditions: dict[tuple[str, str], Condition] = {}      # (from host, to host) -> where it is not fine
        self._streams: dict[tuple[str, str], Random] = {}

    def set(self, source: str, target: str, condition: Condition) -> None:
        """Change one direction of a link."""
        if condition == FINE:
            self.conditions.pop((source, target), None)
        else:
            self.conditions[source, target] = condition

    def condition(self, source: str, target: str) -> Condition:
        return self.conditions.get((source, target), FINE)

    def travel_ms(self, source: str, target: str) -> int:
        """How long a message takes from host to host, as its link is now. Must not be asked of one that is cut."""
        condition = self.conditions.get((source, target))
        if condition is None:
            return self.latency_ms
        stream = self._stream(source, target)
        travel_ms = self.latency_ms + condition.delay_ms
        if condition.jitter_ms:
            travel_ms += stream.randrange(condition.jitter_ms + 1)
        wait_ms = RETRANSMIT_MS
        while condition.loss and stream.random() < condition.loss and wait_ms < 100_000:
            travel_ms += wait_ms
            wait_ms *= 2
        if condition.reordered_ms:
            travel_ms += stream.randrange(condition.reordered_ms + 1)
        return travel_ms

    def comes_twice(self, source: str, target: str) -> bool:
        condition = self.conditions.get((source, target))
        return condition is not None and condition.duplicated > 0 and (
            self._stream(source, target).random() < condition.duplicated)

    def _stream(self, source: str, target: str) -> Random:
        """Each direction of each link has its own randomness, so that what happens on one does not change another."""
        stream = self._streams.get((source, target))
        if stream is None:
            stream = self._streams[source, target] = Random(f"{self.seed}/link/{source} -> {target}")
        return stream
