"""The network behaves like TCP, and hosts break as machines break."""

from collections.abc import Callable

import pytest

from cluster.machine import Disconnect, Disconnected, Effect, Input, Received, Send, SetTimer, TimerFired, Told
from cluster.sim import hosts, snapshot
from cluster.sim.network import FINE, Condition
from cluster.sim.world import START_MS, World
from cluster.wire.apis import request, response
from cluster.wire.groups import HeartbeatRequest, HeartbeatResponse


class Peer:
    """Says what it is told to; answers requests; remembers what reached it and when. Writes to its disk if it shall."""

    def __init__(self, name: str, incarnation: int = 0, write: Callable[[], None] | None = None) -> None:
        self.name = name
        self.incarnation = incarnation
        self.write = write
        self.felt: list[tuple[int, str]] = []

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told):
            return list(event.command)
        self.felt.append((now - START_MS, _short(event)))
        if isinstance(event, Received) and isinstance(event.envelope.body, HeartbeatRequest):
            if self.write is not None:
                self.write()
            return [Send(event.sender, response(event.envelope, HeartbeatResponse()))]
        return []

    def say(self, to: str, *numbers: int) -> list[Send]:
        return [
            Send(
                to,
                request(
                    HeartbeatRequest("g", 1, "m"),
                    source=self.name,
                    destination=to,
                    correlation_id=number,
                    incarnation=self.incarnation,
                ),
            )
            for number in numbers
        ]


def _short(event: Input) -> str:
    if isinstance(event, Received):
        kind = "asked" if isinstance(event.envelope.body, HeartbeatRequest) else "answered"
        return f"{kind} {event.envelope.correlation_id}"
    if isinstance(event, Disconnected):
        return f"lost {event.peer}"
    return event.name if isinstance(event, TimerFired) else repr(event)


class Stage:
    def __init__(self, seed: int = 0) -> None:
        self.world = World(seed=seed, latency_ms=5)
        self.peers: dict[str, list[Peer]] = {"a": [], "b": []}
        for name in "ab":
            self.world.add(name, Birth(self, name), node=f"node of {name}")

    def peer(self, name: str, which: int = -1) -> Peer:
        return self.peers[name][which]

    def say(self, source: str, target: str, *numbers: int) -> None:
        self.world.tell(source, self.peer(source).say(target, *numbers))

    def run(self, until: int) -> None:
        self.world.run(START_MS + until)


class Birth:
    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name

    def __call__(self, incarnation: int) -> Peer:
        peer = Peer(self.name, incarnation)
        self.stage.peers[self.name].append(peer)
        return peer


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_request_and_its_answer_take_a_latency_each(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(20)
    assert (stage.peer("b").felt, stage.peer("a").felt) == ([(5, "asked 1")], [(10, "answered 1")])


# Links


def test_a_delayed_direction_delays_only_that_direction(stage: Stage) -> None:
    hosts.set_link(stage.world, "a", "b", Condition(delay_ms=100))
    stage.say("a", "b", 1)
    stage.run(300)
    assert (stage.peer("b").felt, stage.peer("a").felt) == ([(105, "asked 1")], [(110, "answered 1")])


def test_nothing_overtakes_on_a_connection_even_when_a_delay_ends(stage: Stage) -> None:
    hosts.set_link(stage.world, "a", "b", Condition(delay_ms=100))
    stage.say("a", "b", 1)
    hosts.set_link(stage.world, "a", "b", FINE)
    stage.say("a", "b", 2)
    stage.run(300)
    assert stage.peer("b").felt == [(105, "asked 1"), (105, "asked 2")]


def test_jitter_stays_within_its_bounds_and_keeps_the_order(stage: Stage) -> None:
    hosts.set_link(stage.world, "a", "b", Condition(jitter_ms=50))
    for number in range(1, 40):
        stage.say("a", "b", number)
        stage.run(number * 10)
    stage.run(1000)
    arrivals = stage.peer("b").felt
    assert [what for _, what in arrivals] == [f"asked {number}" for number in range(1, 40)]
    assert len({at - 10 * number for number, (at, _) in enumerate(arrivals)}) > 5, "the delays differ"


def test_what_is_lost_comes_late_and_what_follows_waits_for_it() -> None:
    lates = []
    for seed in range(30):
        stage = Stage(seed)
        hosts.set_link(stage.world, "a", "b", Condition(loss=0.5))
        stage.say("a", "b", 1, 2)
        stage.run(100_000)
        assert [what for _, what in stage.peer("b").felt] == ["asked 1", "asked 2"]
        lates.append(stage.peer("b").felt[0][0] - 5)
    assert {0, 200, 600} <= set(lates)


def test_a_cut_holds_messages_until_it_heals(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(20)
    hosts.cut(stage.world, "a", "b")
    stage.say("a", "b", 2)
    stage.say("b", "a", 7)
    stage.run(500)
    assert (len(stage.peer("b").felt), len(stage.peer("a").felt)) == (1, 1)
    hosts.mend(stage.world, "a", "b")
    stage.run(600)
    assert stage.peer("b").felt[1:] == [(505, "asked 2"), (510, "answered 7")]
    assert stage.peer("a").felt[1:] == [(505, "asked 7"), (510, "answered 2")]


def test_a_cut_in_one_direction_lets_the_other_pass(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(20)
    hosts.cut(stage.world, "b", "a", both=False)
    stage.say("a", "b", 2)
    stage.run(100)
    assert (stage.peer("b").felt[1:], stage.peer("a").felt[1:]) == ([(25, "asked 2")], [])


def test_no_new_connection_is_made_through_a_cut_of_either_direction(stage: Stage) -> None:
    hosts.cut(stage.world, "b", "a", both=False)
    stage.say("a", "b", 1)
    stage.run(100)
    assert (stage.peer("b").felt, stage.peer("a").felt) == ([], [])
    hosts.mend(stage.world, "b", "a")
    stage.run(200)
    assert (stage.peer("b").felt, stage.peer("a").felt) == ([(105, "asked 1")], [(110, "answered 1")])


def test_a_side_that_closes_during_a_cut_loses_what_was_held_and_the_other_learns_of_it_later(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(20)
    hosts.cut(stage.world, "a", "b")
    stage.say("a", "b", 2)
    stage.world.tell("a", [Disconnect("b")])
    stage.run(100)
    hosts.mend(stage.world, "a", "b")
    stage.run(200)
    assert stage.peer("b").felt[1:] == [(105, "lost a")]


def test_not_tcp_may_come_twice_and_out_of_order() -> None:
    stage = Stage(3)
    hosts.set_link(stage.world, "a", "b", Condition(duplicated=0.5, reordered_ms=40))
    stage.say("a", "b", *range(1, 21))
    stage.run(1000)
    heard = [int(what.split()[1]) for _, what in stage.peer("b").felt]
    assert heard != sorted(heard)
    assert len(heard) > len(set(heard)) == 20


def test_each_link_has_its_own_randomness() -> None:
    def arrivals(busy: bool) -> list[tuple[int, str]]:
        stage = Stage(1)
        for source, target in (("a", "b"), ("b", "a")):
            hosts.set_link(stage.world, source, target, Condition(jitter_ms=90))
        if busy:
            stage.world.tell("b", stage.peer("b").say("a", *range(50, 60)))
        stage.say("a", "b", 1, 2, 3)
        stage.run(1000)
        return [each for each in stage.peer("b").felt if each[1].startswith("asked")]

    assert arrivals(busy=False)[0][0] == arrivals(busy=True)[0][0]


# Hosts


def test_a_paused_host_keeps_its_connections_and_handles_what_came_before_its_timers(stage: Stage) -> None:
    stage.world.tell("b", [SetTimer("session", START_MS + 50)])
    hosts.pause(stage.world, "b")
    stage.run(60)
    stage.say("a", "b", 1)
    stage.run(200)
    assert stage.peer("b").felt == []
    hosts.wake(stage.world, "b")
    stage.run(300)
    assert stage.peer("b").felt == [(200, "asked 1"), (200, "session")]
    assert stage.peer("a").felt == [(205, "answered 1")]


def test_a_timer_that_a_waking_machine_moves_does_not_fire(stage: Stage) -> None:
    stage.world.tell("b", [SetTimer("session", START_MS + 50)])
    hosts.pause(stage.world, "b")
    stage.run(60)
    stage.world.tell("b", [SetTimer("session", START_MS + 400)])
    stage.run(200)
    hosts.wake(stage.world, "b")
    hosts.wake(stage.world, "b")
    stage.run(1000)
    assert stage.peer("b").felt == [(400, "session")]


def test_a_crash_closes_connections_after_what_was_sent_and_loses_what_was_coming(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(5)
    stage.say("a", "b", 2)
    hosts.crash(stage.world, "b")
    stage.run(100)
    assert stage.peer("b").felt == [(5, "asked 1")]
    assert stage.peer("a").felt == [(10, "answered 1"), (10, "lost b")]


def test_nobody_listens_at_a_crashed_host(stage: Stage) -> None:
    hosts.crash(stage.world, "b")
    stage.say("a", "b", 1)
    stage.run(100)
    assert stage.peer("a").felt == [(5, "lost b")]


def test_a_restarted_host_serves_again_and_never_gets_its_predecessors_answers(stage: Stage) -> None:
    hosts.set_link(stage.world, "b", "a", Condition(delay_ms=100))
    stage.say("a", "b", 1)
    stage.run(20)
    hosts.crash(stage.world, "a")
    hosts.restart(stage.world, "a")
    stage.run(30)
    stage.say("a", "b", 1)
    stage.run(1000)
    assert stage.peer("a", 0).felt == []
    assert stage.peer("a").incarnation == 1
    assert stage.peer("a").felt == [(140, "answered 1")]


def test_a_dead_node_is_silent_and_its_successor_closes_old_connections(stage: Stage) -> None:
    stage.say("a", "b", 1)
    stage.run(20)
    hosts.silence(stage.world, "node of b")
    stage.say("a", "b", 2)
    stage.run(5000)
    assert stage.peer("a").felt == [(10, "answered 1")]
    hosts.restart(stage.world, "b")
    stage.say("a", "b", 3)
    stage.run(6000)
    assert stage.peer("a").felt[1:] == [(5005, "lost b")]
    stage.say("a", "b", 4)
    stage.run(7000)
    assert stage.peer("a").felt[2:] == [(6010, "answered 4")]


def test_on_a_slow_disk_a_step_that_wrote_is_done_late_and_nothing_overtakes_it(stage: Stage) -> None:
    disk = stage.world.hosts["b"].disk

    def write() -> None:
        disk.writes += 1

    stage.peer("b").write = write
    hosts.slow_disk(stage.world, "b", 100)
    stage.say("a", "b", 1)
    stage.run(6)
    stage.peer("b").write = None
    stage.say("a", "b", 2)
    stage.run(1000)
    assert stage.peer("a").felt == [(110, "answered 1"), (110, "answered 2")]


def test_a_paused_host_that_crashes_forgets_what_waited(stage: Stage) -> None:
    hosts.pause(stage.world, "b")
    stage.say("a", "b", 1)
    stage.run(50)
    hosts.crash(stage.world, "b")
    hosts.wake(stage.world, "b")
    stage.run(100)
    assert (stage.peer("b").felt, stage.peer("a").felt) == ([], [(55, "lost b")])


# Going back


def test_going_back_in_time_gives_the_same_bytes_again() -> None:
    stage = Stage(5)
    for source, target in (("a", "b"), ("b", "a")):
        hosts.set_link(stage.world, source, target, Condition(jitter_ms=80, loss=0.2))
    stage.say("a", "b", 1, 2, 3)
    stage.run(30)
    kept = snapshot.keep(stage.world)
    futures = []
    for _ in range(2):
        snapshot.go_back(stage.world, kept)
        seen: list[tuple[int, str]] = []
        stage.world.tell("a", Peer("a").say("b", 4, 5))
        stage.run(20_000)
        for name in "ab":
            machine = stage.world.processes[name].machine
            assert isinstance(machine, Peer)
            seen += machine.felt
        futures.append(seen)
    assert futures[0] == futures[1]
    assert len(futures[0]) >= 10
