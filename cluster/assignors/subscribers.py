"""Who may be given which topic, and in which order the members are served."""

from collections.abc import Mapping, Sequence

from cluster.java import in_string_order, string_order
from cluster.subscription import Subscription


def static_first(members: Mapping[str, Subscription]) -> list[str]:
    """The order of range and roundrobin: members with an instance id, by that; then the others, by member id."""

    def key(member: str) -> tuple[bool, bytes]:
        instance_id = members[member].instance_id
        return instance_id is None, string_order(instance_id or "")

    return sorted(in_string_order(members), key=key)


def subscribers_by_topic(
    order: Sequence[str], members: Mapping[str, Subscription], topics: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Topic -> its subscribers, as ascending places in `order`. Only topics that exist and that somebody wants.

    The topics come ascending, and those with the same subscribers share one tuple: a group mostly has one or two
    different audiences, however many topics it has.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for place, member in enumerate(order):
        places.setdefault(members[member].topics, []).append(place)
    alike = list(places.values())
    wanted_by: dict[str, list[int]] = {}
    for index, wanted in enumerate(places):
        for topic in dict.fromkeys(wanted):
            if topics.get(topic, 0) > 0:
                wanted_by.setdefault(topic, []).append(index)
    merged: dict[tuple[int, ...], tuple[int, ...]] = {}
    for indexes in wanted_by.values():
        if tuple(indexes) not in merged:
            merged[tuple(indexes)] = tuple(sorted(place for index in indexes for place in alike[index]))
    return {topic: merged[tuple(wanted_by[topic])] for topic in in_string_order(wanted_by)}
