"""Link findings, figures and tables of notebooks to runs.

A link to one run opens its page; a link to several runs shows their rows in the table of runs. Notebooks pass on the
data of pages, and the batch writes each page once for all its reports. Outside of reports there are no pages or links.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Unpack
from urllib.parse import quote, urlencode
from weakref import WeakKeyDictionary, proxy

import pandas as pd
from IPython.display import display

from evalkit._notes import Notes
from evalkit._text import check_columns, column_in_words, counted_noun, listed
from evalkit.compare.ranking import Leaderboard
from evalkit.display import publish, show_table, show_text
from evalkit.display.anchors import ALL_PAIRS, ALL_RUNS
from evalkit.display.show import REPORT, TableOptions
from evalkit.display.tables import TITLES, cell_texts, is_filled, items_of, value_code
from evalkit.display.terminal import WARNED
from evalkit.evidence.references import RUNS, page_name, reference
from evalkit.kinds import Finding, Logs
from evalkit.kinds.findings import RunLink
from evalkit.kinds.runs import counted

EVIDENCE = "application/vnd.evalkit.evidence+json"  # data for the pages of runs; never part of a report's page
MOST_RUNS = 200  # maximum number of runs that a report links to
MOST_ROWS = 2_000  # maximum number of rows in the table of runs
MOST_PAIRS = 100  # maximum number of pairs that a table links to
LIMITED = f"Rows without a link: a report links to at most {MOST_RUNS} runs, a table to {MOST_PAIRS} pairs."
_DECISION = "at=decision"  # fragment of an address: the turn that decided the run
_COLUMNS = ("task_id", "model_name", "task_type", "repetition", "status", "score", "is_successful")
_RESULTS = _COLUMNS[3:]  # columns by which `link` groups runs only if it gets their value

Page = tuple[str, ...]  # the id of a run, or the ids of two runs shown side by side


class RunPages:
    """The pages of runs that a report links to, at most `MOST_RUNS`."""

    def __init__(self, logs: Logs) -> None:
        self._logs = proxy(logs)  # a weak reference, since `_PAGES` keeps this object as long as the logs exist
        self._known = set(logs.runs["run_id"])
        self._linked: set[str] = set()  # ids of runs
        self._is_displayed: dict[Page, bool] = {}
        self.marks: dict[str, list[tuple[int, str]]] = {}  # turns with their marks, by run_id

    def add(self, page: Page) -> bool:
        """Add a page. Return False if it would exceed the limit, or if the logs do not contain its runs."""
        linked = self._linked.union(page)
        if len(linked) > MOST_RUNS or not self._known.issuperset(page):
            return False
        self._linked = linked
        self._is_displayed.setdefault(page, False)
        return True

    def display(self, title: str = "", pages: Iterable[Page] = ()) -> str:
        """Output the data of pages added since the last call, and of a table with links; return the table's key."""
        new = [page for page, is_displayed in self._is_displayed.items() if not is_displayed]
        ids = {run_id for page in new for run_id in page}
        runs = self._logs.runs[self._logs.runs["run_id"].isin(ids)].to_dict("records")
        names = [page_name(*page) for page in pages]
        key = hashlib.blake2b("\0".join([title, *names]).encode(errors="replace"), digest_size=5).hexdigest()
        if new or names:
            marked = [reference(self._logs, run)._replace(marks=self.marks.get(run["run_id"], [])) for run in runs]
            references = [list(run) for run in marked]
            pairs = [page for page in new if len(page) == 2]
            data = {"runs": references, "pairs": pairs, "title": title, "members": names, "key": key}
            text = f"{counted_noun(len(runs), 'run')} with links to their pages"
            display({EVIDENCE: data, "text/plain": text}, raw=True)
        self._is_displayed = dict.fromkeys(self._is_displayed, True)
        return key


_PAGES = WeakKeyDictionary[Logs, RunPages]()


def pages_of(logs: Logs) -> RunPages:
    """Return the pages that a report on these logs links to. All its tables and figures share their limit."""
    if logs not in _PAGES:
        _PAGES[logs] = RunPages(logs)
    return _PAGES[logs]


class Evidence:
    """The runs of a report: their table, and links to it from findings, figures and other tables.

    Parameters
    ----------
    logs : Logs
        The logs of the runs.
    runs : DataFrame
        Rows of the first table of `logs`; runs that are excluded from all rates are left out.
    *columns : str
        Further columns of the table of runs, by which other tables group runs. If a column contains lists, a run
        belongs to the group of each item. A missing column raises ValueError.
    **renamed : str
        Further columns that have another name in other tables: ``item="target_items"`` if these call them item.
    """

    def __init__(self, logs: Logs, runs: pd.DataFrame, *columns: str, **renamed: str) -> None:
        columns = (*columns, *renamed.values())
        if "logged_model" in runs:  # model_name has the names of what is compared instead of models
            columns = (*columns, "logged_model")
        check_columns(runs, *_COLUMNS, "run_id", "run_flags", *columns)
        self._logs = logs
        self._renamed = renamed
        self._runs = counted(runs, logs.kind).reset_index(drop=True)
        self._columns = list(dict.fromkeys([*_COLUMNS[:2], *columns, *_COLUMNS[2:]]))
        # choose for each model a run of each item of lists, then in turn a run of each model, status and main reason
        self._chosen_by = [name for name in ("model_name", "status", "leading_mode") if name in self._columns]
        place = self._runs.groupby(self._chosen_by, dropna=False).cumcount()
        is_first = pd.Series(data=False, index=place.index)
        for name in self._columns:
            if any(isinstance(cell, list) for cell in self._runs[name]):
                items = self._runs[["model_name", name]].explode(name)
                is_new = ~items.duplicated()
                is_first |= is_new.groupby(level=0).any()
        order = pd.DataFrame({"is_other": ~is_first, "place": place}).sort_values(["is_other", "place"]).index
        order = order[:MOST_ROWS]
        self._chosen: list[Page] = [(run_id,) for run_id in self._runs["run_id"].iloc[order]]
        self._shown = sorted(order)
        self._table = self._runs.loc[self._shown, [*self._columns, "run_id"]]
        for name in self._table.columns.difference(list(_RESULTS)):
            values = self._table[name].dropna()
            if pd.api.types.is_float_dtype(values) and len(set(cell_texts(values, name))) < values.nunique():
                self._table[name] = self._table[name].map(str, na_action="ignore")  # rounded values would look equal
        self._pages = pages_of(logs)
        for page in self._chosen[: MOST_RUNS // 4]:  # leave pages for examples; `show` adds the rest of the table
            self._pages.add(page)
        self._groups: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}  # positions of runs, by their codes
        self._addressed: dict[str, bool] = {}  # columns in addresses, and whether the table of runs shows them

    def cite(self, findings: Iterable[Finding]) -> list[Finding]:
        """Turn the examples and links of findings into addresses, for `evalkit.show_findings`; warnings come first."""
        cited = [Finding("conditions", "", {"notes": Notes((one,))}) for one in self._logs.chosen.only(*WARNED).notes]
        for finding in findings:
            examples = []
            for example in finding.examples:
                if isinstance(example, RunLink):
                    examples.append(example)
                    continue
                page = (example.run_id, example.other) if example.other else (example.run_id,)
                if has_run_pages() and self._pages.add(page):
                    examples.append(RunLink(example.label, _address(page, example.turn, _DECISION)))
            links = {}
            for key, group in finding.links.items():
                if has_run_pages() and set(group) <= set(self._columns):
                    links[key] = self._group_link(tuple(group), tuple(group.values()))
            cited.append(finding._replace(examples=tuple(examples), links=links))
        return cited

    def link(self, table: pd.DataFrame, *, parts: str = "", **values: str) -> pd.DataFrame:
        """Add the column href, the link of each row, to a table that is drawn or shown. Call `show` after it.

        If the table has run_id, and optionally turn, each row is a run or a part of it, and links to the run's page if
        the table of runs shows the run. Otherwise, each row is a group of runs, by all columns that the table of runs
        has, too. A group of one run links to its page, a larger group to its rows in the table of runs. `values` are
        values of columns that all rows share, such as ``task_type="cooking"``. `parts` is a column of the runs whose
        values are names of columns of `table`; each of these columns gets links to its part of the group.
        """
        check_columns(self._columns, *values, parts or None)
        grouped = table.rename(columns=self._renamed).assign(**values)
        by = tuple(name for name in self._columns if name in grouped and (name not in _RESULTS or name in values))
        if not by and "run_id" not in table:
            raise ValueError("the table has no column 'run_id', and no column that the runs are grouped by")
        if not has_run_pages():
            return table
        if "run_id" in table:
            wanted = set(table["run_id"])
            linked = set[Page]()
            for page in self._chosen:
                if page[0] in wanted and self._pages.add(page):
                    linked.add(page)
            return _with_links(table, _addresses(_run_pages(table), table.get("turn"), linked, _DECISION))
        keys = list(grouped[list(by)].itertuples(index=False, name=None))
        if not parts:
            return _with_links(table, [self._group_link(by, key) for key in keys])
        values_of_parts = set(self._runs[parts])
        names = [str(name) for name in table if name in values_of_parts]
        by = (*by, parts)
        return _with_links(table, [{name: self._group_link(by, (*key, name)) for name in names} for key in keys])

    def link_counts(self, table: pd.DataFrame, *by: str, count: str = "runs", **renamed: str) -> pd.DataFrame:
        """Link cells of the column `count` to the runs with the row's values of `by`, which may be `renamed` there."""
        groups = self.link(table[list(by)].rename(columns=renamed))
        if "href" not in groups:
            return table
        return table.assign(**{f"{count}_href": groups["href"]})

    def mark(self, events: pd.DataFrame) -> None:
        """Mark turns on the pages of runs. Call it before any function that shows a table with links to runs.

        `events` is a result of `evalkit.failures.events`: one row per mark, with run_id, turn, event and detail.
        """
        check_columns(events, "run_id", "turn", "event", "detail")
        names = events["event"].astype("str").str.replace("_", " ")
        details = events["detail"].fillna("").astype("str")
        marks = names.where(details == "", names + ": " + details)
        for run_id, turn, mark in zip(events["run_id"], events["turn"], marks, strict=True):
            self._pages.marks.setdefault(run_id, []).append((int(turn), mark))

    def link_board(self, board: Leaderboard) -> Leaderboard:
        """Add links to the table of a leaderboard, for `evalkit.compare.figures.ranking`."""
        return replace(board, table=self.link(board.table))

    def link_pairs(self, table: pd.DataFrame, opposite: pd.DataFrame) -> pd.DataFrame:
        """Link each pair of models to its rows in `opposite`, a result of `evalkit.compare.discordant`."""
        columns = ["model_a", "model_b"]
        if not has_run_pages():
            return table
        linked = set(opposite[columns].itertuples(index=False, name=None))
        hrefs = []
        for a, b in table[columns].itertuples(index=False, name=None):
            pair = (a, b) if (a, b) in linked else (b, a)
            codes = map(value_code, pair)
            hrefs.append(_rows(ALL_PAIRS, zip(columns, codes, strict=True)) if pair in linked else "")
        return _with_links(table, hrefs)

    def show(self, caption: str = "Runs") -> None:
        """Show the table of runs, or a selection of 2,000 if there are more; pass on the data of all linked pages."""
        for page in self._chosen:
            self._pages.add(page)
        keys = self._runs.loc[self._shown, list(self._addressed)]
        show_runs(self._logs, self._table, caption, anchor=ALL_RUNS, keys=keys, rows=MOST_ROWS)
        if len(self._shown) < len(self._runs):
            n = f"{len(self._shown):,} of {counted_noun(len(self._runs), 'run')}"
            by = listed([TITLES.get(name, column_in_words(name)) for name in self._chosen_by])
            show_text(f"{n}, chosen evenly by {by}. Links may show fewer runs.")

    def _group_link(self, by: tuple[str, ...], values: tuple[Any, ...]) -> str:
        """Return a link to the only run of a group, or to the rows of its runs; "" if no run is shown."""
        if by not in self._groups:
            groups = self._groups.setdefault(by, {})
            for position, row in enumerate(self._runs[list(by)].itertuples(index=False, name=None)):
                for group in product(*(map(value_code, items_of(cell)) for cell in row)):
                    groups.setdefault(group, []).append(position)
        codes = tuple(map(value_code, values))
        positions = self._groups[by].get(codes, [])
        if len(positions) == 1:
            page = (self._runs["run_id"].iloc[positions[0]],)
            if self._pages.add(page):
                return _address(page, None, _DECISION)
        if set(positions).isdisjoint(self._shown):
            return ""
        for name in by:
            if name not in self._addressed:
                self._addressed[name] = is_filled(cell_texts(self._table[name], name))
        return _rows(ALL_RUNS, [pair for pair in zip(by, codes, strict=True) if self._addressed[pair[0]]])


def show_runs(logs: Logs, table: pd.DataFrame, caption: str = "", **options: Unpack[TableOptions]) -> None:
    """Show a table of runs or turns; in a report, each row links to its run or turn.

    Parameters
    ----------
    logs : Logs
        The logs of the runs.
    table : DataFrame
        Rows with run_id and, optionally, turn; these columns are hidden.
    caption : str
        Title of the table.
    **options : Any
        Options of `evalkit.show_table`.

    Examples
    --------
    >>> evalkit.show_runs(logs, runs[["run_id", "task_id"]].head(1))
                                               task
    materials_1_rooms_1_window_0_carpet_0_variant_0
    """
    check_columns(table, "run_id")
    _show_linked(logs, table, table.drop(columns="turn", errors="ignore"), _run_pages(table), caption, options)


def show_pairs(logs: Logs, table: pd.DataFrame, caption: str = "", **options: Unpack[TableOptions]) -> None:
    """Show a table of pairs of runs; in a report, each row links to both transcripts side by side.

    Parameters
    ----------
    logs : Logs
        The logs of the runs.
    table : DataFrame
        Pairs of runs, with their ids in the columns run_id_a and run_id_b, which are hidden.
    caption : str
        Title of the table.
    **options : Any
        Options of `evalkit.show_table`.

    Examples
    --------
    >>> evalkit.show_pairs(logs, compare.discordant(runs).head(0))
    """
    columns = ["run_id_a", "run_id_b"]
    check_columns(table, *columns)
    pages = list(table[columns].itertuples(index=False, name=None))
    linked: TableOptions = {"anchor": ALL_PAIRS, "keys": table.filter(["model_a", "model_b"]), **options}
    _show_linked(logs, table, table.drop(columns=columns), pages, caption, linked, MOST_PAIRS)


def _show_linked(
    logs: Logs,
    table: pd.DataFrame,
    shown: pd.DataFrame,
    pages: Sequence[Page],
    caption: str,
    options: TableOptions,
    most: int | None = None,
) -> None:
    """Show a table whose rows link to pages, at most `most`, and publish the whole table without links."""
    if name := options.pop("name", ""):
        publish(**{name: table.drop(columns=[f"{column}_href" for column in table], errors="ignore")})
    if not has_run_pages():
        show_table(shown, caption, **options)
        return
    run_pages = pages_of(logs)
    wanted = list(dict.fromkeys(page for page in pages if page))
    linked = [page for page in wanted[:most] if run_pages.add(page)]
    key = run_pages.display(caption, linked)
    hrefs = _addresses(pages, table.get("turn"), set(linked), f"list={key}")
    show_table(_with_links(shown, hrefs), caption, **options)
    if len(linked) < len(wanted):
        show_text(LIMITED)


def has_run_pages() -> bool:
    """Return whether this process executes a report whose runs get pages."""
    return bool(os.environ.get(REPORT))


def _run_pages(table: pd.DataFrame) -> list[Page]:
    """Return the page of each row of a table of runs; () if the row names no run."""
    return [() if pd.isna(run_id) else (run_id,) for run_id in table["run_id"]]


def _address(page: Page, turn: Any, otherwise: str) -> str:
    """Return the address of a page, relative to a report's page: at a turn if it is known, else at `otherwise`."""
    return f"../{RUNS}/{page_name(*page)}#{otherwise if pd.isna(turn) else f't{int(turn)}'}"


def _addresses(pages: Sequence[Page], turns: pd.Series | None, linked: set[Page], otherwise: str) -> list[str]:
    """Return the address of each row's page, at the row's turn if it has one; "" for a page that is not linked."""
    rows = zip(pages, [None] * len(pages) if turns is None else turns, strict=True)
    return [_address(page, turn, otherwise) if page in linked else "" for page, turn in rows]


def _with_links(table: pd.DataFrame, hrefs: Sequence[str | Mapping[str, str]]) -> pd.DataFrame:
    return table.assign(href=pd.Series(hrefs, table.index, dtype="object"))


def _rows(anchor: str, codes: Iterable[tuple[str, str]]) -> str:
    """Return the address of the rows of a table on the same page that have values with these codes in these columns."""
    return f"#{anchor}?{urlencode(list(codes), quote_via=quote)}"
