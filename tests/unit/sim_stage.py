"""A small cluster in the simulator, with a timeline, and all that is seen of it."""

from pathlib import Path
from typing import Any, TypeVar

from cluster.checks import Checks, Outcome
from cluster.events import Event, Stamped
from cluster.sim.journal import Journal
from cluster.sim.network import Condition
from cluster.sim.world import Host
from scenarios.observations import Interest, Observations
from scenarios.schema import read_scenario
from scenarios.simulation import Simulation

Kind = TypeVar("Kind", bound=Event)

SMALL = """\
name: stage
cluster:
  brokers: {brokers}
  nodes: {nodes}
  topics: {{orders: {{partitions: 4}}}}
  config: {{group.initial.rebalance.delay.ms: 0, offsets.topic.num.partitions: 3, broker.session.timeout.ms: 3000,
            broker.heartbeat.interval.ms: 500, replica.lag.time.max.ms: 4000}}
groups:
  g: {{members: {members}, subscribe: [orders], config: {{session.timeout.ms: 6000, heartbeat.interval.ms: 500,
       auto.commit.interval.ms: 500, auto.offset.reset: earliest, poll.timeout.ms: 100, metadata.max.age.ms: 1000}}}}
producers: {producers}
timeline:
{timeline}
until: {until}
settle: {settle}
"""


class Stage:
    """Times are those of the timeline, in milliseconds."""

    def __init__(
        self,
        folder: Path,
        *timeline: str,
        brokers: int = 2,
        members: int = 2,
        until: str = "60s",
        settle: str = "15s",
        produces: bool = False,
        nodes: int | None = None,
        seed: int = 0,
        text: str = SMALL,
    ) -> None:
        producers = "[{topic: orders, records.per.second: 10}]" if produces else "[]"
        path = folder / "stage.yaml"
        path.write_text(
            text.format(
                brokers=brokers,
                members=members,
                until=until,
                settle=settle,
                producers=producers,
                nodes=nodes or brokers,
                timeline="\n".join(f"  - {{{each}}}" for each in timeline) or "  []",
            ),
            encoding="utf-8",
        )
        self.simulation = Simulation(read_scenario(path), seed)
        self.world = self.simulation.world
        self.seen: list[Stamped] = []
        self.checks = Checks()
        self.observations = Observations(1 << 50, {"g": Interest(("orders",))}, set(), self.checks)
        self.world.observers += [self.seen.append, self.checks, self.observations]
        journal = Journal(self.world)
        journal.observers += [self.checks, self.seen.append]
        self.world.journal = journal
        self.journal = journal
        self.simulation.prepare()
        self.observations.start(self.simulation.begin)

    def play(self, until: int) -> "Stage":
        self.simulation.play(until)
        return self

    @property
    def now(self) -> int:
        return self.world.now - self.simulation.begin

    def host(self, name: str) -> Host:
        return self.world.hosts[name]

    def machine(self, name: str) -> Any:
        return self.world.processes[name].machine

    def link(self, source: str, target: str) -> Condition:
        return self.world.network.condition(source, target)

    def events(self, kind: type[Kind], machine: str | None = None, since: int = 0, until: int = 1 << 60) -> list[Kind]:
        begin = self.simulation.begin
        return [
            each.event
            for each in self.seen
            if isinstance(each.event, kind) and machine in (None, each.machine) and since <= each.at - begin <= until
        ]

    def times(self, kind: type[Event], **fields: object) -> list[int]:
        """When events of a kind, with these fields, happened."""
        return [
            each.at - self.simulation.begin
            for each in self.seen
            if isinstance(each.event, kind) and all(getattr(each.event, key) == value for key, value in fields.items())
        ]

    def owners(self) -> dict[tuple[str, int], list[str]]:
        """Who owns what now."""
        return self.observations.owners("g", None)

    def broken_rules(self) -> list[str]:
        return [each.rule for each in self.checks.verdicts(self.world.now) if each.outcome is Outcome.INVALID]
