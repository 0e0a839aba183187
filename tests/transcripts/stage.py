"""Where transcripts are played: a cluster whose coordinator is watched, and what may be said in a transcript."""

from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from cluster.broker.image import OFFSETS_TOPIC
from cluster.coordinator.records import GroupRecord, OffsetRecord, decode
from cluster.events import Event, GroupMoved, ShardLoaded, ShardLoading, ShardUnloaded
from cluster.machine import CancelTimer, Effect, Emit, Envelope, Input, Machine, Received, Send, SetTimer, TimerFired
from cluster.wire.apis import APIS
from cluster.wire.errors import Error
from cluster.wire.groups import JoinGroupResponse, LeaveGroupResponse
from cluster.wire.log import (
    FetchRequest,
    FetchResponse,
    MetadataChanged,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    Record,
    TopicProduceResponse,
)
from scenarios.dialogue import Dialogue
from scenarios.playing import play, step_from
from tests.slow_log import THAW, LedBy, SlowLog


class Witness:
    """Stands around a machine and writes down what goes in and what comes out."""

    def __init__(self, machine: Machine, begin: int, write: Callable[[str], None]) -> None:
        self.machine = machine
        self.begin = begin
        self.write = write

    def step(self, now: int, event: Input) -> list[Effect]:
        effects = self.machine.step(now, event)
        lines = [line for effect in effects for line in _shown_effect(effect, self.begin)]
        if (
            lines
            or not isinstance(event, Received)
            or not isinstance(event.envelope.body, (FetchResponse, ProduceResponse))
        ):
            self.write(f"{now - self.begin:>7} {_shown_input(event)}")
            for line in lines:
                self.write(f"          {line}")
        return effects


class Stage:
    def __init__(self) -> None:
        self.printed: list[str] = []
        self.commands: dict[str, Callable[..., None]] = {
            "cluster": self.cluster,
            "freeze": self.freeze,
            "thaw": self.thaw,
            "refuse": self.refuse,
            "accept": self.accept,
            "lose": self.lose,
            "commit_first": self.commit_first,
            "restart": self.restart,
            "resign": self.resign,
            "elect": self.elect,
            "wait": self.wait,
            "await": self.wait_for,
        }
        self.cluster()

    def play(self, line: str) -> None:
        verb, *words = _words(line)
        if verb in self.commands:
            self.commands[verb](*words)
        else:
            self.say(verb, words)

    def names(self, text: str) -> str:
        """The text with every member id replaced by its name."""
        for member_id, name in self.dialogue.names.items():
            text = text.replace(member_id, name)
        return text

    # The commands

    def cluster(self, *words: str) -> None:
        """One broker with these settings, under Kafka's keys; nobody waits for an initial delay unless told to."""
        config = {"group.initial.rebalance.delay.ms": 0} | dict(map(_pair, words))
        self.dialogue = Dialogue(config, {"t": 2, "u": 1}, broker=SlowLog)
        assert isinstance(self.dialogue.broker, SlowLog)
        self.broker = self.dialogue.broker
        self.begin = self.dialogue.world.now
        self.watch()

    def watch(self) -> None:
        process = self.dialogue.world.processes["coordinator-1"]
        process.machine = Witness(self.dialogue.coordinator, self.begin, self.printed.append)

    def say(self, verb: str, words: list[str]) -> None:
        """A verb of dialogues: `join a session_ms=1500`."""
        step: dict[str, Any] = {"do": verb}
        if words and "=" not in words[0]:
            step["member"] = words.pop(0)
        play(self.dialogue, step_from(step | dict(map(_pair, words))))

    def wait(self, ms: str) -> None:
        self.dialogue.wait(int(ms))

    def wait_for(self, name: str) -> None:
        play(self.dialogue, step_from({"await": name}))

    def freeze(self) -> None:
        """The log takes records and does not commit them."""
        self.broker.is_frozen = True

    def thaw(self) -> None:
        """What was written is committed."""
        self.broker.is_frozen = False
        self.dialogue.world.tell("broker-1", THAW)
        self.dialogue.wait(1)

    def commit_first(self) -> None:
        """Of what was written, the first is committed; the rest waits."""
        rest, self.broker.held = self.broker.held[1:], self.broker.held[:1]
        self.dialogue.world.tell("broker-1", THAW)
        self.broker.held = rest
        self.dialogue.wait(1)

    def lose(self, error: str) -> None:
        """What was written is lost, and the coordinator hears of it now."""
        lost = (PartitionProduceResponse(0, Error[error]),)
        self.broker.held = [
            Send(
                effect.to,
                msgspec.structs.replace(
                    effect.envelope, body=ProduceResponse((TopicProduceResponse(OFFSETS_TOPIC, lost),))
                ),
            )
            for effect in self.broker.held
            if isinstance(effect, Send)
        ]
        self.thaw()

    def refuse(self, error: str) -> None:
        """The log refuses what is written from now on."""
        self.broker.refuses = Error[error]

    def accept(self) -> None:
        self.broker.refuses = None

    def restart(self, *words: str) -> None:
        """The coordinator's process dies, and another takes over, perhaps with other settings."""
        given = {key.replace(".", "_"): value for key, value in map(_pair, words)}
        self.dialogue.config = msgspec.structs.replace(self.dialogue.config, **given)
        self.dialogue.restart_coordinator()
        self.watch()
        self.dialogue.wait(1)

    def resign(self) -> None:
        """Another broker leads the offsets topic now."""
        self._led_by(2)

    def elect(self) -> None:
        """This broker leads it again."""
        self._led_by(1)

    def _led_by(self, leader: int) -> None:
        self.dialogue.world.tell("broker-1", LedBy(leader))
        self.dialogue.wait(1)


# How it is shown


def _words(line: str) -> list[str]:
    """The words of a command: what stands in brackets belongs together."""
    words, depth = [""], 0
    for character in line.strip():
        depth += (character in "[{") - (character in "]}")
        if character == " " and not depth:
            words.append("")
        else:
            words[-1] += character
    return words


def _pair(word: str) -> tuple[str, Any]:
    key, _, value = word.partition("=")
    return key, yaml.safe_load(value)


def _shown_input(event: Input) -> str:
    if isinstance(event, TimerFired):
        return f"timer {event.name}"
    if isinstance(event, Received):
        body = event.envelope.body
        if isinstance(body, ProduceResponse):
            error = body.responses[0].partition_responses[0].error_code
            return "committed" if error is Error.NONE else f"refused by the log: {error.name}"
        if isinstance(body, FetchResponse):
            return "read from the log"
        return f"{event.envelope.client_id} {APIS[event.envelope.api_key].name}"
    return repr(event)


def _shown_effect(effect: Effect, begin: int) -> list[str]:
    if isinstance(effect, Emit):
        return _shown_event(effect.event)
    if isinstance(effect, SetTimer):
        return [] if effect.name.startswith("expire/") else [f"timer {effect.name} at {effect.due - begin}"]
    if isinstance(effect, CancelTimer):
        return [] if effect.name.startswith("expire/") else [f"no timer {effect.name}"]
    if isinstance(effect, Send):
        return _shown_message(effect.envelope)
    return [repr(effect)]


def _shown_event(event: Event) -> list[str]:
    if isinstance(event, (ShardLoading, ShardUnloaded)) or (isinstance(event, ShardLoaded) and not event.records):
        return []
    plain = msgspec.to_builtins(event)
    kind = plain.pop("kind")
    if isinstance(event, GroupMoved):
        return [f"* {event.group_id} {event.before} -> {event.after} ({event.why}) generation {event.generation}"]
    told = [f"{key}={_plain(value)}" for key, value in plain.items() if key not in ("detail", "until", "accepted_at")]
    return [" ".join([f"* {kind}", *told])]


def _shown_message(envelope: Envelope) -> list[str]:
    body = envelope.body
    if isinstance(body, ProduceRequest):
        return [f"write {_shown_record(record)}" for record in body.topic_data[0].partition_data[0].records]
    if isinstance(body, (FetchRequest, MetadataChanged)):
        return []
    plain = msgspec.to_builtins(body)
    plain.pop("error_code", None)
    error = [body.error_code.name] if hasattr(body, "error_code") else []
    if isinstance(body, JoinGroupResponse):
        plain["members"] = [member.member_id for member in body.members]
    if isinstance(body, LeaveGroupResponse):
        plain["members"] = [f"{member.member_id} {member.error_code.name}" for member in body.members]
    if "assignment" in plain:
        plain["assignment"] = body.assignment.decode()
    shown = [f"{key}={_plain(_named(value))}" for key, value in plain.items() if value]
    return [" ".join([f"answer {envelope.client_id} {APIS[envelope.api_key].name}", *error, *shown])]


def _named(value: Any) -> Any:
    """Plain data with the names of errors in place of their codes, and lists for tuples."""
    if isinstance(value, dict):
        return {key: Error(each).name if key == "error_code" else _named(each) for key, each in value.items()}
    return [_named(each) for each in value] if isinstance(value, (list, tuple)) else value


def _plain(value: Any) -> str:
    return str(list(value) if isinstance(value, tuple) else value).replace("'", "")


def _shown_record(record: Record) -> str:
    stored = decode(record)
    if isinstance(stored, OffsetRecord):
        value = "tombstone" if stored.offset is None else str(stored.offset.offset)
        return f"offset of {stored.group_id}: {stored.topic}-{stored.partition} = {value}"
    assert isinstance(stored, GroupRecord)
    if stored.metadata is None:
        return f"group {stored.group_id} = tombstone"
    members = [f"{each.member_id}: {each.assignment.decode()!r}" for each in stored.metadata.members]
    return f"group {stored.group_id} = generation {stored.metadata.generation}, members {{{', '.join(members)}}}"
