"""Whether what a scenario says can be: what the types of its fields do not tell.

Whoever is named must be there, and be able to do what is asked; topics are made before they grow. Roles are only names
here: who plays one is found out when it is needed.
"""

import re
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from cluster.broker.image import OFFSETS_TOPIC, legal_name
from cluster.checks import RULES
from cluster.coordinator.reactions import CAUSES
from cluster.faults import Action, Link, Loss, NotTcp, Silence, SlowDisk, Stop, Target
from scenarios.actions import CreateTopic, DeleteTopic, Grow, Join, Process, Roll, Subscribe, Unsubscribe
from scenarios.expectations import Expectation, No, Rebalances, Reread
from scenarios.reading import BadFile, Document, Lines, short

if TYPE_CHECKING:
    from scenarios.schema import Cluster, Group, Step

MAX_PARTITIONS = 10_000                        # of one topic, and
MAX_MEMBERS = 10_000                           # of one group: a mistyped number must not take the memory
CONSUMERS = ("member", "members", "leader")    # targets that are members of a group
FORMS = "member G/N, members of group G, leader of group G"
CLIENTS = (*CONSUMERS, "producer")
RESERVED = ("broker", "coordinator", "controller", "producer", "operator")     # how hosts and processes are named


def is_free(name: str) -> bool:
    """May a group have this name? Its members are hosts, named after it: billing-1, billing-2."""
    return name not in RESERVED and not name.startswith(tuple(f"{each}-" for each in RESERVED))


def bad_pattern(pattern: object) -> str | None:
    """What is wrong with a pattern of topics' names."""
    if not isinstance(pattern, str) or not pattern:
        return f"a regular expression, not {short(pattern)}"
    try:
        re.compile(pattern)
    except re.error as problem:
        return f"{pattern!r} is no regular expression: {problem}"
    return None


class Possible:
    def __init__(self, document: Document, cluster: "Cluster", groups: Mapping[str, "Group"], producers: int,
                 until: int) -> None:
        self.bad = document.bad
        self.cluster = cluster
        self.groups = groups
        self.producers = producers
        self.until = until
        self.members = {name: group.members for name, group in groups.items()}     # and those who join later
        self.sizes = {name: topic.partitions for name, topic in cluster.topics.items()}        # at their largest
        self.sizes.setdefault(OFFSETS_TOPIC, cluster.config.offsets_topic_num_partitions)

    # The timeline

    def timeline(self, steps: Collection[tuple["Step", Lines]]) -> None:
        """Steps in the order of time, and where they are written."""
        now = dict(self.sizes)
        for step, where in steps:
            self._topics(step.action, now, where, step.name)
            if isinstance(step.action, Join):
                self._join(step.action, where, step.name)
        for step, where in steps:
            self._whom(step.action, where, step.name)
            self._how(step.action, where, step.name)

    def _join(self, action: Join, where: Lines, name: str) -> None:
        self._group(action.group, where, name)
        left = MAX_MEMBERS - self.members[action.group]
        if not 1 <= action.members <= left:
            raise self.bad(where, f"{name}: members: a number from 1 to {left}, not {action.members}", "members")
        self.members[action.group] += action.members

    def _topics(self, action: Action, now: dict[str, int], where: Lines, name: str) -> None:
        """Topics come, grow and go, in this order."""
        if isinstance(action, CreateTopic):
            if not legal_name(action.topic):
                raise self.bad(where, f"{name}: topic {action.topic!r}: 1 to 249 of a-z A-Z 0-9 . _ -", "topic")
            if action.topic in now:
                raise self.bad(where, f"{name}: topic {action.topic!r} is there already", "topic")
            if not 1 <= action.replication_factor <= self.cluster.brokers:
                raise self.bad(where, f"{name}: replication.factor {action.replication_factor}, and "
                               f"{self.cluster.brokers} brokers", "replication.factor")
        elif isinstance(action, (Grow, DeleteTopic)) and (action.topic not in now or action.topic == OFFSETS_TOPIC):
            raise self._no_topic(action.topic, set(now) - {OFFSETS_TOPIC}, where, name, "topic")
        if isinstance(action, (CreateTopic, Grow)):
            low = now.get(action.topic, 0) + 1
            if not low <= action.partitions <= MAX_PARTITIONS:
                raise self.bad(where, f"{name}: partitions: a number from {low} to {MAX_PARTITIONS}, not "
                               f"{action.partitions}", "partitions")
            now[action.topic] = action.partitions
            self.sizes[action.topic] = max(action.partitions, self.sizes.get(action.topic, 0))
        elif isinstance(action, DeleteTopic):
            del now[action.topic]

    def _whom(self, action: Action, where: Lines, name: str) -> None:
        """Does everybody exist, and can it be done to them?"""
        who: Target | None = getattr(action, "who", None)
        link: Link | None = getattr(action, "link", None)
        for key, each in (("who", who), *((("link", link.source), ("link", link.target)) if link is not None else ())):
            if each is not None:
                self.exists(each, where, f"{name}: {key}", key)
        if hasattr(action, "link") and (link is None) is (who is None):
            raise self.bad(where, f"{name}: either `link` (from whom to whom) or `who` (cut off from all others)")
        if link is not None and _name(link.source) == _name(link.target) and link.source.kind not in (
                "members", "brokers"):
            raise self.bad(where, f"{name}: link: {link.source} has no link with itself", "link")
        if who is None:
            return
        if isinstance(action, Silence) and who.kind != "node":
            raise self.bad(where, f"{name}: who: only a whole node can fall silent: node N", "who")
        if isinstance(action, Roll) and who.kind not in ("members", "brokers"):
            raise self.bad(where, f"{name}: who: `members of group G` or `brokers`", "who")
        if isinstance(action, (Subscribe, Unsubscribe, Process)) and who.kind not in CONSUMERS:
            raise self.bad(where, f"{name}: who: {who} is no member of a group; allowed: {FORMS}", "who")
        if isinstance(action, SlowDisk) and who.kind in CLIENTS:
            raise self.bad(where, f"{name}: who: {who} has no disk; brokers, the controller and nodes have", "who")
        if isinstance(action, Stop) and who.kind == "controller":
            raise self.bad(where, f"{name}: who: there is nobody to whom the controller could hand over; `crash` it",
                           "who")

    def _how(self, action: Action, where: Lines, name: str) -> None:
        if isinstance(action, Subscribe):
            if bool(action.topics) is (action.pattern is not None):
                raise self.bad(where, f"{name}: either `topics` or `pattern`")
            self.wanted(action.topics, where, f"{name}: topics", "topics")
            problem = None if action.pattern is None else bad_pattern(action.pattern)
            if problem is not None:
                raise self.bad(where, f"{name}: pattern: {problem}", "pattern")
        for key in ("rate", "duplicate") if isinstance(action, (Loss, NotTcp)) else ():
            if not 0 <= getattr(action, key, 0) <= 1:
                raise self.bad(where, f"{name}: {key}: a number from 0 to 1, not {getattr(action, key)}", key)
        if isinstance(action, NotTcp) and not (action.duplicate or action.reorder):
            raise self.bad(where, f"{name}: `duplicate` (how often, 0 to 1), `reorder` (a duration), or both")

    # Names

    def exists(self, whom: Target, where: Lines, what: str, key: str) -> None:
        numbers = {"broker": self.cluster.brokers, "node": self.cluster.nodes, "producer": self.producers}
        if whom.kind in numbers and not 1 <= whom.number <= numbers[whom.kind]:
            raise self.bad(where, f"{what}: no {whom}; there are {numbers[whom.kind]} {whom.kind}s", key)
        if whom.kind in (*CONSUMERS, "coordinator"):
            self._group(whom.name, where, what, key)
        if whom.kind == "member" and not 1 <= whom.number <= self.members[whom.name]:
            raise self.bad(where, f"{what}: no {whom}; the group has members 1 to {self.members[whom.name]}", key)
        if whom.kind == "partition leader":
            self._partition(whom.name, whom.number, where, what, key, key)

    def _group(self, name: str, where: Lines, what: str, key: str = "group") -> None:
        if name not in self.groups:
            raise self.bad(where, f"{what}: no group {name!r}; there are: {', '.join(self.groups) or 'none'}", key)

    def _partition(self, topic: str, number: int, where: Lines, what: str, key: str, number_key: str) -> None:
        if topic not in self.sizes:
            raise self._no_topic(topic, self.sizes, where, what, key)
        if not 0 <= number < self.sizes[topic]:
            raise self.bad(where, f"{what}: {topic} has partitions 0 to {self.sizes[topic] - 1}, not {number}",
                           number_key)

    def _no_topic(self, topic: object, known: Collection[str], where: Lines, what: str, key: str) -> BadFile:
        return self.bad(where, f"{what}: no topic {short(topic)}; there are: {', '.join(sorted(known)) or 'none'}", key)

    def wanted(self, topics: Collection[object], where: Lines, what: str, key: str) -> None:
        """A subscription, to topics that are there at some time."""
        for topic in topics:
            if not isinstance(topic, str) or topic not in self.sizes:
                raise self._no_topic(topic, self.sizes, where, what, key)

    def each(self, group: str, numbers: Lines) -> None:
        """Settings of single members."""
        for number in numbers:
            if number > self.members[group]:
                raise self.bad(numbers, f"group {group!r}: each: no member {number}; the group has members 1 to "
                               f"{self.members[group]}", number)

    # What is expected

    def expectation(self, wanted: Expectation, where: Lines, name: str) -> None:
        group, who = getattr(wanted, "group", None), getattr(wanted, "who", None)
        if group is not None:
            self._group(group, where, name)
        if who is not None:
            self.exists(who, where, f"{name}: who", "who")
            if who.kind not in (*CONSUMERS, "node"):
                raise self.bad(where, f"{name}: who: {who} is no member of a group; allowed: {FORMS}, node N", "who")
        if hasattr(wanted, "topic") and hasattr(wanted, "partition"):
            self._partition(wanted.topic, wanted.partition, where, name, "topic", "partition")
        if isinstance(wanted, Rebalances):
            self._rebalances(wanted, where, name)
        if isinstance(wanted, No) and not wanted.anomalies:
            raise self.bad(where, f"{name}: at least one of: {', '.join(RULES)}")
        for field in msgspec.structs.fields(wanted):
            self._numbers(getattr(wanted, field.name), where, f"{name}: {field.encode_name}", field.encode_name)
        if isinstance(wanted, Reread) and wanted.at_least > wanted.at_most:
            raise self.bad(where, f"{name}: at.least: at most {wanted.at_most}, not {wanted.at_least}", "at.least")
        for key in ("at", "after", "before", "during"):
            times = getattr(wanted, key, None)
            for instant in times if isinstance(times, tuple) else [times] if times is not None else []:
                if instant > self.until:
                    raise self.bad(where, f"{name}: {key}: {instant} is after the end, {self.until}", key)
        problem = wanted.problem()
        if problem is not None:
            raise self.bad(where, f"{name}: {problem}")

    def _rebalances(self, wanted: Rebalances, where: Lines, name: str) -> None:
        if wanted.before is not None and wanted.before < wanted.after:
            raise self.bad(where, f"{name}: before: {wanted.before} is not after {wanted.after}", "before")
        causes = sorted(set(CAUSES.values()))
        if wanted.cause is not None and wanted.cause not in causes:
            raise self.bad(where, f"{name}: cause: no cause {wanted.cause!r}; there are: {', '.join(causes)}", "cause")

    def _numbers(self, value: Any, where: Lines, what: str, key: str) -> None:
        """What is counted or measured is not below 0, and goes from the lower to the higher."""
        numbers = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(each, int) for each in numbers):
            return
        if any(each < 0 for each in numbers):
            raise self.bad(where, f"{what}: at least 0, not {min(numbers)}", key)
        if any(low > high for low, high in pairwise(numbers)):
            raise self.bad(where, f"{what}: from the lower to the higher, not {numbers[0]} to {numbers[1]}", key)


def _name(whom: Target) -> tuple[str, str, int]:
    return whom.kind, whom.name, whom.number
