"""Commands that label runs by hand, and compare judges with these labels."""

from collections.abc import Callable
from typing import Any

import click

from evalkit.cli.options import (
    COUNT,
    checked,
    of_kind,
    print_choices,
    with_logs,
    with_reading_options,
    with_storage,
    write_to,
)
from evalkit.display.terminal import chosen_lines
from evalkit.io import SourceError, plain, write_frame
from evalkit.kinds.logs import Logs
from evalkit.kinds.pipeline import load
from evalkit.labels import Session, compare_judges, judge_table, next_units, read_labels, read_verdicts

ROLES = ("run_id", "turn", "judge", "label")  # roles of the columns in files of verdicts


@click.command()
@click.option("--question", required=True, metavar="TEXT", help="A question that yes or no answers.")
@click.option("--output", "-o", default="labels.csv", show_default=True, metavar="FILE", help="File of labels (.csv).")
@click.option("--number", "-n", type=COUNT, default=60, show_default=True, metavar="N", help="How many to label.")
@click.option("--turns", is_flag=True, help="Label turns of agents, and not runs.")
@click.option("--seed", default=0, show_default=True, help="Of the random order.")
@click.option("--who", default="", metavar="NAME", help="Who labels.  [default: your user name]")
@click.option("--page", metavar="FILE.html", help="Write a page to label in a browser, without a server, instead.")
@with_logs
def label(read: Callable[[], Logs], page: str | None, **session: Any) -> None:
    """Label runs of SOURCE by hand, drawn at random; stop at any time, and go on with the same command.

    Each model and outcome has its share of the sample. The transcripts hide both. Every label is stored at once.
    Several people can use one file, or one each; with the same seed they label the same runs.
    """
    from evalkit.labels.page import write_page
    from evalkit.labels.terminal import label_in_terminal

    logs = read()
    print_choices(logs)
    own = Session(logs, **session)
    if page:
        print(plain(write_page(own, page)))
    else:
        label_in_terminal(own)


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--labels", multiple=True, required=True, metavar="FILE", help="Hand labels; may be repeated.")
@click.option("--verdicts", multiple=True, required=True, metavar="FILE", help="Verdicts of judges; may be repeated.")
@click.option(
    "--question", default="", metavar="TEXT", help="The question whose labels count, of several in the files."
)
@click.option("--yes", default="", metavar="TEXT", help="The label that means yes.  [default: yes, true, 1]")
@click.option("--seed", default=0, show_default=True, help="The seed given to `evalkit label`.")
@click.option("--next", "following", metavar="FILE", callback=checked, help="Write the units to label next.")
@click.option("--all", "everything", is_flag=True, help="Print everything: all judges and models.")
@of_kind
@with_reading_options
@with_storage
@write_to("the judges")
def judges(
    sources: tuple[str, ...],
    labels: tuple[str, ...],
    verdicts: tuple[str, ...],
    yes: str,
    following: str | None,
    everything: bool,
    kind: str | None,
    output: str | None,
    given: dict[str, Any],
    **drawn: Any,
) -> None:
    """Compare judges of SOURCE with hand labels, and correct the rates that they give.

    Labels come from `evalkit label`, or from any table with run_id and label. Verdicts have run_id, judge, and a label
    (yes or no, 1 or 0) or a score; --column label=NAME (or score, run_id, turn, judge) names a column. Both files may
    use the ids in the user's own table of runs. Rates are valid only if the labelled runs were drawn at random.
    """
    from evalkit.labels.judges import first_judge
    from evalkit.labels.terminal import describe_judges

    pairs = given.pop("columns", ())
    roles = [pair for pair in pairs if pair.partition("=")[0] in ROLES]
    scores = [pair for pair in pairs if pair.startswith("score=")]
    try:
        judged = read_verdicts(verdicts, [*roles, *scores], yes)
        roles += scores
    except SourceError:  # the score column belongs to the table of runs, not to the verdicts
        judged = read_verdicts(verdicts, roles, yes)
    if len(roles) < len(pairs):  # the other pairs name columns of the table of runs
        given["columns"] = tuple(pair for pair in pairs if pair not in roles)
    logs = load(list(sources), kind or "", **given)
    compared = compare_judges(logs, read_labels(labels), judged, **drawn)
    warned, chosen = chosen_lines(logs)
    print("\n".join([*warned, describe_judges(compared, everything=everything), *chosen]))
    if output or following:
        table = judge_table(compared)
        if output:
            write_frame(table, output)
        if following:
            write_frame(next_units(compared, first_judge(table)), following)
