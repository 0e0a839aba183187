"""seesaw run: what it prints, what it leaves on the disk, and with which code it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cluster.events import (
    ConnectionClosed,
    FaultBegan,
    GroupMoved,
    PartitionsAssigned,
    RequestSent,
    ResponseArrived,
    Stamped,
    TopicCreated,
)
from cluster.sim.journal import Level
from scenarios.eventlog import read_log
from scenarios.runner import BadPlace, Run, new_place, write_whole
from scenarios.schema import read_scenario
from scenarios.simulation import NotReady, Simulation
from seesaw.command import main

SMALL = """\
name: small
story: {en: A member freezes., zh: 一个成员冻结。}
cluster:
  brokers: 1
  topics: {orders: {partitions: 2}}
  config: {group.initial.rebalance.delay.ms: 0, offsets.topic.num.partitions: 1}
groups:
  billing: {members: 2, subscribe: [orders], config: {session.timeout.ms: 6000, heartbeat.interval.ms: 1000}}
producers: [{topic: orders, records.per.second: 2}]
timeline:
  - {at: 3s, pause: {who: member billing/2, for: 8s}}
until: 13s
settle: 1s
expect:
  - {detected: {who: member billing/2}}
"""
MESSAGES = (RequestSent, ResponseArrived, ConnectionClosed)
WRONG = "{members: {group: billing, count: 5}}"
NOT_TO_BE_TOLD = "{survived: {who: member billing/1}}"


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is left lies in a directory of its own."""
    monkeypatch.chdir(tmp_path)


def a_file(text: str = SMALL, expect: str | None = None) -> str:
    wanted = "{detected: {who: member billing/2}}"
    assert wanted in text
    Path("small.yaml").write_text(text.replace(wanted, expect or wanted), encoding="utf-8")
    return "small.yaml"


def play(*options: str, text: str = SMALL, expect: str | None = None) -> Result:
    return CliRunner().invoke(main, ["run", a_file(text, expect), "--on", "sim", *options])


def on_disk(place: Path = Path()) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def in_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


# How it ends


def test_what_comes_out_as_expected_ends_with_0() -> None:
    result = play()
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "VALID"
    assert "  ok  {detected: {who: member billing/2}}" in result.output


def test_what_does_not_ends_with_1() -> None:
    result = play(expect=WRONG)
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "INVALID"
    assert "  NO  {members: {group: billing, count: 5}}\n        members: 2, wanted 5" in result.output


def test_what_cannot_be_told_ends_with_2() -> None:
    result = play(expect=NOT_TO_BE_TOLD)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "UNKNOWN"
    assert "  ??  {survived: {who: member billing/1}}\n        nothing was done to member billing/1" in result.output


def test_one_wrong_expectation_is_enough() -> None:
    assert play(expect=f"{NOT_TO_BE_TOLD}\n  - {WRONG}").exit_code == 1


def test_a_scenario_that_expects_nothing_is_valid_if_no_rule_is_broken() -> None:
    result = play(
        text=SMALL.replace(
            "expect:\n  - {detected: {who: member billing/2}}\n", "# {detected: {who: member billing/2}}"
        )
    )
    assert result.exit_code == 0
    assert "nothing was expected" in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            SMALL.replace("until: 13s", "until: 13"),
            "small.yaml:12: until: not a duration: 13; write 500ms, 9s, 2m or 1h",
        ),
        (SMALL + "surprise: 1\n", "small.yaml:16: a scenario has no key 'surprise'; allowed: cluster, expect, groups"),
    ],
)
def test_a_bad_file_ends_with_2_and_leaves_nothing(text: str, said: str) -> None:
    result = play(text=text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"seesaw run: {said}")
    assert on_disk() == ["small.yaml"]


def test_a_file_that_is_not_there_ends_with_2() -> None:
    result = CliRunner().invoke(main, ["run", "nowhere.yaml", "--on", "sim"])
    assert result.exit_code == 2
    assert result.stderr == "seesaw run: nowhere.yaml: cannot be read: No such file or directory\n"


def test_ray_is_not_here_yet_and_sim_is_named() -> None:
    result = CliRunner().invoke(main, ["run", a_file()])
    assert result.exit_code == 2
    assert "--on sim" in result.stderr
    assert on_disk() == ["small.yaml"]


def test_a_cluster_that_does_not_come_up_ends_with_2() -> None:
    result = play(text=SMALL.replace("  brokers: 1\n", "  brokers: 1\n  latency: 1h\n"))
    assert result.exit_code == 2
    assert result.stderr == "seesaw run: the brokers did not find each other\n"


# Where it goes


def test_a_run_has_the_files_of_the_design() -> None:
    assert play("--out", "there").exit_code == 0
    machines = ["billing-1", "billing-2", "broker-1", "controller", "coordinator-1", "operator", "producer-1", "world"]
    assert on_disk(Path("there")) == sorted(
        [*(f"events/{name}.msgpack" for name in machines), "log/story.log", "run.json", "scenario.yaml", "verdict.json"]
    )
    assert Path("there/scenario.yaml").read_text(encoding="utf-8") == SMALL
    assert not Path("runs").exists()


def test_run_json_says_what_ran() -> None:
    play("--out", "there", "--seed", "7")
    described = in_json(Path("there/run.json"))
    assert described["ended"] is True
    assert (described["scenario"], described["seed"], described["on"], described["until_ms"]) == (
        "small",
        7,
        "sim",
        13000,
    )
    assert described["nodes"]["billing-2"] == "node-1"
    assert set(described["versions"]) == {"seesaw", "python"}
    (fault,) = described["faults"]
    assert (fault["what"], fault["who"], fault["target"], fault["for"]) == (
        "pause",
        "billing-2",
        "member billing/2",
        8000,
    )
    assert (fault["began"] - described["begin"], fault["ended"] - described["begin"]) == (3000, 11000)
    assert described["messages"]["JoinGroup"] > 0


def test_verdict_json_is_the_verdict() -> None:
    play("--out", "there")
    verdict = in_json(Path("there/verdict.json"))
    assert (verdict["verdict"], verdict["scenario"], verdict["interrupted"]) == ("valid", "small", False)
    assert verdict["expectations"][0]["expect"] == {"detected": {"who": "member billing/2"}}
    assert verdict["expectations"][0]["outcome"] == "valid"
    assert {rule["rule"]: rule["outcome"] for rule in verdict["rules"]}["two-owners"] == "valid"
    assert verdict["events"] == sum(1 for _ in read_log(Path("there")))
    assert verdict["virtual_ms"] == 14000
    assert verdict["path"] == "there"


def test_latest_leads_to_the_newest_run() -> None:
    play()
    first = Path("runs/latest").resolve()
    play(expect=WRONG)
    second = Path("runs/latest").resolve()
    assert first != second
    assert {first, second} == {path.resolve() for path in Path("runs").glob("small-*")}
    assert in_json(Path("runs/latest/verdict.json"))["verdict"] == "invalid"
    assert Path("runs/latest").readlink() == Path(second.name)


def test_runs_of_one_second_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "now")
    scenario = read_scenario(a_file())
    names = [new_place(scenario, None).name for _ in range(3)]
    assert names == ["small-now", "small-now.1", "small-now.2"]
    monkeypatch.setattr("scenarios.runner.RUNS", Path("full"))
    for number in range(1000):
        Path(f"full/small-now{f'.{number}' if number else ''}").mkdir(parents=True)
    with pytest.raises(BadPlace, match=r"full: too many runs in one second"):
        new_place(scenario, None)


def test_a_directory_that_is_not_empty_is_not_used() -> None:
    Path("there").mkdir()
    Path("there/mine").write_text("keep me", encoding="utf-8")
    result = play("--out", "there")
    assert result.exit_code == 2
    assert result.stderr == "seesaw run: there is there already; name a directory that is new or empty\n"
    assert on_disk(Path("there")) == ["mine"]


def test_a_file_where_the_directory_should_be_is_not_used() -> None:
    Path("there").write_text("keep me", encoding="utf-8")
    assert play("--out", "there").exit_code == 2
    assert play("--out", "there/deeper").exit_code == 2
    assert Path("there").read_text(encoding="utf-8") == "keep me"


def test_an_empty_directory_is_used() -> None:
    Path("there").mkdir()
    assert play("--out", "there").exit_code == 0
    assert play("--out", "deep/down/there").exit_code == 0
    assert Path("deep/down/there/verdict.json").exists()


def test_nothing_half_written_is_left() -> None:
    play("--out", "there")
    assert [name for name in on_disk(Path("there")) if ".new" in name or "/." in f"/{name}"] == []


def test_a_file_that_cannot_be_written_whole_is_not_there_at_all() -> None:
    path = Path("verdict.json")
    write_whole(path, {"a": 1})
    with pytest.raises(TypeError):
        write_whole(path, {"a": object()})
    assert in_json(path) == {"a": 1}
    assert on_disk() == ["verdict.json"]


# What it says


def test_a_dry_run_says_what_would_be_done_and_does_nothing() -> None:
    result = play("--dry-run", "--out", "there")
    assert result.exit_code == 0
    assert result.output == (
        "small: A member freezes.\n"
        "cluster: 1 brokers on 1 nodes\n"
        "  topic orders: 2 partitions, 1 replicas\n"
        "group billing: 2 members, orders\n"
        "producer 1: 2 records a second to orders, acks all\n"
        "    3.000 s  pause who member billing/2, for 8s\n"
        "   13.000 s  the end\n"
        "1 expectations\n"
    )
    assert on_disk() == ["small.yaml"]
    assert not Path("runs").exists()


def test_a_dry_run_needs_no_ray_and_refuses_what_is_bad() -> None:
    assert CliRunner().invoke(main, ["run", a_file(), "--dry-run"]).exit_code == 0
    assert play("--dry-run", text=SMALL + "surprise: 1\n").exit_code == 2


def test_it_is_told_as_it_happens_and_the_story_is_kept() -> None:
    result = play("--out", "there")
    assert result.output.startswith("small: A member freezes.\n\n")
    told = Path("there/log/story.log").read_text(encoding="utf-8")
    assert told in result.output
    assert "    3.000 s  pause: member billing/2 (for 8s)\n" in told
    assert "group billing: billing-2 is out (session expired)\n" in told


def test_quiet_says_only_the_verdict() -> None:
    result = play("--quiet", "--out", "there")
    first, why, last = result.output.splitlines()
    assert (first, last) == ("  ok  {detected: {who: member billing/2}}", "VALID")
    assert why.startswith("        error in ms: 0, wanted 0 to 0; removed ")
    assert "session expired" in Path("there/log/story.log").read_text(encoding="utf-8")


def test_json_is_the_verdict_and_nothing_else() -> None:
    result = play("--json", "--out", "there", expect=WRONG)
    assert result.exit_code == 1
    assert json.loads(result.output) == in_json(Path("there/verdict.json"))


def test_it_is_told_in_chinese() -> None:
    result = play("--lang", "zh")
    assert result.exit_code == 0
    assert result.output.startswith("small: 一个成员冻结。\n")
    assert "冻结：member billing/2" in result.output
    assert "消费组 billing：billing-2 被移除（会话超时）" in result.output
    assert "预期:" in result.output
    assert "安全规则:" in result.output


def test_a_story_that_is_told_in_one_language_only_is_told_in_that_one() -> None:
    text = SMALL.replace("{en: A member freezes., zh: 一个成员冻结。}", "{zh: 一个成员冻结。}")
    assert play(text=text).output.startswith("small: 一个成员冻结。\n")
    assert play("--dry-run", text=text).output.startswith("small: 一个成员冻结。\n")
    assert play(text=text.replace("story: {zh: 一个成员冻结。}\n", "")).output.startswith("    0.0")


def assign_twice(simulation: Simulation) -> None:
    """Two owners, made up: no machine of ours does that."""
    for member in ("a", "b"):
        simulation.world.emit(PartitionsAssigned("billing", member, 99, {"orders": (0,)}, {"orders": (0,)}))


def test_a_broken_rule_is_shown_with_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simulation, "read_back", assign_twice)
    result = play()
    assert result.exit_code == 1
    assert "  NO  two-owners: generation 99 (at " in result.output
    assert "  NO  two-owners: generation 99" in play("--quiet").output


# How much is written down


@pytest.mark.parametrize("level", list(Level))
def test_the_journal_has_as_much_as_its_level_says(level: Level) -> None:
    assert play("--journal", str(level), "--out", "there").exit_code == 0
    events = [each.event for each in read_log(Path("there"))]
    messages = [event for event in events if isinstance(event, MESSAGES)]
    apis = {event.api for event in messages if isinstance(event, RequestSent)}
    assert any(isinstance(event, GroupMoved) for event in events)
    assert bool(messages) is (level is not Level.COUNTS)
    assert ("JoinGroup" in apis) is (level is not Level.COUNTS)
    assert ("Fetch" in apis) is ("Heartbeat" in apis) is (level is Level.ALL)
    assert in_json(Path("there/run.json"))["messages"]["Fetch"] > 0


# What an interruption leaves


def interrupt(monkeypatch: pytest.MonkeyPatch, when: type) -> None:
    """Somebody presses ctrl-c when this is seen."""

    def press(stamped: Stamped) -> None:
        if isinstance(stamped.event, when):
            raise KeyboardInterrupt

    prepare = Simulation.prepare

    def prepared(self: Simulation) -> None:
        self.world.observers.append(press)
        prepare(self)

    monkeypatch.setattr(Simulation, "prepare", prepared)


def test_an_interrupted_run_leaves_a_log_and_a_verdict_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, FaultBegan)
    result = play("--out", "there")
    assert result.exit_code == 2
    assert result.stderr == "seesaw run: interrupted; what was seen so far is written down\n"
    verdict = in_json(Path("there/verdict.json"))
    assert (verdict["verdict"], verdict["interrupted"], verdict["virtual_ms"]) == ("unknown", True, 3000)
    assert in_json(Path("there/run.json"))["ended"] is True
    assert isinstance(max(read_log(Path("there")), key=lambda each: each.at).event, FaultBegan)
    assert verdict["expectations"][0]["why"] == "the run was interrupted before it could come true"
    assert Path("there/log/story.log").read_text(encoding="utf-8").count("\n") > 10


def test_a_run_that_is_interrupted_while_it_is_built_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt(monkeypatch, TopicCreated)
    assert play("--out", "there").exit_code == 2
    assert in_json(Path("there/verdict.json"))["interrupted"] is True
    assert any(isinstance(each.event, TopicCreated) for each in read_log(Path("there")))


def test_a_broken_rule_is_broken_even_if_the_run_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_twice_and_press(self: Simulation) -> None:
        assign_twice(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Simulation, "heal", give_twice_and_press)
    assert play("--out", "there", expect=WRONG).exit_code == 2
    verdict = in_json(Path("there/verdict.json"))
    assert (verdict["verdict"], verdict["expectations"][0]["outcome"]) == ("invalid", "unknown")


def test_while_it_runs_it_says_that_it_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    prepare = Simulation.prepare

    def look(self: Simulation) -> None:
        seen.append(in_json(Path("there/run.json"))["ended"])
        prepare(self)

    monkeypatch.setattr(Simulation, "prepare", look)
    play("--out", "there")
    assert seen == [False]


# Without the command


def test_a_run_without_a_place_writes_nothing() -> None:
    result = Run(read_scenario(a_file()), seed=3).play()
    assert (result.verdict, result.path, result.events) == ("valid", "", 0)
    assert on_disk() == ["small.yaml"]


def test_a_run_without_checks_judges_its_expectations_only() -> None:
    result = Run(read_scenario(a_file()), checked=False, level=Level.COUNTS).play()
    assert result.verdict == "valid"
    assert result.rules == ()


def test_topics_that_cannot_be_made_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.broker.image.MAX_PARTITIONS", 1)
    monkeypatch.setattr("cluster.broker.controller.MAX_PARTITIONS", 1, raising=False)
    with pytest.raises(NotReady, match="orders: "):
        Run(read_scenario(a_file())).play()
