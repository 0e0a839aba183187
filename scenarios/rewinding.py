"""A scenario as it is now, kept; and back to it: the world, and what is still to be done to it.

Who watches is no part of it, and stays as it is; what happens next is the same again, to the byte.
"""

import pickle
from typing import Any

from cluster.sim import snapshot
from scenarios.simulation import Simulation

OURS = ("begin", "members", "agenda", "broken", "stopping", "_entries", "_faults")
ROLES = ("offsets_partitions", "leaders", "group_leaders", "clients")


def keep(simulation: Simulation) -> bytes:
    """Only for memory: never for bytes from outside."""
    roles = simulation.roles
    return pickle.dumps((
        snapshot.keep(simulation.world), {name: getattr(simulation, name) for name in OURS},
        {name: getattr(roles, name) for name in ROLES}, dict(simulation.nodes), simulation.links.wrong), protocol=5)


def go_back(simulation: Simulation, kept: bytes) -> None:
    world, ours, roles, nodes, wrong = pickle.loads(kept)      # noqa: S301  (made by keep(), in this process)
    snapshot.go_back(simulation.world, world)
    _restore(simulation, ours)
    _restore(simulation.roles, roles)
    simulation.nodes.clear()                   # the same mapping is known to the roles
    simulation.nodes.update(nodes)
    simulation.links.wrong = wrong


def _restore(whom: object, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(whom, name, value)
