"""What a check of an audit is: what it finds, the runs that it looks at, and the registry of all checks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit.compare.comparison import Comparison
from evalkit.compare.ranking import Leaderboard, leaderboard
from evalkit.kinds import Logs, outcomes
from evalkit.kinds.runs import UNKNOWN, counted
from evalkit.kinds.success_rates import best_first
from evalkit.stats.adjusted import NONE

Verdict = Literal["fine", "look", "wrong", "not computed"]
MOST_ADJUSTED = 1_000  # models
VERDICTS: tuple[Verdict, ...] = ("wrong", "look", "fine", "not computed")  # the most serious first


@dataclass(frozen=True)
class Found:
    """What a check found.

    Parameters
    ----------
    count, n : int
        How many of how many, in the noun of the check, are doubtful.
    runs : DataFrame, optional
        The doubtful runs, of which the first are examples.
    alternative : DataFrame or Comparison, optional
        The runs of which the ranking would be made otherwise.
    order : Series, optional
        Instead of an alternative: its estimates, indexed by model.
    verdict : {"look", "wrong"}
        What the finding is if `count` is not 0: a doubt, or an error in the figures.
    notes : Notes
        Details; they are shown only if `count` is not 0.
    """

    count: int
    n: int
    runs: pd.DataFrame | None = None
    alternative: pd.DataFrame | Comparison | None = None
    order: pd.Series | None = None
    verdict: Verdict = "look"
    notes: Notes = NO_NOTES


class NotComputed(Exception):
    """Raised by a check that lacks what it needs; the notes give the reason."""

    def __init__(self, code: str, text: str, **values: Any) -> None:
        self.notes = note(code, text, **values)
        super().__init__(str(self.notes))


CheckFunction = Callable[["Audited"], Found]


class Check(NamedTuple):
    """A check: its name, the question that it answers, what it counts, and the function."""

    name: str
    question: str
    noun: str
    function: CheckFunction


CHECKS: dict[str, Check] = {}


def check(name: str, question: str, *, noun: str = "run") -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check of every audit from now on; one of the same name is replaced.

    Parameters
    ----------
    name : str
        A short name, such as ``copies``.
    question : str
        What the check answers, as a question whose answer should be no.
    noun : str
        What it counts.

    Returns
    -------
    callable
        A decorator of a function from `Audited` to `Found`, which returns the function unchanged. The function may
        raise `NotComputed`.

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
    """The runs that checks look at, and the results that several checks need.

    Attributes
    ----------
    logs : Logs
    all_runs : DataFrame
        Also runs that count in no rate, such as copies.
    """

    logs: Logs
    all_runs: pd.DataFrame
    value: str = ""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs that count in rates."""
        return counted(self.all_runs, self.logs.kind)

    @cached_property
    def planned_runs(self) -> pd.DataFrame | None:
        """The runs that count and the planned ones that are absent, as failures; None without a plan of these runs."""
        kind, is_part = self.logs.kind, len(self.all_runs) < len(self.logs.runs)
        return None if kind.over_planned is None or is_part else kind.over_planned(self.logs, self.runs)

    @cached_property
    def board(self) -> Leaderboard:
        """The leaderboard."""
        return leaderboard(self.all_runs, self.value, planned=self.logs.kind.planned(self.logs))

    @cached_property
    def outcome(self) -> pd.Series:
        """The outcome of each run that counts: success, failure, not measured or running; of scores also scored."""
        return self.board.outcomes.table["outcome"]

    @cached_property
    def estimates(self) -> pd.Series:
        """The estimates that models are ranked by, the highest first."""
        return self.estimates_of(self.board)

    @property
    def first(self) -> str:
        """The first model of the leaderboard; empty if there is none, or if several share first place."""
        table = self.board.table.dropna(subset="estimate").set_index("model_name")
        return first_of(table["estimate" if self.board.basis == NONE else "adjusted"].drop(UNKNOWN, errors="ignore"))

    def estimates_of(self, runs: pd.DataFrame | Comparison) -> pd.Series:
        """Return the estimates that models would be ranked by, the highest first, as the leaderboard makes them.

        Of more than 1,000 models these are means over tasks: to adjust them takes long.
        """
        if not isinstance(runs, Comparison):
            same = "is_successful" if self.board.outcomes.kind == "proportion" else "score"
            runs = Comparison(outcomes(runs, same, self.logs.kind))
        cells = runs.cells
        if len(cells.models) > MOST_ADJUSTED:
            means = pd.DataFrame(cells.over_conditions.means, columns=cells.models).mean()
            return means.drop(UNKNOWN, errors="ignore").sort_values(ascending=False, kind="stable")
        column = "estimate" if runs.adjusted.basis == NONE else "adjusted"
        table = best_first(runs.adjusted.table, column).set_index("model_name")
        return table[column].drop(UNKNOWN, errors="ignore").dropna()

    def without(self, runs: pd.DataFrame) -> pd.DataFrame:
        """Return the runs that count without these."""
        return self.runs[~self.runs["run_id"].isin(runs["run_id"])]

    def ending(self, runs: pd.DataFrame, is_successful: bool) -> pd.DataFrame:
        """Return the runs that count as if these had succeeded, or failed."""
        is_changed = self.runs["run_id"].isin(runs["run_id"])
        success = self.runs["is_successful"].astype("boolean").mask(is_changed, is_successful)
        score = self.runs["score"].mask(is_changed, float(is_successful))
        return self.runs.assign(is_successful=success, score=score)

    def needs(self, *columns: str) -> None:
        """Raise NotComputed unless a run has a value of one of these columns."""
        if not any(name in self.runs and self.runs[name].notna().any() for name in columns):
            named = [name.replace("_", " ") for name in columns]
            raise NotComputed("not_logged", "the logs state no {columns}", columns=" or ".join(named))


def first_of(estimates: pd.Series) -> str:
    """Return the model with the highest of estimates, which are in order; empty if several have it."""
    if estimates.empty or (len(estimates) > 1 and estimates.iloc[0] == estimates.iloc[1]):
        return ""
    return str(estimates.index[0])
