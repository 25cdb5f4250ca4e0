"""Contrasts: which events differ between failed and successful runs of the same task, and where two runs diverge."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from evalkit._text import check_number
from evalkit.failures.failure_modes import failed_runs
from evalkit.failures.search import detectors, search
from evalkit.io import storage
from evalkit.kinds import Logs
from evalkit.kinds.detectors import Made, Seen
from evalkit.kinds.transcript import transcripts
from evalkit.stats.intervals import LEVEL, by_cluster
from evalkit.stats.pair_tests import EXACT_WITHIN, PERMUTED_ACROSS, compare_across, compare_groups
from evalkit.stats.pairwise import holm

MOST_PAIRS = 100  # of runs whose calls are compared
FEWEST_TASKS = 2  # with both failed and successful runs, below which nothing is compared
_RESULTS = ["failed_share", "successful_share", "estimate", "low", "high", "p_value"]
_TESTED = ["event", "question", "n_tasks", "across_models", "failed", "successful"]
_COLUMNS = [*_TESTED, *_RESULTS, "p_adjusted", "decided", "method", "measure"]
_DIVERGENCE = [
    *("task", "model_a", "model_b", "same_calls", "turn_a", "turn_b", "next_a", "next_b", "run_id_a", "run_id_b")
]


def contrast(logs: Logs) -> pd.DataFrame:
    """Compare how frequent each event is in failed and in successful runs of the same task and the same model.

    For each task that a model both failed and did under equal conditions, the share of failed runs with the event minus
    the share of successful runs with it is one difference; all differences have equal weight. The test is exact if
    outcomes that are unrelated to events are exchangeable among these runs (`evalkit.stats.pair_tests.compare_groups`).
    If few tasks have both outcomes of one model, as with one run of each task, runs of different models are compared,
    adjusted for models (`evalkit.stats.pair_tests.compare_across`). P values are corrected for the number of events
    (Holm).

    Parameters
    ----------
    logs : Logs

    Returns
    -------
    DataFrame
        event, question, n_tasks, across_models (whether runs of different models were compared), failed, successful
        (runs), failed_share, successful_share (means over tasks and models, or adjusted for models), estimate (their
        difference), low, high, p_value, p_adjusted, decided (p_adjusted at most 0.05), method, measure; the smallest p
        value first. No rows for kinds whose failures are made of events, and without two tasks with both kinds of runs.
        The p value is NaN if differences between models can't be separated from failures.

    Examples
    --------
    >>> failures.contrast(logs)[["event", "n_tasks", "estimate", "p_adjusted"]].head(2).round(2)
                     event  n_tasks  estimate  p_adjusted
    0  submitted_unchanged        6      0.45        0.34
    1        ignored_error        6      0.35        0.71
    """
    runs, rule = failed_runs(logs)
    if rule == "events":
        return pd.DataFrame(columns=_COLUMNS)
    _, found, searched = search(logs)
    runs = runs[runs["run_id"].isin(searched)]
    return contrast_of(runs, found, {one.name: one.question for one in detectors(logs.kind)})


def comparable(runs: pd.DataFrame) -> tuple[pd.DataFrame, bool]:
    """Return the `runs` that can be compared, each with its `stratum`, and whether strata mix models.

    A stratum has failed and successful runs of a task by one model. It has them by all models if this gives at least
    two tasks, and more than twice as many.
    """
    choices = []
    for names in (["unit", "model_name"], ["unit"]):
        own = runs.assign(stratum=runs.groupby(names, dropna=False).ngroup())
        choices.append(own[own.groupby("stratum")["failed"].transform("nunique") == 2])
    within, across = choices
    across_models = across["unit"].nunique() > max(2 * within["unit"].nunique(), FEWEST_TASKS - 1)
    return across if across_models else within, across_models


def contrast_of(runs: pd.DataFrame, found: pd.DataFrame, questions: dict[str, str]) -> pd.DataFrame:
    """Compare events in failed and successful `runs`, with columns run_id, unit, model_name, failed; as `contrast`."""
    runs, across_models = comparable(runs)
    is_failed = runs["failed"].to_numpy(dtype=bool)
    n_tasks = runs["unit"].nunique()
    rows = []
    has_events = []
    for event, question in questions.items():
        has_event = runs["run_id"].isin(found.loc[found["event"] == event, "run_id"]).to_numpy()
        if has_event.any() and n_tasks >= FEWEST_TASKS:
            rows.append({"event": event, "question": question})
            has_events.append(has_event)
    table = pd.DataFrame(rows, columns=_TESTED[:2])
    table = table.assign(n_tasks=n_tasks, across_models=across_models, failed=is_failed.sum())
    table = table.assign(successful=(~is_failed).sum())
    compare = _across_models if across_models else _within_models
    results = [compare(runs, is_failed, np.column_stack(has_events))] if has_events else []
    table = table.join(pd.concat([pd.DataFrame(columns=_RESULTS, dtype="float64"), *results]))
    table["p_adjusted"] = holm(table["p_value"])
    table["decided"] = table["p_adjusted"] <= LEVEL
    table["method"] = PERMUTED_ACROSS if across_models else EXACT_WITHIN
    table["measure"] = "share of runs with the event: failed minus successful runs"
    return table.sort_values("p_value", kind="stable", ignore_index=True)


def _within_models(runs: pd.DataFrame, is_failed: np.ndarray, has_events: np.ndarray) -> pd.DataFrame:
    """Compare each event (column) in failed and successful runs of the same task and model."""
    units = pd.factorize(runs["stratum"])[0]
    rows = []
    for has_event in has_events.T:
        failed = by_cluster(has_event[is_failed], units[is_failed])
        successful = by_cluster(has_event[~is_failed], units[~is_failed])
        compared = compare_groups(failed, successful)
        shares = failed.means.mean(), successful.means.mean()
        rows.append((*shares, shares[0] - shares[1], compared.low, compared.high, compared.p_value))
    return pd.DataFrame(rows, columns=_RESULTS)


def _across_models(runs: pd.DataFrame, is_failed: np.ndarray, has_events: np.ndarray) -> pd.DataFrame:
    """Compare each event (column) in failed and successful runs of the same task, adjusted for models."""
    tasks = pd.factorize(runs["unit"])[0]
    models = pd.factorize(runs["model_name"], use_na_sentinel=False)[0]
    compared = compare_across(tasks, models, is_failed, has_events)
    share = has_events.mean(axis=0)
    failed_share = (share + compared.estimate * (~is_failed).mean()).clip(0, 1)
    successful_share = (share - compared.estimate * is_failed.mean()).clip(0, 1)
    return pd.DataFrame(np.column_stack([failed_share, successful_share, *compared]), columns=_RESULTS)


def divergences(logs: Logs, most: int = MOST_PAIRS) -> pd.DataFrame:
    """Find, for tasks that one run did and another did not, the first call in which the two differ.

    Of each task one failed and one successful run are compared, of the same model if there are such. Calls are equal if
    their names and arguments are.

    Parameters
    ----------
    logs : Logs
    most : int
        Tasks to compare, the first ones.

    Returns
    -------
    DataFrame
        task, model_a, model_b, same_calls (equal ones from the beginning), turn_a, turn_b, next_a, next_b (the calls in
        which they differ; empty where a run ends), run_id_a (failed), run_id_b (successful).

    Examples
    --------
    >>> failures.divergences(logs)[["task", "same_calls", "turn_a", "turn_b"]].head(2)
                                  task  same_calls  turn_a  turn_b
    0  made-up-bench/build-static-site           3      16      16
    1   made-up-bench/count-log-errors           2    <NA>      12
    """
    check_number("the number of pairs", most, is_whole=True)
    runs, rule = failed_runs(logs)
    pairs = [] if rule == "events" else list(_pairs(runs))[:most]
    wanted = {run["run_id"] for pair in pairs for run in pair}
    calls: dict[str, list[Made]] = {}
    with storage(logs.storage_options):
        for run_id, transcript in transcripts(logs, logs.runs[logs.runs["run_id"].isin(wanted)]):
            calls[run_id] = [replace(made, result=None) for made in Seen(*transcript).calls]  # which may be large
    rows = []
    for failed, successful in pairs:
        a, b = calls.get(failed["run_id"], []), calls.get(successful["run_id"], [])
        same = len(list(takewhile(lambda both: both[0].call == both[1].call, zip(a, b, strict=False))))
        if same == max(len(a), len(b)):
            continue
        row = {"task": failed["unit"], "same_calls": same}
        for side, run, made in (("a", failed, a), ("b", successful, b)):
            row |= {f"model_{side}": run["model_name"], f"run_id_{side}": run["run_id"], f"next_{side}": ""}
            if same < len(made):
                row |= {f"turn_{side}": made[same].turn, f"next_{side}": made[same].text}
        rows.append(row)
    return pd.DataFrame(rows, columns=_DIVERGENCE).astype({"turn_a": "Int64", "turn_b": "Int64"})


def _pairs(runs: pd.DataFrame) -> Iterable[tuple[dict[Any, Any], dict[Any, Any]]]:
    """Yield a failed and a successful run of each task that has both, of one model if possible."""
    for _, own in runs.groupby("unit", sort=False):
        failed, successful = own[own["failed"]], own[~own["failed"]]
        if failed.empty or successful.empty:
            continue
        shared = failed[failed["model_name"].isin(set(successful["model_name"]))]
        if len(shared):
            failed = shared.head(1)
            successful = successful[successful["model_name"] == failed["model_name"].iloc[0]]
        yield failed.iloc[0].to_dict(), successful.iloc[0].to_dict()
