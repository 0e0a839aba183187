"""seesaw table: the protocol, as it is executed."""

import click
import msgspec

from cluster.coordinator.printed import SECTIONS, as_markdown, as_text


@click.command()
@click.option("--markdown", is_flag=True, help="The table as it stands in README.md.")
@click.option("--json", "as_json", is_flag=True, help="Every section as a list of rows.")
def table(markdown: bool, as_json: bool) -> None:
    """Print the protocol of a classic group: what happens, what is asked, what is done in each state.

    This is not a description: it is the data that the coordinator executes.

    \b
    Example:
      seesaw table | less -S
    """
    if as_json:
        click.echo(msgspec.json.encode({title: list(section()) for title, section in SECTIONS.items()}).decode())
    else:
        click.echo(as_markdown() if markdown else as_text(), nl=False)
