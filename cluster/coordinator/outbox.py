"""What a coordinator does to the world during one step: the effects, in order, and the timers that are armed."""

import msgspec

from cluster.events import Event
from cluster.machine import CancelTimer, Effect, Emit, Envelope, Send, SetTimer
from cluster.wire.apis import response
from cluster.wire.fields import Message


class Alarm(msgspec.Struct, frozen=True):
    """A timer: its name, and what it is about for the step in which it fires."""

    name: str
    what: str                                  # session, delay, join, sync of a group; write, expire, tail of a shard
    partition: int
    group_id: str = ""
    member_id: str = ""


def session_alarm(partition: int, group_id: str, member_id: str) -> Alarm:
    group = group_id.replace("%", "%25").replace("/", "%2F")     # so that no two groups and members make one name
    return Alarm(f"session/{group}/{member_id}", "session", partition, group_id, member_id)


def group_alarm(what: str, partition: int, group_id: str) -> Alarm:
    return Alarm(f"{what}/{group_id}", what, partition, group_id)


def shard_alarm(what: str, partition: int) -> Alarm:
    return Alarm(f"{what}/{partition}", what, partition)


class Outbox:
    def __init__(self) -> None:
        self.now = 0
        self.effects: list[Effect] = []
        self._armed: dict[str, Alarm] = {}

    def begin(self, now: int) -> list[Effect]:
        self.now = now
        self.effects = []
        return self.effects

    def send(self, envelope: Envelope) -> None:
        self.effects.append(Send(envelope.destination, envelope))

    def answer(self, asked: Envelope, body: Message) -> None:
        self.effects.append(Send(asked.source, response(asked, body)))

    def emit(self, event: Event) -> None:
        self.effects.append(Emit(event))

    def arm(self, alarm: Alarm, due: int) -> None:
        self._armed[alarm.name] = alarm
        self.effects.append(SetTimer(alarm.name, due))

    def arm_if_idle(self, alarm: Alarm, due: int) -> None:
        if alarm.name not in self._armed:
            self.arm(alarm, due)

    def cancel(self, alarm: Alarm) -> None:
        if self._armed.pop(alarm.name, None) is not None:
            self.effects.append(CancelTimer(alarm.name))

    def fired(self, name: str) -> Alarm | None:
        """What a timer that fired was about; None if nobody knows it any more."""
        return self._armed.pop(name, None)
