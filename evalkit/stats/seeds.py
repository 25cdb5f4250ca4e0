"""The variation between seeds, such as trained checkpoints, if each of them ran several tasks."""

from typing import Any, NamedTuple

import pandas as pd


class SeedSpread(NamedTuple):
    """The variance of a model's mean between its seeds, and its degrees of freedom; 0 if tasks don't share seeds."""

    variance: float = 0.0  # without the noise of single runs, if it can be separated
    freedom: int = 0
    total: float = 0.0  # including the noise of single runs


def seed_spreads(runs: pd.DataFrame, count: int) -> list[SeedSpread]:
    """Return the variance of each model's mean between its seeds (Cameron, Gelbach and Miller 2011).

    Seeds count if a model has several of them, and at least one ran several tasks. The deviation of a run is from the
    mean of its task, or from the mean of the model if the task has one seed.
    """
    spreads = [SeedSpread()] * count
    runs = runs[runs["seed"].notna()]
    most_tasks = runs.groupby(["model", "seed"])["row"].nunique().groupby("model").max()
    crossed = runs.groupby("model")["seed"].nunique().gt(1) & most_tasks.gt(1)
    model: Any
    for model, own in runs[runs["model"].map(crossed).astype(bool)].groupby("model"):
        by_task = own.groupby("row")
        centre = by_task["value"].transform("mean")
        centre = centre.where(by_task["seed"].transform("nunique") > 1, by_task["value"].mean().mean())
        deviations, tasks = own["value"] - centre, by_task.ngroups
        share = 1 / (tasks * by_task["value"].transform("size"))
        sums = (deviations * share).groupby(own["seed"]).sum()
        factor = len(sums) / (len(sums) - 1)
        total = float((sums**2).sum()) * factor
        variance = total
        if len(sums) > 2:  # the variance over tasks includes the noise of single runs
            noise = (deviations - deviations.groupby(own["seed"]).transform("mean")) * share
            variance -= float((noise**2).sum()) * factor * tasks / (tasks - 1)
        spreads[model] = SeedSpread(max(variance, 0.0), len(sums) - 1, total)
    return spreads
