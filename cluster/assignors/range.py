"""Range: of every topic, each subscriber gets one run of neighbours. Kafka's rack-aware variant is left out."""

from collections.abc import Mapping

from cluster.assignors import Plan
from cluster.assignors.subscribers import static_first, subscribers_by_topic
from cluster.java import in_string_order
from cluster.subscription import Partitions, Subscription


class Range:
    """Topics do not know of each other, so the remainders of all of them go to the same first members."""

    name = "range"
    cooperative = False

    def user_data(self, owned: Partitions, generation: int) -> None:
        return None

    def plan(self, members: Mapping[str, Subscription], topics: Mapping[str, int]) -> Plan:
        plan: Plan = {member: {} for member in in_string_order(members)}
        order = static_first(members)
        for topic, subscribers in subscribers_by_topic(order, members, topics).items():
            each, extra = divmod(topics[topic], len(subscribers))
            start = 0
            for turn, place in enumerate(subscribers[: topics[topic]]):    # nothing is left for those behind
                end = start + each + (turn < extra)
                plan[order[place]][topic] = list(range(start, end))
                start = end
        return plan
