"""The command that shows why runs fail."""

from typing import Any

import click

from evalkit.cli.options import of_kind, with_reading_options, write_to
from evalkit.failures.search import events
from evalkit.failures.terminal import describe_failures
from evalkit.io.write import check_output, write_frame
from evalkit.kinds.pipeline import load


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@of_kind
@with_reading_options
@click.option(
    "--all", "everything", is_flag=True, help="Print everything: all modes, events, errors, and pairs of runs."
)
@write_to("all events")
def failures(
    sources: tuple[str, ...], kind: str | None, output: str | None, everything: bool, given: dict[str, Any]
) -> None:
    """Show why runs of SOURCE fail: events such as repeated calls and ignored errors, counted in all transcripts.

    Rules find events; no language model does. `evalkit show SOURCE --run RUN` prints a run with the turns that are
    named. The rules and their measured precision are in docs/failures.md.
    """
    if output:
        check_output(output)
    logs = load(list(sources), kind or "", **given)
    print(describe_failures(logs, everything=everything))
    if output:
        write_frame(events(logs), output)
