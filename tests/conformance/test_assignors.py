"""What Kafka 4.3's own assignors decided, in 147 recorded cases, decided again by ours."""

from pathlib import Path

import pytest

from scenarios.assignments import Case, play_case, read

CASES = read(Path(__file__).with_name("assignors.yaml"))
PLAYED = [case for case in CASES if not case.assignor.startswith("server-")]


@pytest.mark.parametrize("case", PLAYED, ids=lambda case: case.name)
def test_ours_decides_as_the_recorded_assignor_did(case: Case) -> None:
    assert play_case(case).differences == []


def test_where_Kafkas_hash_order_decides_ours_is_the_recorded_run_all_the_same() -> None:
    outcomes = [play_case(case) for case in PLAYED]

    assert sum(outcome.open_rounds for outcome in outcomes) == 10
    assert sum(outcome.open_as_recorded for outcome in outcomes) == 10


def test_every_client_assignor_has_cases_and_those_of_the_server_are_skipped_not_passed() -> None:
    skipped = [outcome for outcome in map(play_case, CASES) if outcome.skipped]

    assert {case.assignor for case in PLAYED} == {"range", "roundrobin", "sticky", "cooperative-sticky"}
    assert {outcome.assignor for outcome in skipped} == {"server-range", "server-uniform"}
    assert (len(PLAYED), len(skipped)) == (147, 49)
