"""The registry of the checks of an audit: the runs that checks examine, their results, and `check`, which adds one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit.compare.comparison import Comparison
from evalkit.compare.ranking import Leaderboard, leaderboard
from evalkit.kinds import Logs, outcomes
from evalkit.kinds.runs import UNKNOWN, Value, counted
from evalkit.kinds.success_rates import best_first
from evalkit.stats.adjusted import NONE

Verdict = Literal["fine", "look", "wrong", "not computed"]
MOST_ADJUSTED = 1_000  # maximum number of models whose estimates are adjusted
VERDICTS: tuple[Verdict, ...] = ("wrong", "look", "fine", "not computed")  # the most serious first


@dataclass(frozen=True)
class Found:
    """The result of a check.

    Parameters
    ----------
    count, n : int
        Number of doubtful items, and number of items examined; the check's noun names them.
    runs : DataFrame, optional
        The doubtful runs; the first ones become examples.
    alternative : DataFrame or Comparison, optional
        The runs, treated differently, from which the audit makes an alternative ranking.
    order : Series, optional
        Estimates of an alternative ranking, indexed by model, for checks without `alternative`.
    verdict : {"look", "wrong"}
        Verdict if `count` is not 0: a doubt, or an error in the figures.
    notes : Notes
        Details, shown only if `count` is not 0.
    """

    count: int
    n: int
    runs: pd.DataFrame | None = None
    alternative: pd.DataFrame | Comparison | None = None
    order: pd.Series | None = None
    verdict: Verdict = "look"
    notes: Notes = NO_NOTES


class NotComputed(Exception):
    """Raised by a check that lacks the data it needs; the notes give the reason."""

    def __init__(self, code: str, text: str, **values: Any) -> None:
        self.notes = note(code, text, **values)
        super().__init__(str(self.notes))


CheckFunction = Callable[["Audited"], Found]


class Check(NamedTuple):
    """A check: its name, the question that it answers, the noun for the items that it counts, and its function."""

    name: str
    question: str
    noun: str
    function: CheckFunction


CHECKS: dict[str, Check] = {}


def check(name: str, question: str, *, noun: str = "run") -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check of all later audits; it replaces a check of the same name.

    Parameters
    ----------
    name : str
        A short name, such as ``copies``.
    question : str
        The question that the check answers; the answer should be no.
    noun : str
        Noun, in the singular, for the items that the check counts.

    Returns
    -------
    callable
        A decorator for a function from `Audited` to `Found`; it returns the function unchanged. The function may raise
        `NotComputed`.

    Examples
    --------
    >>> @evalkit.compare.check("weekend", "Were runs made on a weekend?")
    ... def weekend(audited):
    ...     late = audited.runs[audited.runs["started"].dt.weekday >= 5]
    ...     return evalkit.compare.Found(len(late), len(audited.runs), late, audited.without(late))
    """

    def register(function: CheckFunction) -> CheckFunction:
        CHECKS[name] = Check(name, question, noun, function)
        return function

    return register


@dataclass(frozen=True, eq=False)
class Audited:
    """The runs that checks examine, and results that several checks need.

    Attributes
    ----------
    logs : Logs
    all_runs : DataFrame
        All runs, including runs that are excluded from rates, such as copies.
    """

    logs: Logs
    all_runs: pd.DataFrame
    value: Value = ""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that count in rates."""
        return counted(self.all_runs, self.logs.kind)

    @cached_property
    def planned_runs(self) -> pd.DataFrame | None:
        """The counted runs, and missing planned runs as failures; None without a plan for exactly these runs."""
        kind, is_part = self.logs.kind, len(self.all_runs) < len(self.logs.runs)
        return None if kind.over_planned is None or is_part else kind.over_planned(self.logs, self.runs)

    @cached_property
    def board(self) -> Leaderboard:
        """The leaderboard."""
        return leaderboard(self.all_runs, self.value, planned=self.logs.kind.planned(self.logs))

    @cached_property
    def outcome(self) -> pd.Series:
        """The outcome of each counted run: success, failure, not measured, running or, for scores, scored."""
        return self.board.outcomes.table["outcome"]

    @cached_property
    def estimates(self) -> pd.Series:
        """The estimates by which models are ranked, the highest first."""
        return self.estimates_of(self.board)

    @property
    def first(self) -> str:
        """The first model of the leaderboard; empty if there is none, or if several models share first place."""
        table = self.board.table.dropna(subset="estimate").set_index("model_name")
        column = "estimate" if self.board.basis == NONE else "adjusted_estimate"
        return first_of(table[column].drop(UNKNOWN, errors="ignore"))

    def estimates_of(self, runs: pd.DataFrame | Comparison) -> pd.Series:
        """Return the estimates by which a leaderboard of these runs would rank models, the highest first.

        With more than 1,000 models these are means over tasks, because adjusting them would take too long.
        """
        if not isinstance(runs, Comparison):
            same: Value = "is_successful" if self.board.outcomes.kind == "proportion" else "score"
            runs = Comparison.of(outcomes(runs, same, self.logs.kind))
        cells = runs.cells
        if len(cells.models) > MOST_ADJUSTED:
            means = pd.DataFrame(cells.over_conditions.means, columns=cells.models).mean()
            return means.drop(UNKNOWN, errors="ignore").sort_values(ascending=False, kind="stable")
        column = "estimate" if runs.adjusted.basis == NONE else "adjusted_estimate"
        table = best_first(runs.adjusted.table, column).set_index("model_name")
        return table[column].drop(UNKNOWN, errors="ignore").dropna()

    def without(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the counted runs, excluding the given ones."""
        return self.runs[~self.runs["run_id"].isin(runs["run_id"])]

    def ending(self, runs: pd.DataFrame, is_successful: bool) -> pd.DataFrame:
        """Return the counted runs, with the given ones set to success or failure."""
        is_changed = self.runs["run_id"].isin(runs["run_id"])
        success = self.runs["is_successful"].astype("boolean").mask(is_changed, is_successful)
        score = self.runs["score"].mask(is_changed, float(is_successful))
        return self.runs.assign(is_successful=success, score=score)

    def needs(self, *columns: str) -> None:
        """Raise NotComputed if all of these columns are missing or empty."""
        if not any(name in self.runs and self.runs[name].notna().any() for name in columns):
            named = [name.replace("_", " ") for name in columns if name != "uncounted"]  # amounts of 0
            last = " or ".join(named[-2:])
            raise NotComputed("not_logged", "the logs state no {columns}", columns=", ".join([*named[:-2], last]))


def first_of(estimates: pd.Series) -> str:
    """Return the first model of sorted estimates; empty if several models share the highest one."""
    if estimates.empty or (len(estimates) > 1 and estimates.iloc[0] == estimates.iloc[1]):
        return ""
    return str(estimates.index[0])
