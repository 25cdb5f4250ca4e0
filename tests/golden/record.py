"""Record what reports and commands show on the sample data and on messy folders.

One report of each notebook is recorded whole, as plain text: every headline, text, figure (its labels and the data
drawn), table and published table, in order. Of every report, the numbers of the table behind its answer are recorded.
What changes from machine to machine (times, versions, paths) is left out.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import matplotlib as mpl
import nbformat
import numpy as np
import pandas as pd
import yaml
from click.testing import CliRunner
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import evalkit
from evalkit.cli import main
from evalkit.display import alt_of
from evalkit.display.words import finding_text, headline_text
from evalkit.kinds import Finding
from tests import messy

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).parent / "expected"
PARAMS = Path(__file__).parent / "params"
_RUNS = "samples:mindcraft/runs --tasks samples:mindcraft/tasks"
_JUDGES = "samples:judges/runs.jsonl --labels samples:judges/labels.csv --verdicts samples:judges/verdicts.csv"
_MINI = "samples:trajectories/swe-agent/alder-large/made__up-103"
_LOG = "samples:mindcraft/runs/small-models/dogwood-8b/materials_1_rooms_1_window_0_carpet_0_variant_0/agent_0.json"
COMMANDS = {
    "mindcraft": f"evalkit mindcraft {_RUNS}",
    "mindcraft-by": f"evalkit mindcraft {_RUNS} --by task_type --by model_name",
    "mindcraft-without-tasks": "evalkit mindcraft samples:mindcraft/runs",
    "mindcraft-messy": "evalkit mindcraft messy:mindcraft/logs --tasks messy:mindcraft/tasks.json",
    "crafter": "evalkit crafter samples:crafter --by-difficulty",
    "crafter-verbose": "evalkit crafter samples:crafter --verbose",
    "crafter-one": "evalkit crafter samples:crafter/session_crafter_episode_1_scripted-miner.json",
    "crafter-messy": "evalkit crafter messy:crafter/logs --by-difficulty",
    "crafter-all": "evalkit crafter messy:crafter/logs --all",
    "steps": "evalkit steps samples:steps",
    "steps-checks": "evalkit steps samples:steps/typed.json --checks",
    "steps-show": "evalkit show samples:steps/typed.json",
    "steps-messy": "evalkit steps messy:steps/logs",
    "trajectories": "evalkit trajectories samples:trajectories/harbor",
    "trajectories-messy": "evalkit trajectories messy:trajectories/logs",
    "trajectories-show": f"evalkit show {_MINI}/made__up-103.traj.json --last 6",
    "compare-trajectories": "evalkit compare samples:trajectories",
    "compare-by": "evalkit compare samples:trajectories --compare-by agent,model_name",
    "audit": "evalkit audit samples:trajectories/harbor --all",
    "audit-messy": "evalkit audit messy:trajectories/logs",
    "compare-table": "evalkit compare samples:trajectories/table/runs.csv",
    "judges": f"evalkit judges {_JUDGES} --all",
    "detect-mixed": "evalkit detect messy:mixed/logs",
    "compare-mixed": "evalkit compare messy:mixed/logs",
    "compare-mixed-mindcraft": "evalkit compare messy:mixed/logs --kind mindcraft",
    "mindcraft-mixed": "evalkit mindcraft messy:mixed/logs --rename GPT-4o=gpt-4o",
    "show-mixed": "evalkit show messy:mixed/logs --run nothing",
    "show": f"evalkit show {_LOG} --last 6",
}
PAGES = (  # the report of each notebook that is recorded whole
    "audit/terminal_tasks",
    "cooking_blocked_agents/three_items",
    "crafter_scores/messy",
    "judges/verified",
    "failures/mindcraft",
    "leaderboard/crafter",
    "model_comparison/messy",
    "model_overview/dogwood-8b",
    "step_evaluation/messy",
    "trajectories/messy",
)
_SHOWS = ("show_answer", "show_details", "show_findings", "show_text", "show_figure", "show_table", "show_runs",
          "show_pairs", "publish")  # fmt: skip
_IDS = ["run_id", "run_id_a", "run_id_b", "run_ids", "run_ids_baseline"]  # made of the place where the samples lie
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")


def reports() -> list[Path]:
    """List the parameter files of all sample reports, and of those that only tests make."""
    return sorted([*(ROOT / "params").rglob("*.yaml"), *PARAMS.rglob("*.yaml")])


class Recorded(NamedTuple):
    """What a report shows: all of it as text, and the numbers of the table behind its answer as CSV."""

    text: str
    numbers: str


def name_of(params: Path) -> str:
    """Return the name of a report: its notebook and its parameter file, ``leaderboard/crafter``."""
    return f"{params.parent.name}/{params.stem}"


@cache
def record_report(params: Path, notebooks: Path = ROOT / "notebooks") -> Recorded:
    """Run the cells of a report's notebook in this process, and record what it shows."""
    notebook = nbformat.read(notebooks / f"{params.parent.name}.ipynb", as_version=4)
    lines: list[str] = []
    answers: list[pd.DataFrame] = []
    recorders = {name: _recorder(name, lines, answers) for name in _SHOWS}
    shown = mock.Mock()  # what is shown otherwise, such as folded texts
    with (
        mock.patch.multiple(evalkit, create=True, provenance=mock.Mock(), **recorders),
        mock.patch("evalkit.display.show.display", shown),
        mpl.rc_context(),
    ):
        names: dict[str, Any] = {}
        for cell in notebook.cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{params.parent.name}:{cell.id}", "exec"), names)
                if "parameters" in cell.metadata.get("tags", []):
                    names |= yaml.safe_load(messy.with_folders(params.read_text("utf-8")))
    numbers = answers[0].drop(columns=["run_id", "sentence", "warning"], errors="ignore")
    return Recorded(_without_paths("\n".join(lines)), _without_paths("\n".join(_csv(numbers))))


def record_command(line: str) -> str:
    """Run a command line in this process, and write down its output and exit code."""
    result = CliRunner().invoke(main, messy.with_folders(line).split()[1:], catch_exceptions=False)
    text = _without_paths(f"$ {line}\n{result.output}\n[exit code {result.exit_code}]\n")
    return re.sub(r"^Timestamp: .*$", "Timestamp: …", text, flags=re.MULTILINE)


def differences(expected: str, got: str) -> list[str]:
    """List the lines that differ; numbers may differ in their sixth digit."""
    old, new = expected.splitlines(), got.splitlines()
    found = [f"- {a}\n+ {b}" for a, b in zip(old, new, strict=False) if a != b and not _alike(a, b)]
    if len(old) != len(new):
        more, sign = (old, "-") if len(old) > len(new) else (new, "+")
        found += [f"{sign} {line}" for line in more[min(len(old), len(new)) :][:5]]
        found.append(f"{len(old)} lines were expected, there are {len(new)}")
    return found


def _alike(a: str, b: str) -> bool:
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    pairs = zip(_numbers(a), _numbers(b), strict=True)
    return all(math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-9) for x, y in pairs)


def _numbers(line: str) -> list[float]:
    return [float(text.replace(",", "").replace("−", "-")) for text in _NUMBER.findall(line)]


def _recorder(name: str, lines: list[str], answers: list[pd.DataFrame]) -> Callable[..., None]:
    def record(thing: Any = None, *args: Any, **options: Any) -> None:
        if name == "show_answer":
            answers.append(args[0])
        if name == "publish" and thing is None:
            for called, table in options.items():
                lines.extend(["", "## publish", *_published(table, called)])
            return
        if name in ("show_table", "show_runs", "show_pairs") and "name" in options:
            table = thing if name == "show_table" else args[0]
            lines.extend(["", "## publish", *_published(table, options["name"])])
        lines.extend(["", f"## {name}", *_RECORDERS[name](thing, *args, **options)])

    return record


def _headline(estimate: Any, label: str = "", **_: Any) -> Iterator[str]:
    values = estimate._asdict() if hasattr(estimate, "_asdict") else dict(estimate)
    keys = ("estimate", "low", "high", "n", "n_tasks", "method", "warning")
    label = label or headline_text(values)
    yield f"{label}: " + ", ".join(f"{key} {_text(values[key])}" for key in keys if key in values)


def _answer(findings: Sequence[Finding], table: pd.DataFrame, caption: str = "", **options: Any) -> list[str]:
    first = next((one for one in findings if "headline" in one.values), findings[0])
    main = options.get("headline") or first.values.get("headline", {})
    lines = [*_headline(main, options.get("label", ""))] if main else []
    texts = [f"{finding_text(one)} [{one.section}]" for one in (first, *(one for one in findings if one is not first))]
    return [*lines, *texts, *_table(table, caption)]


def _figure(figure: Figure | Axes, caption: str = "", **_: Any) -> Iterator[str]:
    figure = figure.figure if isinstance(figure, Axes) else figure
    yield f"caption: {caption}"
    yield f"alt: {alt_of(figure)}"
    for number, ax in enumerate(figure.axes, 1):
        yield f"axes {number}: {ax.get_title()!r}, x {ax.get_xlabel()!r}, y {ax.get_ylabel()!r}"
        yield "  x ticks: " + " | ".join(label.get_text() for label in ax.get_xticklabels())
        yield "  y ticks: " + " | ".join(label.get_text() for label in ax.get_yticklabels())
        for line in ax.lines:
            yield "  line: " + _points(np.column_stack([_floats(line.get_xdata()), _floats(line.get_ydata())]))
        for collection in ax.collections:
            offsets = np.ma.filled(np.ma.asarray(collection.get_offsets(), dtype=float), np.nan)
            paths = [path.vertices for path in collection.get_paths()] if len(offsets) < 2 else []
            yield "  points: " + _points(np.concatenate([offsets, *paths]) if paths else offsets)
        for patch in ax.patches:
            yield "  patch: " + _points(patch.get_extents().transformed(ax.transData.inverted()).get_points())
        for image in ax.images:
            yield "  cells: " + _points(np.atleast_2d(np.ma.filled(image.get_array(), np.nan)))
        yield from (f"  text: {text.get_text()}" for text in ax.texts)
    for legend in figure.legends:
        yield "legend: " + " | ".join(text.get_text() for text in legend.get_texts())


def _table(table: pd.DataFrame, caption: str = "", **_: Any) -> list[str]:
    return [f"caption: {caption}", *_csv(table.drop(columns="run_id", errors="ignore"))]


def _published(table: pd.DataFrame, name: str) -> list[str]:
    if name == "ledger":  # hundreds of files: how many of them there are of each status and reason
        table = table.groupby(["status", "reason"], dropna=False).size().rename("files").reset_index()
    return [f"name: {name}", *_csv(table)]


def _csv(table: pd.DataFrame) -> list[str]:
    rounded = table.drop(columns=_IDS, errors="ignore").apply(lambda column: column.map(_text))
    return rounded.to_csv(index=False, lineterminator="\n").splitlines()


def _text(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return "NaN" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def _floats(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)


def _points(points: np.ndarray) -> str:
    return " ".join("(" + ", ".join(f"{value + 0.0:.6g}" for value in point) + ")" for point in points)


def _without_paths(text: str) -> str:
    lines = messy.without_folders(text.replace(f"{ROOT}/", "")).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip() + "\n"


_RECORDERS: dict[str, Callable[..., Any]] = {
    "show_answer": _answer,
    "show_details": lambda title, text: [title, *str(text).splitlines()],
    "show_findings": lambda findings: [f"{finding_text(one)} [{one.section}]" for one in findings],
    "show_text": lambda text: str(text).splitlines(),
    "show_figure": _figure,
    **dict.fromkeys(("show_runs", "show_pairs"), lambda logs, table, caption="", **_: _table(table, caption)),
    "show_table": _table,
}
