"""The page of the client as text and as Markdown, made of the data that is executed."""

from collections.abc import Iterator

from cluster.consumer.states import ANSWERS, MOVES, SHORT, Do


def rows() -> Iterator[list[str]]:
    """What was asked, what was answered, under which circumstances, and what is done about it."""
    yield ["asked", "answered", "when", "what is done"]
    before = ""
    for asked, answer, when, done in ANSWERS:
        yield ["" if asked == before else asked, _spelt_out(answer), when.value, done or "nothing"]
        before = asked


def _spelt_out(answer: str) -> str:
    said = {"ANY": "anything else", "RETRIABLE": "anything else that is retriable", "LOST": "disconnected, no answer"}
    return ", ".join(said.get(word) or SHORT[word].name for word in answer.split())


def meanings() -> Iterator[list[str]]:
    yield ["word", "what is done"]
    for do in Do:
        yield [do.name.lower(), do.value]


def moves() -> Iterator[list[str]]:
    yield ["from", "to", "when"]
    for (before, why), after in MOVES.items():
        yield [before, after, why.value]


SECTIONS = {
    "What a member does about every answer": rows,
    "The words": meanings,
    "The moves between states": moves,
}


def as_text() -> str:
    return "\n\n".join(f"{title}\n\n{_aligned(list(section()))}" for title, section in SECTIONS.items()) + "\n"


def as_markdown() -> str:
    """What the chapter about the client shows: the page, then its words."""
    return _markdown(list(rows())) + "\n" + _markdown(list(meanings()))


def _aligned(table: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _markdown(table: list[list[str]]) -> str:
    head, *body = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([head, "|" + "---|" * len(table[0]), *body]) + "\n"
