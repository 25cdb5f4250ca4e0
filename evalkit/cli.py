"""The command line: a thin layer, every command calls one public function.

Heavy imports stand inside the commands, so that ``evalkit --help`` stays quick.
"""

import sys

import click

from evalkit._version import __version__


class _Group(click.Group):
    """A group whose commands answer a source that can't be used with one line and exit code 2."""

    def invoke(self, ctx: click.Context):
        from evalkit.io.files import SourceError

        try:
            return super().invoke(ctx)
        except SourceError as error:
            from evalkit.io.text import plain

            click.echo(f"evalkit: {plain(error)}", err=True)
            ctx.exit(2)
        except BrokenPipeError:  # the reader of a pipe has left, as in `evalkit … | head`
            sys.stderr.close()
            ctx.exit(0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalkit")
def main() -> None:
    """Turn raw logs of LLM agents into tables, pictures and HTML reports."""


@main.command()
@click.argument("targets", nargs=-1, metavar="[NOTEBOOK | FILE]...")
@click.option("--params", default="params", show_default=True, help="Folder of NOTEBOOK/REPORT.yaml.")
@click.option("--notebooks", default="notebooks", show_default=True, help="Folder of the notebooks.")
@click.option("--output", "-o", default="reports", show_default=True, help="Folder for pages, index and manifest.")
@click.option("--parameter", "-p", "texts", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a parameter.")
@click.option("--file", "-f", "files", multiple=True, metavar="FILE", help="YAML file of parameters.")
@click.option("--yaml", "-y", "yamls", multiple=True, metavar="TEXT", help="Parameters as YAML text.")
@click.option("--jobs", "-j", type=click.IntRange(1), help="Reports at a time.  [default: number of cores]")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=600, show_default=True, help="Seconds.")
@click.option("--force", is_flag=True, help="Also make reports that have not changed.")
@click.option("--no-code", is_flag=True, help="Leave the notebook's code out of the pages.")
@click.option("--no-fork", is_flag=True, help="Execute every notebook in a Jupyter kernel of its own.")
def report(targets, params, notebooks, output, texts, files, yamls, jobs, timeout, force, no_code, no_fork) -> None:
    """Make reports: execute notebooks with parameters, and write HTML pages with an index.

    Without arguments every file of params/ becomes a report. NOTEBOOK (a name in notebooks/, or a path) stands for
    the files of params/NOTEBOOK/; given with parameters it is executed once, with these. FILE is one params file.
    """
    from evalkit.reports import cli

    sys.exit(
        cli.report(
            targets, params=params, notebooks=notebooks, output=output, texts=texts, files=files, yamls=yamls,
            jobs=jobs, timeout=timeout, force=force, code=not no_code, fork=not no_fork,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
