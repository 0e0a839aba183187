"""A group of one topic, driven by hand, and what can be seen of it."""

from typing import Any

from cluster.events import (
    Event,
    SessionRenewed,
    Stamped,
)
from scenarios.dialogue import Dialogue
from scenarios.playing import play, step_from


class Scene:
    """A group of one topic, and what can be seen of it."""

    def __init__(self, **config: int) -> None:
        given = {key.replace("_", "."): value for key, value in config.items()}
        self.dialogue = Dialogue(
            {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 500, **given}, {"t": 2, "u": 1}
        )
        self.seen: list[Stamped] = []
        self.dialogue.world.observers.append(self.seen.append)

    def say(self, do: str, member: str | None = None, **fields: Any) -> Any:
        step = {"do": do, **fields} | ({} if member is None else {"member": member})
        return play(self.dialogue, step_from({key.replace("async_", "async"): value for key, value in step.items()}))()

    def hear(self, name: str) -> Any:
        """The answer to what was said with that name, or None while there is none."""
        waits = play(self.dialogue, step_from({"still_waiting": name}))()
        return None if waits else play(self.dialogue, step_from({"await": name}))()

    def wait(self, ms: int) -> None:
        self.dialogue.wait(ms)

    def state(self) -> str:
        return str(self.say("describe")["state"])

    def events(self, kind: type[Event]) -> list[Any]:
        return [stamped.event for stamped in self.seen if isinstance(stamped.event, kind)]

    def renewals(self, member: str) -> int:
        return len(
            [event for event in self.events(SessionRenewed) if event.member_id == self.dialogue.newest_id(member)]
        )

    def alone(self, **fields: Any) -> None:
        """a is alone in a group that is completing its rebalance."""
        self.say("join", "a", **fields)
        self.say("join", "a", **fields)

    def together(self, **fields: Any) -> None:
        """a leads, b follows; the plan is awaited."""
        self.alone(**fields)
        self.say("join", "b", **fields)
        self.say("join", "b", async_="b", **fields)
        self.say("join", "a", **fields)

    def stable(self, **fields: Any) -> None:
        self.together(**fields)
        self.say("sync", "a", assign={"a": "p0", "b": "p1"})
        self.say("sync", "b")

    def preparing(self, **fields: Any) -> None:
        """A stable group that a third member joins."""
        self.stable(**fields)
        self.say("join", "c", **fields)
        self.say("join", "c", async_="c", **fields)
