"""Scenarios: what a file may say, read and checked before anything starts.

Whatever is wrong is refused with the file, the line, the key, and what would be right. Settings have Kafka's keys.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from cluster.broker.image import OFFSETS_TOPIC, legal_name
from cluster.config import (
    BadSetting,
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    ProducerConfig,
    settings,
)
from cluster.faults import Action, Duration, Link, Target, link, target
from scenarios.actions import ACTIONS
from scenarios.assignors import NoAssignor, find
from scenarios.expectations import EXPECTATIONS, Expectation
from scenarios.possible import MAX_MEMBERS, MAX_PARTITIONS, Possible, bad_pattern, is_free
from scenarios.reading import Document, Lines, short

KEYS = ("name", "story", "cluster", "groups", "producers", "timeline", "until", "settle", "expect")
MAX_BROKERS = 100
MAX_NAME = 200                                 # letters: it becomes the name of a file
MAX_DURATION = Duration(366 * 24 * 3_600_000)
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


def read_text(text: str, path: str | Path) -> Scenario:
    """The scenario in a text that might stand in that file. Raises BadFile."""
    return _Reader(Document(path, text)).read()


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
        if not _names_a_file(name):
            raise self.bad(top, f"name: {short(name)} cannot name a folder; use 1 to {MAX_NAME} of a-z A-Z 0-9 . _ -",
                           "name")
        self.cluster = self._cluster(self.document.mapping(
            top["cluster"], top, "cluster", ("brokers", "nodes", "latency", "topics", "config"), under="cluster"))
        self.groups = self._groups(top)
        self.until = self._duration(top, "until")
        if not self.until:
            raise self.bad(top, "until: a duration above 0", "until")
        settle = self._duration(top, "settle") if "settle" in top else SETTLE
        producers = self._producers(top)
        self.possible = Possible(self.document, self.cluster, self.groups, len(producers), self.until)
        timeline = self._timeline(top)
        self._check_groups(top)
        return Scenario(name, self._story(top), self.cluster, self.groups, producers, timeline, self.until, settle,
                        self._expect(top), self.document.text)

    def _story(self, top: Lines) -> dict[str, str]:
        story = top.get("story", "")
        if isinstance(story, str):
            return {"en": story.strip()} if story else {}
        told = self.document.mapping(story, top, "story", ("en", "zh"), under="story")
        for language, text in told.items():
            if not isinstance(text, str):
                raise self.bad(told, f"story: {language}: text, not {short(text)}", language)
        return {language: _unfolded(text.strip()) for language, text in told.items()}

    # The cluster

    def _cluster(self, given: Lines) -> Cluster:
        brokers = self._number(given, "brokers", 3, 1, MAX_BROKERS)
        nodes = self._number(given, "nodes", brokers, 1, MAX_BROKERS)
        latency = self._duration(given, "latency") if "latency" in given else Duration(1)
        config = self.document.mapping(given.get("config", Lines()), given, "cluster config", under="config")
        broker = self._settings(BrokerConfig, config, config, ControllerConfig,
                                {"offsets.topic.replication.factor": min(3, brokers)})
        controller = self._settings(ControllerConfig, config, config, BrokerConfig)
        for key in ("offsets.topic.replication.factor", "default.replication.factor"):
            if config.get(key, 1) > brokers:
                raise self.bad(config, f"{key}: {config[key]} replicas, and {brokers} brokers", key)
        for key in ("offsets.topic.num.partitions", "num.partitions"):
            self._number(config, key, 1, 1, MAX_PARTITIONS)
        return Cluster(brokers, nodes, latency, self._topics(given, brokers), broker, controller)

    def _topics(self, given: Lines, brokers: int) -> dict[str, Topic]:
        topics = self.document.mapping(given.get("topics", Lines()), given, "topics", under="topics")
        made = {}
        for name, settings_of in topics.items():
            what = f"topic {name!r}"
            if not isinstance(name, str) or not legal_name(name):
                raise self.bad(topics, f"{what}: a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -", name)
            if name == OFFSETS_TOPIC:
                raise self.bad(topics, f"{what}: the brokers make it; see offsets.topic.num.partitions", name)
            one = self.document.mapping(settings_of if settings_of is not None else Lines(), topics, what,
                                        ("partitions", "replication.factor"), under=name)
            made[name] = Topic(self._number(one, "partitions", 1, 1, MAX_PARTITIONS),
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
        groups = self.document.mapping(top.get("groups", Lines()), top, "groups", under="groups")
        return {name: self._group(name, given, groups) for name, given in groups.items()}

    def _group(self, name: str, given: Any, groups: Lines) -> Group:
        what = f"group {name!r}"
        if not _names_a_file(name) or not is_free(name):
            raise self.bad(groups, f"{what}: a name is 1 to {MAX_NAME} of a-z A-Z 0-9 . _ -, and not that of a broker, "
                           "coordinator, controller, producer or operator", name)
        one = self.document.mapping(given, groups, what, ("members", "subscribe", "pattern", "protocol", "start.every",
                                                          "config", "each"), under=name)
        if one.get("protocol", "classic") != "classic":
            raise self.bad(one, f"{what}: protocol {one['protocol']!r} is not here yet; allowed: classic", "protocol")
        if ("subscribe" in one) is ("pattern" in one):
            raise self.bad(one, f"{what}: either `subscribe` (a list of topics) or `pattern`")
        topics = tuple(self.document.sequence(one.get("subscribe", []), one, f"{what}: subscribe", under="subscribe"))
        problem = bad_pattern(one["pattern"]) if "pattern" in one else None if topics else "no topics at all"
        if problem is not None:
            key = "pattern" if "pattern" in one else "subscribe"
            raise self.bad(one, f"{what}: {key}: {problem}", key)
        base = self.document.mapping(one.get("config", Lines()), one, f"{what}: config", under="config")
        config = self._consumer(base, base, what)
        each = self.document.mapping(one.get("each", Lines()), one, f"{what}: each", under="each")
        own = {}
        for number, special in each.items():
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise self.bad(each, f"{what}: each: members are 1, 2, ..., not {number!r}", number)
            changes = self.document.mapping(special, each, f"{what}: each: {number}", under=number)
            own[number] = self._consumer({**base, **changes}, changes, f"{what}: member {number}")
        return Group(name, self._number(one, "members", 1, 0, MAX_MEMBERS), topics, one.get("pattern"), config,
                     self._duration(one, "start.every") if "start.every" in one else 0, own)

    def _check_groups(self, top: Lines) -> None:
        """Whether their topics and members are there at some time: the timeline may bring them."""
        for name, group in self.groups.items():
            given = top["groups"][name]
            self.possible.wanted(group.topics, given, f"group {name!r}: subscribe", "subscribe")
            self.possible.each(name, given.get("each", Lines()))

    def _consumer(self, given: Mapping[str, Any], where: Lines, what: str) -> ConsumerConfig:
        config = self._settings(ConsumerConfig, given, where)
        if config.heartbeat_interval_ms >= config.session_timeout_ms:
            raise self.bad(where, f"{what}: heartbeat.interval.ms {config.heartbeat_interval_ms} must be below "
                           f"session.timeout.ms {config.session_timeout_ms}", "heartbeat.interval.ms")
        instance, strategy = config.group_instance_id, config.partition_assignment_strategy
        if instance is not None and not legal_name(instance):
            raise self.bad(where, f"{what}: group.instance.id: 1 to 249 of a-z A-Z 0-9 . _ -, not {instance!r}",
                           "group.instance.id")
        if not strategy or len(set(strategy)) < len(strategy):
            raise self.bad(where, f"{what}: partition.assignment.strategy: at least one assignor, and none twice",
                           "partition.assignment.strategy")
        for name in strategy:
            try:
                find(name)
            except NoAssignor as problem:
                raise self.bad(where, f"{what}: {problem}", "partition.assignment.strategy") from None
        return config

    def _producers(self, top: Lines) -> tuple[Producer, ...]:
        made = []
        for given in self.document.sequence(top.get("producers", []), top, "producers", under="producers"):
            one = self.document.mapping(given, top, "a producer", under="producers")
            topic = one.get("topic")
            if not isinstance(topic, str) or topic not in self.cluster.topics:
                raise self.bad(one, f"a producer needs a `topic`; there are: {', '.join(self.cluster.topics) or 'none'}"
                               f", not {short(topic)}", "topic")
            own = {key: value for key, value in one.items() if key != "topic"}
            if type(own.get("acks")) is int:   # YAML's, since Kafka's is text
                own["acks"] = str(own["acks"])
            made.append(Producer(topic, self._settings(ProducerConfig, own, one)))
        return tuple(made)

    # The timeline

    def _timeline(self, top: Lines) -> tuple[Step, ...]:
        entries = self.document.sequence(top.get("timeline", []), top, "timeline", under="timeline")
        steps = sorted((self._step(entry, top) for entry in entries), key=lambda each: each[0].at)
        self.possible.timeline(steps)
        return tuple(step for step, _ in steps)

    def _step(self, given: Any, top: Lines) -> tuple[Step, Lines]:
        entry = self.document.mapping(given, top, "an entry of the timeline", ("at", *ACTIONS), under="timeline")
        names = [key for key in entry if key != "at"]
        if "at" not in entry or len(names) != 1:
            raise self.bad(entry, f"an entry of the timeline has `at` and one of: {', '.join(sorted(ACTIONS))}")
        at = self._duration(entry, "at")
        if at > self.until:
            raise self.bad(entry, f"at {at}: that is after the end, {self.until}", "at")
        name = names[0]
        action = self.struct(ACTIONS[name], entry[name], entry, name)
        return Step(at, name, action), entry[name] if isinstance(entry[name], Lines) else entry

    # What is expected

    def _expect(self, top: Lines) -> tuple[Expectation, ...]:
        made = []
        for given in self.document.sequence(top.get("expect", []), top, "expect", under="expect"):
            entry = self.document.mapping(given, top, "an expectation", tuple(EXPECTATIONS), under="expect")
            if len(entry) != 1:
                raise self.bad(entry, f"an expectation is one of: {', '.join(sorted(EXPECTATIONS))}")
            ((name, fields),) = entry.items()
            kind = EXPECTATIONS[name]
            if not isinstance(fields, Lines) and name == "no":     # short: a list, and nothing else
                fields = _as_mapping(entry, "anomalies", fields)
            made.append(self.struct(kind, fields, entry, name))
            self.possible.expectation(made[-1], fields, name)
        return tuple(made)

    # Values

    def struct(self, kind: type[Made], given: Any, where: Lines, what: str) -> Made:
        """A struct from a mapping: its fields are the allowed keys."""
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        one = self.document.mapping(Lines() if given is None and not fields else given, where, what, tuple(fields),
                                    under=what)
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
            return _duration(where[key])
        except ValueError as problem:
            raise self.bad(where, f"{key}: {problem}", key) from None

    def _number(self, where: Lines, key: str, default: int, low: int, high: int) -> int:
        number = where.get(key, default)
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise self.bad(where, f"{key}: a number from {low} to {high}, not {short(number)}", key)
        return number


def _names_a_file(name: object) -> bool:
    return isinstance(name, str) and legal_name(name) and len(name) <= MAX_NAME


_FOLDS = re.compile("(?<=[\u3000-\u303f\uff00-\uffef]) | (?=[\u3000-\u303f\uff00-\uffef])"
                    "|(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])")


def _unfolded(text: str) -> str:
    """YAML puts a blank where a line was folded; between Chinese characters and beside their punctuation there is
    none."""
    return _FOLDS.sub("", text)


def _as_mapping(where: Lines, key: str, value: Any) -> Lines:
    made = Lines({key: value})
    made.line, made.line_of = where.line, {key: where.line}
    return made


def _duration(text: Any) -> Duration:
    try:
        found = Duration.parse(text)
    except OverflowError:
        found = Duration(MAX_DURATION + 1)
    if found > MAX_DURATION:
        raise ValueError(f"at most {MAX_DURATION}, not {short(text)}")
    return found


_PARSERS: dict[type, Callable[[str], Any]] = {Target: target, Link: link, Duration: _duration}


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
            return tuple(_duration(each) for each in value)
    return msgspec.convert(value, kind)
