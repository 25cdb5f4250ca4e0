"""Commands that make reports, copy their notebooks, and open them in JupyterLab."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from evalkit.cli.options import COUNT, POSITIVE, detecting, negative_flag, of_kind, unmasked, with_reading_options
from evalkit.io.paths import SourceError, absolute
from evalkit.io.text import plain
from evalkit.kinds.runs import UNKNOWN
from evalkit.reports.batch import run
from evalkit.reports.notebooks import Places, copy_notebooks, read_notebook, shipped, write_filled
from evalkit.reports.planning import plan


@click.command()
@click.argument("targets", nargs=-1, metavar="[SOURCE | NOTEBOOK | FILE]...")
@of_kind
@with_reading_options
@detecting
@click.option("--params", metavar="DIR", help="Folder of NOTEBOOK/REPORT.yaml.  [default: params, or evalkit's own]")
@click.option("--notebooks", metavar="DIR", help="Folder of notebooks.  [default: notebooks, then evalkit's own]")
@click.option(
    "--output", "-o", default="reports", show_default=True, metavar="DIR", help="Folder for pages, index and manifest."
)
@click.option("--parameter", "-p", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--jobs", "-j", type=COUNT, metavar="N", help="Number of reports made at a time.  [default: cores + 1]")
@click.option(
    "--timeout", type=POSITIVE, default=600, show_default=True, metavar="SECONDS", help="Time limit of one report."
)
@click.option("--each", is_flag=True, help="Make separate reports of several SOURCEs instead of comparing them.")
@click.option("--force", is_flag=True, help="Also make reports that have not changed.")
@negative_flag("code", "Leave the notebook's code out of the pages.")
@negative_flag("evidence", "Write no pages of runs.  [default: the runs that a report links to, at most 200]")
@unmasked
@click.option("--name", default="", metavar="NAME", help="Name of a single report.  [default: from its parameters]")
def report(targets: tuple[str, ...], kind: str | None, output: str, given: dict[str, Any], **options: Any) -> None:
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    For a SOURCE of logs (a folder, a file, a glob, a URL or a dataset), all notebooks for its kinds of logs are run;
    several sources of one kind are compared. A NOTEBOOK (a name or a path) after SOURCE selects that notebook; alone,
    it is run with each file of params/NOTEBOOK/, or once with the given parameters. FILE is one params file. Without
    arguments, every file of params/ becomes a report.

    The exit code is 1 if a report failed, and 2 if the batch is invalid.
    """
    started = time.monotonic()
    planned = {name: options.pop(name) for name in ("params", "notebooks", "texts", "name", "each")}
    if not targets and planned["params"] is None and not Path("params").is_dir():
        click.echo("no folder params here: making the sample reports; for your own logs: evalkit report FOLDER")
    if detect := options.pop("detect"):
        given["detect"] = detect
    reports = plan(targets, kind=kind or "", values=values_of(given), **planned)
    here = Path("notebooks")
    if planned["notebooks"] is None and here.absolute() != shipped("notebooks"):
        found = {str(report.notebook.path) for report in reports if report.notebook.path.parent == here}
        if found:
            click.echo(plain(f"executing notebooks of the current folder: {', '.join(sorted(found))}"))
    summary = run(reports, output=output, say=click.echo, **options)
    counts = [(summary.made, "made"), (summary.failed, "failed"), (summary.unchanged, "unchanged")]
    listed = ", ".join(f"{len(keys)} {word}" for keys, word in counts if keys) or "nothing was made"
    stopped = "Stopped; run the same command to continue. " if summary.stopped else ""
    click.echo(f"{stopped}{listed} in {time.monotonic() - started:.1f} s\n{plain(summary.index)}")
    if summary.stopped:
        sys.exit(130)
    sys.exit(1 if summary.failed else 0)


def values_of(given: dict[str, Any]) -> dict[str, Any]:
    """Convert the values of options for loading logs to parameters of notebooks."""
    if model := given.pop("model", ""):
        given["rename"] = (f"{UNKNOWN}={model}", *given.get("rename", ()))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


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
    for name, path in sorted(Places.of().all_notebooks().items()):
        print(plain(f"{name}: {read_notebook(path).title} ({path})"))
    print("To change them: evalkit notebooks DIR")


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE [NOTEBOOK]...")
@of_kind
@with_reading_options
@click.option("--output", "-o", default="evalkit-lab", show_default=True, metavar="DIR", help="Folder for the copies.")
@click.option("--no-browser", is_flag=True, help="Start the server, and print its address.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port of the server.  [default: 8888 or next]")
@click.option("--no-start", is_flag=True, help="Only write the notebooks.")
def lab(
    sources: tuple[str, ...],
    kind: str | None,
    output: str,
    no_browser: bool,
    port: int | None,
    no_start: bool,
    given: dict[str, Any],
) -> None:
    """Open JupyterLab on copies of the notebooks for SOURCE, with their parameters filled in.

    Copies that exist already keep your changes.
    """
    reports = plan(sources, kind=kind or "", values=values_of(given))
    first = {report.notebook.name: report for report in reversed(reports)}  # the first report of each
    known = set(Path(output).glob("*"))
    paths = [write_filled(Path(output), report.notebook, report.parameters) for report in reversed(first.values())]
    print("Copies of the notebooks, with parameters filled in:")
    for path in paths:
        print(f"  {plain(path)} (kept as it was)" if path in known else f"  {plain(path)}")
    if not no_start:
        if not find_spec("jupyterlab"):
            raise SourceError("JupyterLab is not installed: pip install jupyterlab")
        folder, name = os.path.split(absolute(str(paths[0])))
        opened = [f"--ServerApp.root_dir={folder}", f"--LabApp.default_url=/lab/tree/{quote(name)}"]
        if port:
            opened.append(f"--ServerApp.port={port}")
        if no_browser:
            opened.append("--no-browser")
        sys.exit(subprocess.call([sys.executable, "-m", "jupyterlab", *opened]))
