"""A bad file is refused before anything is played: which file, which line, what is wrong, what would be right."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from scenarios.conformance import play_file, read
from scenarios.reading import BadFile, Document, short
from seesaw.command import main

GOOD = "cases:\n- case: one\n  steps:\n  - {do: heartbeat, member_id: x, answer: {error: UNKNOWN_MEMBER_ID}}\n"


def a_file(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "recording.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": a recording is a mapping, not None"),
        ("- a list", ": a recording is a mapping, not ['a list']"),
        ("cases: 5", ":1: `cases` is a list, not 5"),
        ("brokers: {}", ":1: `cases` is a list, not None"),
        ("case: []", ":1: a recording has no key 'case'; allowed: brokers, cases"),
        ("cases: [1]", ":1: a case is a mapping, not 1"),
        ("cases:\n- steps: []", ":2: a case has a name, under `case`"),
        ("cases:\n- case: one\n  steps: []", ":3: case one has no steps"),
        (
            "cases:\n- case: one\n  stepz: []",
            ":3: a case has no key 'stepz'; allowed: alone, broker, case, quirk, steps, topics",
        ),
        (
            "brokers: {b: {}}\ncases:\n- case: one\n  broker: c\n  steps: []",
            ":4: case one: no broker 'c'; there are: b",
        ),
        ("brokers: {b: {group.max.size: 0}}\ncases: []", ":1: broker 'b': group.max.size: Expected `int` >= 1, not 0"),
        (
            "cases:\n- case: one\n  topics: {t: 0}\n  steps: []",
            ":3: case one: `topics` has the number of partitions under each name",
        ),
        (
            "cases:\n- case: one\n  steps:\n  - {do: jion}",
            ":4: case one: a step has wait_ms, await, still_waiting or `do:`",
        ),
        (
            "cases:\n- case: one\n  steps:\n  - {do: join, sesion_ms: 5}",
            ":4: case one: join has no key 'sesion_ms'; allowed: async",
        ),
        (
            "cases:\n- case: one\n  steps:\n  - {do: join, session_ms: five}",
            ":4: case one: join: Expected `int`, got `str` - at `$.session_ms`",
        ),
        (
            "cases:\n- case: one\n  steps:\n  - {wait_ms: 99999999999}",
            ":4: case one: wait_ms: Expected `int` <= 2592000000",
        ),
        (
            "cases:\n- case: one\n  steps:\n  - {wait_ms: 1}\n  - {await: x}",
            ":5: case one: nothing was said before with async: x",
        ),
        ("cases: [\n", ":2: not YAML: did not find expected node content"),
        ("cases: 1\ncases: 2", ":2: 'cases' stands here twice"),
        ("? [a]\n: 1", ":1: a key cannot be a list or a mapping"),
        (b"\xff\xfe\xff", ": cannot be read: it is not UTF-8 text"),
        ("a: !!python/name:os.system x", ":1: not YAML: could not determine a constructor"),
    ],
)
def test_a_bad_recording_is_refused_with_where_and_why(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = a_file(tmp_path, text)
    with pytest.raises(BadFile) as problem:
        read(path)
    assert str(problem.value).startswith(f"{path}{said}")


def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cannot be read: No such file or directory"):
        Document(tmp_path / "nowhere.yaml")


def test_a_case_that_cannot_be_set_up_is_refused(tmp_path: Path) -> None:
    path = a_file(tmp_path, "cases:\n- case: one\n  topics: {a b: 1}\n  steps:\n  - {wait_ms: 1}\n")
    with pytest.raises(BadFile, match=r"recording.yaml:2: case one: a b: a topic's name is"):
        list(play_file(path))


def test_a_request_that_no_version_can_carry_is_a_difference_and_no_crash(tmp_path: Path) -> None:
    steps = "  - {do: join, version: 12, answer: x}\n  - {do: join, version: 3, instance: i, answer: x}\n"
    (outcome,) = play_file(a_file(tmp_path, f"cases:\n- case: one\n  steps:\n{steps}"))
    assert [each.ours for each in outcome.differences] == [
        "unsupported version: JoinGroup v12; v0 to v9 are understood",
        "not in this version: JoinGroupRequest.group_instance_id does not exist in JoinGroup v3",
    ]


@pytest.mark.parametrize(
    ("text", "code", "last"),
    [
        (GOOD, 0, "1 cases, 0 differ"),
        (GOOD.replace("UNKNOWN_MEMBER_ID", "NONE"), 1, "1 cases, 1 differ"),
        ("cases: []", 2, "0 cases, 0 differ"),
    ],
)
def test_the_exit_code_says_whether_all_is_well(tmp_path: Path, text: str, code: int, last: str) -> None:
    result = CliRunner().invoke(main, ["conformance", str(a_file(tmp_path, text))])
    assert (result.exit_code, result.output.splitlines()[-1]) == (code, last)


def test_a_bad_file_ends_the_command_with_2_and_its_error_on_stderr(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["conformance", str(tmp_path / "nowhere.yaml")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be read" in result.stderr


def test_a_recording_can_be_told_as_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["conformance", "--json", str(a_file(tmp_path, GOOD))])
    assert result.output.splitlines() == [
        '{"case":"one","protocol":"classic","is_quirk":false,"differences":[]}',
        '{"cases":1,"differ":0,"quirks":0}',
    ]


def test_cases_of_the_other_protocol_are_left_out_or_differ(tmp_path: Path) -> None:
    path = a_file(tmp_path, "cases:\n- case: one\n  steps:\n  - {do: consumer_describe, answer: {error: NONE}}\n")
    assert list(play_file(path, "classic")) == []
    (outcome,) = play_file(path, "consumer")
    assert [each.ours for each in outcome.differences] == ["consumer_describe is not emulated"]


def test_the_table_can_be_had_as_text_markdown_and_json() -> None:
    assert "PreparingRebalance" in CliRunner().invoke(main, ["table"]).output
    assert CliRunner().invoke(main, ["table", "--markdown"]).output.startswith("|  | Empty |")
    assert CliRunner().invoke(main, ["table", "--json"]).output.startswith('{"What happens')


def test_a_long_value_is_shortened_in_an_error() -> None:
    assert len(short("x" * 500)) == 60
