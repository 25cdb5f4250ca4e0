"""Average runs by task and model: the table that comparisons of models start from."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from evalkit._notes import Notes, left_out, note
from evalkit._text import check_columns
from evalkit.stats.intervals import Clusters, by_cluster, coded, numbers
from evalkit.stats.seeds import SeedSpread, seed_spreads


class Columns(NamedTuple):
    """The names of the columns of runs that cells were made from; empty if a column is not used."""

    model: str = ""
    task: str = ""
    value: str = ""
    condition: str = ""
    stratum: str = ""
    family: str = ""
    seed: str = ""


@dataclass(frozen=True)
class Cells:
    """Runs averaged by task and model, as from `cells_of`: the input for ranks, pairs, plans and costs of models.

    Arrays have the shape (tasks, models), with NaN or 0 if a model did not run a task. `lost` counts the runs of each
    model without a task or a value, and `unnamed` the runs without a model. If runs differ in condition, a row is a
    task under one condition, and `clusters` has the code of its task. If tasks belong to families, `clusters` has the
    code of the family, and `are_families` is true. `strata` are codes of the combinations of task type and condition.
    `runs` are the runs themselves, with the `columns` that were read.
    """

    models: list
    tasks: list
    means: np.ndarray
    sizes: np.ndarray
    variances: np.ndarray
    lost: np.ndarray
    unnamed: int
    clusters: np.ndarray | None = None
    strata: np.ndarray | None = None
    are_families: bool = False
    seeds: list[SeedSpread] | None = None  # one per model; None if no run has a seed
    conditions: np.ndarray | None = None  # the condition of each row, if runs differ in it
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    columns: Columns = field(default_factory=Columns)

    @cached_property
    def shares(self) -> bool:
        """Whether all means lie between 0 and 1."""
        known = self.means[self.sizes > 0]
        return bool(((known >= 0) & (known <= 1)).all())

    @cached_property
    def over_conditions(self) -> "Cells":
        """The cells with one row per task, averaged over conditions."""
        if self.conditions is None:
            return self
        return cells_of(self.runs, *self.columns[:3], family=self.columns.family)

    def means_of(self, column: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of `column` over the runs with values in `column` and `other`, and the number of these runs.

        Both arrays have the shape (tasks, models).
        """
        model, task, value = self.columns[:3]
        both = self.runs[np.isfinite(numbers(self.runs[other])) & np.isfinite(numbers(self.runs[value]))]
        means = cells_of(both, model, task, column)
        found = np.full((len(means.tasks), len(self.models)), np.nan)
        sizes = np.zeros(found.shape, dtype="int64")
        places = pd.Index(self.models, dtype="object").get_indexer(means.models)
        found[:, places] = means.means
        sizes[:, places] = means.sizes
        return found, sizes

    def take(self, rows: np.ndarray | slice = slice(None), models: Sequence[int] | slice = slice(None)) -> "Cells":
        """Select rows and models, and drop the rows that none of these models ran."""
        columns = np.arange(len(self.models))[models]
        places = np.arange(len(self.tasks))[rows]
        places = places[(self.sizes[np.ix_(places, columns)] > 0).any(axis=1)]
        arrays = {name: getattr(self, name)[np.ix_(places, columns)] for name in ("means", "sizes", "variances")}
        for name in ("clusters", "strata"):
            codes = getattr(self, name)
            arrays[name] = None if codes is None else np.unique(codes[places], return_inverse=True)[1]  # without gaps
        names = [self.models[i] for i in columns]
        return replace(
            self,
            models=names,
            tasks=[self.tasks[i] for i in places],
            lost=self.lost[columns],
            seeds=None if self.seeds is None else [self.seeds[i] for i in columns],
            conditions=None if self.conditions is None else self.conditions[places],
            runs=self.runs[self.runs[self.columns.model].isin(names)],
            **arrays,
        )

    def has(self, *columns: int) -> np.ndarray:
        """Return which rows were run by all these models, by default by all models."""
        return np.asarray((self.sizes[:, columns or slice(None)] > 0).all(axis=1))

    def of(self, column: int, tasks: np.ndarray | slice = slice(None)) -> Clusters:
        """Return the statistics of one model's runs on those of the given tasks that it ran."""
        rows = np.arange(len(self.tasks))[tasks]
        rows = rows[self.sizes[rows, column] > 0]
        return Clusters(self.sizes[rows, column], self.means[rows, column], self.variances[rows, column])

    def by_task(self, values: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Average the rows (first axis) of each task or family, ignoring NaN.

        Averages of families are weighted by their numbers of rows, so that their mean equals the mean of the rows.
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
        """Note how many runs of these models, and how many without a model, were left out."""
        runs = left_out(int(self.lost[list(columns)].sum()), "run")
        return runs + (note("no_name", count=self.unnamed) if self.unnamed else Notes())


def cells_of(
    runs: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    condition: str = "",
    stratum: str = "",
    family: str = "",
    seed: str = "",
) -> Cells:
    """Average the runs of each model on each task and under each condition.

    Rows with a missing model, task or value are excluded and counted.

    Parameters
    ----------
    runs : DataFrame
        One row per run.
    model : str
        Column of the model.
    task : str
        Column of the task.
    value : str
        Column of the outcome: 0/1, or a score.
    condition : str
        Column of conditions that make runs comparable, such as a budget.
    stratum : str
        Column of the type of task; within a type, tasks that only one model ran count as random samples.
    family : str
        Column with the family of a task, if tasks are variants of a few.
    seed : str
        Column of a grouping that crosses tasks, such as the trained checkpoint.

    Returns
    -------
    Cells
        Means and numbers of runs, of shape (tasks, models), with models in the order of their names.

    Raises
    ------
    ValueError
        For a missing column, or a task in two families.

    Examples
    --------
    >>> stats.cells_of(frame, "model", "task", "success").models
    ['a', 'b']
    """
    columns = Columns(model, task, value, condition, stratum, family, seed)
    check_columns(runs, *filter(None, columns))
    named = runs[runs[model].notna()]
    outcomes = numbers(named[value])
    usable = np.isfinite(outcomes) & named[task].notna().to_numpy()
    if family:
        check_families(named[task], named[family])
    of_model, models = coded(named[model])
    labels = named[task][usable]
    clusters, conditions = None, None
    if condition and named[condition][usable].nunique() > 1:
        pairs = zip(labels.astype("str"), named[condition][usable].astype("str"), strict=True)
        rows, tasks = coded(pd.Series(list(pairs), dtype="object"))
        clusters = np.asarray(pd.MultiIndex.from_tuples(tasks).codes[0])
        conditions = np.array([own for _, own in tasks], dtype="object")
    else:
        rows, tasks = coded(labels)
    shape = (len(tasks), len(models))
    means, variances = np.full(shape, np.nan), np.full(shape, np.nan)
    sizes = np.zeros(shape, dtype=int)
    if usable.any():
        places, codes = np.unique(rows * len(models) + of_model[usable], return_inverse=True)
        statistics = by_cluster(outcomes[usable], codes)
        for table, values in zip((sizes, means, variances), statistics, strict=True):
            table.flat[places] = values
    strata = None
    if stratum:
        of_task = runs[task] if conditions is None else runs[task].astype("str")
        kinds = runs.groupby(of_task)[stratum].first()
        texts = []
        for row in tasks:
            name, under = (row, "") if conditions is None else row
            texts.append(f"{kinds.get(name, '')}\0{under}")
        strata = coded(pd.Series(texts, dtype="object"))[0]
    are_families = bool(family) and bool(named.groupby(family)[task].nunique().max() > 1)
    if are_families:
        first = np.unique(rows, return_index=True)[1]
        clusters = coded(named[family][usable])[0][first]
    seeds = None
    if seed and named[seed].notna().any():
        known = pd.DataFrame({"row": rows, "model": of_model[usable], "value": outcomes[usable]})
        seeds = seed_spreads(known.assign(seed=named[seed][usable].to_numpy()), len(models))
    return Cells(
        models=models,
        tasks=tasks,
        means=means,
        sizes=sizes,
        variances=variances,
        lost=np.bincount(of_model[~usable], minlength=len(models)),
        unnamed=len(runs) - len(named),
        clusters=clusters,
        strata=strata,
        are_families=are_families,
        seeds=seeds,
        conditions=conditions,
        runs=named,
        columns=columns,
    )


def check_families(tasks: pd.Series, families: pd.Series) -> None:
    """Raise ValueError if a task belongs to several families."""
    if tasks.equals(families):
        return
    known = pd.DataFrame({"task": tasks, "family": families}).dropna().drop_duplicates()
    doubled = known[known["task"].duplicated(keep=False)]
    if len(doubled):
        task = doubled["task"].iloc[0]
        names = sorted(map(str, doubled.loc[doubled["task"] == task, "family"]))
        raise ValueError(
            f"task {task} is in {len(names)} families, {', '.join(names)}: a task can be in one family only"
        )
