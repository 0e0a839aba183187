"""What a rule is. It hears every event of a kind that matters to it, and can say at any time what it thinks.

There are three answers. Broken means that Kafka's promise is broken, not that something ugly happened. Unknown is said
where nothing was seen that could have broken it, or where what happened puts it outside the promise (an unclean
election).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from cluster.events import Event

MAX_BREACHES = 100                             # of one rule: enough to see what is wrong


class Outcome(StrEnum):
    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


class Breach(msgspec.Struct, frozen=True, omit_defaults=True):
    """One breach of one rule: what, where, when, and what shows it."""

    kind: str
    at: int
    evidence: str
    group_id: str = ""
    topic: str = ""
    partition: int = -1
    offset: int = -1
    members: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    rule: str
    outcome: Outcome
    seen: int                                  # how many events spoke of it
    breaches: tuple[Breach, ...] = ()
    doubts: tuple[str, ...] = ()               # why it cannot be known


Handler = Callable[[int, str, Any], None]      # when, which machine, the event


class Rule:
    name: ClassVar[str]

    def __init__(self) -> None:
        self.breaches: list[Breach] = []
        self.doubts: dict[str, None] = {}
        self.seen = 0

    def hears(self) -> dict[type[Event], Handler]:
        """What it listens to."""
        raise NotImplementedError

    def conclude(self, now: int) -> None:
        """What can only be said at the end. May be asked more than once."""

    def broken(self, at: int, evidence: str, **where: Any) -> None:
        breach = Breach(self.name, at, evidence, **where)
        if len(self.breaches) < MAX_BREACHES and breach not in self.breaches:
            self.breaches.append(breach)

    def verdict(self, now: int) -> Verdict:
        self.conclude(now)
        outcome = Outcome.VALID
        if self.breaches:
            outcome = Outcome.INVALID
        elif self.doubts or not self.seen:
            outcome = Outcome.UNKNOWN
        return Verdict(self.name, outcome, self.seen, tuple(self.breaches), tuple(self.doubts))
