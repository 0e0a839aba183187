"""Each safety rule: what it calls broken, what it lets pass, and when it does not know."""

import pytest

from cluster.checks import RULES, Checks, Outcome
from cluster.checks.records import LostRecord
from cluster.events import (
    ConnectionClosed,
    Event,
    FaultBegan,
    FaultEnded,
    GenerationStarted,
    GroupDeleted,
    GroupLoaded,
    HighWatermarkMoved,
    LeaderElected,
    MemberRemoved,
    MemberReplaced,
    OffsetCommitted,
    OffsetsExpired,
    PartitionsAssigned,
    PlanPublished,
    PositionSet,
    ProcessDied,
    RecordsAcked,
    RecordsAppended,
    RecordsLeft,
    RecordsProcessed,
    RequestGivenUp,
    RequestSent,
    ResponseArrived,
    ShardLoaded,
    Stamped,
    TopicDeleted,
)
from cluster.ranges import Ranges

OFFSETS = "__consumer_offsets"


def judge(rule: str, *stream: Event | tuple[int, Event] | tuple[int, str, Event], now: int | None = None) -> Outcome:
    """The verdict of one rule on events: (when, which machine, what); one a second at coordinator-1 if not said."""
    checks = Checks(rule)
    for number, entry in enumerate(stream):
        at, machine, event = (
            (number * 1000, "coordinator-1", entry)
            if isinstance(entry, Event)
            else ((entry[0], "coordinator-1", entry[1]) if len(entry) == 2 else entry)
        )
        checks(Stamped(at, machine, number, event))
    (verdict,) = checks.verdicts(now)
    return verdict.outcome


def owns(member: str, generation: int, *partitions: int) -> PartitionsAssigned:
    return PartitionsAssigned("g", member, generation, {}, {"t": partitions})


def commits(offset: int, member: str = "a", generation: int = 1, at: int = 0) -> OffsetCommitted:
    return OffsetCommitted("g", "t", 0, offset, member, generation, at)


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_saw_nothing_knows_nothing(rule: str) -> None:
    assert judge(rule) is Outcome.UNKNOWN


def test_all_rules_are_checked_unless_some_are_named() -> None:
    assert [verdict.rule for verdict in Checks().verdicts()] == list(RULES)
    assert [verdict.rule for verdict in Checks("hw-went-back").verdicts()] == ["hw-went-back"]


# two-owners


def test_two_owners_in_one_generation_are_one_too_many() -> None:
    assert judge("two-owners", owns("a", 1, 0, 1), owns("b", 1, 2)) is Outcome.VALID
    assert judge("two-owners", owns("a", 1, 0, 1), owns("b", 1, 1)) is Outcome.INVALID


def test_another_generation_may_have_another_owner() -> None:
    assert judge("two-owners", owns("a", 1, 0), owns("b", 2, 0), owns("a", 1, 0)) is Outcome.VALID


def test_a_static_member_that_restarted_keeps_what_it_had() -> None:
    replaced = MemberReplaced("g", "i", "a", "a2")
    assert judge("two-owners", owns("a", 1, 0), replaced, owns("a2", 1, 0)) is Outcome.VALID


def test_a_deleted_group_counts_its_generations_anew() -> None:
    assert judge("two-owners", owns("a", 1, 0), GroupDeleted("g", "expired"), owns("b", 1, 0)) is Outcome.VALID


# zombie-commit

BEGIN = GenerationStarted("g", 1, "range", "a", ("a", "b"))


def test_a_commit_of_a_member_of_the_generation_counts() -> None:
    assert judge("zombie-commit", (0, BEGIN), (5, commits(1, at=5))) is Outcome.VALID


def test_a_commit_of_an_older_generation_must_not_count() -> None:
    then = GenerationStarted("g", 2, "range", "a", ("a",))
    assert judge("zombie-commit", (0, BEGIN), (10, then), (20, commits(1, at=20))) is Outcome.INVALID


def test_a_commit_that_was_accepted_in_time_may_be_replicated_later() -> None:
    then = GenerationStarted("g", 2, "range", "a", ("a",))
    assert judge("zombie-commit", (0, BEGIN), (10, then), (20, commits(1, at=10))) is Outcome.VALID


def test_a_commit_of_a_member_that_was_removed_must_not_count() -> None:
    gone = MemberRemoved("g", "a", "session expired")
    assert judge("zombie-commit", (0, BEGIN), (10, gone), (20, commits(1, at=11))) is Outcome.INVALID
    assert judge("zombie-commit", (0, BEGIN), (10, gone), (20, commits(1, at=10))) is Outcome.VALID


def test_a_commit_of_a_fenced_id_must_not_count() -> None:
    replaced = MemberReplaced("g", "i", "a", "a2")
    assert judge("zombie-commit", (0, BEGIN), (10, replaced), (20, commits(1, "a2", at=20))) is Outcome.VALID
    assert judge("zombie-commit", (0, BEGIN), (10, replaced), (20, commits(1, "a", at=20))) is Outcome.INVALID


def test_a_generation_that_was_lost_in_a_failover_is_not_current_any_more() -> None:
    unfinished = GenerationStarted("g", 2, "range", "a", ("a", "b"))
    loaded = GroupLoaded("g", "Stable", 1, ("a", "b"))
    story = [(0, "coordinator-1", BEGIN), (5, "coordinator-1", unfinished), (9, "coordinator-2", loaded)]
    assert judge("zombie-commit", *story, (12, "coordinator-2", commits(1, at=12))) is Outcome.VALID
    assert judge("zombie-commit", *story, (12, "coordinator-2", commits(1, generation=2, at=12))) is Outcome.INVALID


def test_a_commit_from_outside_counts_only_while_the_group_has_no_members() -> None:
    outside = commits(1, "", -1, at=20)
    gone = [(10, MemberRemoved("g", member, "left")) for member in ("a", "b")]
    assert judge("zombie-commit", (0, BEGIN), (20, outside)) is Outcome.INVALID
    assert judge("zombie-commit", (0, BEGIN), *gone, (20, outside)) is Outcome.UNKNOWN


# offset-went-back


def test_a_committed_offset_does_not_go_back() -> None:
    assert judge("offset-went-back", commits(5), commits(5), commits(7)) is Outcome.VALID
    assert judge("offset-went-back", commits(5), commits(4)) is Outcome.INVALID


@pytest.mark.parametrize(
    "excuse",
    [
        PositionSet("g", "a", "t", 0, 0, "earliest"),
        OffsetsExpired("g", 1),
        GroupDeleted("g", "deleted"),
        TopicDeleted("t"),
        commits(0, "", -1),
    ],
)
def test_unless_there_is_a_reason(excuse: Event) -> None:
    assert judge("offset-went-back", commits(5), excuse, commits(1)) is Outcome.VALID


def test_reading_on_from_what_was_committed_is_no_reason() -> None:
    story = commits(5), PositionSet("g", "a", "t", 0, 5, "committed"), commits(1)
    assert judge("offset-went-back", *story) is Outcome.INVALID


# generation-went-back

PLAN = PlanPublished("g", 3, 2)


def test_a_persisted_generation_does_not_go_back() -> None:
    assert judge("generation-went-back", PLAN, PlanPublished("g", 4, 2)) is Outcome.VALID
    assert judge("generation-went-back", PLAN, PlanPublished("g", 2, 2)) is Outcome.INVALID
    assert judge("generation-went-back", PLAN, GroupLoaded("g", "Stable", 3)) is Outcome.VALID
    assert judge("generation-went-back", PLAN, GroupLoaded("g", "Stable", 2)) is Outcome.INVALID
    assert judge("generation-went-back", PLAN, GroupDeleted("g", "expired"), PlanPublished("g", 1, 1)) is Outcome.VALID


def test_what_an_outdated_leader_loads_does_not_matter() -> None:
    story = LeaderElected(OFFSETS, 7, 2, 5), ShardLoaded(7, 4, 0, 0, 0), GroupLoaded("g", "Stable", 2)
    assert judge("generation-went-back", PLAN, *story) is Outcome.VALID


def test_after_an_unclean_election_nothing_is_promised() -> None:
    story = LeaderElected(OFFSETS, 7, 2, 5, (2,), True), GroupLoaded("g", "Stable", 2)
    assert judge("generation-went-back", PLAN, *story) is Outcome.UNKNOWN


# hw-went-back, split-coordinator


def watermark(epoch: int, offset: int, topic: str = "t") -> HighWatermarkMoved:
    return HighWatermarkMoved(topic, 0, epoch, offset)


def test_a_high_watermark_does_not_go_back_within_an_epoch() -> None:
    assert judge("hw-went-back", watermark(0, 5), watermark(0, 7)) is Outcome.VALID
    assert judge("hw-went-back", watermark(0, 5), watermark(0, 4)) is Outcome.INVALID
    assert judge("hw-went-back", watermark(0, 5), watermark(1, 4)) is Outcome.VALID
    assert judge("hw-went-back", watermark(1, 4), watermark(0, 9), watermark(1, 5)) is Outcome.VALID
    assert judge("hw-went-back", watermark(0, 5), TopicDeleted("t"), watermark(0, 1)) is Outcome.VALID


def test_two_leaders_must_not_commit_the_same_offsets() -> None:
    writes = RecordsAppended(OFFSETS, 0, 1, 10, 1)
    assert judge("split-coordinator", watermark(0, 10, OFFSETS), writes, watermark(1, 11, OFFSETS)) is Outcome.VALID
    assert judge("split-coordinator", writes, watermark(0, 10, OFFSETS)) is Outcome.VALID  # late, and nothing new
    later = RecordsAppended(OFFSETS, 0, 0, 9, 2), writes, watermark(0, 11, OFFSETS)
    assert judge("split-coordinator", *later) is Outcome.INVALID
    assert judge("split-coordinator", *later[:2], LeaderElected(OFFSETS, 0, 1, 1, (1,), True)) is Outcome.UNKNOWN


# acked-then-lost, lost-record

ACKED = RecordsAcked("t", 0, 0, 3, 7, 0, "all")
LEFT = RecordsLeft("t", 0, 0, 3, 7, 0)
READ = RecordsLeft("t", 0, 3, 0)


def test_what_was_acknowledged_is_there_at_the_end() -> None:
    assert judge("acked-then-lost", ACKED, LEFT, READ) is Outcome.VALID
    assert judge("acked-then-lost", ACKED, READ) is Outcome.INVALID
    assert judge("acked-then-lost", ACKED, RecordsLeft("t", 0, 5, 3, 7, 0), READ) is Outcome.INVALID


def test_if_nobody_looked_or_the_election_was_unclean_it_is_not_known() -> None:
    assert judge("acked-then-lost", ACKED) is Outcome.UNKNOWN
    assert judge("acked-then-lost", ACKED, LeaderElected("t", 0, 2, 1, (2,), True), READ) is Outcome.UNKNOWN
    assert judge("acked-then-lost", ACKED, TopicDeleted("t")) is Outcome.UNKNOWN


def test_acks_1_promises_nothing_that_lasts() -> None:
    assert judge("acked-then-lost", RecordsAcked("t", 0, 0, 3, 7, 0, "1"), READ) is Outcome.UNKNOWN


def read_from(offset: int, how: str = "committed") -> PositionSet:
    return PositionSet("g", "a", "t", 0, offset, how)


def processed(first: int, last: int, member: str = "a") -> RecordsProcessed:
    return RecordsProcessed("g", member, 1, "t", 0, first, last, last - first + 1)


def test_what_a_group_passes_over_it_must_have_processed() -> None:
    begin = ACKED, read_from(0, "earliest")
    assert judge("lost-record", *begin, processed(0, 2), commits(3), LEFT, READ) is Outcome.VALID
    assert judge("lost-record", *begin, processed(0, 1), commits(3), LEFT, READ) is Outcome.INVALID
    assert judge("lost-record", *begin, processed(0, 1), commits(2), LEFT, READ) is Outcome.VALID
    assert judge("lost-record", *begin, processed(0, 1), commits(3), LEFT) is Outcome.UNKNOWN


def test_what_lies_before_its_first_position_or_is_not_there_or_was_skipped_is_not_lost() -> None:
    assert judge("lost-record", ACKED, read_from(2, "latest"), processed(2, 2), commits(3), LEFT, READ) is Outcome.VALID
    gone = ACKED, read_from(0, "earliest"), commits(3), READ
    assert judge("lost-record", *gone) is Outcome.VALID
    jumped = ACKED, read_from(0, "earliest"), read_from(3, "latest"), commits(3), LEFT, READ
    assert judge("lost-record", *jumped) is Outcome.VALID


def test_what_was_set_from_outside_was_wanted() -> None:
    story = ACKED, read_from(0, "earliest"), commits(3, "", -1), LEFT, READ
    assert judge("lost-record", *story) is Outcome.VALID


def test_what_the_contract_allows_is_counted() -> None:
    rule = LostRecord()
    hears = rule.hears()
    story: list[Event] = [read_from(0, "earliest"), owns("a", 1, 0), processed(0, 4), owns("b", 2, 0)]
    story += [processed(3, 6, "b"), processed(5, 5, "a"), read_from(9, "latest")]
    for event in story:
        hears[type(event)](0, "x", event)
    assert rule.counted() == {"reread": 3, "overlap": 1, "skipped": 9}
    assert (rule.reread("g"), rule.reread("h")) == (3, 0)


# unanswered

ASKED = RequestSent("broker-1", "Metadata", 9, 1, 30000)


def test_an_answer_in_time_is_all_that_is_wanted() -> None:
    assert judge("unanswered", (0, ASKED), (9, ResponseArrived("broker-1", "Metadata", 1))) is Outcome.VALID
    assert judge("unanswered", (0, ASKED), (9, ConnectionClosed("broker-1")), now=99_000) is Outcome.UNKNOWN
    assert judge("unanswered", (0, ASKED), (9, ProcessDied("coordinator-1", 0)), now=99_000) is Outcome.UNKNOWN


def test_whoever_waits_for_ever_has_no_timeout() -> None:
    assert judge("unanswered", (0, ASKED), now=30_000) is Outcome.UNKNOWN
    assert judge("unanswered", (0, ASKED), now=32_000) is Outcome.INVALID
    assert judge("unanswered", (0, ASKED), (99_000, ResponseArrived("broker-1", "Metadata", 1))) is Outcome.INVALID
    assert judge("unanswered", (0, ASKED), (99_000, ConnectionClosed("broker-1"))) is Outcome.INVALID


def test_what_has_no_answer_is_not_waited_for() -> None:
    assert judge("unanswered", (0, RequestSent("broker-1", "Produce", 9, 1, 0)), now=99_000) is Outcome.UNKNOWN


def test_giving_up_is_right_if_something_is_broken_and_wrong_if_not() -> None:
    gives_up = (30_000, RequestGivenUp("broker-1", "Metadata", 1))
    fault = FaultBegan(1, "crash", "broker-1")
    assert judge("unanswered", (0, ASKED), (5, fault), gives_up) is Outcome.VALID
    assert judge("unanswered", (0, ASKED), (5, fault), (6, FaultEnded(1)), gives_up) is Outcome.VALID
    assert judge("unanswered", (0, ASKED), gives_up) is Outcome.INVALID


def test_whoever_is_frozen_cannot_give_up() -> None:
    pause = FaultBegan(1, "pause", "billing-1", detail={"processes": ["coordinator-1"]})
    assert judge("unanswered", (0, ASKED), (5, pause), now=60_000) is Outcome.UNKNOWN
    assert judge("unanswered", (0, ASKED), (5, pause), (10_005, FaultEnded(1)), now=42_000) is Outcome.INVALID


# Ranges


def test_ranges_merge_and_count_what_was_there() -> None:
    ranges = Ranges()
    assert [ranges.add(*each) for each in ((0, 5), (5, 7), (10, 12), (3, 11), (4, 4), (20, 21))] == [0, 0, 0, 5, 0, 0]
    assert (list(ranges), len(ranges)) == ([(0, 12), (20, 21)], 13)
    assert ranges.missing(10, 25) == [(12, 20), (21, 25)]
    assert ranges.missing(2, 7) == []
