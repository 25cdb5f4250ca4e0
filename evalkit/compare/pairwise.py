"""Compare pairs of models: their differences, and the tasks on which their outcomes disagree."""

import numpy as np
import pandas as pd

from evalkit._notes import note
from evalkit.compare.comparison import Comparison, check_margin, comparison, leading_cells
from evalkit.display.words import pair_text
from evalkit.io import plain
from evalkit.kinds import Example, Outcomes, judge_mark
from evalkit.kinds.findings import MOST_EXAMPLES
from evalkit.kinds.runs import Value, leading
from evalkit.stats import Cells, compare_all
from evalkit.stats.intervals import LEVEL, Target

MOST_PAIRS = 45  # maximum number of pairs on a page: all pairs of 10 models
_DISCORDANT = ["task", "model_a", "model_b", "repetition", "value_a", "value_b", "run_id_a", "run_id_b"]


def pairs(
    runs: pd.DataFrame | Comparison, value: Value = "", *, target: Target = "new tasks", margin: float | None = None
) -> pd.DataFrame:
    """Compare every pair of models; with more than 100 models, only the 30 with the highest means.

    If the target is new tasks, the comparison also uses tasks that only one of the models ran, within task types and
    conditions, as if these tasks were random samples. `warning` counts them. If tasks are documents, as in
    lm-eval, it uses only the shared ones. Pairs are equivalent if their difference is shown to be within ± `margin`.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    target : {"new tasks", "these tasks"}
        Whether estimates are for new tasks like these, or for these tasks run again.
    margin : float, optional
        Largest irrelevant difference, in the unit of the values.

    Returns
    -------
    DataFrame
        The table of `evalkit.stats.compare_all`, with unit (``%`` for shares), sentence (the comparison in words) and
        measure. If a model has no outcome, the sentence gives this reason.

    Examples
    --------
    >>> compare.pairs(runs)["decided"].sum() > 0
    np.True_
    """
    data = comparison(runs, value)
    return data.outcomes.marked(pairs_of(data.all_cells, data.outcomes, target, margin))


def pairs_of(cells: Cells, scored: Outcomes, target: Target = "new tasks", margin: float | None = None) -> pd.DataFrame:
    """Return the table of `pairs` for the models of `cells`."""
    check_margin(scored, margin)
    cells = leading_cells(cells)
    table = compare_all(cells, target=target, margin=margin)
    for model, sizes in zip(cells.models, cells.sizes.T, strict=True):
        if not sizes.any():
            is_of_model = table[["model_a", "model_b"]].eq(model).any(axis=1)
            table["warning"] = table["warning"].where(~is_of_model, note("unmeasured", model=model))
    table["unit"] = "%" if scored.is_share else scored.unit
    return table.assign(sentence=pd.Series(map(pair_text, table.to_dict("records")), table.index, dtype="str"))


def pairs_to_show(pairs: pd.DataFrame, most: int = MOST_PAIRS) -> pd.DataFrame:
    """Select the pairs for a page: the `most` pairs with the smallest p values.

    Parameters
    ----------
    pairs : DataFrame
        Result of `pairs`.
    most : int
        Maximum number of pairs.

    Returns
    -------
    DataFrame
        model_a, model_b, n_tasks, n_unshared (if any), estimate (a minus b), low, high, p_adjusted, claim_at (if any is
        not 0.05), decided, equivalent (with a margin), warning (if a judge set outcomes).

    Examples
    --------
    >>> len(compare.pairs_to_show(compare.pairs(runs), most=3))
    3
    """
    shown = pairs.nsmallest(most, "p_adjusted") if len(pairs) > most else pairs
    columns = ["model_a", "model_b", "n_tasks", "n_unshared", "estimate", "low", "high", "p_adjusted", "claim_at"]
    columns += ["decided", "equivalent"]
    if not shown["n_unshared"].any():
        columns.remove("n_unshared")
    if shown["claim_at"].eq(LEVEL).all():
        columns.remove("claim_at")
    if shown["p_equivalent"].isna().all():
        columns.remove("equivalent")
    if judge_mark(shown["warning"]):
        columns.append("warning")
    return shown[columns]


def pairs_text(pairs: pd.DataFrame) -> str:
    r"""Describe pairs in sentences, one per line; for more than 45 pairs, only the most significant decided pairs.

    Parameters
    ----------
    pairs : DataFrame
        Result of `pairs`.

    Returns
    -------
    str
        The sentences; empty for a single model.

    Examples
    --------
    >>> compare.pairs_text(compare.pairs(runs)).count("\n")
    5
    """
    if len(pairs) <= MOST_PAIRS:
        return "\n".join(map(plain, pairs["sentence"]))
    decided = pairs[pairs["decided"]].nsmallest(MOST_PAIRS, "p_adjusted")
    count = len({*pairs["model_a"], *pairs["model_b"]})  # `pairs` compares only the first of very many models
    head = f"{int(pairs['decided'].sum())} of {len(pairs):,} pairs of {count} models are decided."
    return "\n".join([head, *map(plain, decided["sentence"])])


def discordant(
    runs: pd.DataFrame | Comparison, model_a: str = "", model_b: str = "", value: Value = ""
) -> pd.DataFrame:
    """Find the tasks on which two models disagree, with their runs.

    Runs of a task are paired in the order of repetitions. If the kind of log counts unmeasured runs as failures, they
    are failures of models with at least one measured run; otherwise they are ignored. Scores disagree if they differ by
    more than half of the largest difference.

    Parameters
    ----------
    runs : DataFrame or Comparison
        One row per run, or a leaderboard.
    model_a : str
        First model; by default every pair of models (of the 200 with the highest means, if there are more).
    model_b : str
        Second model; by default all others.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.

    Returns
    -------
    DataFrame
        One row per pair of runs: model_a, model_b, task, repetition (of `model_a`), value_a, value_b, run_id_a,
        run_id_b.

    Examples
    --------
    >>> compare.discordant(runs, "alder-large", "dogwood-8b")["task"].iloc[0]
    'multiagent_cooking_1_bread_1_cookie_blocked_access_0'
    """
    named = {name for name in (model_a, model_b) if name}
    table = comparison(runs, value).named_runs.dropna(subset="value")
    table = table[table["model_name"].isin(named)] if len(named) == 2 else table
    table = table if named else leading(table)
    table = table.sort_values(["model_name", "task", "repetition"], kind="stable", ignore_index=True)
    place = table.groupby(["model_name", "task"]).cumcount()
    order = {name: n for n, name in enumerate([model_a, *sorted(set(table["model_name"]) - named), model_b])}
    side, values = table["model_name"].map(order).to_numpy(int), table["value"].to_numpy(float)
    units = pd.DataFrame({"unit": table.groupby([table["task"], place]).ngroup(), "row": table.index})
    both = units.merge(units, on="unit")  # merge only row numbers, because many models have many pairs
    left, right = both["row_x"].to_numpy(), both["row_y"].to_numpy()
    gaps = np.abs(values[left] - values[right])
    is_kept = (side[left] < side[right]) & (gaps > 0)
    if len(named) == 1:
        is_kept &= (side[left] == order[next(iter(named))]) | (side[right] == order[next(iter(named))])
    is_kept &= gaps > gaps[is_kept].max(initial=0) / 2
    left, right = left[is_kept], right[is_kept]
    by_models = np.lexsort((side[right], side[left]))
    pairs = table[["task", "repetition"]].take(left[by_models]).reset_index(drop=True)
    for letter, rows in (("a", left[by_models]), ("b", right[by_models])):
        for name, column in (("model", "model_name"), ("value", "value"), ("run_id", "run_id")):
            pairs[f"{name}_{letter}"] = table[column].take(rows).array
    return pairs[_DISCORDANT]


def examples(pairs: pd.DataFrame) -> tuple[Example, ...]:
    """Return the first pairs of runs as examples for a finding, one per task.

    Parameters
    ----------
    pairs : DataFrame
        Result of `discordant`.

    Returns
    -------
    tuple of Example
        The examples.

    Examples
    --------
    >>> len(compare.examples(compare.discordant(runs)))
    3
    """
    rows = pairs.drop_duplicates(["task"]).head(MOST_EXAMPLES).to_dict("records")
    return tuple(Example(row["task"], row["run_id_a"], row["run_id_b"]) for row in rows)
