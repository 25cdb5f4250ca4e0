"""The official score of the Crafter benchmark, and pooled variants under other names.

Per seed, s_i is the percentage of training episodes within the budget that unlock achievement i at least once, and the
score is exp(mean_i ln(1 + s_i)) − 1; reported is the mean over seeds ± the population standard deviation (Hafner,
"Benchmarking the Spectrum of Agent Capabilities", ICLR 2022, arXiv:2109.06780). It is neither the score of averaged
rates nor that of pooled episodes: these are `mean_rates_score` and `pooled_episodes_score`.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from evalkit._words import Notes, note
from evalkit.crafter.benchmark.runs import COLUMNS, POOLED, Distinct, Run, check_run, load_runs
from evalkit.crafter.format import ACHIEVEMENTS
from evalkit.io import SourceError
from evalkit.stats import Estimate, jackknife_interval, mean_interval

BUDGET = 1_000_000
ONE_SEED = note("one_seed", "one seed tells nothing about other seeds: no interval")

_Result = TypeVar("_Result", "CrafterScore", "Progression")
_Value = TypeVar("_Value")
Source = str | os.PathLike | Mapping | Sequence[Mapping]


class CrafterScore(NamedTuple):
    """A score with its spread over seeds and its interval.

    Attributes
    ----------
    estimate : float
        From 0 to 100.
    std : float
        Population standard deviation over seeds; NaN for one seed or one pooled group.
    per_seed : tuple of float
        In the order of the runs.
    n_seeds, n_episodes : int
        Seeds and episodes used.
    low, high : float
        95 % interval: of the mean over seeds for several, none for one, and over episodes for one pooled group.
    method : str
        What was computed, and how its interval.
    warning : Notes
        What is doubtful about the interval, or why there is none.
    """

    estimate: float
    std: float
    per_seed: tuple[float, ...]
    n_seeds: int
    n_episodes: int
    low: float
    high: float
    method: str
    warning: Notes = Notes()


class Progression(NamedTuple):
    """Mean share of the 22 achievements unlocked per episode, as BALROG reports it.

    `standard_error` is the population standard deviation over √n; `low` and `high` are a 95 % interval, as for all
    means with bounds.
    """

    estimate: float
    standard_error: float
    low: float
    high: float
    n: int
    method: str


def score_of_rates(rates: Iterable[float]) -> float:
    """Return exp(mean ln(1 + rate)) − 1, from 0 to 100; NaN without rates or where one is missing.

    Parameters
    ----------
    rates : iterable of float
        Success rates **in percent**, one per achievement, from 0 to 100.

    Raises
    ------
    ValueError
        For rates outside 0 to 100, and for fractions: rates that are all at most 1, one of them between 0 and 1, would
        give a plausible but wrong score.
    """
    values = np.asarray(list(rates), dtype=float)
    known = values[np.isfinite(values)]
    if ((known < 0) | (known > 100)).any():
        raise ValueError("success rates are in percent, from 0 to 100")
    if len(known) and 0 < known.max() <= 1:
        raise ValueError("success rates look like fractions (none is above 1); give them in percent, from 0 to 100")
    return _score(values)


def crafter_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Compute the official score of one method.

    Parameters
    ----------
    path_or_runs : path, run or sequence of runs
        A file or folder of ``stats.jsonl``, score files, BALROG run files or session traces; or runs as dictionaries,
        see `evalkit.crafter.benchmark.runs`. A run that occurs twice counts once, and `method` says so.
    budget : int
        Only episodes that end within this many steps of a run count. Traces have no common count of steps: all count.

    Returns
    -------
    CrafterScore
        With several seeds the interval is Student's t over their scores. A single seed shows nothing about other seeds
        and has none. Session traces are one pooled group, whose interval is that of its episodes.

    Raises
    ------
    evalkit.io.SourceError
        If there are no runs, or runs of several methods (see `crafter_scores`), or different results of one seed.
    ValueError
        For runs whose counts are not counts, such as rates.
    """
    return _only(crafter_scores(path_or_runs, budget), "crafter_scores gives one score each")


def crafter_scores(path_or_runs: Source, budget: int = BUDGET) -> dict[str, CrafterScore]:
    """Compute the official score of each method (for traces: of each model); arguments as for `crafter_score`."""
    return {name: _noting(_official(runs, budget), runs) for name, runs in _by_method(path_or_runs).items()}


def pooled_episodes_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score all episodes of all seeds as one group. Not the official score: long seeds weigh more."""
    runs = _only(_by_method(path_or_runs))
    unlocked = np.concatenate(_unlocked(runs, budget))
    return _noting(pooled_score(unlocked, what="score of pooled episodes, not the official score"), runs)


def mean_rates_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score the success rates averaged over seeds. Not the official score: it is never below it."""
    runs = _only(_by_method(path_or_runs))
    seeds = [unlocked for unlocked in _unlocked(runs, budget) if len(unlocked)]
    rates = np.array([100 * unlocked.mean(axis=0) for unlocked in seeds]).reshape(-1, len(ACHIEVEMENTS))
    interval = _of_means(rates)
    method = f"score of mean rates, not the official score; {interval.method} over seeds"
    return _noting(_finished(interval, method, [_score(row) for row in rates], sum(map(len, seeds))), runs)


def progression(path_or_runs: Source) -> Progression:
    """Average the share of achievements unlocked per episode over all episodes; arguments as for `crafter_score`."""
    runs = _only(_by_method(path_or_runs))
    counts = np.concatenate(_unlocked(runs, math.inf)).sum(axis=1)  # whole numbers: equal for equal episodes
    n, interval = len(counts), mean_interval(counts / len(ACHIEVEMENTS), bounds=(0, 1))
    error = float(counts.std() / len(ACHIEVEMENTS) / math.sqrt(n)) if n > 1 else math.nan
    return _noting(Progression(interval.estimate, error, interval.low, interval.high, n, interval.method), runs)


def pooled_score(unlocked: np.ndarray, tasks: Iterable | None = None, what: str = "score of one group") -> CrafterScore:
    """Apply the official formula to episodes as one group.

    Parameters
    ----------
    unlocked : ndarray of shape (episodes, 22)
        1 where an episode unlocked an achievement.
    tasks : iterable, optional
        The task of each episode: episodes of one task are a cluster in the interval.
    what : str
        Its name in `method`.

    Returns
    -------
    CrafterScore
        The interval is a jackknife of ln(1 + score), over episodes or over tasks.
    """
    interval, n = _of_means(100 * unlocked, tasks), len(unlocked)
    method = f"{what}; {interval.method} over {'episodes' if tasks is None else 'tasks'}"
    return _finished(interval, method, [interval.estimate] * (n > 0), n)


def _score(rates: np.ndarray) -> float:
    return float(np.expm1(np.log1p(rates).mean())) if len(rates) else math.nan


def _by_method(path_or_runs: Source) -> dict[str, list[Run]]:
    if isinstance(path_or_runs, str | os.PathLike):
        runs, ledger = load_runs(path_or_runs)
        if not runs:
            causes = "; ".join(sorted({entry.reason for entry in ledger.entries})[:3]) or "no files"
            raise SourceError(f"{path_or_runs}: no benchmark results and no traces ({causes})")
    else:
        several = isinstance(path_or_runs, Iterable) and not isinstance(path_or_runs, Mapping)
        given: list[Any] = list(path_or_runs) if several else [path_or_runs]
        distinct = Distinct()
        for number, run in enumerate(given, start=1):
            distinct.add(check_run(run), f"run {number}")
        runs = distinct.runs
        if not runs:
            raise SourceError("no runs were given")
    one_task = len({run["task"] for run in runs}) == 1
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run["method"] if one_task else f"{run['method']} ({run['task']})", []).append(run)
    return groups


def _only(methods: Mapping[str, _Value], hint: str = "choose one") -> _Value:
    if len(methods) > 1:
        raise SourceError(f"{len(methods)} methods are there: {', '.join(methods)}; {hint}")
    return next(iter(methods.values()))


def _noting(result: _Result, runs: list[Run]) -> _Result:
    """Add to a result's method how many repeated runs were left out."""
    n = sum(run.get("repeats", 0) for run in runs)
    note = f"; {n} repeated {'run' if n == 1 else 'runs'} left out" if n else ""
    return result._replace(method=result.method + note)


def _unlocked(runs: list[Run], budget: float) -> list[np.ndarray]:
    """Return per run an array of episodes × 22: 1 where the achievement was unlocked within the budget."""
    arrays = []
    for run in runs:
        unlocked = np.array([run[column] for column in COLUMNS.values()], dtype=float).T >= 1
        unlocked = unlocked.reshape(-1, len(ACHIEVEMENTS)).astype(float)
        arrays.append(unlocked if run["xs"] is None else unlocked[np.asarray(run["xs"], dtype=float) <= budget])
    return arrays


def _official(runs: list[Run], budget: float) -> CrafterScore:
    used = [unlocked for unlocked in _unlocked(runs, budget) if len(unlocked)]
    note = f"; {len(runs) - len(used)} seeds without episodes left out" if len(used) < len(runs) else ""
    if not used or any(run["seed"] == POOLED for run in runs):
        return pooled_score(np.concatenate([np.empty((0, len(ACHIEVEMENTS))), *used]), what=f"score of one group{note}")
    scores = np.array([_score(100 * unlocked.mean(axis=0)) for unlocked in used])
    interval = mean_interval(scores)._replace(estimate=float(scores.mean()))
    method = f"mean of scores per seed{note}; {interval.method} over seeds"
    score = _finished(interval, method, scores.tolist(), sum(map(len, used)))
    return score._replace(warning=ONE_SEED) if len(used) == 1 else score._replace(std=float(scores.std()))


def _finished(interval: Estimate, method: str, per_seed: Sequence[float], n_episodes: int) -> CrafterScore:
    bounds = interval.low, interval.high, method, interval.warning
    return CrafterScore(interval.estimate, math.nan, tuple(per_seed), len(per_seed), n_episodes, *bounds)


def _of_means(rates: np.ndarray, clusters: Iterable | None = None) -> Estimate:
    """Score mean rates, with a jackknife on the logarithmic scale, on which the score is nearly linear in them."""
    logs = jackknife_interval(rates, lambda rows: float(np.log1p(rows.mean(axis=0)).mean()), clusters)
    low = np.expm1(max(logs.low, 0.0)) if logs.low == logs.low else math.nan
    return logs._replace(estimate=float(np.expm1(logs.estimate)), low=float(low), high=float(np.expm1(logs.high)))
