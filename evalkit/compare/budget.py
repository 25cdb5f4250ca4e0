"""Compare models at equal budgets: the success of runs that took no more than so much."""

import numpy as np
import pandas as pd

from evalkit.kinds import Outcomes, outcomes
from evalkit.kinds.runs import leading
from evalkit.stats import estimate_by

COSTS = ("cost", "tokens", "duration")
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the runs of all models, that a budget allows


def at_budget(runs: pd.DataFrame | Outcomes, value: str = "") -> tuple[pd.DataFrame, str]:
    """Estimate success at equal budgets per run: a run that took more than the budget has failed.

    Budgets are quantiles of what the runs of all models took, and the largest. The text says in what: cost (US
    dollars), tokens or duration (seconds), whichever runs tell first. This is what runs would have reached had they
    been stopped at the budget, if agents do not know of it. Only runs that tell what they took count. Of more than 200
    models, the table has those with the highest means.

    Columns are budget, model_name, n, n_tasks, estimate, low, high, method, target, warning. No rows, and an
    empty text, without successes, or where runs tell none of these.
    """
    data = runs if isinstance(runs, Outcomes) else outcomes(runs, value)
    rows = data.table.dropna(subset="value")
    told = [name for name in COSTS if rows[name].notna().any()]
    if not told or not data.is_share:
        return pd.DataFrame(columns=["budget", "model_name", "n", "n_tasks", "estimate", "low", "high"]), ""
    taken = rows[told[0]].astype("Float64").astype("float64")
    rows, taken = rows[taken.notna()], taken.dropna()
    budgets = sorted({*np.quantile(taken, SHARES), taken.max()})
    rows = leading(rows.assign(taken=taken))
    parts = [rows.assign(budget=most, value=rows["value"].where(rows["taken"] <= most, 0.0)) for most in budgets]
    by = ["budget", "model_name"]
    rates = estimate_by(pd.concat(parts), by, "value", clusters="task", families="family", kind=data.kind)
    return rates, told[0]
