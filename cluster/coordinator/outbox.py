"""What a coordinator does to the world during one step, and the timers that are armed."""

import msgspec

from cluster import outbox
from cluster.machine import CancelTimer, SetTimer


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


class Outbox(outbox.Outbox):
    """An outbox that remembers which timers are armed."""

    def __init__(self) -> None:
        super().__init__()
        self._armed: dict[str, Alarm] = {}

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
