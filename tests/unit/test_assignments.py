"""Assignors by name, and the files that play them: what is refused, what is reported, what a custom assignor takes."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scenarios.assignors import NoAssignor, find, known
from seesaw.assignors import assignors

GOOD = """\
- name: two
  assignor: range
  topics: {t: 3}
  rounds:
  - members: {C0: {topics: [t]}, C1: {topics: [t]}}
    result: {C0: {t: [0, 1]}, C1: {t: [2]}}
"""
OPEN = """\
- name: open
  assignor: sticky
  topics: {t: 4}
  rounds:
  - generation: 1
    members: {C0: {topics: [t]}, C1: {topics: [t]}}
    result: {C0: {t: [0, 2]}, C1: {t: [1, 3]}}
  - generation: 2
    members: {C0: {topics: [t]}, C1: {topics: [t]}, C2: {topics: [t]}}
    result: {C0: {t: [2, 0]}, C1: {t: [1]}, C2: {t: [3]}}
    exact: false
"""


def play(tmp_path: Path, text: str, *options: str) -> Result:
    path = tmp_path / "cases.yaml"
    path.write_text(text, encoding="utf-8")
    return CliRunner().invoke(assignors, [str(path), *options])


@pytest.fixture
def custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A distribution that declares one more assignor: two files, nothing of ours is touched."""
    (tmp_path / "greedy.py").write_text(
        "class FirstTakesAll:\n"
        "    name = 'first-takes-all'\n"
        "    cooperative = False\n"
        "    def user_data(self, owned, generation):\n"
        "        return None\n"
        "    def plan(self, members, topics):\n"
        "        wanted = members[min(members)].topics\n"
        "        everything = {topic: list(range(topics[topic])) for topic in wanted}\n"
        "        return {member: everything if member == min(members) else {} for member in members}\n"
    )
    metadata = tmp_path / "greedy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greedy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[seesaw.assignors]\nfirst-takes-all = greedy:FirstTakesAll\nmisnamed = greedy:FirstTakesAll\n"
        "absent = nowhere:Nothing\nunfit = builtins:object\nrange = greedy:FirstTakesAll\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "greedy", raising=False)
    return "first-takes-all"


def test_A7_a_custom_assignor_is_found_and_played_by_its_name(custom: str, tmp_path: Path) -> None:
    case = GOOD.replace("range", custom).replace("[0, 1]", "[0, 1, 2]").replace("{t: [2]}", "{}")

    assert find(custom).name == custom
    assert play(tmp_path, case).output == "1 cases, 0 differ\n"


def test_Kafkas_own_names_cannot_be_taken_by_another_distribution(custom: str) -> None:
    assert type(find("range")).__name__ == "Range"


def test_the_four_of_Kafka_are_known_without_any_distribution() -> None:
    assert list(known())[:4] == ["range", "roundrobin", "sticky", "cooperative-sticky"]


def test_an_unknown_name_is_refused_with_the_known_ones(custom: str) -> None:
    with pytest.raises(NoAssignor, match=r"^no assignor 'rnage'; known: range, roundrobin, sticky, coop"):
        find("rnage")


@pytest.mark.parametrize(("name", "why"), [
    ("misnamed", "assignor 'misnamed': greedy:FirstTakesAll calls itself 'first-takes-all'"),
    ("absent", "assignor 'absent' cannot be loaded from nowhere:Nothing: No module named 'nowhere'"),
    ("unfit", "assignor 'unfit': builtins:object has no `name`"),
])
def test_an_entry_point_that_leads_to_no_assignor_is_refused_with_the_reason(custom: str, name: str, why: str) -> None:
    with pytest.raises(NoAssignor) as refused:
        find(name)
    assert str(refused.value) == why


def test_a_file_without_differences_ends_with_the_count_and_zero(tmp_path: Path) -> None:
    result = play(tmp_path, GOOD)

    assert (result.output, result.exit_code) == ("1 cases, 0 differ\n", 0)


def test_a_difference_shows_case_round_input_recorded_and_ours(tmp_path: Path) -> None:
    result = play(tmp_path, GOOD.replace("[0, 1]", "[0]").replace("[2]", "[1, 2]"))

    assert result.exit_code == 1
    assert result.output == (
        "two, round 1: result\n"
        "  input     {topics: {t: 3}, members: {C0: {topics: [t]}, C1: {topics: [t]}}}\n"
        "  recorded  {C0: {t: [0]}, C1: {t: [1, 2]}}\n"
        "  ours      {C0: {t: [0, 1]}, C1: {t: [2]}}\n\n"
        "1 cases, 1 differ\n")


def test_what_only_the_server_can_decide_is_skipped_and_alone_is_no_success(tmp_path: Path) -> None:
    server = GOOD.replace("assignor: range", "assignor: server-range")

    skipped = "1 skipped: the assignors of the server are not emulated\n"

    assert play(tmp_path, GOOD + server).output == f"{skipped}1 cases, 0 differ\n"
    assert play(tmp_path, GOOD + server).exit_code == 0
    assert (play(tmp_path, server).output, play(tmp_path, server).exit_code) == (f"{skipped}0 cases, 0 differ\n", 2)


def test_a_round_that_Kafkas_hash_order_decides_need_not_be_the_recorded_run(tmp_path: Path) -> None:
    facts = "    sizes: [1, 1, 2]\n    moved: 1\n    unassigned: 0\n    balanced: true\n    always: {C0: {t: [0]}}\n"

    assert play(tmp_path, OPEN + facts).output == (
        "In 1 rounds Kafka's hash order decides; 1 of ours are as recorded\n1 cases, 0 differ\n")
    other = OPEN.replace("[2, 0]}, C1: {t: [1]}, C2: {t: [3]}", "[0]}, C1: {t: [1, 3]}, C2: {t: [2]}") + facts
    assert play(tmp_path, other).output == (
        "In 1 rounds Kafka's hash order decides; 0 of ours are as recorded\n1 cases, 0 differ\n")


@pytest.mark.parametrize(("fact", "ours"), [
    ("sizes: [1, 1, 1]", "[1, 1, 2]"), ("moved: 0", "1"), ("moved_max: 0", "1"), ("unassigned: 1", "0"),
    ("balanced: false", "true"), ("always: {C2: {t: [1]}}", "{C2: {t: [3]}}"),
])
def test_but_what_held_in_all_runs_must_hold(tmp_path: Path, fact: str, ours: str) -> None:
    result = play(tmp_path, f"{OPEN}    {fact}\n")

    assert result.exit_code == 1
    assert f"open, round 2: {fact.split(':')[0]}\n" in result.output
    assert f"  ours      {ours}\n" in result.output


def test_as_json_there_is_one_object_for_each_case_and_one_for_the_sum(tmp_path: Path) -> None:
    case, counts = map(json.loads, play(tmp_path, GOOD, "--json").output.splitlines())

    assert case == {"case": "two", "assignor": "range", "skipped": False, "differences": [], "open_rounds": 0,
                    "open_as_recorded": 0}
    assert counts == {"cases": 1, "differ": 0, "skipped": 0, "open_rounds": 0, "open_as_recorded": 0}


@pytest.mark.parametrize(("before", "after", "line", "problem"), [
    ("topics: {t: 3}", "topics: {t: 0}", 3, "case two: `topics`: Expected `int` >= 1"),
    ("topics: {t: 3}", "topics: {t: three}", 3, "case two: `topics`: Expected `int`, got `str`"),
    ("  topics: {t: 3}\n", "", 1, "case two has no `topics`"),
    ("assignor: range", "assignor: rnage", 2, "case two: no assignor 'rnage'; known: range, roundrobin, sti"),
    ("  topics", "  topic", 3, "a case has no key 'topic'; allowed: assignor, exact, name, note, rounds, topics"),
    ("    result", "    exakt: true\n    result", 6, "case two: round 1 has no key 'exakt'; allowed: always, balance"),
    ("C1: {topics: [t]}", "C1: {topics: t}", 5, "case two, round 1, member C1: `topics`: Expected `array`, got `str`"),
    ("C1: {topics: [t]}", "C1: {topic: [t]}", 5, "case two, round 1, member C1 has no key 'topic'; allowed: field_gen"),
    ("C1: {topics: [t]}", "C1: t", 5, "case two, round 1, member C1 is a mapping, not 't'"),
    ("C1: {topics: [t]}", "C1: {topics: [t], version: 4}", 5, "member C1: `version`: Expected `int` <= 3"),
    ("C1: {t: [2]}", "C2: {t: [2]}", 6, "case two, round 1: `result` has an entry for each member and no other"),
    ("C1: {t: [2]}", "C1: {t: [-2]}", 6, "`result`: Expected `int` >= 0"),
    ("C1: {t: [2]}", "C1: {t: [2]", 7, "not YAML"),
    ("name: two", "name: two\n  name: three", 2, "'name' stands here twice"),
])
def test_a_bad_file_is_refused_in_one_line_that_says_where_and_what(
    tmp_path: Path, before: str, after: str, line: int, problem: str
) -> None:
    result = play(tmp_path, GOOD.replace(before, after, 1))

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"seesaw assignors: {tmp_path}/cases.yaml:{line}: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(("text", "problem"), [
    ("", "a recording of assignors is a list, not None"),
    ("name: two", "a recording of assignors is a list, not {'name': 'two'}"),
    ("- two", "a case is a mapping, not 'two'"),
    (GOOD.split("  rounds:")[0] + "  rounds: []\n", "case two has no rounds"),
])
def test_a_file_that_is_no_list_of_cases_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    result = play(tmp_path, text)

    assert (result.exit_code, result.stdout) == (2, "")
    assert problem in result.stderr


def test_nothing_is_played_if_one_of_several_files_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD.replace("[0, 1]", "[0]"))
    result = CliRunner().invoke(assignors, [str(tmp_path / "good.yaml"), str(tmp_path / "missing.yaml")])

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"seesaw assignors: {tmp_path}/missing.yaml: cannot be read: No such file or directory\n"
