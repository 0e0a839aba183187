"""The rule about messages: whoever asks is answered, or disconnected, or gives up in time. Nobody waits for ever."""

from cluster.checks.rule import Handler, Rule
from cluster.events import (
    ConnectionClosed,
    Event,
    FaultBegan,
    FaultEnded,
    ProcessDied,
    RequestGivenUp,
    RequestSent,
    ResponseArrived,
)

SLACK_MS = 1000                                # a round trip, and the tick of a timer

Asked = tuple[int, int, str]                   # when, how long it may take, what


class Unanswered(Rule):
    """A request is neither answered, nor disconnected, nor given up by its sender within its timeout. And where nothing
    is broken, nobody has a reason to give up; but a SyncGroup waits for the leader of the group, which may be slow."""

    name = "unanswered"

    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, dict[tuple[str, int], Asked]] = {}     # machine -> (whom, which number) -> what
        self.faults: dict[int, FaultBegan] = {}
        self.last_fault = -1                   # when the last one ended, or -1
        self.paused: dict[str, tuple[int | None, int]] = {}        # process -> since when, and how long in all

    def hears(self) -> dict[type[Event], Handler]:
        return {RequestSent: self._sent, ResponseArrived: self._arrived, RequestGivenUp: self._given_up,
                ConnectionClosed: self._closed, ProcessDied: self._died, FaultBegan: self._began,
                FaultEnded: self._ended}

    def _sent(self, at: int, machine: str, event: RequestSent) -> None:
        if event.timeout_ms:
            waiting = self.waiting.get(machine)
            if waiting is None:
                waiting = self.waiting[machine] = {}
            waiting[event.destination, event.correlation_id] = at, event.timeout_ms, event.api

    def _arrived(self, at: int, machine: str, event: ResponseArrived) -> None:
        self.seen += 1
        asked = self.waiting.get(machine, {}).pop((event.source, event.correlation_id), None)
        if asked is not None and at - asked[0] > asked[1]:
            self._too_long(at, machine, event.source, asked)

    def _given_up(self, at: int, machine: str, event: RequestGivenUp) -> None:
        self.seen += 1
        asked = self.waiting.get(machine, {}).pop((event.destination, event.correlation_id), None)
        if asked is not None and not self.faults and self.last_fault < asked[0] and event.api != "SyncGroup":
            self.broken(at, f"{machine} gave up {event.api} at {event.destination} after {at - asked[0]} ms, "
                        "and nothing was broken", members=(machine,))

    def _closed(self, at: int, machine: str, event: ConnectionClosed) -> None:
        waiting = self.waiting.get(machine, {})
        for whom, number in [each for each in waiting if each[0] == event.peer]:
            asked = waiting.pop((whom, number))
            if at - asked[0] > asked[1]:
                self._too_long(at, machine, whom, asked)

    def _died(self, _: int, __: str, event: ProcessDied) -> None:
        self.waiting.pop(event.name, None)

    # Whoever is frozen cannot give up

    def _began(self, at: int, _: str, event: FaultBegan) -> None:
        self.faults[event.fault] = event
        if event.what == "pause":
            for name in event.detail.get("processes", ()):
                self.paused[name] = at, self.paused.get(name, (None, 0))[1]

    def _ended(self, at: int, _: str, event: FaultEnded) -> None:
        began = self.faults.pop(event.fault, None)
        self.last_fault = at
        if began is not None and began.what == "pause":
            for name in began.detail.get("processes", ()):
                since, so_far = self.paused.get(name, (None, 0))
                self.paused[name] = None, so_far + (0 if since is None else at - since)

    def _frozen_ms(self, machine: str, at: int) -> int:
        since, so_far = self.paused.get(machine, (None, 0))
        return so_far + (0 if since is None else at - since)

    def _too_long(self, at: int, machine: str, whom: str, asked: Asked) -> None:
        sent_at, timeout_ms, api = asked
        if at - sent_at - self._frozen_ms(machine, at) > timeout_ms + SLACK_MS:
            self.broken(at, f"{machine} has waited for {api} of {whom} for {at - sent_at} ms", members=(machine,))

    def conclude(self, now: int) -> None:
        for machine, waiting in self.waiting.items():
            for (whom, _), asked in waiting.items():
                if now - asked[0] > asked[1]:
                    self._too_long(now, machine, whom, asked)
