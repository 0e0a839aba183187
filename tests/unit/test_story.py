"""Events become sentences, in both languages."""

import msgspec
import pytest

from cluster.coordinator.reactions import CAUSES as REBALANCE_CAUSES
from cluster.events import GenerationStarted, MemberRemoved, SessionRenewed, ShardLoaded, Stamped, kinds
from scenarios.story import SENTENCES, WORDS, tell


def test_both_languages_tell_the_same_events() -> None:
    assert set(SENTENCES["en"]) == set(SENTENCES["zh"])
    assert set(SENTENCES["en"]) <= set(kinds().values())


def test_every_cause_of_a_rebalance_is_said_in_chinese() -> None:
    assert set(REBALANCE_CAUSES.values()) <= set(WORDS["zh"])


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_every_sentence_can_be_filled_from_its_event(language: str) -> None:
    for kind in SENTENCES[language]:
        fields = {
            field.name: {"t": (0, 1)} if "dict" in str(field.type) else ("a", "b") if "tuple" in str(field.type)
            else 7 if field.type is int else "x"
            for field in msgspec.structs.fields(kind)
        }
        sentence = tell(Stamped(0, "m", 1, kind(**fields)), language)
        assert sentence
        assert "{" not in sentence


def test_ids_go_by_the_name_that_the_listener_gives_them() -> None:
    event = MemberRemoved("billing", "carol-123", "session expired")
    assert (
        tell(Stamped(0, "m", 1, event), "en", lambda member_id: member_id[:5])
        == "group billing: carol is out (session expired)"
    )
    assert (
        tell(Stamped(0, "m", 1, event), "zh", lambda member_id: member_id[:5])
        == "消费组 billing：carol 被移除（会话超时）"
    )


def test_what_happens_all_the_time_is_not_worth_a_line() -> None:
    assert tell(Stamped(0, "m", 1, SessionRenewed("g", "m", "heartbeat", 5))) is None
    assert tell(Stamped(0, "m", 1, ShardLoaded(3, 0, 0, 0, 0))) is None
    assert tell(Stamped(0, "m", 1, GenerationStarted("g", 2, "range", "a", ("a", "b")))) == (
        "group g: generation 2 of 2 members, led by a, assignor range"
    )
