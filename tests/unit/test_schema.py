"""A bad scenario is refused before anything starts: which file, which line, which key, and what would be right."""

from pathlib import Path

import pytest

from scenarios.reading import BadFile
from scenarios.schema import Scenario, read_scenario

GOOD = """\
name: small
cluster:
  brokers: 3
  nodes: 3
  topics: {orders: {partitions: 6, replication.factor: 3}}
  config: {group.initial.rebalance.delay.ms: 0}
groups:
  billing: {members: 3, subscribe: [orders], config: {session.timeout.ms: 10000}}
producers:
  - {topic: orders, records.per.second: 10}
timeline:
  - {at: 10s, pause: {who: member billing/2, for: 14s}}
until: 90s
expect:
  - {no: [two-owners]}
"""
TIMELINE = "timeline:\n  - {at: 10s, pause: {who: member billing/2, for: 14s}}"
PRODUCERS = "producers:\n  - {topic: orders, records.per.second: 10}"


def read(tmp_path: Path, text: str | bytes) -> Scenario:
    path = tmp_path / "story.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_scenario(path)


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said about it, after the name of the file."""
    with pytest.raises(BadFile) as problem:
        read(tmp_path, text)
    said = str(problem.value)
    assert said.startswith(f"{tmp_path / 'story.yaml'}:")
    return said.removeprefix(f"{tmp_path / 'story.yaml'}:")


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_the_scenario_that_the_others_are_made_from_is_good(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD).name == "small"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: small", "name:", "1: name: None cannot name a folder; use 1 to 200 of a-z A-Z 0-9 . _ -"),
        ("name: small", "name: 5", "1: name: 5 cannot name a folder; use 1 to 200 of a-z A-Z 0-9 . _ -"),
        (
            "until: 90s",
            "until: 2024-01-01",
            "13: until: not a duration: datetime.date(2024, 1, 1); write 500ms, 9s, 2m or 1h",
        ),
        (TIMELINE, "timeline:", "11: timeline is a list, not None"),
        (TIMELINE, "timeline: x", "11: timeline is a list, not 'x'"),
        (TIMELINE, "timeline: 5", "11: timeline is a list, not 5"),
        (TIMELINE, "timeline: {a: 1}", "11: timeline is a list, not {'a': 1}"),
        (PRODUCERS, "producers:", "9: producers is a list, not None"),
        (PRODUCERS, "producers: 4", "9: producers is a list, not 4"),
        ("expect:\n  - {no: [two-owners]}", "expect:", "14: expect is a list, not None"),
        ("config: {group.initial.rebalance.delay.ms: 0}", "config:", "6: cluster config is a mapping, not None"),
        ("topics: {orders: {partitions: 6, replication.factor: 3}}", "topics:", "5: topics is a mapping, not None"),
        ("until: 90s", "until: 90", "13: until: not a duration: 90; write 500ms, 9s, 2m or 1h"),
        ("nodes: 3", "latency: 1000000h", "4: latency: at most 8784h, not '1000000h'"),
        (
            "group.initial.rebalance.delay.ms: 0",
            "offsets.topic.replication.factor: three",
            "6: offsets.topic.replication.factor: Expected `int`, got `str`, not 'three'",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "offsets.topic.replication.factor: true",
            "6: offsets.topic.replication.factor: Expected `int`, got `bool`, not True",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "offsets.topic.replication.factor: 4",
            "6: offsets.topic.replication.factor: 4 replicas, and 3 brokers",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "5: 0",
            "6: no setting 5; there are: auto.leader.rebalance.enable, broker.heartbeat.interval.ms,",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "~: 0",
            "6: no setting None; there are: auto.leader.rebalance.enable, broker.heartbeat.interval.ms,",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "group.initial.rebalance.delay.ms: true",
            "6: group.initial.rebalance.delay.ms: Expected `int`, got `bool`, not True",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "group.initial.rebalance.delay.ms: 5s",
            "6: group.initial.rebalance.delay.ms: Expected `int`, got `str`, not '5s'",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "offsets.topic.num.partitions: 2000000000",
            "6: offsets.topic.num.partitions: a number from 1 to 10000, not 2000000000",
        ),
        (
            "group.initial.rebalance.delay.ms: 0",
            "num.partitions: 2000000000",
            "6: num.partitions: a number from 1 to 10000, not 2000000000",
        ),
        (
            "session.timeout.ms: 10000",
            "session.timeout.ms: 10000, heartbeat.interval.ms: 10000",
            "8: group 'billing': heartbeat.interval.ms 10000 must be below session.timeout.ms 10000",
        ),
        (
            "session.timeout.ms: 10000",
            "session.timeout.ms: 3000",
            "8: group 'billing': heartbeat.interval.ms 3000 must be below session.timeout.ms 3000",
        ),
        ("members: 3", "members: -1", "8: members: a number from 0 to 10000, not -1"),
        ("members: 3", "members: three", "8: members: a number from 0 to 10000, not 'three'"),
        ("members: 3", "members: 3.0", "8: members: a number from 0 to 10000, not 3.0"),
        ("members: 3", "members: true", "8: members: a number from 0 to 10000, not True"),
        ("subscribe: [orders]", "subscribe: []", "8: group 'billing': subscribe: no topics at all"),
        ("subscribe: [orders]", "subscribe: orders", "8: group 'billing': subscribe is a list, not 'orders'"),
        (
            "subscribe: [orders]",
            "subscribe: [5]",
            "8: group 'billing': subscribe: no topic 5; there are: __consumer_offsets, orders",
        ),
        (
            "subscribe: [orders]",
            "subscribe: [~]",
            "8: group 'billing': subscribe: no topic None; there are: __consumer_offsets, orders",
        ),
        (
            "subscribe: [orders]",
            "subscribe: [oders]",
            "8: group 'billing': subscribe: no topic 'oders'; there are: __consumer_offsets, orders",
        ),
        (
            "subscribe: [orders]",
            "subscribe: [{a: b}]",
            "8: group 'billing': subscribe: no topic {'a': 'b'}; there are: __consumer_offsets, orders",
        ),
        ("subscribe: [orders]", "pattern: ~", "8: group 'billing': pattern: a regular expression, not None"),
        ("subscribe: [orders]", "pattern: 5", "8: group 'billing': pattern: a regular expression, not 5"),
        (
            "subscribe: [orders]",
            "pattern: '('",
            "8: group 'billing': pattern: '(' is no regular expression: missing ), unterminated",
        ),
        ("subscribe: [orders]", "pattern: ''", "8: group 'billing': pattern: a regular expression, not ''"),
        ("subscribe: [orders]", "pattern: [a]", "8: group 'billing': pattern: a regular expression, not ['a']"),
        (
            "members: 3",
            "members: 3, protocol: consumer",
            "8: group 'billing': protocol 'consumer' is not here yet; allowed: classic",
        ),
        (
            "members: 3",
            "members: 3, protocol: [1]",
            "8: group 'billing': protocol [1] is not here yet; allowed: classic",
        ),
        ("members: 3", "members: 3, start.every: 5", "8: start.every: not a duration: 5; write 500ms, 9s, 2m or 1h"),
        ("members: 3", "members: 3, each: {a: {}}", "8: group 'billing': each: members are 1, 2, ..., not 'a'"),
        (
            "members: 3",
            "members: 3, each: {4: {}}",
            "8: group 'billing': each: no member 4; the group has members 1 to 3",
        ),
        ("members: 3", "members: 3, each: {true: {}}", "8: group 'billing': each: members are 1, 2, ..., not True"),
        ("members: 3", "members: 3, each: {0: {}}", "8: group 'billing': each: members are 1, 2, ..., not 0"),
        ("members: 3", "members: 3, each: {1: ~}", "8: group 'billing': each: 1 is a mapping, not None"),
        (
            "members: 3",
            "members: 3, each: {1: {sesion: 4}}",
            "8: no setting 'sesion'; there are: auto.commit.interval.ms, auto.offset.reset, commit,",
        ),
        (
            "members: 3",
            "members: 3, each: {1: {session.timeout.ms: 2000}}",
            "8: group 'billing': member 1: heartbeat.interval.ms 3000 must be below session.timeout.ms 2000",
        ),
        (
            "session.timeout.ms: 10000",
            "partition.assignment.strategy: [rang]",
            "8: group 'billing': no assignor 'rang'; known: range, roundrobin, sticky, cooperative-sticky",
        ),
        (
            "session.timeout.ms: 10000",
            "partition.assignment.strategy: []",
            "8: group 'billing': partition.assignment.strategy: at least one assignor, and none twice",
        ),
        (
            "session.timeout.ms: 10000",
            "partition.assignment.strategy: [range, range]",
            "8: group 'billing': partition.assignment.strategy: at least one assignor, and none twice",
        ),
        (
            "session.timeout.ms: 10000",
            "partition.assignment.strategy: range",
            "8: partition.assignment.strategy: Expected `array`, got `str`, not 'range'",
        ),
        (
            "session.timeout.ms: 10000",
            "group.instance.id: 5",
            "8: group.instance.id: Expected `str | null`, got `int`, not 5",
        ),
        (
            "session.timeout.ms: 10000",
            "group.instance.id: ''",
            "8: group 'billing': group.instance.id: 1 to 249 of a-z A-Z 0-9 . _ -, not ''",
        ),
        (
            "billing:",
            "5:",
            "8: group 5: a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not that of a broker,",
        ),
        (
            "billing:",
            "'a b':",
            "8: group 'a b': a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not that of a broker,",
        ),
        (
            "billing:",
            "~:",
            "8: group None: a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not that of a broker,",
        ),
        (
            "billing:",
            "'a/b':",
            "8: group 'a/b': a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not that of a broker,",
        ),
        (
            "billing:",
            "'..':",
            "8: group '..': a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not that of a broker,",
        ),
        (
            "billing: {members: 3, subscribe: [orders], config: {session.timeout.ms: 10000}}",
            "billing:",
            "8: group 'billing' is a mapping, not None",
        ),
        (
            "records.per.second",
            "record.per.second",
            "10: no setting 'record.per.second'; there are: acks, delivery.timeout.ms,",
        ),
        ("records.per.second: 10", "records.per.second: 0", "10: records.per.second: Expected `float` > 0.0, not 0"),
        ("records.per.second: 10", "records.per.second: -5", "10: records.per.second: Expected `float` > 0.0, not -5"),
        (
            "records.per.second: 10",
            "records.per.second: ten",
            "10: records.per.second: Expected `float`, got `str`, not 'ten'",
        ),
        (
            "records.per.second: 10",
            "records.per.second: true",
            "10: records.per.second: Expected `float`, got `bool`, not True",
        ),
        (
            "records.per.second: 10",
            "records.per.second: .nan",
            "10: records.per.second: Expected `float` > 0.0, not nan",
        ),
        (
            "records.per.second: 10",
            "records.per.second: .inf",
            "10: records.per.second: Expected `float` <= 1000000.0, not inf",
        ),
        ("topic: orders", "topic: oders", "10: a producer needs a `topic`; there are: orders, not 'oders'"),
        ("topic: orders, ", "", "10: a producer needs a `topic`; there are: orders, not None"),
        ("topic: orders", "topic: [orders]", "10: a producer needs a `topic`; there are: orders, not ['orders']"),
        ("topic: orders", "topic: 5", "10: a producer needs a `topic`; there are: orders, not 5"),
        ("- {topic: orders, records.per.second: 10}", "- orders", "9: a producer is a mapping, not 'orders'"),
        (
            "session.timeout.ms: 10000",
            "processing.ms.per.record: .nan",
            "8: processing.ms.per.record: Expected `float` >= 0.0, not nan",
        ),
        (
            "session.timeout.ms: 10000",
            "processing.ms.per.record: -1",
            "8: processing.ms.per.record: Expected `float` >= 0.0, not -1",
        ),
        (
            "orders: {partitions",
            "'a b': {partitions",
            "5: topic 'a b': a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -",
        ),
        ("orders: {partitions", "5: {partitions", "5: topic 5: a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -"),
        (
            "partitions: 6",
            "partition: 6",
            "5: topic 'orders' has no key 'partition'; allowed: partitions, replication.factor",
        ),
        ("replication.factor: 3", "replication.factor: 4", "5: topic 'orders': replication.factor 4, and 3 brokers"),
        (
            "replication.factor: 3",
            "replication.factor: true",
            "5: replication.factor: a number from 1 to 1000, not True",
        ),
        ("partitions: 6", "partitions: 0", "5: partitions: a number from 1 to 10000, not 0"),
        (
            "orders: {partitions",
            "__consumer_offsets: {}, orders: {partitions",
            "5: topic '__consumer_offsets': the brokers make it; see offsets.topic.num.partitions",
        ),
        (
            "orders: {partitions",
            "'.': {}, orders: {partitions",
            "5: topic '.': a topic's name is 1 to 249 of a-z A-Z 0-9 . _ -",
        ),
        ("{partitions: 6, replication.factor: 3}", "[6]", "5: topic 'orders' is a mapping, not [6]"),
        ("brokers: 3", "brokers: 0", "3: brokers: a number from 1 to 100, not 0"),
        ("brokers: 3", "brokers: 101", "3: brokers: a number from 1 to 100, not 101"),
        ("nodes: 3", "nodes: 0", "4: nodes: a number from 1 to 100, not 0"),
        ("brokers: 3", "brokers: three", "3: brokers: a number from 1 to 100, not 'three'"),
    ],
)
def test_a_bad_section_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert refused(tmp_path, changed(old, new)).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " a scenario is a mapping, not None"),
        ("# nothing but a remark\n", " a scenario is a mapping, not None"),
        ("- a list", " a scenario is a mapping, not ['a list']"),
        ("some text", " a scenario is a mapping, not 'some text'"),
        ("a: [", "2: not YAML: did not find expected node content"),
        ("a: b: c", "1: not YAML: mapping values are not allowed in this context"),
        ("\x00", " not YAML: unacceptable character"),
        (b"\xff\xfe\xfa", " cannot be read: it is not UTF-8 text"),
        ("a: &a [*a]", " not YAML: maximum recursion depth exceeded"),
        ("? [a]\n: b", "1: a key cannot be a list or a mapping"),
        (GOOD + "name: again\n", "16: 'name' stands here twice"),
        (changed("brokers: 3", "brokers: 3\n  brokers: 4"), "4: 'brokers' stands here twice"),
        (changed("who: member billing/2", "who: broker 1, who: broker 2"), "12: 'who' stands here twice"),
        (GOOD + "---\nname: another\n", "16: not YAML: but found another document"),
        (changed("brokers: 3", f"brokers: {'9' * 5000}"), "3: not a value: Exceeds the limit (4300 digits)"),
        (changed("until: 90s", "until: 2024-02-30"), "13: not a value: day is out of range for month"),
        (changed("until: 90s", f"until: {'9' * 400}h"), "13: until: at most 8784h, not '999"),
        (changed("until: 90s", "until: 0s").replace("at: 10s", "at: 0s"), "13: until: a duration above 0"),
        (changed("for: 14s", "for: 99999h"), "12: pause: for: at most 8784h, not '99999h'"),
        (changed("until: 90s\n", ""), "1: a scenario needs `until`"),
        (changed("name: small\n", ""), "1: a scenario needs `name`"),
        ("name: small\nuntil: 5s\n", "1: a scenario needs `cluster`"),
        ("name: small\ncluster:\nuntil: 5s\n", "2: cluster is a mapping, not None"),
        (GOOD + "settle: 5\n", "16: settle: not a duration: 5; write 500ms, 9s, 2m or 1h"),
        (GOOD + "groop: {}\n", "16: a scenario has no key 'groop'; allowed: cluster, expect, groups, name,"),
        (
            changed("brokers: 3", "borkers: 3"),
            "3: cluster has no key 'borkers'; allowed: brokers, config, latency, nodes,",
        ),
        (changed("members: 3", "member: 3"), "8: group 'billing' has no key 'member'; allowed: config, each, members,"),
        (changed("session.timeout.ms", "session.timeout"), "8: no setting 'session.timeout'; there are: auto.commit."),
        (changed("group.initial.rebalance.delay.ms", "group.delay"), "6: no setting 'group.delay'; there are: auto."),
        (
            changed("subscribe: [orders], ", ""),
            "8: group 'billing': either `subscribe` (a list of topics) or `pattern`",
        ),
        (changed("[orders]", "[orders], pattern: o.*"), "8: group 'billing': either `subscribe` (a list of topics) or"),
        (GOOD + "story: 5\n", "16: story is a mapping, not 5"),
        (GOOD + "story: {fr: x}\n", "16: story has no key 'fr'; allowed: en, zh"),
        (GOOD + "story: {en: 5}\n", "16: story: en: text, not 5"),
        (changed("name: small", f"name: {'x' * 201}"), "1: name: 'xxxxxx"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"cannot be read: Is a directory"):
        read_scenario(tmp_path)
    with pytest.raises(BadFile, match=r"nowhere.yaml: cannot be read: No such file or directory"):
        read_scenario(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    "name", ["broker", "broker-x", "coordinator", "controller", "producer", "producer-1", "operator"]
)
def test_no_group_has_the_name_of_another_kind_of_host(tmp_path: Path, name: str) -> None:
    text = GOOD.replace("billing", name)
    assert refused(tmp_path, text).startswith(f"8: group {name!r}: a name is 1 to 200 of a-z A-Z 0-9 . _ -, and not")


def test_members_are_told_apart_by_their_last_number(tmp_path: Path) -> None:
    """Members of `a` are the hosts a-1, a-2, ..., those of `a-1` are a-1-1, a-1-2, ...: never the same."""
    groups = "groups:\n  a: {members: 12, subscribe: [orders]}\n  a-1: {members: 12, subscribe: [orders]}\n"
    text = "name: x\ncluster: {topics: {orders: {}}}\nuntil: 5s\n" + groups + "  brokerage: {subscribe: [orders]}\n"
    scenario = read(tmp_path, text)
    hosts = [f"{group.name}-{number}" for group in scenario.groups.values() for number in range(1, group.members + 1)]
    assert len(set(hosts)) == 25
