"""Average runs by task and model, which comparisons of models start from."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._words import Notes, check_columns, left_out, note
from evalkit.stats.intervals import Clusters, by_cluster, coded, numbers


class SeedSpread(NamedTuple):
    """The variance of a model's mean between its seeds, and its degrees of freedom; 0 where seeds are not crossed."""

    variance: float = 0.0
    freedom: int = 0


class Cells(NamedTuple):
    """Runs by task and model: arrays of shape (tasks, models), NaN or 0 where a model has no run of a task.

    `lost` counts the runs of each model without a task or a value, `unnamed` those without a model. Where runs differ
    in condition, a row is a task under one condition, and `clusters` has the code of its task; where tasks are of
    families, `clusters` has that of its family, and `are_families` is true. `strata` are codes of the kinds of tasks,
    and conditions, if asked for.
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
    are_families: bool = False
    seeds: list[SeedSpread] | None = None  # of each model

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
        """Average the rows (first axis) of each task, NaN left out, where there are several.

        Of families the average is weighted by their rows, so that the mean of families is that of the rows.
        """
        if self.clusters is None:
            return values
        codes = np.unique(self.clusters[rows], return_inverse=True)[1]
        sums = np.zeros((codes.max(initial=-1) + 1, *values.shape[1:]))
        counts = np.zeros_like(sums)
        np.add.at(sums, codes, np.nan_to_num(values))
        np.add.at(counts, codes, np.isfinite(values))
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        if self.are_families:
            means = means * counts * (counts > 0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)
        return means

    def lost_of(self, *columns: int) -> Notes:
        """Describe how many runs of these models, and how many without a model, were left out."""
        runs = left_out(int(np.take(self.lost, columns).sum()), "run")
        return runs + (note("no_name", count=self.unnamed) if self.unnamed else Notes())


def cells_of(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    condition: str = "",
    stratum: str | None = None,
    family: str = "",
    seed: str = "",
) -> Cells:
    """Average the runs of each model on each task (and under each condition), models in the order of their names.

    `family` is the column of the family of a task, where tasks are variants of few, and `seed` that of what runs of
    different tasks share, such as a trained checkpoint.
    """
    check_columns(frame, model, task, value, *filter(None, [seed]))
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
    are_families = False
    if family and named.groupby(family)[task].nunique().max() > 1:
        first = np.unique(rows, return_index=True)[1]
        clusters, are_families = coded(named[family][usable])[0][first], True
    seeds = None
    if seed:
        known = pd.DataFrame({"row": rows, "model": columns[usable], "value": outcomes[usable]})
        seeds = _seed_spreads(known.assign(seed=named[seed][usable].to_numpy()), len(models))
    unnamed = len(frame) - len(named)
    return Cells(models, tasks, means, sizes, variances, lost, unnamed, clusters, strata, are_families, seeds)


def _seed_spreads(runs: pd.DataFrame, count: int) -> list[SeedSpread]:
    """Return the variance of each model's mean between its seeds (Cameron, Gelbach and Miller 2011).

    Seeds count where a model has several of them, and one of these ran several tasks. What a run deviates by is taken
    from the mean of its task, or, where the task has one seed, from the mean of the model.
    """
    spreads = [SeedSpread()] * count
    runs = runs[runs["seed"].notna()]
    by_model = runs.groupby("model")
    most_tasks = runs.groupby(["model", "seed"])["row"].nunique().groupby("model").max()
    crossed = by_model["seed"].nunique().gt(1) & most_tasks.gt(1)
    of: Any
    for of, own in runs[runs["model"].map(crossed).astype(bool)].groupby("model"):
        by_task = own.groupby("row")
        centre = by_task["value"].transform("mean")
        centre = centre.where(by_task["seed"].transform("nunique") > 1, by_task["value"].mean().mean())
        share = 1 / (own["row"].nunique() * by_task["value"].transform("size"))
        deviations, tasks = own["value"] - centre, own["row"].nunique()
        sums = (deviations * share).groupby(own["seed"]).sum()
        factor = len(sums) / (len(sums) - 1)
        variance = float((sums**2).sum()) * factor
        if len(sums) > 2:  # subtract the noise of single runs, which the variance over tasks holds already
            noise = (deviations - deviations.groupby(own["seed"]).transform("mean")) * share
            variance -= float((noise**2).sum()) * factor * tasks / (tasks - 1)
        spreads[of] = SeedSpread(max(variance, 0.0), len(sums) - 1)
    return spreads
