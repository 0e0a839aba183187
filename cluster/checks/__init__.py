"""Safety, checked: each rule of `RULES` hears the event stream and has a verdict at the end.

`Checks` is an observer like any other: it gets every event, once, in the order of time.
"""

from cluster.checks.groups import GenerationWentBack, OffsetWentBack, TwoOwners, ZombieCommit
from cluster.checks.logs import HighWatermarkWentBack, SplitCoordinator
from cluster.checks.messages import Unanswered
from cluster.checks.records import AckedThenLost, LostRecord
from cluster.checks.rule import Breach, Handler, Outcome, Rule, Verdict
from cluster.events import Event, Stamped

RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (
    TwoOwners, LostRecord, AckedThenLost, OffsetWentBack, ZombieCommit, SplitCoordinator, GenerationWentBack,
    HighWatermarkWentBack, Unanswered)}

__all__ = ["RULES", "Breach", "Checks", "Outcome", "Verdict"]


class Checks:
    def __init__(self, *names: str) -> None:
        self.rules = [rule() for name, rule in RULES.items() if not names or name in names]
        self.now = 0
        self.hears: dict[type[Event], list[Handler]] = {}
        for rule in self.rules:
            for kind, handler in rule.hears().items():
                self.hears.setdefault(kind, []).append(handler)

    def __call__(self, stamped: Stamped) -> None:
        handlers = self.hears.get(type(stamped.event))
        if handlers is not None:
            self.now = stamped.at
            for handle in handlers:
                handle(stamped.at, stamped.machine, stamped.event)

    def broken(self) -> bool:
        """Is any rule broken already? Some can only tell at the end."""
        return any(rule.breaches for rule in self.rules)

    def verdicts(self, now: int | None = None) -> list[Verdict]:
        return [rule.verdict(self.now if now is None else now) for rule in self.rules]
