"""What is written about the code is made from the code, or compared with it."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenarios.reading import BadFile
from scenarios.schema import KEYS, read_scenario
from seesaw.command import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_every_generated_page_is_up_to_date() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (check.returncode, check.stdout) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What `make demo` prints, in each language."""
    printed = {}
    for language in ("en", "zh"):
        place = tmp_path_factory.mktemp("demo") / "run"
        arguments = ["run", str(ROOT / "scenarios/demo.yaml"), "--on", "sim", "--lang", language, "--out", str(place)]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        printed[language] = result.output
    return printed


def test_the_readme_shows_what_the_demonstration_prints(told: dict[str, str]) -> None:
    shown = (ROOT / "README.md").read_text().split("in virtual time:\n\n```\n")[1].split("```")[0]
    for part in shown.split("...\n"):
        assert part in told["en"]


def test_the_demonstration_tells_the_same_in_both_languages(told: dict[str, str]) -> None:
    lines = {language: [line for line in text.splitlines() if " s  " in line[:16]] for language, text in told.items()}
    assert [line[:11] for line in lines["en"]] == [line[:11] for line in lines["zh"]]
    assert told["en"].isascii()
    assert not any(line.isascii() for line in lines["zh"] if "broker" not in line)


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert f"seesaw {command}" in result.output


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert [command for command in main.commands if f"seesaw {command}" not in text] == []


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.name)
def test_every_example_is_true(page: Path) -> None:
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def keys_in(page: str, heading: str) -> set[str]:
    """The keys that a table of a chapter explains."""
    table = (ROOT / "docs" / page).read_text().split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    return set(re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE))


@pytest.mark.parametrize(
    ("heading", "wrong"),
    [
        ("key of the file", "mistyped: 1"),
        ("key of `cluster`", "name: x\nuntil: 1s\ncluster: {mistyped: 1}"),
        ("key of a group", "name: x\nuntil: 1s\ncluster: {topics: {t: }}\ngroups: {g: {mistyped: 1}}"),
    ],
)
def test_the_chapter_explains_every_key_of_a_scenario(heading: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(wrong)
    with pytest.raises(BadFile) as refused:
        read_scenario(tmp_path / "wrong.yaml")
    allowed = str(refused.value).split("allowed: ")[1].split("\n")[0]
    assert keys_in("09-scenarios.md", heading) == set(allowed.rstrip(".").split(", "))
    assert heading != "key of the file" or keys_in("09-scenarios.md", heading) == set(KEYS)


def test_the_chapter_explains_every_file_of_a_run(tmp_path: Path) -> None:
    place = tmp_path / "run"
    CliRunner().invoke(main, ["run", str(ROOT / "scenarios/demo.yaml"), "--on", "sim", "--out", str(place)])
    files = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert {"events/" if name.startswith("events/") else name for name in files} == keys_in("12-a-run.md", "file")


def test_the_readme_names_every_room_and_every_chapter() -> None:
    text = (ROOT / "README.md").read_text()
    rooms = [path.parent.relative_to(ROOT) for path in (ROOT / "cluster").glob("*/__init__.py")]
    assert [str(room) for room in rooms if f"`{room}`" not in text] == []
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"(docs/{page.name})" not in text] == []
