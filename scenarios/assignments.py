"""Plays recordings of Kafka's assignors: given the same members and topics, do ours decide the same?

The file's format is described at its top. Every round is played alone: a member claims what the recorded round before
gave it. Claims go through the bytes of a subscription, as they do in JoinGroup.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from cluster.assignors import Assignor, Plan
from cluster.primitives import Malformed
from cluster.subscription import LATEST, Subscription
from scenarios.assignors import NoAssignor, find
from scenarios.reading import Document, Lines

ON_THE_SERVER = ("server-range", "server-uniform")    # assignors of the coordinator itself: recorded, but not played

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Number = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Generation = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
Owned = dict[str, tuple[Number, ...]]
Result = dict[str, dict[str, list[Number]]]


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    topics: tuple[str, ...]
    instance: str | None = None
    owned: Owned = {}
    generation: Generation = -1
    field_owned: Owned | None = None
    field_generation: Generation | None = None
    no_userdata: bool = False
    version: Annotated[int, Meta(ge=0, le=LATEST)] = LATEST


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A round as it is written. If it is not exact, Java's hash order decides, and what follows held in all runs."""

    topics: dict[str, Count] | None = None
    generation: Generation | None = None
    members: dict[str, Any]
    result: Result
    exact: bool = True
    sizes: list[int] | None = None
    moved: int | None = None
    moved_max: int | None = None
    unassigned: int | None = None
    unassigned_max: int | None = None
    balanced: bool | None = None
    always: Result = {}


class RecordedCase(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    assignor: str
    exact: bool = True
    note: str = ""
    topics: dict[str, Count]
    rounds: list[Any]


class Round(msgspec.Struct, frozen=True):
    topics: dict[str, int]
    members: dict[str, Member]
    said: dict[str, bytes]                     # the members' subscriptions; none if the assignor is not played
    generation: int
    recorded: Recorded


class Case(msgspec.Struct, frozen=True):
    name: str
    assignor: str
    rounds: list[Round]


class Difference(msgspec.Struct, frozen=True):
    round: int
    what: str                                  # `result`, or what else was recorded of the round
    input: dict[str, Any]
    recorded: Any
    ours: Any


class Outcome(msgspec.Struct, frozen=True):
    case: str
    assignor: str
    skipped: bool = False
    differences: list[Difference] = []
    open_rounds: int = 0                       # rounds with more than one right result,
    open_as_recorded: int = 0                  # and in how many of these ours is the recorded run's


def play_file(path: str | Path) -> Iterator[Outcome]:
    """Every case of a file. The file is read and checked before the first is played."""
    return map(play_case, read(path))


def play_case(case: Case) -> Outcome:
    if case.assignor in ON_THE_SERVER:
        return Outcome(case.name, case.assignor, skipped=True)
    assignor = find(case.assignor)
    differences: list[Difference] = []
    open_rounds = open_as_recorded = 0
    for number, played in enumerate(case.rounds, start=1):
        members = {name: Subscription.decode(said, played.members[name].instance) for name, said in played.said.items()}
        ours = _ascending(assignor.plan(members, played.topics))
        if played.recorded.exact:
            found = [] if ours == played.recorded.result else [("result", played.recorded.result, ours)]
        else:
            found = list(_broken(played, ours))
            open_rounds += 1
            open_as_recorded += ours == played.recorded.result
        given = {"topics": played.topics, "members": msgspec.to_builtins(played.members)}
        differences += [Difference(number, what, given, recorded, mine) for what, recorded, mine in found]
    return Outcome(case.name, case.assignor, False, differences, open_rounds, open_as_recorded)


def _broken(played: Round, ours: Plan) -> Iterator[tuple[str, Any, Any]]:
    """Which of the things that held in all recorded runs do not hold of ours."""
    recorded, sizes = played.recorded, {member: sum(map(len, share.values())) for member, share in ours.items()}
    moved, unassigned = _moved(played, ours), _unassigned(played, ours)
    checks = (
        ("sizes", recorded.sizes, sorted(sizes.values()), sorted(sizes.values()) == recorded.sizes),
        ("moved", recorded.moved, moved, moved == recorded.moved),
        ("moved_max", recorded.moved_max, moved, moved <= (recorded.moved_max or 0)),
        ("unassigned", recorded.unassigned, unassigned, unassigned == recorded.unassigned),
        ("unassigned_max", recorded.unassigned_max, unassigned, unassigned <= (recorded.unassigned_max or 0)),
        ("balanced", recorded.balanced, (even := _balanced(played, ours, sizes)), even == recorded.balanced),
    )
    yield from ((what, stated, mine) for what, stated, mine, holds in checks if stated is not None and not holds)
    for name, share in recorded.always.items():
        if not _pairs(share) <= _pairs(ours.get(name, {})):
            yield "always", {name: share}, {name: ours.get(name, {})}


def _moved(played: Round, ours: Plan) -> int:
    """How many partitions that somebody claimed has somebody else who did not claim them?"""
    claims = {name: _pairs(member.owned) for name, member in played.members.items()}
    claimed = set[tuple[str, int]]().union(*claims.values())
    return sum(len((_pairs(share) & claimed) - claims.get(name, set())) for name, share in ours.items())


def _unassigned(played: Round, ours: Plan) -> int:
    wanted = {topic for member in played.members.values() for topic in member.topics}
    existing = {(topic, number) for topic in wanted for number in range(played.topics.get(topic, 0))}
    return len(existing.difference(*(_pairs(share) for share in ours.values())))


def _balanced(played: Round, ours: Plan, sizes: Mapping[str, int]) -> bool:
    """Could no partition go to another subscriber of its topic that has at least two fewer?"""
    return not any(topic in member.topics and sizes.get(taker, 0) + 1 < sizes[owner] for owner, share in ours.items()
                   for topic in share for taker, member in played.members.items())


def _pairs(share: Mapping[str, Any]) -> set[tuple[str, int]]:
    return {(topic, number) for topic, numbers in share.items() for number in numbers}


def _ascending(plan: Plan) -> Plan:
    return {name: {topic: sorted(numbers) for topic, numbers in sorted(plan[name].items()) if numbers}
            for name in sorted(plan)}


def read(path: str | Path) -> list[Case]:
    """The cases of a file. Raises BadFile if it is no such file."""
    document = Document(path)
    return [_case(document, given) for given in document.sequence(document.content, None, "a recording of assignors")]


def _case(document: Document, given: Any) -> Case:
    written = document.mapping(given, None, "a case", RecordedCase.__struct_fields__)
    case = _converted(document, written, f"case {written.get('name', 'without a name')}", RecordedCase)
    where = f"case {case.name}"
    if not case.rounds:
        raise document.bad(written, f"{where} has no rounds", "rounds")
    try:
        assignor = None if case.assignor in ON_THE_SERVER else find(case.assignor)
    except NoAssignor as problem:
        raise document.bad(written, f"{where}: {problem}", "assignor") from None
    rounds: list[Round] = []
    topics: dict[str, int] = case.topics
    for number, each in enumerate(case.rounds, start=1):
        mapping = document.mapping(each, written, f"{where}: round {number}", Recorded.__struct_fields__)
        rounds.append(_round(document, mapping, f"{where}, round {number}", topics, assignor, rounds))
        topics = rounds[-1].topics
    return Case(case.name, case.assignor, rounds)


def _round(document: Document, written: Lines, where: str, topics: dict[str, int], assignor: Assignor | None,
           before: list[Round]) -> Round:
    recorded = _converted(document, written, where, Recorded)
    members = {name: _member(document, written["members"], where, name, before) for name in recorded.members}
    if recorded.result.keys() != members.keys():
        raise document.bad(written, f"{where}: `result` has an entry for each member and no other", "result")
    said = {name: _said(document, written["members"], f"{where}, member {name}", assignor, member)
            for name, member in members.items() if assignor is not None}
    generation = len(before) + 1 if recorded.generation is None else recorded.generation
    recorded = msgspec.structs.replace(recorded, result=_ascending(recorded.result))
    return Round(topics if recorded.topics is None else recorded.topics, members, said, generation, recorded)


def _member(document: Document, members: Lines, where: str, name: str, before: list[Round]) -> Member:
    """A member that does not say what it owns has still what the round before gave it."""
    what = f"{where}, member {name}"
    written = document.mapping(members[name], members, what, Member.__struct_fields__)
    member = _converted(document, written, what, Member)
    if "owned" in written or not before or name not in before[-1].members:
        return member
    held = {topic: tuple(numbers) for topic, numbers in before[-1].recorded.result[name].items()}
    return msgspec.structs.replace(member, owned=held, generation=before[-1].generation)


def _said(document: Document, members: Lines, what: str, assignor: Assignor, member: Member) -> bytes:
    """A member's subscription as it goes into JoinGroup. An eager member has let go of what it owns by then."""
    owned = member.field_owned if member.field_owned is not None else member.owned if assignor.cooperative else {}
    generation = member.generation if member.field_generation is None else member.field_generation
    user_data = None if member.no_userdata else assignor.user_data(member.owned, member.generation)
    try:
        return Subscription(topics=member.topics, user_data=user_data, owned=owned, generation=generation,
                            version=member.version).encode()
    except Malformed as problem:
        raise document.bad(members, f"{what}: {problem}") from None


Kind = TypeVar("Kind", bound=msgspec.Struct)


def _converted(document: Document, written: Lines, what: str, kind: type[Kind]) -> Kind:
    """One field after the other, so that an error knows its line."""
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.name in written:
            try:
                values[field.name] = msgspec.convert(written[field.name], field.type)
            except msgspec.ValidationError as problem:
                raise document.bad(written, f"{what}: `{field.name}`: {problem}", field.name) from None
        elif field.required:
            raise document.bad(written, f"{what} has no `{field.name}`")
    return kind(**values)
