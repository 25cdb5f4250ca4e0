"""Compute the benchmark's official score, read its result files, and list published scores.

For each seed, s_i is the percentage of training episodes within the budget that unlock achievement i at least once, and
the score is exp(mean_i ln(1 + s_i)) − 1. The reported value is the mean over seeds ± the population standard deviation
(Hafner, "Benchmarking the Spectrum of Agent Capabilities", ICLR 2022, arXiv:2109.06780). It differs from the score of
averaged rates and from the score of pooled episodes.

A run is a dictionary with the keys of result files: ``task``, ``method``, ``seed``, ``xs`` (number of steps at the end
of each episode; without it, the budget does not apply), and for each of the 22 achievements ``achievement_<name>``, a
list with its count in every episode.
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

from evalkit._notes import Notes, note
from evalkit.crafter.assemble import find_copies
from evalkit.crafter.format import ACHIEVEMENTS, UNKNOWN, OtherShapeError
from evalkit.crafter.parse import columns_of, judge_trace, names_in, rows_of
from evalkit.crafter.table import FLAGS
from evalkit.io import BrokenFileError, Ledger, SourceError, absolute, decode_json, list_source, read_files, reason_of
from evalkit.io import Source as Files
from evalkit.stats import Estimate, jackknife_interval, mean_interval

__all__ = [
    "BUDGET", "CrafterScore", "Runs", "crafter_score", "crafter_scores", "load_runs", "progression",
    "reference_scores",
]  # fmt: skip

BUDGET = 1_000_000  # steps
POOLED = "pooled"  # seed of runs that consist of a single episode
COLUMNS = {name: f"achievement_{name}" for name in ACHIEVEMENTS}

Run = dict[str, Any]
Source = str | os.PathLike | Mapping | Sequence[Mapping]


class CrafterScore(NamedTuple):
    """A score with its spread over seeds and its interval."""

    estimate: float  # from 0 to 100
    std: float  # population standard deviation over seeds; NaN for one seed or one pooled group
    per_seed: tuple[float, ...]  # in the order of the runs
    n_seeds: int
    n_episodes: int
    low: float  # 95 % interval: over seeds, or over episodes for one pooled group; NaN for a single seed
    high: float
    method: str  # how the score and its interval were computed
    warning: Notes = Notes()  # doubts about the interval, or the reason why it is missing


class Runs(NamedTuple):
    """The runs of a source, and the ledger of its files."""

    runs: list[Run]
    ledger: Ledger


def reference_scores(kind: str = "") -> pd.DataFrame:
    """Return published results.

    Parameters
    ----------
    kind : str
        ``score`` (training runs of 1,000,000 steps; human: expert play), ``progression`` (LLM agents), or empty for
        both.

    Returns
    -------
    DataFrame
        name, kind, mean, spread (percent; standard deviation over seeds for score, standard error for progression) and
        source.

    Examples
    --------
    >>> benchmark.reference_scores("score")["kind"].unique().tolist()
    ['score']
    """
    table = pd.read_csv(Path(__file__).with_name("references.csv"))
    return table[table["kind"].eq(kind) | (not kind)].reset_index(drop=True)


def crafter_score(path_or_runs: Source, budget: int = BUDGET) -> CrafterScore:
    """Compute the official score of one method: the mean over seeds, with an interval by Student's t.

    A single seed has no interval. Session traces do not share a step count, so the budget does not apply to them: all
    their episodes count, as one group.

    Parameters
    ----------
    path_or_runs : path, mapping or sequence of mapping
        Files that `load_runs` reads, or runs as dictionaries.
    budget : int
        Number of steps of a run that count.

    Returns
    -------
    CrafterScore
        Score from 0 to 100 with its interval and standard deviation over seeds.

    Raises
    ------
    SourceError
        If there are no runs, runs of several methods, or two runs with the same seed.
    ValueError
        If values are not counts, for example because they are rates.

    Examples
    --------
    >>> benchmark.crafter_score({"seed": "1", "achievement_collect_wood": [1, 0]}).seeds  # doctest: +SKIP
    """
    return _official(_of_one_method(path_or_runs), budget)


def crafter_scores(path_or_runs: Source, budget: int = BUDGET) -> dict[str, CrafterScore]:
    """Compute the official score of each method; the method of a trace is its model.

    Parameters
    ----------
    path_or_runs : path, mapping or sequence of mapping
        Files that `load_runs` reads, or runs as dictionaries.
    budget : int
        Number of steps of a run that count.

    Returns
    -------
    dict of str to CrafterScore
        Scores by method.

    Examples
    --------
    >>> len(benchmark.crafter_scores("samples:crafter")) > 1
    True
    """
    return {name: _official(runs, budget) for name, runs in _by_method(path_or_runs).items()}


def progression(path_or_runs: Source) -> Estimate:
    """Average the share of achievements unlocked per episode over all episodes, as BALROG does.

    Parameters
    ----------
    path_or_runs : path, mapping or sequence of mapping
        Files that `load_runs` reads, or runs as dictionaries.

    Returns
    -------
    Estimate
        Mean share from 0 to 1, with its interval.

    Examples
    --------
    >>> benchmark.progression("samples:crafter").estimate > 0  # doctest: +SKIP
    """
    unlocked = np.concatenate([_unlocked(run, math.inf) for run in _of_one_method(path_or_runs)])
    return mean_interval(unlocked.sum(axis=1) / len(ACHIEVEMENTS), bounds=(0, 1))


def pooled_score(unlocked: np.ndarray, tasks: Iterable | None = None) -> CrafterScore:
    """Score episodes (array of episodes × 22; 1 if unlocked) as one group; jackknife over episodes or `tasks`."""
    logs = jackknife_interval(100 * unlocked, lambda rows: float(np.log1p(rows.mean(axis=0)).mean()), tasks)
    estimate, low, high = np.clip(np.expm1([logs.estimate, logs.low, logs.high]), 0.0, 100.0).tolist()
    seeds = (estimate,) if len(unlocked) else ()
    method = f"score of one group; {logs.method} over {'episodes' if tasks is None else 'tasks'}"
    return CrafterScore(
        estimate=estimate,
        std=math.nan,
        per_seed=seeds,
        n_seeds=len(seeds),
        n_episodes=len(unlocked),
        low=low,
        high=high,
        method=method,
        warning=logs.warning,
    )


def load_runs(source: Files) -> Runs:
    """Read the benchmark files of a folder and its subfolders, or one file.

    A ``stats.jsonl`` is one seed: its folder names the seed, and the folders above name the method. Session traces and
    BALROG run files are runs of one episode each, with the seed ``pooled``.

    Parameters
    ----------
    source : str, path, or several of them
        Folders, files, globs, URLs or a dataset of `collect`.

    Returns
    -------
    Runs
        Runs as dictionaries, sorted by method and seed, with a ledger.

    Raises
    ------
    SourceError
        If `source` does not exist, can't be listed, or contains two runs with the same seed.

    Examples
    --------
    >>> len(benchmark.load_runs("samples:crafter")) > 0
    True
    """
    listing = list_source(source)
    ledger = Ledger()
    found: list[tuple[Run, str]] = []
    traces: dict[str, dict[str, list[tuple]]] = {}
    for path, data in read_files(p for p in listing.files if p.lower().endswith((".json", ".jsonl"))):
        try:
            runs, remark = _runs_of_file(path, data, listing.root, traces)
        except BrokenFileError as error:
            ledger.add(path, "skipped" if isinstance(error, OtherShapeError) else "failed", str(error))
        else:
            ledger.add(path, "used", remark)
            found += [(run, path) for run in runs]
    paths, columns = list(traces), columns_of(traces)
    copies = {paths[place] for place in find_copies(columns["episodes"], columns["events"])}
    for place, entry in enumerate(ledger.entries):
        if entry.source in copies:
            ledger.entries[place] = entry._replace(status="skipped", reason=FLAGS["duplicate"])
    originals = [(run, path) for run, path in found if path not in copies]
    runs = sorted(_distinct(originals), key=lambda run: (run["method"], run["task"], str(run["seed"])))
    return Runs(runs, ledger)


def _distinct(found: Iterable[tuple[Run, str]]) -> list[Run]:
    """Return the runs. Raise SourceError for two runs with the same seed: only the user can decide which one counts."""
    runs, places = list[Run](), dict[tuple, str]()
    for run, place in found:
        seed = run["task"], run["method"], run["seed"]
        if seed in places:
            name, both = f"{run['method']}, seed {run['seed']} (task {run['task']})", f"{places[seed]} and {place}"
            raise SourceError(f"two runs of {name} in {both}; keep one, or give them different seeds")
        if run["seed"] not in (POOLED, UNKNOWN):
            places[seed] = place
        runs.append(run)
    return runs


def check_run(run: Any) -> Run:
    """Check and complete a run. Raise ValueError unless counts are integers and lists have one entry per episode."""
    if not isinstance(run, Mapping):
        raise ValueError(f"a run is a table of lists, not {type(run).__name__}")
    if missing := [column for column in COLUMNS.values() if column not in run]:
        raise ValueError(f"{len(missing)} of 22 achievements are missing, such as {missing[0]}")
    xs, length = run.get("xs"), run.get("length")
    if xs is None and isinstance(length, list | tuple) and all(map(_is_count, length)):
        xs = list(accumulate(length))
    lists = {column: run[column] for column in COLUMNS.values()} | ({} if xs is None else {"xs": xs})
    for name, values in lists.items():
        if not isinstance(values, list | tuple):
            raise ValueError(f"{name} is not a list of counts")
        if odd := [n for n in values if not _is_count(n)]:
            raise ValueError(f"{name} has {odd[0]!r:.40}: give counts per episode, not rates")
    if len(set(map(len, lists.values()))) > 1:
        raise ValueError("the lists of a run have different lengths")
    names = {key: str(run.get(key) or UNKNOWN) for key in ("task", "method")}
    names["seed"] = UNKNOWN if run.get("seed") is None else str(run["seed"])
    return {**run, **names, "xs": xs}


def _is_count(value: Any) -> bool:
    if isinstance(value, Integral):
        return 0 <= int(value) < 2**63
    return isinstance(value, float) and value >= 0 and value.is_integer()


def _runs_of_file(path: str, data: bytes | OSError, root: str, traces: dict[str, Any]) -> tuple[list[Run], str]:
    """Read one file of any kind. Return its runs and a remark for the ledger; add the rows of a trace to `traces`."""
    if isinstance(data, OSError):
        raise BrokenFileError(reason_of(data))
    if path.endswith(".jsonl"):
        return _runs_of_stats(path, data, root)
    if b'"event_history"' not in data:  # traces may be large, so never decode one fully
        value, notes = decode_json(data)
        runs = value if isinstance(value, list) and value else [value]
        try:
            if isinstance(runs[0], Mapping) and any(column in runs[0] for column in COLUMNS.values()):
                return [check_run(run) for run in runs], ", ".join(notes)
            if isinstance(value, Mapping) and "progression" in value and "achievements" in value:  # BALROG
                names, client = names_in(value["achievements"]), value.get("client")  # a mapping to counts, or a list
                if unknown := sorted(names - COLUMNS.keys()):
                    raise ValueError(f"{unknown[0]!r} is not an achievement of the game")
                model = client.get("model_id") if isinstance(client, Mapping) else None
                return [_run_of_episode(str(model or UNKNOWN), names, "BALROG runs")], ", ".join(notes)
        except (TypeError, ValueError) as error:
            raise BrokenFileError(f"{type(error).__name__}: {error}") from error
    judged = judge_trace(data)
    traces[path] = rows_of(judged)
    if judged.unlocked is None:
        raise OtherShapeError("a session trace without a record of unlocked achievements")
    return [_run_of_episode(judged.session["model_name"], judged.unlocked, "session traces")], judged.recovered


def _runs_of_stats(path: str, data: bytes, root: str) -> tuple[list[Run], str]:
    """Read ``stats.jsonl``, in which the game's recorder writes one line per episode, as one run."""
    rows, broken = [], []
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row, _ = decode_json(line)
            check_run({column: [row[column]] for column in COLUMNS.values()} | {"xs": [row["length"]]})
            rows.append(row)
        except (BrokenFileError, ValueError, TypeError, KeyError) as error:
            broken.append(f"line {number}: {type(error).__name__}")
    if not rows:
        raise OtherShapeError(f"no line contains the results of an episode ({broken[0] if broken else 'empty file'})")
    *above, name = absolute(path).removeprefix(absolute(root)).strip("/").split("/")
    stem = name.removesuffix(".jsonl")
    fallback = os.path.basename(absolute(root)) if above or stem == "stats" else stem
    run: Run = {"method": "/".join(above[:-1]) or fallback, "seed": above[-1] if above else UNKNOWN}
    run |= {column: [row[column] for row in rows] for column in ("length", *COLUMNS.values())}
    return [check_run(run)], f"{len(broken)} broken lines left out ({broken[0]})" if broken else ""


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
        given: Any = [path_or_runs] if isinstance(path_or_runs, Mapping) else path_or_runs
        runs = _distinct((check_run(run), f"run {number}") for number, run in enumerate(given, start=1))
        if not runs:
            raise SourceError("no runs were given")
    one_task = len({run["task"] for run in runs}) == 1
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run["method"] if one_task else f"{run['method']} ({run['task']})", []).append(run)
    return groups


def _of_one_method(path_or_runs: Source) -> list[Run]:
    methods = _by_method(path_or_runs)
    if len(methods) > 1:
        raise SourceError(f"there are {len(methods)} methods: {', '.join(methods)}; crafter_scores scores each")
    return next(iter(methods.values()))


def _unlocked(run: Run, budget: float) -> np.ndarray:
    """Return an array of episodes × 22 for the episodes within the budget: 1 if the achievement was unlocked."""
    unlocked = np.array([run[column] for column in COLUMNS.values()], dtype=float).T >= 1
    return unlocked * 1.0 if run["xs"] is None else unlocked[np.asarray(run["xs"], dtype=float) <= budget] * 1.0


def _official(runs: list[Run], budget: float) -> CrafterScore:
    seeds = [_unlocked(run, budget) for run in runs]
    used = [unlocked for unlocked in seeds if len(unlocked)]
    if not used or any(run["seed"] == POOLED for run in runs):
        return pooled_score(np.concatenate(seeds))
    scores = np.array([np.expm1(np.log1p(100 * unlocked.mean(axis=0)).mean()) for unlocked in used])
    interval, several = mean_interval(scores), len(used) > 1
    warning = interval.warning if several else note("one_seed", "a single seed has no interval")
    left_out = f"; {len(runs) - len(used)} seeds without episodes left out" if len(used) < len(runs) else ""
    method = f"mean of scores per seed{left_out}; {interval.method} over seeds"
    low, high = np.clip([interval.low, interval.high], 0.0, 100.0).tolist()
    return CrafterScore(
        estimate=float(scores.mean()),
        std=float(scores.std()) if several else math.nan,
        per_seed=tuple(scores.tolist()),
        n_seeds=len(used),
        n_episodes=sum(map(len, used)),
        low=low,
        high=high,
        method=method,
        warning=warning,
    )
