"""Every story in scenarios/*.yaml comes true, whatever the seed; and each kind of expectation can fail."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from cluster.checks import Outcome
from scenarios.actions import ACTIONS
from scenarios.expectations import EXPECTATIONS, No
from scenarios.runner import Result, Run
from scenarios.schema import read_scenario
from seesaw.run import run as run_command

ROOT = Path(__file__).parents[2]
STORIES = sorted((ROOT / "scenarios").glob("*.yaml"))
TRANSCRIPTS = ROOT / "tests" / "transcripts" / "stories"
TOLD = (
    "coordinator-crash-completing", "coordinator-crash-stable", "coordinator-cut-off",
    "gc-pause-above-the-session-timeout", "group-forms", "leader-dies-in-completing", "member-crashes",
    "member-joins-cooperative", "rolling-deploy-with-static-membership", "slow-processing")


def problems(result: Result) -> list[str]:
    return [f"{each.outcome}: {each.expect}: {each.why}" for each in result.expectations
            if each.outcome is not Outcome.VALID] + [
        f"{rule.rule}: {breach.evidence}" for rule in result.rules for breach in rule.breaches]


def play(path: Path, seed: int) -> Result:
    return Run(read_scenario(path), seed).play()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_comes_true(path: Path) -> None:
    result = play(path, 0)
    assert problems(result) == []
    assert result.verdict is Outcome.VALID


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_does_not_depend_on_the_seed(path: Path, seed: int) -> None:
    assert problems(play(path, seed)) == []


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_a_story_has_the_name_of_its_file_is_told_in_both_languages_and_expects_something(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.name == path.stem
    assert set(scenario.story) == {"en", "zh"}
    assert all(scenario.story.values())
    assert [each for each in scenario.expect if not isinstance(each, No)]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_no_blank_is_left_in_chinese_where_a_line_was_folded(path: Path) -> None:
    assert re.findall("[\u3000-\u9fff\uff00-\uffef] [\u3000-\u9fff\uff00-\uffef]",
                      read_scenario(path).story["zh"]) == []


def test_everything_that_can_be_done_and_expected_is_in_some_story() -> None:
    scenarios = [read_scenario(path) for path in STORIES]
    assert {step.name for scenario in scenarios for step in scenario.timeline} == set(ACTIONS)
    assert {type(each) for scenario in scenarios for each in scenario.expect} == set(EXPECTATIONS.values())


# Stories can fail

PRODUCER = "producers:\n  - {topic: orders, records.per.second: 20}\n"
SPOILT = (
    # the story, what is changed in it, which expectation then fails, and how
    ("gc-pause-above-the-session-timeout", "for: 14s", "for: 2s", "detected", Outcome.INVALID),
    ("gc-pause-above-the-session-timeout", "pause: {who: member billing/2", "pause: {who: member billing/1", "detected",
     Outcome.UNKNOWN),
    ("gc-pause-below-the-session-timeout", "for: 8s", "for: 14s", "survived", Outcome.INVALID),
    ("gc-pause-below-the-session-timeout", "pause: {who: member billing/2", "pause: {who: member billing/1", "survived",
     Outcome.UNKNOWN),
    ("member-leaves", "stop:", "crash:", "removed", Outcome.INVALID),
    ("member-leaves", "stop:", "crash:", "left", Outcome.INVALID),
    ("member-leaves", "stop:", "crash:", "rebalances", Outcome.INVALID),
    ("group-forms", "delay.ms: 3000", "delay.ms: 0", "rebalances", Outcome.INVALID),
    ("group-forms", "delay.ms: 3000", "delay.ms: 0", "state", Outcome.INVALID),
    ("group-forms", "start.every: 1s", "start.every: 6s", "members", Outcome.INVALID),
    ("group-forms", "partitions: 6", "partitions: 5", "owns", Outcome.INVALID),
    ("group-forms", "during: [0s, 5s]", "during: [0s, 9s]", "progress", Outcome.INVALID),
    ("group-forms", PRODUCER, "", "progress", Outcome.UNKNOWN),
    ("coordinator-crash-stable", PRODUCER, "", "no", Outcome.UNKNOWN),
    ("member-crashes", "{all-owned: {group: billing}}", "{all-owned: {group: billing, at: 21s}}", "all-owned",
     Outcome.INVALID),
    ("member-crashes", "auto.commit.interval.ms: 60000", "auto.commit.interval.ms: 500", "reread", Outcome.INVALID),
    ("coordinator-crash-stable", "within: 6500ms", "within: 3s", "failover", Outcome.INVALID),
    ("coordinator-crash-stable", "crash: {who: coordinator of group billing, for: 20s}",
     "crash: {who: member billing/1, for: 20s}", "failover", Outcome.UNKNOWN),
    ("coordinator-crash-stable", "crash: {who: coordinator of group billing, for: 20s}",
     "crash: {who: member billing/1, for: 20s}", "restored", Outcome.UNKNOWN),
    ("coordinator-crash-preparing", "- {at: 12s, join: {group: billing}}", "", "state", Outcome.INVALID),
    ("coordinator-crash-completing", "generation: 1, members: 3", "generation: 2, members: 4", "restored",
     Outcome.INVALID),
    ("commit-after-expulsion", "per.record: 60s", "per.record: 1ms", "commits", Outcome.INVALID),
    ("group-full", "group.max.size: 3", "group.max.size: 4", "failed", Outcome.INVALID),
    ("offsets-expire", "offsets.retention.minutes: 1", "offsets.retention.minutes: 10", "expired", Outcome.INVALID),
    ("preferred-leaders", "- {at: 25s, elect: {}}", "", "elections", Outcome.INVALID),
)


@pytest.mark.parametrize(("name", "old", "new", "kind", "outcome"), SPOILT)
def test_a_story_that_is_spoilt_does_not_come_true(tmp_path: Path, name: str, old: str, new: str, kind: str,
                                                   outcome: Outcome) -> None:
    text = (ROOT / "scenarios" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    path = tmp_path / f"{name}.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    result = play(path, 0)
    assert outcome in [each.outcome for each in result.expectations if kind in each.expect]
    assert result.verdict is not Outcome.VALID


def test_every_kind_of_expectation_is_seen_to_fail() -> None:
    assert {kind for _, _, _, kind, _ in SPOILT} == set(EXPECTATIONS)


# How they are told

@pytest.mark.parametrize("name", TOLD)
def test_a_story_is_told_as_its_transcript_says(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    story, path = ROOT / "scenarios" / f"{name}.yaml", TRANSCRIPTS / f"{name}.txt"
    result = CliRunner().invoke(run_command, [str(story), "--on", "sim", "--out", str(tmp_path / "run")])
    told = (tmp_path / "run" / "log" / "story.log").read_text(encoding="utf-8")
    assert result.exit_code == 0, result.output
    assert told in result.output
    told = f"{name}: {read_scenario(story).story['en']}\n\n{told}"
    if request.config.getoption("--rewrite"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


def test_every_transcript_belongs_to_a_story() -> None:
    assert sorted(path.stem for path in TRANSCRIPTS.glob("*.txt")) == sorted(TOLD)
