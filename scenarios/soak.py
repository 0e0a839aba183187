"""Soaking: random clusters, groups, workloads and faults, each from one seed, with every safety rule checked.

A schedule is drawn as the scenario file it would be, so whatever breaks can be written down and replayed. A failing one
is made smaller while it still breaks the same rule: what is left is what matters.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from cluster.checks import Outcome
from scenarios.reading import BadFile, written
from scenarios.runner import Run
from scenarios.schema import Scenario, read_text

Document = dict[str, Any]                      # a scenario as it stands in a file

UNTIL_S = 60
MOST_MEMBERS = 5
MOST_RECORDS = 20                              # a second, of all producers
STRATEGIES = (["range"], ["roundrobin"], ["sticky"], ["cooperative-sticky"], ["range", "cooperative-sticky"])


class Failure(msgspec.Struct, frozen=True):
    """A seed that broke something: a rule's name and its first breach, or an exception of a machine."""

    seed: int
    rule: str
    evidence: str


# Drawing


def draw(seed: int) -> Document:
    """The scenario of a seed."""
    return _Drawing(Random(f"soak/{seed}")).scenario(f"soak-{seed}")


class _Drawing:
    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.brokers = rng.choice((1, 2, 3, 3, 3))
        self.topics = {
            f"t{number}": {"partitions": rng.randint(1, 6), "replication.factor": rng.randint(1, self.brokers)}
            for number in range(1, rng.randint(1, 2) + 1)}
        self.groups: dict[str, dict[str, Any]] = {}
        self.producers: list[dict[str, Any]] = []

    def scenario(self, name: str) -> Document:
        members = self.rng.randint(1, MOST_MEMBERS)
        first = self.rng.choice((members, self.rng.randint(1, members)))
        for group, share in (("g1", first), ("g2", members - first)):
            if share:
                self.groups[group] = self._group(share)
        left = MOST_RECORDS
        for _ in range(self.rng.randint(1, 2)):
            share = self.rng.randint(1, left // 2)
            left -= share
            self.producers.append({"topic": self._topic(), "records.per.second": share,
                                   "acks": self.rng.choice(("all", "all", "1", "0"))})
        return {"name": name,
                "cluster": {"brokers": self.brokers, "nodes": self.rng.randint(1, self.brokers), "topics": self.topics,
                            "config": self._config()},
                "groups": self.groups, "producers": self.producers,
                "timeline": self._timeline(), "until": f"{UNTIL_S}s"}

    def _config(self) -> dict[str, Any]:
        rng = self.rng
        return {"offsets.topic.num.partitions": 4,
                "offsets.topic.replication.factor": rng.choice((self.brokers, self.brokers, 1)),
                "group.initial.rebalance.delay.ms": rng.choice((0, 500, 3000)),
                "broker.session.timeout.ms": rng.choice((3000, 6000, 9000)), "broker.heartbeat.interval.ms": 1000,
                "replica.lag.time.max.ms": rng.choice((2000, 10_000, 30_000)),
                "min.insync.replicas": rng.randint(1, min(2, self.brokers)),
                "offsets.topic.segment.bytes": rng.choice((500, 2000, 100_000)), "log.cleaner.backoff.ms": 3000}

    def _group(self, members: int) -> dict[str, Any]:
        rng = self.rng
        session = rng.choice((6000, 8000, 10_000))
        config = {"session.timeout.ms": session, "heartbeat.interval.ms": rng.choice((1000, session // 3)),
                  "max.poll.interval.ms": rng.choice((5000, 20_000, 300_000)), "auto.offset.reset": "earliest",
                  "partition.assignment.strategy": rng.choice(STRATEGIES),
                  "commit": rng.choice(("auto", "auto", "sync", "async")),
                  "auto.commit.interval.ms": rng.choice((500, 2000, 5000)),
                  "processing.ms.per.record": rng.choice((0, 0, 5, 50)),
                  "request.timeout.ms": rng.choice((5000, 30_000)), "metadata.max.age.ms": 10_000}
        if rng.random() < 0.1:
            config["heartbeat.thread"] = False
        if rng.random() < 0.25:
            config["group.instance.id"] = "i"
        wanted = {"pattern": "t.*"} if rng.random() < 0.2 else {
            "subscribe": rng.sample(sorted(self.topics), rng.randint(1, len(self.topics)))}
        return {"members": members, **wanted, "config": config}

    # What happens

    def _timeline(self) -> list[dict[str, Any]]:
        entries = sorted((self._entry() for _ in range(self.rng.randint(0, 8))), key=_instant)
        sizes = {name: topic["partitions"] for name, topic in self.topics.items()}
        for entry in entries:
            if "grow" in entry:                # by so many more than there are then
                topic = entry["grow"]["topic"]
                entry["grow"]["partitions"] = sizes[topic] = sizes[topic] + entry["grow"]["partitions"]
        return entries

    def _entry(self) -> dict[str, Any]:
        at = self.rng.randrange(1000, (UNTIL_S - 5) * 1000)
        name = self.rng.choice(WEIGHTED)
        return {"at": f"{at}ms", name: getattr(self, "_" + name.replace("-", "_"))()}

    def _topic(self) -> str:
        return self.rng.choice(sorted(self.topics))

    def _for(self, longest_s: int = 20) -> dict[str, str]:
        return {"for": f"{self.rng.randint(100, longest_s * 1000)}ms"}

    def _member(self) -> str:
        group = self.rng.choice(sorted(self.groups))
        return f"member {group}/{self.rng.randint(1, self.groups[group]['members'])}"

    def _broker(self) -> str:
        topic = self._topic()
        return self.rng.choice((
            f"broker {self.rng.randint(1, self.brokers)}",
            f"coordinator of group {self.rng.choice(sorted(self.groups))}",
            f"leader of {topic}/{self.rng.randrange(self.topics[topic]['partitions'])}"))

    def _anybody(self) -> str:
        group = self.rng.choice(sorted(self.groups))
        return self.rng.choice((self._member(), self._broker(), f"leader of group {group}",
                                f"producer {self.rng.randint(1, len(self.producers))}", "controller"))

    def _place(self) -> dict[str, str]:
        if self.rng.random() < 0.4:
            return {"who": self._anybody()}
        source, target = self._anybody(), self._broker()
        return {"who": source} if source == target else {
            "link": f"link {source} {self.rng.choice(('->', '<->'))} {target}"}

    def _pause(self) -> dict[str, Any]:
        return {"who": self._anybody(), **self._for()}

    def _crash(self) -> dict[str, Any]:
        return {"who": self._anybody(), **self._for()}

    def _silence(self) -> dict[str, Any]:
        return {"who": "node 1", **self._for()}

    def _stop(self) -> dict[str, Any]:
        return {"who": self.rng.choice((self._member(), self._broker())), **self._for()}

    def _cut(self) -> dict[str, Any]:
        return {**self._place(), **self._for()}

    def _delay(self) -> dict[str, Any]:
        return {"by": f"{self.rng.randint(10, 2000)}ms", "jitter": f"{self.rng.randint(0, 500)}ms", **self._place(),
                **self._for()}

    def _loss(self) -> dict[str, Any]:
        return {"rate": round(self.rng.uniform(0.05, 0.5), 2), **self._place(), **self._for()}

    def _slow_disk(self) -> dict[str, Any]:
        return {"who": self._broker(), "by": f"{self.rng.randint(10, 1000)}ms", **self._for()}

    def _process(self) -> dict[str, Any]:
        return {"who": self._member(), "per.record": f"{self.rng.choice((0, 10, 500, 3000))}ms"}

    def _unsubscribe(self) -> dict[str, Any]:
        return {"who": self._member()}

    def _subscribe(self) -> dict[str, Any]:
        return {"who": self._member(), "topics": [self._topic()]}

    def _roll(self) -> dict[str, Any]:
        group = self.rng.choice(sorted(self.groups))
        return {"who": self.rng.choice(("brokers", f"members of group {group}")), "every": "8s", "down": "2s"}

    def _grow(self) -> dict[str, Any]:
        return {"topic": self._topic(), "partitions": self.rng.randint(1, 3)}

    def _elect(self) -> dict[str, Any]:
        return {}


WEIGHTED = (*("pause",) * 4, *("crash",) * 5, *("cut",) * 4, *("stop",) * 2, *("delay",) * 2, *("loss",) * 2, "silence",
            "slow-disk", "process", "unsubscribe", "subscribe", "roll", "grow", "elect")


def _instant(entry: dict[str, Any]) -> int:
    return int(entry["at"].removesuffix("ms"))


# Trying


def scenario_of(document: Document) -> Scenario:
    """Raises BadFile if it is none."""
    return read_text(written(document), Path(f"{document['name']}.yaml"))


def attempt(document: Document, seed: int) -> Failure | None:
    """Play it. What broke first, if anything did."""
    try:
        result = Run(scenario_of(document), seed).play()
    except BadFile:
        raise
    except Exception as problem:  # noqa: BLE001  (a machine that gives up is a failure like any other)
        return Failure(seed, type(problem).__name__, _where(problem))
    for verdict in result.rules:
        if verdict.outcome is Outcome.INVALID:
            return Failure(seed, verdict.rule, verdict.breaches[0].evidence)
    return None


def _where(problem: Exception) -> str:
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{problem}{place}"


# Shrinking


def shrink(document: Document, failure: Failure, tries: int = 150,
           watch: Callable[[Document], None] = lambda smaller: None) -> Document:
    """The smallest that was found which still fails by the same rule."""
    found = True
    while found and tries > 0:
        found = False
        for smaller in _smaller(document):
            if tries <= 0:
                break
            tries -= 1
            try:
                still = attempt(smaller, failure.seed)
            except BadFile:
                continue                       # without that, the rest means nothing
            if still is not None and still.rule == failure.rule:
                document, found = smaller, True
                watch(document)
                break
    return document


def _smaller(document: Document) -> Iterator[Document]:
    """One thing less, the largest things first."""
    timeline = document["timeline"]
    if len(timeline) > 2:
        for half in (timeline[: len(timeline) // 2], timeline[len(timeline) // 2 :]):
            yield {**document, "timeline": half}
    for index in range(len(timeline)):
        yield {**document, "timeline": timeline[:index] + timeline[index + 1 :]}
    for name in document["groups"]:
        if len(document["groups"]) > 1:
            yield {**document, "groups": {each: group for each, group in document["groups"].items() if each != name}}
        if document["groups"][name]["members"] > 1:
            smaller = deepcopy(document)
            smaller["groups"][name]["members"] -= 1
            yield smaller
    for index in range(len(document["producers"])):
        yield {**document, "producers": document["producers"][:index] + document["producers"][index + 1 :]}
    for place in (document["cluster"], *document["groups"].values()):
        for key in place["config"]:
            before = place["config"]
            place["config"] = {each: value for each, value in before.items() if each != key}
            smaller = deepcopy(document)
            place["config"] = before
            yield smaller
    last = max([_instant(entry) for entry in timeline], default=0) // 1000
    until = int(document["until"].removesuffix("s"))
    for shorter in (last + (until - last) // 2, until - 1):
        if last < shorter < until:
            yield {**document, "until": f"{shorter}s"}
