"""The command line: `seesaw --help`. Each command lives in a file of its name."""

import click

from seesaw.assignors import assignors
from seesaw.conformance import conformance
from seesaw.run import run
from seesaw.soak import soak
from seesaw.table import table


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="seesaw", prog_name="seesaw")
def main() -> None:
    """An emulator of Kafka's consumer groups: brokers, coordinators and consumers that break as production breaks."""


for _command in (assignors, conformance, run, soak, table):
    main.add_command(_command)
