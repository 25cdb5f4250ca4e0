"""Read benchmark files: ``stats.jsonl``, files of scores, BALROG run files and session traces, all as the same runs.

A run is a dictionary as in the files of scores: ``task``, ``method``, ``seed``, ``xs`` (steps done at the end of each
episode; without it the budget can't apply), and for each of the 22 achievements ``achievement_<name>``, a list with the
count of every episode. In checked runs ``repeats`` is how often the same run occurred again and was left out.
"""

import math
import os
from collections.abc import Iterable, Mapping
from itertools import accumulate
from numbers import Integral
from typing import Any, NamedTuple

from evalkit.crafter.format import ACHIEVEMENTS, ANYTHING, UNKNOWN, OtherShapeError, read_trace
from evalkit.crafter.parse import judge_trace
from evalkit.io import (
    BrokenFileError,
    Ledger,
    Listing,
    Source,
    SourceError,
    absolute,
    decode_json,
    list_source,
    read_files,
)

Run = dict[str, Any]

COLUMNS = {name: f"achievement_{name}" for name in ACHIEVEMENTS}
POOLED = "pooled"  # seed of the runs made of single episodes


class Runs(NamedTuple):
    """Runs of a source and the ledger of its files."""

    runs: list[Run]
    ledger: Ledger


def load_runs(source: Source) -> Runs:
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
    ledger, distinct, episodes = Ledger(), Distinct(), []
    for path, data in read_files(p for p in listing.files if p.lower().endswith((".json", ".jsonl"))):
        try:
            runs, note = _read(path, data, listing)
        except OtherShapeError as error:
            ledger.skipped(path, str(error))
            continue
        except BrokenFileError as error:
            ledger.failed(path, str(error))
            continue
        episodes += [run for run in runs if run["seed"] == POOLED]
        known = [distinct.add(run, path) for run in runs if run["seed"] != POOLED]
        if repeated := [place for place in known if place]:
            left_out = f"{len(repeated)} of {len(runs)} runs left out, which are those of {repeated[0]}"
            note = ", ".join(filter(None, (note, left_out)))
        ledger.add(path, "skipped" if len(repeated) == len(runs) else "used", note)
    runs = distinct.runs + _pool(episodes)
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


def _read(path: str, data: bytes | OSError, listing: Listing) -> tuple[list[Run], str]:
    """Read one file of any kind; return its runs, and a note for the ledger."""
    if isinstance(data, OSError):
        raise BrokenFileError(f"{type(data).__name__}: {data.strerror or data}")
    if path.endswith(".jsonl"):
        return _read_stats(path, data, listing)
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
        return [_balrog_run(value)], ", ".join(notes)
    return _read_trace(data)


def _read_stats(path: str, data: bytes, listing: Listing) -> tuple[list[Run], str]:
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


def _balrog_run(value: Mapping[str, Any]) -> Run:
    """Read one BALROG episode; the client names its model."""
    unlocked, client = value["achievements"], value.get("client")
    counts = dict.fromkeys(map(str, unlocked), 1) if isinstance(unlocked, list | tuple) else unlocked
    if not isinstance(counts, Mapping):
        raise BrokenFileError("ValueError: achievements is neither a list of names nor a table of counts")
    counts = {str(name).lower().replace(" ", "_"): n for name, n in counts.items()}
    if unknown := sorted(name for name in counts if name not in COLUMNS):
        raise BrokenFileError(f"ValueError: {unknown[0]!r} is no achievement of the game")
    model = client.get("model_id") if isinstance(client, Mapping) else None
    return _episode(str(model or UNKNOWN), {name for name, n in counts.items() if n}, "BALROG runs")


def _read_trace(data: bytes) -> tuple[list[Run], str]:
    trace, notes = read_trace(data)
    scored = judge_trace(trace)
    if scored.unlocked is None:
        reason = next(f for f in scored.flags if f in ("aborted", "unnamed_achievements", "no_environment_events"))
        raise OtherShapeError(f"a session trace that can't tell what was unlocked: {reason.replace('_', ' ')}")
    return [_episode(scored.session.model_name, scored.unlocked, "session traces")], ", ".join(notes)


def _episode(method: str, unlocked: Iterable[str], task: str) -> Run:
    names = set(unlocked)
    counts = {column: [int(name in names)] for name, column in COLUMNS.items()}
    return {"task": task, "method": method, "seed": POOLED, "xs": None, **counts}


def _pool(episodes: list[Run]) -> list[Run]:
    """Pool single episodes into one run per task and method."""
    pooled: dict[tuple[str, str], Run] = {}
    for episode in episodes:
        run = pooled.setdefault((episode["task"], episode["method"]), {**episode, **{c: [] for c in COLUMNS.values()}})
        for column in COLUMNS.values():
            run[column] += episode[column]
    return list(pooled.values())
