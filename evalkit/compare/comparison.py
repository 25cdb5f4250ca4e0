"""Prepare comparisons of models: the counted runs, and their averages by task and model, shared by all analyses."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import check_number
from evalkit.io import SourceError, short_paths
from evalkit.kinds import Outcomes, outcomes
from evalkit.kinds.pipeline import runs_of
from evalkit.kinds.runs import UNKNOWN, Value, leading
from evalkit.stats import Cells, adjusted_rates, cells_of, estimate_by, repeats_test
from evalkit.stats.adjusted import AdjustedRates
from evalkit.stats.pairwise import MOST_PAIRED

WITHIN = ("condition", "task_type", "family", "seed")  # columns that comparisons take into account, as in `cells_of`
RETRIED = 0.02  # maximum p value, corrected for all models, that shows that the number of runs depends on outcomes
FEW_VALUES = 5  # scores that a group needs before its unit is judged
FAR_ABOVE = 10  # a higher mean shows that scores are not shares
# names of scores of which lower values are usually better
LOWER = re.compile(r"(?i)(.*[^a-z])?(loss|[wc]er|errors?|error.rate|perplexity|ppl|latency|r?mse|mae|nll|brier)[^a-z]*")
MOST_SHOWN = 30  # number of models whose pairs are compared if there are too many models to compare all


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """The outcomes of runs, and their cells by task, model and condition.

    `of` computes the cells; all analyses of a page share them.
    """

    outcomes: Outcomes
    named_runs: pd.DataFrame  # the runs that name a model; all runs if no run that names one has a value
    all_cells: Cells  # of all models in `named_runs`, including models without any outcome

    @classmethod
    def of(cls, outcomes: Outcomes) -> "Comparison":
        """Return the comparison of runs with these outcomes."""
        named = outcomes.table[outcomes.table["model_name"] != UNKNOWN]
        if named["value"].isna().all():
            named = outcomes.table
        cells = cells_of(named, "model_name", "task", "value", *WITHIN)
        if outcomes.only_shared:
            cells = replace(cells, strata=None)
        return Comparison(outcomes, named, cells)

    @cached_property
    def unnamed(self) -> Notes:
        """Note how many runs are not compared because they name no model, with their rate."""
        data = self.outcomes
        rows = data.table.drop(self.named_runs.index)
        if rows.empty:
            return Notes()
        about: dict[str, Any] = {"what": data.name, "is_share": data.is_share, "unit": data.unit}
        measured = rows.dropna(subset="value")
        rates = estimate_by(measured, "model_name", "value", "task", data.kind, families="family", seeds="seed")
        return note("unnamed_runs", **about, count=len(rows), n=len(data.table), rates=rates.to_dict("records"))

    @cached_property
    def cells(self) -> Cells:
        """The cells of the models with at least one outcome."""
        is_measured = self.all_cells.sizes.any(axis=0)
        return self.all_cells if is_measured.all() else self.all_cells.take(models=np.flatnonzero(is_measured).tolist())

    @cached_property
    def adjusted(self) -> AdjustedRates:
        """The rates of the models in `cells`, raw and adjusted for the tasks that each model ran."""
        return adjusted_rates(self.cells, kind=self.outcomes.kind, conditions_of=self.outcomes.conditions_of)

    @cached_property
    def retried(self) -> list[str]:
        """The models whose tasks were repeated until a run succeeded, according to `evalkit.stats.repeats_test`."""
        if self.outcomes.kind != "proportion":
            return []
        table = leading(self.named_runs.dropna(subset=["value", "repetition"]))
        tested = {}
        counts_of_models = table.groupby(["model_name", "task"]).size()
        sizes = counts_of_models.groupby("model_name").nunique()
        table = table[table["model_name"].isin(sizes.index[sizes > 1])]
        for name, own in table.sort_values("repetition", kind="stable").groupby("model_name"):
            tasks = own.groupby("task")["value"]
            counts, changes = tasks.agg(["size", "sum"]), tasks.diff()
            rises = not changes.lt(0).any() and counts["sum"].max() > 1
            falls = not changes.gt(0).any() and (counts["size"] - counts["sum"]).max() > 1
            if not rises and not falls:  # if all tasks rise or fall, the table is probably sorted by outcome
                tested[str(name)] = repeats_test(own["value"], own["task"], usual=int(counts_of_models.mode()[0]))
        return [name for name, test in tested.items() if test.flagged and test.p_value * len(tested) <= RETRIED]

    @cached_property
    def doubts(self) -> Notes:
        """Notes that differences may come from how models were run or scored; with any, no model is called best."""
        found = Notes()
        table = self.named_runs.dropna(subset="value")
        if self.retried:
            found += note("retried_models", models=self.retried, first=table["repetition"].min())
        if LOWER.fullmatch(self.outcomes.by):
            found += note("lower_is_better", name=self.outcomes.by)
        if self.outcomes.kind == "mean" and not self.outcomes.unit:
            found += _units_differ(table)
        return found

    def with_failures(self, absent: pd.DataFrame) -> "Comparison":
        """Add absent runs as failures; `absent` is the result of `evalkit.kinds.findings.absent_runs`.

        Absent runs of tasks that no model ran are excluded, because they do not separate models.
        """
        table = self.outcomes.table
        absent = absent[absent["task"].isin(set(table["task"]))]
        failed = absent.loc[absent.index.repeat(absent["absent"])].assign(value=0.0)
        for name in ("task_type", "family"):
            failed[name] = failed["task"].map(table.groupby("task")[name].first())
        columns = ["task", "model_name", "value", *WITHIN]
        rows = pd.concat([table[columns], failed.reindex(columns=columns)], ignore_index=True)
        return Comparison.of(self.outcomes._replace(table=rows))


def _units_differ(table: pd.DataFrame) -> Notes:
    """Note models, files or task types whose scores are from 0 to 1 while others' scores are far above.

    If all scores of a model are 0 or 1, they may be the points of a weak model, unless the highest score of all is 100,
    which suggests percentages. If all scores of a file or task type are 0 or 1, they are treated as outcomes.
    """
    table = table.assign(is_between=~table["value"].isin([0, 1]))
    for column in ("model_name", "source", "task_type"):
        groups = table.groupby(column)
        values = groups["value"].agg(["size", "min", "max", "mean"])
        is_large = values["size"] >= FEW_VALUES
        is_above = is_large & (values["min"].gt(1) | values["mean"].gt(FAR_ABOVE))
        are_shares = groups["is_between"].any()
        if column != "model_name" or table["value"].max() == 100:
            are_shares |= is_large
        is_share = are_shares & values["min"].ge(0) & values["max"].between(0, 1, inclusive="right")
        if is_share.any() and is_above.any():
            names = values.index.map(short_paths(values.index) if column == "source" else str)
            return note("units_differ", shares=names[is_share].tolist(), others=names[is_above].tolist())
    return Notes()


def comparison(runs: pd.DataFrame | Comparison, value: Value = "") -> Comparison:
    """Return the comparison of a table of runs, as for `leaderboard`; return a comparison unchanged.

    Raises ValueError if a given comparison compares another value than `value`.
    """
    if not isinstance(runs, Comparison):
        return Comparison.of(outcomes(runs_of(runs), value))
    if value and (value == "is_successful") != (runs.outcomes.kind == "proportion"):
        raise ValueError(f"this comparison is one of {runs.outcomes.name}: pass the runs to compare {value}")
    return runs


def check_margin(scored: Outcomes, margin: float | None) -> None:
    """Raise SourceError for a margin of shares that is 1 or more, such as a margin in percent."""
    if margin is None:
        return
    check_number("margin", margin)
    if scored.is_share and margin >= 1:
        raise SourceError(f"a margin of {margin:g} is too large for shares: write 5 percentage points as 0.05")


def leading_cells(cells: Cells) -> Cells:
    """Return the cells of all models or, if there are more than 100, of the 30 models with the highest means."""
    if len(cells.models) <= MOST_PAIRED:
        return cells
    means = pd.DataFrame(cells.over_conditions.means).mean()
    return cells.take(models=sorted(means.nlargest(MOST_SHOWN).index))
