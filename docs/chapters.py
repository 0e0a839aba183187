"""What stands in the chapters and is made of the code: between `<!-- made of the code: NAME -->` and its end.

`generate.py` fills them in. A name is a function here.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import msgspec
import yaml

from cluster.checks import RULES
from cluster.consumer.printed import SECTIONS
from cluster.coordinator.reactions import CAUSES
from cluster.faults import FAULTS, FORMS, Action, Duration, Link, Target
from cluster.sim.journal import Level
from scenarios.actions import ACTIONS
from scenarios.expectations import EXPECTATIONS

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- made of the code: (.+?) -->\n)(.*?)(<!-- end of \2 -->\n)", re.DOTALL)
PLAIN = {str: "text", int: "a number", float: "a number", bool: "true, false", Target: "a target", Link: "a link",
         Duration: "a duration"}


def filled(page: str) -> str:
    """A chapter with everything in it that is made of the code."""
    return BLOCK.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], (ROOT / page).read_text())


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines)


def about(thing: Any) -> str:
    assert thing.__doc__, f"{thing} does not say what it is"
    return " ".join(thing.__doc__.split())


# The keys of a struct


def _value(kind: Any) -> str:
    if kind in PLAIN:
        return PLAIN[kind]
    options = [each for each in get_args(kind) if each is not NoneType]
    if get_origin(kind) is not tuple:
        return _value(options[0])
    if options[-1] is Ellipsis:
        return "a list"
    return "[from, to]" if options[0] is Duration else "[lowest, highest]"


def _key(field: Any) -> str:
    shown = f"`{field.encode_name}`: {_value(field.type)}"
    if field.required:
        return shown
    default = field.default
    is_nothing = default is None or default == () or default is False
    return f"{shown} (optional)" if is_nothing else f"{shown} ({_plain(default)})"


def _plain(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _described(kinds: Mapping[str, type[msgspec.Struct]], what: str) -> str:
    return markdown((what, "keys", ""), (
        (f"`{name}`", "; ".join(map(_key, msgspec.structs.fields(kind))) or "none", about(kind))
        for name, kind in kinds.items()))


def faults() -> str:
    return _described(FAULTS, "fault")


def actions() -> str:
    others: dict[str, type[Action]] = {name: kind for name, kind in ACTIONS.items() if name not in FAULTS}
    return _described(others, "action")


def expectations() -> str:
    return _described(EXPECTATIONS, "expectation")


def targets() -> str:
    return markdown(("target", ""), ((f"`{form}`", meaning) for form, meaning in FORMS.items()))


def causes() -> str:
    return ", ".join(f"`{cause}`" for cause in CAUSES.values()) + "\n"


def rules() -> str:
    return markdown(("rule", "broken when"), ((f"`{name}`", about(rule)) for name, rule in RULES.items()))


def levels() -> str:
    return f"{', '.join(f'`{level}`' for level in Level)}: {about(Level)}\n"


# The client


def _section(title: str) -> str:
    head, *rows = SECTIONS[title]()
    return markdown(head, rows)


# The claims


def claims() -> str:
    listed = yaml.safe_load((ROOT / "tests/claims/claims.yaml").read_text())
    rows = []
    for each in listed:
        if "later" in each:
            rows.append((each["id"], f"{each['en']}<br>{each['zh']}", "not tried yet", each["later"]))
        else:
            rows.append((each["id"], f"{each['en']}<br>{each['zh']}", each["stands"],
                         f"{each['why']['en']}<br>{each['why']['zh']}"))
    return markdown(("", "what is said", "how it stands", "why"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "faults": faults, "actions": actions, "expectations": expectations, "targets": targets, "causes": causes,
    "rules": rules, "levels": levels, "claims": claims,
    "the client's page": lambda: _section("What a member does about every answer"),
    "the client's words": lambda: _section("The words"),
    "the client's moves": lambda: _section("The moves between states"),
}
CHAPTERS = ("docs/07-brokers.md", "docs/08-the-client.md", "docs/09-scenarios.md", "docs/10-faults.md",
            "docs/11-safety.md", "docs/12-a-run.md", "docs/claims.md")
