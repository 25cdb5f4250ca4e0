"""Every door gives one answer: terminal, analysis, dataset, following, notebook and page, for every kind of log."""

import csv
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from evalkit import compare, crafter, mindcraft, steps
from evalkit.cli import main
from evalkit.kinds import Logs, collect, denominators, kind_named, load, rates
from evalkit.kinds.follow import Following
from evalkit.reports import plan, run
from tests import messy
from tests.golden.record import ROOT, record_report

NUMBER = re.compile(r"-?\d+(?:\.(\d+))?(?:e-\d+)?")
Answers = dict[str, tuple[int | None, str]]  # by model or history: n (None: not shown), and a text with the numbers


class Kind(NamedTuple):
    """How a kind answers its main question: the analysis, and where the other doors show what it gives."""

    title: str
    source: str  # the parameter of its notebook
    notebook: str
    published: str  # the notebook's table
    rows: Callable[[Logs], pd.DataFrame]  # the analysis
    headline: Callable[[Logs], Mapping[str, Any]]
    name: str  # columns of the table: the groups, and what stands before estimate, low and high
    prefix: str
    cells: tuple[str, ...]  # headers of the terminal's columns with the estimate and its interval
    note: str  # what the terminal and following say of what is left out
    more: Mapping[str, str] = {}  # further parameters of the notebook

    @property
    def folder(self) -> Path:
        return messy.folder(self.title)

    @property
    def logs(self) -> str:
        return str(self.folder / "logs")

    @property
    def options(self) -> dict[str, Any]:
        tasks = self.folder / "tasks.json"
        return {"tasks": [str(tasks)]} if tasks.exists() else {}

    @property
    def parameters(self) -> dict[str, str]:
        given = {name: value for name, [value] in self.options.items()}
        return {self.source: self.logs, **given, **self.more}


def with_total(table: pd.DataFrame, total: pd.DataFrame, name: str) -> pd.DataFrame:
    return pd.concat([table, total.assign(**{name: messy.ALL})], ignore_index=True)


KINDS = (
    Kind(
        "mindcraft", "runs", "model_overview", "models",
        lambda logs: mindcraft.analysis.overview(logs.runs),
        lambda logs: mindcraft.analysis.headline(logs.runs[logs.runs["model_name"] == messy.ONE], ""),
        "model_name", "", ("success rate", "95 % interval"),
        "1 run holds a copy of another run's log, and counts in no rate", {"model": messy.ONE},
    ),
    Kind(
        "crafter", "traces", "crafter_scores", "scores",
        lambda logs: with_total(
            crafter.analysis.mean_scores(logs.episodes), crafter.analysis.mean_scores(logs.episodes, []), "model_name"
        ),
        lambda logs: compare.headline(compare.leaderboard(logs.episodes, "score")),
        "model_name", "", ("score", "95 % interval"), "2 of 8, left out; mean score with 2 at 0: 0.83 [-0.11, 3.55]",
    ),
    Kind(
        "steps", "history", "step_evaluation", "histories",
        lambda logs: with_total(
            steps.analysis.overview(logs.steps, logs.histories),
            steps.analysis.total(logs.steps, logs.histories),
            "history",
        ),
        lambda logs: steps.analysis.confirmed_success(logs.steps)._asdict(),
        "history", "confirmed_", ("confirmed",), "6 files: 4 used, 1 skipped, 1 failed",
    ),
)  # fmt: skip


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.title)
def kind(request) -> Kind:
    return request.param


@pytest.fixture(scope="module")
def logs(kind) -> Logs:
    return load(kind_named(kind.title), kind.logs, kind.options)


@pytest.fixture(scope="module")
def dataset(kind, tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("dataset") / "made")
    collect(kind_named(kind.title), kind.logs, path)
    return path


def of_rows(kind: Kind, rows: Iterable[Mapping[str, Any]]) -> Answers:
    numbers = [f"{kind.prefix}{name}" for name in ("estimate", "low", "high")]
    return {row[kind.name]: (int(row["n"]), " ".join(str(row[name]) for name in numbers)) for row in rows}


def of_csv(kind: Kind, text: str) -> Answers:
    return of_rows(kind, csv.DictReader(io.StringIO(text)))


TOTAL = re.compile(r"(?:[Mm]ean score:?|, confirmed) (\S+ \[[^]]*\])(?: \(95 % interval, n = (\d+))?")


def of_text(kind: Kind, text: str) -> Answers:
    """Read the table that a terminal shows, and what it says of all together."""
    assert kind.note in text
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if {"n", *kind.cells} <= set(cells_of(line)))
    head = cells_of(lines[start])
    head = ["name", *(head[1:] if head[0] == kind.name else head)]
    answers: Answers = {}
    for line in lines[start + 1 : lines.index("", start)]:
        if set(line) - {"-", " "} and " aborted at 0 " not in line:
            row = dict(zip(head, cells_of(line), strict=False))
            answers[whole(row["name"])] = (int(row["n"]), " ".join(row[cell] for cell in kind.cells))
    if total := TOTAL.search(text):
        answers[messy.ALL] = (int(total[2]) if total[2] else None, total[1])
    return answers


def cells_of(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def whole(name: str) -> str:
    """Give the name that was cut in its middle."""
    start, cut, end = name.partition("…")
    if not cut:
        return messy.ALL if name.startswith("all ") else name
    found = [own for kind in messy.KINDS.values() for own in kind.truth if own.startswith(start) and own.endswith(end)]
    (name,) = dict.fromkeys(found)
    return name


def in_terminal(kind: Kind, source: str) -> Answers:
    options = [word for name, values in kind.options.items() for value in values for word in (f"--{name}", value)]
    result = CliRunner().invoke(main, [kind.title, source, *options])
    assert result.exit_code == 0, result.stderr
    return of_text(kind, result.stdout)


def of_dataset(kind: Kind, dataset: str) -> Answers:
    return of_rows(kind, kind.rows(load(kind_named(kind.title), dataset, kind.options)).to_dict("records"))


def following(kind: Kind) -> Answers:
    later = time.time() + 600  # nothing is being written
    looking = Following(kind_named(kind.title), kind.logs, kind.options, idle=0, clock=lambda: later)
    return of_text(kind, looking.look().text)


def in_notebook(kind: Kind, folder: Path) -> Answers:
    params = folder / kind.notebook / "messy.yaml"
    params.parent.mkdir()
    params.write_text(yaml.safe_dump(kind.parameters))
    text = record_report(params)
    return of_csv(kind, text.partition(f"## publish\nname: {kind.published}\n")[2].partition("\n\n")[0])


def runs_of(kind: Kind) -> pd.DataFrame:
    logs = load(kind_named(kind.title), kind.logs, kind.options)
    return getattr(logs, logs.kind.runs)


def in_comparison(kind: Kind, source: str) -> Answers:
    options = [word for name, values in kind.options.items() for value in values for word in ("--option", name, value)]
    result = CliRunner().invoke(main, ["compare", "--kind", kind.title, source, *options])
    assert result.exit_code == 0, result.stderr
    head, _, *lines = result.stdout[: result.stdout.index("\n\n")].splitlines()
    names = cells_of(head)
    rows = [dict(zip(names, cells_of(line), strict=True)) for line in lines]
    return {whole(row["model"]): (int(row["runs"]), f"{row[names[4]]} {row[names[5]]}") for row in rows}


# doors that compare models, so not the histories of one
MODELS: dict[str, Callable[[Kind], Answers]] = {
    "rates": lambda kind: of_rows(kind, rates(runs_of(kind)).to_dict("records")),
    "both denominators": lambda kind: of_rows(kind, denominators(runs_of(kind)).to_dict("records")),
    "leaderboard": lambda kind: of_rows(kind, compare.leaderboard(runs_of(kind)).table.to_dict("records")),
    "compare in the terminal": lambda kind: in_comparison(kind, kind.logs),
}


DOORS: dict[str, Callable[[Kind, str, Path], Answers]] = {
    "terminal": lambda kind, dataset, folder: in_terminal(kind, kind.logs),
    "a dataset": lambda kind, dataset, folder: of_dataset(kind, dataset),
    "a dataset in the terminal": lambda kind, dataset, folder: in_terminal(kind, dataset),
    "following": lambda kind, dataset, folder: following(kind),
    "notebook": lambda kind, dataset, folder: in_notebook(kind, folder),
}


def numbers(text: str) -> list[tuple[float, float]]:
    """Read the numbers of a text, each with half a unit of its last digit."""
    unit = 100 if "%" in text else 1
    return [(float(found[0]) / unit, 0.5 / 10 ** len(found[1] or "") / unit) for found in NUMBER.finditer(text)]


def check(answers: Answers, expected: pd.DataFrame) -> None:
    """Hold what a door shows against the analysis; all groups but the total must be there."""
    assert set(expected.index) - {messy.ALL} <= set(answers) <= set(expected.index)
    for name, (n, text) in answers.items():
        row = expected.loc[name]
        assert n in (None, row["n"]), (name, text)
        shown, known = numbers(text), row[["estimate", "low", "high"]].dropna()
        assert len(shown) == len(known), (name, text)
        for (value, half), wanted in zip(shown, known, strict=True):
            assert abs(value - wanted) <= half * 1.001, (name, text, wanted)


@pytest.fixture(scope="module")
def expected(kind, logs) -> pd.DataFrame:
    table = kind.rows(logs).set_index(kind.name)
    return table.rename(columns=lambda name: name.removeprefix(kind.prefix)).rename(index=whole)


def test_the_analysis_says_what_was_counted_by_hand(kind, expected):
    truth = messy.KINDS[kind.title].truth
    assert set(expected.index) == set(truth)
    for name, (n, estimate) in truth.items():
        assert expected.loc[name, "n"] == n
        assert expected.loc[name, "estimate"] == pytest.approx(estimate, nan_ok=True), name
        assert expected.loc[name, ["low", "high"]].notna().all() == (estimate == estimate)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_n_estimate_and_interval(kind, door, dataset, expected, tmp_path):
    check(DOORS[door](kind, dataset, tmp_path), expected)


@pytest.mark.parametrize("door", MODELS)
def test_every_door_that_compares_models_gives_the_same_n_estimate_and_interval(kind, door, expected):
    if kind.name == "model_name":
        check(MODELS[door](kind), expected)


def test_the_page_gives_the_same_n_estimate_and_interval(kind, logs, expected, tmp_path):
    summary = run(
        plan([str(ROOT / "notebooks" / f"{kind.notebook}.ipynb")], values=kind.parameters),
        output=tmp_path, jobs=1, say=lambda line: None,
    )  # fmt: skip
    assert summary.failed == []
    [published] = tmp_path.rglob(f"*.{kind.published}.csv")
    check(of_csv(kind, published.read_text()), expected)
    [made] = json.loads(summary.manifest.read_text())["reports"]
    wanted, shown = kind.headline(logs), made["headline"]
    assert shown.get("label", "").startswith(wanted.get("label", ""))
    for name in ("n", "estimate", "low", "high"):
        assert shown.get(name) == pytest.approx(wanted.get(name)), name
