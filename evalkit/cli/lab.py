"""The command that opens the notebooks for a source in JupyterLab."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from evalkit.cli.options import of_kind, with_reading_options
from evalkit.cli.reports import values_of
from evalkit.io.paths import SourceError, absolute
from evalkit.io.text import plain
from evalkit.reports.notebooks import write_filled
from evalkit.reports.planning import plan


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
    first = {report.notebook.name: report for report in reversed(reports)}  # of several reports, the first
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
