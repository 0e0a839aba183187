"""What is written about the code is made from the code, or compared with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

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
