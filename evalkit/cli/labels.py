"""The commands that label runs by hand, and compare judges with these labels."""

from typing import Any

import click

from evalkit.cli.options import COUNT, of_kind, with_reading_options
from evalkit.io import plain
from evalkit.kinds.pipeline import load
from evalkit.labels import Session


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--question", required=True, metavar="TEXT", help="A question that yes or no answers.")
@click.option("--output", "-o", default="labels.csv", show_default=True, metavar="FILE", help="File of labels (.csv).")
@click.option("--number", "-n", type=COUNT, default=60, show_default=True, metavar="N", help="How many to label.")
@click.option("--turns", is_flag=True, help="Label turns of agents, and not runs.")
@click.option("--seed", default=0, show_default=True, help="Of the random order.")
@click.option("--who", metavar="NAME", help="Who labels.  [default: your user name]")
@click.option("--page", metavar="FILE.html", help="Write a page to label in a browser, without a server, instead.")
@of_kind
@with_reading_options
def label(
    sources: tuple[str, ...],
    kind: str | None,
    question: str,
    output: str,
    who: str | None,
    page: str | None,
    given: dict[str, Any],
    **drawn: Any,
) -> None:
    """Label runs of SOURCE by hand, drawn at random; stop at any time, and go on with the same command.

    Each model and outcome has its share of the sample. The transcripts hide both. Every label is stored at once.
    Several people can use one file, or one each; with the same seed they label the same runs.
    """
    from evalkit.labels.terminal import label_in_terminal

    session = Session(load(list(sources), kind or "", **given), question, output, who=who or "", **drawn)
    if page:
        from evalkit.labels import write_page

        print(plain(write_page(session, page)))
        return
    label_in_terminal(session)
