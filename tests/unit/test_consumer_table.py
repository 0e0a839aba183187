"""The page of the client is complete, every word of it is carried out, and it prints as it is."""

import ast
from pathlib import Path

import pytest

from cluster.consumer.printed import as_markdown, as_text
from cluster.consumer.states import (
    ANSWERS,
    MOVES,
    PROGRAM,
    SHORT,
    Asked,
    Do,
    MemberState,
    When,
    Why,
    words,
)
from cluster.consumer.words import Words
from cluster.wire.errors import Error

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("asked", PROGRAM)
def test_for_every_answer_there_is_a_line_that_always_holds_and_it_comes_last(asked: Asked) -> None:
    for error in Error:
        found = PROGRAM[asked][error]
        assert [when for when, _ in found].index(When.ALWAYS) == len(found) - 1, error


def test_every_line_is_carried_out_for_some_answer() -> None:
    for row in ANSWERS:
        asked, _, when, done = row
        carried_out = [error for error in Error if (when, words(done)) in PROGRAM[asked][error]]
        assert carried_out, row


def test_every_word_and_every_circumstance_is_used_and_carried_out() -> None:
    assert {do for _, _, _, done in ANSWERS for do in words(done)} == set(Do)
    assert {when for _, _, when, _ in ANSWERS} == set(When)
    for do in Do:
        assert callable(getattr(Words, do.name.lower()))
    for when in set(When) - {When.ALWAYS}:
        assert callable(getattr(Words, f"is_{when.name.lower()}"))


def test_no_two_words_mean_the_same() -> None:
    assert len(Do.__members__) == len(set(Do)) == len({do.value for do in Do})


def test_every_short_name_is_used() -> None:
    assert {word for _, answer, _, _ in ANSWERS for word in answer.split()} - {"ANY", "RETRIABLE"} == set(SHORT)


def test_a_member_moves_only_as_kafkas_does() -> None:
    joined, synced = Why.JOIN_ANSWERED, Why.SYNC_ANSWERED
    assert {(state, why) for state, why in MOVES if why in (joined, synced)} == {
        (MemberState.PREPARING, joined),
        (MemberState.COMPLETING, synced),
    }
    assert all(MOVES[state, Why.RESET] is MemberState.UNJOINED for state in MemberState)
    assert all(MOVES[state, Why.JOIN_SENT] is MemberState.PREPARING for state in MemberState)
    assert len(MOVES) == 10


def test_the_state_of_a_member_is_written_in_one_place() -> None:
    written = [
        (path.name, function.name)
        for path in sorted((ROOT / "cluster/consumer").glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "state" and isinstance(node.ctx, ast.Store)
    ]
    assert written == [("member.py", "move")]


def test_no_room_knows_error_codes_but_where_answers_are_read() -> None:
    """What to do about an error stands in the table; a name for a log, or NONE, may stand anywhere."""
    allowed = {"NONE", "COORDINATOR_NOT_AVAILABLE", "ILLEGAL_GENERATION"}
    readers = {"answers.py", "states.py"}
    for path in sorted((ROOT / "cluster/consumer").glob("*.py")):
        named = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error"
        }
        assert path.name in readers or named - {"__members__"} <= allowed, (path.name, named)


def test_the_page_prints_every_line() -> None:
    shown = as_markdown()
    assert shown.splitlines()[2].startswith("| FindCoordinator | NONE |")
    assert len([line for line in shown.splitlines() if line.startswith("|")]) == len(ANSWERS) + len(Do) + 4
    assert all(do.value in as_text() for do in Do)
    assert "disconnected, no answer" in as_text()
