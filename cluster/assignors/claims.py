"""Whose claim stands: what the members say they own, before anything is shared out.

A claim is believed unless another member claims the same partition. Then the newer generation wins; if both are of
the same generation, neither keeps it. Members are heard in the order of their ids.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cluster.subscription import Partitions

NOBODY = -1

Shares = list[dict[str, list[int]]]            # by rank (the place in id order): topic -> partitions, ascending
Given = tuple[int, str, int]                   # this rank is given, of this topic, this partition


class Claim(NamedTuple):
    """What one member says it owns."""

    partitions: Partitions
    generation: int                            # in which it was given them
    rival_generation: int                      # the one that counts when a later member claims the same, see `Claims`


class Claims:
    """Who owns what, by the claims that stand.

    Kafka takes the later claimant's generation from where its assignor keeps it, but the earlier claimant's always
    from the subscription (AbstractStickyAssignor 4.3, allSubscriptionsEqual). Subscriptions below version 2 carry
    none, so among those the later claimant wins.
    """

    def __init__(self, claims: Sequence[Claim], topics: Mapping[str, int]) -> None:
        self.members = len(claims)
        self.owners = {topic: [NOBODY] * count for topic, count in topics.items()}    # by partition number: a rank
        self.strays: dict[tuple[str, int], int] = {}    # owners of numbers that the topic does not have (any more)
        self.contested: dict[tuple[str, int], int] = {}    # once claimed twice in a generation: the last who did
        self._rivals = [claim.rival_generation for claim in claims]
        for rank, claim in enumerate(claims):
            self._hear(rank, claim)

    def _hear(self, rank: int, claim: Claim) -> None:
        for topic, numbers in claim.partitions.items():
            owners = self.owners.get(topic)
            if owners is None:
                continue
            for number in numbers:
                if 0 <= number < len(owners) and owners[number] == NOBODY and not self.contested:
                    owners[number] = rank
                else:
                    self._settle(rank, claim.generation, topic, number)

    def _settle(self, rank: int, generation: int, topic: str, number: int) -> None:
        owner = self._owner(topic, number)
        rival = self.contested.get((topic, number), NOBODY) if owner == NOBODY else owner
        if rival == NOBODY:
            self.give(topic, number, rank)
        elif generation == self._rivals[rival]:
            self.contested[topic, number] = rank
            self.give(topic, number, NOBODY)
        elif generation > self._rivals[rival] and rival != rank:    # nobody wins against itself by saying it twice
            self.give(topic, number, rank)

    def _owner(self, topic: str, number: int) -> int:
        owners = self.owners[topic]
        return owners[number] if 0 <= number < len(owners) else self.strays.get((topic, number), NOBODY)

    def give(self, topic: str, number: int, rank: int) -> None:
        owners = self.owners[topic]
        if 0 <= number < len(owners):
            owners[number] = rank
        elif rank == NOBODY:
            self.strays.pop((topic, number), None)
        else:
            self.strays[topic, number] = rank

    def drop_contested(self) -> None:
        for topic, number in self.contested:
            self.give(topic, number, NOBODY)

    def unowned(self, topic: str) -> list[int]:
        owners = self.owners[topic]
        return [number for number, rank in enumerate(owners) if rank == NOBODY] if NOBODY in owners else []

    def shares(self) -> Shares:
        shares: Shares = [{} for _ in range(self.members)]
        for topic, owners in self.owners.items():
            for number, rank in enumerate(owners):
                if rank != NOBODY:
                    share = shares[rank]
                    if topic in share:
                        share[topic].append(number)
                    else:
                        share[topic] = [number]
        for (topic, number), rank in self.strays.items():
            shares[rank].setdefault(topic, []).append(number)
        for topic, rank in dict.fromkeys((topic, rank) for (topic, _), rank in self.strays.items()):
            shares[rank][topic].sort()
        return shares
