"""Commands for logs of one kind: ``evalkit KIND``, created from its entry in the registry, and ``collect KIND``."""

import sys
from typing import Any

import click

from evalkit._text import counted_noun
from evalkit.cli.options import LISTS, click_option, print_runs, refuse, split, with_storage
from evalkit.compare.terminal import answer
from evalkit.display.follow import Following
from evalkit.display.terminal import NO_ANSWER, printed_table, summary
from evalkit.io.screen import progress_bar, show_live
from evalkit.io.text import plain
from evalkit.io.write import OUTPUT, check_output, write_frame
from evalkit.kinds import dataset
from evalkit.kinds.every_eval_ever import SCHEMA, SUFFIX, write_every_eval_ever
from evalkit.kinds.kind import LogKind
from evalkit.kinds.names import kind_names
from evalkit.kinds.options import COMMON, Option
from evalkit.kinds.pipeline import load
from evalkit.kinds.registry import kind_named

SHORTEST_INTERVAL = 0.5  # minimum time between two updates, in seconds
_SOURCES: click.Parameter = click.Argument(["sources"], nargs=-1, required=True, metavar="SOURCE...")
_READING = (
    Option("pattern", str, "", "Pattern for the names of files in folders.", "GLOB"),
    Option("no_recursive", bool, False, "Only files of the folder itself, not of its subfolders."),
    Option("jobs", int, None, "Number of processes.  [default: all cores for many files]", "N"),
)
_LIST = Option("list", LISTS, None, "Print these runs with their ids instead.")
_ALL = Option("all", bool, False, "Print everything: all models, runs, notes and files.")
_FOLLOWING = (
    Option("follow", bool, False, "Update while an experiment is running; Ctrl-C stops."),
    Option("interval", float, None, "Time between updates.  [default: 5]", "SECONDS"),
    Option("expected", int, None, "Runs expected of each model; of Mindcraft, tasks.", "N"),
    Option("idle", float, None, "Time without changes after which a run counts as finished.", "SECONDS"),
    Option("until_done", bool, False, "Stop once every model has done the expected number."),
)


def _reading(values: dict[str, Any]) -> dict[str, Any]:
    """Pop the values of the options in `_READING`, and return them as keywords of `load`."""
    reading = split(values, _READING)
    reading["recursive"] = not reading.pop("no_recursive")
    return reading


def kind_command(kind: LogKind) -> click.Command:
    """Create the command that reads logs of a kind."""

    @with_storage
    def run(sources: tuple[str, ...], output: str | None, **values: Any) -> None:
        reading, following = _reading(values), split(values, _FOLLOWING)
        which, everything = values.pop("list"), values.pop("all")
        options, views = split(values, (*kind.options, *COMMON)), split(values, kind.command.views)
        unfollowed = {o.name: views[o.name] for o in kind.command.views if not o.followed}
        if following.pop("follow"):
            refuse("with --follow", output=output, list=which, all=everything, **unfollowed)
            interval, until_done = following.pop("interval") or 5.0, following.pop("until_done")
            if interval < SHORTEST_INTERVAL:
                raise click.UsageError(f"--interval {interval:g}: at least {SHORTEST_INTERVAL:g} seconds")
            look = Following(kind, list(sources), {**options, **views}, **following, **reading).look
            show_live(look, sys.stdout, interval=interval, until_done=until_done)
            return
        refuse("without --follow", **following)
        is_export = bool(output) and str(output).lower().rstrip("/").endswith(SUFFIX)
        if which:
            refuse("with --list", all=everything, **unfollowed)
            refuse(f"as {SUFFIX} with --list", output=output if is_export else None)
        if output and not is_export:
            check_output(output)
        logs = load(list(sources), kind, **reading, **options)
        if which:
            print_runs(logs, which, output)
            return
        grouped = any(views[option.name] for option in kind.command.views if option.regroups)
        first = NO_ANSWER if grouped or len(logs.runs) < 2 else answer(logs.runs, kind.planned(logs))
        print(summary(logs, {**views, "all": everything}, first))
        if is_export:
            done = write_every_eval_ever(logs, str(output))
            of = f"{counted_noun(done.runs, 'run')} of {counted_noun(done.evaluations, 'evaluation')}"
            print(f"\n{of} written to {plain(output)}, in the schema of Every Eval Ever {SCHEMA}.")
            print("What the schema has no place for:")
            for one in done.notes.notes:
                print(f"  {plain(one)}")
        elif output:
            write_frame(printed_table(logs, {**views, "all": everything}, first), output)

    text = (
        f"Also write the printed table, or with --list the runs, to {OUTPUT}; or the runs with their scores to "
        f"FOLDER{SUFFIX}, in the schema of Every Eval Ever."
    )
    output = Option("output", str, None, text, "FILE")
    options = (*kind.options, *COMMON, *kind.command.views, _ALL, _LIST, output, *_READING, *_FOLLOWING)
    parameters = [_SOURCES, *map(click_option, options)]
    return click.command(kind.name, params=parameters, help=kind.command.help)(run)


@click.command()
@click.argument("kind", type=click.Choice(kind_names()))
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", "-o", required=True, metavar="DATASET", help="Folder or URL of the dataset.")
@with_storage
def collect(kind: str, sources: tuple[str, ...], output: str, **values: Any) -> None:
    """Collect logs of a kind in a dataset that replaces their folder in every command: evalkit mindcraft DATASET.

    SOURCE is a folder, a file, a quoted glob or a URL. The next time, only new and changed files are read, and files
    that were deleted are dropped. You can stop at any time; the same command continues from there.
    """
    if output.lower().startswith("memory://"):
        raise click.UsageError(f"{output} is gone when the command ends; name a folder or a persistent URL")
    try:
        with progress_bar() as progress:
            done = dataset.collect(kind_named(kind), list(sources), output, **_reading(values), progress=progress)
    except KeyboardInterrupt:
        message = "stopped; the same command continues from here"
        raise KeyboardInterrupt(message) from None
    print(f"{plain(output)}: {done.summary()}")


collect.params += map(click_option, _READING)
