"""How long the assignors take: python benchmarks/assignors.py [--json] [case ...]

The shapes are those of Kafka's own tests. Each is played three times: from scratch, after one member has left, after
one more has joined. Building the members' subscriptions is not timed, reading them is. A figure is the median of three.
Beside it: what Kafka 4.3's own class took on a machine of this kind (two virtual cores, Java 17, warmed up).
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import perf_counter

from cluster.assignors import Assignor, Plan
from cluster.subscription import Subscription
from scenarios.assignors import find

Subscribe = Callable[[int, Sequence[str]], Sequence[str]]


def everything(member: int, topics: Sequence[str]) -> Sequence[str]:
    return topics


def halves(member: int, topics: Sequence[str]) -> Sequence[str]:
    return topics[: len(topics) // 2] if member % 4 == 0 else topics[len(topics) // 2 :]


def all_but_one(member: int, topics: Sequence[str]) -> Sequence[str]:
    return topics[:1] if member == 0 else topics


SHAPES: dict[str, tuple[int, int, int, Subscribe]] = {    # members, topics, partitions of each, who wants what
    "plain": (1_000, 100, 100, everything),
    "halves": (500, 100, 200, halves),
    "million": (2_000, 500, 2_000, everything),
    "million-uneven": (2_000, 500, 2_000, all_but_one),
}
KAFKA_MS: dict[tuple[str, str], tuple[float, ...]] = {    # first, leave, join
    ("plain", "range"): (36, 20, 23), ("plain", "roundrobin"): (8, 8, 8),
    ("plain", "sticky"): (3.6, 14, 14), ("plain", "cooperative-sticky"): (2.5, 13, 6.6),
    ("halves", "range"): (10, 10, 10), ("halves", "roundrobin"): (10, 11, 11),
    ("halves", "sticky"): (2343, 1841, 39447), ("halves", "cooperative-sticky"): (2289, 1678, 34559),
    ("million", "range"): (1785, 2377, 1823), ("million", "roundrobin"): (742, 752, 741),
    ("million", "sticky"): (163, 2197, 3086), ("million", "cooperative-sticky"): (113, 1355, 1507),
    ("million-uneven", "range"): (1028, 789, 1673), ("million-uneven", "roundrobin"): (699, 665, 642),
    ("million-uneven", "sticky"): (4945, 6655),
}


def subscriptions(assignor: Assignor, members: Sequence[int], topics: Sequence[str], subscribe: Subscribe,
                  before: Plan) -> dict[str, Subscription]:
    """As the leader decodes them, for members that have been given `before` in generation 1."""
    found = {}
    for number in members:
        name = f"consumer-{number:05d}"
        owned = {topic: tuple(numbers) for topic, numbers in before.get(name, {}).items()}
        generation = 1 if name in before else -1
        found[name] = Subscription.decode(Subscription(
            topics=tuple(subscribe(number, topics)), user_data=assignor.user_data(owned, generation),
            owned=owned if assignor.cooperative else {}, generation=generation).encode())
    return found


def measure(shape: str, name: str, repeat: int) -> Iterator[dict[str, object]]:
    count, topic_count, partitions, subscribe = SHAPES[shape]
    assignor, topics = find(name), [f"topic-{number:04d}" for number in range(topic_count)]
    sizes = dict.fromkeys(topics, partitions)
    everybody = list(range(count))
    first: Plan = {}
    without_one = [member for member in everybody if member != count // 2]
    changes = (("first", everybody), ("leave", without_one), ("join", [*everybody, count]))
    for place, (change, members) in enumerate(changes):
        said = subscriptions(assignor, members, topics, subscribe, first)
        times = []
        for _ in range(repeat):
            start = perf_counter()
            plan = assignor.plan(said, sizes)
            times.append(1000 * (perf_counter() - start))
            first = first or plan
            del plan                           # or the next one pays for freeing it
        kafka = KAFKA_MS.get((shape, name), ())[place : place + 1]
        yield {"shape": shape, "assignor": name, "members": len(members), "partitions": sum(sizes.values()),
               "change": change, "ms": round(median(times), 1), "kafka_ms": kafka[0] if kafka else None,
               "ratio": round(median(times) / kafka[0], 3) if kafka else None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="case", help=f"one of {', '.join(SHAPES)} (all)")
    parser.add_argument("--assignor", action="append", help="only this one (range, roundrobin, sticky, ...)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one JSON object for each figure")
    given = parser.parse_args()
    unknown = set(given.shapes) - set(SHAPES)
    if unknown or given.repeat < 1:
        parser.error(f"cases are {', '.join(SHAPES)}; --repeat is at least 1")
    for shape in given.shapes or SHAPES:
        for name in given.assignor or ("range", "roundrobin", "sticky", "cooperative-sticky"):
            for found in measure(shape, name, given.repeat):
                print(json.dumps(found) if given.json else _told(found), flush=True)


def _told(found: dict[str, object]) -> str:
    kafka = "" if found["kafka_ms"] is None else f"   Kafka {found['kafka_ms']:>8} ms   ratio {found['ratio']}"
    return f"{found['shape']:15} {found['assignor']:19} {found['change']:6} {found['ms']:>9} ms{kafka}"


if __name__ == "__main__":
    main()
