"""Terminal, analysis, dataset, following, notebook and page give the same answer, for every kind of log."""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import compare, crafter, mindcraft, steps
from evalkit._text import columns_in_words
from evalkit.cli import main
from evalkit.compare.ranking import ranked
from evalkit.display.follow import Following
from evalkit.display.words import finding_text, headline_text
from evalkit.io import plain, write_frame
from evalkit.kinds import Logs, collect, kind_named, load, rates, rates_by_denominator
from evalkit.kinds.options import COMMON
from evalkit.kinds.runs import compared_in, exported
from evalkit.reports import plan, run
from tests import messy
from tests.golden.record import ROOT
from tests.messy import NONE, SLOW
from tests.undrawn import undrawn

RATE = ("estimate", "low", "high")
NUMBER = re.compile(r"-?\d+(?:\.(\d+))?(?:e-\d+)?")
TOTAL = re.compile(r"(?:[Mm]ean score|, confirmed) (\S+ (?:% )?\[[^]]*\])(?: \(n = (\d+))?")
Answers = dict[str, list[Any]]  # by model or history: n (None: not shown), and cells with estimate and interval


class Kind(NamedTuple):
    """How a kind answers its main question: its analysis, and where terminal, notebook and page show the result."""

    title: str
    source: str  # the parameter of its notebook
    notebook: str
    published: str  # the notebook's table
    rows: Callable[[Logs], pd.DataFrame]  # the analysis
    headline: Callable[[Logs], Mapping[str, Any]]
    name: str  # columns of the table: the groups, and what stands before estimate, low and high
    prefix: str
    cells: tuple[str, str]  # headers of the terminal's columns with n, and with the estimate and its interval
    note: str  # what the terminal and following say of what is left out
    value: str  # what models are compared by
    ways: Mapping[str, list[str]]  # a value for each option that all kinds have
    more: Mapping[str, str] = {}  # further parameters of the notebook

    @property
    def logs(self) -> str:
        return str(messy.folder(self.title) / "logs")

    @property
    def options(self) -> dict[str, Any]:
        tasks = messy.folder(self.title) / "tasks.json"
        return {"tasks": [str(tasks)]} if tasks.exists() else {}

    def load(self, source: str = "", **given: Any) -> Logs:
        return load(source or self.logs, self.title, **{**self.options, **given})

    def answers(self, table: pd.DataFrame) -> Answers:
        return of_table(table.rename(columns=lambda column: column.removeprefix(self.prefix)), self.name)

    def said(self, source: str = "", *words: str, compared: bool = False, **given: list[str]) -> str:
        """Give what the kind's command prints, or that which compares models."""
        own = [[f"--{name}", value] for name, [value] in self.options.items()]
        own += [[f"--{name.replace('_', '-')}", value] for name, values in given.items() for value in values]
        command = ["compare", "--kind", self.title] if compared else [self.title]
        return printed(*command, source or self.logs, *(word for words in own for word in words), *words)


@cache
def printed(*line: str) -> str:
    """Give what a command prints; the files that it reads stay the same."""
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def with_total(table: pd.DataFrame, total: pd.DataFrame, name: str) -> pd.DataFrame:
    return pd.concat([table, total.assign(**{name: messy.ALL})], ignore_index=True)


KINDS = (
    Kind(
        title="mindcraft",
        source="runs",
        notebook="model_overview",
        published="models",
        rows=lambda logs: mindcraft.analysis.overview(logs.runs),
        headline=lambda logs: mindcraft.analysis.headline(logs.runs[logs.runs["model_name"] == messy.ONE], ""),
        name="model_name",
        prefix="",
        cells=("runs", "success rate [95 %]"),
        note="copies of another run's log, excluded from all rates: 1",
        value="is_successful",
        ways={
            "where": ["task_type!=techtree"],
            "cluster": ["task_type"],
            "rename": [f"{SLOW}=slow"],
            "compare_by": ["task_type,model_name"],
        },
        more={"model": messy.ONE},
    ),
    Kind(
        title="crafter",
        source="traces",
        notebook="crafter_scores",
        published="scores",
        rows=lambda logs: with_total(
            crafter.analysis.mean_scores(logs.episodes), crafter.analysis.mean_scores(logs.episodes, []), "model_name"
        ),
        headline=lambda logs: compare.headline(compare.leaderboard(logs.episodes, "score")),
        name="model_name",
        prefix="",
        cells=("n", "mean score [95 %]"),
        note="2 of 8, left out; mean score with 2 at 0: 0.83 [-0.11, 3.55]",
        value="score",
        ways={
            "where": ["score!=0.95"],
            "cluster": ["difficulty"],
            "rename": [f"{NONE}=none"],
            "compare_by": ["difficulty"],
        },
    ),
    Kind(
        title="steps",
        source="history",
        notebook="step_evaluation",
        published="histories",
        rows=lambda logs: with_total(
            steps.analysis.overview(logs.runs, logs.steps), steps.analysis.total(logs.runs, logs.steps), "history"
        ),
        headline=lambda logs: steps.analysis.confirmed_success(logs.steps)._asdict(),
        name="history",
        prefix="confirmed_",
        cells=("n", "confirmed success [95 %]"),
        note="6 files: 4 used, 1 skipped, 1 failed",
        value="score",
        ways={
            "where": ["judged>=4"],
            "cluster": ["status"],
            "rename": ["unknown=agent"],
            "compare_by": ["status"],
        },
    ),
    Kind(
        title="trajectories",
        source="source",
        notebook="trajectories",
        published="leaderboard",
        rows=lambda logs: rates(logs.runs),
        headline=lambda logs: compare.headline(compare.leaderboard(logs.runs)),
        name="model_name",
        prefix="",
        cells=("runs", "success rate [95 %]"),
        note="2 runs also in other logs, or repeated later: excluded",
        value="is_successful",
        ways={
            "where": ["task_id!=cook"],
            "cluster": ["task_type"],
            "rename": [f"{NONE}=none"],
            "compare_by": ["model_name,status"],
        },
    ),
)


# Read what the terminal, files and pages show


def of_table(table: pd.DataFrame, name: str = "model_name") -> Answers:
    return {whole(str(row[name])): [row["n"], *(row[end] for end in RATE)] for row in table.to_dict("records")}


def of_pairs(table: pd.DataFrame, *columns: str) -> dict[tuple[str, str], list[Any]]:
    rows = table.to_dict("records")
    return {(whole(row["model_a"]), whole(row["model_b"])): [row[column] for column in columns] for row in rows}


def of_terminal(kind: Kind, text: str) -> Answers:
    """Read the table that a kind's command prints, and what it says of all together."""
    answers: Answers = {n: [row[cell] for cell in kind.cells] for n, row in rows_of(text, *kind.cells).items()}
    if total := TOTAL.search(text):
        answers[messy.ALL] = [total[2], total[1]]
    return answers


def rows_of(text: str, *heads: str) -> dict[str, dict[str, str]]:
    """Read the table under these headers: its rows by their first column, which may have no header."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()] + [[""]]
    start = next(i for i, cells in enumerate(lines) if set(heads) <= set(cells))
    rows = [cells for cells in lines[start + 1 : lines.index([""], start)] if set("".join(cells)) - {"-"}]
    rows = [cells for cells in rows if "aborted at 0" not in cells[0]]
    columns = lines[start] if len(rows[0]) == len(lines[start]) else ["name", *lines[start]]
    return {whole(cells[0]): dict(zip(columns, cells, strict=False)) for cells in rows}


def whole(name: str) -> str:
    """Give the name that was cut in its middle."""
    start, cut, end = name.partition("…")
    if not cut:
        return messy.ALL if name.startswith("all ") else name
    found = [own for truth in messy.KINDS.values() for own in truth if own.startswith(start) and own.endswith(end)]
    (name,) = dict.fromkeys(found)
    return name


def numbers(cells: Iterable[Any]) -> list[tuple[float, float]]:
    """Read the numbers of cells, each with half a unit of its last digit; NaN is no number."""
    found = []
    for text in (str(cell) for cell in cells if not pd.isna(cell)):
        unit, matches = 100 if "%" in text else 1, NUMBER.finditer(text)
        found += [(float(match[0]) / unit, 0.5 / 10 ** len(match[1] or "") / unit) for match in matches]
    return found


def check(shown: Mapping[Any, list[Any]], wanted: Mapping[Any, list[Any]]) -> None:
    """Compare shown cells, numbers or texts, with the numbers of the analysis; a total may be missing."""
    assert set(wanted) - {messy.ALL} <= set(shown) <= set(wanted)
    for key, cells in shown.items():
        known = [value for value in wanted[key][cells[0] is None :] if not pd.isna(value)]
        found = numbers(cells)
        assert len(found) == len(known), (key, cells, known)
        for (value, half), number in zip(found, known, strict=True):
            assert value == pytest.approx(number, rel=1e-9, abs=half * 1.001), (key, cells, known)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.title)
def kind(request) -> Kind:
    return request.param


@pytest.fixture(scope="module")
def logs(kind) -> Logs:
    return kind.load()


@pytest.fixture(scope="module")
def runs(logs) -> pd.DataFrame:
    return getattr(logs, logs.kind.runs)


@pytest.fixture(scope="module")
def expected(kind, logs) -> Answers:
    return kind.answers(kind.rows(logs))


@pytest.fixture(scope="module")
def dataset(kind, tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("dataset") / "made")
    collect(kind_named(kind.title), kind.logs, path)
    return path


class Page(NamedTuple):
    """What a report says: its published tables, its headline, and the files of the page and of the index."""

    tables: Mapping[str, pd.DataFrame]
    headline: Mapping[str, Any]
    html: str
    index: str


@pytest.fixture(scope="module")
def page(kind, dataset, tmp_path_factory) -> Page:
    """Return the page of the dataset: notebooks take one where they take a folder. It has no figures."""
    notebook = str(ROOT / "notebooks" / f"{kind.notebook}.ipynb")
    values = {kind.source: dataset, **{name: value for name, [value] in kind.options.items()}, **kind.more}
    output = tmp_path_factory.mktemp("page")
    with undrawn():
        summary = run(plan([notebook], values=values), output=output, jobs=1, evidence=False, say=lambda line: None)
    assert summary.failed == []
    files = {path.stem: path for path in output.rglob("*.csv") if path.read_text().strip()}
    [made] = json.loads(summary.manifest.read_text())["reports"]
    tables = {name: pd.read_csv(path, na_values=["–"]) for name, path in files.items()}
    html = (output / made["page"]).read_text()
    return Page(tables, made["headline"], html, summary.index.read_text())


@pytest.fixture(scope="module")
def followed(kind) -> str:
    """Return what following shows."""
    later = time.time() + 600  # nothing is being written
    return Following(kind_named(kind.title), kind.logs, kind.options, idle=0, clock=lambda: later).look().text


def test_the_analysis_says_what_was_counted_by_hand(kind, expected):
    truth = messy.KINDS[kind.title]
    assert set(expected) == set(truth)
    for name, (n, estimate) in truth.items():
        assert expected[name][:2] == [n, pytest.approx(estimate, nan_ok=True)], name
        assert pd.notna(expected[name][2:]).all() == (estimate == estimate)


def test_terminal_file_dataset_and_following_give_the_same_n_estimate_and_interval(kind, dataset, expected, followed):
    check(of_terminal(kind, kind.said()), expected)
    check(of_terminal(kind, followed), expected)
    check(kind.answers(kind.rows(kind.load(dataset))), expected)
    file = f"{dataset}.csv"
    check(of_terminal(kind, kind.said(dataset, "--output", file)), expected)
    check(kind.answers(pd.read_csv(file, na_values=["–"])), expected)


def test_excluded_runs_are_named(kind, followed):
    assert kind.note in kind.said()
    assert kind.note in followed


STATED = re.compile(r"-?\d[\d.]*(?: %)? (?:points )?\[[^]]*\]")


def stated(text: str) -> str:
    """Give the first estimate with its interval of a text, without its unit."""
    found = STATED.search(text)
    assert found, text
    return found[0].replace(" points", "")


@pytest.mark.slow
def test_the_first_sentence_states_an_estimate_of_the_table_below_it(kind, page):
    """In the terminal, on the page and in the index: the same number and interval as in a row of the table."""
    head, _, rest = kind.said().partition("\n\n")
    assert stated(head) in rest
    answer, _, rest = page.html.partition('class="evalkit-answer"')[2].partition("</p>")
    shown = re.findall(r"<nobr>([^<]*)</nobr>", rest.partition("</table>")[0])
    assert stated(answer) in shown
    assert stated(answer) in page.index


def test_the_page_gives_the_same_n_estimate_and_interval(kind, logs, expected, page):
    check(kind.answers(page.tables[kind.published]), expected)
    wanted, shown = kind.headline(logs), page.headline
    assert shown.get("label", "").startswith(wanted.get("label", ""))
    for name in ("n", *RATE):
        assert shown.get(name) == pytest.approx(wanted.get(name)), name


GROUPS = "compare_by"  # changes what stands in the tables; the other options can be given together
OTHERS = [option.name for option in COMMON if option.name not in ("model", GROUPS)]


@pytest.mark.parametrize("ways", [[], [GROUPS], OTHERS], ids="-".join)
def test_commands_that_compare_models_agree_with_the_options_of_all_kinds(kind, ways):
    given = {way: kind.ways[way] for way in ways}
    options = {option.name: option for option in COMMON}
    logs = kind.load(
        **{name: values if options[name].many else options[name].type(values[0]) for name, values in given.items()}
    )
    runs, wanted = getattr(logs, logs.kind.runs), kind.answers(kind.rows(logs))
    check(of_terminal(kind, kind.said(**given)), wanted)
    own = of_table(rates(runs, value=kind.value))
    if kind.name == "model_name":
        check(own, wanted)
        check(of_table(rates_by_denominator(runs)), own if kind.value == "is_successful" else of_table(rates(runs)))
    elif GROUPS not in ways:  # one model, which is all histories together
        ((model, cells),) = own.items()
        check({model: cells[1:]}, {model: wanted.get(messy.ALL, next(iter(wanted.values())))[1:]})
    assert {name.partition("=")[2] for name in given.get("rename", ())} <= set(own)
    board = compare.leaderboard(runs, kind.value).table
    check(of_table(board), own)
    head = columns_in_words(compared_in(runs) or ("model_name",))
    shown = rows_of(kind.said(compared=True, **given), head, "rank", "runs", "tasks")
    title = next(head for head in next(iter(shown.values())) if "rate" in head or "score" in head)
    texts = {name: [row["runs"], row["tasks"], row[title]] for name, row in shown.items()}
    rows = board.to_dict("records")
    check(texts, {whole(row["model_name"]): [row[c] for c in ("n", "n_tasks", *RATE)] for row in rows})


@pytest.mark.parametrize("way", ["", GROUPS])
def test_an_exported_table_of_runs_gives_the_answer_of_their_folder(kind, way, tmp_path):
    given = {way: kind.ways[way]} if way else {}
    file, other = str(tmp_path / "runs.csv"), str(tmp_path / ("runs.json" if way else "runs.parquet"))
    kind.said("", "--list", "all", "--output", file, **given)
    logs = kind.load(**{name: values[0] for name, values in given.items()})
    write_frame(exported(logs.runs, logs.kind), other)
    wanted = compare.leaderboard(logs.runs)
    read = {"csv": load(file).runs, other: load(other).runs, "csv, by pandas": pd.read_csv(file)}
    columns = ["model_name", "n", "n_tasks", "estimate", "low", "high", "rank_low", "rank_high"]
    for form, runs in read.items():
        board = compare.leaderboard(runs)
        shown, rated = (one.table.dropna(subset="estimate")[columns] for one in (board, wanted))  # only these are rates
        pd.testing.assert_frame_equal(shown, rated, check_dtype=False, obj=form)
        check(of_pairs(board.pairs, *RATE, "p_value"), of_pairs(wanted.pairs, *RATE, "p_value"))


def test_terminal_and_page_give_the_same_pairs_and_the_same_leader(kind, logs, runs, page):
    columns = ("n_tasks", *RATE, "p_value")
    board = compare.leaderboard(runs, kind.value, planned=logs.kind.planned(logs))
    pairs = compare.pairs(runs, kind.value)
    measured = set(board.table.dropna(subset="estimate")["model_name"])
    pairs = pairs[pairs["model_a"].isin(measured) & pairs["model_b"].isin(measured)]
    check(of_pairs(board.pairs, *columns), of_pairs(pairs, *columns))
    text = kind.said("", "--all", compared=True)
    assert all(sentence in text for sentence in board.pairs["sentence"])
    best = ranked(board)
    assert any(line.startswith(plain(finding_text(best))) for line in text.split("\n"))
    if kind.title in ("crafter", "trajectories"):
        columns += ("p_adjusted",)
        check(of_pairs(page.tables["pairs"], *columns), of_pairs(board.pairs, *columns))
        assert page.headline["label"].startswith(headline_text(best.values["headline"]))
    if kind.title == "mindcraft":
        against = compare.against(runs, messy.TWO).to_dict("records")
        shown = rows_of(kind.said("", "--baseline", messy.TWO, compared=True), "model", "difference, points [95 %]")
        heads = ("tasks", "difference, points [95 %]", "p, corrected")
        check(
            {name: [row[head] for head in heads] for name, row in shown.items()},
            {r["model_name"]: [r["n_tasks"], *(100 * r[end] for end in RATE), r["p_adjusted"]] for r in against},
        )
