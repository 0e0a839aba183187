"""How fast the coordinator is: bytes in to bytes out, through codec and machines, every event encoded as it is written.

    python -m benchmarks.coordinator [--json]

A rebalance is: one more member joins, all rejoin, the leader sends a plan, all sync; the clock runs from the first
request's bytes to the last answer's. The requests are made beforehand: a client's work is not the coordinator's.
"""

import argparse
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from cluster.broker.broker import START, Broker
from cluster.broker.controller import Controller
from cluster.broker.storage import MemoryDisk
from cluster.config import BrokerConfig, ControllerConfig, settings
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.events import Stamped
from cluster.machine import Emit, Envelope, Received, Send, SetTimer, TimerFired, Told
from cluster.sim.world import START_MS
from cluster.subscription import Assignment, Subscription
from cluster.wire.apis import request
from cluster.wire.codec import decode, encode
from cluster.wire.fields import Message
from cluster.wire.groups import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

GROUP = "billing"
SETTINGS = {"offsets.topic.replication.factor": 1, "group.initial.rebalance.delay.ms": 0, "message.max.bytes": 64 << 20}
PROTOCOLS = (JoinGroupRequestProtocol("range", Subscription(topics=("orders",)).encode()),)
SHARE = Assignment(partitions={"orders": (0,)}).encode()


class Host:
    """As much of a host as is needed: frames in, frames out, events encoded, timers kept."""

    def __init__(self) -> None:
        config = settings(BrokerConfig, SETTINGS)
        self.coordinator = GroupCoordinator("coordinator-1", "broker-1", 1, config, Random(1))
        self.machines = {"controller": Controller("controller", ControllerConfig(), MemoryDisk()),
                         "broker-1": Broker("broker-1", "coordinator-1", 1, config, MemoryDisk()),
                         "coordinator-1": self.coordinator}
        self.now = START_MS
        self.answers: list[bytes] = []
        self.timers: dict[str, int] = {}
        self.events = 0
        self.event_bytes = 0
        self.encode_event = msgspec.msgpack.Encoder().encode
        for name in ("controller", "broker-1"):
            self._carry_out(name, self.machines[name].step(self.now, Told(START)))
        for _ in range(2):
            self.deliver(frame(FindCoordinatorRequest(coordinator_keys=(GROUP,)), "broker-1"))
        self.heard()

    def deliver(self, data: bytes) -> None:
        envelope = decode(data)
        machine = self.machines[envelope.destination]
        self._carry_out(envelope.destination, machine.step(self.now, Received(envelope.source, envelope)))

    def fire(self, prefix: str) -> None:
        """Let the timers with this kind of name fire, as if their time had come, until none is left."""
        while names := [name for name in self.timers if name.startswith(prefix)]:
            for name in names:
                del self.timers[name]
                self._carry_out("coordinator-1", self.coordinator.step(self.now, TimerFired(name)))

    def _carry_out(self, name: str, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                data = encode(effect.envelope)
                if effect.to in self.machines:
                    self.deliver(data)
                else:
                    self.answers.append(data)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.due
            elif isinstance(effect, Emit):
                self.events += 1
                self.event_bytes += len(self.encode_event(Stamped(self.now, name, self.events, effect.event)))

    def heard(self) -> list[Envelope]:
        answers, self.answers = [decode(data) for data in self.answers], []
        return answers


def frame(body: Message, destination: str = "coordinator-1", client: str = "bench") -> bytes:
    return encode(request(body, source=client, destination=destination, correlation_id=1, client_id=client))


def join(member_id: str, client: str) -> bytes:
    return frame(JoinGroupRequest(GROUP, 45000, "consumer", PROTOCOLS, 300000, member_id), client=client)


def sync(member_id: str, generation: int, plan: tuple[SyncGroupRequestAssignment, ...] = ()) -> bytes:
    return frame(SyncGroupRequest(GROUP, generation, member_id, None, "consumer", "range", plan))


def a_new_id(host: Host, number: int) -> str:
    host.deliver(join("", f"consumer-{number}"))
    (answer,) = host.heard()
    return str(answer.body.member_id)


def a_stable_group(members: int) -> tuple[Host, list[str], int]:
    """A group of that size, and the ids of its members, the leader's first."""
    host = Host()
    ids = [a_new_id(host, number) for number in range(members)]
    for member_id in ids:
        host.deliver(join(member_id, "bench"))
    host.fire("delay/")
    joined = [answer.body for answer in host.heard()]
    assert len(joined) == members
    generation = joined[0].generation_id
    plan = tuple(SyncGroupRequestAssignment(member_id, SHARE) for member_id in ids)
    for member_id in ids:
        host.deliver(sync(member_id, generation, plan if member_id == joined[0].leader else ()))
    assert len(host.heard()) == members
    return host, ids, generation


def rebalance(members: int, repeats: int) -> dict[str, float]:
    """The median time of one rebalance of a group of that size, with one member more each time."""
    host, ids, generation = a_stable_group(members)
    times = []
    events = host.events
    for number in range(repeats):
        ids.append(a_new_id(host, members + number))
        generation += 1
        plan = tuple(SyncGroupRequestAssignment(member_id, SHARE) for member_id in ids)
        frames = [join(member_id, "bench") for member_id in [ids[-1], *ids[:-1]]]
        frames += [sync(member_id, generation, plan if member_id == ids[0] else ()) for member_id in ids]
        events = host.events
        gc.collect()
        begin = time.perf_counter()
        for data in frames:
            host.deliver(data)
        times.append(time.perf_counter() - begin)
        answers = [answer.body for answer in host.heard()]
        assert len(answers) == 2 * len(ids)
        assert all(answer.error_code == 0 for answer in answers)
        assert answers[0].generation_id == generation
    return {"ms": statistics.median(times) * 1e3, "events": host.events - events}


def heartbeat(members: int, beats: int) -> dict[str, float]:
    host, ids, generation = a_stable_group(members)
    frames = [frame(HeartbeatRequest(GROUP, generation, member_id)) for member_id in ids]
    rounds = max(1, beats // members)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(rounds):
            for data in frames:
                host.deliver(data)
        times.append((time.perf_counter() - begin) / (rounds * members))
        assert all(answer.body.error_code == 0 for answer in host.heard())
    return {"us": statistics.median(times) * 1e6}


def parts_of_a_heartbeat(members: int) -> dict[str, float]:
    """What a heartbeat is made of, each part alone, in microseconds."""
    host, ids, generation = a_stable_group(members)
    frames = [frame(HeartbeatRequest(GROUP, generation, member_id)) for member_id in ids]
    envelopes = [decode(data) for data in frames]
    inputs = [Received(envelope.source, envelope) for envelope in envelopes]
    steps = [host.coordinator.step(host.now, each) for each in inputs]
    answers = [effect.envelope for effects in steps for effect in effects if isinstance(effect, Send)]
    events = [
        Stamped(host.now, "c", 1, effect.event) for effects in steps for effect in effects if isinstance(effect, Emit)
    ]
    works: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
        "decode": (decode, frames),
        "step": (lambda each: host.coordinator.step(host.now, each), inputs),
        "encode": (encode, answers),
        "event": (host.encode_event, events),
    }
    return {name: _per_item(work, items) for name, (work, items) in works.items()}


def _per_item(work: Callable[[Any], Any], items: list[Any]) -> float:
    times = []
    for _ in range(15):
        begin = time.perf_counter()
        for item in items:
            work(item)
        times.append((time.perf_counter() - begin) / len(items))
    return statistics.median(times) * 1e6


def memory(members: int) -> dict[str, float]:
    """What a process with a stable group of that size takes at most, all in all."""
    host, _, _ = a_stable_group(members)
    assert len(host.coordinator.shards) == 50
    return {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def bare(members: int) -> float:
    """The floor under all this, in this run and on this machine, in ms: each message is encoded, kept in a dict and
    decoded, and there is no protocol. What the protocol costs is a multiple of it."""
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        held: dict[str, bytes] = {}
        for _ in range(2):
            for number in range(members):
                held[f"member-{number}"] = msgspec.msgpack.encode((number, "member"))
            answers = [msgspec.msgpack.decode(data) for data in held.values()]
        times.append(time.perf_counter() - begin)
        assert len(answers) == members
    return statistics.median(times) * 1e3


Measure = Callable[[], dict[str, float]]
CASES: dict[str, tuple[Measure, str, float, float, float]] = {  # what, in which unit, must, aim, a real broker's
    "rebalance of 100 members, ms": (lambda: rebalance(100, 9), "ms", 0, 0, 13.6),
    "rebalance of 1,000 members, ms": (lambda: rebalance(1000, 7), "ms", 150, 55, 57),
    "rebalance of 10,000 members, ms": (lambda: rebalance(10000, 3), "ms", 2000, 600, 0),
    "one heartbeat among 1,000 members, us": (lambda: heartbeat(1000, 20000), "us", 15, 8, 19),
    "10,000 members in memory, MiB": (lambda: memory(10000), "mib", 1024, 400, 0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object for each figure")
    parser.add_argument("--only", default="", help="only the figures whose name contains this")
    arguments = parser.parse_args()
    floor = bare(1000)
    if not arguments.json:
        print(f"{'':45} {'here':>8} {'must':>8} {'aim':>8} {'x Kafka':>8} {'x bare loop':>12}")
    for name, (measure, unit, must, aim, kafka) in CASES.items():
        if arguments.only not in name:
            continue
        figure = measure()[unit]
        ratios = {
            "kafka": figure / kafka if kafka else None,
            "bare": figure / floor if name.startswith("rebalance of 1,") else None,
        }
        if arguments.json:
            print(json.dumps({"name": name, "figure": figure, "must": must, "aim": aim, **ratios}))
        else:
            cells = [f"{figure:8.2f}", *(f"{bound:8g}" if bound else " " * 8 for bound in (must, aim))]
            cells += [
                " " * width if ratio is None else f"{ratio:{width}.2f}"
                for ratio, width in zip(ratios.values(), (8, 12), strict=True)
            ]
            print(f"{name:45} {' '.join(cells)}")
        sys.stdout.flush()
    if arguments.only in "heartbeat":
        parts = parts_of_a_heartbeat(1000)
        told = ", ".join(f"{name} {figure:.2f}" for name, figure in parts.items())
        print(
            json.dumps({"name": "parts of a heartbeat, us", **parts})
            if arguments.json
            else f"of a heartbeat, us: {told}"
        )


if __name__ == "__main__":
    main()
