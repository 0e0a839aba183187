"""Assignors by name. Any installed distribution adds one under the entry point group `seesaw.assignors`."""

from importlib.metadata import EntryPoint, entry_points

from cluster.assignors import Assignor

GROUP = "seesaw.assignors"
BUILT_IN = {                                   # known from a bare checkout too, where no distribution declares them
    "range": "cluster.assignors.range:Range",
    "roundrobin": "cluster.assignors.roundrobin:RoundRobin",
    "sticky": "cluster.assignors.sticky:Sticky",
    "cooperative-sticky": "cluster.assignors.sticky:CooperativeSticky",
}


class NoAssignor(ValueError):
    """There is no such assignor, or it cannot be used. Says why, and which there are."""


def known() -> dict[str, EntryPoint]:
    """Every assignor that can be named. Kafka's own names always mean Kafka's own."""
    found = {name: EntryPoint(name, place, GROUP) for name, place in BUILT_IN.items()}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return found


def find(name: str) -> Assignor:
    choice = known()
    if name not in choice:
        raise NoAssignor(f"no assignor {name!r}; known: {', '.join(choice)}")
    entry = choice[name]
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
