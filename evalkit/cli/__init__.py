"""The command line, a thin layer: every command calls one public function; those of kinds come from the registry.

Heavy imports are inside the commands, so that ``evalkit --help`` stays fast. Output is printed and not echoed: click
would write UTF-8 to a terminal that supports ASCII only.
"""

import click

from evalkit._version import __version__
from evalkit.cli.groups import Kinds
from evalkit.cli.kinds import COLLECT_HELP, collect_command, kind_command
from evalkit.cli.reports import notebooks, report
from evalkit.cli.runs import compare, detect, show, view


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from evalkit.io.versions import code_version

        print(f"evalkit {__version__} (code {code_version().partition('+')[2]})")
        ctx.exit()


@click.group(
    cls=Kinds, make=kind_command, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the version and a hash of the code.",
)  # fmt: skip
@click.pass_context
def main(ctx: click.Context) -> None:
    """Turn raw logs of LLM agents into tables, pictures and HTML reports.

    \b
    evalkit detect FOLDER    prints which logs are in it
    evalkit report FOLDER    makes all reports on them, in ./reports
    evalkit KIND FOLDER      prints the table; the kinds are listed below

    No logs at hand? Use samples:mindcraft, samples:crafter or samples:steps.
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


collect_group = Kinds(
    "collect", make=collect_command, help=COLLECT_HELP, short_help="Collect many logs in a dataset of Parquet files."
)
for command in (collect_group, show, view, detect, compare, report, notebooks):
    main.add_command(command)
