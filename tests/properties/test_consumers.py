"""Whatever happens to a small cluster, and in whatever order: no rule is broken, and once all is healed every partition
has one owner. A schedule that fails is printed as the scenario that it is."""

from typing import Any

from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from cluster.checks import Checks, Outcome
from cluster.consumer.consumer import Consumer
from cluster.consumer.states import STABLE
from cluster.sim.journal import Journal
from scenarios.reading import flow
from scenarios.schema import read_text
from scenarios.simulation import Simulation

BROKERS, MEMBERS, PARTITIONS = 2, 3, 4
STRATEGIES = (
    ["range"],
    ["roundrobin"],
    ["sticky"],
    ["cooperative-sticky"],
    ["range", "cooperative-sticky"],
    ["cooperative-sticky", "range"],
)
Step = tuple[int, str, dict[str, Any]]  # milliseconds after the one before, what, how

members = st.sampled_from([f"member g/{number}" for number in range(1, MEMBERS + 1)])
consumers = members | st.sampled_from(["leader of group g", "members of group g"])
brokers = st.sampled_from(["broker 1", "broker 2", "coordinator of group g", "leader of orders/0"])
short = st.sampled_from(["0ms", "1ms", "300ms", "2s", "5s"])
long = st.sampled_from(["7s", "9s", "15s"])
lasting = short | long
links = st.builds(
    lambda who, arrow, whom: f"{who} {arrow} {whom}",
    members | st.sampled_from(["broker 1"]),
    st.sampled_from(["->", "<->"]),
    st.sampled_from(["broker 2", "controller", "coordinator of group g"]),
)


actions: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("join"), st.just({"group": "g"})),
    st.tuples(st.just("pause"), st.fixed_dictionaries({"who": consumers | brokers, "for": lasting})),
    st.tuples(st.just("crash"), st.fixed_dictionaries({"who": consumers}, optional={"for": lasting})),
    st.tuples(st.just("crash"), st.fixed_dictionaries({"who": brokers | st.just("controller"), "for": lasting})),
    st.tuples(st.just("stop"), st.fixed_dictionaries({"who": consumers}, optional={"for": lasting})),
    st.tuples(st.just("stop"), st.fixed_dictionaries({"who": brokers, "for": lasting})),
    st.tuples(st.just("cut"), st.fixed_dictionaries({"link": links, "for": lasting})),
    st.tuples(st.just("cut"), st.fixed_dictionaries({"who": consumers | brokers, "for": lasting})),
    st.tuples(
        st.just("silence"), st.fixed_dictionaries({"who": st.sampled_from(["node 1", "node 2"]), "for": lasting})
    ),
    st.tuples(st.just("delay"), st.fixed_dictionaries({"who": consumers | brokers, "by": short, "for": lasting})),
    st.tuples(st.just("loss"), st.fixed_dictionaries({"who": brokers, "rate": st.just(0.2), "for": lasting})),
    st.tuples(st.just("slow-disk"), st.fixed_dictionaries({"who": brokers, "by": st.just("40ms"), "for": lasting})),
    st.tuples(st.just("roll"), st.just({"who": "members of group g", "every": "2s", "down": "1s"})),
    st.tuples(st.just("elect"), st.just({})),
)
schedules: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.sampled_from([0, 1, 100, 900, 3000, 7000]), actions).map(lambda each: (each[0], *each[1])), max_size=8
)


def scenario_of(schedule: list[Step], strategy: list[str], commit: str, instance: str | None) -> str:
    now, timeline = 1000, []
    for later, name, how in schedule:
        now += later
        timeline.append({"at": f"{now}ms", name: how})
    config = {
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": 20_000,
        "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000, "commit": commit,
        "partition.assignment.strategy": strategy, "request.timeout.ms": 8000, "default.api.timeout.ms": 10_000,
        **({} if instance is None else {"group.instance.id": instance}),
    }  # fmt: skip
    return flow({
        "name": "chance",
        "cluster": {
            "brokers": BROKERS,
            "topics": {"orders": {"partitions": PARTITIONS}},
            "config": {
                "group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 2,
                "broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500,
            },
        },
        "groups": {"g": {"members": MEMBERS, "subscribe": ["orders"], "config": config}},
        "producers": [{"topic": "orders", "records.per.second": 5}],
        "timeline": timeline,
        "until": f"{now + 5000}ms",
        "settle": "45s",
    })  # fmt: skip


def play(text: str, seed: int) -> tuple[Simulation, Checks]:
    """To the end, healed, and read back."""
    simulation = Simulation(read_text(text, "chance.yaml"), seed)
    checks = Checks()
    world = simulation.world
    world.observers.append(checks)
    journal = Journal(world)
    journal.observers.append(checks)
    world.journal = journal
    simulation.prepare()
    simulation.play()
    simulation.heal()
    simulation.read_back()
    return simulation, checks


FOUND: list[list[Step]] = [  # what chance finds rarely
    [(0, "join", {"group": "g"}), (1, "crash", {"who": "coordinator of group g", "for": "2s"})],
    [
        (3000, "pause", {"who": "leader of group g", "for": "9s"}),
        (100, "crash", {"who": "leader of group g", "for": "1ms"}),
    ],
    [(3000, "silence", {"who": "node 1", "for": "15s"}), (0, "cut", {"link": "broker 1 <-> broker 2", "for": "15s"})],
    [(3000, "stop", {"who": "broker 1", "for": "0ms"}), (0, "stop", {"who": "members of group g", "for": "2s"})],
]


@settings(max_examples=60)
@given(schedules, st.sampled_from(STRATEGIES), st.sampled_from(["auto", "sync", "async"]), st.integers(0, 3))
@example(FOUND[0], ["range"], "auto", 0)
@example(FOUND[1], ["cooperative-sticky"], "sync", 0)
@example(FOUND[2], ["sticky"], "auto", 1)
@example(FOUND[3], ["roundrobin"], "async", 2)
def test_no_rule_is_broken_and_all_is_owned_once_when_it_is_healed(
    schedule: list[Step], strategy: list[str], commit: str, seed: int
) -> None:
    text = scenario_of(schedule, strategy, commit, None)
    note(f"seed {seed}\n{text}")
    simulation, checks = play(text, seed)
    broken = [each for each in checks.verdicts(simulation.world.now) if each.outcome is Outcome.INVALID]
    assert broken == []
    assert owners(simulation) == {("orders", number): 1 for number in range(PARTITIONS)}


@settings(max_examples=25)
@given(schedules, st.sampled_from(STRATEGIES), st.integers(0, 3))
@example(FOUND[1], ["cooperative-sticky"], 0)
def test_neither_with_static_members(schedule: list[Step], strategy: list[str], seed: int) -> None:
    text = scenario_of(schedule, strategy, "auto", "shop")
    note(f"seed {seed}\n{text}")
    simulation, checks = play(text, seed)
    broken = [each for each in checks.verdicts(simulation.world.now) if each.outcome is Outcome.INVALID]
    assert broken == []
    assert owners(simulation) == {("orders", number): 1 for number in range(PARTITIONS)}


def owners(simulation: Simulation) -> dict[tuple[str, int], int]:
    """How many members believe that a partition is theirs."""
    found: dict[tuple[str, int], int] = {}
    for name, process in simulation.world.processes.items():
        machine = process.machine
        if isinstance(machine, Consumer):
            assert process.is_alive, name
            assert machine.member.state is STABLE, name
            for where in machine.positions.assigned:
                found[where] = found.get(where, 0) + 1
    return found
