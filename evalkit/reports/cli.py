"""Run ``evalkit report`` and ``evalkit notebooks``: their output and exit codes."""

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
from tabulate import tabulate

from evalkit._names import nearest
from evalkit.io.text import plain
from evalkit.kinds.models import UNKNOWN
from evalkit.reports.batch import Summary, run
from evalkit.reports.parameters import Faults, parse_values, read_notebook, read_values
from evalkit.reports.planning.places import Places, copy_notebooks
from evalkit.reports.planning.plan import PlanError, plan
from evalkit.reports.planning.targets import ANY_KIND
from evalkit.reports.processes import stopped_once
from evalkit.reports.records import find_records, read_records, remove_report, work_folder


def report(
    targets: Sequence[str],
    *,
    kind: str,
    params: str | None,
    notebooks: str | None,
    texts: Iterable[tuple[str, str]],
    files: Iterable[str],
    yamls: Iterable[str],
    name: str = "",
    rename: Sequence[str] = (),
    where: Sequence[str] = (),
    cluster: str = "",
    model: str = "",
    **options: Any,
) -> int:
    """Plan and run a batch with the options of the command line.

    Returns the exit code: 0 for success, 1 if a report failed, 2 if the batch is invalid or no report could be made of
    the given sources, 130 if it was stopped.
    """
    started = time.monotonic()
    with stopped_once(is_last=True):
        try:
            values = _values(files, yamls)
            if renames := [*([f"{UNKNOWN}={model}"] if model else []), *rename]:
                values["rename"] = renames
            if where:
                values["where"] = list(where)
            if cluster:
                values["cluster"] = cluster
            if not targets and params is None and not Path("params").is_dir():
                click.echo("no folder params here: making the sample reports; your own: evalkit report FOLDER")
            reports = plan(
                targets, kind=kind, params=params, notebooks=notebooks, values=values, texts=texts, name=name
            )
        except PlanError as error:
            for fault in error.faults:
                click.echo(f"evalkit: {plain(fault)}", err=True)
            return 2
        summary = run(reports, say=click.echo, terminal=sys.stdout, **options)
        click.echo(_closing(summary, time.monotonic() - started))
    if summary.index_fault:
        click.echo(f"evalkit: {plain(summary.index_fault)}; the index was not updated", err=True)
    if summary.stopped:
        return 130
    if not summary.failed:
        return 1 if summary.index_fault else 0
    return 2 if summary.unusable == summary.failed else 1


def remove(names: Iterable[str], output: str) -> int:
    """Delete reports by name, and rewrite the index; returns 2 if one does not exist, and deletes nothing."""
    from evalkit.reports.html.index import write_index

    folder = Path(output)
    matches = {name: find_records(folder, name) for name in names}
    faulty = {name: records for name, records in matches.items() if len(records) != 1}
    for name, records in faulty.items():
        keys = [record["key"] for record in records or read_records(folder)]
        several, none = f"several reports have this name: {', '.join(keys)}", f"no such report; {nearest(name, keys)}"
        click.echo(f"evalkit: {plain(name)}: {plain(several if records else none)}", err=True)
    if faulty:
        return 2
    for (record,) in matches.values():
        remove_report(folder, record)
        click.echo(f"removed   {plain(record['key'])}")
    with work_folder(folder) as work:
        click.echo(plain(write_index(folder, work)[0]))
    return 0


def listed() -> str:
    """Return a table of the notebooks: name, kind of logs, title and file."""
    rows = []
    for name, path in sorted(Places.of().all_notebooks().items()):
        try:
            notebook = read_notebook(path)
            takes = {ANY_KIND: "any kind", "": "?"}.get(notebook.kind, notebook.kind)
            rows.append((name, takes, notebook.title, str(path)))
        except (OSError, ValueError) as error:
            rows.append((name, "?", str(error), str(path)))
    table = tabulate([map(plain, row) for row in rows], ["notebook", "logs", "title", "file"], disable_numparse=True)
    return f"{table}\n\nTo change them: evalkit notebooks DIR"


def copied(folder: str, names: Sequence[str]) -> str:
    """Copy notebooks into a folder, and return what was copied and how to run them."""
    paths = copy_notebooks(folder, names)
    hint = "" if Path(folder) == Path("notebooks") else f" --notebooks {plain(folder)}"
    return "\n".join([*map(plain, paths), f"To make reports with them: evalkit report FOLDER{hint}"])


def _values(files: Iterable[str], yamls: Iterable[str]) -> dict[str, Any]:
    values, faults = dict[str, Any](), Faults()
    sources = [(file, read_values, file) for file in files] + [("-y", parse_values, text) for text in yamls]
    for name, read, source in sources:
        with faults.of(f"{name}: "):
            values |= read(source)
    if faults:
        raise PlanError(faults)
    return values


def _closing(summary: Summary, seconds: float) -> str:
    counts = [(summary.made, "made"), (summary.failed, "failed"), (summary.unchanged, "unchanged")]
    listed = ", ".join(f"{len(keys)} {word}" for keys, word in counts if keys) or "nothing to do"
    stopped = "Stopped; run it again to go on. " if summary.stopped else ""
    return f"{stopped}{listed} in {seconds:.1f} s\n{plain(summary.index)}"
