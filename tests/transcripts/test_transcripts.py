"""The stories in *.txt: commands, and exactly what the coordinator did about them. `--rewrite` writes them anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transcripts.stage import Stage

HERE = Path(__file__).parent
RULE = "----"
QUIETLY = "quietly"  # sets the stage: what it prints is told in other transcripts
STORIES = sorted(HERE.glob("*.txt"))


def blocks(text: str) -> Iterator[list[str]]:
    """The commands of each block: the lines above its rule."""
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if RULE in lines:
            yield lines[: lines.index(RULE)]


def play(text: str) -> str:
    stage = Stage()
    played = []
    for commands in blocks(text):
        stage.printed.clear()
        for command in commands:
            if not command.startswith("#") and command != QUIETLY:
                stage.play(command)
        played.append("\n".join([*commands, RULE, *([] if QUIETLY in commands else stage.printed)]))
    about = text.split("\n\n", 1)[0].strip("\n")
    return stage.names("\n\n".join([about, *played])) + "\n"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_coordinator_does_what_the_transcript_says(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()
    assert RULE not in text.split("\n\n", 1)[0], "a transcript begins with what it shows"
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played)
    assert played == (played if request.config.getoption("--rewrite") else text)


def test_there_are_stories() -> None:
    assert len(STORIES) >= 12
