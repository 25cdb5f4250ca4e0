"""The command that shows why runs fail."""

from collections.abc import Callable

import click

from evalkit.cli.options import with_logs, write_to
from evalkit.failures.search import events
from evalkit.failures.terminal import describe_failures
from evalkit.io.write import write_frame
from evalkit.kinds.logs import Logs


@click.command()
@with_logs
@click.option(
    "--all", "everything", is_flag=True, help="Print everything: all modes, events, errors, and pairs of runs."
)
@write_to("all events")
def failures(read: Callable[[], Logs], output: str | None, everything: bool) -> None:
    """Show why runs of SOURCE fail: events such as repeated calls and ignored errors, counted in all transcripts.

    Rules find events; no language model does. `evalkit show SOURCE --run RUN` prints a run with the turns that are
    named. The rules and their measured precision are in docs/failures.md.
    """
    logs = read()
    print(describe_failures(logs, everything=everything))
    if output:
        write_frame(events(logs), output)
