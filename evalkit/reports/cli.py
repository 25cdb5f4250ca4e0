"""What ``evalkit report`` prints, and its exit code."""

import sys
import time
from collections.abc import Iterable
from typing import Any

import click

from evalkit.io.text import plain
from evalkit.reports.batch import Summary, run
from evalkit.reports.engines.signals import stopped_once
from evalkit.reports.parameters import parse_values, read_values
from evalkit.reports.plan import PlanError, plan


def report(
    targets: Iterable[str],
    *,
    params: str,
    notebooks: str,
    texts: Iterable[tuple[str, str]],
    files: Iterable[str],
    yamls: Iterable[str],
    **options: Any,
) -> int:
    """Plan and run a batch as the command line says.

    Returns
    -------
    int
        0 where all is well, 1 where a report failed, 2 where the batch is at fault or nothing could be made of the
        sources that were named, 130 where it was stopped.
    """
    started = time.monotonic()
    with stopped_once(is_last=True):
        try:
            values = _values(files, yamls)
            reports = plan(targets, params=params, notebooks=notebooks, values=values, texts=texts)
        except PlanError as error:
            for fault in error.faults:
                click.echo(f"evalkit: {plain(fault)}", err=True)
            return 2
        summary = run(reports, say=click.echo, terminal=sys.stdout, **options)
        click.echo(_closing(summary, time.monotonic() - started))
    if summary.index_fault:
        click.echo(f"evalkit: {plain(summary.index_fault)}; the index is as it was before", err=True)
    if summary.stopped:
        return 130
    if not summary.failed:
        return 1 if summary.index_fault else 0
    return 2 if summary.unusable == summary.failed else 1


def _values(files: Iterable[str], yamls: Iterable[str]) -> dict[str, Any]:
    values, faults = dict[str, Any](), list[str]()
    sources = [(file, read_values, file) for file in files] + [("-y", parse_values, text) for text in yamls]
    for name, read, source in sources:
        try:
            values |= read(source)
        except ValueError as error:
            faults.append(f"{name}: {error}")
    if faults:
        raise PlanError(faults)
    return values


def _closing(summary: Summary, seconds: float) -> str:
    counts = [(summary.made, "made"), (summary.failed, "failed"), (summary.unchanged, "unchanged")]
    said = ", ".join(f"{len(keys)} {word}" for keys, word in counts if keys) or "nothing to do"
    stopped = "Stopped; run it again to go on. " if summary.stopped else ""
    return f"{stopped}{said} in {seconds:.1f} s\n{plain(summary.index)}"
