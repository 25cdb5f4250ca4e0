"""The command line: a thin layer, every command calls one public function.

Heavy imports stand inside the commands, so that ``evalkit --help`` stays quick.
"""

import functools
import sys
from collections.abc import Callable

import click

from evalkit._version import __version__


def _reading(command: Callable) -> Callable:
    """Add the options of how files are read; the command gets them as `reading`, keywords of the function it calls."""

    @click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes to read with, where files are many.")
    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read on a Dask cluster instead, such as tcp://10.0.0.1:8786.",
    )
    @click.option("--storage-options", "storage", metavar="FILE", help="JSON file of fsspec's options for URLs.")
    @functools.wraps(command)
    def with_options(jobs, scheduler, storage, **arguments):
        from evalkit.io.parallel import cluster
        from evalkit.io.sources import read_storage_options
        from evalkit.io.told import told_warnings

        options = read_storage_options(storage) if storage else None
        with told_warnings(), cluster(scheduler):
            return command(reading={"jobs": jobs, "storage_options": options}, **arguments)

    return with_options


_COLLECT_OPTIONS = {"mindcraft": {"layout"}, "crafter": {"pattern"}, "steps": set()}


def _one_or_many(sources: tuple[str, ...]) -> str | list[str]:
    return sources[0] if len(sources) == 1 else list(sources)


def _following(*, only_stated: bool = False) -> Callable[[Callable], Callable]:
    """Add the options of following; the command gets `expected` and `follow`, None where it is to look once.

    With `only_stated`, nothing but --expected tells how much is expected.
    """

    def add_options(command: Callable) -> Callable:
        @click.option("--follow", is_flag=True, help="Look again and again while an experiment writes; Ctrl-C ends.")
        @click.option("--interval", type=click.FloatRange(0.5), metavar="SECONDS", help="Between looks.  [default: 5]")
        @click.option("--expected", type=click.IntRange(1), metavar="N", help="How many each model is to do.")
        @click.option("--until-done", is_flag=True, help="End once each model seen has done all that is expected.")
        @functools.wraps(command)
        def with_options(follow, interval, expected, until_done, **arguments):
            if not follow:
                _refuse("without --follow", interval=interval, expected=expected, until_done=until_done)
                return command(expected=None, follow=None, **arguments)
            if only_stated and expected is None:
                _refuse("without --expected", until_done=until_done)
            from evalkit.io.live import show_live

            live = functools.partial(show_live, out=sys.stdout, interval=interval or 5.0, until_done=until_done)
            return command(expected=expected, follow=live, **arguments)

        return with_options

    return add_options


def _refuse(where: str, **given: object) -> None:
    """Refuse options that were given and would do nothing."""
    for name in (name for name, value in given.items() if value is not None and value is not False):
        raise click.UsageError(f"--{name.replace('_', '-')} does nothing {where}")


class _Group(click.Group):
    """A group whose commands answer a source that can't be used with one line and exit code 2, and Ctrl-C with 130."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # as they stand here, not by the alphabet

    def invoke(self, ctx: click.Context):
        from evalkit.io.files import SourceError

        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")  # what a terminal can't show becomes a question mark
        try:
            return super().invoke(ctx)
        except SourceError as error:
            from evalkit.io.text import plain

            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        except KeyboardInterrupt as stopped:
            if sys.stderr.isatty():
                click.echo(err=True)  # ends the line in which the terminal shows ^C
            if str(stopped):
                click.echo(f"evalkit: {stopped}", err=True)
            ctx.exit(130)
        except BrokenPipeError:  # the reader of a pipe has left, as in `evalkit … | head`
            sys.stderr.close()
            ctx.exit(0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalkit")
def main() -> None:
    """Turn raw logs of LLM agents into tables, pictures and HTML reports.

    To begin with: evalkit mindcraft samples:mindcraft
    """


@main.command(short_help="Success rates of Mindcraft task runs.")
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option(
    "--tasks", multiple=True, metavar="PATH", help="Task definitions: file, folder or quoted glob. Repeatable."
)
@click.option("--by", multiple=True, metavar="COLUMN", help="Column to group by. Repeatable.  [default: model_name]")
@click.option("--layout", metavar="PATTERN", help="What the folders mean, such as '{model_name}/{task_id}'.")
@click.option(
    "--scale",
    type=click.Choice(["auto", "percent", "fraction"]),
    default="auto",
    show_default=True,
    help="What construction scores are logged in.",
)
@click.option("--original-mtimes", is_flag=True, help="The files' times are the experiment's own: gives durations.")
@click.option("--cooking", is_flag=True, help="Also cooking by blocked agents and by item, with overall rows.")
@click.option("--legacy", is_flag=True, help="Also what the original MineCollab scripts say of the folders, and why.")
@click.option("--output", help="Write the runs to FILE.csv, FILE.json or FILE.parquet.", metavar="FILE")
@_reading
@_following()
@click.option(
    "--idle", type=click.FloatRange(0), metavar="SECONDS", help="As said above.  [default: the task's timeout]"
)
def mindcraft(
    runs, tasks, by, layout, scale, original_mtimes, cooking, legacy, output, reading, idle, expected, follow
) -> None:
    """Show success rates of Mindcraft task runs: RUNS are folders, logs, quoted globs, URLs or a dataset of `collect`.

    With --follow, a run is finished once one of its logs holds a final message, or none of them has changed for --idle
    seconds. Until then it is running, and counts in no rate. A log that can't be read, and changed less than 10 seconds
    ago, is being written. Expected are the tasks that an experiment's results file names, else those of --tasks.
    """
    if follow:
        from evalkit.mindcraft.follow import Following

        _refuse("with --follow", cooking=cooking, legacy=legacy, output=output)
        options = {"layout": layout, "scale": scale, "original_mtimes": original_mtimes}
        follow(Following(_one_or_many(runs), tasks, by=by, expected=expected, idle=idle, **options, **reading).look)
        return
    _refuse("without --follow", idle=idle)
    from evalkit.io.output import check_output, write_frame

    if output:
        check_output(output)
    from evalkit.mindcraft import load
    from evalkit.mindcraft.terminal import cooking_text, legacy_text, overview_text

    logs = load(_one_or_many(runs), tasks, layout=layout, scale=scale, original_mtimes=original_mtimes, **reading)
    click.echo(overview_text(logs, by))
    if cooking:
        click.echo("\n" + cooking_text(logs))
    if legacy:
        click.echo("\n" + legacy_text(logs))
    if output:
        write_frame(logs.runs, output)


@main.command(short_help="One agent log of Mindcraft as a conversation.")
@click.argument("file")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
def show(file, last) -> None:
    """Print FILE, one agent log of Mindcraft, as a conversation."""
    from evalkit.mindcraft import conversation

    text = conversation(file, last, width=None)
    click.echo_via_pager(text) if sys.stdout.isatty() else click.echo(text, nl=False)


@main.command(short_help="Scores of Crafter session traces.")
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...")
@click.option("-v", "--verbose", is_flag=True, help="Print every trace, not only the summary.")
@click.option("--pattern", default="*.json", show_default=True, metavar="GLOB", help="Which files of the folder.")
@click.option("--no-recursive", is_flag=True, help="Only the folder's own files, not those of folders below.")
@click.option(
    "--counting",
    type=click.Choice(["achievement", "hook"]),
    default="achievement",
    show_default=True,
    help="Count every achievement that a hook names, or every hook once as the original trace_eval does.",
)
@click.option("--by-difficulty", is_flag=True, help="Also break the scores down by difficulty.")
@click.option("--output", metavar="FILE", help="Write results and ledger to FILE, as JSON.")
@_reading
@_following(only_stated=True)
def crafter(traces, verbose, pattern, no_recursive, counting, by_difficulty, output, reading, expected, follow) -> None:
    """Score Crafter session traces: TRACES are folders, files, quoted globs, URLs or a dataset of `collect`.

    Aborted traces have no score and are left out of all means; the mean with them at 0 stands beside.

    With --follow, a trace counts as soon as it can be read; one that can't, and changed less than 10 seconds ago, is
    being written.
    """
    options = {"pattern": pattern, "recursive": not no_recursive, "counting": counting, "by_difficulty": by_difficulty}
    if follow:
        from evalkit.crafter.follow import Following

        _refuse("with --follow", verbose=verbose, output=output)
        follow(Following(_one_or_many(traces), expected=expected, **options, **reading).look)
        return
    from evalkit.crafter.printing import report_traces

    report_traces(_one_or_many(traces), verbose=verbose, output=output, **options, **reading)


@main.command(short_help="Verdicts on the steps of a plan-and-execute analysis agent.")
@click.argument("histories", nargs=-1, required=True, metavar="HISTORY...")
@click.option("--details", is_flag=True, help="Show every step also of several histories.")
@click.option("--checks", is_flag=True, help="Show every check of every step.")
@click.option(
    "--step", type=click.IntRange(1), metavar="N", help="Print the report of record N (column #) of each history."
)
@click.option(
    "--output",
    metavar="FILE",
    help="Write steps (with --checks: checks) to FILE.csv, .json or .parquet; .otlp.json: spans.",
)
@_reading
def steps(histories, details, checks, step, output, reading) -> None:
    """Judge the steps of an analysis agent.

    HISTORY is a file (JSON, JSONL, SQLite checkpoint), a folder, a quoted glob, a URL or a dataset of `collect`.

    One history is shown step by step. Several are summarised: a row per history, the lowest confirmed success first,
    and a row for all of them together; --details adds the steps of each.

    Records and steps count from 1 here and in reports; the columns position and step_index of written files count
    from 0.
    """
    from evalkit.steps.terminal import report_histories

    options = {"details": details, "checks": checks, "step": step, "output": output}
    report_histories(list(histories), **options, **reading)


@main.command(short_help="Keep what many logs say in a dataset of Parquet files.")
@click.argument("kind", type=click.Choice(["mindcraft", "crafter", "steps"]))
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", "-o", required=True, metavar="DATASET", help="Folder or URL of the dataset.")
@click.option("--layout", metavar="PATTERN", help="mindcraft: what the folders mean, such as '{model_name}/{task_id}'.")
@click.option("--pattern", metavar="GLOB", help="crafter: which files of the folders.  [default: *.json]")
@_reading
def collect(kind, sources, output, layout, pattern, reading) -> None:
    """Keep what logs say in a dataset, to be given wherever their folder is: evalkit mindcraft DATASET.

    SOURCE is a folder, a file, a quoted glob or a URL. The next time only new and changed files are read, and those
    that have vanished are dropped. It may be stopped at any moment and goes on from there.
    """
    from importlib import import_module

    from evalkit.io.progress import progress_bar

    options = {name: value for name, value in (("layout", layout), ("pattern", pattern)) if value is not None}
    if wrong := sorted(options.keys() - _COLLECT_OPTIONS[kind]):
        raise click.UsageError(f"--{wrong[0]} is not for {kind}")
    if output.lower().startswith("memory://"):
        raise click.UsageError(f"{output}: is gone when the command ends; name a folder, or a URL that stays")
    try:
        with progress_bar() as progress:
            done = import_module(f"evalkit.{kind}").collect(
                _one_or_many(sources), output, **options, **reading, progress=progress
            )
    except KeyboardInterrupt:
        message = "stopped; what was written so far is kept, and the same command goes on from there"
        raise KeyboardInterrupt(message) from None
    click.echo(f"{output}: {done.summary()}")


@main.command(short_help="Notebooks with parameters as HTML pages with an index.")
@click.argument("targets", nargs=-1, metavar="[NOTEBOOK | FILE]...")
@click.option("--params", default="params", show_default=True, metavar="DIR", help="Folder of NOTEBOOK/REPORT.yaml.")
@click.option("--notebooks", default="notebooks", show_default=True, metavar="DIR", help="Folder of the notebooks.")
@click.option("--output", "-o", default="reports", show_default=True, metavar="DIR", help="For pages, index, manifest.")
@click.option("--parameter", "-p", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--file", "-f", "files", multiple=True, metavar="FILE", help="YAML file of parameters.")
@click.option("--yaml", "-y", "yamls", multiple=True, metavar="TEXT", help="Parameters as YAML text.")
@click.option(
    "--jobs", "-j", type=click.IntRange(1), metavar="N", help="Reports at a time.  [default: number of cores]"
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="For one report.",
)
@click.option("--force", is_flag=True, help="Also make reports that have not changed.")
@click.option("--no-code", is_flag=True, help="Leave the notebook's code out of the pages.")
@click.option("--no-fork", is_flag=True, help="Execute every notebook in a Jupyter kernel of its own.")
def report(targets, params, notebooks, output, texts, files, yamls, jobs, timeout, force, no_code, no_fork) -> None:
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    Without arguments every file of params/ becomes a report. NOTEBOOK (a name in notebooks/, or a path) stands for
    the files of params/NOTEBOOK/; given with parameters it is executed once, with these. FILE is one params file.
    """
    from evalkit.reports import cli

    sys.exit(
        cli.report(
            targets, params=params, notebooks=notebooks, output=output, texts=texts, files=files, yamls=yamls,
            jobs=jobs, timeout=timeout, force=force, code=not no_code, fork=not no_fork,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
