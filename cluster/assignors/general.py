"""Sticky when subscriptions differ: what nobody owns goes to the least loaded, then more moves until loads are even.

Kafka calls this the general algorithm. The moving is in `balance.py`, here is what comes before and after it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from cluster.assignors.balance import Audience, Balance, Visits
from cluster.assignors.claims import NOBODY, Claim, Claims, Shares

Subscribers = Mapping[str, tuple[int, ...]]    # topic -> ranks
Previous = dict[str, dict[int, int]]           # topic -> partition -> who owned it in an earlier generation


def share_by_load(claims: Claims, stated: Sequence[Claim], subscribers: Subscribers) -> Shares:
    """`stated` is what every member said, also where its claim does not stand."""
    somebody_loses = _drop_unsubscribed(claims, subscribers)
    loads = _loads(claims)
    from_scratch = not any(loads)
    order = sorted(claims.owners, key=lambda topic: len(subscribers[topic]))    # fewest subscribers, then by name
    new: Visits = [(topic, claims.unowned(topic)) for topic in order]
    audiences = _audiences(subscribers, loads)
    _fill(claims, loads, new, audiences)

    movable = {topic: range(len(claims.owners[topic])) for topic in order if len(subscribers[topic]) > 1}
    room = _room(claims, audiences)
    frozen = _frozen(claims, loads, room, movable)
    active = {topic: tuple(rank for rank in subscribers[topic] if rank not in frozen) for topic in movable}
    balance = Balance(claims, loads, room, _audiences(active, loads), _previous_owners(stated, movable, frozen))
    before = _unevenness(loads, frozen)
    if not somebody_loses:
        balance.improve([(topic, numbers) for topic, numbers in new if topic in movable])
    improved = balance.improve(list(movable.items()))
    if improved and not from_scratch and _unevenness(loads, frozen) >= before:
        balance.undo()
    return claims.shares()


def _audiences(subscribers: Subscribers, loads: Sequence[int]) -> list[Audience]:
    topics: dict[tuple[int, ...], list[str]] = {}
    for topic, ranks in subscribers.items():
        topics.setdefault(ranks, []).append(topic)
    return [Audience(alike, ranks, loads) for ranks, alike in topics.items()]


def _drop_unsubscribed(claims: Claims, subscribers: Subscribers) -> bool:
    """Nobody keeps a partition of a topic it no longer wants. Did anybody have one?"""
    lost = [(topic, number) for (topic, number), rank in claims.strays.items() if rank not in subscribers[topic]]
    for topic, owners in claims.owners.items():
        strangers = set(owners).difference(subscribers[topic], [NOBODY])
        if strangers:
            lost += [(topic, number) for number, rank in enumerate(owners) if rank in strangers]
    for topic, number in lost:
        claims.give(topic, number, NOBODY)
    return bool(lost)


def _loads(claims: Claims) -> list[int]:
    tally = Counter(claims.strays.values())
    for owners in claims.owners.values():
        tally.update(owners)
    return [tally[rank] for rank in range(claims.members)]


def _fill(claims: Claims, loads: list[int], new: Visits, audiences: Sequence[Audience]) -> None:
    audience_of = {topic: audience for audience in audiences for topic in audience.topics}
    for topic, numbers in new:
        owners, audience = claims.owners[topic], audience_of[topic]
        for number in numbers:
            owners[number] = rank = audience.least_loaded()
            loads[rank] += 1


def _room(claims: Claims, audiences: Sequence[Audience]) -> list[int]:
    """How many partitions each member could have at most."""
    room = [0] * claims.members
    for audience in audiences:
        size = sum(len(claims.owners[topic]) for topic in audience.topics)
        for rank in audience.ranks:
            room[rank] += size
    return room


def _frozen(claims: Claims, loads: Sequence[int], room: Sequence[int], movable: Mapping[str, range]) -> set[int]:
    """Who can neither get nor give anything: it has all it may have, and nobody else may have that."""
    full = {rank for rank, load in enumerate(loads) if load >= room[rank]}
    full.difference_update(rank for (topic, _), rank in claims.strays.items() if topic in movable)
    return full.difference(*(claims.owners[topic] for topic in movable)) if full else full


def _previous_owners(stated: Sequence[Claim], movable: Mapping[str, range], frozen: set[int]) -> Previous:
    """The newest among the outdated claims. (A frozen previous owner makes Kafka's leader fail with a null pointer.)"""
    newest = max(-1, *(claim.generation for claim in stated))
    previous: Previous = {topic: {} for topic in movable}
    for rank, claim in enumerate(stated):
        if claim.generation == newest:
            continue
        for topic, numbers in claim.partitions.items():
            found = previous.get(topic)
            if found is None:
                continue
            for number in numbers:
                if number not in found or claim.generation > stated[found[number]].generation:
                    found[number] = rank
    for found in previous.values():
        for number in [number for number, rank in found.items() if rank in frozen]:
            del found[number]
    return previous


def _unevenness(loads: Sequence[int], frozen: set[int]) -> int:
    """The sum of the differences between the loads of every two members."""
    ordered = sorted(load for rank, load in enumerate(loads) if rank not in frozen)
    return sum(load * (2 * place - len(ordered) + 1) for place, load in enumerate(ordered))
