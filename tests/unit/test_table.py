"""The table is total, every word of it is carried out, and what is printed is what is executed."""

from pathlib import Path

import pytest

from cluster.coordinator import guards, turn
from cluster.coordinator.group import Group
from cluster.coordinator.printed import as_markdown, as_text
from cluster.coordinator.states import CHECKS, MOVES, REACTIONS, Check, Do, GroupState, On, Why, reaction, words
from cluster.wire.errors import Error

ROOT = Path(__file__).parents[2]


def test_every_row_has_a_cell_for_every_state() -> None:
    assert set(REACTIONS) == set(On)
    assert {(on, state) for on in On for state in GroupState} == set(turn.PROGRAM)
    assert all(len(cells) == len(GroupState) for cells in REACTIONS.values())


def test_every_word_is_used_and_carried_out() -> None:
    used = {word for on in On for state in GroupState for word in reaction(on, state)[1]}
    used |= {word for check in Check for word in words(check.value[2])}
    assert {word for word in used if isinstance(word, Do)} == set(Do) == set(turn.WORDS)


def test_every_check_is_asked_somewhere_and_has_a_meaning() -> None:
    assert {check for checks in CHECKS.values() for check in checks} == set(Check) == set(guards.TRUE)


def test_the_moves_are_kafkas() -> None:
    assert {(before.value, after.value) for (before, _), after in MOVES.items()} == {
        ("Empty", "PreparingRebalance"),
        ("PreparingRebalance", "CompletingRebalance"),
        ("PreparingRebalance", "Empty"),
        ("CompletingRebalance", "Stable"),
        ("CompletingRebalance", "PreparingRebalance"),
        ("Stable", "PreparingRebalance"),
        ("Empty", "Dead"),
        ("PreparingRebalance", "Dead"),
        ("CompletingRebalance", "Dead"),
        ("Stable", "Dead"),
        ("Dead", "Dead"),
    }


def test_a_move_that_is_not_in_the_table_is_a_bug() -> None:
    group = Group("g")
    with pytest.raises(KeyError):
        group.move(Why.PLAN_STORED, 0)
    assert group.state is GroupState.EMPTY


def test_a_move_says_what_was_before_and_when_it_was() -> None:
    group = Group("g")
    assert group.move(Why.REBALANCE_NEEDED, 17) is GroupState.EMPTY
    assert (group.state, group.state_since) == (GroupState.PREPARING, 17)


def test_the_readme_shows_the_table_that_is_executed() -> None:
    assert as_markdown() in (ROOT / "README.md").read_text()


def test_the_printed_table_names_every_row_word_check_and_state() -> None:
    text = as_text()
    names = [
        *(on.name.lower() for on in On),
        *(do.name.lower() for do in Do),
        *(check.name.lower() for check in Check),
        *GroupState,
    ]
    assert [name for name in names if name not in text] == []


def test_an_unknown_word_in_the_table_is_refused() -> None:
    with pytest.raises(KeyError):
        words("touch SOMETHING")
    assert words("touch BUSY") == (Do.TOUCH, Error.REBALANCE_IN_PROGRESS)
