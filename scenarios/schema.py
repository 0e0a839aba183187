"""Scenarios: what a file may say, read and checked before anything starts.

Whatever is wrong is refused with the file, the line, the key, and what would be right. Settings have Kafka's keys.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from cluster.broker.image import legal_name
from cluster.config import (
    BadSetting,
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    ProducerConfig,
    settings,
)
from cluster.faults import Action, Duration, Link, Silence, Target, link, target
from scenarios.actions import ACTIONS, CreateTopic, Join, Roll, Subscribe
from scenarios.assignors import NoAssignor, find
from scenarios.expectations import EXPECTATIONS, Expectation
from scenarios.reading import Document, Lines, short

KEYS = ("name", "story", "cluster", "groups", "producers", "timeline", "until", "settle", "expect")
MAX_MEMBERS = 10_000                           # of one group: a mistyped number must not take the memory
MAX_BROKERS = 100
SETTLE = Duration(20_000)                      # after the end, when everything is healed: time for an election

Made = TypeVar("Made", bound=msgspec.Struct)


class Topic(msgspec.Struct, frozen=True):
    partitions: int
    replication_factor: int


class Cluster(msgspec.Struct, frozen=True):
    brokers: int
    nodes: int
    latency_ms: int
    topics: dict[str, Topic]
    config: BrokerConfig
    controller: ControllerConfig


class Group(msgspec.Struct, frozen=True):
    """`start_every`: how long after one member the next one starts. `each`: settings of single members, by number."""

    name: str
    members: int
    topics: tuple[str, ...]
    pattern: str | None
    config: ConsumerConfig
    start_every: int = 0
    each: dict[int, ConsumerConfig] = {}

    def config_of(self, number: int) -> ConsumerConfig:
        """A `group.instance.id` of the whole group is the beginning of each member's: shop gives shop-1, shop-2."""
        own = self.each.get(number)
        if own is not None:
            return own
        instance = self.config.group_instance_id
        if instance is None:
            return self.config
        return msgspec.structs.replace(self.config, group_instance_id=f"{instance}-{number}")


class Producer(msgspec.Struct, frozen=True):
    topic: str
    config: ProducerConfig


class Step(msgspec.Struct, frozen=True):
    """One entry of the timeline."""

    at: int
    name: str
    action: Action


class Scenario(msgspec.Struct, frozen=True):
    name: str
    story: dict[str, str]                      # by language
    cluster: Cluster
    groups: dict[str, Group]
    producers: tuple[Producer, ...]
    timeline: tuple[Step, ...]
    until: int
    settle: int
    expect: tuple[Expectation, ...]
    text: str                                  # the file as it was


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a file. Raises BadFile."""
    return _Reader(Document(path)).read()


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.bad = document.bad

    def read(self) -> Scenario:
        top = self.document.mapping(self.document.content, self.document.content, "a scenario", KEYS)
        for key in ("name", "cluster", "until"):
            if key not in top:
                raise self.bad(top, f"a scenario needs `{key}`")
        name = top["name"]
        if not isinstance(name, str) or not legal_name(name):
            raise self.bad(top, f"name: {short(name)} cannot name a folder; use a-z A-Z 0-9 . _ -", "name")
        self.cluster = self._cluster(self.document.mapping(
            top["cluster"], top, "cluster", ("brokers", "nodes", "latency", "topics", "config")))
        self.groups = self._groups(top)
        self.until = self._duration(top, "until")
        settle = self._duration(top, "settle") if "settle" in top else SETTLE
        producers = self._producers(top)
        self.topics = set(self.cluster.topics) | self._created(top)
        timeline = self._timeline(top)
        return Scenario(name, self._story(top), self.cluster, self.groups, producers, timeline, self.until, settle,
                        self._expect(top), self.document.path.read_text(encoding="utf-8"))

    def _story(self, top: Lines) -> dict[str, str]:
        story = top.get("story", "")
        if isinstance(story, str):
            return {"en": story.strip()} if story else {}
        told = self.document.mapping(story, top, "story", ("en", "zh"))
        return {language: str(text).strip() for language, text in told.items()}

    # The cluster

    def _cluster(self, given: Lines) -> Cluster:
        brokers = self._number(given, "brokers", 3, 1, MAX_BROKERS)
        nodes = self._number(given, "nodes", brokers, 1, MAX_BROKERS)
        latency = self._duration(given, "latency") if "latency" in given else Duration(1)
        config = self.document.mapping(given.get("config", Lines()), given, "cluster config")
        broker = self._settings(BrokerConfig, config, config, ControllerConfig,
                                {"offsets.topic.replication.factor": min(3, brokers)})
        controller = self._settings(ControllerConfig, config, config, BrokerConfig)
        for key in ("offsets.topic.replication.factor", "default.replication.factor"):
            if config.get(key, 1) > brokers:
                raise self.bad(config, f"{key}: {config[key]} replicas, and {brokers} brokers", key)
        return Cluster(brokers, nodes, latency, self._topics(given, brokers), broker, controller)

    def _topics(self, given: Lines, brokers: int) -> dict[str, Topic]:
        topics = self.document.mapping(given.get("topics", Lines()), given, "topics")
        made = {}
        for name, settings_of in topics.items():
            what = f"topic {name!r}"
            if not isinstance(name, str) or not legal_name(name):
                raise self.bad(topics, f"{what}: a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -", name)
            one = self.document.mapping(settings_of if settings_of is not None else Lines(), topics, what,
                                        ("partitions", "replication.factor"))
            made[name] = Topic(self._number(one, "partitions", 1, 1, 10_000),
                               self._number(one, "replication.factor", min(3, brokers), 1, 1000))
            if made[name].replication_factor > brokers:
                raise self.bad(one, f"{what}: replication.factor {made[name].replication_factor}, and {brokers} "
                               "brokers", "replication.factor")
        return made

    def _settings(self, role: type[Made], given: Mapping[str, Any], where: Lines,
                  other: type[msgspec.Struct] | None = None, defaults: Mapping[str, Any] | None = None) -> Made:
        """The settings of a role, from a mapping that may hold those of another one as well."""
        ours = {field.encode_name for field in msgspec.structs.fields(role)}
        theirs = {field.encode_name for field in msgspec.structs.fields(other)} if other is not None else set()
        for key in given:
            if key not in ours | theirs:
                raise self.bad(where, f"no setting {key!r}; there are: {', '.join(sorted(ours | theirs))}", key)
        found = {key: value for key, value in given.items() if key in ours}
        for key, value in found.items():
            try:
                settings(role, {key: value})
            except BadSetting as problem:
                raise self.bad(where, str(problem), key) from None
        return settings(role, {**(defaults or {}), **found})

    # Clients

    def _groups(self, top: Lines) -> dict[str, Group]:
        groups = self.document.mapping(top.get("groups", Lines()), top, "groups")
        return {name: self._group(name, given, groups) for name, given in groups.items()}

    def _group(self, name: str, given: Any, groups: Lines) -> Group:
        what = f"group {name!r}"
        if not isinstance(name, str) or not legal_name(name) or name.startswith(("broker", "coordinator", "producer")):
            raise self.bad(groups, f"{what}: a name of a-z A-Z 0-9 . _ -, and not that of a broker or producer", name)
        one = self.document.mapping(given, groups, what, ("members", "subscribe", "pattern", "protocol", "start.every",
                                                          "config", "each"))
        if one.get("protocol", "classic") != "classic":
            raise self.bad(one, f"{what}: protocol {one['protocol']!r} is not here yet; allowed: classic", "protocol")
        if ("subscribe" in one) is ("pattern" in one):
            raise self.bad(one, f"{what}: either `subscribe` (a list of topics) or `pattern`")
        topics = tuple(map(str, self.document.sequence(one.get("subscribe", []), one, f"{what}: subscribe")))
        base = self.document.mapping(one.get("config", Lines()), one, f"{what}: config")
        config = self._consumer(base, base, what)
        each = self.document.mapping(one.get("each", Lines()), one, f"{what}: each")
        own = {}
        for number, special in each.items():
            if not isinstance(number, int) or number < 1:
                raise self.bad(each, f"{what}: each: members are 1, 2, ..., not {number!r}", number)
            changes = self.document.mapping(special, each, f"{what}: each: {number}")
            own[number] = self._consumer({**base, **changes}, changes, f"{what}: member {number}")
        return Group(name, self._number(one, "members", 1, 0, MAX_MEMBERS), topics, self._pattern(one, what), config,
                     self._duration(one, "start.every") if "start.every" in one else 0, own)

    def _consumer(self, given: Mapping[str, Any], where: Lines, what: str) -> ConsumerConfig:
        config = self._settings(ConsumerConfig, given, where)
        if config.heartbeat_interval_ms >= config.session_timeout_ms:
            raise self.bad(where, f"{what}: heartbeat.interval.ms {config.heartbeat_interval_ms} must be below "
                           f"session.timeout.ms {config.session_timeout_ms}", "heartbeat.interval.ms")
        for name in config.partition_assignment_strategy:
            try:
                find(name)
            except NoAssignor as problem:
                raise self.bad(where, f"{what}: {problem}", "partition.assignment.strategy") from None
        return config

    def _pattern(self, given: Lines, what: str) -> str | None:
        pattern = given.get("pattern")
        if pattern is not None:
            try:
                re.compile(pattern)
            except (re.error, TypeError) as problem:
                raise self.bad(given, f"{what}: pattern {pattern!r}: {problem}", "pattern") from None
        return pattern

    def _producers(self, top: Lines) -> tuple[Producer, ...]:
        made = []
        for given in self.document.sequence(top.get("producers", []), top, "producers"):
            one = self.document.mapping(given, top, "a producer")
            topic = one.get("topic")
            if topic not in self.cluster.topics:
                raise self.bad(one, f"a producer needs a `topic`; there are: {', '.join(self.cluster.topics)}", "topic")
            own = {key: value for key, value in one.items() if key != "topic"}
            made.append(Producer(topic, self._settings(ProducerConfig, own, one)))
        return tuple(made)

    # The timeline

    def _timeline(self, top: Lines) -> tuple[Step, ...]:
        self.producers = len(top.get("producers", []))
        self.members = {name: group.members for name, group in self.groups.items()}
        entries = self.document.sequence(top.get("timeline", []), top, "timeline")
        for entry in entries:
            joining = entry.get("join") if isinstance(entry, Lines) else None
            if isinstance(joining, Lines) and joining.get("group") in self.members and isinstance(
                    joining.get("members", 1), int):
                self.members[joining["group"]] += joining.get("members", 1)
        steps = [self._step(entry, top) for entry in entries]
        return tuple(sorted(steps, key=lambda step: step.at))

    def _step(self, given: Any, top: Lines) -> Step:
        entry = self.document.mapping(given, top, "an entry of the timeline", ("at", *ACTIONS))
        names = [key for key in entry if key != "at"]
        if "at" not in entry or len(names) != 1:
            raise self.bad(entry, f"an entry of the timeline has `at` and one of: {', '.join(sorted(ACTIONS))}")
        at = self._duration(entry, "at")
        if at > self.until:
            raise self.bad(entry, f"at {at}: that is after the end, {self.until}", "at")
        name = names[0]
        action = self.struct(ACTIONS[name], entry[name], entry, name)
        self._check(action, entry[name] if isinstance(entry[name], Lines) else entry, name)
        return Step(at, name, action)

    def _check(self, action: Action, where: Lines, name: str) -> None:
        """What the types do not say."""
        for field in ("link", "who"):
            whom = getattr(action, field, None)
            for each in (whom.source, whom.target) if isinstance(whom, Link) else [whom] if whom is not None else []:
                self._exists(each, where, f"{name}: {field}", field)
        if hasattr(action, "link") and (action.link is None) is (action.who is None):  # type: ignore[attr-defined]
            raise self.bad(where, f"{name}: either `link` (from whom to whom) or `who` (cut off from all others)")
        if isinstance(action, Silence) and action.who.kind != "node":
            raise self.bad(where, f"{name}: who: only a whole node can fall silent: node N", "who")
        if isinstance(action, Roll) and action.who.kind not in ("members", "brokers"):
            raise self.bad(where, f"{name}: who: `members of group G` or `brokers`", "who")
        if isinstance(action, Join) and action.group not in self.groups:
            raise self.bad(where, f"{name}: no group {action.group!r}; there are: {', '.join(self.groups)}", "group")
        if isinstance(action, Subscribe) and bool(action.topics) is (action.pattern is not None):
            raise self.bad(where, f"{name}: either `topics` or `pattern`")
        if isinstance(action, CreateTopic) and action.replication_factor > self.cluster.brokers:
            raise self.bad(where, f"{name}: replication.factor {action.replication_factor}, and "
                           f"{self.cluster.brokers} brokers", "replication.factor")
        topic = getattr(action, "topic", None)
        if topic is not None and topic not in self.topics:
            raise self.bad(where, f"{name}: no topic {topic!r}; there are: {', '.join(sorted(self.topics))}", "topic")

    def _exists(self, whom: Target, where: Lines, what: str, key: str) -> None:
        numbers = {"broker": self.cluster.brokers, "node": self.cluster.nodes, "producer": self.producers}
        if whom.kind in numbers and not 1 <= whom.number <= numbers[whom.kind]:
            raise self.bad(where, f"{what}: no {whom}; there are {numbers[whom.kind]} {whom.kind}s", key)
        if whom.kind in ("member", "members", "leader", "coordinator") and whom.name not in self.groups:
            raise self.bad(where, f"{what}: no group {whom.name!r}; there are: {', '.join(self.groups)}", key)
        if whom.kind == "member" and not 1 <= whom.number <= self.members[whom.name]:
            raise self.bad(where, f"{what}: no {whom}; the group has members 1 to {self.members[whom.name]}", key)
        if whom.kind == "partition leader" and whom.name not in {*self.topics, "__consumer_offsets"}:
            raise self.bad(where, f"{what}: no topic {whom.name!r}; there are: {', '.join(sorted(self.topics))}", key)

    def _created(self, top: Lines) -> set[str]:
        created = (entry.get("create-topic") for entry in top.get("timeline") or () if isinstance(entry, Lines))
        return {str(each.get("topic")) for each in created if isinstance(each, Lines)}

    # What is expected

    def _expect(self, top: Lines) -> tuple[Expectation, ...]:
        made = []
        for given in self.document.sequence(top.get("expect", []), top, "expect"):
            entry = self.document.mapping(given, top, "an expectation", tuple(EXPECTATIONS))
            if len(entry) != 1:
                raise self.bad(entry, f"an expectation is one of: {', '.join(sorted(EXPECTATIONS))}")
            ((name, fields),) = entry.items()
            kind = EXPECTATIONS[name]
            if not isinstance(fields, Lines) and name == "no":     # short: a list, and nothing else
                fields = _as_mapping(entry, "anomalies", fields)
            made.append(self.struct(kind, fields, entry, name))
            self._possible(made[-1], fields, name)
        return tuple(made)

    def _possible(self, wanted: Expectation, where: Lines, name: str) -> None:
        group = getattr(wanted, "group", None)
        if group is not None and group not in self.groups:
            raise self.bad(where, f"{name}: no group {group!r}; there are: {', '.join(self.groups)}", "group")
        who = getattr(wanted, "who", None)
        if who is not None:
            self._exists(who, where, f"{name}: who", "who")
        for key in ("at", "after", "before", "during"):
            times = getattr(wanted, key, None)
            for instant in times if isinstance(times, tuple) else [times] if times is not None else []:
                if instant > self.until:
                    raise self.bad(where, f"{name}: {key}: {instant} is after the end, {self.until}", key)
        problem = wanted.problem()
        if problem is not None:
            raise self.bad(where, f"{name}: {problem}")

    # Values

    def struct(self, kind: type[Made], given: Any, where: Lines, what: str) -> Made:
        """A struct from a mapping: its fields are the allowed keys."""
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        one = self.document.mapping(Lines() if given is None and not fields else given, where, what, tuple(fields))
        found = {}
        for key, field in fields.items():
            if key in one:
                try:
                    found[field.name] = _value(field.type, one[key])
                except (ValueError, msgspec.ValidationError) as problem:
                    raise self.bad(one, f"{what}: {key}: {problem}", key) from None
            elif field.required:
                raise self.bad(one, f"{what} needs `{key}`; it has: {', '.join(fields)}")
        return kind(**found)

    def _duration(self, where: Lines, key: str) -> Duration:
        try:
            return Duration.parse(where[key])
        except ValueError as problem:
            raise self.bad(where, f"{key}: {problem}", key) from None

    def _number(self, where: Lines, key: str, default: int, low: int, high: int) -> int:
        number = where.get(key, default)
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise self.bad(where, f"{key}: a number from {low} to {high}, not {short(number)}", key)
        return number


def _as_mapping(where: Lines, key: str, value: Any) -> Lines:
    made = Lines({key: value})
    made.line, made.line_of = where.line, {key: where.line}
    return made


_PARSERS: dict[type, Callable[[str], Any]] = {Target: target, Link: link, Duration: Duration.parse}


def _value(kind: Any, value: Any) -> Any:
    """A value of a field: durations and targets are written as text."""
    options = [each for each in get_args(kind) if each is not NoneType] if get_origin(kind) in (
        Union, UnionType) else [kind]
    for option in options:
        parse = _PARSERS.get(option)
        if parse is not None:
            if option is not Duration and not isinstance(value, str):
                raise ValueError(f"text, not {short(value)}")
            return parse(value)
        if get_origin(option) is tuple and get_args(option)[0] is Duration:
            if not isinstance(value, list) or len(value) != len(get_args(option)):
                raise ValueError(f"a list of {len(get_args(option))} durations, not {short(value)}")
            return tuple(Duration.parse(each) for each in value)
    return msgspec.convert(value, kind)
