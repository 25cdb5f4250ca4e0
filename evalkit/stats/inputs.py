"""Convert users' input to clean arrays, and runs to averages by task and model, which comparisons start from."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit._words import Notes, left_out, note


class Clusters(NamedTuple):
    """The statistics of each cluster: its size, mean, and variance (NaN for a single value)."""

    sizes: np.ndarray
    means: np.ndarray
    variances: np.ndarray


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Return floats, in two dimensions for rows of numbers; what is missing is NaN."""
    given: Any = values  # pandas and NumPy accept more than their type stubs name
    if np.ndim(given) == 2:
        return pd.DataFrame(given).to_numpy(dtype="float64", na_value=np.nan)
    series = given if isinstance(given, pd.Series) else pd.Series(given if np.ndim(given) else list(given))
    return series.to_numpy(dtype="float64", na_value=np.nan)


def labels(clusters: Iterable[Any], n: int) -> np.ndarray:
    """Return the codes of n labels, as `coded` does; all missing labels have one code."""
    series = pd.Series(list(clusters), dtype="object")
    if len(series) != n:
        raise ValueError(f"{n} values, but {len(series)} cluster labels")
    return coded(series)[0]


def coded(labels: pd.Series) -> tuple[np.ndarray, list]:
    """Return codes 0, 1, ... of labels in the order of their texts, and the labels in this order.

    Random functions then give the same figures whatever the order of the rows.
    """
    codes, labels_seen = pd.factorize(labels, use_na_sentinel=False)
    order = np.argsort(np.array(list(map(str, labels_seen)), dtype="object"), kind="stable")
    return np.argsort(order)[codes], list(labels_seen.take(order))


def clean(values: Iterable[Any], clusters: Iterable[Any] | None) -> tuple[np.ndarray, np.ndarray, Notes]:
    """Return the finite values (or rows of them), the codes of their clusters and what was left out.

    Without clusters, each value has its own code.
    """
    values = numbers(values)
    finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    codes = np.arange(len(values)) if clusters is None else labels(clusters, len(values))
    codes = np.unique(codes[finite], return_inverse=True)[1]
    return values[finite], codes, left_out(len(values) - int(finite.sum()), "value")


def by_cluster(values: np.ndarray, codes: np.ndarray) -> Clusters:
    """Return sizes, means and variances of the clusters 0, 1, ... of values."""
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=values) / sizes
    squares = np.bincount(codes, weights=(values - means[codes]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters(sizes, means, np.where(sizes > 1, squares / (sizes - 1), np.nan))


class Cells(NamedTuple):
    """Runs by task and model: arrays of shape (tasks, models), NaN or 0 where a model has no run of a task.

    `lost` counts the runs of each model without a task or a value, `unnamed` those without a model. Where runs differ
    in condition, a row is a task under one condition, and `clusters` has the code of its task; `strata` are codes of
    the kinds of tasks, and conditions, if asked for.
    """

    models: list
    tasks: list
    means: np.ndarray
    sizes: np.ndarray
    variances: np.ndarray
    lost: list[int]
    unnamed: int
    clusters: np.ndarray | None = None
    strata: np.ndarray | None = None

    @property
    def shares(self) -> bool:
        """Whether all means lie from 0 to 1."""
        known = self.means[self.sizes > 0]
        return bool(((known >= 0) & (known <= 1)).all())

    def has(self, *columns: int) -> np.ndarray:
        """Return which tasks all these models, by default all models, have runs of."""
        return np.asarray((self.sizes[:, columns or slice(None)] > 0).all(axis=1))

    def of(self, column: int, tasks: np.ndarray | slice = slice(None)) -> Clusters:
        """Return the runs of one model on those of the tasks that it has runs of."""
        rows = np.arange(len(self.tasks))[tasks]
        rows = rows[self.sizes[rows, column] > 0]
        return Clusters(self.sizes[rows, column], self.means[rows, column], self.variances[rows, column])

    def by_task(self, values: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Average the rows (first axis) of each task, NaN left out, where there are several."""
        if self.clusters is None:
            return values
        codes = np.unique(self.clusters[rows], return_inverse=True)[1]
        sums = np.zeros((codes.max(initial=-1) + 1, *values.shape[1:]))
        counts = np.zeros_like(sums)
        np.add.at(sums, codes, np.nan_to_num(values))
        np.add.at(counts, codes, np.isfinite(values))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def lost_of(self, *columns: int) -> Notes:
        """Describe how many runs of these models, and how many without a model, were left out."""
        runs = left_out(int(np.take(self.lost, columns).sum()), "run")
        return runs + (note("no_name", count=self.unnamed) if self.unnamed else Notes())


def cells_of(
    frame: pd.DataFrame, model: str, task: str, value: str, condition: str = "", stratum: str | None = None
) -> Cells:
    """Average the runs of each model on each task (and under each condition), models in the order of their names."""
    check_columns(frame, model, task, value)
    named = frame[frame[model].notna()]
    outcomes = numbers(named[value])
    usable = np.isfinite(outcomes) & named[task].notna().to_numpy()
    columns, models = coded(named[model])
    labels, clusters = named[task][usable], None
    if condition and named[condition][usable].nunique() > 1:
        pairs = zip(labels.astype("str"), named[condition][usable].astype("str"), strict=True)
        labels = pd.Series(list(pairs), dtype="object")
        rows, tasks = coded(labels)
        clusters = np.asarray(pd.MultiIndex.from_tuples(tasks).codes[0])
    else:
        rows, tasks = coded(labels)
    shape = (len(tasks), len(models))
    means, sizes, variances = np.full(shape, np.nan), np.zeros(shape, dtype=int), np.full(shape, np.nan)
    if usable.any():
        places, codes = np.unique(rows * len(models) + columns[usable], return_inverse=True)
        statistics = by_cluster(outcomes[usable], codes)
        for table, one in zip((sizes, means, variances), statistics, strict=True):
            table.flat[places] = one
    lost = np.bincount(columns[~usable], minlength=len(models)).tolist()
    strata = None
    if stratum:
        kinds = frame.groupby(task)[stratum].first()
        under = tasks if clusters is not None else [(name, "") for name in tasks]
        texts = [f"{kinds.get(name, '')}\0{conditions}" for name, conditions in under]
        strata = coded(pd.Series(texts, dtype="object"))[0]
    return Cells(models, tasks, means, sizes, variances, lost, len(frame) - len(named), clusters, strata)


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}: {' or '.join(map(repr, choices))}")


_TYPES = {
    "int64": "a b k n n_clusters n_runs n_tasks rank_high rank_low tested",
    "bool": "behind_first binary decided equivalent on_front ties_with_first",
    "str": "correction dominated_by measure method model model_a model_b target verdict",
    "object": "warning",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}


def typed(table: pd.DataFrame, columns: str = "") -> pd.DataFrame:
    """Select the columns named, or all; each gets the type that goes with its name, and the others are of floats."""
    names = columns.split() or list(map(str, table))
    return table[names].astype({name: _TYPE_OF.get(name, "float64") for name in names})
