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

    @click.option("--jobs", type=click.IntRange(1), help="Processes to read with, where files are many.")
    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read on a Dask cluster instead, such as tcp://10.0.0.1:8786.",
    )
    @click.option("--storage-options", "storage", metavar="FILE", help="JSON file of fsspec's options for URLs.")
    @functools.wraps(command)
    def with_options(jobs, scheduler, storage, **arguments):
        from evalkit.io.parallel import cluster
        from evalkit.io.storage import read_storage_options

        options = read_storage_options(storage) if storage else None
        with cluster(scheduler):
            return command(reading={"jobs": jobs, "storage_options": options}, **arguments)

    return with_options


def _one_or_many(sources: tuple[str, ...]) -> str | list[str]:
    return sources[0] if len(sources) == 1 else list(sources)


class _Group(click.Group):
    """A group whose commands answer a source that can't be used with one line and exit code 2."""

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
        except BrokenPipeError:  # the reader of a pipe has left, as in `evalkit … | head`
            sys.stderr.close()
            ctx.exit(0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalkit")
def main() -> None:
    """Turn raw logs of LLM agents into tables, pictures and HTML reports."""


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUNS...")
@click.option("--tasks", multiple=True, help="Task definitions: a file, a folder or a quoted glob. Repeatable.")
@click.option("--by", multiple=True, help="Column to group by. Repeatable. [default: model_name]")
@click.option("--layout", help="What the folders mean, such as '{model_name}/{task_id}'.")
@click.option(
    "--scale",
    type=click.Choice(["auto", "percent", "fraction"]),
    default="auto",
    show_default=True,
    help="What construction scores are logged in.",
)
@click.option("--original-mtimes", is_flag=True, help="The files' times are the experiment's own: gives durations.")
@click.option("--legacy", is_flag=True, help="Also what the original MineCollab scripts would have said, and why.")
@click.option("--output", help="Write the runs to FILE.csv, FILE.json or FILE.parquet.", metavar="FILE")
@_reading
def mindcraft(runs, tasks, by, layout, scale, original_mtimes, legacy, output, reading) -> None:
    """Show success rates of Mindcraft task runs: RUNS are folders, logs, quoted globs or URLs."""
    from evalkit.io.output import check_output, write_frame

    if output:
        check_output(output)
    from evalkit.mindcraft import load
    from evalkit.mindcraft.terminal import legacy_text, overview_text

    logs = load(_one_or_many(runs), tasks, layout=layout, scale=scale, original_mtimes=original_mtimes, **reading)
    click.echo(overview_text(logs, by))
    if legacy:
        click.echo("\n" + legacy_text(logs))
    if output:
        write_frame(logs.runs, output)


@main.command()
@click.argument("file")
@click.option("--last", type=click.IntRange(1), help="Only so many turns, from the end.")
def show(file, last) -> None:
    """Print the agent log FILE as a conversation."""
    from evalkit.mindcraft import conversation

    text = conversation(file, last, width=None)
    click.echo_via_pager(text) if sys.stdout.isatty() else click.echo(text, nl=False)


@main.command()
@click.argument("traces", nargs=-1, required=True, metavar="TRACES...")
@click.option("-v", "--verbose", is_flag=True, help="Print every trace, not only the summary.")
@click.option("--pattern", default="*.json", show_default=True, help="Which files of the folder.")
@click.option("--by-difficulty", is_flag=True, help="Also break the scores down by difficulty.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write results and ledger to this file, as JSON.")
@_reading
def crafter(traces, verbose, pattern, by_difficulty, output, reading) -> None:
    """Score Crafter session traces: TRACES are folders, files, quoted globs or URLs."""
    from evalkit.crafter.printing import report_traces

    options = {"pattern": pattern, "verbose": verbose, "by_difficulty": by_difficulty, "output": output}
    report_traces(_one_or_many(traces), **options, **reading)


@main.command()
@click.argument("targets", nargs=-1, metavar="[NOTEBOOK | FILE]...")
@click.option("--params", default="params", show_default=True, help="Folder of NOTEBOOK/REPORT.yaml.")
@click.option("--notebooks", default="notebooks", show_default=True, help="Folder of the notebooks.")
@click.option("--output", "-o", default="reports", show_default=True, help="Folder for pages, index and manifest.")
@click.option("--parameter", "-p", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--file", "-f", "files", multiple=True, metavar="FILE", help="YAML file of parameters.")
@click.option("--yaml", "-y", "yamls", multiple=True, metavar="TEXT", help="Parameters as YAML text.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Reports at a time.  [default: number of cores]")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=600, show_default=True, help="Seconds.")
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


@main.command()
@click.argument("histories", nargs=-1, required=True, metavar="HISTORY...")
@click.option("--checks", is_flag=True, help="Show every check of every step.")
@click.option(
    "--step", type=click.IntRange(0), metavar="N", help="Print the report of record N (from 0) of each history."
)
@click.option(
    "--output",
    metavar="FILE",
    help="Write steps (with --checks: checks) to FILE.csv, .json or .parquet; .otlp.json: spans.",
)
@_reading
def steps(histories, checks, step, output, reading) -> None:
    """Judge the steps of an analysis agent: HISTORY is a file (JSON, JSONL, SQLite checkpoint), a folder or a URL."""
    from evalkit.steps.terminal import report_histories

    report_histories(list(histories), checks=checks, step=step, output=output, **reading)


if __name__ == "__main__":
    main()
