"""Plan how many tasks, and how many runs of each, show a given difference, from how tasks and runs vary so far."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from evalkit._words import Notes, note
from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import Cells, cells_of, check_confidence, typed
from evalkit.stats.pairs.power import fewest_pairs, minimal_detectable_difference, pairs_needed

ALL_PAIRS = "all pairs"
PLANNED = 0.6  # confidence of the interval whose upper end one variance of five exceeds

_PAIR = ["model_a", "model_b", "n_tasks", "between", "within", "warning"]
_COLUMNS = "model_a model_b target difference repeats tasks low high detectable runs between within n_tasks warning"


def plan(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    difference: float,
    *,
    repeats: Sequence[int] = (1, 2, 3, 5, 10),
    power: float = 0.8,
    confidence: float = 0.95,
    comparisons: int | None = None,
    each_pair: bool = True,
) -> pd.DataFrame:
    """Plan how many tasks, or runs of each, show a true difference of two models with a given power.

    The variance of a task's difference has two parts: between tasks (some suit one model more than the other), which
    more tasks alone make up for, and within tasks (runs of one model on one task differ), which repetitions make up for
    as well. Both are estimated from the runs of each pair on the tasks it shares; its difference so far plays no role.

    Parameters
    ----------
    frame, model, task, value, power, confidence
        As for `compare_all`.
    difference : float
        The true difference to show, above 0, in the unit of the values.
    repeats : sequence of int
        Runs of each model on each task to plan for.
    comparisons : int, optional
        Pairs that will be compared, by default those that share tasks now; the level is divided by it.
    each_pair : bool
        False gives the plan for a typical pair: the mean of the variances of all.

    Returns
    -------
    DataFrame
        For each pair one row per number of repeats (target "new tasks"): `tasks` needed where the variances
        are at their upper limit of 80 % (Browne 1995: so that most plans have the power asked for), with the range
        `low` to `high` from their uncertainty at `confidence`, and `detectable`, the difference that the tasks at hand
        show by the same formula; and one row (target "these tasks") with the `repeats` of
        the tasks at hand that show the difference on them, with their range. Also `runs` (of both models), `between`
        and `within` (standard deviations of a difference: of tasks, and of single runs), n_tasks (shared now), warning.
        Where no task was run twice, the two parts can't be separated: there is only the range.
    """
    check_confidence(confidence)
    if not difference > 0:
        raise ValueError(f"a difference to show is above 0, not {difference}")
    if not len(repeats) or any(r < 1 or int(r) != r for r in repeats):
        raise ValueError(f"repeats are whole numbers from 1, not {repeats}")
    cells = cells_of(frame, model, task, value)
    places = combinations(range(len(cells.models)), 2)
    pairs = [_components(cells, a, b, np.array(repeats), confidence) for a, b in places]
    tested = max(comparisons if comparisons is not None else sum(pair["n_tasks"] > 0 for pair in pairs), 1)
    pairs = pairs if each_pair or not pairs else [_typical(pairs)]
    table = pd.DataFrame(pairs, columns=_PAIR)
    binary = bool(np.isin(cells.means[cells.sizes > 0], (0.0, 1.0)).all()) & (np.array(repeats) == 1)
    deviations = np.sqrt(np.reshape([pair["variances"] for pair in pairs], (len(pairs), 3, len(repeats))))
    options: dict[str, Any] = {"power": power, "confidence": confidence, "comparisons": tested, "binary": binary}
    needed = pairs_needed(difference, deviations, **options)
    shown = minimal_detectable_difference(table[["n_tasks"]].to_numpy(), deviations[:, 0], **options)
    tasks, low, high = np.maximum(needed, fewest_pairs((1 - confidence) / tested)).swapaxes(0, 1)
    quantiles = special.ndtri(1 - (1 - confidence) / tested / 2) + special.ndtri(power)
    runs = np.ceil(table["within"] ** 2 * (quantiles / difference) ** 2 / table["n_tasks"])
    nothing = np.full(len(pairs), math.nan)
    columns = {  # for each pair the numbers of repeats, then those for its tasks
        "target": np.tile(["new tasks"] * len(repeats) + ["these tasks"], len(pairs)),
        "repeats": np.column_stack([np.tile(repeats, (len(pairs), 1)), runs.clip(lower=2)]).ravel(),
        "tasks": np.column_stack([tasks, table["n_tasks"]]).ravel(),
        "low": np.column_stack([low, nothing]).ravel(),
        "high": np.column_stack([high, nothing]).ravel(),
        "detectable": np.column_stack([shown, nothing]).ravel(),
    }
    table = table.loc[table.index.repeat(len(repeats) + 1)].reset_index(drop=True).assign(**columns)
    return typed(table.assign(difference=difference, runs=2 * table["repeats"] * table["tasks"]), _COLUMNS)


def _components(cells: Cells, a: int, b: int, repeats: np.ndarray, confidence: float) -> dict:
    """Return the parts of the variance of a task's difference, and for each number of repeats the whole and its range.

    `variances` are of shape (3, repeats): the variance to plan with, the least and the largest.
    """
    shared = cells.has(a, b)
    count, nothing = int(shared.sum()), np.full(len(repeats), math.nan)
    result = {
        "model_a": cells.models[a],
        "model_b": cells.models[b],
        "n_tasks": count,
        "between": math.nan,
        "within": math.nan,
        "warning": note("few_shared"),
        "variances": [nothing] * 3,
    }
    if count < 2:
        return result
    first, second = cells.of(a, shared), cells.of(b, shared)
    squares = (first.means - second.means - (first.means - second.means).mean()) ** 2 * count / (count - 1)
    if not all((side.sizes > 1).any() for side in (first, second)):
        planned, low, high = _limits(squares, confidence, squares.mean())
        variances = [np.where(repeats == 1, planned, math.nan), low / repeats, np.full(len(repeats), high)]
        return result | {"variances": variances, "warning": note("unknown_repeats")}
    within = [np.where(s.sizes > 1, s.variances, np.nanmean(s.variances)) for s in (first, second)]
    noise, single = sum(v / s.sizes for v, s in zip(within, (first, second), strict=True)), within[0] + within[1]
    between = max(float((squares - noise).mean()), 0.0)
    _, _, most = _limits(squares - noise + single, confidence, between + single.mean())
    limits = [_limits(squares - noise + single / r, confidence, between + single.mean() / r) for r in repeats]
    planned, low, high = np.array(limits).T
    deviations = {"between": math.sqrt(between), "within": math.sqrt(single.mean()), "warning": Notes()}
    variances = [np.fmin(planned, most), low, np.minimum(high, most)]  # at most those of single runs
    return result | deviations | {"variances": variances}


def _limits(contributions: np.ndarray, confidence: float, mean: float) -> tuple[float, float, float]:
    """Return the upper limit at 80 % of a mean of contributions to a variance, and its interval, by logarithms."""
    if mean <= 0:
        return 0.0, 0.0, math.nan
    error = math.sqrt(formulas.variance_of_mean(contributions)) / mean
    planned, factor = (
        math.exp(min(formulas.student(level, len(contributions) - 1) * error, 20.0)) for level in (PLANNED, confidence)
    )
    return mean * planned, mean / factor, mean * factor


def _typical(pairs: list[dict]) -> dict:
    """Return the mean of the components of all pairs that have some."""
    known = [pair for pair in pairs if pair["n_tasks"] > 1] or pairs
    roots = {name: math.sqrt(np.mean([pair[name] ** 2 for pair in known])) for name in ("between", "within")}
    return roots | {
        "model_a": ALL_PAIRS,
        "model_b": ALL_PAIRS,
        "n_tasks": int(np.median([pair["n_tasks"] for pair in known])),
        "warning": next((pair["warning"] for pair in known if pair["warning"]), Notes()),
        "variances": np.mean([pair["variances"] for pair in known], axis=0),
    }
