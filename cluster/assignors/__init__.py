"""Who gets which partition: what the leader of a group decides. A plan follows from members and topics alone.

Every order that Kafka leaves to a hash map is ascending here (members by id, topics by name), so a plan is the same
on every machine. An assignor of your own needs no change here and none at a broker: see `Assignor`.
"""

from collections.abc import Mapping
from typing import Protocol

from cluster.subscription import Partitions, Subscription

Plan = dict[str, dict[str, list[int]]]         # member id -> topic -> partitions, ascending; every member has an entry


class Assignor(Protocol):
    """What to implement, and to name under the entry point group `seesaw.assignors`."""

    name: str                                  # as it stands in JoinGroup and in partition.assignment.strategy
    cooperative: bool                          # may members keep their partitions while they rejoin (KIP-429)?

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """What a member adds to its subscription, after it was given `owned` in `generation` (-1: never)."""
        ...

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        """Share out the partitions of `topics` (name -> number of partitions) among `members` (id -> subscription)."""
        ...
