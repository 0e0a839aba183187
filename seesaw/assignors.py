"""seesaw assignors: do the assignors decide what Kafka's own decided?"""

import sys
from pathlib import Path

import click
import msgspec
import yaml

from scenarios.assignments import Outcome, play_case, read
from scenarios.reading import BadFile


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each case, then one for the sum.")
def assignors(files: tuple[Path, ...], as_json: bool) -> None:
    """Play recordings of Kafka's partition assignors, and compare who gets what.

    Prints each difference as case, round, input, recorded and ours, then `N cases, M differ`. The assignors of the
    server are not emulated: their cases are counted as skipped. An assignor of your own can be played by its name,
    see docs/assignors.md. The exit code is 0 only if none differ and there was something to play.

    \b
    Example:
      seesaw assignors tests/conformance/assignors.yaml
    """
    try:
        cases = [case for path in files for case in read(path)]
    except BadFile as problem:
        click.echo(f"seesaw assignors: {problem}", err=True)
        sys.exit(2)
    outcomes = []
    for outcome in map(play_case, cases):
        outcomes.append(outcome)
        click.echo(msgspec.json.encode(outcome).decode() if as_json else _told(outcome), nl=as_json)
    played = [outcome for outcome in outcomes if not outcome.skipped]
    counts = {"cases": len(played), "differ": sum(bool(outcome.differences) for outcome in played),
              "skipped": len(outcomes) - len(played), "open_rounds": sum(each.open_rounds for each in played),
              "open_as_recorded": sum(each.open_as_recorded for each in played)}
    click.echo(msgspec.json.encode(counts).decode() if as_json else _sum(counts))
    sys.exit(0 if played and not counts["differ"] else 1)


def _told(outcome: Outcome) -> str:
    return "".join(
        f"{outcome.case}, round {each.round}: {each.what}\n"
        f"  input     {_flow(each.input)}\n  recorded  {_flow(each.recorded)}\n  ours      {_flow(each.ours)}\n\n"
        for each in outcome.differences
    )


def _sum(counts: dict[str, int]) -> str:
    lines = []
    if counts["open_rounds"]:
        lines.append("In {open_rounds} rounds Kafka's hash order decides; {open_as_recorded} of ours are as recorded")
    lines.append("{cases} cases, {differ} differ" + (", {skipped} skipped" if counts["skipped"] else ""))
    return "\n".join(lines).format(**counts)


def _flow(value: object) -> str:
    """A value on one line, as it might stand in the file."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
