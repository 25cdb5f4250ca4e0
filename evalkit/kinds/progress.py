"""The progress of a growing source: a snapshot of it, and the claims on its models that hold at every look."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd

from evalkit._words import counted_noun, interval_cells
from evalkit.io.screen import so_far
from evalkit.io.text import distinct_names
from evalkit.kinds.pipeline import Logs
from evalkit.kinds.runs import outcome_of, outcomes
from evalkit.kinds.terminal import NAME_WIDTH, fit_table, overview_rows
from evalkit.stats.intervals import Bets

MOST_RATES = 4  # models whose rates are listed; for more, only how many pairs differ


@dataclass
class _Claim:
    """Bounds of a mean, from 0 to 1, that hold at every look."""

    bets: Bets
    used: list[float]
    low: float = math.nan
    high: float = math.nan
    ahead: int = 0  # of two models, whose difference of −1 to 1 stands as 0 to 1: 1, the first; -1, the second


class Counted:
    """The runs that count in claims made at every look: in the order of their start, up to the oldest still running.

    Where quick runs tend to succeed, those that have ended are no fair sample of those that have begun. So a run counts
    only once no older one is running, and what has been counted keeps its place, whatever turns up later. Of a model
    and a task the first measured run counts; of two models, tasks count in the order of their first run.

    Attributes
    ----------
    late : int
        Runs that were first seen after they had ended, though younger ones had been seen before: evidence that the
        files of a run appear only when it ends, so that its place in the order follows from its result.
    """

    def __init__(self) -> None:
        self.late = 0
        self._seen: set[str] = set()
        self._latest: Any = None
        self._tasks: dict[tuple[str, ...], dict[Any, None]] = {}
        self._claims: dict[tuple[tuple[str, ...], float], _Claim] = {}

    def see(self, runs: pd.DataFrame) -> None:
        """Take in the runs of a look: run_id, model_name, task, started, running, value (missing: not measured)."""
        new = ~runs["run_id"].isin(self._seen)
        if self._seen:
            self.late += int((new & ~runs["running"] & (runs["started"] < self._latest)).sum())
        self._seen.update(runs["run_id"])
        self._latest = runs["started"].max()
        hidden = runs["running"] & runs["started"].isna()  # a log that can't be read yet: any run may be younger
        runs = runs.assign(
            value=runs["value"].mask(runs["running"]), started=runs["started"].mask(hidden, runs["started"].min())
        ).sort_values("started", kind="stable")
        firsts = runs[runs["running"] | runs["value"].notna()].drop_duplicates(["model_name", "task"])
        columns = ["started", "value"]  # the value of a running run is missing
        self._first = {
            model: dict(zip(own["task"], own[columns].itertuples(index=False, name=None), strict=True))
            for model, own in firsts.groupby("model_name")
        }
        self._tried = {model: set(own) for model, own in runs.groupby("model_name")["task"]}
        self._active = set(runs.loc[runs["running"], "model_name"])

    def values(self, *models: str) -> list[list[float]]:
        """Return for each of the models its values on the tasks that count for all of them, in order."""
        firsts = [self._first.get(model, {}) for model in models]
        counted = self._tasks.setdefault(models, {})
        began: dict[Any, Any] = {}
        for first in firsts:
            for task, (started, _) in first.items():
                began[task] = min(started, began.get(task, started))
        waiting = [task for task in began if task not in counted]
        for task in sorted(
            waiting, key=lambda task: (began[task] != began[task], began[task])
        ):  # without a start: last
            runs = [first.get(task) for first in firsts]
            running = any(run and run[1] != run[1] for run in runs)
            lacking = [model for model, run in zip(models, runs, strict=True) if not run]
            if running or any(model in self._active and task not in self._tried[model] for model in lacking):
                break  # what is lacking may be about to begin
            if not lacking:
                counted[task] = None
        tasks = [task for task in counted if all(task in first for first in firsts)]
        return [[first[task][1] for task in tasks] for first in firsts]

    def claim(self, *models: str, confidence: float = 0.95) -> _Claim:
        """Return the bounds of a model's mean, or which of two models is ahead; only values that are new are added."""
        first, *others = self.values(*models)
        shares = [(a - b + 1) / 2 for a, b in zip(first, others[0], strict=True)] if others else first
        shares = [share for share in shares if share == share]  # a log that counted may be written to again
        claim = self._claims.get((models, confidence))
        if claim is None or claim.used != shares[: len(claim.used)]:
            claim = self._claims[models, confidence] = _Claim(Bets(confidence), [])
        for share in shares[len(claim.used) :]:
            claim.low, claim.high = map(float, claim.bets.add(share))
            claim.used.append(share)
            claim.ahead = claim.ahead or (claim.low > 0.5) - (claim.high < 0.5)
        return claim


class Snapshot(NamedTuple):
    """A source at one look at it, as the text of its progress is made from it."""

    logs: Logs
    unchanged_for: Callable[[str], float]  # seconds for which a file or a folder has been unchanged
    being_written: frozenset[str]  # files that count as being written
    expected: int | None  # runs that each model is to do, if the user stated it
    idle: float | None  # seconds after which an unchanged run counts as finished, if the user stated it
    width: int | None  # characters of a line; None: any
    counted: Counted  # the runs that count in claims that hold at every look; the same object at each


def progress_of_runs(snapshot: Snapshot, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Format the overview with the numbers of runs and those expected; a run is done once it can be read."""
    logs = snapshot.logs
    rows = overview_rows(logs.runs, logs.kind)
    counts = [int(row.pop("n")) for row in rows]
    shown = [
        {"model": row.pop("model"), "runs": so_far(n, snapshot.expected), **row}
        for row, n in zip(rows, counts, strict=True)
    ]
    done = snapshot.expected is not None and not snapshot.being_written and min(counts) >= snapshot.expected
    tells = "running" in logs.kind.rates.outcome_of.values()
    running = outcome_of(logs.runs, logs.kind).eq("running") if tells else None
    return "\n".join([fit_table(shown, width=snapshot.width), *any_look_lines(snapshot, logs, running)]), done


def any_look_lines(snapshot: Snapshot, logs: Logs, running: pd.Series | None) -> list[str]:
    """Describe what is valid however often one looks: rates with confidence sequences, and which models are ahead.

    Intervals of a fixed number of runs miss the truth more often if one looks repeatedly, and stops at will. Which runs
    count, and in which order, says `Counted`; differences are corrected for the number of pairs (Bonferroni).
    `running` says which runs are still running; where it is None they don't tell, and nothing is claimed. Empty if
    values are not shares.
    """
    runs, kind = logs.runs, logs.kind
    rated = outcomes(runs, kind=kind) if len(runs) else None
    if rated is None or not rated.is_share:
        return []
    models = list(dict.fromkeys(rated.table["model_name"].sort_values()))
    if running is None:
        reason = f"the logs do not say which runs are still running ({kind.title})"
    elif runs["started"].isna().all():
        reason = f"the logs do not say when runs began ({kind.title})"
    else:
        tasks = rated.table["task"].astype("str") + "\n" + rated.table["condition"]
        snapshot.counted.see(rated.table.assign(task=tasks, started=runs["started"], running=running))
        late = counted_noun(snapshot.counted.late, "run")
        reason = f"{late} had ended when first seen, after younger ones" if snapshot.counted.late else ""
    if reason:
        text = f"Which model is ahead can't be said before all runs have ended: {reason}."
        return wrap(text, snapshot.width or len(text)) if len(models) > 1 else []
    names, ahead, pairs = distinct_names(models, NAME_WIDTH), [], list(combinations(models, 2))
    for a, b in pairs:
        if sign := snapshot.counted.claim(a, b, confidence=1 - 0.05 / len(pairs)).ahead:
            first, second = (a, b) if sign > 0 else (b, a)
            ahead.append(f"{names[first]} is ahead of {names[second]}")
    if len(models) > MOST_RATES:
        return [f"{len(ahead)} of {len(pairs)} pairs of models differ, however often one looks"]
    rates = [(name, snapshot.counted.claim(name)) for name in models]
    rows = [(name, {"estimate": sum(rate.used) / len(rate.used), **vars(rate)}) for name, rate in rates if rate.used]
    texts = [f"{names[name]} {interval_cells(row)[1]}" for name, row in rows]
    text = f"{rated.name} in %, valid however often one looks: {'; '.join(texts + ahead)}"
    return wrap(text, snapshot.width or len(text)) if texts else []
