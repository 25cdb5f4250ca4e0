"""Plan how many tasks, and how many runs of each, show a given difference, from how tasks and runs vary so far."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence
from evalkit.stats.pairs.cells import Cells, cells_of
from evalkit.stats.pairs.power import fewest_pairs, pairs_needed

NO_PAIR = "fewer than 2 shared tasks: nothing tells how tasks vary"
NEVER_REPEATED = "a model has no task with several runs: between all and none of the spread may be that of runs"
ALL_PAIRS = "all pairs"

_DTYPES = {
    "model_a": "str",
    "model_b": "str",
    "target": "str",
    "difference": "float64",
    "repeats": "float64",
    "tasks": "float64",
    "low": "float64",
    "high": "float64",
    "runs": "float64",
    "between": "float64",
    "within": "float64",
    "n_tasks": "int64",
    "warning": "str",
}


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
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns, as for `compare_all`.
    difference : float
        The true difference to show, above 0, in the unit of the values.
    repeats : sequence of int
        Runs of each model on each task to plan for.
    power, confidence : float
    comparisons : int, optional
        Pairs that will be compared, by default those that share tasks now; the level is divided by it.
    each_pair : bool
        False gives the plan for a typical pair: the mean of the variances of all.

    Returns
    -------
    DataFrame
        For each pair one row per number of repeats (target "new tasks"): `tasks` needed, with the range `low` to `high`
        from the uncertainty of the variances at `confidence`; and one row (target "these tasks") with the `repeats` of
        the tasks at hand that show the difference on them, with their range. Also `runs` (of both models), `between`
        and `within` (standard deviations of a difference: of tasks, and of single runs), n_tasks (shared now), warning.
        Where no task was run twice, the two parts can't be separated: there is only the range.

    Raises
    ------
    ValueError
        For an unknown column, or an impossible difference, power, confidence, comparisons or repeats.
    """
    check_confidence(confidence)
    if not difference > 0:
        raise ValueError(f"a difference to show is above 0, not {difference}")
    if not len(repeats) or any(r < 1 or int(r) != r for r in repeats):
        raise ValueError(f"repeats are whole numbers from 1, not {repeats}")
    cells = cells_of(frame, model, task, value)
    pairs = list(combinations(range(len(cells.models)), 2))
    components = [_components(cells, a, b, repeats, confidence) for a, b in pairs]
    names = [(cells.models[a], cells.models[b]) for a, b in pairs]
    tested = comparisons if comparisons is not None else sum(component["n_tasks"] > 0 for component in components)
    if not each_pair:
        names, components = ([(ALL_PAIRS, ALL_PAIRS)], [_typical(components)]) if components else ([], [])
    binary = bool(np.isin(cells.means[cells.sizes > 0], (0.0, 1.0)).all())
    options = {"power": power, "confidence": confidence, "comparisons": max(tested, 1)}
    tables = [
        _new_tasks(names, components, i, int(r), difference, binary and r == 1, options) for i, r in enumerate(repeats)
    ]
    table = pd.concat([*tables, _these_tasks(names, components, difference, options, confidence)], ignore_index=True)
    order = np.tile(np.arange(len(names)), len(repeats) + 1)
    table = table.assign(difference=difference).iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    return table[list(_DTYPES)].astype(_DTYPES)


def _components(cells: Cells, a: int, b: int, repeats: Sequence[int], confidence: float) -> dict:
    """Return the variance of a task's difference for each number of repeats, its range, and its parts."""
    shared = cells.has(a, b)
    count, nan = int(shared.sum()), np.full(len(repeats), math.nan)
    result = {"n_tasks": count, "variance": nan, "low": nan, "high": nan, "between": math.nan, "within": math.nan}
    if count < 2:
        return result | {"warning": NO_PAIR}
    first, second = cells.of(a, shared), cells.of(b, shared)
    squares = (first.means - second.means - (first.means - second.means).mean()) ** 2 * count / (count - 1)
    repeated = all((side.sizes > 1).any() for side in (first, second))
    if not repeated:
        low, high = _range(squares, confidence)
        variance = np.where(np.array(repeats) == 1, squares.mean(), math.nan)
        return result | {
            "variance": variance,
            "low": low / np.array(repeats),
            "high": np.full(len(repeats), high),
            "warning": NEVER_REPEATED,
        }
    within = [np.where(s.sizes > 1, s.variances, np.nanmean(s.variances)) for s in (first, second)]
    noise, single = sum(v / s.sizes for v, s in zip(within, (first, second), strict=True)), within[0] + within[1]
    between = max(float((squares - noise).mean()), 0.0)
    most = _range(squares - noise + single, confidence, between + single.mean())[1]
    variances, ranges = [], []
    for r in repeats:
        variances.append(between + single.mean() / r)
        low, high = _range(squares - noise + single / r, confidence, variances[-1])
        ranges.append((low, min(high, most)))  # no more than with single runs
    low, high = np.array(ranges).T
    deviations = {"between": math.sqrt(between), "within": math.sqrt(single.mean())}
    return result | deviations | {"variance": np.array(variances), "low": low, "high": high, "warning": ""}


def _range(contributions: np.ndarray, confidence: float, mean: float | None = None) -> tuple[float, float]:
    """Return an interval of a mean of the tasks' contributions to a variance, on the scale of logarithms."""
    mean = contributions.mean() if mean is None else mean
    if mean <= 0:
        return 0.0, math.nan
    error = formulas.student(confidence, len(contributions) - 1) * math.sqrt(formulas.variance_of_mean(contributions))
    factor = math.exp(min(error / mean, 20.0))
    return mean / factor, mean * factor


def _typical(pairs: list[dict]) -> dict:
    """Return the mean of the components of all pairs that have some."""
    known = [pair for pair in pairs if pair["n_tasks"] > 1] or pairs
    means = {name: np.mean([pair[name] for pair in known], axis=0) for name in ("variance", "low", "high")}
    roots = {name: math.sqrt(np.mean([pair[name] ** 2 for pair in known])) for name in ("between", "within")}
    warning = next((pair["warning"] for pair in known if pair["warning"]), "")
    return means | roots | {"n_tasks": int(np.median([pair["n_tasks"] for pair in known])), "warning": warning}


def _new_tasks(
    names: list, pairs: list[dict], place: int, repeats: int, difference: float, binary: bool, options: dict
) -> pd.DataFrame:
    table = _described(names, pairs).assign(target="new tasks", repeats=repeats)
    fewest = fewest_pairs((1 - options["confidence"]) / options["comparisons"])
    for name, source in (("tasks", "variance"), ("low", "low"), ("high", "high")):
        variances = np.array([pair[source][place] for pair in pairs], dtype=float)
        table[name] = np.maximum(pairs_needed(difference, np.sqrt(variances), binary=binary, **options), fewest)
    return table.assign(runs=2 * repeats * table["tasks"])


def _these_tasks(names: list, pairs: list[dict], difference: float, options: dict, confidence: float) -> pd.DataFrame:
    table = _described(names, pairs).assign(target="these tasks")
    level = (1 - confidence) / options["comparisons"]
    quantiles = special.ndtri(1 - level / 2) + special.ndtri(options["power"])
    needed = table["within"] ** 2 * (quantiles / difference) ** 2 / table["n_tasks"]
    table["repeats"] = np.maximum(np.ceil(needed), 2).where(needed.notna())
    table = table.assign(tasks=table["n_tasks"], low=math.nan, high=math.nan)
    return table.assign(runs=2 * table["repeats"] * table["n_tasks"])


def _described(names: list, pairs: list[dict]) -> pd.DataFrame:
    columns = ["n_tasks", "between", "within", "warning"]
    table = pd.DataFrame([[pair[name] for name in columns] for pair in pairs], columns=columns)
    return table.assign(model_a=[name[0] for name in names], model_b=[name[1] for name in names])
