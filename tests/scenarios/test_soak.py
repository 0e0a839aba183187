"""Soaking finds what is broken, makes it small, and writes down how to see it again."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from cluster.checks import RULES, Outcome
from scenarios.reading import written
from scenarios.runner import Run
from scenarios.soak import Failure, attempt, draw, scenario_of, shrink
from seesaw.command import main
from tests.broken import VARIANTS

WITHIN = 200                                   # seeds


@pytest.fixture
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    VARIANTS[request.param](monkeypatch)
    return str(request.param)


def test_a_seed_draws_the_same_again_and_what_it_draws_is_a_scenario() -> None:
    for seed in range(100):
        assert written(draw(seed)) == written(draw(seed))
        assert scenario_of(draw(seed)).name == f"soak-{seed}"


def test_what_is_drawn_is_small() -> None:
    for seed in range(100):
        drawn = scenario_of(draw(seed))
        assert sum(group.members for group in drawn.groups.values()) <= 5
        assert sum(each.config.records_per_second for each in drawn.producers) <= 20
        assert drawn.until == 60_000


def test_every_kind_of_fault_is_drawn_sooner_or_later() -> None:
    drawn = {step.name for seed in range(300) for step in scenario_of(draw(seed)).timeline}
    assert {"pause", "crash", "silence", "stop", "cut", "delay", "loss", "slow-disk", "roll", "grow"} <= drawn


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 200), marks=pytest.mark.slow)], ids=["20", "200"])
def test_nothing_breaks(seeds: range) -> None:
    assert [failure for failure in (attempt(draw(seed), seed) for seed in seeds) if failure is not None] == []


def test_every_rule_has_a_variant_that_breaks_it() -> None:
    assert set(VARIANTS) == set(RULES)


@pytest.mark.slow
@pytest.mark.parametrize("broken", sorted(VARIANTS), indirect=True)
def test_every_broken_variant_is_found(broken: str) -> None:
    for seed in range(WITHIN):
        verdicts = Run(scenario_of(draw(seed)), seed).play().rules
        if any(each.rule == broken and each.outcome is Outcome.INVALID for each in verdicts):
            return
    pytest.fail(f"{broken} was not broken by {WITHIN} seeds")


@pytest.mark.parametrize("broken", ["two-owners"], indirect=True)
def test_a_failing_seed_becomes_a_small_scenario_that_replays_it(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = CliRunner().invoke(
        main, ["soak", "--seeds", "3", "--jobs", "1", "--tries", "40", "--out", str(tmp_path / "found"), "--json"]
    )
    assert result.exit_code == 1
    told = msgspec.json.decode(result.stdout)
    assert told["seeds"] == 3
    failure, file = told["failures"][0], told["files"][0]
    assert failure["rule"] == broken
    replay = ["run", file, "--on", "sim", "--seed", str(failure["seed"]), "--quiet", "--out"]
    assert CliRunner().invoke(main, [*replay, str(tmp_path / "again")]).exit_code == 1
    assert len(Path(file).read_text()) < len(written(draw(failure["seed"])))
    monkeypatch.undo()
    assert CliRunner().invoke(main, [*replay, str(tmp_path / "mended")]).exit_code == 0


def test_a_machine_that_gives_up_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.consumer.commits.Commits.commit_when_due", lambda self: 1 // 0)
    failure = attempt(draw(1), 1)
    assert failure is not None
    assert failure.rule == "ZeroDivisionError"
    assert "test_soak.py" in failure.evidence


def test_shrinking_ends_when_its_tries_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def always(document: object, seed: int) -> Failure:
        tried.append(seed)
        return Failure(seed, "two-owners", "")

    monkeypatch.setattr("scenarios.soak.attempt", always)
    shrink(draw(3), Failure(3, "two-owners", ""), tries=5)
    assert len(tried) == 5
    smallest = shrink(draw(3), Failure(3, "two-owners", ""), tries=10_000)
    assert smallest["timeline"] == smallest["producers"] == []
    assert [group["members"] for group in smallest["groups"].values()] == [1]


def test_the_command_says_how_far_it_is_and_that_nothing_broke(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["soak", "--seeds", "4", "--jobs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "4 seeds" in result.output
    assert "no rule was broken" in result.output
    assert list(tmp_path.iterdir()) == []


def test_time_ends_it_before_all_seeds_are_tried(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["soak", "--seeds", "100000", "--minutes", "0.001", "--jobs", "1", "--out", str(tmp_path), "--json"]
    )
    assert result.exit_code == 0
    assert msgspec.json.decode(result.stdout)["seeds"] < 1000
