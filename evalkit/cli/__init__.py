"""The command line: a thin layer, every command calls one public function; those of kinds come from the registry.

Heavy imports stand inside the commands, so that ``evalkit --help`` stays quick. What is shown is printed and not
echoed: click would write UTF-8 to a terminal that knows ASCII only.
"""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from evalkit._version import __version__
from evalkit.cli.completion import complete_kinds, complete_notebooks, complete_parameters, complete_targets, script
from evalkit.cli.groups import Kinds, click_option, refuse, split
from evalkit.io.text import plain
from evalkit.kinds.registry import LogKind, Option, kind_named

LISTS = ("failed", "flagged", "all")  # as evalkit.kinds.listing.CHOICES, which would import more
_KIND_HELP = "The kind of logs.  [default: told by their content]"
SHORTEST_INTERVAL = 0.5  # seconds between two looks

_READING = (
    Option("pattern", str, "", "Which files of folders, by their names.", "GLOB"),
    Option("no_recursive", bool, False, "Only the folder's own files, not those of folders below."),
    Option("jobs", int, None, "Processes to read with.  [default: all cores where files are many]", "N"),
    Option("scheduler", str, None, "Read on a Dask cluster instead, such as tcp://10.0.0.1:8786.", "ADDRESS"),
    Option("storage_options", str, None, "JSON file of fsspec's options for URLs.", "FILE"),
)
_LIST = Option("list", LISTS, None, "Print these runs with their ids instead.")
_FOLLOWING = (
    Option("follow", bool, False, "Look again and again while an experiment writes; Ctrl-C ends."),
    Option("interval", float, None, "Between looks.  [default: 5]", "SECONDS"),
    Option("expected", int, None, "How many runs each model is to do.", "N"),
    Option("idle", float, None, "When a run that has not changed counts as finished.", "SECONDS"),
    Option("until_done", bool, False, "End once each model seen has done all that is expected."),
)


def _print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from evalkit.io.versions import code_version

        print(f"evalkit {__version__} (code {code_version().partition('+')[2]})")
        ctx.exit()


@click.group(
    cls=Kinds,
    make=lambda kind: _kind_command(kind),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Show the version, and a hash of the code that runs.",
)  # fmt: skip
@click.pass_context
def main(ctx: click.Context) -> None:
    """Turn raw logs of LLM agents into tables, pictures and HTML reports.

    \b
    evalkit detect FOLDER    says which logs are in it
    evalkit report FOLDER    makes all reports of these, in ./reports
    evalkit KIND FOLDER      prints the table; the kinds stand below

    No logs at hand? samples:mindcraft, samples:crafter and samples:steps stand for some.
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn the options of `_READING` into keywords of `load`, and read as they say."""

    @functools.wraps(function)
    def read(pattern: str, no_recursive: bool, jobs: int, scheduler: str, storage_options: str, **more: Any) -> Any:
        from evalkit.io.parallel import cluster
        from evalkit.io.sources import read_storage_options

        options = read_storage_options(storage_options) if storage_options else None
        reading = {"pattern": pattern, "recursive": not no_recursive, "jobs": jobs, "storage_options": options}
        with cluster(scheduler):
            return function(reading=reading, **more)

    return read


def _kind_command(kind: LogKind) -> click.Command:
    """Make the command that reads logs of a kind."""

    @_reading
    def run(sources: tuple[str, ...], reading: dict[str, Any], output: str | None, **values: Any) -> None:
        following, which = split(values, _FOLLOWING), values.pop("list")
        options, views = split(values, kind.options), split(values, kind.views)
        unfollowed = {o.name: views[o.name] for o in kind.views if not o.followed}
        if following.pop("follow"):
            refuse("with --follow", output=output, list=which, **unfollowed)
            _follow(kind, sources, {**options, **views}, reading, **following)
            return
        refuse("without --follow", **following)
        if which:
            refuse("with --list", output=output, **unfollowed)
            _list(kind, sources, options, which, reading)
            return
        _show_logs(kind, sources, options, views, output, reading)

    parameters: list[click.Parameter] = [click.Argument(["sources"], nargs=-1, required=True, metavar="SOURCE...")]
    output = Option("output", str, None, kind.output_help, "FILE")
    options = (*kind.options, *kind.views, _LIST, output, *_READING, *_FOLLOWING)
    parameters += [click_option(option) for option in options]
    return click.Command(kind.name, callback=run, params=parameters, help=kind.help, short_help=kind.summary)


def _show_logs(
    kind: LogKind,
    sources: tuple[str, ...],
    options: dict[str, Any],
    views: dict[str, Any],
    output: str | None,
    reading: dict[str, Any],
) -> None:
    from evalkit.kinds.terminal import check_output, glance, summary, write_output

    if output:
        check_output(kind, output)
    elif text := glance(kind, sources, options, views, reading):
        print(text)
        return
    from evalkit.kinds.logs import load  # here: a glance does without all that it imports

    logs = load(kind, _one_or_many(sources), options, **reading)
    print(summary(logs, views))
    if output:
        write_output(logs, views, output)


def _list(
    kind: LogKind, sources: tuple[str, ...], options: dict[str, Any], which: Any, reading: dict[str, Any]
) -> None:
    from evalkit.kinds.listing import list_runs
    from evalkit.kinds.logs import load

    _page(list_runs(load(kind, _one_or_many(sources), options, **reading), which) + "\n")


def _page(text: str) -> None:
    """Print a long text, a page at a time in a terminal."""
    click.echo_via_pager(text) if sys.stdout.isatty() else print(text, end="")


def _follow(
    kind: LogKind,
    sources: tuple[str, ...],
    options: dict[str, Any],
    reading: dict[str, Any],
    *,
    interval: float | None,
    expected: int | None,
    idle: float | None,
    until_done: bool,
) -> None:
    from evalkit.io.screen import show_live
    from evalkit.kinds.follow import Following

    if expected is None and not kind.tells_expected:
        refuse("without --expected", until_done=until_done)
    if interval is not None and interval < SHORTEST_INTERVAL:
        raise click.UsageError(f"--interval {interval:g}: at least {SHORTEST_INTERVAL:g} seconds")
    following = Following(kind, _one_or_many(sources), options, expected=expected, idle=idle, **reading)
    show_live(following.look, sys.stdout, interval=interval or 5.0, until_done=until_done)


def _one_or_many(sources: tuple[str, ...]) -> str | list[str]:
    return sources[0] if len(sources) == 1 else list(sources)


def _collect_command(kind: LogKind) -> click.Command:
    """Make the command that collects logs of a kind."""

    @_reading
    def run(sources: tuple[str, ...], output: str, reading: dict[str, Any], **options: Any) -> None:
        from evalkit.io.screen import progress_bar
        from evalkit.kinds.collection import collect

        if output.lower().startswith("memory://"):
            raise click.UsageError(f"{output}: is gone when the command ends; name a folder, or a URL that stays")
        given = {option.name: options[option.name] for option in kind.options if options[option.name] != option.default}
        try:
            with progress_bar() as progress:
                done = collect(kind, _one_or_many(sources), output, given, **reading, progress=progress)
        except KeyboardInterrupt:
            message = "stopped; what was written so far is kept, and the same command goes on from there"
            raise KeyboardInterrupt(message) from None
        print(f"{plain(output)}: {done.summary()}")

    parameters: list[click.Parameter] = [click.Argument(["sources"], nargs=-1, required=True, metavar="SOURCE...")]
    where = click.Option(["-o", "--output"], required=True, metavar="DATASET", help="Folder or URL of the dataset.")
    parameters += [where, *(click_option(option) for option in (*kind.options, *_READING))]
    return click.Command(kind.name, callback=run, params=parameters, help=collect_group.help, short_help=kind.title)


@main.group(
    name="collect",
    cls=Kinds,
    make=lambda kind: _collect_command(kind),
    short_help="Keep what many logs say in a dataset of Parquet files.",
)
def collect_group() -> None:
    """Keep what logs say in a dataset, to be given wherever their folder is: evalkit mindcraft DATASET.

    SOURCE is a folder, a file, a quoted glob or a URL. The next time only new and changed files are read, and those
    that have vanished are dropped. It may be stopped at any moment and goes on from there. Options that say how logs
    are to be read are kept as defaults for whoever loads the dataset.
    """


_KIND = click.option("--kind", metavar="NAME", help=_KIND_HELP, shell_complete=complete_kinds)
_OPTION = click.option("--option", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="An option of the kind.")


@main.command(short_help="What a run did, turn by turn.")
@click.argument("source")
@click.option("--run", metavar="RUN", help="The run's id, as --list prints it.  [default: the only one]")
@_KIND
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
def show(source: str, run: str | None, kind: str | None, last: int | None) -> None:
    """Print a run turn by turn: SOURCE is one log, or a folder, dataset or URL with --run."""
    from evalkit.io.sources import resolve
    from evalkit.kinds.transcript import show_run, show_source

    if not run and not os.path.isdir(resolve(source)):
        _page(show_source(source, kind, last))
        return
    from evalkit.io.paths import storage

    logs = _load_any(source, kind, ())
    with storage(logs.storage_options):
        _page(show_run(logs, run or "", last))


@main.command(short_help="Pages of runs, turn by turn, with a list of them.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", "-o", default="evalkit-view", show_default=True, metavar="DIR", help="Folder of the pages.")
@click.option("--list", "which", type=click.Choice(LISTS), default="all", show_default=True, help="Which runs.")
@_KIND
@_OPTION
def view(sources: tuple[str, ...], output: str, which: Any, kind: str | None, texts: tuple) -> None:
    """Write a page for each run of SOURCE, and one that lists them; print where that lies."""
    from evalkit.evidence import write_view
    from evalkit.kinds.listing import choose

    logs = _load_any(_one_or_many(sources), kind, texts)
    print(plain(write_view(logs, choose(logs.runs, which), Path(output), "" if which == "all" else which)))


def _load_any(source: str | list[str], kind: str | None, texts: Sequence[tuple[str, str]]) -> Any:
    from evalkit.kinds.detection import kind_of_source
    from evalkit.kinds.logs import load_source
    from evalkit.kinds.registry import read_options

    found = kind_named(kind) if kind else kind_of_source(source)
    return load_source(source, found.name, **read_options(found, texts))


@main.command(short_help="Which kinds of logs a source holds.")
@click.argument("source")
def detect(source: str) -> None:
    """Say which kinds of logs SOURCE holds, told by the first bytes of its files, and which command reads them."""
    from evalkit.kinds.detection import describe_source

    print(describe_source(source))


@main.command(short_help="Which model is better, or whether one is worse than a baseline.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@_KIND
@_OPTION
@click.option("--value", type=click.Choice(["is_successful", "score"]), help="What to compare.  [default: success]")
@click.option("--baseline", metavar="MODEL", help="Compare every model with this one; exit code 1 on a regression.")
@click.option(
    "--margin",
    type=click.FloatRange(0, min_open=True),
    metavar="NUMBER",
    help="The largest loss that is no regression.",
)
@click.option("--strict", is_flag=True, help="With --baseline: exit code 1 also where nothing is decided.")
def compare(
    sources: tuple[str, ...],
    kind: str | None,
    texts: tuple[tuple[str, str], ...],
    value: str | None,
    baseline: str | None,
    margin: float | None,
    strict: bool,
) -> None:
    """Compare the models of SOURCE on the tasks that they share.

    Each task has the same weight. With --baseline, a model is a regression where its loss is shown and may be as large
    as the margin (default: 0.05); it is not worse where its loss is shown to be smaller.
    """
    from evalkit.compare.terminal import describe_baseline, describe_comparison

    if not baseline:
        refuse("without --baseline", strict=strict)
    runs = _load_any(_one_or_many(sources), kind, texts).runs
    if not baseline:
        print(describe_comparison(runs, value or "", margin))
        return
    text, passed = describe_baseline(runs, baseline, value or "", margin=margin or 0.05, strict=strict)
    print(text)
    sys.exit(0 if passed else 1)


@main.command(short_help="Reports on a folder of logs, as HTML pages with an index.")
@click.argument("targets", nargs=-1, metavar="[SOURCE | NOTEBOOK | FILE]...", shell_complete=complete_targets)
@click.option("--kind", metavar="NAME", help=_KIND_HELP, shell_complete=complete_kinds)
@click.option("--params", metavar="DIR", help="Folder of NOTEBOOK/REPORT.yaml.  [default: params, or evalkit's own]")
@click.option("--notebooks", metavar="DIR", help="Folder of notebooks.  [default: notebooks, then evalkit's own]")
@click.option("--output", "-o", default="reports", show_default=True, metavar="DIR", help="For pages, index, manifest.")
@click.option(
    "--parameter",
    "-p",
    "texts",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a parameter.",
    shell_complete=complete_parameters,
)
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
@click.option(
    "--evidence",
    type=click.Choice(["linked", "all", "none"]),
    default="linked",
    show_default=True,
    help="Which runs get pages: those that tables lead to (200 a report at most), all, or none.",
)
@click.option("--no-fork", is_flag=True, help="Execute every notebook in a Jupyter kernel of its own.")
@click.option("--name", default="", metavar="NAME", help="What the one report is called.  [default: its values]")
@click.option(
    "--remove", "gone", multiple=True, metavar="NAME", help="Delete a report of the output folder; no other is made."
)
def report(kind: str | None, no_code: bool, no_fork: bool, gone: tuple[str, ...], **given: Any) -> None:
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    SOURCE, a folder of logs (also a file, a glob, a URL or a dataset), stands for all notebooks of the kinds of logs it
    holds. NOTEBOOK (a name, or a path) beside it means only that one; alone, it stands for the files of
    params/NOTEBOOK/, and with parameters it is executed once, with these. FILE is one params file. Without arguments
    every file of params/ becomes a report.
    """
    from evalkit.reports import cli

    if gone:
        if given["targets"]:
            raise click.UsageError("--remove deletes reports and makes none: name no notebook beside it")
        sys.exit(cli.remove(gone, given["output"]))
    sys.exit(cli.report(kind=kind or "", code=not no_code, fork=not no_fork, **given))


@main.command(short_help="The notebooks behind the reports, to be changed.")
@click.argument("folder", required=False, metavar="[DIR]")
@click.argument("names", nargs=-1, metavar="[NOTEBOOK]...", shell_complete=complete_notebooks)
def notebooks(folder: str | None, names: tuple[str, ...]) -> None:
    """Copy the notebooks that come with evalkit into DIR, or only those that are named; without DIR, list them.

    `evalkit report` takes the notebooks of the folder `notebooks` of the current folder before those of evalkit.
    """
    from evalkit.reports import cli

    print(cli.copied(folder, names) if folder else cli.listed())


@main.command(short_help="Make a shell complete evalkit's commands.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what SHELL needs to complete evalkit's commands, kinds, notebooks and parameters.

    \b
    bash: eval "$(evalkit completion bash)"  in ~/.bashrc
    zsh:  eval "$(evalkit completion zsh)"  in ~/.zshrc
    fish: evalkit completion fish > ~/.config/fish/completions/evalkit.fish
    """
    print(script(main, shell))
