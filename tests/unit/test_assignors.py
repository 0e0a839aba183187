"""The assignors on their own: the articles' claims A1 to A7, the worked examples of the specification, the bytes."""

import pytest

from cluster.assignors import Plan
from cluster.assignors.balance import Audience, Balance
from cluster.assignors.claims import Claim, Claims
from cluster.assignors.sticky import CooperativeSticky, Sticky
from cluster.assignors.userdata import read_assignment, write_assignment
from cluster.subscription import Partitions, Subscription
from scenarios.assignors import find

Said = str | tuple[str, str, int]              # topics; or topics, owned partitions, generation


def shares(text: str) -> dict[str, list[int]]:
    """`t0-1 t1-0 t0-0` -> {t0: [0, 1], t1: [0]}"""
    found: dict[str, list[int]] = {}
    for topic, number in sorted((word.split("-")[0], int(word.split("-")[1])) for word in text.split()):
        found.setdefault(topic, []).append(number)
    return found


def owned(text: str) -> dict[str, tuple[int, ...]]:
    return {topic: tuple(numbers) for topic, numbers in shares(text).items()}


def plan(name: str, topics: str, members: dict[str, Said], instances: dict[str, str] | None = None) -> Plan:
    """`topics`: "t0:3 t1:2"; a member by its topics, and by what it owns since which generation."""
    assignor, said = find(name), {}
    for member, each in members.items():
        wanted, held, generation = (each, "", -1) if isinstance(each, str) else each
        claims: Partitions = owned(held)
        said[member] = Subscription(
            topics=tuple(wanted.split()), user_data=assignor.user_data(claims, generation), generation=generation,
            owned=claims if assignor.cooperative else {}, instance_id=(instances or {}).get(member))
    return assignor.plan(said, {topic: int(count) for topic, count in (each.split(":") for each in topics.split())})


def words(topic: str, *numbers: int) -> str:
    return " ".join(f"{topic}-{number}" for number in numbers)


def decided(**expected: str) -> Plan:
    return {member: shares(text) for member, text in expected.items()}


def again(name: str, topics: str, members: dict[str, str], before: Plan, generation: int) -> Plan:
    """The next round: everybody who was given something says so."""
    said: dict[str, Said] = {}
    for member, wanted in members.items():
        held = " ".join(f"{topic}-{number}" for topic, numbers in before.get(member, {}).items() for number in numbers)
        said[member] = (wanted, held, generation) if member in before else wanted
    return plan(name, topics, said)


def test_A1_range_splits_each_topic_of_four_in_two_halves() -> None:
    assert plan("range", "t0:4 t1:4", {"C0": "t0 t1", "C1": "t0 t1"}) == decided(
        C0="t0-0 t0-1 t1-0 t1-1", C1="t0-2 t0-3 t1-2 t1-3")


def test_A2_range_gives_the_remainder_of_every_topic_to_the_same_member() -> None:
    assert plan("range", "t0:3 t1:3", {"C0": "t0 t1", "C1": "t0 t1"}) == decided(
        C0="t0-0 t0-1 t1-0 t1-1", C1="t0-2 t1-2")


def test_A3_roundrobin_goes_on_from_topic_to_topic() -> None:
    assert plan("roundrobin", "t0:3 t1:3", {"C0": "t0 t1", "C1": "t0 t1"}) == decided(
        C0="t0-0 t0-2 t1-1", C1="t0-1 t1-0 t1-2")


UNEVEN: dict[str, Said] = {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}


def test_A4_roundrobin_is_uneven_when_subscriptions_are() -> None:
    assert plan("roundrobin", "t0:1 t1:2 t2:3", UNEVEN) == decided(C0="t0-0", C1="t1-0", C2="t1-1 t2-0 t2-1 t2-2")


def test_A5_sticky_evens_out_what_roundrobin_does_not() -> None:
    assert plan("sticky", "t0:1 t1:2 t2:3", UNEVEN) == decided(C0="t0-0", C1="t1-0 t1-1", C2="t2-0 t2-1 t2-2")


def test_A6_when_a_member_crashes_nothing_moves_between_the_survivors() -> None:
    everybody = dict.fromkeys(("C0", "C1", "C2"), "t0 t1 t2 t3")
    first = again("sticky", "t0:2 t1:2 t2:2 t3:2", everybody, {}, -1)
    survivors = {"C0": everybody["C0"], "C2": everybody["C2"]}

    assert first == decided(C0="t0-0 t1-1 t3-0", C1="t0-1 t2-0 t3-1", C2="t1-0 t2-1")
    assert again("sticky", "t0:2 t1:2 t2:2 t3:2", survivors, first, 1) == decided(
        C0="t0-0 t1-1 t3-0 t0-1", C2="t1-0 t2-1 t2-0 t3-1")


T = "t"
TEN = " ".join(f"t{number}" for number in range(10))
EXAMPLES: dict[str, tuple[str, str, dict[str, Said], Plan]] = {
    "01 range": (
        "range", "t0:3 t1:3", {"C0": "t0 t1", "C1": "t0 t1"}, decided(C0="t0-0 t0-1 t1-0 t1-1", C1="t0-2 t1-2")),
    "02 range, a remainder of one": (
        "range", "t:7", {"C0": T, "C1": T, "C2": T}, decided(C0="t-0 t-1 t-2", C1="t-3 t-4", C2="t-5 t-6")),
    "03 range, uneven": (
        "range", "t0:2 t1:3 t2:4", UNEVEN, decided(C0="t0-0", C1="t0-1 t1-0 t1-1", C2="t1-2 t2-0 t2-1 t2-2 t2-3")),
    "04 range, more members than partitions": (
        "range", "t:2", dict.fromkeys(("C0", "C1", "C2", "C3"), T), decided(C0="t-0", C1="t-1", C2="", C3="")),
    "05 range, every remainder to the first": (
        "range", " ".join(f"t{number}:1" for number in range(10)), dict.fromkeys(("C0", "C1", "C2"), TEN),
        decided(C0=" ".join(f"t{number}-0" for number in range(10)), C1="", C2="")),
    "07 roundrobin": (
        "roundrobin", "t0:3 t1:3", {"C0": "t0 t1", "C1": "t0 t1"}, decided(C0="t0-0 t0-2 t1-1", C1="t0-1 t1-0 t1-2")),
    "08 roundrobin, uneven": (
        "roundrobin", "t0:1 t1:2 t2:3", UNEVEN, decided(C0="t0-0", C1="t1-0", C2="t1-1 t2-0 t2-1 t2-2")),
    "09 roundrobin passes over those who do not subscribe": (
        "roundrobin", "a:3 b:3", {"C0": "a", "C1": "a b"}, decided(C0="a-0 a-2", C1="a-1 b-0 b-1 b-2")),
    "11 sticky, from scratch": (
        "sticky", "t1:3 t2:3", {"C1": "t1 t2", "C2": "t1 t2"}, decided(C1="t1-0 t1-2 t2-1", C2="t1-1 t2-0 t2-2")),
    "12 sticky, a partition appears": (
        "sticky", "t1:2 t2:3", {"C1": ("t1 t2", "t1-0 t2-1", 1), "C2": ("t1 t2", "t1-1 t2-2", 1)},
        decided(C1="t1-0 t2-1 t2-0", C2="t1-1 t2-2")),
    "13 sticky, uneven": ("sticky", "t0:1 t1:2 t2:3", UNEVEN, decided(C0="t0-0", C1="t1-0 t1-1", C2="t2-0 t2-1 t2-2")),
    "14 sticky, uneven, one leaves": (
        "sticky", "t0:1 t1:2 t2:3", {"C1": ("t0 t1", "t1-0 t1-1", 1), "C2": ("t0 t1 t2", "t2-0 t2-1 t2-2", 1)},
        decided(C1="t1-0 t1-1 t0-0", C2="t2-0 t2-1 t2-2")),
    "15 sticky, one has a topic to itself": (
        "sticky", "t1:3 t2:2", {"C1": "t1", "C2": "t1 t2", "C3": "t1"},
        decided(C1="t1-0 t1-2", C2="t2-0 t2-1", C3="t1-1")),
    "16 sticky, overlapping": (
        "sticky", "a:4 b:4", {"C0": "a", "C1": "a b", "C2": "b"},
        decided(C0="a-0 a-2", C1="a-1 a-3 b-2", C2="b-0 b-1 b-3")),
    "18 sticky, a double claim": (
        "sticky", "t:4", {"C1": (T, "t-0 t-1", 1), "C2": (T, "t-0 t-2", 1), "C3": T},
        decided(C1="t-1 t-3", C2="t-2", C3="t-0")),
    "18 cooperative, a double claim is held back": (
        "cooperative-sticky", "t:4", {"C1": (T, "t-0 t-1", 1), "C2": (T, "t-0 t-2", 1), "C3": T},
        decided(C1="t-1 t-3", C2="t-2", C3="")),
    "19 cooperative, the newer generation wins": (
        "cooperative-sticky", "t:4", {"C1": (T, "t-0 t-1 t-2", 4), "C2": (T, "t-2 t-3", 5)},
        decided(C1="t-0 t-1", C2="t-2 t-3")),
    "20 cooperative, the newer generation wins all": (
        "cooperative-sticky", "t:4", {"C1": (T, "t-0 t-1", 4), "C2": (T, "t-0 t-1", 5)},
        decided(C1="t-2 t-3", C2="t-0 t-1")),
    "21 cooperative, a join revokes first": (
        "cooperative-sticky", "t:6", {"C1": (T, "t-0 t-1 t-2 t-3 t-4 t-5", 1), "C2": T},
        decided(C1="t-0 t-1 t-2", C2="")),
    "21 cooperative, and gives then": (
        "cooperative-sticky", "t:6", {"C1": (T, "t-0 t-1 t-2", 2), "C2": (T, "", 2)},
        decided(C1="t-0 t-1 t-2", C2="t-3 t-4 t-5")),
    "23 cooperative, uneven": (
        "cooperative-sticky", "a:2 b:4", {"C0": ("a b", "a-0 a-1 b-2", 1), "C1": ("b", "b-0 b-1 b-3", 1), "C2": "b"},
        decided(C0="a-0 a-1", C1="b-1 b-3", C2="")),
    "23 cooperative, uneven, the second round": (
        "cooperative-sticky", "a:2 b:4", {"C0": ("a b", "a-0 a-1", 2), "C1": ("b", "b-1 b-3", 2), "C2": ("b", "", 2)},
        decided(C0="a-0 a-1", C1="b-1 b-3", C2="b-0 b-2")),
    "24 cooperative, a leave takes one round": (
        "cooperative-sticky", "t:6", {"C1": (T, "t-0 t-3", 1), "C2": (T, "t-1 t-4", 1)},
        decided(C1="t-0 t-3 t-2", C2="t-1 t-4 t-5")),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_worked_examples_of_the_specification_hold(example: str) -> None:
    name, topics, members, expected = EXAMPLES[example]

    assert plan(name, topics, members) == expected


def test_example_06_range_serves_static_members_first_by_their_instance_ids() -> None:
    members: dict[str, Said] = {"m1": T, "m5": T, "m9": T}

    assert plan("range", "t:5", members, {"m9": "a", "m5": "b"}) == decided(m9="t-0 t-1", m5="t-2 t-3", m1="t-4")


def test_example_10_roundrobin_does_so_too() -> None:
    members: dict[str, Said] = {"m1": T, "m2": T, "m3": T}

    assert plan("roundrobin", "t:4", members, {"m3": "i0", "m2": "i1"}) == decided(m3="t-0 t-3", m2="t-1", m1="t-2")


def test_sticky_does_not_look_at_instance_ids() -> None:
    members: dict[str, Said] = {"m1": T, "m2": T, "m3": T}

    assert plan("sticky", "t:4", members, {"m3": "i0"}) == plan("sticky", "t:4", members, {"m2": "i0", "m1": "i1"})


def test_example_22_three_members_joining_one_after_another_take_five_generations() -> None:
    rounds, before = [], {}
    for generation, names in enumerate((["C1"], ["C1", "C2"], ["C1", "C2"], ["C1", "C2", "C3"], ["C1", "C2", "C3"])):
        before = again("cooperative-sticky", "t:10", dict.fromkeys(names, T), before, generation)
        rounds.append({member: share.get("t", []) for member, share in before.items()})

    assert rounds == [
        {"C1": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]},
        {"C1": [0, 1, 2, 3, 4], "C2": []},
        {"C1": [0, 1, 2, 3, 4], "C2": [5, 6, 7, 8, 9]},
        {"C1": [0, 1, 2, 3], "C2": [5, 6, 7], "C3": []},
        {"C1": [0, 1, 2, 3], "C2": [5, 6, 7], "C3": [4, 8, 9]},
    ]


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_topic_that_does_not_exist_is_passed_over_and_every_member_has_an_entry(name: str) -> None:
    assert plan(name, "t:1", {"C0": "gone", "C1": "gone"}) == {"C0": {}, "C1": {}}
    assert plan(name, "t:1", {"C0": "gone t", "C1": "gone"}) == {"C0": {"t": [0]}, "C1": {}}
    assert plan(name, "", {}) == {}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_stand_in_Javas_order_of_strings_not_in_Pythons(name: str) -> None:
    beyond, private = "\U0001f600", "\ue000"   # UTF-16: a surrogate pair (d83d ...) comes before e000

    assert plan(name, "t:1", {private: T, beyond: T}) == {beyond: {"t": [0]}, private: {}}


def test_sticky_believes_the_user_data_and_not_the_owned_partitions_of_the_subscription() -> None:
    data = write_assignment({"t": (0,)}, 3)
    members = {"C0": Subscription(topics=("t",), owned={"t": (1,)}, generation=3, user_data=data),
               "C1": Subscription(topics=("t",))}

    assert Sticky().plan(members, {"t": 2}) == {"C0": {"t": [0]}, "C1": {"t": [1]}}


def test_cooperative_sticky_takes_the_generation_from_the_user_data_of_an_old_subscription() -> None:
    def member(held: str, generation: int) -> Subscription:
        said = Subscription(topics=("t",), owned=owned(held), version=1,
                            user_data=CooperativeSticky().user_data({}, generation))
        return Subscription.decode(said.encode())

    older_second = CooperativeSticky().plan({"C0": member("t-0 t-1", -1), "C1": member("t-0 t-1", -1)}, {"t": 4})
    newer_second = CooperativeSticky().plan({"C0": member("t-0 t-1", 5), "C1": member("t-0 t-1", 4)}, {"t": 4})

    assert older_second == {"C0": {"t": [2]}, "C1": {"t": [3]}}       # both -1: claimed twice, so held back
    assert newer_second == {"C0": {"t": [2, 3]}, "C1": {"t": [0, 1]}}    # the earlier one's 5 is not seen: C1 wins


def test_claims_on_partitions_that_no_longer_exist_are_kept_as_Kafka_keeps_them() -> None:
    members: dict[str, Said] = {
        "C0": ("t", "t-0 t-2 t-4", 1), "C1": ("t u", "t-5 u-0 u-1", 1), "C2": ("t", "t-1 t-3", 1)}

    assert plan("sticky", "t:4 u:2", members) == decided(C0="t-0 t-2 t-4", C1="t-5 u-0 u-1", C2="t-1 t-3")


def test_where_Kafka_would_give_a_partition_to_two_because_of_such_a_claim_ours_has_one_owner() -> None:
    members: dict[str, Said] = {"C0": ("a b", "a-7 b-0", 1), "C1": ("a b", "b-1", 1), "C2": "b"}

    assert plan("sticky", "a:1 b:3", members) == decided(C0="a-7 b-0", C1="a-0 b-1", C2="b-2")


def test_where_Kafka_would_fail_because_of_such_claims_ours_forgets_them() -> None:
    members: dict[str, Said] = {"C0": (T, "t-7 t-8", 1), "C1": T}

    assert plan("sticky", "t:4", members) == decided(C0="t-0 t-2", C1="t-1 t-3")


def test_a_previous_owner_gets_its_partition_back_even_if_it_has_unsubscribed_as_in_Kafka() -> None:
    members: dict[str, Said] = {"C0": ("u", "t-0", 3), "C1": ("t", "t-0 t-1 t-2 t-3 t-4", 4), "C2": ("u", "", 4),
                                "C3": ("t", "t-5", 4)}

    assert plan("sticky", "t:6 u:1", members) == decided(C0="t-0", C1="t-2 t-3 t-4", C2="u-0", C3="t-1 t-5")


def test_a_previous_owner_that_can_neither_give_nor_take_is_passed_over_where_Kafka_would_fail() -> None:
    members: dict[str, Said] = {"C0": ("u", "t-0", 3), "C1": ("t", "t-0 t-1 t-2 t-3", 4), "C2": ("t", "", 4)}

    assert plan("sticky", "t:4 u:1", members) == decided(C0="u-0", C1="t-2 t-3", C2="t-0 t-1")


def test_a_join_over_which_Kafkas_leader_never_comes_to_an_end_ends_here_and_evenly() -> None:
    members: dict[str, Said] = {
        "C1": ("t", words("t", 0, 1, 2, 3, 4, 5, 6), 6), "C2": ("t", words("t", 9, 12, 15, 18, 21, 24, 27, 30), 6),
        "C3": ("s", words("s", 0, 3, 4, 6), 6), "C4": "s t", "C5": ("s", words("s", 1, 2, 5), 6),
        "C6": ("s t", words("t", 7, 10, 13, 16, 19, 22, 25, 28), 6),
        "C7": ("t", words("t", 8, 11, 14, 17, 20, 23, 26, 29), 6)}
    found = plan("sticky", "s:7 t:31", members)

    assert {name: sum(map(len, share.values())) for name, share in found.items()} == {
        "C1": 6, "C2": 7, "C3": 4, "C4": 6, "C5": 3, "C6": 6, "C7": 6}
    assert sorted(number for share in found.values() for number in share.get("t", [])) == list(range(31))


def test_moves_that_did_not_help_are_undone() -> None:
    claims = Claims([Claim({"t": (0, 1, 2, 3)}, 1, 1), Claim({}, -1, -1)], {"t": 4})
    loads = [4, 0]
    balance = Balance(claims, loads, [4, 4], [Audience(["t"], [0, 1], loads)], {"t": {}})

    assert balance.improve([("t", range(4))])
    assert claims.owners == {"t": [1, 1, 0, 0]}
    balance.undo()
    assert claims.owners == {"t": [0, 0, 0, 0]}


def test_a_member_without_topics_gets_partitions_if_its_id_is_the_first() -> None:
    assert plan("sticky", "t:2", {"C0": "", "C1": T}) == decided(C0="t-0", C1="t-1")
    assert plan("sticky", "t:2", {"C0": T, "C1": ""}) == decided(C0="t-0 t-1", C1="")


def test_the_user_data_of_sticky_is_laid_out_as_Kafkas() -> None:
    data = Sticky().user_data({"u": (1,), "t": (2, 3)}, 7)

    assert data == bytes.fromhex(
        "00000002  0001 74 00000002 00000002 00000003  0001 75 00000001 00000001  00000007")
    assert read_assignment(data, {b"t": "t", b"u": "u"}) == ({"t": (2, 3), "u": (1,)}, 7)
    assert read_assignment(data, {b"u": "u"}) == ({"u": (1,)}, 7)
    assert Sticky().user_data({}, -1) is None


def test_user_data_from_before_the_generation_was_added_is_read_without_it() -> None:
    assert read_assignment(write_assignment({"t": (0, 1)}, 7)[:-4], {b"t": "t"}) == ({"t": (0, 1)}, -1)


@pytest.mark.parametrize("data", [None, b"", b"\0", bytes.fromhex("ffffffff"), bytes.fromhex("00000001ffff00000000"),
                                  bytes.fromhex("00000001000174ffffffff"), bytes.fromhex("7fffffff"),
                                  *(write_assignment({"t": (0, 1)}, 7)[:length] for length in range(1, 19))])
def test_user_data_that_cannot_be_read_claims_nothing(data: bytes | None) -> None:
    assert read_assignment(data, {b"t": "t"}) == ({}, -1)
    assert read_assignment(data, {}) == ({}, -1)


def test_cooperative_sticky_adds_its_generation_and_the_others_nothing() -> None:
    assert CooperativeSticky().user_data({"t": (0,)}, 7) == bytes.fromhex("00000007")
    assert CooperativeSticky().user_data({}, -1) == bytes.fromhex("ffffffff")
    assert find("range").user_data({"t": (0,)}, 7) is None
    assert find("roundrobin").user_data({"t": (0,)}, 7) is None
