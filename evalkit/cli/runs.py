"""The commands that read logs of any kind: show, view, detect, compare."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from evalkit._names import nearest
from evalkit.cli.groups import (
    COUNT,
    KIND_HELP,
    LISTS,
    POSITIVE,
    common_options,
    one_or_many,
    print_paged,
    refuse,
    unmasked,
)
from evalkit.io.paths import SourceError
from evalkit.kinds.registry import kind_named

if TYPE_CHECKING:  # commands are listed without it
    from evalkit.kinds.kind import LogKind

_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
_KIND = click.option("--kind", metavar="NAME", help=KIND_HELP)
_OPTION = click.option(
    "--option", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set an option of the kind."
)


@click.command(short_help="What a run did, turn by turn.")
@click.argument("source")
@click.option("--run", metavar="RUN", help="The run's id, as printed by --list.  [default: the only one]")
@_KIND
@common_options
@click.option("--last", type=COUNT, metavar="N", help="Only the last N turns.")
@unmasked
def show(source: str, run: str | None, kind: str | None, last: int | None, mask: bool, **names: Any) -> None:
    """Print a run turn by turn: SOURCE is one log, or a folder, dataset or URL with --run."""
    from evalkit.io.sources import resolve
    from evalkit.kinds.transcript import show_run, show_source

    if not run and not os.path.isdir(resolve(source)):
        print_paged(show_source(source, kind, last, mask=mask))
        return
    from evalkit.io.paths import storage
    from evalkit.kinds.detection import kinds_of_source

    if run and not kind:  # an id begins with the first letter of its kind
        kind = next((known.name for known in kinds_of_source(source) if run.startswith(f"{known.name[0]}-")), None)
    logs = _load_any(source, kind, (), names)
    with storage(logs.storage_options):
        print_paged(show_run(logs, run or "", last, mask=mask))


@click.command(short_help="Pages of runs, turn by turn, with a list of them.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--output", "-o", default="evalkit-view", show_default=True, metavar="DIR", help="Folder for the pages.")
@click.option("--list", "which", type=click.Choice(LISTS), default="all", show_default=True, help="Which runs.")
@_KIND
@_OPTION
@common_options
@unmasked
def view(
    sources: tuple[str, ...], output: str, which: Any, kind: str | None, texts: tuple, mask: bool, **names: Any
) -> None:
    """Write a page for each run of SOURCE and a page that lists them; print the path of the list."""
    from pathlib import Path

    from evalkit.evidence import write_view
    from evalkit.io.text import plain
    from evalkit.kinds.terminal import choose

    logs = _load_any(one_or_many(sources), kind, texts, names)
    page = write_view(logs, choose(logs.runs, which), Path(output), "" if which == "all" else which, mask=mask)
    print(plain(page))


def _load_any(
    source: str | list[str], kind: str | None, texts: Sequence[tuple[str, str]], names: dict[str, Any]
) -> Any:
    from evalkit.kinds.detection import kind_of_source
    from evalkit.kinds.pipeline import load_source

    log_kind = kind_named(kind) if kind else kind_of_source(source)
    return load_source(source, log_kind.name, **_options_of(log_kind, texts), **names)


def _options_of(kind: "LogKind", texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Parse options of a kind; one that takes several values may occur several times."""
    options, values = {option.name: option for option in kind.options}, dict[str, Any]()
    for name, text in texts:
        if name not in options:
            raise SourceError(f"{kind.name} logs have no option {name!r}; {nearest(name, options)}")
        option = options[name]
        try:
            value: Any = _BOOLEANS[text.lower()] if option.type is bool else text
            value = option.type(value) if option.type is int or option.type is float else value
        except (ValueError, KeyError):
            raise SourceError(f"option {name}: {text!r} is no {getattr(option.type, '__name__', 'choice')}") from None
        values[name] = (*values.get(name, ()), value) if option.many else value
    return values


@click.command(short_help="Which kinds of logs a source holds.")
@click.argument("source")
def detect(source: str) -> None:
    """Print which kinds of logs SOURCE holds, by the first bytes of its files, and which commands read them."""
    from evalkit.kinds.detection import describe_source

    print(describe_source(source))


@click.command(short_help="Which model is better, or whether one is worse than a baseline.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@_KIND
@_OPTION
@common_options
@click.option("--value", type=click.Choice(["is_successful", "score"]), help="What to compare.  [default: success]")
@click.option("--baseline", metavar="MODEL", help="Compare every model with this one; exit code 1 on a regression.")
@click.option("--margin", type=POSITIVE, metavar="NUMBER", help="The largest loss that is no regression; see below.")
@click.option("--strict", is_flag=True, help="With --baseline: exit code 1 also if nothing is decided.")
def compare(
    sources: tuple[str, ...],
    kind: str | None,
    texts: tuple[tuple[str, str], ...],
    value: str | None,
    baseline: str | None,
    margin: float | None,
    strict: bool,
    **names: Any,
) -> None:
    """Compare the models of SOURCE on the tasks that they share.

    Each task has the same weight. With --baseline, a model is a regression if it shows a loss that may be as large as
    the margin; it is not worse if its loss is shown to be smaller. The margin is in the unit of what is compared: 0.05
    of a rate, which is the default, is 5 percentage points, and 2 of scores in points is 2 points, without a default.
    """
    from evalkit.compare.terminal import describe_baseline, describe_comparison

    if not baseline:
        refuse("without --baseline", strict=strict)
    runs = _load_any(one_or_many(sources), kind, texts, names).runs
    if not baseline:
        print(describe_comparison(runs, value or "", margin))
        return
    text, passed = describe_baseline(runs, baseline, value or "", margin=margin, strict=strict)
    print(text)
    sys.exit(0 if passed else 1)
