"""Sticky when all subscribe to the same topics: everybody ends with the same number of partitions, give or take one.

Kafka calls this the constrained algorithm. Members keep what they own, up to a quota; the rest is dealt like cards,
topic by topic, to those who are below it.
"""

from collections.abc import Iterator, Sequence

from cluster.assignors.claims import NOBODY, Claims, Given, Shares

Free = list[tuple[str, list[int]]]             # topic by topic: the partitions to deal, ascending
Turns = list[tuple[list[int], int]]            # some members by rank, and how often the deal goes round them
Released = dict[str, dict[int, int]]           # topic -> partition -> who gave it up; NOBODY if two claimed it


def share_equally(claims: Claims) -> tuple[Shares, list[Given]]:
    """What everybody gets, and which of it another member has only just given up or may still hold."""
    claims.drop_contested()
    shares = claims.shares()
    sizes = [sum(map(len, share.values())) for share in shares]
    low, extra = divmod(sum(map(len, claims.owners.values())), len(shares))
    quotas, at_low = _quotas(sizes, low, extra)
    released = _cut_to(quotas, shares, sizes, claims)
    free = _free(claims, released)
    turns = _turns({rank: low - size for rank, size in enumerate(sizes) if size < low}, at_low)
    if sum(len(numbers) for _, numbers in free) > sum(len(takers) * times for takers, times in turns):
        # Claims on partitions that no longer exist have filled the group beyond its quotas. Kafka's leader fails
        # here ("No more unfilled consumers to be assigned"); ours forgets those claims and starts again.
        claims.strays.clear()
        return share_equally(claims)
    changing: list[Given] = []
    for rank, topic, numbers in _deal(free, turns):
        share = shares[rank]
        share[topic] = sorted(share[topic] + numbers) if topic in share else numbers
        if topic in released:
            changing += [(rank, topic, number) for number in numbers if released[topic].get(number, rank) != rank]
    return shares, changing


def _quotas(sizes: Sequence[int], low: int, extra: int) -> tuple[list[int], list[int]]:
    """How many partitions each may keep, and who is at `low` and may still get one more.

    `extra` members end above `low`: the first ones that are there already. Once these are found, nobody waits.
    """
    quotas = [low] * len(sizes)
    at_low: list[int] = []
    for rank, size in enumerate(sizes):
        if extra and size > low:
            quotas[rank] += 1
            extra -= 1
            if not extra:
                at_low.clear()
        elif extra and size == low:
            at_low.append(rank)
    return quotas, at_low


def _cut_to(quotas: Sequence[int], shares: Shares, sizes: Sequence[int], claims: Claims) -> Released:
    """Take from everybody what is above its quota: the highest numbers, of whatever topic."""
    released: Released = {}
    for topic, number in claims.contested:
        released.setdefault(topic, {})[number] = NOBODY
    for rank, quota in enumerate(quotas):
        if sizes[rank] <= quota:
            continue
        held = sorted((number, topic) for topic, numbers in shares[rank].items() for number in numbers)
        shares[rank] = {}
        for number, topic in held[:quota]:
            shares[rank].setdefault(topic, []).append(number)
        for number, topic in held[quota:]:
            released.setdefault(topic, {})[number] = rank
    return released


def _free(claims: Claims, released: Released) -> Free:
    free: Free = []
    for topic, owners in claims.owners.items():
        numbers = claims.unowned(topic)
        if topic in released:
            numbers = sorted({*numbers, *(number for number in released[topic] if 0 <= number < len(owners))})
        if numbers:
            free.append((topic, numbers))
    return free


def _turns(needs: dict[int, int], at_low: list[int]) -> Turns:
    """Rounds among those who need more, until each has enough; then one more each, as long as there is something."""
    turns: Turns = []
    waiting, done = list(needs), 0
    for need in sorted(set(needs.values())):
        waiting = [rank for rank in waiting if needs[rank] >= need]
        turns.append((waiting, need - done))
        done = need
    turns.append((at_low + sorted(needs, key=needs.__getitem__), 1))
    return turns


def _deal(free: Free, turns: Turns) -> Iterator[tuple[int, str, list[int]]]:
    """One partition each, round by round. A member's part of a topic is a slice: every n-th number for n takers."""
    schedule = iter(turns)
    takers: list[int] = []
    turn = left = 0                            # whose turn it is, and how many partitions these takers still get
    for topic, numbers in free:
        start = 0
        while start < len(numbers):
            while not left:
                takers, times = next(schedule)
                turn, left = 0, len(takers) * times
            end = min(start + left, len(numbers))
            for step in range(min(len(takers), end - start)):
                yield takers[(turn + step) % len(takers)], topic, numbers[start + step : end : len(takers)]
            turn, left = (turn + end - start) % len(takers), left - (end - start)
            start = end
