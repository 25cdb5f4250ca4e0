"""Link findings, figures and tables of notebooks to runs, and pass on what the runs' pages are made from.

A single run has its page, several have their rows in the table of runs. A notebook links to pages beside those of
reports, and outputs the data they are made from; the batch writes them once for all its reports. Outside of a report
there are no pages, and so no links.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
from IPython.display import display

from evalkit._text import check_columns, counted_noun
from evalkit.compare.ranks import Leaderboard
from evalkit.display import keep_looks, publish, show_table, show_text
from evalkit.display.show import REPORT, RunLink
from evalkit.display.tables import cell_texts
from evalkit.evidence.references import page_name, reference
from evalkit.kinds import Finding, Logs
from evalkit.kinds.runs import is_excluded

EVIDENCE = "application/vnd.evalkit.evidence+json"  # the data of pages of runs; never part of a report's page
MOST_RUNS = 200  # that one report links to
MOST_PAIRS = 100  # that one table links to
LIMITED = f"Rows without a link: a report links to at most {MOST_RUNS} runs, a table to {MOST_PAIRS} pairs."
RUNS, PAIRS = "all-runs", "all-pairs"  # the anchors of the tables of runs and of pairs
_DECISION = "at=decision"  # the place of a run's page where it was decided
_COLUMNS = ("task_id", "model_name", "task_type", "repetition", "status", "score", "is_successful")
_RESULTS = _COLUMNS[3:]  # by which no group is linked

_linked: dict[str, None] = {}  # runs that this report links to so far; a report has a process of its own


class Evidence:
    """The runs behind a report: a table of them, and links to it from findings and figures.

    `runs` are rows of the first table of `logs`, without those that are excluded from all rates; `columns` are further
    columns of the table of runs, by which figures group them; in a column of lists, each item counts. Those that other
    tables call otherwise are given as ``item="target_items"``. A column that is not there is a ValueError. Outside of a
    report, and in one without pages of runs, there are no links.

    From then on every model of the logs has one colour and marker in all figures.
    """

    def __init__(self, logs: Logs, runs: pd.DataFrame, *columns: str, **called: str) -> None:
        columns = (*columns, *called.values())
        check_columns(runs, *_COLUMNS, "run_id", "run_flags", *columns)
        models = (logs.runs["model_name"], runs["model_name"])
        keep_looks(name for some in models for name in sorted(pd.Series(some).dropna().astype("str").unique()))
        self._called = called
        self._logs = logs
        self._runs = runs[~is_excluded(runs, logs.kind)].reset_index(drop=True)
        self._columns = list(dict.fromkeys([*_COLUMNS[:2], *columns, *_COLUMNS[2:]]))
        order = self._runs.groupby(["model_name", "status"], dropna=False).cumcount()  # an even choice among these
        self._shown = sorted(order.sort_values(kind="stable").index[:MOST_RUNS])
        self._groups: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def cite(self, findings: Iterable[Finding]) -> list[Finding]:
        """Turn the examples of findings into links, for `evalkit.show_findings`."""
        cited = []
        for finding in findings:
            found = []
            for example in finding.examples:
                ids = [run_id for run_id in (example.run_id, example.other) if run_id]
                if _links() and _may_link(*ids):
                    _pass_on(self._logs, ids, [(ids[0], ids[1])] if len(ids) > 1 else [], "")
                    found.append(RunLink(example.label, _address("--".join(ids), example.turn, _DECISION)))
            cited.append(finding._replace(examples=tuple(found)))
        return cited

    def link(self, table: pd.DataFrame, *, parts: str = "", **values: str) -> pd.DataFrame:
        """Add the column href, the link of each row, to a table that is drawn or shown.

        A table with run_id, and optionally turn, has a row per run or part of a run, which links to the run's page if
        the table of runs shows it. Another has a row per group of runs, by all columns that the table of runs has too:
        a group of one run links to its page, a larger one to its rows in the table of runs. `values` are those of
        columns that all its rows share, such as ``task_type="cooking"``; `parts` is a column of the runs whose values
        are further columns of `table`, each of which links to runs of its own.
        """
        check_columns(self._columns, *values, parts or None)
        named = table.rename(columns=self._called).assign(**values)
        by = tuple(name for name in self._columns if name in named and (name not in _RESULTS or name in values))
        if not by and "run_id" not in table:
            raise ValueError("there is no column 'run_id', and none by which the table of runs is grouped")
        if not _links():
            return table
        if "run_id" in table:
            shown = set(self._runs["run_id"].iloc[self._shown])
            linked = [run_id for run_id in table["run_id"].dropna().unique() if run_id in shown and _may_link(run_id)]
            _pass_on(self._logs, linked, [], "")
            return _with_links(table, _run_links(table, linked, _DECISION, ""))
        keys = list(zip(*(cell_texts(named[name], name) for name in by), strict=True))
        hrefs: list[Any] = [self._group_link(by, key) for key in keys]
        if parts:
            names = [name for name in table if name in set(self._runs[parts])]
            texts = dict(zip(names, cell_texts(pd.Series(names, dtype="object"), parts), strict=True))
            hrefs = [{name: self._group_link((*by, parts), (*key, texts[name])) for name in names} for key in keys]
        return _with_links(table, hrefs)

    def link_board(self, board: Leaderboard) -> Leaderboard:
        """Add href to the table of a leaderboard, for `evalkit.compare.figures.ranking`."""
        return board._replace(table=self.link(board.table))

    def link_pairs(self, table: pd.DataFrame, opposite: pd.DataFrame) -> pd.DataFrame:
        """Add href to a table of pairs of models, `model_a` and `model_b`: a link to the tasks with opposite outcomes.

        Those are the rows of `opposite`, as returned by `evalkit.compare.discordant` and shown by `evalkit.show_pairs`.
        """
        columns = ["model_a", "model_b"]
        if not _links():
            return table
        linked, hrefs = set(opposite[columns].itertuples(index=False, name=None)), []
        for a, b in table[columns].itertuples(index=False, name=None):
            pair = (a, b) if (a, b) in linked else (b, a)
            texts = cell_texts(pd.Series(pair, dtype="object"), "model_a")
            hrefs.append(_rows(PAIRS, columns, texts) if pair in linked else "")
        return _with_links(table, hrefs)

    def show(self, caption: str = "Runs") -> None:
        """Show the table of runs; of more than 200, a selection balanced over models and statuses."""
        show_runs(self._logs, self._runs.loc[self._shown, [*self._columns, "run_id"]], caption, anchor=RUNS)
        if len(self._shown) < len(self._runs):
            chosen = "chosen evenly from each model and way of ending"
            show_text(f"{len(self._shown):,} of {counted_noun(len(self._runs), 'run')}, {chosen}.")

    def _group_link(self, by: tuple[str, ...], key: tuple[str, ...]) -> str:
        """Return a link to the only run, or to the rows of the runs, with these cell texts."""
        if by not in self._groups:
            self._groups[by] = positions = dict[tuple[str, ...], list[int]]()
            texts: list[list[Sequence[str]]] = []  # those of each cell: one, or those of its items
            for name in by:
                of_column: list[Sequence[str]] = []
                for value, text in zip(self._runs[name], cell_texts(self._runs[name], name), strict=True):
                    items = (
                        cell_texts(pd.Series(value, dtype="object"), name) if isinstance(value, (list, tuple)) else []
                    )
                    of_column.append(items or [text])
                texts.append(of_column)
            for position, of_run in enumerate(zip(*texts, strict=True)):
                for group in product(*of_run):
                    positions.setdefault(group, []).append(position)
        found = self._groups[by].get(key, [])
        if len(found) == 1 and _may_link(run_id := self._runs["run_id"].iloc[found[0]]):
            _pass_on(self._logs, [run_id], [], "")
            return _address(run_id, None, _DECISION)
        return "" if set(found).isdisjoint(self._shown) else _rows(RUNS, by, key)


def show_runs(logs: Logs, table: pd.DataFrame, caption: str = "", **options: Any) -> None:
    """Show a table whose rows are runs, or parts of runs (column `run_id`); in a report each links to the page of its
    run.

    With the column `turn` too, a row links to that turn. Neither is shown; options are those of `evalkit.show_table`.
    """
    check_columns(table, "run_id")
    if name := options.pop("name", ""):
        publish(**{name: table})  # without links
    shown = table.drop(columns="turn", errors="ignore")
    if not _links() or table.empty:
        show_table(shown, caption, **options)
        return
    ids = table["run_id"].dropna().unique()
    linked = [run_id for run_id in ids if _may_link(run_id)]
    key = _pass_on(logs, linked, [], caption)
    show_table(_with_links(shown, _run_links(table, linked, f"list={key}", None)), caption, **options)
    if len(linked) < len(ids):
        show_text(LIMITED)


def show_pairs(logs: Logs, table: pd.DataFrame, caption: str = "", **options: Any) -> None:
    """Show a table whose rows are pairs of runs of one task; in a report each links to the two side by side.

    The columns `run_id_a` and `run_id_b`, as from `evalkit.compare.discordant`, are not shown.
    """
    check_columns(table, "run_id_a", "run_id_b")
    if name := options.pop("name", ""):
        publish(**{name: table})
    shown, options = table.drop(columns=["run_id_a", "run_id_b"]), {"anchor": PAIRS, **options}
    if not _links() or table.empty:
        show_table(shown, caption, **options)
        return
    rows = list(zip(table["run_id_a"], table["run_id_b"], strict=True))
    linked = {pair: None for pair in rows[:MOST_PAIRS] if _may_link(*pair)}
    key = _pass_on(logs, list(dict.fromkeys(run_id for pair in linked for run_id in pair)), list(linked), caption)
    hrefs = [_address("--".join(pair), None, f"list={key}") if pair in linked else None for pair in rows]
    show_table(_with_links(shown, hrefs), caption, **options)
    if None in hrefs:
        show_text(LIMITED)


def _links() -> bool:
    """Return whether this is a report whose runs get pages."""
    return bool(os.environ.get(REPORT))


def _may_link(*run_ids: str) -> bool:
    """Add runs to those that the report links to; False if that would exceed the limit."""
    if len(_linked.keys() | set(run_ids)) > MOST_RUNS:
        return False
    _linked.update(dict.fromkeys(run_ids))
    return True


def _pass_on(logs: Logs, ids: Sequence[str], pairs: Sequence[tuple[str, str]], title: str) -> str:
    """Output the data of pages of runs and pairs, and the table of this title as a list of them; return its key."""
    wanted = logs.runs[logs.runs["run_id"].isin(set(ids))]
    runs = {run["run_id"]: reference(logs, run) for run in wanted.to_dict("records")}
    complete = [pair for pair in pairs if runs.keys() >= set(pair)]
    members = ["--".join(pair) for pair in complete] if pairs else [run_id for run_id in ids if run_id in runs]
    pages = [page_name(member) for member in members] if title else []
    key = hashlib.blake2b("\0".join([title, *pages]).encode(errors="replace"), digest_size=5).hexdigest()
    rows = [list(run) for run in runs.values()]
    data = {"runs": rows, "pairs": complete, "title": title, "members": pages, "key": key}
    display({EVIDENCE: data, "text/plain": f"{counted_noun(len(runs), 'run')} with links to their pages"}, raw=True)
    return key


def _address(name: str, turn: Any, otherwise: str) -> str:
    """Return the address of a run's page from a report's, at a turn if it is known, else at another place."""
    return f"../runs/{page_name(name)}#{otherwise if pd.isna(turn) else f't{int(turn)}'}"


def _run_links(table: pd.DataFrame, linked: Sequence[str], otherwise: str, missing: str | None) -> list[str | None]:
    """Return the link of every row to the page of its run, at its turn where the table has one."""
    turns = table["turn"] if "turn" in table else [None] * len(table)
    rows = zip(table["run_id"], turns, strict=True)
    return [_address(run_id, turn, otherwise) if run_id in linked else missing for run_id, turn in rows]


def _with_links(table: pd.DataFrame, hrefs: Sequence[Any]) -> pd.DataFrame:
    return table.assign(href=pd.Series(hrefs, table.index, dtype="object"))


def _rows(anchor: str, names: Iterable[str], texts: Iterable[str]) -> str:
    """Return the address of the rows with these texts of a table on the same page."""
    return f"#{anchor}?{urlencode(dict(zip(names, texts, strict=True)), quote_via=quote)}"
