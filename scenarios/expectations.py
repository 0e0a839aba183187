"""What a scenario expects, and whether it came true: valid, invalid, or unknown if that cannot be told.

Each expectation is a struct whose fields are its keys in the file. Times are those of the timeline; whatever happens
after the end, while everything is healed, does not count.
"""

from collections.abc import Mapping
from typing import Any, dataclass_transform

import msgspec

from cluster.checks import RULES, Outcome
from cluster.faults import Duration, Target
from scenarios.observations import Observations

Answer = tuple[Outcome, str]                   # and why


def _dotted(name: str) -> str:
    return name.rstrip("_").replace("_", ".")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Expectation(msgspec.Struct, frozen=True, rename=_dotted):
    def judge(self, seen: Observations) -> Answer:
        raise NotImplementedError

    def problem(self) -> str | None:
        """What makes it impossible, whatever happens."""
        return None


def _within(value: float, bounds: tuple[int, int], what: str) -> Answer:
    low, high = bounds
    return (Outcome.VALID if low <= value <= high else Outcome.INVALID), f"{what}: {value}, wanted {low} to {high}"


def _is(wanted: object, found: object, what: str) -> Answer:
    return (Outcome.VALID if wanted == found else Outcome.INVALID), f"{what}: {found}, wanted {wanted}"


def _no_state(name: str) -> str | None:
    states = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
    return None if name in states else f"no state {name!r}; there are: {', '.join(states)}"


class Detected(Expectation):
    """A member that failed was removed when its session was over: how much later than that."""

    who: Target
    error_ms: tuple[int, int] = (0, 0)

    def judge(self, seen: Observations) -> Answer:
        failures = seen.failures(self.who)
        if not failures:
            return Outcome.UNKNOWN, f"nothing was done to {self.who}"
        found = [each for each in (seen.detection(self.who, began) for began in failures) if each is not None]
        if not found:
            return Outcome.INVALID, f"{self.who} failed and was not removed"
        worst = max(found, key=lambda each: each.error_ms)
        outcome, why = _within(worst.error_ms, self.error_ms, "error in ms")
        return outcome, f"{why}; removed {worst.detection_ms} ms after the fault, session timeout {worst.timeout_ms} ms"


class Survived(Expectation):
    """A member was hit and stayed a member."""

    who: Target

    def judge(self, seen: Observations) -> Answer:
        failures = seen.failures(self.who)
        if not failures:
            return Outcome.UNKNOWN, f"nothing was done to {self.who}"
        removed = seen.removals(self.who, after=min(failures))
        if removed:
            return Outcome.INVALID, f"{self.who} was removed: {removed[0].cause}"
        return Outcome.VALID, f"{self.who} was not removed"


class Removed(Expectation):
    """The coordinator took somebody out of the group for this cause, so often."""

    who: Target
    cause: str
    count: tuple[int, int] = (1, 1)
    during: tuple[Duration, Duration] | None = None

    def judge(self, seen: Observations) -> Answer:
        found = seen.removed_for(self.who, self.cause, self.during)
        return _within(found, self.count, f"removals of {self.who}")


class Left(Expectation):
    """A consumer left by itself for this cause (closed, unsubscribed, poll interval), so often."""

    who: Target
    cause: str
    count: tuple[int, int] = (1, 1)

    def judge(self, seen: Observations) -> Answer:
        return _within(seen.left(self.who, self.cause), self.count, f"{self.who} left")


class Rebalances(Expectation):
    """How many generations a group went through, or that began for one cause."""

    group: str
    count: tuple[int, int]
    after: Duration = Duration(0)
    before: Duration | None = None
    cause: str | None = None

    def judge(self, seen: Observations) -> Answer:
        found = seen.generations(self.group, self.after, self.before, self.cause)
        return _within(found, self.count, "rebalances")


class State(Expectation):
    """The state of a group, at the end or at some instant."""

    group: str
    is_: str
    at: Duration | None = None

    def problem(self) -> str | None:
        return _no_state(self.is_)

    def judge(self, seen: Observations) -> Answer:
        found = seen.state(self.group, self.at)
        if found is None:
            return Outcome.UNKNOWN, f"group {self.group} was never seen"
        return _is(self.is_, found, "state")


class Members(Expectation):
    """How many members a group has, at the end or at some instant."""

    group: str
    count: int
    at: Duration | None = None

    def judge(self, seen: Observations) -> Answer:
        found = seen.members(self.group, self.at)
        return (Outcome.UNKNOWN, f"group {self.group} was never seen") if found is None else _is(
            self.count, found, "members")


class AllOwned(Expectation):
    """Every partition of the topics that the group wants has exactly one owner that lives."""

    group: str
    at: Duration | None = None

    def judge(self, seen: Observations) -> Answer:
        wanted = seen.wanted(self.group, self.at)
        if not wanted:
            return Outcome.UNKNOWN, "it wants no partition that exists"
        owners = seen.owners(self.group, self.at)
        wrong = {where: owners.get(where, []) for where in wanted if len(owners.get(where, [])) != 1}
        shown = ", ".join(f"{topic}-{number}: {' and '.join(who) or 'nobody'}"
                          for (topic, number), who in wrong.items())
        return (Outcome.INVALID, shown) if wrong else (Outcome.VALID, f"{len(wanted)} partitions, one owner each")


class Owns(Expectation):
    """How many partitions a member has."""

    who: Target
    count: int
    at: Duration | None = None

    def problem(self) -> str | None:
        return None if self.who.kind == "member" else f"{self.who}: of a member, `member G/N`"

    def judge(self, seen: Observations) -> Answer:
        return _is(self.count, seen.owned(self.who, self.at), "partitions")


class Restored(Expectation):
    """A group as its next coordinator found it in the log, after the one before it was hit."""

    group: str
    is_: str
    generation: int
    members: int

    def problem(self) -> str | None:
        return _no_state(self.is_)

    def judge(self, seen: Observations) -> Answer:
        found = seen.restored(self.group)
        if found is None:
            return Outcome.UNKNOWN, f"{self.group} was not loaded after a fault of its coordinator"
        return _is(f"{self.is_}, generation {self.generation}, {self.members} members",
                   f"{found.state}, generation {found.generation}, {len(found.members)} members", "found")


class Failover(Expectation):
    """After its coordinator was hit, another one had the group loaded in this time."""

    group: str
    within: Duration

    def judge(self, seen: Observations) -> Answer:
        took = seen.failover(self.group)
        if took is None:
            return Outcome.UNKNOWN, f"the coordinator of {self.group} never had to go"
        if took < 0:
            return Outcome.INVALID, "nobody took over"
        return (Outcome.VALID if took <= self.within else Outcome.INVALID), f"{took} ms"


class Progress(Expectation):
    """Records are processed in this time; with `none`, none are."""

    group: str
    during: tuple[Duration, Duration]
    none: bool = False

    def problem(self) -> str | None:
        return None if self.during[0] < self.during[1] else "during: from an earlier to a later instant"

    def judge(self, seen: Observations) -> Answer:
        if not seen.is_produced_for(self.group):
            return Outcome.UNKNOWN, "nobody produces for this group"
        found = seen.processed(self.group, *self.during)
        return (Outcome.VALID if (found == 0) is self.none else Outcome.INVALID), f"{found} records"


class Reread(Expectation):
    """How many records a group processed again."""

    group: str
    at_most: int
    at_least: int = 0

    def judge(self, seen: Observations) -> Answer:
        if not seen.processed(self.group):
            return Outcome.UNKNOWN, "nothing was processed"
        return _within(seen.reread(self.group), (self.at_least, self.at_most), "records processed again")


class Commits(Expectation):
    """How often a commit was answered with this: NONE, a Kafka error, or what the client says without asking."""

    group: str
    error: str
    count: tuple[int, int]
    during: tuple[Duration, Duration] | None = None

    def judge(self, seen: Observations) -> Answer:
        return _within(seen.commits(self.group, self.error, self.during), self.count, f"commits answered {self.error}")


class Failed(Expectation):
    """A consumer came to an end with this error."""

    who: Target
    error: str

    def judge(self, seen: Observations) -> Answer:
        found = seen.failed(self.who)
        outcome = Outcome.VALID if self.error in found else Outcome.INVALID
        return outcome, f"{self.who}: {', '.join(found) or 'no error'}"


class Expired(Expectation):
    """How many committed offsets of a group expired."""

    group: str
    count: tuple[int, int]

    def judge(self, seen: Observations) -> Answer:
        return _within(seen.expired(self.group), self.count, "expired offsets")


class Elections(Expectation):
    """How many leaders were elected of a partition, after its first."""

    topic: str
    partition: int
    count: tuple[int, int]

    def judge(self, seen: Observations) -> Answer:
        found = seen.elections(self.topic, self.partition)
        return (Outcome.UNKNOWN, "it was never seen") if found is None else _within(found, self.count, "elections")


class No(Expectation):
    """These rules are not broken."""

    anomalies: tuple[str, ...]

    def problem(self) -> str | None:
        unknown = [each for each in self.anomalies if each not in RULES]
        return f"no rule {unknown[0]!r}; there are: {', '.join(RULES)}" if unknown else None

    def judge(self, seen: Observations) -> Answer:
        verdicts = [each for each in seen.verdicts if each.rule in self.anomalies]
        broken = [f"{breach.kind}: {breach.evidence}" for each in verdicts for breach in each.breaches]
        if broken:
            return Outcome.INVALID, f"{len(broken)} breaches, the first: {broken[0]}"
        doubts = [f"{each.rule}: {', '.join(each.doubts) or 'nothing was seen that it speaks of'}"
                  for each in verdicts if each.outcome is Outcome.UNKNOWN]
        return (Outcome.UNKNOWN, "; ".join(doubts)) if doubts else (Outcome.VALID, "none")


EXPECTATIONS: dict[str, type[Expectation]] = {
    "detected": Detected, "survived": Survived, "removed": Removed, "left": Left, "rebalances": Rebalances,
    "state": State, "members": Members, "all-owned": AllOwned, "owns": Owns, "failover": Failover,
    "restored": Restored, "progress": Progress, "reread": Reread, "commits": Commits, "failed": Failed,
    "expired": Expired, "elections": Elections, "no": No}


def written(wanted: Expectation) -> Mapping[str, Any]:
    """An expectation as it stands in a file."""
    name = next(name for name, kind in EXPECTATIONS.items() if kind is type(wanted))
    fields = {field.encode_name: getattr(wanted, field.name) for field in msgspec.structs.fields(wanted)
              if field.required or getattr(wanted, field.name) != field.default}
    if isinstance(wanted, No):
        return {name: list(wanted.anomalies)}
    return {name: {key: _plain(value) for key, value in fields.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, (Duration, Target)):
        return str(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value
