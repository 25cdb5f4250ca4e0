"""Link findings and figures to runs: to the page of a single run, or to the rows of several in the table of runs."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pandas as pd

from evalkit._names import check_columns
from evalkit.display import show_text
from evalkit.display.show import RunLink
from evalkit.display.tables import cell_texts
from evalkit.evidence.links import LIMIT, PAIRS, address, hand_over, mode, show_runs, take, with_turns
from evalkit.kinds import Example, Finding
from evalkit.kinds.runs import is_excluded

if TYPE_CHECKING:
    from evalkit.kinds import Logs

RUNS = "all-runs"  # the anchor of the table of runs
MOST_GROUPS = 400  # groups of a figure that link to runs; with more, none does
_DECISION = "at=decision"  # the place of a run's page where it was decided
MOST_POINTS = 60  # runs that the points of one figure link to
_COLUMNS = ("task_id", "model_name", "task_type", "repetition", "status", "score", "is_successful")


class Evidence:
    """The runs behind a report: a table of them, and links to it from findings and figures.

    Outside of a report, and in one without pages of runs, there are no links.

    Parameters
    ----------
    logs : Logs
        The logs that the runs are from.
    runs : DataFrame
        Rows of the first table of `logs`; runs that are excluded from all rates are left out.
    *columns : str
        Further columns of the table of runs, by which figures group them. In a column of lists, each item counts.

    Raises
    ------
    ValueError
        For a column that the runs don't have.
    """

    def __init__(self, logs: "Logs", runs: pd.DataFrame, *columns: str) -> None:
        check_columns(runs, *_COLUMNS, "run_id", "run_flags", *columns)
        self._logs = logs
        self._runs = runs[~is_excluded(runs, logs.kind)].reset_index(drop=True)
        self._columns = list(dict.fromkeys([*_COLUMNS[:2], *columns, *_COLUMNS[2:]]))
        self._shown = _evenly(self._runs, LIMIT)
        self._items: dict[str, list[Sequence[str]]] = {}
        self._groups: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}

    def cite(self, findings: Iterable[Finding]) -> list[Finding]:
        """Turn the examples of findings into links, for `evalkit.show_findings`."""
        return [
            finding._replace(examples=tuple(link for example in finding.examples for link in self._cited(example)))
            for finding in findings
        ]

    def link(self, table: pd.DataFrame, *by: str, parts: str = "") -> pd.DataFrame:
        """Add the column href, the link of each row, to a table for a plot.

        Parameters
        ----------
        table : DataFrame
            Without `by`, a row per run or part of a run, with run_id and optionally turn: each of the first 60 runs
            gets a link to its page. Else a row per group of runs.
        *by : str
            Columns of the groups, which the table of runs has too. A group of one run links to its page, a larger one
            to its rows in the table of runs.
        parts : str
            Column of the runs whose values are further columns of `table`, each of which links to runs of its own.

        Raises
        ------
        ValueError
            For a column that the table or the runs don't have.
        """
        check_columns(table, *(by or ("run_id",)))
        check_columns(self._columns, *by, parts or None)
        if not mode():
            return table
        if not by:
            return table.assign(href=pd.Series(self._pages(table), table.index, dtype="object"))
        keys = list(zip(*(cell_texts(table[name], name) for name in by), strict=True))
        if len(set(keys)) > MOST_GROUPS:
            return table
        hrefs: list[Any] = [self._href(by, key) for key in keys]
        if parts:
            names = [name for name in table if name in set(self._runs[parts])]
            texts = dict(zip(names, cell_texts(pd.Series(names, dtype="object"), parts), strict=True))
            hrefs = [{name: self._href((*by, parts), (*key, texts[name])) for name in names} for key in keys]
        return table.assign(href=pd.Series(hrefs, table.index, dtype="object"))

    def link_pairs(self, table: pd.DataFrame, opposite: pd.DataFrame) -> pd.DataFrame:
        """Add href to a table of pairs of models, `model_a` and `model_b`: a link to the tasks with opposite outcomes.

        Parameters
        ----------
        table : DataFrame
        opposite : DataFrame
            As returned by `evalkit.compare.discordant` and shown by `evalkit.show_pairs`.
        """
        check_columns(table, "model_a", "model_b")
        check_columns(opposite, "model_a", "model_b")
        if not mode():
            return table
        columns = ["model_a", "model_b"]
        linked = set(opposite[columns].drop_duplicates().itertuples(index=False, name=None))
        names = table[columns].melt()["value"].drop_duplicates()
        texts = dict(zip(names, cell_texts(names, "model_a"), strict=True))
        hrefs = []
        for a, b in table[columns].itertuples(index=False, name=None):
            pair = (a, b) if (a, b) in linked else (b, a)
            query = urlencode(dict(zip(columns, map(texts.get, pair), strict=True)), quote_via=quote)
            hrefs.append(f"#{PAIRS}?{query}" if pair in linked else "")
        return table.assign(href=pd.Series(hrefs, table.index, dtype="object"))

    def where(self, **values: object) -> str:
        """Return the link to the runs with these values, for `evalkit.headline`; without values, to all runs."""
        check_columns(self._columns, *values)
        if not mode() or self._runs.empty:
            return ""
        texts = (cell_texts(pd.Series([value], dtype="object"), name)[0] for name, value in values.items())
        return self._href(tuple(values), tuple(texts)) if values else f"#{RUNS}"

    def show(self, caption: str = "Runs") -> None:
        """Show the table of runs; of more than 200, a selection balanced over models and statuses."""
        show_runs(self._logs, self._runs.loc[self._shown, [*self._columns, "run_id"]], caption, anchor=RUNS)
        if len(self._shown) < len(self._runs):
            chosen = "chosen evenly from each model and way of ending"
            show_text(f"{len(self._shown):,} of {len(self._runs):,} runs, {chosen}.")

    def _cited(self, example: Example) -> list[RunLink]:
        ids = [run_id for run_id in (example.run_id, example.other) if run_id]
        if not mode() or not take(*ids):
            return []
        hand_over(self._logs, ids, [(ids[0], ids[1])] if len(ids) > 1 else [], "")
        return [RunLink(example.label, address("--".join(ids), example.turn, _DECISION))]

    def _pages(self, table: pd.DataFrame) -> list[str]:
        """Return links to the pages of the first runs of a table."""
        linked = [run_id for run_id in table["run_id"].dropna().unique()[:MOST_POINTS] if take(run_id)]
        hand_over(self._logs, linked, [], "")
        return [address(run_id, turn, _DECISION) if run_id in linked else "" for run_id, turn in with_turns(table)]

    def _href(self, by: tuple[str, ...], key: tuple[str, ...]) -> str:
        """Return a link to the only run, or to the rows of the runs, with these cell texts."""
        positions = self._grouped(by).get(key, [])
        if len(positions) == 1 and take(run_id := self._runs["run_id"].iloc[positions[0]]):
            hand_over(self._logs, [run_id], [], "")
            return address(run_id, None, _DECISION)
        if set(positions).isdisjoint(self._shown):
            return ""
        return f"#{RUNS}?{urlencode(dict(zip(by, key, strict=True)), quote_via=quote)}"

    def _grouped(self, by: tuple[str, ...]) -> dict[tuple[str, ...], list[int]]:
        """Return the positions of runs by their texts in these columns."""
        if by not in self._groups:
            self._items |= {name: _items(self._runs[name], name) for name in by if name not in self._items}
            positions: dict[tuple[str, ...], list[int]] = {}
            for position, texts in enumerate(zip(*(self._items[name] for name in by), strict=True)):
                for key in product(*texts):
                    positions.setdefault(key, []).append(position)
            self._groups[by] = positions
        return self._groups[by]


def _items(values: pd.Series, name: str) -> list[Sequence[str]]:
    """Return the texts of each cell of a column: one, or those of its items."""
    texts = cell_texts(values, name)
    lists = (
        isinstance(value, (list, tuple)) and cell_texts(pd.Series(value, dtype="object"), name) for value in values
    )
    return [items or [text] for items, text in zip(lists, texts, strict=True)]


def _evenly(runs: pd.DataFrame, most: int) -> list[int]:
    """Select the positions of at most so many runs, balanced over models and statuses."""
    turn = runs.groupby(["model_name", "status"], dropna=False).cumcount()
    return sorted(turn.sort_values(kind="stable").index[:most])
