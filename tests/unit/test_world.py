"""Virtual time: one event after the other, always in the same order."""

from cluster.events import LeaderChosen, Stamped
from cluster.machine import (
    CancelTimer,
    Disconnect,
    Disconnected,
    Effect,
    Emit,
    Input,
    Received,
    Send,
    SetTimer,
    TimerFired,
    Told,
)
from cluster.sim.world import START_MS, World
from cluster.wire.apis import request
from cluster.wire.groups import HeartbeatRequest
from scenarios.dialogue import Dialogue
from scenarios.playing import play, step_from


class Puppet:
    """Does what it is told, and remembers when what reached it."""

    def __init__(self) -> None:
        self.felt: list[tuple[int, Input]] = []

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told):
            return list(event.command)
        self.felt.append((now - START_MS, event))
        return []

    def timers(self) -> list[tuple[int, str]]:
        return [(at, event.name) for at, event in self.felt if isinstance(event, TimerFired)]


def a_world() -> tuple[World, Puppet, Puppet]:
    world, a, b = World(latency_ms=5), Puppet(), Puppet()
    world.add("a", a)
    world.add("b", b)
    return world, a, b


def beat(destination: str = "b", number: int = 1) -> Send:
    return Send(
        destination, request(HeartbeatRequest("g", 1, "m"), source="a", destination=destination, correlation_id=number)
    )


def due(ms: int) -> int:
    return START_MS + ms


def test_timers_fire_at_their_time_and_in_the_order_they_were_set() -> None:
    world, a, _ = a_world()
    world.tell("a", [SetTimer("late", due(20)), SetTimer("x", due(10)), SetTimer("y", due(10))])
    world.run(due(30))
    assert a.timers() == [(10, "x"), (10, "y"), (20, "late")]
    assert world.now == due(30)


def test_a_timer_that_was_moved_or_cancelled_never_fires_for_its_old_time() -> None:
    world, a, _ = a_world()
    world.tell("a", [SetTimer("later", due(10)), SetTimer("sooner", due(50)), SetTimer("gone", due(10))])
    world.tell(
        "a", [SetTimer("later", due(40)), SetTimer("sooner", due(20)), CancelTimer("gone"), CancelTimer("never set")]
    )
    world.run(due(100))
    assert a.timers() == [(20, "sooner"), (40, "later")]


def test_a_timer_that_was_cancelled_and_set_again_fires_once() -> None:
    world, a, _ = a_world()
    world.tell("a", [SetTimer("x", due(10)), CancelTimer("x"), SetTimer("x", due(30)), SetTimer("x", due(30))])
    world.run(due(100))
    assert a.timers() == [(30, "x")]


def test_a_timer_set_again_for_the_same_instant_takes_its_turn_anew() -> None:
    world, a, _ = a_world()
    world.tell("a", [SetTimer("x", due(10)), SetTimer("y", due(10)), SetTimer("x", due(10))])
    world.run(due(10))
    assert a.timers() == [(10, "y"), (10, "x")]


def test_a_timer_for_the_past_fires_now() -> None:
    world, a, _ = a_world()
    world.run(due(10))
    world.tell("a", [SetTimer("x", due(3))])
    world.run(due(10))
    assert a.timers() == [(10, "x")]


def test_a_message_that_arrives_at_the_instant_of_a_timer_comes_first() -> None:
    world, a, b = a_world()
    world.tell("b", [SetTimer("session", due(5))])
    world.tell("a", [beat()])
    world.run(due(5))
    assert [type(event) for _, event in b.felt] == [Received, TimerFired]
    assert a.felt == []


def test_messages_of_one_connection_arrive_in_order_and_late() -> None:
    world, _, b = a_world()
    world.tell("a", [beat(number=1), beat(number=2)])
    world.run(due(4))
    assert b.felt == []
    world.run(due(5))
    assert [event.envelope.correlation_id for _, event in b.felt if isinstance(event, Received)] == [1, 2]


def test_within_one_place_nothing_takes_time() -> None:
    world, b = World(latency_ms=5), Puppet()
    world.add("a", Puppet(), "node")
    world.add("b", b, "node")
    world.tell("a", [beat()])
    world.run(due(0))
    assert [at for at, _ in b.felt] == [0]


def test_nobody_at_an_address_closes_the_connection() -> None:
    world, a, _ = a_world()
    world.tell("a", [beat("nobody")])
    world.run(due(10))
    assert a.felt == [(5, Disconnected("nobody"))]


def test_closing_a_connection_is_felt_at_the_other_end() -> None:
    world, a, b = a_world()
    world.tell("a", [beat(), Disconnect("b"), Disconnect("nobody")])
    world.run(due(10))
    assert b.felt == [(5, Disconnected("a"))], "and what was in flight is gone"
    assert a.felt == []
    world.tell("a", [Disconnect("b")])
    world.run(due(20))
    assert len(b.felt) == 1, "there is no connection to close any more"


def test_a_process_that_was_restarted_feels_nothing_of_its_predecessor() -> None:
    world, _, b = a_world()
    world.tell("b", [SetTimer("old", due(10))])
    world.tell("a", [beat()])
    again = Puppet()
    world.replace(world.processes["b"], again)
    world.run(due(100))
    assert (b.felt, again.felt) == ([], [])


def test_events_are_stamped_with_the_instant_the_machine_and_a_number() -> None:
    world, _, _ = a_world()
    seen: list[Stamped] = []
    world.observers.append(seen.append)
    world.run(due(7))
    world.tell("a", [Emit(LeaderChosen("g", "m")), Emit(LeaderChosen("g", "n"))])
    assert seen == [Stamped(due(7), "a", 1, LeaderChosen("g", "m")), Stamped(due(7), "a", 2, LeaderChosen("g", "n"))]


def test_waiting_for_something_ends_when_it_is_there_or_time_is_up() -> None:
    world, a, _ = a_world()
    world.tell("a", [SetTimer("x", due(10)), SetTimer("y", due(50))])
    assert world.run_until(lambda: bool(a.felt), due(30))
    assert world.now == due(10)
    assert not world.run_until(lambda: len(a.felt) > 1, due(30))
    assert world.now == due(30)


def story(through_codec: bool) -> list[object]:
    dialogue = Dialogue({}, {"t": 2}, through_codec=through_codec)
    seen: list[object] = []
    dialogue.world.observers.append(seen.append)
    dialogue.world.listeners.append(lambda now, envelope: seen.append((now, envelope)))
    for member in "ab":
        for _ in range(2):
            play(dialogue, step_from({"do": "join", "member": member, "async": member}))
    dialogue.wait(10000)
    play(dialogue, step_from({"do": "sync", "member": "a", "assign": {"a": "x", "b": "y"}}))
    play(dialogue, step_from({"do": "commit", "member": "a", "offsets": {"t": {0: 3}}}))
    dialogue.wait(60000)
    return seen


def test_machines_cannot_tell_whether_a_codec_lies_between_them() -> None:
    assert story(through_codec=True) == story(through_codec=False)
    assert len(story(through_codec=True)) > 40
