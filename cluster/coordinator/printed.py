"""The table as text and as Markdown, made of the data that is executed. README.md has a copy, and a test compares."""

from collections.abc import Iterator

from cluster.coordinator.states import CHECKS, MOVES, REACTIONS, Cell, Check, Do, GroupState, On, words
from cluster.wire.errors import Error

NOTHING = "-"


def _cell(cell: Cell) -> str:
    return " ".join(word.name if isinstance(word, Error) else word.name.lower() for word in cell) or NOTHING


def rows() -> Iterator[list[str]]:
    """What happens, what is done about it in each state, and what is asked before."""
    yield ["", *GroupState, "asked before"]
    for on in On:
        asked = " ".join(check.name.lower() for check in CHECKS.get(on, ()))
        yield [on.name.lower(), *(_cell(words(text)) for text in REACTIONS[on]), asked or NOTHING]


def moves() -> Iterator[list[str]]:
    yield ["from", "to", "when"]
    for (before, why), after in MOVES.items():
        yield [before, after, why.value]


def checks() -> Iterator[list[str]]:
    yield ["check", "asked in", "is it true that it ...", "if not"]
    for check in Check:
        claim, states, otherwise = check.value
        yield [check.name.lower(), ", ".join(states), claim, _cell(words(otherwise))]


def events() -> Iterator[list[str]]:
    yield ["row", "what happens"]
    for on in On:
        yield [on.name.lower(), on.value]


def meanings() -> Iterator[list[str]]:
    yield ["word", "what is done"]
    for do in Do:
        yield [do.name.lower(), do.value]


SECTIONS = {
    "What happens to a group, and what is done about it in each state": rows,
    "The rows": events,
    "The words": meanings,
    "The checks, in the order in which they are asked": checks,
    "The moves between states": moves,
}


def as_text() -> str:
    return "\n\n".join(f"{title}\n\n{_aligned(list(section()))}" for title, section in SECTIONS.items()) + "\n"


def as_markdown() -> str:
    """What README.md shows: the table itself; the rest is printed by `seesaw table`."""
    return _markdown([["" if cell == NOTHING else cell for cell in row] for row in rows()])


def _aligned(table: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _markdown(table: list[list[str]]) -> str:
    head, *body = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([head, "|" + "---|" * len(table[0]), *body]) + "\n"
