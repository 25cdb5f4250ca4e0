"""The benchmark's official score, the files that hold its results, and published scores.

Per seed, s_i is the percentage of training episodes within the budget that unlock achievement i at least once, and the
score is exp(mean_i ln(1 + s_i)) − 1; reported is the mean over seeds ± the population standard deviation (Hafner,
"Benchmarking the Spectrum of Agent Capabilities", ICLR 2022, arXiv:2109.06780). It is neither the score of averaged
rates nor that of pooled episodes: these are `mean_rates_score` and `pooled_episodes_score`.

A run is a dictionary as in files of scores: ``task``, ``method``, ``seed``, ``xs`` (steps done at the end of each
episode; without it the budget can't apply), and for each of the 22 achievements ``achievement_<name>``, a list with the
count of every episode. In checked runs ``repeats`` is how often the same run occurred again and was left out.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._words import Notes, note
from evalkit.crafter.format import ACHIEVEMENTS, ANYTHING, UNKNOWN, OtherShapeError
from evalkit.crafter.parse import judge_trace
from evalkit.io import BrokenFileError, Ledger, Listing, SourceError, absolute, decode_json, list_source, read_files
from evalkit.io import Source as Files
from evalkit.stats import Estimate, jackknife_interval, mean_interval

__all__ = [
    "BUDGET",
    "CrafterScore",
    "Progression",
    "Runs",
    "check_run",
    "crafter_score",
    "crafter_scores",
    "load_runs",
    "mean_rates_score",
    "pooled_episodes_score",
    "pooled_score",
    "progression",
    "reference_scores",
    "score_of_rates",
]

BUDGET = 1_000_000
POOLED = "pooled"  # seed of the runs made of single episodes
COLUMNS = {name: f"achievement_{name}" for name in ACHIEVEMENTS}
ONE_SEED = note("one_seed", "one seed tells nothing about other seeds: no interval")

Run = dict[str, Any]
Source = str | os.PathLike | Mapping | Sequence[Mapping]


class CrafterScore(NamedTuple):
    """A score with its spread over seeds and its interval."""

    estimate: float  # from 0 to 100
    std: float  # population standard deviation over seeds; NaN for one seed or one pooled group
    per_seed: tuple[float, ...]  # in the order of the runs
    n_seeds: int
    n_episodes: int
    low: float  # 95 % interval: of the mean over seeds for several, none for one, over episodes for one pooled group
    high: float
    method: str  # what was computed, and how its interval
    warning: Notes = Notes()  # what is doubtful about the interval, or why there is none


class Progression(NamedTuple):
    """Mean share of the 22 achievements unlocked per episode, as BALROG reports it."""

    estimate: float
    standard_error: float  # population standard deviation over √n
    low: float  # 95 % interval, as for all means with bounds
    high: float
    n: int
    method: str


class Runs(NamedTuple):
    """Runs of a source and the ledger of its files."""

    runs: list[Run]
    ledger: Ledger


def reference_scores(kind: str = "") -> pd.DataFrame:
    """Return published results in percent: name, kind, mean, spread and source.

    `kind` chooses ``score`` (of training runs of 1,000,000 steps; human: of expert play), whose spread is the standard
    deviation over seeds, or ``progression`` (of LLM agents), whose spread is the standard error.
    """
    table = pd.read_csv(Path(__file__).with_name("references.csv"))
    return table[table["kind"].eq(kind) | (not kind)].reset_index(drop=True)


def crafter_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Compute the official score of one method.

    Parameters
    ----------
    path_or_runs : path, run or sequence of runs
        A file or folder of ``stats.jsonl``, score files, BALROG run files or session traces; or runs as dictionaries,
        see `load_runs`. A run that occurs twice counts once, and `method` says so.
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
    score: CrafterScore = _only(crafter_scores(path_or_runs, budget), "crafter_scores gives one score each")
    return score


def crafter_scores(path_or_runs: Source, budget: int = BUDGET) -> dict[str, CrafterScore]:
    """Compute the official score of each method (for traces: of each model); arguments as for `crafter_score`."""
    return {name: _official(runs, budget) for name, runs in _by_method(path_or_runs).items()}


def pooled_episodes_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score all episodes of all seeds as one group. Not the official score: long seeds weigh more."""
    runs = _only(_by_method(path_or_runs))
    score = pooled_score(
        np.concatenate(_unlocked(runs, budget)), what="score of pooled episodes, not the official score"
    )
    return score._replace(method=score.method + _repeats(runs))


def mean_rates_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score the success rates averaged over seeds. Not the official score: it is never below it."""
    runs = _only(_by_method(path_or_runs))
    seeds = [unlocked for unlocked in _unlocked(runs, budget) if len(unlocked)]
    rates = np.array([100 * unlocked.mean(axis=0) for unlocked in seeds]).reshape(-1, len(ACHIEVEMENTS))
    interval = _of_means(rates)
    method = f"score of mean rates, not the official score; {interval.method} over seeds{_repeats(runs)}"
    return _finished(interval, method, [_score(row) for row in rates], sum(map(len, seeds)))


def progression(path_or_runs: Source) -> Progression:
    """Average the share of achievements unlocked per episode over all episodes; arguments as for `crafter_score`."""
    runs = _only(_by_method(path_or_runs))
    counts = np.concatenate(_unlocked(runs, math.inf)).sum(axis=1)  # whole numbers: equal for equal episodes
    n, interval = len(counts), mean_interval(counts / len(ACHIEVEMENTS), bounds=(0, 1))
    error = float(counts.std() / len(ACHIEVEMENTS) / math.sqrt(n)) if n > 1 else math.nan
    method = interval.method + _repeats(runs)
    return Progression(interval.estimate, error, interval.low, interval.high, n, method)


def pooled_score(unlocked: np.ndarray, tasks: Iterable | None = None, what: str = "score of one group") -> CrafterScore:
    """Apply the official formula to episodes (an array of episodes × 22, 1 where unlocked) as one group called `what`.

    The interval is a jackknife of ln(1 + score) over episodes or, if these are given, over the `tasks` of episodes.
    """
    interval, n = _of_means(100 * unlocked, tasks), len(unlocked)
    method = f"{what}; {interval.method} over {'episodes' if tasks is None else 'tasks'}"
    return _finished(interval, method, [interval.estimate] * (n > 0), n)


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


def load_runs(source: Files) -> Runs:
    """Read all benchmark files of a folder, including those in folders below, or one file.

    A ``stats.jsonl`` is one seed: its folder names the seed and the folders above that, below `source`, the method.
    Without folders above, `source` names the method; a file with another name in `source` names it itself.
    Session traces and BALROG run files are one episode each; those of a model are pooled into one run, whose seed is
    ``pooled``. Every other run counts once, however many files hold it: of one task and method, runs with the same seed
    are one run, and so are two with the same results of which one names no seed. Without a name a seed is ``unknown``.

    Parameters
    ----------
    source : str, path, or several of them
        Also globs and URLs; see `evalkit.io.list_source`.

    Returns
    -------
    Runs
        Sorted by method and seed; the ledger names what was skipped, left out or failed, and why.

    Raises
    ------
    evalkit.io.SourceError
        If `source` does not exist or can't be listed, or holds different results of one seed.
    """
    listing = list_source(source)
    ledger, distinct, pooled = Ledger(), Distinct(), dict[tuple[str, str], Run]()
    for path, data in read_files(p for p in listing.files if p.lower().endswith((".json", ".jsonl"))):
        try:
            runs, remark = _runs_of_file(path, data, listing)
        except OtherShapeError as error:
            ledger.add(path, "skipped", str(error))
            continue
        except BrokenFileError as error:
            ledger.add(path, "failed", str(error))
            continue
        episodes = [run for run in runs if run["seed"] == POOLED]
        for episode in episodes:
            group = pooled.setdefault((episode["task"], episode["method"]), episode)
            if group is not episode:
                group |= {column: group[column] + episode[column] for column in COLUMNS.values()}
        firsts = [distinct.add(run, path) for run in runs if run not in episodes]
        if repeated := [first for first in firsts if first]:
            left_out = f"{len(repeated)} of {len(runs)} runs left out, which are those of {repeated[0]}"
            remark = ", ".join(filter(None, (remark, left_out)))
        ledger.add(path, "skipped" if len(repeated) == len(runs) else "used", remark)
    runs = [*distinct.runs, *pooled.values()]
    return Runs(sorted(runs, key=lambda run: (run["method"], run["task"], str(run["seed"]))), ledger)


class Distinct:
    """Distinct runs, by the rule of `load_runs`; the first is kept. Those made of single episodes are all taken.

    Different results (counts and steps) under one seed are an error: only the user can decide which of them counts.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._places: dict[tuple, tuple[Run, str]] = {}  # the first run with a seed, or with results, and its place

    def add(self, run: Run, place: str) -> str | None:
        """Add a checked run from `place`; return the place of the first if it is a repeat."""
        if run["seed"] == POOLED:
            self.runs.append(run)  # episodes, which may be equal
            return None
        group, seed, results = (run["task"], run["method"]), run["seed"], _results(run)
        same, known = self._places.get((*group, results)), self._places.get((*group, seed))
        if seed == UNKNOWN:
            known = same
        elif known and _results(known[0]) != results:
            name = f"{run['method']}, seed {seed} (task {run['task']})"
            both = place if place == known[1] else f"{known[1]} and {place}"
            raise SourceError(f"different results of {name} in {both}; keep one, or name the seeds apart")
        elif not known and same and same[0]["seed"] == UNKNOWN:
            known = same
            same[0]["seed"] = seed
        first, where = known or (run, place)
        for key in (results, first["seed"]):
            self._places.setdefault((*group, key), (first, where))
        if known is None:
            self.runs.append(run)
            return None
        first["repeats"] += 1
        return where


def _results(run: Run) -> tuple:
    return (None if run["xs"] is None else tuple(run["xs"]), *(tuple(run[column]) for column in COLUMNS.values()))


def check_run(run: Mapping[str, Any]) -> Run:
    """Check and complete a run: counts are whole numbers, and every list has one entry per episode.

    Raises
    ------
    ValueError
        For a missing achievement, lists of different lengths, or values that are not counts.
    """
    if not isinstance(run, Mapping):
        raise ValueError(f"a run is no {type(run).__name__}, but a table of lists")
    if missing := [column for column in COLUMNS.values() if column not in run]:
        raise ValueError(f"{len(missing)} of 22 achievements are missing, such as {missing[0]}")
    columns = {column: run[column] for column in COLUMNS.values()}
    for column, counts in columns.items():
        if not isinstance(counts, list | tuple):
            raise ValueError(f"{column} is no list of counts")
        if odd := [n for n in counts if not _is_count(n)]:
            raise ValueError(f"{column} holds {odd[0]!r:.40}: give the count of unlocks per episode, not rates")
    xs, length, seed = run.get("xs"), run.get("length"), run.get("seed")
    if xs is None and isinstance(length, list | tuple) and all(map(_is_count, length)):
        xs = list(accumulate(length))
    if not isinstance(xs, list | tuple | None):
        raise ValueError("xs is no list of steps")
    if len({len(values) for values in (*columns.values(), xs) if values is not None}) > 1:
        raise ValueError("the lists of a run have different lengths")
    if not all(map(_is_count, xs or ())):
        raise ValueError("xs holds other than counts of steps")
    names = {key: str(run.get(key) or UNKNOWN) for key in ("task", "method")}
    return {**run, **names, "seed": UNKNOWN if seed is None else str(seed), "xs": xs, "repeats": 0}


def _is_count(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, Integral):
        return 0 <= int(value) < 2**63
    return isinstance(value, float) and math.isfinite(value) and value >= 0 and value.is_integer()


def _runs_of_file(path: str, data: bytes | OSError, listing: Listing) -> tuple[list[Run], str]:
    """Read one file of any kind; return its runs, and a remark for the ledger."""
    if isinstance(data, OSError):
        raise BrokenFileError(f"{type(data).__name__}: {data.strerror or data}")
    if path.endswith(".jsonl"):
        return _runs_of_stats(path, data, listing)
    is_scores = b'"achievement_collect_coal"' in data and b'"event_history"' not in data  # which may be large
    try:  # but no large trace is fully decoded
        value, notes = decode_json(data, ANYTHING) if len(data) < 1 << 16 or is_scores else (None, [])
    except BrokenFileError:
        value = None  # the reader of traces reports the error
    runs = value if isinstance(value, list) and value else [value]
    if isinstance(runs[0], Mapping) and any(column in runs[0] for column in COLUMNS.values()):
        try:
            return [check_run(run) for run in runs], ", ".join(notes)
        except ValueError as error:
            raise BrokenFileError(f"ValueError: {error}") from error
    if isinstance(value, Mapping) and "progression" in value and "achievements" in value:
        return [_run_of_balrog(value)], ", ".join(notes)
    judged = judge_trace(data)
    if judged.unlocked is None:
        reason = next(
            f for f in judged.session["flags"] if f in ("aborted", "unnamed_achievements", "no_environment_events")
        )
        raise OtherShapeError(f"a session trace that can't tell what was unlocked: {reason.replace('_', ' ')}")
    return [_run_of_episode(judged.session["model_name"], judged.unlocked, "session traces")], judged.recovered


def _runs_of_stats(path: str, data: bytes, listing: Listing) -> tuple[list[Run], str]:
    """Read ``stats.jsonl`` of the game's own recorder, a line per episode, as one run."""
    rows, broken = [], []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row, _ = decode_json(line, ANYTHING)
            check_run({column: [row[column]] for column in COLUMNS.values()} | {"xs": [row["length"]]})
            rows.append(row)
        except (BrokenFileError, ValueError, TypeError, KeyError) as error:
            broken.append(f"line {number}: {type(error).__name__}")
    if not rows:
        raise OtherShapeError(f"no line holds the results of an episode ({broken[0] if broken else 'empty file'})")
    *above, name = absolute(path).removeprefix(absolute(listing.root)).strip("/").split("/")
    stem = name.removesuffix(".jsonl")
    fallback = os.path.basename(absolute(listing.root)) if above or stem == "stats" else stem
    run: Run = {"method": "/".join(above[:-1]) or fallback, "seed": above[-1] if above else UNKNOWN}
    run |= {column: [row[column] for row in rows] for column in ("length", *COLUMNS.values())}
    return [check_run(run)], f"{len(broken)} broken lines left out ({broken[0]})" if broken else ""


def _run_of_balrog(value: Mapping[str, Any]) -> Run:
    """Read one BALROG episode; the client names its model."""
    unlocked, client = value["achievements"], value.get("client")
    counts = dict.fromkeys(map(str, unlocked), 1) if isinstance(unlocked, list | tuple) else unlocked
    if not isinstance(counts, Mapping):
        raise BrokenFileError("ValueError: achievements is neither a list of names nor a table of counts")
    counts = {str(name).lower().replace(" ", "_"): n for name, n in counts.items()}
    if unknown := sorted(name for name in counts if name not in COLUMNS):
        raise BrokenFileError(f"ValueError: {unknown[0]!r} is no achievement of the game")
    model = client.get("model_id") if isinstance(client, Mapping) else None
    return _run_of_episode(str(model or UNKNOWN), {name for name, n in counts.items() if n}, "BALROG runs")


def _run_of_episode(method: str, unlocked: Iterable[str], task: str) -> Run:
    counts = {column: [int(name in unlocked)] for name, column in COLUMNS.items()}
    return {"task": task, "method": method, "seed": POOLED, "xs": None, **counts}


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


def _only(methods: Mapping[str, Any], hint: str = "choose one") -> Any:
    """Return what belongs to the only method."""
    if len(methods) > 1:
        raise SourceError(f"{len(methods)} methods are there: {', '.join(methods)}; {hint}")
    return next(iter(methods.values()))


def _repeats(runs: list[Run]) -> str:
    """Say how many repeated runs were left out."""
    n = sum(run.get("repeats", 0) for run in runs)
    return f"; {n} repeated {'run' if n == 1 else 'runs'} left out" if n else ""


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
    left_out = f"; {len(runs) - len(used)} seeds without episodes left out" if len(used) < len(runs) else ""
    if not used or any(run["seed"] == POOLED for run in runs):
        unlocked = np.concatenate([np.empty((0, len(ACHIEVEMENTS))), *used])
        score = pooled_score(unlocked, what=f"score of one group{left_out}")
        return score._replace(method=score.method + _repeats(runs))
    scores = np.array([_score(100 * unlocked.mean(axis=0)) for unlocked in used])
    interval = mean_interval(scores)._replace(estimate=float(scores.mean()))
    method = f"mean of scores per seed{left_out}; {interval.method} over seeds{_repeats(runs)}"
    score = _finished(interval, method, scores.tolist(), sum(map(len, used)))
    return score._replace(warning=ONE_SEED) if len(used) == 1 else score._replace(std=float(scores.std()))


def _score(rates: np.ndarray) -> float:
    return float(np.expm1(np.log1p(rates).mean())) if len(rates) else math.nan


def _finished(interval: Estimate, method: str, per_seed: Sequence[float], n_episodes: int) -> CrafterScore:
    bounds = interval.low, interval.high, method, interval.warning
    return CrafterScore(interval.estimate, math.nan, tuple(per_seed), len(per_seed), n_episodes, *bounds)


def _of_means(rates: np.ndarray, clusters: Iterable | None = None) -> Estimate:
    """Score mean rates, with a jackknife on the logarithmic scale, on which the score is nearly linear in them."""
    logs = jackknife_interval(rates, lambda rows: float(np.log1p(rows.mean(axis=0)).mean()), clusters)
    low = np.expm1(max(logs.low, 0.0)) if logs.low == logs.low else math.nan
    return logs._replace(estimate=float(np.expm1(logs.estimate)), low=float(low), high=float(np.expm1(logs.high)))


def __dir__() -> list[str]:
    return sorted(__all__)
