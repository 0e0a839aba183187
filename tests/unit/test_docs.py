"""What is written about the code is made from the code, or compared with it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenarios import demo
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


def test_the_readme_shows_what_the_demonstration_prints(capsys: pytest.CaptureFixture[str]) -> None:
    demo.Demo("en").play()
    printed = capsys.readouterr().out
    shown = (ROOT / "README.md").read_text().split("in virtual time:\n\n```\n")[1].split("```")[0]
    assert shown in printed


def test_the_demonstration_tells_the_same_in_both_languages(capsys: pytest.CaptureFixture[str]) -> None:
    told = {}
    for language in ("en", "zh"):
        demo.Demo(language).play()
        told[language] = capsys.readouterr().out.splitlines()
    assert [line[:11] for line in told["en"]] == [line[:11] for line in told["zh"]]
    assert set(demo.SAYS["en"]) == set(demo.SAYS["zh"])
    assert all(line.isascii() for line in told["en"])
    assert not all(line.isascii() for line in told["zh"])


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.output
    assert f"seesaw {command}" in result.output


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text()
    assert [command for command in main.commands if f"seesaw {command}" not in text] == []
