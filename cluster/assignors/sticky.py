"""Sticky: as balanced as can be, and within that as few partitions as possible change hands.

Both kinds share one engine: `claims.py` finds out who owns what, `constrained.py` or `general.py` shares out the rest.
They differ in where a member states what it owns, and in that the cooperative kind holds a partition back for one
generation, until its owner has let it go (KIP-429). The rack-aware variant is left out: no broker here has a rack.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from cluster.assignors import Plan
from cluster.assignors.claims import Claim, Claims, Given, Shares
from cluster.assignors.constrained import share_equally
from cluster.assignors.general import share_by_load
from cluster.assignors.subscribers import subscribers_by_topic
from cluster.assignors.userdata import read_assignment, read_generation, write_assignment, write_generation
from cluster.java import in_string_order
from cluster.subscription import Partitions, Subscription


class Sticky:
    """The eager kind. A member lets go of everything before it rejoins; what it had stands in its user data."""

    name = "sticky"
    cooperative = False

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        return write_assignment(owned, generation) if owned or generation >= 0 else None

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        names = {topic.encode("utf-8", "surrogatepass"): topic for topic in topics}

        def claim(subscription: Subscription) -> Claim:
            partitions, generation = read_assignment(subscription.user_data, names)
            return Claim(partitions, generation, max(subscription.generation, -1))

        shares, _ = _share_out(members, topics, claim)
        return _plan(members, shares)


class CooperativeSticky:
    """The cooperative kind. What a member still holds stands in its subscription."""

    name = "cooperative-sticky"
    cooperative = True

    def user_data(self, owned: Partitions, generation: int) -> bytes:
        return write_generation(generation)

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        def claim(subscription: Subscription) -> Claim:
            generation = subscription.generation
            if generation < 0:                 # a subscription below version 2 has none
                generation = read_generation(subscription.user_data)
            return Claim(subscription.owned, generation, max(subscription.generation, -1))

        shares, changing = _share_out(members, topics, claim)
        _hold_back(list(changing), shares)
        return _plan(members, shares)


def _share_out(
    members: Mapping[str, Subscription], topics: Mapping[str, int], claim: Callable[[Subscription], Claim]
) -> tuple[Shares, Iterable[Given]]:
    """What every member gets, and which of it changes hands: is given to one while another may still hold it."""
    order = in_string_order(members)
    if not order:
        return [], []
    subscribers = subscribers_by_topic(order, members, topics)
    stated = [claim(members[member]) for member in order]
    claims = Claims(stated, {topic: topics[topic] for topic in subscribers})
    if _all_alike([members[member].topics for member in order]):
        return share_equally(claims)
    shares = share_by_load(claims, stated, subscribers)
    return shares, _changing_hands(stated, shares)


def _all_alike(subscriptions: Sequence[tuple[str, ...]]) -> bool:
    """Kafka's rule: all equal the first that is not empty. So members without topics are alike if they come first."""
    wanted: set[str] = set()
    for topics in subscriptions:
        if not wanted:
            wanted.update(topics)
        elif len(topics) != len(wanted) or not wanted.issuperset(topics):
            return False
    return True


def _changing_hands(stated: Sequence[Claim], shares: Shares) -> Iterator[Given]:
    """Partitions that somebody claims and does not get, in the shares of members that do not claim them."""
    lost: dict[str, set[int]] = {}
    for claim, share in zip(stated, shares, strict=True):
        for topic, claimed in claim.partitions.items():
            if list(claimed) != share.get(topic):
                lost.setdefault(topic, set()).update(set(claimed).difference(share.get(topic, ())))
    for rank, (claim, share) in enumerate(zip(stated, shares, strict=True)):
        for topic, given in share.items():
            if topic in lost:
                new = lost[topic].intersection(given).difference(claim.partitions.get(topic, ()))
                yield from ((rank, topic, number) for number in sorted(new))


def _hold_back(changing: Sequence[Given], shares: Shares) -> None:
    held_back: dict[tuple[int, str], set[int]] = {}
    for rank, topic, number in changing:
        held_back.setdefault((rank, topic), set()).add(number)
    for (rank, topic), numbers in held_back.items():
        shares[rank][topic] = [number for number in shares[rank][topic] if number not in numbers]
        if not shares[rank][topic]:
            del shares[rank][topic]


def _plan(members: Mapping[str, Subscription], shares: Shares) -> Plan:
    return dict(zip(in_string_order(members), shares, strict=True))
