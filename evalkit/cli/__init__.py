"""The command line, a thin layer: each command calls a public function. The kinds in the registry have commands, too.

The module of a command is imported when the command is called, so that ``evalkit --help`` does not import pandas.
Output uses print, not click.echo, which would write UTF-8 to a terminal that supports only ASCII.
"""

import sys
from importlib import import_module
from typing import Any

import click

from evalkit._version import __version__, code_version
from evalkit.io.paths import SourceError, check_path
from evalkit.io.text import plain, warnings_as_lines
from evalkit.kinds.names import BUILT_IN, kind_names

_COMMANDS = {  # module of each command, and its line in ``evalkit --help``
    "collect": ("kinds", "Collect logs in a dataset of Parquet files."),
    "show": ("runs", "Print a run turn by turn."),
    "view": ("runs", "Write a page for each run, and a list of them."),
    "detect": ("runs", "Print the kinds of logs in a source."),
    "compare": ("runs", "Compare models with each other, or with a baseline."),
    "audit": ("runs", "Check what to know before you believe a leaderboard."),
    "failures": ("runs", "Say why runs fail: events, failure modes, and what differs from successes."),
    "label": ("labels", "Label runs or turns by hand, drawn at random."),
    "judges": ("labels", "Compare judges with hand labels, and correct their rates."),
    "report": ("reports", "Make HTML reports with an index from a folder of logs."),
    "lab": ("reports", "Open the notebooks for a folder of logs in JupyterLab."),
    "notebooks": ("reports", "Copy the notebooks behind the reports for editing."),
}


class Commands(click.Group):
    """The group of all commands. For an unusable source, a command prints one line and exits with code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the kinds, then the other commands."""
        return [*kind_names(), *_COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command, or create a kind's command."""
        if name in _COMMANDS:
            return getattr(import_module(f"evalkit.cli.{_COMMANDS[name][0]}"), name)
        if name in kind_names():
            return import_module("evalkit.cli.kinds").kind_command(_kind_named(name))
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        rows = []
        for name in kind_names():
            try:
                rows.append((name, BUILT_IN[name].summary if name in BUILT_IN else _kind_named(name).summary))
            except SourceError as error:  # the kind is from another package, which can't be imported
                rows.append((name, plain(f"can't be used: {error}")))
        rows += [(name, summary) for name, (_, summary) in _COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments. Refuse credentials in them, since tables, pages and messages repeat most arguments."""
        try:
            for argument in args:
                check_path(argument)
        except SourceError as error:
            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Print an error that the user can fix on one line; exit with code 130 after Ctrl-C."""
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # characters that a terminal can't show become question marks
        try:
            with warnings_as_lines():
                result = super().invoke(ctx)
            sys.stdout.flush()  # raises BrokenPipeError here, where it is handled
            return result
        except SourceError as error:  # an invalid batch prints a line for each fault
            for fault in getattr(error, "faults", [error]):
                click.echo(f"evalkit: {plain(fault)}", err=True)
            ctx.exit(2)
        except click.UsageError as error:  # its message may repeat arguments, such as file names
            raise click.UsageError(plain(error.format_message()), error.ctx) from None
        except KeyboardInterrupt as stopped:
            if sys.stderr.isatty():
                click.echo(err=True)  # end the line on which the terminal shows ^C
            if str(stopped):
                click.echo(f"evalkit: {stopped}", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader of the pipe exited, as in `evalkit … | head`
            sys.stderr.close()
            ctx.exit(0)


def _kind_named(name: str) -> Any:
    return import_module("evalkit.kinds.registry").kind_named(name)


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, help="Show the version and a hash of the code.")
@click.pass_context
def main(ctx: click.Context, version: bool) -> None:
    """Turn raw LLM-agent logs into tables, figures and HTML reports.

    \b
    evalkit detect FOLDER    prints the kinds of logs in it
    evalkit report FOLDER    makes all reports, in ./reports
    evalkit KIND FOLDER      prints the table; the kinds are listed below

    No logs yet? Use samples:mindcraft, samples:crafter, samples:steps or samples:trajectories.
    """
    if version:
        print(f"evalkit {__version__} (code {code_version().partition('+')[2]})")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
