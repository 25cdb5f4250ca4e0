"""The commands that make reports and copy their notebooks."""

import sys
from typing import Any

import click

from evalkit.cli.completion import complete_kinds, complete_notebooks, complete_parameters, complete_targets
from evalkit.cli.groups import COUNT, KIND_HELP, POSITIVE, common_options, unmasked


@click.command(short_help="Reports on a folder of logs, as HTML pages with an index.")
@click.argument("targets", nargs=-1, metavar="[SOURCE | NOTEBOOK | FILE]...", shell_complete=complete_targets)
@click.option("--kind", metavar="NAME", help=KIND_HELP, shell_complete=complete_kinds)
@common_options
@click.option("--params", metavar="DIR", help="Folder of NOTEBOOK/REPORT.yaml.  [default: params, or evalkit's own]")
@click.option("--notebooks", metavar="DIR", help="Folder of notebooks.  [default: notebooks, then evalkit's own]")
@click.option(
    "--output", "-o", default="reports", show_default=True, metavar="DIR", help="Folder for pages, index and manifest."
)
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
    "--jobs", "-j", type=COUNT, metavar="N", help="Number of reports made at a time.  [default: number of cores]"
)
@click.option(
    "--timeout", type=POSITIVE, default=600, show_default=True, metavar="SECONDS", help="Time limit of one report."
)
@click.option("--force", is_flag=True, help="Also make reports that have not changed.")
@click.option("--no-code", is_flag=True, help="Leave the notebook's code out of the pages.")
@click.option(
    "--evidence",
    type=click.Choice(["linked", "all", "none"]),
    default="linked",
    show_default=True,
    help="Which runs get pages: those that tables link to (at most 200 per report), all, or none.",
)
@unmasked
@click.option("--no-fork", is_flag=True, help="Execute every notebook in a Jupyter kernel of its own.")
@click.option(
    "--name", default="", metavar="NAME", help="Name of the report, if it is only one.  [default: its values]"
)
@click.option(
    "--remove", "gone", multiple=True, metavar="NAME", help="Delete a report from the output folder; make none."
)
def report(kind: str | None, no_code: bool, no_fork: bool, gone: tuple[str, ...], **given: Any) -> None:
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    SOURCE, a folder of logs (or a file, a glob, a URL or a dataset), is run with all notebooks for the kinds of logs it
    holds. NOTEBOOK (a name or a path) beside it selects only that notebook; alone, it is run with each file of
    params/NOTEBOOK/, or with given parameters once. FILE is one params file. Without arguments, every file of params/
    becomes a report.
    """
    from evalkit.reports import cli

    if gone:
        if given["targets"]:
            raise click.UsageError("--remove deletes reports and makes none: don't name a notebook with it")
        sys.exit(cli.remove(gone, given["output"]))
    sys.exit(cli.report(kind=kind or "", code=not no_code, fork=not no_fork, **given))


@click.command(short_help="Copy the notebooks behind the reports for editing.")
@click.argument("folder", required=False, metavar="[DIR]")
@click.argument("names", nargs=-1, metavar="[NOTEBOOK]...", shell_complete=complete_notebooks)
def notebooks(folder: str | None, names: tuple[str, ...]) -> None:
    """Copy evalkit's notebooks, or only the named ones, into DIR; without DIR, list them.

    `evalkit report` prefers notebooks in ./notebooks to evalkit's own.
    """
    from evalkit.reports import cli

    print(cli.copied(folder, names) if folder else cli.listed())
