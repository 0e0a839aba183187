"""seesaw conformance: is every answer the one that a real broker gave?"""

import sys
from pathlib import Path

import click
import msgspec

from scenarios.conformance import Outcome, Protocol, play_file
from scenarios.reading import BadFile, flow


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--only", type=click.Choice(["classic", "consumer"]), help="Only the cases of one protocol.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each case, then one for the sum.")
def conformance(files: tuple[Path, ...], only: Protocol | None, as_json: bool) -> None:
    """Play what a real Kafka broker was asked, and compare every answer and every stated duration.

    Prints each difference as request, recorded answer and ours, then `N cases, M differ`. Accidents of the recorded
    broker (`quirk: true`) are reported and not counted. The exit code is 0 only if none differ and N > 0.

    \b
    Example:
      seesaw conformance --only classic tests/conformance/groups.yaml
    """
    counted = differ = quirks = 0
    for path in files:
        try:
            for outcome in play_file(path, only):
                counted += not outcome.is_quirk
                quirks += outcome.is_quirk
                differ += bool(outcome.differences) and not outcome.is_quirk
                click.echo(msgspec.json.encode(outcome).decode() if as_json else _told(outcome), nl=as_json)
        except BadFile as problem:
            click.echo(f"seesaw conformance: {problem}", err=True)
            sys.exit(2)
    if as_json:
        click.echo(msgspec.json.encode({"cases": counted, "differ": differ, "quirks": quirks}).decode())
    else:
        if quirks:
            click.echo(f"{quirks} quirks of the recorded broker, not counted")
        click.echo(f"{counted} cases, {differ} differ")
    sys.exit(1 if differ else 0 if counted else 2)


def _told(outcome: Outcome) -> str:
    if not outcome.differences:
        return ""
    lines = [f"{outcome.case}{' (a quirk of the recorded broker, not counted)' if outcome.is_quirk else ''}"]
    for each in outcome.differences:
        lines += [f"  request   {flow(each.request)}", f"  recorded  {flow(each.recorded)}",
                  f"  ours      {flow(each.ours)}"]
    return "\n".join(lines) + "\n\n"
