"""A run is a function of its scenario and its seed: to the byte, whatever Python's hashes are, and again after going
back."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cluster.events import FaultBegan, FaultEnded, MemberRemoved, Stamped
from cluster.sim.journal import Journal, Level
from scenarios.rewinding import go_back, keep
from scenarios.runner import Run
from scenarios.schema import Scenario, read_scenario
from scenarios.simulation import Simulation

ROOT = Path(__file__).parents[2]
ROUGH = """\
name: rough
cluster:
  brokers: 3
  topics: {orders: {partitions: 6}, bills: {partitions: 2, replication.factor: 2}}
  config: {group.initial.rebalance.delay.ms: 500, offsets.topic.num.partitions: 4, broker.session.timeout.ms: 3000,
           broker.heartbeat.interval.ms: 500}
groups:
  g: {members: 3, subscribe: [orders, bills], start.every: 200ms,
      config: {session.timeout.ms: 6000, heartbeat.interval.ms: 700,
               partition.assignment.strategy: [cooperative-sticky]}}
  h: {members: 2, pattern: "o.*", config: {session.timeout.ms: 6000, heartbeat.interval.ms: 700, commit: sync}}
producers:
  - {topic: orders, records.per.second: 20}
  - {topic: bills, records.per.second: 5, acks: 1}
timeline:
  - {at: 3s, loss: {who: members of group h, rate: 0.2, for: 15s}}
  - {at: 4s, delay: {link: broker 1 <-> broker 2, by: 20ms, jitter: 30ms, for: 20s}}
  - {at: 5s, pause: {who: leader of group g, for: 9s}}
  - {at: 6s, crash: {who: coordinator of group h, for: 8s}}
  - {at: 7s, join: {group: g, members: 2}}
  - {at: 8s, slow-disk: {who: broker 3, by: 15ms, for: 10s}}
  - {at: 9s, cut: {who: member h/2, for: 8s}}
  - {at: 10s, stop: {who: member g/3, for: 5s}}
  - {at: 11s, grow: {topic: orders, partitions: 8}}
  - {at: 13s, not-tcp: {link: member g/4 -> broker 2, reorder: 5ms, for: 5s}}
  - {at: 20s, roll: {who: members of group h, every: 2s, down: 1s}}
until: 26s
settle: 8s
expect:
  - {all-owned: {group: g}}
"""
MIDDLE_MS = 12_000


@pytest.fixture
def rough(tmp_path: Path) -> Scenario:
    path = tmp_path / "rough.yaml"
    path.write_text(ROUGH, encoding="utf-8")
    return read_scenario(path)


def files(place: Path) -> dict[str, bytes]:
    """All that a run leaves, except where it lies."""
    found = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
    verdict = msgspec.json.decode(found.pop("verdict.json"))
    del verdict["path"]
    return {**found, "verdict.json": msgspec.json.encode(verdict)}


def a_run(scenario: Scenario, place: Path, seed: int, level: Level = Level.ALL) -> dict[str, bytes]:
    Run(scenario, seed, place=place, level=level).play()
    return files(place)


def test_the_same_seed_gives_the_same_bytes(rough: Scenario, tmp_path: Path) -> None:
    first = a_run(rough, tmp_path / "a", 3)
    second = a_run(rough, tmp_path / "b", 3)
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
    assert sum(1 for name in first if name.startswith("events/")) > 12


def test_another_seed_gives_another_run(rough: Scenario, tmp_path: Path) -> None:
    first = a_run(rough, tmp_path / "a", 3)
    other = a_run(rough, tmp_path / "b", 4)
    assert first["events/g-1.msgpack"] != other["events/g-1.msgpack"]
    assert first["events/coordinator-1.msgpack"] != other["events/coordinator-1.msgpack"]


def test_how_much_is_written_down_changes_nothing_else(rough: Scenario, tmp_path: Path) -> None:
    """Whoever watches does not disturb: the verdicts are the same, except for how much was seen."""
    found = []
    for level in Level:
        verdict = msgspec.json.decode(a_run(rough, tmp_path / level, 3, level)["verdict.json"])
        del verdict["events"]
        found.append(verdict)
    assert found[0] == found[1] == found[2]


class Ear:
    """Hears everything, and keeps a digest; and what it was, if it is asked to."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.heard: list[Stamped] = []

    def __call__(self, stamped: Stamped) -> None:
        self.digest.update(msgspec.msgpack.encode((stamped.at, stamped.machine, stamped.sequence, stamped.event)))
        self.heard.append(stamped)


def listening(scenario: Scenario, seed: int = 5, through_codec: bool = False) -> tuple[Simulation, Ear]:
    simulation = Simulation(scenario, seed, through_codec=through_codec)
    ear = Ear()
    simulation.world.observers.append(ear)
    journal = Journal(simulation.world)
    journal.observers.append(ear)
    simulation.world.journal = journal
    simulation.prepare()
    return simulation, ear


def finish(simulation: Simulation) -> None:
    simulation.play()
    simulation.heal()
    simulation.read_back()


def test_messages_may_pass_as_they_are_or_through_the_codec(rough: Scenario) -> None:
    ears = []
    for through_codec in (False, True):
        simulation, ear = listening(rough, through_codec=through_codec)
        finish(simulation)
        ears.append(ear)
    first, second = ears
    differ = next((pair for pair in zip(first.heard, second.heard, strict=False) if pair[0] != pair[1]), None)
    assert differ is None
    assert first.digest.hexdigest() == second.digest.hexdigest()


def test_a_run_may_go_through_the_codec(rough: Scenario) -> None:
    assert Run(rough, 5, through_codec=True).play() == Run(rough, 5).play()


def test_going_back_in_the_middle_of_faults_gives_the_same_bytes_again(rough: Scenario) -> None:
    simulation, ear = listening(rough)
    simulation.play(MIDDLE_MS)
    kinds = {type(each.fault).__name__ for each in simulation.broken.values()}
    assert kinds >= {"Loss", "Delay", "Pause", "Crash", "SlowDisk", "Cut"}
    kept = keep(simulation)
    futures = []
    for _ in range(3):
        ear.digest, ear.heard = hashlib.sha256(), []
        finish(simulation)
        futures.append((ear.digest.hexdigest(), len(ear.heard)))
        assert any(isinstance(each.event, FaultEnded) for each in ear.heard)
        go_back(simulation, kept)
        assert simulation.world.now == simulation.begin + MIDDLE_MS
        assert {type(each.fault).__name__ for each in simulation.broken.values()} == kinds
    assert len(set(futures)) == 1
    assert futures[0][1] > 1000


def test_a_kept_past_is_the_same_as_an_undisturbed_run(rough: Scenario) -> None:
    """To keep a world does not change it, and neither does to go back to where one is."""
    plain, first = listening(rough)
    finish(plain)
    kept, second = listening(rough)
    for instant in range(2000, 26_000, 4000):
        kept.play(instant)
        go_back(kept, keep(kept))
    finish(kept)
    assert first.digest.hexdigest() == second.digest.hexdigest()


def test_another_future_may_begin_at_a_kept_past(rough: Scenario) -> None:
    """Going back forgets what was done since: who joined, what broke."""
    simulation, ear = listening(rough)
    simulation.play(4500)
    kept = keep(simulation)
    simulation.play(10_500)
    assert "g-4" in simulation.nodes
    go_back(simulation, kept)
    assert "g-4" not in simulation.nodes
    assert "g-4" not in simulation.roles.nodes
    assert "g-4" not in simulation.world.processes
    simulation.agenda.clear()
    ear.heard = []
    simulation.play(20_000)
    assert [each for each in ear.heard if isinstance(each.event, FaultBegan)] == []
    assert [each for each in ear.heard if isinstance(each.event, MemberRemoved)] == []


PROGRAM = """
import hashlib, sys
from pathlib import Path
import msgspec
from cluster.sim.journal import Level
from scenarios.runner import Run
from scenarios.schema import read_scenario
run = Run(read_scenario(Path(sys.argv[1])), 5)
digest = hashlib.sha256()
def hear(stamped):
    digest.update(msgspec.msgpack.encode((stamped.at, stamped.machine, stamped.sequence, stamped.event)))
run.simulation.world.observers.append(hear)
run.journal.observers.append(hear)
result = run.play()
digest.update(msgspec.json.encode(result))
print(digest.hexdigest())
"""


def test_pythons_hashes_do_not_matter(rough: Scenario, tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "rough.yaml")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        )
        for seed in ("0", "1", "4242")
    ]
    digests = {process.communicate(timeout=120)[0] for process in running}
    assert len(digests) == 1
    assert len(digests.pop()) == 65


def test_a_client_does_not_change_what_chance_has_for_others(rough: Scenario, tmp_path: Path) -> None:
    """One stream for each machine: somebody else's retries do not reshuffle everybody's."""
    ids: list[set[str]] = []
    for text in (ROUGH, ROUGH.replace("records.per.second: 20", "records.per.second: 21")):
        path = tmp_path / "one.yaml"
        path.write_text(text, encoding="utf-8")
        simulation, ear = listening(read_scenario(path))
        simulation.play(3000)
        ids.append({str(getattr(each.event, "member_id", "")) for each in ear.heard})
    assert ids[0] == ids[1]
    assert len(ids[0]) > 3
