"""Moving partitions from heavily to lightly loaded members, until no single move would make two members more even.

Kafka asks before every step whether the whole group is balanced, and looks at every partition to find out. Here the
sweep itself is the question: a visit compares an owner's load with the least among the topic's subscribers, and in a
balanced group no visit finds anything to move.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from heapq import heapify, heappush, heapreplace

from cluster.assignors.claims import Claims

Visits = Sequence[tuple[str, Sequence[int]]]   # topic by topic: partitions to look at


class Audience:
    """The topics that have the same subscribers, and the least loaded of these."""

    def __init__(self, topics: Sequence[str], ranks: Sequence[int], loads: Sequence[int]) -> None:
        self.topics = topics
        self.ranks = ranks
        self._loads = loads
        self._heap = [(loads[rank], rank) for rank in ranks]
        heapify(self._heap)

    def least_loaded(self) -> int:
        """By load, then by id. Whoever has got more since its entry was made goes back into the heap."""
        while True:
            load, rank = self._heap[0]
            if load == self._loads[rank]:
                return rank
            heapreplace(self._heap, (self._loads[rank], rank))

    def lighter(self, rank: int) -> None:
        """One of them has got less. That cannot wait until its entry comes up."""
        heappush(self._heap, (self._loads[rank], rank))


class Balance:
    """Owners and loads while partitions move; both are changed in place."""

    def __init__(
        self,
        claims: Claims,
        loads: list[int],
        room: Sequence[int],
        audiences: Sequence[Audience],
        previous: Mapping[str, Mapping[int, int]],
    ) -> None:
        self._owners = claims.owners
        self._loads = loads
        self._room = room
        self._audiences = audiences
        self._previous = previous
        self._audience = {topic: audience for audience in audiences for topic in audience.topics}
        self._audiences_of: list[list[Audience]] = [[] for _ in loads]
        for audience in audiences:
            for rank in audience.ranks:
                self._audiences_of[rank].append(audience)
        self._came_from: dict[tuple[str, int], int] = {}    # a moved partition -> its owner before
        self._moved: dict[tuple[str, int, int], list[int]] = {}    # topic, from, to -> partitions, ascending
        self._moves = 0
        self._takes_back = True
        self._odd = bool(claims.strays) or self._owed_to_strangers()

    def improve(self, visits: Visits) -> bool:
        """Sweep over these partitions until a sweep moves nothing. Has anything moved?

        Taking moves back can lead in a circle, and Kafka's leader then never comes to an end (librdkafka, which has
        the same rules: issue 4783). Ours stops taking back once the owners are what they were after an earlier sweep;
        every other move makes the loads more even, so that comes to an end.
        """
        before = self._moves
        seen: set[frozenset[tuple[str, int, int]]] = set()
        while self._sweep(visits):
            now = frozenset((topic, number, self._owners[topic][number]) for topic, number in self._came_from)
            self._takes_back = self._takes_back and now not in seen
            seen.add(now)
        return self._moves > before

    def undo(self) -> None:
        for (topic, number), rank in self._came_from.items():
            self._owners[topic][number] = rank

    def _sweep(self, visits: Visits) -> bool:
        """Look at each partition once. True if another sweep might find more."""
        loads, before = self._loads, self._moves
        for topic, numbers in visits:
            owners, audience, previous = self._owners[topic], self._audience[topic], self._previous[topic]
            fair = loads[audience.least_loaded()] + 1
            for number in numbers:
                load = loads[owners[number]]
                if load <= fair and number not in previous:
                    continue
                taker = previous.get(number)
                if taker is None or load <= loads[taker] + 1:    # the previous owner does not need it
                    if load <= fair:
                        continue
                    taker = audience.least_loaded()
                if self._odd and self._is_balanced():
                    return False
                self._move(topic, number, taker)
                fair = loads[audience.least_loaded()] + 1
        return self._moves > before

    def _move(self, topic: str, number: int, taker: int) -> None:
        """Give a partition to `taker`, or rather take back the move of another one that went the opposite way."""
        owners, loads = self._owners[topic], self._loads
        source = self._came_from.get((topic, number), owners[number])
        opposite = self._moved.get((topic, taker, source))
        if opposite and self._takes_back:
            number = opposite[0]
        owner = owners[number]
        self._record(topic, number, owner, taker)
        self._moves += 1
        owners[number] = taker
        loads[taker] += 1
        loads[owner] -= 1
        for audience in self._audiences_of[owner]:
            audience.lighter(owner)

    def _record(self, topic: str, number: int, owner: int, taker: int) -> None:
        source = self._came_from.pop((topic, number), None)
        if source is None:
            source = owner
        else:
            self._moved[topic, source, owner].remove(number)
        if source != taker:
            self._came_from[topic, number] = source
            insort(self._moved.setdefault((topic, source, taker), []), number)

    def _owed_to_strangers(self) -> bool:
        return any(
            not set(self._previous[topic].values()).issubset(audience.ranks)
            for topic, audience in self._audience.items()
        )

    def _is_balanced(self) -> bool:
        """Kafka's definition: nobody who lacks partitions could take one from an owner with at least two more.

        In two odd cases a visit finds a move in a balanced group, so that the question must be asked: the taker is
        full by number, but of partitions that no longer exist; or it is a previous owner that has unsubscribed.
        """
        loads = self._loads
        for audience in self._audiences:
            lacking = [loads[rank] for rank in audience.ranks if loads[rank] != self._room[rank]]
            if lacking:
                fair = min(lacking) + 1
                if any(loads[rank] > fair for topic in audience.topics for rank in self._owners[topic]):
                    return False
        return True
