"""The commands that read logs of one kind, made from its entry in the registry: ``evalkit KIND``, ``collect KIND``."""

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from evalkit.cli.groups import LISTS, click_option, one_or_many, print_paged, refuse, split
from evalkit.kinds.registry import LogKind, Option

SHORTEST_INTERVAL = 0.5  # seconds between two looks
COLLECT_HELP = """Keep what logs say in a dataset, to be given wherever their folder is: evalkit mindcraft DATASET.

SOURCE is a folder, a file, a quoted glob or a URL. The next time only new and changed files are read, and those
that have vanished are dropped. It may be stopped at any moment and goes on from there. Options that say how logs
are to be read are kept as defaults for whoever loads the dataset.
"""

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


def kind_command(kind: LogKind) -> click.Command:
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

    logs = load(kind, one_or_many(sources), options, **reading)
    print(summary(logs, views))
    if output:
        write_output(logs, views, output)


def _list(
    kind: LogKind, sources: tuple[str, ...], options: dict[str, Any], which: Any, reading: dict[str, Any]
) -> None:
    from evalkit.kinds.listing import list_runs
    from evalkit.kinds.logs import load

    print_paged(list_runs(load(kind, one_or_many(sources), options, **reading), which) + "\n")


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
    following = Following(kind, one_or_many(sources), options, expected=expected, idle=idle, **reading)
    show_live(following.look, sys.stdout, interval=interval or 5.0, until_done=until_done)


def collect_command(kind: LogKind) -> click.Command:
    """Make the command that collects logs of a kind."""

    @_reading
    def run(sources: tuple[str, ...], output: str, reading: dict[str, Any], **options: Any) -> None:
        from evalkit.io.screen import progress_bar
        from evalkit.io.text import plain
        from evalkit.kinds.collection import collect

        if output.lower().startswith("memory://"):
            raise click.UsageError(f"{output}: is gone when the command ends; name a folder, or a URL that stays")
        given = {option.name: options[option.name] for option in kind.options if options[option.name] != option.default}
        try:
            with progress_bar() as progress:
                done = collect(kind, one_or_many(sources), output, given, **reading, progress=progress)
        except KeyboardInterrupt:
            message = "stopped; what was written so far is kept, and the same command goes on from there"
            raise KeyboardInterrupt(message) from None
        print(f"{plain(output)}: {done.summary()}")

    parameters: list[click.Parameter] = [click.Argument(["sources"], nargs=-1, required=True, metavar="SOURCE...")]
    where = click.Option(["-o", "--output"], required=True, metavar="DATASET", help="Folder or URL of the dataset.")
    parameters += [where, *(click_option(option) for option in (*kind.options, *_READING))]
    return click.Command(kind.name, callback=run, params=parameters, help=COLLECT_HELP, short_help=kind.title)
