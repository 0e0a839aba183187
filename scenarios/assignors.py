"""Assignors by name. Any installed distribution adds one under the entry point group `seesaw.assignors`."""

from importlib.metadata import EntryPoint, entry_points

from cluster.assignors import Assignor

GROUP = "seesaw.assignors"
BUILT_IN = {name: EntryPoint(name, f"cluster.assignors.{place}", GROUP) for name, place in (
    ("range", "range:Range"),                  # known from a bare checkout too, where no distribution declares them
    ("roundrobin", "roundrobin:RoundRobin"),
    ("sticky", "sticky:Sticky"),
    ("cooperative-sticky", "sticky:CooperativeSticky"),
)}


class NoAssignor(ValueError):
    """There is no such assignor, or it cannot be used. Says why, and which there are."""


def known() -> dict[str, EntryPoint]:
    """Every assignor that can be named. Kafka's own names always mean Kafka's own."""
    return BUILT_IN | {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}


def find(name: str) -> Assignor:
    entry = BUILT_IN.get(name) or known().get(name)    # to look through all distributions takes milliseconds
    if entry is None:
        raise NoAssignor(f"no assignor {name!r}; known: {', '.join(known())}")
    try:
        assignor: Assignor = entry.load()()
    except (ImportError, AttributeError, TypeError) as problem:
        raise NoAssignor(f"assignor {name!r} cannot be loaded from {entry.value}: {problem}") from problem
    for needed in ("name", "cooperative", "user_data", "plan"):
        if not hasattr(assignor, needed):
            raise NoAssignor(f"assignor {name!r}: {entry.value} has no `{needed}`")
    if assignor.name != name:
        raise NoAssignor(f"assignor {name!r}: {entry.value} calls itself {assignor.name!r}")
    return assignor
