"""How fast virtual time passes: the same machines, their events written, on one core.

    python -m benchmarks.simulation [--json] [--plot docs/pictures/simulation.svg]

Each figure is a ratio: seconds of virtual time to a second of this machine's. `--plot` measures how it grows with
members, partitions and records as well, and draws that.
"""

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.chart import Line, chart
from cluster.events import PartitionsAssigned
from cluster.sim.journal import Level
from cluster.sim.world import Only
from scenarios.reading import written
from scenarios.runner import Run, rarely_collect
from scenarios.schema import Scenario, read_text

QUIET = {"poll.timeout.ms": 60_000, "commit": "none"}      # the application waits in its poll
GOALS = {                                      # must, aim; seconds and megabytes: at most, all else: at least
    "stable": (150, 500), "polling": (15, 60), "checked": (30, 100), "rebalance_ms": (150, 55), "load": (10, 30),
    "memory_mb": (150, 80), "start_s": (0.5, 0.2), "soak": (10, 30), "detection_error_ms": (0, 0)}


def scenario(members: int, partitions: int = 0, rate: float = 0, until_s: int = 3600, **config: Any) -> Scenario:
    document = {
        "name": "benchmark",
        "cluster": {"brokers": 3, "topics": {"orders": {"partitions": partitions or members, "replication.factor": 3}}},
        "groups": {"billing": {"members": members, "subscribe": ["orders"], "config": {
            "heartbeat.interval.ms": 3000, "partition.assignment.strategy": ["range"], **config}}},
        "until": f"{until_s}s"}
    if rate:
        document["producers"] = [{"topic": "orders", "records.per.second": rate}]
    return read_text(written(document), "benchmark.yaml")


def prepared(wanted: Scenario, *, checked: bool = False, formed_s: int = 15) -> Run:
    """A run whose group is stable, with its events written as the real one writes them."""
    level = Level.PROTOCOL if checked else Level.COUNTS
    run = Run(wanted, 0, place=Path(tempfile.mkdtemp(prefix="seesaw-bench-")), level=level, checked=checked)
    run.simulation.prepare()
    run.simulation.play(formed_s * 1000)
    gc.collect()
    return run


def pace(run: Run, from_s: int, spans: int, span_s: int) -> float:
    """Virtual seconds in a second: the best of several spans, since other programs run here as well."""
    best = 0.0
    for number in range(1, spans + 1):
        began = time.perf_counter()
        run.simulation.play((from_s + number * span_s) * 1000)
        best = max(best, span_s / (time.perf_counter() - began))
    return round(best, 1)


def stable(members: int = 1000) -> float:
    """A stable group that beats every 3 s; fetching and commits are off."""
    return pace(prepared(scenario(members, paused=True, **QUIET)), 15, 6, max(30_000 // members, 3))


def polling(members: int = 1000) -> float:
    """The same, and every member long-polls."""
    return pace(prepared(scenario(members, **QUIET)), 15, 4, max(6000 // members, 3))


def checked(members: int = 1000) -> float:
    """Stable, with the journal of messages, and every safety rule after every event."""
    return pace(prepared(scenario(members, paused=True, **QUIET), checked=True), 15, 4, max(15_000 // members, 3))


def load(members: int = 100, rate: float = 1000, partitions: int = 0) -> float:
    """Members that read what is produced, three replicas."""
    return pace(prepared(scenario(members, partitions, rate)), 15, 4, 3)


def rebalance(members: int = 1000) -> float:
    """One more member joins, everybody rejoins: milliseconds of this machine's time from its start until the last one
    has its share, less what that time of heartbeats would have cost anyway."""
    run = prepared(scenario(members, members + 1, paused=True, **QUIET))
    simulation, world = run.simulation, run.simulation.world
    shares: list[str] = []
    world.observers.append(Only((PartitionsAssigned,), lambda stamped: shares.append(stamped.machine)))
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        world.run(world.now + 3000)
        idle = (time.perf_counter() - began) / 3000
        shares.clear()
        simulation.members["billing"] += 1
        began, at = time.perf_counter(), world.now
        simulation._start(("billing", simulation.members["billing"]))
        assert world.run_until(lambda: len(shares) >= simulation.members["billing"], world.now + 10_000)
        best = min(best, time.perf_counter() - began - idle * (world.now - at))
        assert len(set(shares)) == len(shares) == simulation.members["billing"], "one rebalance"
        world.run(world.now + 1000)
    return round(best * 1000, 1)


def start() -> float:
    """From nothing to three brokers with their topics: seconds, imports aside."""
    began = time.perf_counter()
    Run(scenario(3)).simulation.prepare()
    return round(time.perf_counter() - began, 3)


def memory(members: int = 1000) -> float:
    """What a process has at most that plays a minute of a stable group, in MB."""
    program = ("import resource; from benchmarks.simulation import *; rarely_collect(); run = prepared(scenario("
               f"{members}, paused=True, **QUIET)); run.simulation.play(60_000); "
               "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    return round(float(done.stdout), 1)


def soak(seeds: int = 60) -> float:
    """Schedules in a second, on all cores; every rule checked."""
    command = [sys.executable, "-c", "from seesaw.command import main; main()", "soak", "--seeds", str(seeds), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    result = json.loads(done.stdout)
    return round(result["seeds"] / result["seconds"], 1)


def detection(seeds: int = 100) -> float:
    """A member crashes at a random instant: the largest distance of its removal from its last heartbeat and its session
    timeout, in ms."""
    worst = 0
    for seed in range(seeds):
        at = Random(seed).randrange(8000, 20_000)
        document = {"name": "detection", "cluster": {"brokers": 1, "topics": {"t": {"partitions": 2}}},
                    "groups": {"g": {"members": 2, "subscribe": ["t"], "config": {"session.timeout.ms": 6000}}},
                    "timeline": [{"at": f"{at}ms", "crash": {"who": "member g/2"}}], "until": "40s",
                    "expect": [{"detected": {"who": "member g/2"}}]}
        result = Run(read_text(written(document), "detection.yaml"), seed).play()
        why = result.expectations[0].why
        worst = max(worst, abs(int(why.split("error in ms: ")[1].split(",")[0])))
    return worst


def table() -> dict[str, float]:
    return {"stable": stable(), "polling": polling(), "checked": checked(), "rebalance_ms": rebalance(), "load": load(),
            "memory_mb": memory(), "start_s": start(), "soak": soak(), "detection_error_ms": detection()}


def growth() -> list[Line]:
    def line(name: str, work: Callable[[int], float], sizes: tuple[int, ...]) -> Line:
        return Line(name, [(size, work(size)) for size in sizes])

    return [line("stable, by members", stable, (100, 300, 1000, 3000)),
            line("long-polling, by members", polling, (100, 300, 1000)),
            line("every rule checked, by members", checked, (100, 300, 1000)),
            line("100 members, by records a second", lambda rate: load(rate=rate), (100, 300, 1000, 3000)),
            line("100 members, 1,000 records/s, by partitions", lambda size: load(partitions=size), (100, 300, 1000))]


def _is_met(name: str, value: float, goal: float) -> bool:
    return value <= goal if name.endswith(("_ms", "_mb", "_s")) else value >= goal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--plot", type=Path, help="measure growth as well, and draw it into this SVG file")
    parser.add_argument("--only", choices=sorted(GOALS), help="one figure")
    given = parser.parse_args()
    rarely_collect()
    if given.only:
        functions = {"rebalance_ms": rebalance, "memory_mb": memory, "start_s": start, "detection_error_ms": detection}
        found = {given.only: functions.get(given.only, globals().get(given.only))()}  # type: ignore[misc]
    else:
        found = table()
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{'':24}{'measured':>10}{'must':>8}{'aim':>8}")
        for name, value in found.items():
            must, aim = GOALS[name]
            verdict = "aim" if _is_met(name, value, aim) else "must" if _is_met(name, value, must) else "MISSED"
            print(f"{name:24}{value:>10}{must:>8}{aim:>8}  {verdict}")
        print(f"largest process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if given.plot:
        given.plot.write_text(chart("Virtual seconds in a second", "members, partitions, records a second", growth()),
                              encoding="utf-8")


if __name__ == "__main__":
    main()
