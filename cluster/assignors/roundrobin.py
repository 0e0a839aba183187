"""Round robin: one partition after the other, to one member after the other, across all topics."""

from bisect import bisect_left
from collections.abc import Mapping

from cluster.assignors import Plan
from cluster.assignors.subscribers import static_first, subscribers_by_topic
from cluster.java import in_string_order
from cluster.subscription import Partitions, Subscription


class RoundRobin:
    """The turn goes on from topic to topic and passes over members that do not subscribe."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, owned: Partitions, generation: int) -> None:
        return None

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        plan: Plan = {member: {} for member in in_string_order(members)}
        order = static_first(members)
        turn = 0                               # the place in `order` that is next
        for topic, subscribers in subscribers_by_topic(order, members, topics).items():
            count, takers = topics[topic], len(subscribers)
            first = bisect_left(subscribers, turn)
            for step in range(min(count, takers)):
                place = subscribers[(first + step) % takers]
                plan[order[place]][topic] = list(range(step, count, takers))
            turn = subscribers[(first + count - 1) % takers] + 1
        return plan
