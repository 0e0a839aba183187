"""Plays what a real Kafka broker was asked, and compares every answer with what it said.

The file's format is described at its top. A case is played on a cluster of its own, in virtual time, every message
through the codec; a request takes 2 ms.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from cluster.config import BadSetting, BrokerConfig, settings
from scenarios.dialogue import Dialogue
from scenarios.playing import Await, BadStep, NotEmulated, Step, StillWaiting, play, step_from
from scenarios.reading import BadFile, Document, Lines, plain
from scenarios.verbs import Verb

Protocol = Literal["classic", "consumer"]
PLAIN = "plain"                                # the broker of a case that names none


class Case(msgspec.Struct, frozen=True):
    name: str
    line: int
    protocol: Protocol
    is_quirk: bool                             # an accident of the recorded broker that need not be copied
    broker: dict[str, Any]
    topics: dict[str, int]
    steps: list[tuple[dict[str, Any], Step]]   # as written, and what it means


class Difference(msgspec.Struct, frozen=True):
    request: dict[str, Any]
    recorded: Any
    ours: Any


class Outcome(msgspec.Struct, frozen=True):
    case: str
    protocol: Protocol
    is_quirk: bool
    differences: list[Difference]


def read(path: str | Path) -> list[Case]:
    """The cases of a file. Raises BadFile if it is no such file; then nothing was played."""
    document = Document(path)
    content = document.mapping(document.content, None, "a recording", ("brokers", "cases"))
    brokers = {name: _broker(document, name, given) for name, given in
               document.mapping(content.get("brokers", Lines()), content, "`brokers`").items()}
    listed = document.sequence(content.get("cases"), content, "`cases`")
    return [_case(document, given, brokers) for given in listed]


def play_case(case: Case) -> Outcome:
    dialogue = Dialogue(case.broker, case.topics)
    heard = [(given, play(dialogue, step)) for given, step in case.steps]
    differences = []
    for given, answer in heard:
        if "answer" in given and (ours := answer()) != given["answer"]:
            request = {key: value for key, value in given.items() if key != "answer"}
            differences.append(Difference(request, given["answer"], ours))
    return Outcome(case.name, case.protocol, case.is_quirk, differences)


def play_file(path: str | Path, only: Protocol | None = None) -> Iterator[Outcome]:
    """Every case of a file, or only those of one protocol."""
    for case in read(path):
        if only in (None, case.protocol):
            try:
                yield play_case(case)
            except ValueError as problem:      # a step that makes no sense where it stands, a topic that cannot be made
                raise BadFile(Path(path), case.line, f"case {case.name}: {problem}") from None


def _broker(document: Document, name: str, given: Any) -> dict[str, Any]:
    properties = document.mapping(given, document.content["brokers"], f"broker {name!r}")
    try:
        settings(BrokerConfig, properties)
    except BadSetting as problem:
        raise document.bad(properties, f"broker {name!r}: {problem}") from None
    return properties


def _case(document: Document, given: Any, brokers: dict[str, dict[str, Any]]) -> Case:
    allowed = ("case", "broker", "topics", "alone", "quirk", "steps")
    written = document.mapping(given, document.content, "a case", allowed)
    name = written.get("case")
    if not isinstance(name, str):
        raise document.bad(written, "a case has a name, under `case`")
    broker = written.get("broker", PLAIN)
    if broker not in brokers and not (broker == PLAIN and not brokers):
        raise document.bad(written, f"case {name}: no broker {broker!r}; there are: {', '.join(brokers)}", "broker")
    topics = document.mapping(written.get("topics", Lines()), written, f"case {name}: `topics`")
    for topic, partitions in topics.items():
        if not isinstance(topic, str) or not isinstance(partitions, int) or partitions < 1:
            raise document.bad(topics, f"case {name}: `topics` has the number of partitions under each name", topic)
    steps = [_step(document, written, name, step)
             for step in document.sequence(written.get("steps"), written, f"case {name}: `steps`")]
    if not steps:
        raise document.bad(written, f"case {name} has no steps", "steps")
    _check_names(document, written["steps"], name, [step for _, step in steps])
    protocol: Protocol = "consumer" if any(isinstance(step, NotEmulated) for _, step in steps) else "classic"
    return Case(name, written.line, protocol, bool(written.get("quirk")), brokers.get(broker, {}), topics, steps)


def _check_names(document: Document, written: list[Lines], case: str, steps: list[Step]) -> None:
    """Nobody can wait for what was never said."""
    said: set[str] = set()
    for line, step in zip(written, steps, strict=True):
        if isinstance(step, Await | StillWaiting) and step.name not in said:
            raise document.bad(line, f"case {case}: nothing was said before with async: {step.name}")
        if isinstance(step, Verb) and step.name is not None:
            said.add(step.name)


def _step(document: Document, case: Lines, name: str, given: Any) -> tuple[dict[str, Any], Step]:
    written = document.mapping(given, case, f"case {name}: a step")
    try:
        return plain(written), step_from(written)
    except BadStep as problem:
        raise document.bad(written, f"case {name}: {problem}") from None
