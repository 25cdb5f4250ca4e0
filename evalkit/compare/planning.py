"""Plan more runs: how many tasks and repetitions show a difference, or decide between the first models."""

import pandas as pd

from evalkit.compare.comparison import Comparison, comparison, leading_cells
from evalkit.compare.ranking import Leaderboard
from evalkit.display.words import MOST_NAME
from evalkit.io.text import distinct_names
from evalkit.kinds import Finding, sections
from evalkit.stats import plan as plan_pairs


def plan(runs: pd.DataFrame | Comparison, difference: float | None = None, value: str = "") -> pd.DataFrame:
    """Plan tasks and repetitions that detect a difference of a typical pair with 80 % power.

    Of more than 100 models, the plan uses the 30 with the highest means.

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


def plan_findings(board: Leaderboard, detect: float = 0.0) -> list[Finding]:
    """Plan how many tasks decide between the first model and the next one against which it is not decided.

    The true difference is taken to be the observed one; with `detect` also one of so many percentage points (of scores
    that are no shares: of so many of their unit). No findings where the models share no tasks.
    """
    data, near = board.outcomes, board.pairs_of_first
    near = near[~near["decided"] & near["p_adjusted"].notna() & near["estimate"].ne(0)]
    wanted: list[tuple[float, list[str], int | None]] = []
    runs_so_far = 1.0  # of a model on a task
    if len(near):
        row = near.sort_values("p_adjusted").iloc[0]
        runs_so_far = max(row["n_runs"] / max(2 * row["n_tasks"], 1), 1.0)
        names = distinct_names(board.table["model_name"], MOST_NAME)
        wanted.append((abs(row["estimate"]), [names[row["model_a"]], names[row["model_b"]]], int(row["n_tasks"])))
    if detect:
        wanted.append((detect / 100 if data.is_share else detect, [], None))
    cells = leading_cells(board.cells)
    found = []
    for difference, models, shared in wanted:
        table = plan_pairs(cells, difference)
        if table.empty:  # one model
            continue
        if reasons := table["warning"].iloc[0].only("no_plan"):
            found.append(Finding("caveat", sections.PLAN, {"notes": reasons}))
            break
        rows = table[table["target"] == "new tasks"].set_index("repeats")["tasks"]
        n_tasks = int(table["n_tasks"].iloc[0]) if shared is None else shared
        values = {
            "difference": difference,
            "models": models,
            "tasks": {repeats: rows[repeats] for repeats in (1, 3)},
            "n_tasks": n_tasks,
            "is_share": data.is_share,
            "unit": data.unit,
        }
        # a plan takes the spread so far for the true one: the runs that it asks for may exist and not have decided
        is_enough_already = bool(models) and any(rows[n] <= n_tasks for n in (1, 3) if n <= runs_so_far)
        if pd.notna(rows[1]) and not is_enough_already:
            found.append(Finding("plan", sections.PLAN, values))
    return found
