"""Which of several models is better: every pair of them on the tasks it shares."""

import math
from itertools import combinations

import numpy as np
import pandas as pd

from evalkit.stats._formulas import adjusted_moments
from evalkit.stats._inputs import check_confidence, join, left_out, numbers
from evalkit.stats.comparison import holm, mcnemar_exact, paired_difference, sign_flip_test
from evalkit.stats.power import fewest_pairs, minimal_detectable_difference, pairs_needed

NO_SHARED = "no shared tasks"

_DTYPES = {
    "model_a": "str",
    "model_b": "str",
    "n_tasks": "int64",
    "n_runs": "int64",
    "mean_a": "float64",
    "mean_b": "float64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "p_value": "float64",
    "p_holm": "float64",
    "decided": "bool",
    "minimal_detectable": "float64",
    "tasks_needed": "float64",
    "method": "str",
    "sentence": "str",
    "warning": "str",
}


def compare_all(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    percent: bool = True,
) -> pd.DataFrame:
    """Compare every pair of models, paired on the tasks both have runs of.

    Runs of one model on one task are averaged first, so that each task counts once. A pair is decided where the p value
    (McNemar's exact test for 0/1 outcomes, else sign flips) is at most 1 − confidence after Holm's correction over all
    pairs that share tasks. The intervals are of single pairs, not corrected.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns of the model, of the task and of the outcome (0/1, or a score). Rows with a missing one are left out,
        and named in `warning`.
    confidence, power : float
        Between 0 and 1, both excluded.
    percent : bool
        The sentence speaks of percentages; False for outcomes that are no shares.

    Returns
    -------
    DataFrame
        One row per pair, models in the order of their names:

        - model_a, model_b; n_tasks shared, n_runs on them; mean_a, mean_b over these tasks
        - estimate (mean_a − mean_b), low, high
        - p_value, p_holm, decided
        - minimal_detectable: the true difference that n_tasks show with `power`
        - tasks_needed: how many tasks would show the difference seen with `power`, if it is the true one; both at the
          strictest level of Holm's correction and with the spread seen
        - method, sentence, warning

    Raises
    ------
    ValueError
        For a column that is not there, or an impossible confidence or power.
    """
    check_confidence(confidence)
    if missing := [name for name in (model, task, value) if name not in frame]:
        raise ValueError(f"no column {', '.join(map(repr, missing))} in a frame with {', '.join(map(repr, frame))}")
    named = frame[frame[model].notna()]
    runs = pd.DataFrame({"model": named[model], "task": named[task], "value": numbers(named[value])})
    runs["lost"] = ~np.isfinite(runs["value"]) | runs["task"].isna()
    cells = runs[~runs["lost"]].groupby(["task", "model"], observed=True)["value"].agg(["mean", "size"]).unstack()
    lost = runs.groupby("model", observed=True)["lost"].sum()
    models = sorted(lost.index, key=str)
    pairs = list(combinations(models, 2))
    rows = [_pair(cells, a, b, confidence) for a, b in pairs]
    unnamed = left_out(len(frame) - len(named), "run without a model")
    for row, (a, b) in zip(rows, pairs, strict=True):
        row["warning"] = join(row["warning"], left_out(int(lost[a] + lost[b]), "run"), unnamed)
    tested = _decide(rows, confidence, power)
    for row in rows:
        row["sentence"] = _sentence(row, tested, power, percent)
    return pd.DataFrame(rows, columns=list(_DTYPES)).astype(_DTYPES)


def _pair(cells: pd.DataFrame, a: str, b: str, confidence: float) -> dict:
    empty = pd.Series(math.nan, index=cells.index, dtype="float64")
    means = [cells["mean"].get(name, empty) if len(cells) else empty for name in (a, b)]
    shared = means[0].notna() & means[1].notna()
    left, right = (series[shared].to_numpy() for series in means)
    binary = bool(np.isin(np.concatenate([left, right]), (0.0, 1.0)).all())
    difference = paired_difference(left, right, confidence=confidence)
    tested = mcnemar_exact(left, right) if binary else sign_flip_test(left, right)
    runs = sum(int(cells["size"][name][shared].sum()) for name in (a, b)) if len(left) else 0
    return {
        "model_a": a,
        "model_b": b,
        "n_tasks": len(left),
        "n_runs": runs,
        "mean_a": left.mean() if len(left) else math.nan,
        "mean_b": right.mean() if len(left) else math.nan,
        "estimate": difference.estimate,
        "low": difference.low,
        "high": difference.high,
        "p_value": tested.p_value,
        "method": f"{difference.method}; {tested.method}",
        "warning": difference.warning if len(left) else NO_SHARED,
        "binary": binary,
        "deviation": _deviation(left - right, binary),
    }


def _deviation(differences: np.ndarray, binary: bool) -> float:
    """Return the spread that power is computed from, never 0: a spread that was not seen may still be there."""
    if len(differences) < 2:
        return math.nan
    if binary or np.ptp(differences) == 0:
        return float(adjusted_moments(differences)[1])
    return float(differences.std(ddof=1))


def _decide(rows: list[dict], confidence: float, power: float) -> int:
    """Fill in what depends on the number of pairs that can be tested, and return it."""
    adjusted = holm([row["p_value"] for row in rows])
    tested = int(np.isfinite(adjusted).sum())
    fewest = fewest_pairs((1 - confidence) / max(tested, 1))
    for row, p_holm in zip(rows, adjusted, strict=True):
        options = {"power": power, "confidence": confidence, "comparisons": max(tested, 1), "binary": row["binary"]}
        shown = minimal_detectable_difference(row["n_tasks"], row["deviation"], **options)
        needed = pairs_needed(row["estimate"], row["deviation"], **options)
        row["p_holm"] = p_holm
        row["decided"] = bool(p_holm <= 1 - confidence)
        row["minimal_detectable"] = shown if row["n_tasks"] >= fewest else math.nan
        row["tasks_needed"] = math.nan if math.isnan(needed) else max(needed, fewest)
    return tested


def _sentence(row: dict, tested: int, power: float, percent: bool) -> str:
    if row["n_tasks"] == 0:
        return f"Not decided: {row['model_a']} and {row['model_b']} share no tasks."
    unit, points = (" %", " points") if percent else ("", "")
    ahead, behind = ("a", "b") if row["estimate"] >= 0 else ("b", "a")
    low, high = (row["low"], row["high"]) if ahead == "a" else (-row["high"], -row["low"])
    means = [f"{_show(row[f'mean_{side}'], percent)}{unit}" for side in (ahead, behind)]
    interval = "" if math.isnan(low) else f" [{_show(low, percent)}, {_show(high, percent)}]"
    chance = "p < 0.0001" if row["p_holm"] < 1e-4 else f"p = {row['p_holm']:.2g}"
    found = (
        f"{means[0]} against {means[1]} on {row['n_tasks']} shared task{'s' if row['n_tasks'] > 1 else ''}, "
        f"difference {_show(abs(row['estimate']), percent)}{points}{interval}, {chance}"
        + (f" after Holm's correction for {tested} pairs" if tested > 1 else "")
    )
    names = row[f"model_{ahead}"], row[f"model_{behind}"]
    if row["decided"]:
        return f"{names[0]} is better than {names[1]}: {found}."
    return f"Not decided between {names[0]} and {names[1]}: {found}. {_outlook(row, power, percent)}"


def _outlook(row: dict, power: float, percent: bool) -> str:
    tasks = f"{row['n_tasks']} task{'s' if row['n_tasks'] > 1 else ''}"
    points, needed = " points" if percent else "", row["tasks_needed"]
    if math.isnan(row["minimal_detectable"]):
        now = f"{tasks} can't decide it, whatever the outcome"
    else:
        now = f"{tasks} would show {_show(row['minimal_detectable'], percent)}{points} with {power * 100:.0f} % power"
    if math.isnan(needed) or math.isinf(needed):
        return f"{now}."
    return f"{now}; {_show(abs(row['estimate']), percent)}{points} would need about {needed:,.0f} tasks."


def _show(value: float, percent: bool) -> str:
    return f"{value * 100:.0f}" if percent else f"{value:.3g}"
