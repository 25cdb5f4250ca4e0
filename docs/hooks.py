"""What the site has beside the pages of this folder, made from the code when it is built (a hook of mkdocs).

The README and its neighbours become pages; columns, commands and public names are listed from the code; the gallery
holds the reports of the samples, made anew.
"""

import inspect
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import jinja2

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
PACKAGES = ("", "compare", "compare.figures", "mindcraft", "mindcraft.analysis", "mindcraft.figures", "crafter")
PACKAGES += ("crafter.analysis", "crafter.benchmark", "crafter.figures", "steps", "steps.analysis")
PACKAGES += ("steps.figures", "trajectories")
PACKAGES += ("trajectories.analysis", "trajectories.figures", "stats", "kinds", "io", "evidence")
PACKAGES += ("failures", "failures.figures", "labels", "labels.figures", "display", "reports")
# the answer and the first figure of a report, in the gallery
ANSWER = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(
    """\
<br><span class="answer">{{ answer }}</span>
{%- if picture -%}
<br><a href="{{ folder }}/{{ page }}"><img class="thumbnail" src="{{ folder }}/{{ picture }}" alt="{{ answer }}"></a>
{%- endif %}"""
)
# what the examples in docstrings begin with, by the package; pages of the reference show it, and a test runs it
EXAMPLES = {
    "mindcraft": """import evalkit
from evalkit import compare, display, evidence, io, kinds, mindcraft, reports
from evalkit.mindcraft import analysis, figures

logs = mindcraft.load("samples:mindcraft/runs", "samples:mindcraft/tasks")
runs = logs.runs
folder = io.resolve(runs["source"].iloc[0])""",
    "crafter": """from evalkit import compare, crafter
from evalkit.crafter import analysis, benchmark, figures

logs = crafter.load("samples:crafter")
episodes, achievements = logs.episodes, logs.achievements""",
    "steps": """from evalkit import steps
from evalkit.steps import analysis, figures

logs = steps.load("samples:steps/typed.json")""",
    "trajectories": """from evalkit import compare, trajectories
from evalkit.trajectories import analysis

logs = trajectories.load("samples:trajectories/harbor")
runs = logs.runs""",
    "failures": """import evalkit
from evalkit import failures
from evalkit.failures import figures

logs = evalkit.load("samples:trajectories/harbor")""",
    "labels": """import pandas as pd

import evalkit
from evalkit import labels
from evalkit.labels import figures

logs = evalkit.load("samples:judges/runs.jsonl")
given = labels.read_labels("samples:judges/labels.csv")
verdicts = labels.read_verdicts("samples:judges/verdicts.csv")
comparison = labels.compare_judges(logs, given, verdicts)""",
    "stats": """import numpy as np
import pandas as pd

from evalkit import stats

frame = pd.DataFrame({"model": list("aaabbb"), "task": list("xyz") * 2, "success": [1, 0, 1, 0, 0, 1]})
cells = stats.cells_of(frame, "model", "task", "success")""",
}
SAMPLES = ("mindcraft", "crafter", "steps", "trajectories")
NEIGHBOURS = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
KINDS_OF_VALUES = {"str": "text", "category": "text", "int": "whole number", "float": "number", "bool": "truth value"}


def on_config(config: Any) -> Any:
    """Append the pages of the packages to the reference."""
    reference = next(section["Reference"] for section in config["nav"] if "Reference" in section)
    reference.append({"Python": [{name: f"reference/api/{name}.md"} for name in map(_full_name, PACKAGES)]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    made = {name: (ROOT / neighbour).read_text("utf-8") for name, neighbour in NEIGHBOURS.items()}
    made |= {
        "gallery.md": gallery(),
        "reference/columns.md": columns(),
        "reference/commands.md": commands(),
    }
    made |= {f"reference/api/{name}.md": api(name) for name in map(_full_name, PACKAGES)}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to pages of this site, and show what lies outside of it as a path."""
    here = os.path.dirname(page.file.src_uri)

    def link(match: re.Match) -> str:
        text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        start = "" if page.file.src_uri in NEIGHBOURS else f"docs/{here}"
        place = os.path.normpath(os.path.join(start, path))
        named = {neighbour: name for name, neighbour in NEIGHBOURS.items()}
        if place in named:
            place = f"docs/{named[place]}"
        if not place.startswith("docs/"):
            return text if text.startswith("`") else f"{text} (`{place}`)" if text != place else f"`{place}`"
        address = os.path.relpath(place.removeprefix("docs/"), here or ".")
        if anchor:
            address += f"#{anchor}"
        return f"[{text}]({address})"

    return re.sub(r"\[([^\]\[]*)\]\(([^)\s]+)\)", link, markdown)


def on_post_build(config: Any) -> None:
    """Make the gallery's reports and pages of runs; not where the environment says EVALKIT_GALLERY=off."""
    if os.environ.get("EVALKIT_GALLERY") == "off":
        return
    import evalkit
    from evalkit.evidence import write_view
    from evalkit.reports import plan, run

    for kind in SAMPLES:
        logs = evalkit.load(f"samples:{kind}")
        write_view(logs, logs.runs, Path(config["site_dir"], "gallery-runs", kind))
    output = Path(config["site_dir"], "gallery-reports")
    summary = run(plan(params=ROOT / "params", notebooks=ROOT / "notebooks"), output=output, say=lambda line: None)
    if summary.failed:
        raise SystemExit(f"reports of the gallery failed: {', '.join(summary.failed)}")
    page = Path(config["site_dir"], "gallery.html")
    if page.exists():
        page.write_text(with_answers(page.read_text("utf-8"), output), "utf-8")


def with_answers(page: str, reports: Path) -> str:
    """Show the answer and the first figure of each report in the gallery."""
    from evalkit.reports.report import read_records

    for record in read_records(reports):
        pictures = [name for name in record["figures"] if name.endswith(".png")]
        shown = ANSWER.render(
            answer=record["findings"][0]["text"],
            folder=f"{reports.name}/{record['notebook']}",
            page=f"{record['name']}.html",
            picture=pictures[0] if pictures else "",
        )
        page = page.replace(f'<span data-report="{record["key"]}"></span>', shown)
    return page


def gallery() -> str:
    """List the reports of the samples with their titles, and the pages of their runs."""
    from evalkit.reports import plan

    index = '<a href="gallery-reports/index.html">the index</a>'
    lines = ["# Gallery", "", f"The reports of the sample data, as `make report` makes them: {index}.", ""]
    titles: dict[str, list[str]] = {}
    for report in plan(params=ROOT / "params", notebooks=ROOT / "notebooks"):
        link = f'<a href="gallery-reports/{report.key}.html">{report.name}</a>'
        titles.setdefault(report.notebook.title, []).append(f'- {link} <span data-report="{report.key}"></span>')
    for title, links in titles.items():
        lines += [f"## {title}", "", *links, ""]
    lines += ["## Runs, turn by turn", "", "What `evalkit view samples:KIND` writes:", ""]
    lines += [f'- <a href="gallery-runs/{kind}/index.html">{kind}</a>' for kind in SAMPLES]
    return "\n".join([*lines, ""])


def columns() -> str:
    """Write the columns of every table of every kind."""
    from evalkit.kinds import RUN_COLUMNS, kind_named
    from evalkit.kinds.names import BUILT_IN
    from evalkit.kinds.transcript import TURNS

    lines = ["# Columns", "", "A `?` behind a kind of value: it may be missing.", "", "## Runs of every kind", ""]
    lines += _columns(RUN_COLUMNS)
    lines += ["", "## Turns of every kind", "", *_columns(TURNS)]
    for name in BUILT_IN:
        kind = kind_named(name)
        for table, rows in {**kind.tables, **kind.lazy_tables}.items():
            lines += ["", f"## {name}: {table}", "", *_columns(rows)]
    return "\n".join(lines)


def _columns(rows: Any) -> list[str]:
    head = ["| column | values | unit | meaning |", "|---|---|---|---|"]
    return head + [
        f"| `{c.name}` | {KINDS_OF_VALUES.get(c.dtype.rstrip('?'), c.dtype.rstrip('?'))}{'?' * c.dtype.endswith('?')} "
        f"| {_cell(c.unit)} | {_cell(c.meaning)} |"
        for c in rows
    ]


def commands() -> str:
    """Write what ``--help`` says of every command."""
    from evalkit.cli import main

    lines = ["# Commands", ""]
    for path, command in _commands(main, "evalkit"):
        context = click.Context(command, info_name=path)
        lines += [f"## {path}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from _commands(below, f"{path} {name}")


def api(name: str) -> str:
    """Name every public function, class and value of a package for mkdocstrings."""
    module = import_module(name)
    lines = [f"# {name}", "", _first_paragraph(module), ""]
    lines += ["Examples begin with:", "", "```python", examples_begin(name), "```", ""]
    for public in sorted(public_names(name)):
        lines += _entry(public, getattr(module, public))
    return "\n".join(lines)


def examples_begin(name: str) -> str:
    """Return the code that the examples of a package, or of a name in it, begin with."""
    parts = name.split(".")
    return EXAMPLES.get(parts[1] if len(parts) > 1 else "", EXAMPLES["mindcraft"])


def public_names(name: str) -> list[str]:
    """Return the public names of a package: its stub has them before those that only evalkit itself uses."""
    module = import_module(name)
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    if not stub.exists():
        return list(module.__all__)
    public, _, _ = stub.read_text("utf-8").partition("# isort: split")
    return re.findall(r"(?m) as (\w+)$", public)


def _full_name(package: str) -> str:
    return f"evalkit.{package}".rstrip(".")


def _entry(name: str, value: Any) -> list[str]:
    home = getattr(value, "__module__", "") or ""
    if isinstance(value, ModuleType):
        return [f"## `{name}`", "", f"The package `{value.__name__}`.", ""]
    if (inspect.isclass(value) or inspect.isfunction(value)) and home.startswith("evalkit."):
        return [f"::: {home}.{value.__qualname__}", ""]
    shown = repr(value)
    return [f"## `{name}`", "", f"`{_cell(shown if len(shown) < 200 else type(value).__name__)}`", ""]


def _first_paragraph(module: ModuleType) -> str:
    return " ".join((module.__doc__ or "").strip().partition("\n\n")[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("`", "'")
