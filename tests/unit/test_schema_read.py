"""A good scenario means what it says, field by field."""

from pathlib import Path

from cluster.config import BrokerConfig, ConsumerConfig, ControllerConfig, ProducerConfig
from cluster.faults import (
    FAULTS,
    Crash,
    Cut,
    Delay,
    Duration,
    Link,
    Loss,
    NotTcp,
    Pause,
    Silence,
    SlowDisk,
    Stop,
    link,
)
from cluster.faults import target as t
from scenarios.actions import (
    ACTIONS,
    CreateTopic,
    DeleteTopic,
    Elect,
    Grow,
    Join,
    Process,
    Roll,
    Subscribe,
    Unsubscribe,
)
from scenarios.expectations import AllOwned, Detected, Failover, No, Progress, Rebalances, State
from scenarios.schema import Producer, Step, Topic
from tests.unit.test_schema import read

WHOLE = """\
name: whole
story: {en: " It happens. ", zh: 发生了。}
cluster:
  brokers: 4
  nodes: 2
  latency: 2ms
  topics:
    orders: {partitions: 6, replication.factor: 2}
    plain:
  config: {min.insync.replicas: 2, broker.session.timeout.ms: 6000, num.partitions: 5}
groups:
  billing:
    members: 3
    subscribe: [orders, plain]
    protocol: classic
    start.every: 1.5s
    config: {session.timeout.ms: 10000, group.instance.id: shop}
    each: {2: {session.timeout.ms: 20000, group.instance.id: alone}}
  audit: {pattern: "or.*"}
producers:
  - {topic: orders, records.per.second: 2.5, acks: 1}
  - {topic: plain, acks: all}
timeline:
  - {at: 2s, pause: {who: member billing/2, for: 14s}}
  - {at: 1s, crash: {who: leader of group billing}}
  - {at: 3s, crash: {who: coordinator of group audit, for: 1m}}
  - {at: 4s, silence: {who: node 2, for: 500ms}}
  - {at: 5s, stop: {who: broker 4}}
  - {at: 6s, cut: {link: link broker 1 -> broker 2}}
  - {at: 6s, cut: {who: controller, for: 1s}}
  - {at: 7s, delay: {link: member billing/1 <-> leader of orders/5, by: 300ms, jitter: 20ms}}
  - {at: 8s, loss: {who: producer 2, rate: 0.25}}
  - {at: 9s, not-tcp: {who: members of group audit, duplicate: 1, reorder: 10ms}}
  - {at: 10s, slow-disk: {who: brokers, by: 40ms, for: 1h}}
  - {at: 11s, join: {group: audit, members: 2}}
  - {at: 12s, subscribe: {who: member audit/3, topics: [plain]}}
  - {at: 13s, subscribe: {who: members of group billing, pattern: "p.*"}}
  - {at: 14s, unsubscribe: {who: member audit/1}}
  - {at: 15s, process: {who: leader of group audit, per.record: 3ms}}
  - {at: 16s, roll: {who: brokers, every: 10s, down: 2s}}
  - {at: 17s, create-topic: {topic: new, partitions: 3, replication.factor: 4}}
  - {at: 18s, grow: {topic: new, partitions: 4}}
  - {at: 19s, delete-topic: {topic: new}}
  - {at: 20s, elect: {}}
until: 2m
settle: 5s
expect:
  - {detected: {who: member billing/2, error.ms: [0, 1500]}}
  - {rebalances: {group: billing, count: [3, 4], after: 10s, before: 1m, cause: session expired}}
  - {state: {group: audit, is: Stable, at: 100s}}
  - {all-owned: {group: billing}}
  - {failover: {group: audit, within: 8s}}
  - {progress: {group: billing, during: [60s, 90s], none: true}}
  - {no: [lost-record, two-owners]}
"""


def d(ms: int) -> Duration:
    return Duration(ms)


def test_a_whole_scenario_is_read_field_by_field(tmp_path: Path) -> None:
    scenario = read(tmp_path, WHOLE)
    assert scenario.name == "whole"
    assert scenario.story == {"en": "It happens.", "zh": "发生了。"}
    assert scenario.text == WHOLE
    assert (scenario.until, scenario.settle) == (120_000, 5000)
    cluster = scenario.cluster
    assert (cluster.brokers, cluster.nodes, cluster.latency_ms) == (4, 2, 2)
    assert cluster.topics == {"orders": Topic(6, 2), "plain": Topic(1, 3)}
    assert cluster.config == BrokerConfig(min_insync_replicas=2, num_partitions=5)
    assert cluster.controller == ControllerConfig(broker_session_timeout_ms=6000, num_partitions=5)
    assert scenario.producers == (
        Producer("orders", ProducerConfig(records_per_second=2.5, acks="1")),
        Producer("plain", ProducerConfig(acks="all")),
    )


def test_groups_and_their_members_have_their_settings(tmp_path: Path) -> None:
    groups = read(tmp_path, WHOLE).groups
    assert list(groups) == ["billing", "audit"]
    billing, audit = groups["billing"], groups["audit"]
    assert (billing.name, billing.members, billing.topics, billing.pattern) == ("billing", 3, ("orders", "plain"), None)
    assert billing.start_every == 1500
    assert billing.config_of(1) == ConsumerConfig(session_timeout_ms=10000, group_instance_id="shop-1")
    assert billing.config_of(2) == ConsumerConfig(session_timeout_ms=20000, group_instance_id="alone")
    assert billing.config_of(3) == ConsumerConfig(session_timeout_ms=10000, group_instance_id="shop-3")
    assert (audit.members, audit.topics, audit.pattern, audit.start_every) == (1, (), "or.*", 0)
    assert audit.config_of(7) == ConsumerConfig()


def test_every_action_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    timeline = read(tmp_path, WHOLE).timeline
    both = Link(t("member billing/1"), t("leader of orders/5"), both=True)
    assert timeline == (
        Step(1000, "crash", Crash(t("leader of group billing"))),
        Step(2000, "pause", Pause(t("member billing/2"), d(14_000))),
        Step(3000, "crash", Crash(t("coordinator of group audit"), d(60_000))),
        Step(4000, "silence", Silence(t("node 2"), d(500))),
        Step(5000, "stop", Stop(t("broker 4"))),
        Step(6000, "cut", Cut(link("link broker 1 -> broker 2"))),
        Step(6000, "cut", Cut(None, t("controller"), d(1000))),
        Step(7000, "delay", Delay(d(300), d(20), both)),
        Step(8000, "loss", Loss(0.25, None, t("producer 2"))),
        Step(9000, "not-tcp", NotTcp(1.0, d(10), None, t("members of group audit"))),
        Step(10_000, "slow-disk", SlowDisk(t("brokers"), d(40), d(3_600_000))),
        Step(11_000, "join", Join("audit", 2)),
        Step(12_000, "subscribe", Subscribe(t("member audit/3"), ("plain",))),
        Step(13_000, "subscribe", Subscribe(t("members of group billing"), (), "p.*")),
        Step(14_000, "unsubscribe", Unsubscribe(t("member audit/1"))),
        Step(15_000, "process", Process(t("leader of group audit"), d(3))),
        Step(16_000, "roll", Roll(t("brokers"), d(10_000), d(2000))),
        Step(17_000, "create-topic", CreateTopic("new", 3, 4)),
        Step(18_000, "grow", Grow("new", 4)),
        Step(19_000, "delete-topic", DeleteTopic("new")),
        Step(20_000, "elect", Elect()),
    )
    assert {step.name for step in timeline} == set(ACTIONS)
    assert set(FAULTS) < set(ACTIONS)


def test_expectations_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE).expect == (
        Detected(t("member billing/2"), (0, 1500)),
        Rebalances("billing", (3, 4), d(10_000), d(60_000), "session expired"),
        State("audit", "Stable", d(100_000)),
        AllOwned("billing"),
        Failover("audit", d(8000)),
        Progress("billing", (d(60_000), d(90_000)), none=True),
        No(("lost-record", "two-owners")),
    )


def test_what_is_not_given_has_its_default(tmp_path: Path) -> None:
    scenario = read(tmp_path, "name: bare\ncluster: {}\nuntil: 1ms\n")
    assert (scenario.story, scenario.groups, scenario.producers, scenario.timeline, scenario.expect) == (
        {}, {}, (), (), (),
    )  # fmt: skip
    assert (scenario.cluster.brokers, scenario.cluster.nodes, scenario.cluster.latency_ms) == (3, 3, 1)
    assert (scenario.until, scenario.settle) == (1, 20_000)
    alone = read(tmp_path, "name: bare\ncluster: {brokers: 1}\nuntil: 1ms\n")
    assert alone.cluster.config.offsets_topic_replication_factor == 1
