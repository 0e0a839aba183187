"""What cannot be done, or cannot come true, is refused before anything starts: with the line, and what is allowed."""

from pathlib import Path

import pytest

from tests.unit.test_schema import TIMELINE, changed, read, refused


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{at: 91s, elect: {}}", "12: at 91s: that is after the end, 90s"),
        (
            "{elect: {}}",
            "12: an entry of the timeline has `at` and one of: crash, create-topic, cut, delay,",
        ),
        ("{at: 5, elect: {}}", "12: at: not a duration: 5; write 500ms, 9s, 2m or 1h"),
        (
            "{at: 1s, elect: {}, grow: {topic: orders, partitions: 7}}",
            "12: an entry of the timeline has `at` and one of: crash, create-topic, cut, delay,",
        ),
        (
            "{at: 1s}",
            "12: an entry of the timeline has `at` and one of: crash, create-topic, cut, delay,",
        ),
        (
            "{at: 1s, paus: {}}",
            "12: an entry of the timeline has no key 'paus'; allowed: at, crash, create-topic, cut,",
        ),
        ("{at: -5s, elect: {}}", "12: at: not a duration: '-5s'; write 500ms, 9s, 2m or 1h"),
        ("{at: 1s, elect: {who: broker 1}}", "12: elect has no key 'who'; allowed: none"),
        ("{at: 1s, elect: x}", "12: elect is a mapping, not 'x'"),
        ("{at: 1s, pause: {who: broker 1}}", "12: pause needs `for`; it has: who, for"),
        ("{at: 1s, pause: }", "12: pause is a mapping, not None"),
        ("{at: 1s, pause: {who: 5, for: 1s}}", "12: pause: who: text, not 5"),
        ("{at: 1s, pause: {who: ~, for: 1s}}", "12: pause: who: text, not None"),
        ("{at: 1s, pause: {who: broker 1, for: ~}}", "12: pause: for: not a duration: None; write 500ms, 9s, 2m or 1h"),
        (
            "{at: 1s, pause: {who: broker 1, for: -1s}}",
            "12: pause: for: not a duration: '-1s'; write 500ms, 9s, 2m or 1h",
        ),
        ("{at: 1s, pause: {who: broker 1, four: 1s}}", "12: pause has no key 'four'; allowed: for, who"),
        ("{at: 1s, crash: {who: broker 1, for: ~}}", "12: crash: for: not a duration: None; write 500ms, 9s, 2m or 1h"),
        (
            "{at: 1s, crash: {who: boss of group billing}}",
            "12: crash: who: no such target: 'boss of group billing'; there are: member G/N, members",
        ),
        (
            "{at: 1s, crash: {who: member billing/4}}",
            "12: crash: who: no member billing/4; the group has members 1 to 3",
        ),
        (
            "{at: 1s, crash: {who: member billing/0}}",
            "12: crash: who: no member billing/0; the group has members 1 to 3",
        ),
        ("{at: 1s, crash: {who: broker 4}}", "12: crash: who: no broker 4; there are 3 brokers"),
        ("{at: 1s, crash: {who: broker 0}}", "12: crash: who: no broker 0; there are 3 brokers"),
        ("{at: 1s, crash: {who: node 4}}", "12: crash: who: no node 4; there are 3 nodes"),
        ("{at: 1s, crash: {who: producer 2}}", "12: crash: who: no producer 2; there are 1 producers"),
        ("{at: 1s, crash: {who: leader of group biling}}", "12: crash: who: no group 'biling'; there are: billing"),
        (
            "{at: 1s, crash: {who: coordinator of group biling}}",
            "12: crash: who: no group 'biling'; there are: billing",
        ),
        ("{at: 1s, crash: {who: members of group biling}}", "12: crash: who: no group 'biling'; there are: billing"),
        (
            "{at: 1s, crash: {who: leader of oders/0}}",
            "12: crash: who: no topic 'oders'; there are: __consumer_offsets, orders",
        ),
        ("{at: 1s, crash: {who: leader of orders/6}}", "12: crash: who: orders has partitions 0 to 5, not 6"),
        (
            "{at: 1s, crash: {who: leader of __consumer_offsets/50}}",
            "12: crash: who: __consumer_offsets has partitions 0 to 49, not 50",
        ),
        (
            "{at: 1s, cut: {who: broker 1, link: broker 1 -> broker 2}}",
            "12: cut: either `link` (from whom to whom) or `who` (cut off from all others)",
        ),
        ("{at: 1s, cut: {for: 1s}}", "12: cut: either `link` (from whom to whom) or `who` (cut off from all others)"),
        (
            "{at: 1s, cut: {link: broker 1 > broker 2}}",
            "12: cut: link: no such link: 'broker 1 > broker 2'; a link is `link A -> B`, or `<->`",
        ),
        ("{at: 1s, cut: {link: broker 1 -> broker 1}}", "12: cut: link: broker 1 has no link with itself"),
        ("{at: 1s, cut: {link: 5}}", "12: cut: link: text, not 5"),
        ("{at: 1s, cut: {link: broker 1 -> broker 9}}", "12: cut: link: no broker 9; there are 3 brokers"),
        (
            "{at: 1s, cut: {link: broker 1 -> broker 2 -> broker 3}}",
            "12: cut: link: no such link: 'broker 1 -> broker 2 -> broker 3'; a link is `link A ->",
        ),
        (
            "{at: 1s, cut: {link: '-> broker 2'}}",
            "12: cut: link: no such target: ''; there are: member G/N, members of group G, leader of",
        ),
        ("{at: 1s, silence: {who: broker 1}}", "12: silence: who: only a whole node can fall silent: node N"),
        (
            "{at: 1s, stop: {who: controller}}",
            "12: stop: who: there is nobody to whom the controller could hand over; `crash` it",
        ),
        ("{at: 1s, delay: {who: broker 1}}", "12: delay needs `by`; it has: by, jitter, link, who, for"),
        ("{at: 1s, delay: {who: broker 1, by: 5}}", "12: delay: by: not a duration: 5; write 500ms, 9s, 2m or 1h"),
        (
            "{at: 1s, delay: {who: broker 1, by: 5ms, jitter: -1ms}}",
            "12: delay: jitter: not a duration: '-1ms'; write 500ms, 9s, 2m or 1h",
        ),
        ("{at: 1s, loss: {who: broker 1, rate: 1.5}}", "12: loss: rate: a number from 0 to 1, not 1.5"),
        ("{at: 1s, loss: {who: broker 1, rate: -0.5}}", "12: loss: rate: a number from 0 to 1, not -0.5"),
        ("{at: 1s, loss: {who: broker 1, rate: high}}", "12: loss: rate: Expected `float`, got `str`"),
        ("{at: 1s, loss: {who: broker 1, rate: true}}", "12: loss: rate: Expected `float`, got `bool`"),
        ("{at: 1s, loss: {who: broker 1, rate: .nan}}", "12: loss: rate: a number from 0 to 1, not nan"),
        ("{at: 1s, loss: {who: broker 1}}", "12: loss needs `rate`; it has: rate, link, who, for"),
        ("{at: 1s, not-tcp: {who: broker 1, duplicate: 2}}", "12: not-tcp: duplicate: a number from 0 to 1, not 2.0"),
        ("{at: 1s, not-tcp: {who: broker 1, duplicate: -1}}", "12: not-tcp: duplicate: a number from 0 to 1, not -1.0"),
        (
            "{at: 1s, not-tcp: {who: broker 1, reorder: 5}}",
            "12: not-tcp: reorder: not a duration: 5; write 500ms, 9s, 2m or 1h",
        ),
        (
            "{at: 1s, not-tcp: {who: broker 1}}",
            "12: not-tcp: `duplicate` (how often, 0 to 1), `reorder` (a duration), or both",
        ),
        (
            "{at: 1s, not-tcp: {who: broker 1, duplicate: .nan}}",
            "12: not-tcp: duplicate: a number from 0 to 1, not nan",
        ),
        (
            "{at: 1s, slow-disk: {who: member billing/1, by: 5ms}}",
            "12: slow-disk: who: member billing/1 has no disk; brokers, the controller and nodes have",
        ),
        ("{at: 1s, slow-disk: {who: broker 1}}", "12: slow-disk needs `by`; it has: who, by, for"),
        ("{at: 1s, join: {group: biling}}", "12: join: no group 'biling'; there are: billing"),
        ("{at: 1s, join: {group: billing, members: 0}}", "12: join: members: a number from 1 to 9997, not 0"),
        ("{at: 1s, join: {group: billing, members: -1}}", "12: join: members: a number from 1 to 9997, not -1"),
        ("{at: 1s, join: {group: billing, members: two}}", "12: join: members: Expected `int`, got `str`"),
        ("{at: 1s, join: {group: billing, members: true}}", "12: join: members: Expected `int`, got `bool`"),
        ("{at: 1s, join: {group: 5}}", "12: join: group: Expected `str`, got `int`"),
        ("{at: 1s, join: {group: [a]}}", "12: join: group: Expected `str`, got `array`"),
        ("{at: 1s, subscribe: {who: member billing/1}}", "12: subscribe: either `topics` or `pattern`"),
        (
            "{at: 1s, subscribe: {who: member billing/1, topics: [orders], pattern: o.*}}",
            "12: subscribe: either `topics` or `pattern`",
        ),
        (
            "{at: 1s, subscribe: {who: member billing/1, pattern: '('}}",
            "12: subscribe: pattern: '(' is no regular expression: missing ), unterminated",
        ),
        (
            "{at: 1s, subscribe: {who: member billing/1, topics: [oders]}}",
            "12: subscribe: topics: no topic 'oders'; there are: __consumer_offsets, orders",
        ),
        (
            "{at: 1s, subscribe: {who: broker 1, topics: [orders]}}",
            "12: subscribe: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{at: 1s, subscribe: {who: member billing/1, topics: orders}}",
            "12: subscribe: topics: Expected `array`, got `str`",
        ),
        (
            "{at: 1s, unsubscribe: {who: broker 1}}",
            "12: unsubscribe: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{at: 1s, process: {who: broker 1, per.record: 5ms}}",
            "12: process: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{at: 1s, process: {who: node 1, per.record: 5ms}}",
            "12: process: who: node 1 is no member of a group; allowed: member G/N, members of group",
        ),
        (
            "{at: 1s, process: {who: member billing/1, per.record: 5}}",
            "12: process: per.record: not a duration: 5; write 500ms, 9s, 2m or 1h",
        ),
        (
            "{at: 1s, unsubscribe: {who: controller}}",
            "12: unsubscribe: who: controller is no member of a group; allowed: member G/N, members",
        ),
        (
            "{at: 1s, process: {who: producer 1, per.record: 5ms}}",
            "12: process: who: producer 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{at: 1s, process: {who: coordinator of group billing, per.record: 5ms}}",
            "12: process: who: coordinator of group billing is no member of a group; allowed: member",
        ),
        ("{at: 1s, roll: {who: broker 1, every: 1s, down: 1s}}", "12: roll: who: `members of group G` or `brokers`"),
        ("{at: 1s, roll: {who: brokers, down: 1s}}", "12: roll needs `every`; it has: who, every, down"),
        (
            "{at: 1s, roll: {who: brokers, down: 1s, every: 5}}",
            "12: roll: every: not a duration: 5; write 500ms, 9s, 2m or 1h",
        ),
        (
            "{at: 1s, create-topic: {topic: new, replication.factor: 4}}",
            "12: create-topic: replication.factor 4, and 3 brokers",
        ),
        (
            "{at: 1s, create-topic: {topic: new, replication.factor: 0}}",
            "12: create-topic: replication.factor 0, and 3 brokers",
        ),
        (
            "{at: 1s, create-topic: {topic: new, partitions: 0}}",
            "12: create-topic: partitions: a number from 1 to 10000, not 0",
        ),
        ("{at: 1s, create-topic: {topic: 'a b'}}", "12: create-topic: topic 'a b': 1 to 249 of a-z A-Z 0-9 . _ -"),
        ("{at: 1s, create-topic: {topic: orders}}", "12: create-topic: topic 'orders' is there already"),
        ("{at: 1s, create-topic: {topic: 5}}", "12: create-topic: topic: Expected `str`, got `int`"),
        (
            "{at: 1s, create-topic: {topic: new, partitions: true}}",
            "12: create-topic: partitions: Expected `int`, got `bool`",
        ),
        (
            "{at: 1s, create-topic: {topic: __consumer_offsets}}",
            "12: create-topic: topic '__consumer_offsets' is there already",
        ),
        ("{at: 1s, grow: {topic: orders, partitions: 6}}", "12: grow: partitions: a number from 7 to 10000, not 6"),
        ("{at: 1s, grow: {topic: oders, partitions: 9}}", "12: grow: no topic 'oders'; there are: orders"),
        ("{at: 1s, grow: {topic: orders}}", "12: grow needs `partitions`; it has: topic, partitions"),
        (
            "{at: 1s, grow: {topic: __consumer_offsets, partitions: 60}}",
            "12: grow: no topic '__consumer_offsets'; there are: orders",
        ),
        ("{at: 1s, delete-topic: {topic: oders}}", "12: delete-topic: no topic 'oders'; there are: orders"),
        ("{at: 1s, delete-topic: {}}", "12: delete-topic needs `topic`; it has: topic"),
    ],
)
def test_a_bad_entry_of_the_timeline_is_refused(tmp_path: Path, entry: str, said: str) -> None:
    text = changed("{at: 10s, pause: {who: member billing/2, for: 14s}}", entry)
    assert refused(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("{detectd: {who: member billing/2}}", "15: an expectation has no key 'detectd'; allowed: all-owned,"),
        ("{no: [two-owners], state: {group: billing, is: Stable}}", "15: an expectation is one of: all-owned,"),
        ("{}", "15: an expectation is one of: all-owned,"),
        ("hello", "14: an expectation is a mapping, not 'hello'"),
        ("{detected: }", "15: detected is a mapping, not None"),
        ("{detected: {who: member billing/9}}", "15: detected: who: no member billing/9; the group has members 1 to 3"),
        (
            "{detected: {who: boss}}",
            "15: detected: who: no such target: 'boss'; there are: member G/N, members of group G,",
        ),
        ("{detected: {}}", "15: detected needs `who`; it has: who, error.ms"),
        (
            "{detected: {who: member billing/2, error.ms: [1500, 0]}}",
            "15: detected: error.ms: from the lower to the higher, not 1500 to 0",
        ),
        (
            "{detected: {who: member billing/2, error.ms: [0]}}",
            "15: detected: error.ms: Expected `array` of length 2, got 1",
        ),
        ("{detected: {who: member billing/2, error.ms: 5}}", "15: detected: error.ms: Expected `array`, got `int`"),
        (
            "{detected: {who: broker 1}}",
            "15: detected: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{detected: {who: member billing/2, error.ms: [true, 5]}}",
            "15: detected: error.ms: Expected `int`, got `bool` - at `$[0]`",
        ),
        (
            "{survived: {who: broker 1}}",
            "15: survived: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        (
            "{failed: {who: broker 1, error: X}}",
            "15: failed: who: broker 1 is no member of a group; allowed: member G/N, members of",
        ),
        ("{rebalances: {group: biling, count: [0, 1]}}", "15: rebalances: no group 'biling'; there are: billing"),
        ("{rebalances: {group: billing, count: 3}}", "15: rebalances: count: Expected `array`, got `int`"),
        (
            "{rebalances: {group: billing, count: [3, 1]}}",
            "15: rebalances: count: from the lower to the higher, not 3 to 1",
        ),
        ("{rebalances: {group: billing, count: [-3, 1]}}", "15: rebalances: count: at least 0, not -3"),
        (
            "{rebalances: {group: billing, count: [0, 1], after: 91s}}",
            "15: rebalances: after: 91s is after the end, 90s",
        ),
        (
            "{rebalances: {group: billing, count: [0, 1], before: 91s}}",
            "15: rebalances: before: 91s is after the end, 90s",
        ),
        (
            "{rebalances: {group: billing, count: [0, 1], after: 50s, before: 20s}}",
            "15: rebalances: before: 20s is not after 50s",
        ),
        (
            "{rebalances: {group: billing, count: [0, 1], cause: bad luck}}",
            "15: rebalances: cause: no cause 'bad luck'; there are: group too large, leader",
        ),
        (
            "{state: {group: billing, is: Stabel}}",
            "15: state: no state 'Stabel'; there are: Empty, PreparingRebalance,",
        ),
        ("{state: {group: billing, is: Stable, at: 91s}}", "15: state: at: 91s is after the end, 90s"),
        ("{state: {group: billing, is: Stable, at: 5}}", "15: state: at: not a duration: 5; write 500ms, 9s, 2m or 1h"),
        ("{state: {group: billing}}", "15: state needs `is`; it has: group, is, at"),
        ("{members: {group: billing, count: -1}}", "15: members: count: at least 0, not -1"),
        ("{members: {group: billing, count: three}}", "15: members: count: Expected `int`, got `str`"),
        ("{members: {group: billing, count: true}}", "15: members: count: Expected `int`, got `bool`"),
        ("{all-owned: {group: billing, at: 91s}}", "15: all-owned: at: 91s is after the end, 90s"),
        ("{all-owned: {grup: billing}}", "15: all-owned has no key 'grup'; allowed: at, group"),
        ("{failover: {group: billing}}", "15: failover needs `within`; it has: group, within"),
        (
            "{failover: {group: billing, within: 5}}",
            "15: failover: within: not a duration: 5; write 500ms, 9s, 2m or 1h",
        ),
        ("{progress: {group: billing, during: [10s, 91s]}}", "15: progress: during: 91s is after the end, 90s"),
        (
            "{progress: {group: billing, during: [20s, 10s]}}",
            "15: progress: during: from the lower to the higher, not 20s to 10s",
        ),
        ("{progress: {group: billing, during: [10s]}}", "15: progress: during: a list of 2 durations, not ['10s']"),
        (
            "{progress: {group: billing, during: [10, 20]}}",
            "15: progress: during: not a duration: 10; write 500ms, 9s, 2m or 1h",
        ),
        ("{progress: {group: billing, during: [10s, 20s], none: 1}}", "15: progress: none: Expected `bool`, got `int`"),
        ("{reread: {group: billing, at.most: -1}}", "15: reread: at.most: at least 0, not -1"),
        ("{reread: {group: billing, at.most: 1, at.least: 5}}", "15: reread: at.least: at most 1, not 5"),
        ("{expired: {group: billing, count: [5, 1]}}", "15: expired: count: from the lower to the higher, not 5 to 1"),
        (
            "{elections: {topic: oders, partition: 0, count: [0, 1]}}",
            "15: elections: no topic 'oders'; there are: __consumer_offsets, orders",
        ),
        (
            "{elections: {topic: orders, partition: 6, count: [0, 1]}}",
            "15: elections: orders has partitions 0 to 5, not 6",
        ),
        (
            "{elections: {topic: orders, partition: -1, count: [0, 1]}}",
            "15: elections: orders has partitions 0 to 5, not -1",
        ),
        (
            "{no: [two-owner]}",
            "15: no: no rule 'two-owner'; there are: two-owners, lost-record, acked-then-lost,",
        ),
        (
            "{no: []}",
            "15: no: at least one of: two-owners, lost-record, acked-then-lost, offset-went-back,",
        ),
        ("{no: two-owners}", "15: no: anomalies: Expected `array`, got `str`"),
        ("{no: }", "15: no: anomalies: Expected `array`, got `null`"),
        ("{no: [5]}", "15: no: anomalies: Expected `str`, got `int` - at `$[0]`"),
        (
            "{no: {anomalies: [two-owner]}}",
            "15: no: no rule 'two-owner'; there are: two-owners, lost-record, acked-then-lost,",
        ),
    ],
)
def test_a_bad_expectation_is_refused(tmp_path: Path, wanted: str, said: str) -> None:
    assert refused(tmp_path, changed("{no: [two-owners]}", wanted)).startswith(said)


def test_the_timeline_may_bring_members_and_topics_that_are_named_elsewhere(tmp_path: Path) -> None:
    later = """timeline:
  - {at: 30s, crash: {who: member billing/4}}
  - {at: 20s, join: {group: billing}}
  - {at: 10s, create-topic: {topic: late, partitions: 2}}
  - {at: 40s, grow: {topic: late, partitions: 4}}
  - {at: 50s, crash: {who: leader of late/3}}
  - {at: 60s, delete-topic: {topic: late}}
  - {at: 70s, create-topic: {topic: late}}"""
    text = changed(TIMELINE, later).replace("subscribe: [orders]", "subscribe: [orders, late], each: {4: {}}")
    assert [step.at for step in read(tmp_path, text).timeline] == [
        10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ("delete-topic: {topic: orders}", "grow: {topic: orders, partitions: 9}", "no topic 'orders'; there are: none"),
        ("create-topic: {topic: late}", "create-topic: {topic: late}", "topic 'late' is there already"),
        (
            "grow: {topic: orders, partitions: 9}",
            "grow: {topic: orders, partitions: 8}",
            "partitions: a number from 10",
        ),
        ("join: {group: billing, members: 9997}", "join: {group: billing}", "members: a number from 1 to 0, not 1"),
    ],
)
def test_what_was_done_before_counts(tmp_path: Path, first: str, then: str, said: str) -> None:
    entries = f"timeline:\n  - {{at: 10s, {first}}}\n  - {{at: 20s, {then}}}"
    assert refused(tmp_path, changed(TIMELINE, entries)).startswith(f"13: {then.split(':')[0]}: {said}")
