"""seesaw assignors: do the assignors decide what Kafka's own decided?"""

import sys
from pathlib import Path

import click
import msgspec

from scenarios.assignments import Outcome, play_case, read
from scenarios.reading import BadFile, flow


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each case, then one for the sum.")
def assignors(files: tuple[Path, ...], as_json: bool) -> None:
    """Play recordings of Kafka's partition assignors, and compare who gets what.

    Prints each difference as case, round, input, recorded and ours, then `N cases, M differ`. The assignors of the
    server are not emulated: their cases are reported as skipped. An assignor of your own can be played by its name,
    see docs/04-assignors.md. The exit code is 0 only if none differ and N > 0.

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
    sys.exit(1 if counts["differ"] else 0 if played else 2)


def _told(outcome: Outcome) -> str:
    return "".join(
        f"{outcome.case}, round {each.round}: {each.what}\n"
        f"  input     {flow(each.input)}\n  recorded  {flow(each.recorded)}\n  ours      {flow(each.ours)}\n\n"
        for each in outcome.differences
    )


def _sum(counts: dict[str, int]) -> str:
    lines = []
    if counts["open_rounds"]:
        lines.append("In {open_rounds} rounds Kafka's hash order decides; {open_as_recorded} of ours are as recorded")
    if counts["skipped"]:
        lines.append("{skipped} skipped: the assignors of the server are not emulated")
    lines.append("{cases} cases, {differ} differ")
    return "\n".join(lines).format(**counts)
