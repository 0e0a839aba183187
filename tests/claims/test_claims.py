"""The list of claims, and what tries them: each has a test with its id in its name, or a reason why not yet."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.consumer.commands import Close
from cluster.events import PartitionsAssigned, PlanMade
from cluster.subscription import Subscription
from tests.unit.client_stage import ASSIGNORS
from tests.unit.group_stage import Cluster

HERE = Path(__file__).parent
CLAIMS: dict[str, Any] = {each["id"]: each for each in yaml.safe_load((HERE / "claims.yaml").read_text())}
COUNTED = {"T": 11, "H": 8, "P": 21, "G": 25, "S": 4, "C": 10, "A": 7}
STANDS = {"holds", "holds with a condition", "outdated", "wrong"}


def tried() -> dict[str, list[str]]:
    """Claim -> the tests that have its id in their names."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.parent.rglob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                begin = re.match(r"test((?:_[tpgscaTPGSCAH]\d+)+)_", node.name)
                for letter, number in re.findall(r"([a-zA-Z])0*(\d+)", begin[1]) if begin else ():
                    found.setdefault(f"{letter.upper()}{number}", []).append(node.name)
    return found


def test_all_claims_are_listed() -> None:
    assert len(CLAIMS) == len(yaml.safe_load((HERE / "claims.yaml").read_text()))
    assert set(CLAIMS) == {f"{kind}{number + 1}" for kind, count in COUNTED.items() for number in range(count)}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_told_in_both_languages_and_is_judged_or_waits_for_a_reason(name: str) -> None:
    claim = CLAIMS[name]
    assert claim["en"].isascii()
    assert not claim["zh"].isascii()
    if "later" in claim:
        assert set(claim) == {"id", "en", "zh", "later"}
        return
    assert set(claim) == {"id", "en", "zh", "stands", "why"}
    assert claim["stands"] in STANDS
    assert claim["why"]["en"].isascii()
    assert not claim["why"]["zh"].isascii()


def test_every_claim_that_does_not_wait_is_tried_and_no_test_speaks_of_another() -> None:
    assert {name for name, claim in CLAIMS.items() if "later" not in claim} - set(tried()) == set()
    assert set(tried()) - set(CLAIMS) == set()


class FirstTakesAll:
    """An assignor that nobody has heard of."""

    name = "first-takes-all"
    cooperative = False

    def user_data(self, *_: Any) -> bytes | None:
        return None

    def plan(self, members: dict[str, Subscription], topics: dict[str, int]) -> dict[str, dict[str, list[int]]]:
        first = min(members)
        return {each: {t: list(range(n)) for t, n in topics.items()} if each == first else {} for each in members}


def test_a7_an_assignor_of_ones_own_needs_no_change_of_a_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASSIGNORS, "first-takes-all", FirstTakesAll())
    cluster = Cluster(delay_ms=1000)
    for name in "ab":
        cluster.consumer(name, partition_assignment_strategy=["first-takes-all"])
    cluster.run(5000)
    assert [event.assignor for event in cluster.events(PlanMade)] == ["first-takes-all"]
    assert cluster.owners() == {n: ["a"] for n in range(4)}
    cluster.tell("a", Close())
    cluster.run(5000)
    assert cluster.events(PartitionsAssigned, "b")[-1].owned == {"t": (0, 1, 2, 3)}
