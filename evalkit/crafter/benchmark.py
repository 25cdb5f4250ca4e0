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
from collections import Counter, defaultdict
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
from evalkit.io import BrokenFileError, Entry, Ledger, SourceError, absolute, decode_json, list_source, read_files
from evalkit.io import Source as Files
from evalkit.stats import jackknife_interval, mean_interval

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
_CANNOT_TELL = ("aborted", "unnamed_achievements", "no_environment_events")  # flags of traces

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
        A file or folder of ``stats.jsonl``, score files, BALROG run files or session traces, as `load_runs` reads them;
        or runs as dictionaries. A run that occurs twice counts once, and `method` says so.
    budget : int
        Only episodes that end within this many steps of a run count. Traces have no common count of steps: all count.

    Returns
    -------
    CrafterScore
        The interval of several seeds is Student's t over their scores; a single seed shows nothing about others, and
        has none. Session traces are one pooled group, whose interval is that of its episodes.

    Raises
    ------
    evalkit.io.SourceError
        If there are no runs, or runs of several methods (see `crafter_scores`), or different results of one seed.
    ValueError
        For runs whose counts are not counts, such as rates.
    """
    return _official(_of_one_method(path_or_runs, "crafter_scores gives one score each"), budget)


def crafter_scores(path_or_runs: Source, budget: int = BUDGET) -> dict[str, CrafterScore]:
    """Compute the official score of each method (for traces: of each model); arguments as for `crafter_score`."""
    return {name: _official(runs, budget) for name, runs in _by_method(path_or_runs).items()}


def pooled_episodes_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score all episodes of all seeds as one group. Not the official score: long seeds weigh more."""
    runs = _of_one_method(path_or_runs)
    what = "score of pooled episodes, not the official score"
    return _and_repeats(pooled_score(np.concatenate(_unlocked(runs, budget)), what=what), runs)


def mean_rates_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Score the success rates averaged over seeds. Not the official score: it is never below it."""
    runs = _of_one_method(path_or_runs)
    seeds = [unlocked for unlocked in _unlocked(runs, budget) if len(unlocked)]
    rates = np.array([100 * unlocked.mean(axis=0) for unlocked in seeds]).reshape(-1, len(ACHIEVEMENTS))
    score = _of_rates(rates, "score of mean rates, not the official score", "seeds", sum(map(len, seeds)))
    return _and_repeats(score._replace(per_seed=tuple(map(_score, rates)), n_seeds=len(seeds)), runs)


def progression(path_or_runs: Source) -> Progression:
    """Average the share of achievements unlocked per episode over all episodes; arguments as for `crafter_score`."""
    runs = _of_one_method(path_or_runs)
    counts = np.concatenate(_unlocked(runs, math.inf)).sum(axis=1)  # whole numbers: equal for equal episodes
    n, mean = len(counts), mean_interval(counts / len(ACHIEVEMENTS), bounds=(0, 1))
    error = float(counts.std() / len(ACHIEVEMENTS) / math.sqrt(n)) if n > 1 else math.nan
    return _and_repeats(Progression(mean.estimate, error, mean.low, mean.high, n, mean.method), runs)


def pooled_score(unlocked: np.ndarray, tasks: Iterable | None = None, what: str = "score of one group") -> CrafterScore:
    """Apply the official formula to episodes (an array of episodes × 22, 1 where unlocked) as one group called `what`.

    The interval is a jackknife of ln(1 + score) over episodes or, if these are given, over the `tasks` of episodes.
    """
    return _of_rates(100 * unlocked, what, "episodes" if tasks is None else "tasks", len(unlocked), tasks)


def score_of_rates(rates: Iterable[float]) -> float:
    """Return exp(mean ln(1 + rate)) − 1, from 0 to 100, of the success rate **in percent** of each achievement.

    NaN without rates or where one is missing. ValueError for rates outside 0 to 100, and for rates that are all at most
    1, one of them between 0 and 1: fractions would give a plausible but wrong score.
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

    Runs are sorted by method and seed; the ledger names what was skipped, left out or failed, and why. SourceError if
    `source` does not exist or can't be listed, or holds different results of one seed.
    """
    listing, entries = list_source(source), dict[str, Entry]()
    found, pooled = list[tuple[Run, str]](), dict[tuple[str, str], Run]()
    for path, data in read_files(p for p in listing.files if p.lower().endswith((".json", ".jsonl"))):
        try:
            runs, remark = _runs_of_file(path, data, listing.root)
        except OtherShapeError as error:
            entries[path] = Entry(path, "skipped", str(error))
            continue
        except BrokenFileError as error:
            entries[path] = Entry(path, "failed", str(error))
            continue
        entries[path] = Entry(path, "used", remark)
        for run in runs:
            if run["seed"] != POOLED:
                found.append((run, path))
                continue
            group = pooled.setdefault((run["task"], run["method"]), run)
            for column in COLUMNS.values() if group is not run else ():
                group[column] += run[column]
    runs, repeats = _distinct(found)
    sizes = Counter(path for _, path in found)
    for path, firsts in repeats.items():
        left_out = f"{len(firsts)} of {sizes[path]} runs left out, which are those of {firsts[0]}"
        reason = ", ".join(filter(None, (entries[path].reason, left_out)))
        entries[path] = Entry(path, "skipped" if len(firsts) == sizes[path] else "used", reason)
    ledger = Ledger()
    ledger.entries += entries.values()
    runs = sorted([*runs, *pooled.values()], key=lambda run: (run["method"], run["task"], str(run["seed"])))
    return Runs(runs, ledger)


def _distinct(found: Iterable[tuple[Run, str]]) -> tuple[list[Run], dict[str, list[str]]]:
    """Return distinct runs by the rule of `load_runs`, and by place, where the runs that it repeats stand first.

    Different results (counts and steps) under one seed are an error: only the user can decide which of them counts.
    Runs made of single episodes, which may be equal, are all taken.
    """
    runs, repeats = list[Run](), defaultdict[str, list[str]](list)
    firsts: dict[tuple, tuple[Run, str]] = {}  # the first run with a seed, or with results, and its place
    for run, place in found:
        if run["seed"] == POOLED:
            runs.append(run)
            continue
        group, seed, results = (run["task"], run["method"]), run["seed"], _results(run)
        same, first = firsts.get((*group, results)), firsts.get((*group, seed))
        if seed == UNKNOWN:
            first = same
        elif first and _results(first[0]) != results:
            both = place if place == first[1] else f"{first[1]} and {place}"
            name = f"{run['method']}, seed {seed} (task {run['task']})"
            raise SourceError(f"different results of {name} in {both}; keep one, or name the seeds apart")
        elif not first and same and same[0]["seed"] == UNKNOWN:
            first = same
            first[0]["seed"] = seed
        if first:
            first[0]["repeats"] += 1
            repeats[place].append(first[1])
        else:
            runs.append(run)
        first = first or (run, place)
        firsts.setdefault((*group, results), first)
        firsts.setdefault((*group, first[0]["seed"]), first)
    return runs, repeats


def _results(run: Run) -> tuple:
    return tuple(values and tuple(values) for values in (run["xs"], *(run[column] for column in COLUMNS.values())))


def check_run(run: Mapping[str, Any]) -> Run:
    """Check and complete a run: counts are whole numbers, and every list has one entry per episode; else ValueError."""
    if not isinstance(run, Mapping):
        raise ValueError(f"a run is no {type(run).__name__}, but a table of lists")
    if missing := [column for column in COLUMNS.values() if column not in run]:
        raise ValueError(f"{len(missing)} of 22 achievements are missing, such as {missing[0]}")
    for column in COLUMNS.values():
        if not isinstance(run[column], list | tuple):
            raise ValueError(f"{column} is no list of counts")
        if odd := [n for n in run[column] if not _is_count(n)]:
            raise ValueError(f"{column} holds {odd[0]!r:.40}: give the count of unlocks per episode, not rates")
    xs, length, seed = run.get("xs"), run.get("length"), run.get("seed")
    if xs is None and isinstance(length, list | tuple) and all(map(_is_count, length)):
        xs = list(accumulate(length))
    if not isinstance(xs, list | tuple | None):
        raise ValueError("xs is no list of steps")
    if len({len(values) for values in (*map(run.get, COLUMNS.values()), xs) if values is not None}) > 1:
        raise ValueError("the lists of a run have different lengths")
    if not all(map(_is_count, xs or ())):
        raise ValueError("xs holds other than counts of steps")
    names = {key: str(run.get(key) or UNKNOWN) for key in ("task", "method")}
    return {**run, **names, "seed": UNKNOWN if seed is None else str(seed), "xs": xs, "repeats": 0}


def _is_count(value: Any) -> bool:
    if isinstance(value, Integral):
        return 0 <= int(value) < 2**63
    return isinstance(value, float) and value >= 0 and value.is_integer()


def _runs_of_file(path: str, data: bytes | OSError, root: str) -> tuple[list[Run], str]:
    """Read one file of any kind; return its runs, and a remark for the ledger."""
    if isinstance(data, OSError):
        raise BrokenFileError(f"{type(data).__name__}: {data.strerror or data}")
    if path.endswith(".jsonl"):
        return _runs_of_stats(path, data, root)
    if b'"event_history"' not in data:  # traces may be large, and are never fully decoded
        value, notes = decode_json(data, ANYTHING)
        runs = value if isinstance(value, list) and value else [value]
        try:
            if isinstance(runs[0], Mapping) and any(column in runs[0] for column in COLUMNS.values()):
                return [check_run(run) for run in runs], ", ".join(notes)
            if isinstance(value, Mapping) and "progression" in value and "achievements" in value:
                return [_run_of_balrog(value)], ", ".join(notes)
        except ValueError as error:
            raise BrokenFileError(f"ValueError: {error}") from error
    judged = judge_trace(data)
    if judged.unlocked is None:
        reason = next(flag for flag in judged.session["flags"] if flag in _CANNOT_TELL).replace("_", " ")
        raise OtherShapeError(f"a session trace that can't tell what was unlocked: {reason}")
    return [_run_of_episode(judged.session["model_name"], judged.unlocked, "session traces")], judged.recovered


def _runs_of_stats(path: str, data: bytes, root: str) -> tuple[list[Run], str]:
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
    *above, name = absolute(path).removeprefix(absolute(root)).strip("/").split("/")
    stem = name.removesuffix(".jsonl")
    fallback = os.path.basename(absolute(root)) if above or stem == "stats" else stem
    run: Run = {"method": "/".join(above[:-1]) or fallback, "seed": above[-1] if above else UNKNOWN}
    run |= {column: [row[column] for row in rows] for column in ("length", *COLUMNS.values())}
    return [check_run(run)], f"{len(broken)} broken lines left out ({broken[0]})" if broken else ""


def _run_of_balrog(value: Mapping[str, Any]) -> Run:
    """Read one BALROG episode; the client names its model."""
    unlocked, client = value["achievements"], value.get("client")
    counts = dict.fromkeys(map(str, unlocked), 1) if isinstance(unlocked, list | tuple) else unlocked
    if not isinstance(counts, Mapping):
        raise ValueError("achievements is neither a list of names nor a table of counts")
    counts = {str(name).lower().replace(" ", "_"): n for name, n in counts.items()}
    if unknown := sorted(name for name in counts if name not in COLUMNS):
        raise ValueError(f"{unknown[0]!r} is no achievement of the game")
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
        runs, _ = _distinct((check_run(run), f"run {number}") for number, run in enumerate(given, start=1))
        if not runs:
            raise SourceError("no runs were given")
    one_task = len({run["task"] for run in runs}) == 1
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run["method"] if one_task else f"{run['method']} ({run['task']})", []).append(run)
    return groups


def _of_one_method(path_or_runs: Source, hint: str = "choose one") -> list[Run]:
    methods = _by_method(path_or_runs)
    if len(methods) > 1:
        raise SourceError(f"{len(methods)} methods are there: {', '.join(methods)}; {hint}")
    return next(iter(methods.values()))


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
        return _and_repeats(pooled_score(unlocked, what=f"score of one group{left_out}"), runs)
    scores, n_episodes = np.array([_score(100 * unlocked.mean(axis=0)) for unlocked in used]), sum(map(len, used))
    interval, several = mean_interval(scores), len(used) > 1
    method = f"mean of scores per seed{left_out}; {interval.method} over seeds"
    bounds = interval.low, interval.high, method, interval.warning if several else ONE_SEED
    std = float(scores.std()) if several else math.nan
    score = CrafterScore(float(scores.mean()), std, tuple(scores.tolist()), len(used), n_episodes, *bounds)
    return _and_repeats(score, runs)


def _score(rates: np.ndarray) -> float:
    return float(np.expm1(np.log1p(rates).mean())) if len(rates) else math.nan


def _of_rates(rates: np.ndarray, what: str, over: str, n: int, clusters: Iterable | None = None) -> CrafterScore:
    """Score mean rates, with a jackknife on the logarithmic scale, on which the score is nearly linear in them."""
    logs = jackknife_interval(rates, lambda rows: float(np.log1p(rows.mean(axis=0)).mean()), clusters)
    estimate, high = float(np.expm1(logs.estimate)), float(np.expm1(logs.high))
    low = float(np.expm1(max(logs.low, 0.0))) if logs.low == logs.low else math.nan
    group = (estimate,) * (n > 0)
    bounds = low, high, f"{what}; {logs.method} over {over}", logs.warning
    return CrafterScore(estimate, math.nan, group, len(group), n, *bounds)


def _and_repeats(score: Any, runs: list[Run]) -> Any:
    """Say in a score's method how many repeated runs were left out."""
    n = sum(run.get("repeats", 0) for run in runs)
    left_out = f"; {n} repeated {'run' if n == 1 else 'runs'} left out" if n else ""
    return score._replace(method=score.method + left_out)


def __dir__() -> list[str]:
    return sorted(__all__)
