"""Commands that read logs of any kind: show, view, detect, compare, audit, failures."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from evalkit.cli import options
from evalkit.compare.audit import audit as audit_logs
from evalkit.compare.baseline import against
from evalkit.compare.comparison import comparison
from evalkit.compare.ranking import leaderboard, rank_table
from evalkit.compare.terminal import describe_audit, describe_baseline, describe_comparison
from evalkit.display.terminal import choose, chosen_lines, file_lines
from evalkit.io.text import plain
from evalkit.io.write import write_frame
from evalkit.kinds.detection import describe_source, kinds_of_source
from evalkit.kinds.logs import Logs
from evalkit.kinds.pipeline import load
from evalkit.kinds.runs import Value

TARGETS: dict[str, Any] = {"new": "new tasks", "these": "these tasks"}
VALUES = click.Choice(["is_successful", "score"])
of_value = click.option("--value", type=VALUES, help="What to compare.  [default: success]")


@click.command()
@click.argument("source")
@click.option("--run", metavar="RUN", help="The run's id, or its beginning.  [default: the only one]")
@click.option("--list", "which", type=click.Choice(options.LISTS), help="Print these runs with their ids instead.")
@options.of_kind
@options.with_reading_options
@options.with_storage
@click.option("--last", type=options.COUNT, metavar="N", help="Only the last N turns.")
@options.write_to("the listed runs")
@options.unmasked
def show(
    source: str,
    run: str | None,
    which: Any,
    kind: str | None,
    last: int | None,
    output: str | None,
    mask: bool,
    given: dict[str, Any],
) -> None:
    """Print a run turn by turn. Without --run, list the runs of SOURCE: a log, a folder, a dataset or a URL."""
    kinds = [kind or ""]
    if run and not kind:  # an id begins with the first letter of its kind; several kinds may share it
        kinds = [known.name for known in kinds_of_source(source) if run.startswith(f"{known.name[0]}-")] or kinds
    for name in kinds:
        logs = load(source, name, **given)
        if logs.runs["run_id"].str.startswith(run or "").any():
            break
    if which or (not run and len(logs.runs) > 1):
        options.print_runs(logs, which or "all", output)
        return
    options.refuse("with one run", output=output)
    options.print_paged(logs.show(run or "", mask=mask).text(last))
    options.print_choices(logs)


@click.command()
@click.option("--output", "-o", default="evalkit-view", show_default=True, metavar="DIR", help="Folder for the pages.")
@click.option("--list", "which", type=click.Choice(options.LISTS), default="all", show_default=True, help="Which runs.")
@options.with_logs
@options.unmasked
def view(read: Callable[[], Logs], output: str, which: Any, mask: bool) -> None:
    """Write a page for each run of SOURCE and a page that lists them; print the path of the list."""
    from evalkit.evidence import write_view  # imported here, since it imports matplotlib, which is slow

    logs = read()
    page = write_view(logs, choose(logs.runs, which), Path(output), "" if which == "all" else which, mask=mask)
    options.print_choices(logs)
    print(plain(page))


@click.command()
@click.argument("source")
@options.with_storage
def detect(source: str) -> None:
    """Print the kinds of logs in SOURCE, detected from the first bytes of files, and the commands that read them."""
    print(describe_source(source))


@click.command()
@options.with_logs
@of_value
@click.option("--baseline", metavar="MODEL", help="Compare every model with this one; exit code 1 on a regression.")
@click.option(
    "--margin", type=options.POSITIVE, metavar="NUMBER", help="The largest loss that is not a regression; see above."
)
@click.option("--target", type=click.Choice([*TARGETS]), help="With --baseline: on new tasks, or on these run again.")
@click.option("--strict", is_flag=True, help="With --baseline: exit code 1 also if a model is not decided.")
@options.detecting
@click.option("--all", "everything", is_flag=True, help="Print everything: all models, pairs and notes.")
@options.write_to("the models, or with --baseline their verdicts,")
def compare(
    read: Callable[[], Logs],
    baseline: str | None,
    target: str | None,
    strict: bool,
    detect: float | None,
    output: str | None,
    everything: bool,
    value: Value | None,
    margin: float | None,
) -> None:
    """Compare the models of SOURCE on the tasks that they share. Each task has the same weight.

    With --baseline, every model gets a verdict: a regression is a significant loss that may be as large as the margin;
    a model is not worse if its loss is significantly smaller. The margin has the unit of what is compared: 0.05 of a
    rate, the default, is 5 percentage points; 2 of a score is 2 points. Scores have no default.

    To compare two versions of an agent on a fixed benchmark, add --target these: this lists the tasks that the new
    version broke and fixed, with their runs.
    """
    if baseline:
        options.refuse("with --baseline", detect=detect)
    else:
        options.refuse("without --baseline", strict=strict, target=target)
    logs = read()
    runs = logs.runs
    passed = True
    warned, below = chosen_lines(logs, stated=[] if baseline else ["compared_by"])
    if logs.ledger["status"].ne("used").any():
        files = file_lines(logs.ledger, len(runs), everything=everything)
        below += files if everything else files[:1]
    shown: dict[str, Any] = {"below": below, "everything": everything}
    if baseline:
        how: dict[str, Any] = {"margin": margin, "target": TARGETS[target or "new"]}
        compared = comparison(runs, value or "")
        table = against(compared, baseline, **how)
        text, passed = describe_baseline(compared, baseline, strict=strict, table=table, **shown, **how)
    else:
        board = leaderboard(runs, value or "", margin=margin, planned=logs.kind.planned(logs))
        table = rank_table(board)
        text = describe_comparison(runs, value=value, detect=detect or 0.0, board=board, **shown)
    print("\n".join([*warned, text]))
    if output:
        write_frame(table, output)
    sys.exit(0 if passed else 1)


@click.command()
@options.with_logs
@of_value
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option("--strict", is_flag=True, help="Exit code 1 if a check finds an error.")
@click.option("--all", "everything", is_flag=True, help="Print everything: also checks that found nothing.")
@options.write_to("all checks")
def audit(
    read: Callable[[], Logs],
    value: Value | None,
    checks: tuple[str, ...],
    strict: bool,
    everything: bool,
    output: str | None,
) -> None:
    """Check what to know before you publish or believe the leaderboard of SOURCE.

    Each check counts what may be wrong: missing trials, copies, failures of the infrastructure, answers that leaked,
    and more. It also shows whether the ranking depends on it. If the logs lack what a check needs, the output names it.
    """
    logs = read()
    try:
        found = audit_logs(logs, value or "", checks=checks)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    warned, chosen = chosen_lines(logs)
    print("\n".join([*warned, describe_audit(found, everything=everything), "", *chosen]))
    if output:
        write_frame(found.table, output)
    sys.exit(1 if strict and found.table["verdict"].eq("wrong").any() else 0)


@click.command()
@options.with_logs
@click.option(
    "--all", "everything", is_flag=True, help="Print everything: all modes, events, errors, and pairs of runs."
)
@options.write_to("all events")
def failures(read: Callable[[], Logs], output: str | None, everything: bool) -> None:
    """Show why runs of SOURCE fail: events such as repeated calls and ignored errors, counted in all transcripts.

    Rules find events; no language model does. `evalkit show SOURCE --run RUN` prints a run with the turns that are
    named. The rules and their measured precision are in docs/failures.md.
    """
    from evalkit.failures.search import events
    from evalkit.failures.terminal import describe_failures

    logs = read()
    print(describe_failures(logs, everything=everything))
    if output:
        write_frame(events(logs), output)
