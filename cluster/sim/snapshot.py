"""A world as it is now, kept; and back to it. What happens next is the same again, to the byte.

Who watches a world (observers, listeners, journal) is not part of it, and stays as it is.
"""

import pickle
from typing import Any

from cluster.sim.world import World

WATCHING = ("observers", "listeners", "journal", "_audience", "_audience_of")


def keep(world: World) -> bytes:
    """Everything that the future of a world depends on. Only for memory: never for bytes from outside."""
    return pickle.dumps({name: value for name, value in vars(world).items() if name not in WATCHING}, protocol=5)


def go_back(world: World, kept: bytes) -> None:
    """Make the world what it was; machines are new objects, with the memories of then."""
    state: dict[str, Any] = pickle.loads(kept)  # noqa: S301  (made by keep(), in this process)
    vars(world).update(state)
