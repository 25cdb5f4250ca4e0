"""The commands that make reports and copy their notebooks."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from tabulate import tabulate

from evalkit._names import nearest
from evalkit.cli.options import COUNT, POSITIVE, of_kind, unmasked, with_reading_options
from evalkit.io.paths import SourceError
from evalkit.io.text import plain
from evalkit.kinds.runs import UNKNOWN
from evalkit.reports.batch import run
from evalkit.reports.index import write_index
from evalkit.reports.notebooks import ANY_KIND, Places, copy_notebooks, read_notebook
from evalkit.reports.parameters import Faults, parse_values, read_values
from evalkit.reports.planning import PlanError, plan
from evalkit.reports.records import read_records, remove_report, work_folder


@click.command()
@click.argument("targets", nargs=-1, metavar="[SOURCE | NOTEBOOK | FILE]...")
@of_kind
@with_reading_options
@click.option("--params", metavar="DIR", help="Folder of NOTEBOOK/REPORT.yaml.  [default: params, or evalkit's own]")
@click.option("--notebooks", metavar="DIR", help="Folder of notebooks.  [default: notebooks, then evalkit's own]")
@click.option(
    "--output", "-o", default="reports", show_default=True, metavar="DIR", help="Folder for pages, index and manifest."
)
@click.option("--parameter", "-p", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--file", "-f", "files", multiple=True, metavar="FILE", help="YAML file of parameters.")
@click.option("--yaml", "-y", "yamls", multiple=True, metavar="TEXT", help="Parameters as YAML text.")
@click.option(
    "--jobs", "-j", type=COUNT, metavar="N", help="Number of reports made at a time.  [default: number of cores]"
)
@click.option(
    "--timeout", type=POSITIVE, default=600, show_default=True, metavar="SECONDS", help="Time limit of one report."
)
@click.option("--force", is_flag=True, help="Also make reports that have not changed.")
@click.option(
    "--no-code",
    "code",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Leave the notebook's code out of the pages.",
)
@click.option(
    "--evidence",
    type=click.Choice(["linked", "all", "none"]),
    default="linked",
    show_default=True,
    help="Which runs get pages: those that tables link to (at most 200 per report), all, or none.",
)
@unmasked
@click.option(
    "--no-fork",
    "fork",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Execute every notebook in a Jupyter kernel of its own.",
)
@click.option(
    "--name", default="", metavar="NAME", help="Name of the report, if it is only one.  [default: its values]"
)
@click.option("--remove", multiple=True, metavar="NAME", help="Delete a report from the output folder; make none.")
def report(
    targets: tuple[str, ...], kind: str | None, output: str, remove: tuple[str, ...], files: tuple[str, ...],
    yamls: tuple[str, ...], given: dict[str, Any], **options: Any,
) -> None:  # fmt: skip
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    SOURCE, a folder of logs (or a file, a glob, a URL or a dataset), is run with all notebooks for the kinds of logs it
    holds. NOTEBOOK (a name or a path) beside it selects only that notebook; alone, it is run with each file of
    params/NOTEBOOK/, or with given parameters once. FILE is one params file. Without arguments, every file of params/
    becomes a report.

    The exit code is 1 if a report failed, and 2 if the batch is invalid or no report had a usable source.
    """
    if remove:
        if targets:
            raise click.UsageError("--remove deletes reports and makes none: don't name a notebook with it")
        sys.exit(remove_reports(remove, Path(output)))
    started = time.monotonic()
    planned = {name: options.pop(name) for name in ("params", "notebooks", "texts", "name")}
    try:
        if not targets and planned["params"] is None and not Path("params").is_dir():
            click.echo("no folder params here: making the sample reports; your own: evalkit report FOLDER")
        reports = plan(targets, kind=kind or "", values=values_of(files, yamls, given), **planned)
    except PlanError as error:
        for fault in error.faults:
            click.echo(f"evalkit: {plain(fault)}", err=True)
        sys.exit(2)
    summary = run(reports, output=output, say=click.echo, terminal=sys.stdout, **options)
    counts = [(summary.made, "made"), (summary.failed, "failed"), (summary.unchanged, "unchanged")]
    listed = ", ".join(f"{len(keys)} {word}" for keys, word in counts if keys) or "nothing to do"
    stopped = "Stopped; run it again to go on. " if summary.stopped else ""
    click.echo(f"{stopped}{listed} in {time.monotonic() - started:.1f} s\n{plain(summary.index)}")
    if summary.index_fault:
        click.echo(f"evalkit: {plain(summary.index_fault)}; the index was not updated", err=True)
    if summary.stopped:
        sys.exit(130)
    if summary.failed:
        sys.exit(2 if summary.unusable == summary.failed else 1)
    sys.exit(1 if summary.index_fault else 0)


def values_of(files: Sequence[str], yamls: Sequence[str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of parameters that files, texts and the options of loading logs give."""
    values, faults = dict[str, Any](), Faults()
    for file in files:
        with faults.of(f"{file}: "):
            values |= read_values(file)
    for text in yamls:
        with faults.of("-y: "):
            values |= parse_values(text)
    if faults:
        raise PlanError(faults)
    if model := given.pop("model", ""):
        given["rename"] = (f"{UNKNOWN}={model}", *given.get("rename", ()))
    return values | {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def remove_reports(names: Sequence[str], output: Path) -> int:
    """Delete reports by name, and rewrite the index; returns 2 if one does not exist, and deletes nothing."""
    records, faulty, chosen = read_records(output), False, []
    for name in names:
        found = [record for record in records if name in (record["key"], record["name"])]
        chosen += found
        if len(found) != 1:
            keys = [record["key"] for record in found or records]
            several, none = (
                f"several reports have this name: {', '.join(keys)}",
                f"no such report; {nearest(name, keys)}",
            )
            click.echo(f"evalkit: {plain(name)}: {plain(several if found else none)}", err=True)
            faulty = True
    if faulty:
        return 2
    for record in chosen:
        remove_report(output, record)
        click.echo(f"removed   {plain(record['key'])}")
    with work_folder(output) as work:
        click.echo(plain(write_index(output, work)[0]))
    return 0


@click.command()
@click.argument("folder", required=False, metavar="[DIR]")
@click.argument("names", nargs=-1, metavar="[NOTEBOOK]...")
def notebooks(folder: str | None, names: tuple[str, ...]) -> None:
    """Copy evalkit's notebooks, or only the named ones, into DIR; without DIR, list them.

    `evalkit report` prefers notebooks in ./notebooks to evalkit's own.
    """
    if folder:
        paths = copy_notebooks(folder, names)
        hint = "" if Path(folder) == Path("notebooks") else f" --notebooks {plain(folder)}"
        print("\n".join([*map(plain, paths), f"To make reports with them: evalkit report FOLDER{hint}"]))
        return
    rows = []
    for name, path in sorted(Places.of().all_notebooks().items()):
        try:
            notebook = read_notebook(path)
            takes = {ANY_KIND: "any kind", "": "?"}.get(notebook.kind, notebook.kind)
            rows.append((name, takes, notebook.title, str(path)))
        except SourceError as error:
            rows.append((name, "?", str(error), str(path)))
    table = tabulate([map(plain, row) for row in rows], ["notebook", "logs", "title", "file"], disable_numparse=True)
    print(f"{table}\n\nTo change them: evalkit notebooks DIR")
