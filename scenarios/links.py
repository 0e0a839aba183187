"""What is wrong with the links between hosts, fault by fault: the end of one leaves the others as they are."""

from cluster.faults import Cut, Delay, Loss, NotTcp
from cluster.sim import hosts
from cluster.sim.network import FINE, Condition
from cluster.sim.world import World

DISTURBANCES = (Cut, Delay, Loss, NotTcp)
Disturbance = Cut | Delay | Loss | NotTcp
Pair = tuple[str, str]                         # from host, to host


class Links:
    def __init__(self, world: World) -> None:
        self.world = world
        self.wrong: dict[Pair, dict[int, Condition]] = {}      # by the number of the fault

    def disturb(self, pair: Pair, number: int, fault: Disturbance) -> None:
        self.wrong.setdefault(pair, {})[number] = _condition(fault)
        self._set(pair)

    def mend(self, pair: Pair, number: int) -> None:
        del self.wrong[pair][number]
        self._set(pair)

    def _set(self, pair: Pair) -> None:
        """All that is wrong with one direction of a link, together."""
        wrong = list(self.wrong[pair].values())
        together = FINE if not wrong else Condition(
            sum(each.delay_ms for each in wrong), sum(each.jitter_ms for each in wrong),
            max(each.loss for each in wrong), any(each.is_cut for each in wrong),
            max(each.duplicated for each in wrong), max(each.reordered_ms for each in wrong))
        hosts.set_link(self.world, *pair, together)


def _condition(fault: Disturbance) -> Condition:
    if isinstance(fault, Delay):
        return Condition(fault.by, fault.jitter)
    if isinstance(fault, Loss):
        return Condition(loss=fault.rate)
    if isinstance(fault, NotTcp):
        return Condition(duplicated=fault.duplicate, reordered_ms=fault.reorder)
    return Condition(is_cut=True)
