"""Members driven by hand: one request after the other, by name, in virtual time. The verbs are in `verbs.py`.

Recordings, transcripts and properties are all dialogues. A step is plain data (`{do: join, member:
a}`), and so is its answer, in the form that recordings have: ids by their names (`$a` is the first id that was given to
member a, `$a.2` the second), empty fields left out.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from cluster.broker import controller
from cluster.broker.broker import INTRODUCE, START, Broker
from cluster.broker.controller import Controller
from cluster.broker.storage import MemoryDisk
from cluster.config import BrokerConfig, ControllerConfig, settings
from cluster.coordinator.coordinator import GroupCoordinator
from cluster.machine import Effect, Envelope, Input, Received, Send, Told
from cluster.sim.world import World
from cluster.wire.apis import request
from cluster.wire.errors import Error
from cluster.wire.fields import Message
from cluster.wire.groups import FindCoordinatorRequest, FindCoordinatorResponse, JoinGroupResponse
from cluster.wire.log import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

PATIENCE_MS = 600_000                          # an answer that does not come in this time does not come
ASYNC_MS = 100                                 # what passes after a step whose answer is not waited for
NO_ANSWER = "no answer"
ALONE = {"offsets.topic.replication.factor": 1, "broker.heartbeat.interval.ms": PATIENCE_MS,
         "replica.fetch.wait.max.ms": PATIENCE_MS}     # there is one broker: nobody doubts that it is alive


class Call(msgspec.Struct, eq=False):
    """A request, and its answer once that is there."""

    envelope: Envelope
    member: str | None                         # whose request it is
    asked_at: int
    answered_at: int | None = None
    answer: Any = None


class Hand:
    """The machine at the other end of every member's connection: sends what it is told to, keeps what comes back."""

    def __init__(self, heard: Callable[[Call], None]) -> None:
        self.heard = heard
        self.calls: dict[int, Call] = {}
        self.answers: dict[int, int] = {}      # correlation id -> how many answers came

    def step(self, now: int, event: Input) -> list[Effect]:
        if isinstance(event, Told) and isinstance(event.command, Call):
            envelope = event.command.envelope
            self.calls[envelope.correlation_id] = event.command
            return [Send(envelope.destination, envelope)]
        if isinstance(event, Received):
            envelope = event.envelope
            self.answers[envelope.correlation_id] = self.answers.get(envelope.correlation_id, 0) + 1
            call = self.calls[envelope.correlation_id]
            call.answered_at = now
            call.answer = envelope.body
            self.heard(call)
        return []


class Known(msgspec.Struct, eq=False):
    """What a member has learnt."""

    ids: list[str] = []
    generation: int = -1
    protocol: str = "range"


class Dialogue:
    """One broker with its coordinator, and members that do as they are told."""

    def __init__(self, config: Mapping[str, Any], topics: Mapping[str, int], *, seed: int = 0,
                 through_codec: bool = True, broker: type[Broker] = Broker) -> None:
        self.config = settings(BrokerConfig, {**ALONE, **config})
        self.seed = seed
        self.world = World(through_codec=through_codec)
        disk = MemoryDisk()
        self.controller = Controller("controller", ControllerConfig(broker_session_timeout_ms=2**31 - 1), disk)
        self.broker = broker("broker-1", "coordinator-1", 1, self.config, disk)
        self.coordinator = self._coordinator()
        self.hand = Hand(self._heard)
        self.world.add("controller", self.controller, "node-1", disk=disk)
        self.world.add("broker-1", self.broker, "node-1")
        self.world.add("coordinator-1", self.coordinator, "node-1")
        self.world.add("hand", self.hand)
        self.members: dict[str, Known] = {}
        self.names: dict[str, str] = {}        # id -> the name it goes by
        self.groups: dict[str, None] = {"main": None}
        self.waiting: dict[str, tuple[Any, Call]] = {}
        self.world.tell("controller", controller.START)
        self.world.tell("broker-1", START)
        self.world.run_until(lambda: self.broker.image.is_active(1), self.world.now + PATIENCE_MS)
        self._warm_up(topics)

    def _coordinator(self, incarnation: int = 0) -> GroupCoordinator:
        return GroupCoordinator("coordinator-1", "broker-1", 1, self.config, Random(f"{self.seed}/coordinator-1"),
                                incarnation)

    def restart_coordinator(self) -> None:
        """The coordinator's process dies; another one takes over, and knows what the log says."""
        self.seed += 1
        old = self.world.processes["coordinator-1"]
        self.coordinator = self._coordinator(old.incarnation + 1)
        self.world.close(old, "hand")
        self.world.replace(old, self.coordinator)
        self.world.tell("broker-1", INTRODUCE)

    def _warm_up(self, topics: Mapping[str, int]) -> None:
        """As a recording finds its broker: the topics are there, and so is the offsets topic, since somebody asked."""
        wanted = tuple(CreatableTopic(name, partitions, 1) for name, partitions in topics.items())
        made: CreateTopicsResponse = self.ask(CreateTopicsRequest(wanted), broker=True).answer
        problems = [f"{each.name}: {each.error_message}" for each in made.topics if each.error_code is not Error.NONE]
        if problems:
            raise ValueError("; ".join(problems))
        find = FindCoordinatorRequest(coordinator_keys=("main",))
        for _ in range(2):
            found: FindCoordinatorResponse = self.ask(find, broker=True).answer
        if found.coordinators[0].error_code is not Error.NONE:
            raise ValueError(f"no coordinator: {found.coordinators[0].error_code.name}")

    # Time and messages

    def send(self, body: Message, *, member: str | None = None, version: int | None = None,
             broker: bool = False) -> Call:
        envelope = request(body, source="hand", destination="broker-1" if broker else "coordinator-1",
                           correlation_id=len(self.hand.calls) + 1, client_id=member or "hand", version=version)
        call = Call(envelope, member, self.world.now)
        self.world.tell("hand", call)
        return call

    def ask(self, body: Message, *, broker: bool = False) -> Call:
        call = self.send(body, broker=broker)
        self.wait_for(call)
        return call

    def wait_for(self, call: Call) -> None:
        """Until it is answered, and whatever else comes at that instant."""
        self.world.run_until(lambda: call.answered_at is not None, call.asked_at + PATIENCE_MS)
        self.world.run(self.world.now)

    def wait(self, ms: int) -> None:
        self.world.run(self.world.now + ms)

    # Names

    def member(self, name: str) -> Known:
        return self.members.setdefault(name, Known())

    def newest_id(self, name: str) -> str:
        ids = self.member(name).ids
        return ids[-1] if ids else ""

    def id_of(self, name: str) -> str:
        """The newest id of a member, or the id behind a `$name`; anything else is itself."""
        if name.startswith("$"):
            member, _, number = name[1:].partition(".")
            ids = self.member(member).ids
            index = int(number or 1) - 1
            return ids[index] if index < len(ids) else name
        return self.newest_id(name) or name

    def name_of(self, member_id: str) -> str:
        """An id by its name, if we know whose it is."""
        return self.names.get(member_id, member_id)

    def _heard(self, call: Call) -> None:
        """A member learns its id, its generation and its protocol from the answer to a join."""
        answer = call.answer
        if call.member is None or not isinstance(answer, JoinGroupResponse):
            return
        known = self.member(call.member)
        if answer.member_id and not call.envelope.body.member_id:
            known.ids.append(answer.member_id)
            number = len(known.ids)
            self.names[answer.member_id] = f"${call.member}" if number == 1 else f"${call.member}.{number}"
        if answer.error_code is Error.NONE:
            known.generation = answer.generation_id
            known.protocol = answer.protocol_name or ""
