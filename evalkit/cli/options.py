"""Options that several commands share, and the conversion of a kind's options to click options."""

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, get_args

import click

from evalkit.display.terminal import Which, choose, chosen_lines, list_runs
from evalkit.io.paths import SourceError, storage
from evalkit.io.sources import read_storage_options
from evalkit.io.write import OUTPUT, check_output, write_frame
from evalkit.kinds.logs import Logs
from evalkit.kinds.names import kind_names
from evalkit.kinds.options import COMMON, Option
from evalkit.kinds.pipeline import load
from evalkit.kinds.registry import kind_named
from evalkit.kinds.runs import exported

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LISTS = get_args(Which)
COUNT, POSITIVE = click.IntRange(1), click.FloatRange(0, min_open=True)

detecting = click.option(
    "--detect", type=POSITIVE, metavar="POINTS", help="Plan how many tasks would detect this difference."
)
of_kind = click.option("--kind", metavar="NAME", help="Kind of the logs.  [default: detected from their content]")


def negative_flag(name: str, text: str) -> Decorator:
    """Add ``--no-NAME`` to a command; its parameter NAME is False if the flag is set, else True."""
    return click.option(f"--no-{name}", name, is_flag=True, flag_value=False, default=True, help=text)


unmasked = negative_flag("mask", "Show API keys and tokens in logs; by default they are masked.")


def checked(_context: click.Context, _option: click.Parameter, path: str | None) -> str | None:
    """Return the path of an output file. Raise SourceError if it can't be written."""
    if path:
        check_output(path)
    return path


def write_to(what: str) -> Decorator:
    """Add ``--output FILE`` to a command, which also writes `what` it prints to this file."""
    return click.option("--output", "-o", metavar="FILE", callback=checked, help=f"Also write {what} to {OUTPUT}.")


def click_option(option: Option) -> click.Option:
    """Convert an option to a click option."""
    names = [f"--{option.name.replace('_', '-')}", option.name]
    if option.short:
        names.insert(0, f"-{option.short}" if len(option.short) == 1 else f"--{option.short}")
    if option.type is bool:
        return click.Option(names, is_flag=True, help=option.help)
    kind: Any = option.type
    if isinstance(option.type, tuple):
        kind = click.Choice(option.type)
    elif option.type is int:
        kind = click.IntRange(1 if option.default is None else min(1, option.default))
    elif option.type is float:
        kind = click.FloatRange(0)
    shown = {"default": option.default, "show_default": bool(option.default) and not option.many}
    metavar = option.metavar or None
    return click.Option(names, type=kind, help=option.help, multiple=option.many, metavar=metavar, **shown)


def with_reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for loading logs of any kind to a command; its parameter `given` has the values that are set."""
    options: dict[str, Option] = {}
    for name in kind_names():
        with suppress(SourceError):  # a kind from another package that can't be imported
            options = {option.name: option for option in kind_named(name).options} | options
    options |= {option.name: option for option in COMMON}

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        own = {name: values.pop(name) for name in options}
        given = {name: value for name, value in own.items() if value != options[name].default}
        return command(**values, given=given)

    params = [*getattr(command, "__click_params__", ()), *map(click_option, reversed(options.values()))]
    run.__click_params__ = params  # type: ignore[attr-defined]
    return run


def with_storage(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--storage-options`` to a command; URLs are opened with these options while it runs."""

    @functools.wraps(command)
    def run(storage_options: str | None, **values: Any) -> Any:
        with storage(read_storage_options(storage_options) if storage_options else None):
            return command(**values)

    return click.option("--storage-options", metavar="FILE", help="JSON file with fsspec's options for URLs.")(run)


def with_logs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add SOURCE and the options for loading logs to a command; its parameter `read` is a function that loads them."""

    @functools.wraps(command)
    def run(sources: tuple[str, ...], kind: str | None, given: dict[str, Any], **values: Any) -> Any:
        return command(read=functools.partial(load, list(sources), kind or "", **given), **values)

    argument = click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
    return argument(of_kind(with_reading_options(with_storage(run))))


def split(values: dict[str, Any], options: Sequence[Option]) -> dict[str, Any]:
    """Pop the values of some options from `values`, and return them by name."""
    return {option.name: values.pop(option.name) for option in options}


def refuse(where: str, **given: object) -> None:
    """Raise UsageError if one of these options is set, because it has no effect here."""
    for name, value in given.items():
        if value is not None and value is not False and value != ():
            raise click.UsageError(f"--{name.replace('_', '-')} does nothing {where}")


def print_choices(logs: Logs) -> None:
    """Print how evalkit read logs, to standard error, for a command that prints only paths or runs."""
    warned, chosen = chosen_lines(logs)
    for line in (*warned, *chosen):
        click.echo(line, err=True)


def print_runs(logs: Logs, which: Which, output: str | None) -> None:
    """Print a list of runs. With `output`, also write them as a table that gives the same rates when it is loaded."""
    print_paged(list_runs(logs, which) + "\n")
    if output:
        write_frame(choose(exported(logs.runs, logs.kind), which), output)


def print_paged(text: str) -> None:
    """Print a long text; in a terminal, use a pager."""
    if sys.stdout.isatty():
        click.echo_via_pager(text)
    else:
        print(text, end="")
