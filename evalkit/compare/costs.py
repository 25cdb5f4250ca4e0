"""Compare the cost of models: their results against the cost of their runs, and their success at equal budgets."""

import numpy as np
import pandas as pd

from evalkit.compare.comparison import Comparison, comparison
from evalkit.kinds.runs import Value, leading
from evalkit.kinds.success_rates import CostUnit
from evalkit.stats import cost_front, estimate_by

COSTS: tuple[CostUnit, ...] = ("cost", "tokens", "duration")
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # shares of all models' runs that stay within a budget
_BUDGETS = "budget model_name n n_tasks estimate low high method target warning measure"


def cost(runs: pd.DataFrame | Comparison, value: Value = "") -> tuple[pd.DataFrame, CostUnit]:
    """Compare the results of models with their cost, in US dollars, else tokens, else seconds.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    tuple of DataFrame and str
        The table of `evalkit.stats.cost_front`, and the measure of cost: cost, tokens or duration. The table and the
        string are empty if no run has a cost.

    Examples
    --------
    >>> front, unit = compare.cost(runs)
    """
    data = comparison(runs, value)
    cells = data.cells
    unit = _unit(cells.runs.dropna(subset="value"))
    return data.outcomes.marked(cost_front(cells if unit else cells.take(models=[]), unit or COSTS[0])), unit


def _unit(rows: pd.DataFrame) -> CostUnit:
    """Return the first measure of cost that any run has, or an empty string."""
    return next((name for name in COSTS if rows[name].notna().any()), "")


def at_budget(runs: pd.DataFrame | Comparison, value: Value = "") -> tuple[pd.DataFrame, CostUnit]:
    """Estimate success at equal budgets per run; a run above the budget counts as a failure.

    Budgets are quantiles of the cost of runs, in US dollars, else tokens, else seconds. The estimate assumes that
    agents do not know the budget. The table contains at most 200 models, the ones with the highest means.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    tuple of DataFrame and str
        One row per budget and model: budget, model_name, n, n_tasks, estimate, low, high, method, target, warning,
        measure; and the measure of cost. Both are empty if no run has a cost, or if the values are not shares.

    Examples
    --------
    >>> budgets, unit = compare.at_budget(runs)
    """
    data = comparison(runs, value).outcomes
    rows = data.table.dropna(subset="value")
    unit = _unit(rows)
    if not unit or not data.is_share:
        return pd.DataFrame(columns=_BUDGETS.split()), ""
    taken = rows[unit].astype("Float64").astype("float64")
    rows, taken = rows[taken.notna()], taken.dropna()
    budgets = sorted({*np.quantile(taken, SHARES), taken.max()})
    rows = leading(rows.assign(taken=taken))
    parts = [rows.assign(budget=most, value=rows["value"].where(rows["taken"] <= most, 0.0)) for most in budgets]
    by = ["budget", "model_name"]
    rates = estimate_by(pd.concat(parts), by, "value", clusters="task", families="family", kind=data.kind)
    return data.marked(rates), unit
