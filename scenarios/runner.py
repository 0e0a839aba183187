"""A run: a scenario is played, what happens is written down, and in the end there is a verdict.

runs/<scenario>-<time>/ scenario.yaml run.json events/<machine>.msgpack log/story.log verdict.json

Files appear whole or not at all; `runs/latest` leads to the newest run. An interrupted run leaves its log readable, and
a verdict that says so.
"""

import gc
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from cluster.checks import Checks, Outcome, Verdict
from cluster.checks.records import LostRecord
from cluster.events import Event, FaultBegan, FaultEnded, Stamped
from cluster.sim.journal import Journal, Level
from cluster.sim.world import Only
from scenarios.eventlog import EventLog
from scenarios.expectations import written
from scenarios.observations import Interest, Observations
from scenarios.schema import Scenario
from scenarios.simulation import Simulation
from scenarios.story import Narrator

RUNS = Path("runs")
CUT_SHORT = Outcome.UNKNOWN, "the run was interrupted before it could come true"


class Judged(msgspec.Struct, frozen=True):
    """An expectation and what became of it."""

    expect: Any
    outcome: Outcome
    why: str


class Result(msgspec.Struct, frozen=True):
    verdict: Outcome
    scenario: str
    seed: int
    on: str
    expectations: tuple[Judged, ...]
    rules: tuple[Verdict, ...]
    counted: dict[str, int]                    # what the contract allows
    events: int
    virtual_ms: int
    interrupted: bool = False
    path: str = ""


class BadPlace(ValueError):
    """The run's directory cannot be used."""


def new_place(scenario: Scenario, out: Path | None) -> Path:
    """The directory of a run, made: the one that was asked for, or a new one under `runs`."""
    if out is not None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadPlace(f"{out} is there already; name a directory that is new or empty")
        out.mkdir(parents=True, exist_ok=True)
        return out
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        place = RUNS / f"{scenario.name}-{stamp}{f'.{number}' if number else ''}"
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            continue
        _point(RUNS / "latest", place.name)
        return place
    raise BadPlace(f"{RUNS}: too many runs in one second")


def _point(link: Path, target: str) -> None:
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)


def write_whole(path: Path, content: Any) -> None:
    """A JSON file that is there whole or not at all."""
    write_text(path, msgspec.json.format(msgspec.json.encode(content, enc_hook=int), indent=2).decode() + "\n")


def write_text(path: Path, text: str) -> None:
    """A file that is there whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def rarely_collect() -> None:
    """For a process that does nothing but play: nearly nothing in a run is garbage in a circle, and looking for that
    takes a tenth of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


class Run:
    """One scenario, once, on the simulator."""

    def __init__(self, scenario: Scenario, seed: int = 0, *, place: Path | None = None,
                 level: Level = Level.PROTOCOL, checked: bool = True, through_codec: bool = False) -> None:
        self.scenario = scenario
        self.seed = seed
        self.place = place
        self.simulation = Simulation(scenario, seed, through_codec=through_codec)
        self.checks = Checks() if checked else Checks("none")
        self.faults: list[dict[str, Any]] = []
        self.narrator: Narrator | None = None
        self.log = EventLog(place / "events", level) if place is not None else None
        world = self.simulation.world
        world.observers += [self.checks, Only((FaultBegan, FaultEnded), self._keep_fault)]
        if checked or level is not Level.COUNTS:
            self.journal = world.journal = Journal(world, self._patience_ms(), measures=self.log is not None)
            self.journal.observers.append(self.checks)
        if self.log is not None:
            world.observers.append(self.log)
            if world.journal is not None:
                self.journal.observers.append(self.log.journal)

    def _patience_ms(self) -> int:
        clients = [group.config_of(number).request_timeout_ms for group in self.scenario.groups.values()
                   for number in {1, *group.each}]
        return max([30_000, *clients, *(each.config.request_timeout_ms for each in self.scenario.producers)])

    def tell(self, say: Callable[[int, type[Event], str], None], language: str = "en") -> Narrator:
        """Have the run told while it happens; times are those of the timeline."""
        self.narrator = Narrator(lambda at, kind, text: say(at - self.simulation.begin, kind, text), language)
        return self.narrator

    def play(self) -> Result:
        """To the end, and the verdict. KeyboardInterrupt ends it early, and is passed on when all is written."""
        if self.place is not None:
            (self.place / "scenario.yaml").write_text(self.scenario.text, encoding="utf-8")
            self._describe(ended=False)
        simulation = self.simulation
        seen = self._observations()
        simulation.world.observers.append(seen)
        try:
            simulation.prepare()
            seen.start(simulation.begin)
            if self.narrator is not None:
                simulation.world.observers.append(self.narrator)
            simulation.play()
            simulation.heal()
            simulation.read_back()
        except KeyboardInterrupt:
            self._finish(self._result(seen, interrupted=True))
            raise
        result = self._result(seen)
        self._finish(result)
        return result

    def _observations(self) -> Observations:
        interests = {group.name: Interest(group.topics, group.pattern) for group in self.scenario.groups.values()}
        return Observations(self.scenario.until, interests,
                            {each.topic for each in self.scenario.producers}, self.checks)

    def _result(self, seen: Observations, *, interrupted: bool = False) -> Result:
        world = self.simulation.world
        seen.verdicts = self.checks.verdicts(world.now)
        judged = tuple(Judged(written(each), *(CUT_SHORT if interrupted else each.judge(seen)))
                       for each in self.scenario.expect)
        counted = next((rule.counted() for rule in self.checks.rules if isinstance(rule, LostRecord)), {})
        return Result(_verdict(judged, seen.verdicts, interrupted), self.scenario.name, self.seed, "sim", judged,
                      tuple(seen.verdicts), counted, 0 if self.log is None else self.log.events,
                      world.now - self.simulation.begin, interrupted, "" if self.place is None else str(self.place))

    def _finish(self, result: Result) -> None:
        if self.place is not None and self.log is not None:
            self.log.flush()
            self._describe(ended=True)
            write_whole(self.place / "verdict.json", result)

    def _keep_fault(self, stamped: Stamped) -> None:
        event = stamped.event
        if isinstance(event, FaultBegan):
            self.faults.append({"fault": event.fault, "what": event.what, "who": event.who, "target": event.target,
                                "how": event.how, "began": stamped.at, "ended": None, **event.detail})
        elif isinstance(event, FaultEnded):
            for each in self.faults:
                if each["fault"] == event.fault:
                    each["ended"] = stamped.at

    def _describe(self, *, ended: bool) -> None:
        assert self.place is not None
        world = self.simulation.world
        write_whole(self.place / "run.json", {
            "scenario": self.scenario.name, "seed": self.seed, "on": "sim", "ended": ended,
            "versions": {"seesaw": _version(), "python": platform.python_version()},
            "nodes": self.simulation.nodes, "clock_offsets_ms": {}, "begin": self.simulation.begin,
            "until_ms": self.scenario.until, "now": world.now, "faults": self.faults,
            "messages": dict(self.journal.counts) if world.journal is not None else {}})


def _version() -> str:
    try:
        return version("seesaw")
    except PackageNotFoundError:
        return "unknown"


def _verdict(judged: tuple[Judged, ...], verdicts: list[Verdict], interrupted: bool) -> Outcome:
    """Whatever is broken makes it invalid; whatever was expected and cannot be told makes it unknown."""
    if Outcome.INVALID in {*(each.outcome for each in judged), *(each.outcome for each in verdicts)}:
        return Outcome.INVALID
    if interrupted or any(each.outcome is Outcome.UNKNOWN for each in judged):
        return Outcome.UNKNOWN
    return Outcome.VALID
