"""Plan more runs: how many tasks and repetitions are needed to show a difference."""

import pandas as pd

from evalkit.compare.comparison import Comparison, comparison, leading_cells
from evalkit.kinds.runs import Value
from evalkit.stats import plan as plan_pairs


def plan(runs: pd.DataFrame | Comparison, difference: float | None = None, value: Value = "") -> pd.DataFrame:
    """Plan the numbers of tasks and repetitions that detect a difference of a typical pair with 80 % power.

    With more than 100 models, the plan uses only the 30 with the highest means.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    difference : float, optional
        The true difference, in the unit of the values; by default 0.1 for shares, else a quarter of the standard
        deviation of task means.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    DataFrame
        The table of `evalkit.stats.plan`.

    Examples
    --------
    >>> compare.plan(runs, 0.2)["repeats"].tolist()[:2]
    [1.0, 2.0]
    """
    data = comparison(runs, value)
    cells = leading_cells(data.cells)
    if difference is None:
        means = pd.Series(cells.over_conditions.means.ravel())
        difference = 0.1 if data.outcomes.is_share else float(means.std() / 4 or 1.0)
    return data.outcomes.marked(plan_pairs(cells, difference))
