"""seesaw run: play a scenario, tell it while it happens, and say whether it came out as expected."""

import sys
from pathlib import Path

import click
import msgspec

from cluster.checks import Outcome
from cluster.events import (
    BrokerFenced,
    ConsumerFailed,
    Event,
    FaultBegan,
    FaultEnded,
    GroupMoved,
    LeaderElected,
    MemberRemoved,
    RebalanceStarted,
)
from cluster.faults import Duration
from cluster.sim.journal import Level
from scenarios.reading import BadFile, flow
from scenarios.runner import BadPlace, Result, Run, new_place, rarely_collect
from scenarios.schema import Scenario, read_scenario
from scenarios.simulation import NotReady

EXIT = {Outcome.VALID: 0, Outcome.INVALID: 1, Outcome.UNKNOWN: 2}
COLOURS: dict[type[Event], str] = {
    FaultBegan: "red", FaultEnded: "green", MemberRemoved: "yellow", ConsumerFailed: "red", LeaderElected: "magenta",
    BrokerFenced: "magenta", RebalanceStarted: "cyan", GroupMoved: "cyan"}
MARKS = {Outcome.VALID: ("ok", "green"), Outcome.UNKNOWN: ("??", "yellow"), Outcome.INVALID: ("NO", "red")}
SAYS = {
    "en": {"expected": "expected", "rules": "safety rules", "allowed": "counted, since the contract allows it",
           "files": "files", "nothing": "nothing was expected"},
    "zh": {"expected": "预期", "rules": "安全规则", "allowed": "计数（协议允许）", "files": "文件",
           "nothing": "没有声明预期"},
}


@click.command()
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--on", type=click.Choice(["sim", "ray"]), default="ray", show_default=True, help="Where it runs.")
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same run, to the byte.")
@click.option("--out", type=click.Path(path_type=Path), help="The run's directory, instead of runs/<scenario>-<time>.")
@click.option("--journal", type=click.Choice([str(level) for level in Level]), default="protocol", show_default=True,
              help="How much of the messages is written down.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="How it is told.")
@click.option("--dry-run", is_flag=True, help="Read and check the scenario, say what would be done, and do nothing.")
@click.option("--quiet", is_flag=True, help="Only the verdict.")
@click.option("--json", "as_json", is_flag=True, help="Only the verdict, as JSON.")
def run(scenario: Path, on: str, seed: int, out: Path | None, journal: str, lang: str, dry_run: bool, quiet: bool,
        as_json: bool) -> None:
    """Play a scenario: build its cluster, start its clients, do to them what its timeline says, and judge what came of
    it.

    What matters is told as it happens; then each expectation and each safety rule. Exit codes: 0 valid, 1 invalid, 2
    unknown, or it could not run.

    \b Example: seesaw run scenarios/gc-pause.yaml --on sim --seed 7
    """
    try:
        plan = read_scenario(scenario)
        if dry_run:
            click.echo(_plan(plan))
            return
        if on == "ray":
            _stop("running on Ray is not here yet: add --on sim")
        played = Run(plan, seed, place=new_place(plan, out), level=Level(journal))
        result = _play(played, plan, lang, silent=quiet or as_json)
    except (BadFile, BadPlace, NotReady, OSError) as problem:
        _stop(str(problem))
    except KeyboardInterrupt:
        _stop("interrupted; what was seen so far is written down")
    click.echo(msgspec.json.encode(result).decode() if as_json else _judged(result, lang, quiet))
    sys.exit(EXIT[result.verdict])


def _play(played: Run, plan: Scenario, lang: str, *, silent: bool) -> Result:
    assert played.place is not None
    rarely_collect()
    (played.place / "log").mkdir()
    with (played.place / "log" / "story.log").open("w", encoding="utf-8") as log:
        def say(at: int, about: type[Event], text: str) -> None:
            line = f"{at / 1000:9.3f} s  {text}"
            log.write(f"{line}\n")
            if not silent:
                click.secho(line, fg=COLOURS.get(about))
        if not silent and plan.story:
            click.secho(f"{plan.name}: {_story(plan, lang)}\n", bold=True)
        narrator = played.tell(say, lang)
        result = played.play()
        narrator.finish()
    return result


def _story(plan: Scenario, lang: str) -> str:
    """In this language, or in the one that it is told in."""
    return plan.story.get(lang) or next(iter(plan.story.values()), "")


def _judged(result: Result, lang: str, quiet: bool) -> str:
    says = SAYS[lang]
    lines = [] if quiet else ["", f"{says['expected']}:"]
    for each in result.expectations:
        mark, colour = MARKS[each.outcome]
        lines.append(f"  {click.style(mark, fg=colour)}  {flow(each.expect)}\n        {each.why}")
    if not result.expectations and not quiet:
        lines.append(f"  {says['nothing']}")
    rules = [click.style(each.rule, fg=MARKS[each.outcome][1]) for each in result.rules]
    broken = [f"  {click.style('NO', fg='red')}  {breach.kind}: {breach.evidence} ({_where(breach)})"
              for each in result.rules for breach in each.breaches[:3]]
    counted = ", ".join(f"{name} {count}" for name, count in result.counted.items())
    if not quiet:
        lines += [f"{says['rules']}: {', '.join(rules)}", *broken, f"{says['allowed']}: {counted}",
                  f"{says['files']}: {result.path}"]
    elif broken:
        lines += broken
    lines.append(click.style(result.verdict.upper(), fg=MARKS[result.verdict][1], bold=True))
    return "\n".join(lines)


def _where(breach: object) -> str:
    fields = msgspec.to_builtins(breach)
    return ", ".join(f"{key} {value}" for key, value in fields.items() if key not in ("kind", "evidence"))


def _plan(plan: Scenario) -> str:
    cluster = plan.cluster
    lines = [f"{plan.name}: {_story(plan, 'en')}".strip(),
             f"cluster: {cluster.brokers} brokers on {cluster.nodes} nodes",
             *(f"  topic {name}: {topic.partitions} partitions, {topic.replication_factor} replicas"
               for name, topic in cluster.topics.items()),
             *(f"group {group.name}: {group.members} members, {', '.join(group.topics) or group.pattern}"
               for group in plan.groups.values()),
             *(f"producer {number}: {each.config.records_per_second:g} records a second to {each.topic}, acks "
               f"{each.config.acks}" for number, each in enumerate(plan.producers, 1)),
             *(f"{step.at / 1000:9.3f} s  {step.name} {_told(step.action)}" for step in plan.timeline),
             f"{plan.until / 1000:9.3f} s  the end", f"{len(plan.expect)} expectations"]
    return "\n".join(lines)


def _told(action: object) -> str:
    fields = msgspec.structs.fields(action)            # type: ignore[arg-type]
    given = {field.encode_name: getattr(action, field.name) for field in fields}
    return ", ".join(f"{key} {Duration(value) if isinstance(value, Duration) else value}"
                     for key, value in given.items() if value not in (None, (), 0))


def _stop(problem: str) -> None:
    click.echo(f"seesaw run: {problem}", err=True)
    sys.exit(2)
