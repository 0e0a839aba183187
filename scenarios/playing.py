"""The steps of a dialogue: what may stand in one, and what becomes of it when it is played."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from cluster.wire.codec import Refused
from cluster.wire.log import FetchPartition, FetchRequest, FetchTopic
from scenarios.dialogue import ASYNC_MS, NO_ANSWER, Call, Dialogue
from scenarios.shown import EMPTY_ID
from scenarios.verbs import SAID, Commit, Verb

EARLY_MS, LATE_MS = 100, 300                   # how far from its time an answer may come and still count as in time
LATER = ("consumer_heartbeat", "consumer_describe")     # verbs of recordings that nothing here can play yet

LONGEST_MS = 30 * 24 * 3_600_000                # a month: a mistyped number must not keep us for ever

Later = Callable[[], Any]                      # an answer, once all names are known that may stand in it


class WaitMs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_MS)]


class Await(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = msgspec.field(name="await")


class StillWaiting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = msgspec.field(name="still_waiting")


class Placement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", tag="placement"):
    groups: list[str]


class NotEmulated(msgspec.Struct, frozen=True):
    """A step that may stand in a recording, but that nothing here can play yet."""

    do: str


Step = WaitMs | Await | StillWaiting | Placement | NotEmulated | Verb
SILENT: Mapping[str, type[Step]] = {"wait_ms": WaitMs, "await": Await, "still_waiting": StillWaiting}
VERBS: Mapping[str, type[Step]] = {"placement": Placement} | {str(verb.__struct_config__.tag): verb for verb in SAID}


class BadStep(ValueError):
    """Not a step of a dialogue."""


def step_from(given: Mapping[str, Any]) -> Step:
    """The step that some plain data describes (without the answer that a recording adds)."""
    plain = {key: value for key, value in given.items() if key != "answer"}
    for key, kind in SILENT.items():
        if key in plain:
            return _convert(plain, kind, key)
    do = str(plain.get("do"))
    if do in LATER:
        return NotEmulated(do)
    if do not in VERBS:
        raise BadStep(f"a step has {', '.join(SILENT)} or `do:` one of {', '.join(sorted(VERBS))}; not {do!r}")
    return _convert(plain, VERBS[do], do)


def _convert(plain: Mapping[str, Any], kind: type[Step], what: str) -> Step:
    allowed = [field.encode_name for field in msgspec.structs.fields(kind)]
    for key in plain:
        if key not in allowed and key != "do":
            raise BadStep(f"{what} has no key {key!r}; allowed: {', '.join(sorted(allowed))}")
    try:
        step: Step = msgspec.convert(plain, kind)
    except msgspec.ValidationError as problem:
        raise BadStep(f"{what}: {problem}") from None
    return step


def play(dialogue: Dialogue, step: Step) -> Later:
    """Carry a step out. What comes back gives the answer, or None for a step that has none."""
    if isinstance(step, WaitMs):
        dialogue.wait(step.wait_ms)
        return lambda: None
    if isinstance(step, StillWaiting):
        waits = _said(dialogue, step.name)[1].answered_at is None
        return lambda: waits
    if isinstance(step, Await):
        verb, call = _said(dialogue, step.name)
        dialogue.wait_for(call)
        return lambda: _answer(dialogue, verb, call)
    if isinstance(step, Placement):
        found = _placement(dialogue, step.groups)
        return lambda: found
    if isinstance(step, NotEmulated):
        return lambda: f"{step.do} is not emulated"
    return _say(dialogue, step)


def _say(dialogue: Dialogue, verb: Verb) -> Later:
    version = verb.VERSION if verb.version is None else verb.version
    try:
        call = dialogue.send(verb.build(dialogue), member=verb.member, version=version, broker=verb.TO_BROKER)
    except Refused as problem:                 # a real broker closes the connection on such a request
        refused = str(problem)
        return lambda: refused
    if verb.name is not None:
        dialogue.waiting[verb.name] = verb, call
        dialogue.wait(ASYNC_MS)
        return lambda: None
    dialogue.wait_for(call)
    return lambda: _answer(dialogue, verb, call)


def _said(dialogue: Dialogue, name: str) -> tuple[Verb, Call]:
    if name not in dialogue.waiting:
        raise BadStep(f"nothing was said with async: {name}")
    return dialogue.waiting[name]


def _answer(dialogue: Dialogue, verb: Verb, call: Call) -> Any:
    if call.answered_at is None:
        return NO_ANSWER
    answer = verb.show(dialogue, call.answer)
    if verb.expect_ms is not None:
        took_ms = call.answered_at - call.asked_at
        in_time = -EARLY_MS <= took_ms - verb.expect_ms <= LATE_MS
        answer |= {"after_ms": verb.expect_ms} if in_time else {"took_ms": took_ms}
    return answer


def _placement(dialogue: Dialogue, groups: list[str]) -> dict[str, int]:
    """The partition of __consumer_offsets whose log grows when a group commits."""
    found: dict[str, int] = {}
    topic = next(name for name in dialogue.broker.image.topics if not name.startswith("__"))
    for group in groups:
        before = _ends(dialogue)
        dialogue.wait_for(dialogue.send(Commit(group=group, offsets={topic: {0: 0}}).build(dialogue)))
        grown = [number for number, end in enumerate(_ends(dialogue)) if end > before[number]]
        found[group or EMPTY_ID] = grown[0] if grown else -1
    return found


def _ends(dialogue: Dialogue) -> list[int]:
    """The high watermark of each partition of the offsets topic, as any client may ask for it."""
    wanted = tuple(FetchPartition(number, 0) for number in range(dialogue.config.offsets_topic_num_partitions))
    answer = dialogue.ask(FetchRequest((FetchTopic("__consumer_offsets", wanted),)), broker=True).answer
    return [one.high_watermark for one in answer.responses[0].partitions]
