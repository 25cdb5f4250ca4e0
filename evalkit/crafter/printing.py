"""Scores in a terminal. Names and texts from traces are made plain before they are printed."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from evalkit.crafter.evaluate import TraceScore, TraceScores, evaluate_all_traces
from evalkit.crafter.parse import UNKNOWN
from evalkit.crafter.scoring import BANDS, WEIGHTS, band
from evalkit.io import Ledger, Source, SourceError, StorageOptions, plain, resolve
from evalkit.io.paths import has_magic

Group = Literal["model_name", "difficulty"]

_NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_STRIP = 40  # characters of a trajectory in the summary


def report_traces(
    traces: Source,
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    pattern: str = "*.json",
    verbose: bool = False,
    by_difficulty: bool = False,
    output: str | os.PathLike | None = None,
) -> TraceScores:
    """Score a folder or one file and print it: what ``evalkit crafter`` does.

    Parameters
    ----------
    traces : str, path, or several of them
    jobs, storage_options
        As for `evaluate_all_traces`.
    pattern : str
        Glob for the names of the folder's files.
    verbose : bool
        Print every trace before the summary. One file is always printed so.
    by_difficulty : bool
        Break the scores down by difficulty too; by model they are where there are several.
    output : str or path, optional
        Write ``{"results": [...], "ledger": [...]}`` to this file, as JSON.

    Returns
    -------
    TraceScores

    Raises
    ------
    evalkit.io.SourceError
        Where there is no trace, or `output` can't be written.
    """
    results = evaluate_all_traces(traces, pattern, jobs=jobs, storage_options=storage_options)
    if not results.ledger.entries:
        raise SourceError(f"{traces}: no files match {pattern}; folders below are not looked into")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal that can't show an emoji shows a question mark
    single = _is_one_file(traces, results.ledger)
    if verbose or single:
        for result in results:
            print_trace_evaluation(result)
            print()
    if not single:
        several_models = len({result["model_name"] for result in results}) > 1
        print_evaluation_summary(results, by=["model_name"] * several_models + ["difficulty"] * by_difficulty)
    if output is not None:
        _write(results, output)
    if not results:
        causes = "; ".join(sorted({entry.reason for entry in results.ledger.entries})[:3])
        raise SourceError(f"{traces}: no session trace could be read ({causes})")
    return results


def _is_one_file(traces: Source, ledger: Ledger) -> bool:
    if len(ledger.entries) != 1 or not isinstance(traces, str | os.PathLike) or has_magic(os.fspath(traces)):
        return False
    return ledger.entries[0].source == resolve(traces)


def print_trace_evaluation(result: TraceScore) -> None:
    """Print one trace: score, events, breakdown, trajectory, and notes where something needs a second look.

    Parameters
    ----------
    result : TraceScore
        As `evaluate_trace` returns it; of its keys the first five are needed.
    """
    print(f"📊 Trace: {plain(result['trace_file'])}")
    if result["total_score"] is None:
        print(f"   Error: {plain(result['error'])}")
        return
    print(f"   Score: {result['total_score']:.2f}")
    print(f"   Events: {result['num_events']}")
    print("   Breakdown:")
    for name, count in result["counts"].items():
        weight = result.get("weights", WEIGHTS)[name]
        print(f"     {_NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    print(f"   Trajectory: {result['trajectory']}")
    if suspect := result.get("suspect_invalid_actions"):
        invalid = result["counts"]["invalid_action"]
        print(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result.get("flags", []) if flag != "suspect_invalid_actions"]:
        print(f"   Flags: {', '.join(others)}")


def print_evaluation_summary(results: Sequence[TraceScore], by: Sequence[Group] = ()) -> None:
    """Print a folder: the ranking, then n, mean, best, worst, the counts and the bands.

    Parameters
    ----------
    results : sequence of TraceScore
        As `evaluate_all_traces` returns it; what its ledger could not use is named at the end.
    by : sequence of {"model_name", "difficulty"}
        Break the scores down too.
    """
    scored = [result for result in results if result["total_score"] is not None]
    scored.sort(key=lambda result: -result["total_score"])
    print("🏆 Traces by score")
    if not scored:
        print("   no traces")
    else:
        _print_ranking(scored)
        print()
        _print_totals(scored)
        for group in by:
            print()
            print_breakdown(scored, group)
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    print_ledger(getattr(results, "ledger", None))


def print_breakdown(results: Iterable[TraceScore], by: Group) -> None:
    """Print one line per model or per difficulty: n, mean score with its standard error, mean counts.

    Aborted traces count as 0, as in the totals; where there are any, a second line leaves them out.
    """
    print("\n".join(breakdown_lines(results, by)))


def breakdown_lines(results: Iterable[TraceScore], by: Group, count: Callable[[int], str] = str) -> list[str]:
    """Write what `print_breakdown` prints; `count` writes the n of a line."""
    groups: dict[str, list[TraceScore]] = {}
    for result in results:
        if result["total_score"] is not None:
            groups.setdefault(plain(result.get(by, UNKNOWN), 40), []).append(result)
    rows = []
    for name, group in sorted(groups.items()):
        rows.append((name, count(len(group)), group))
        rest = without_aborted(group)
        if aborted := len(group) - len(rest):
            rows.append((f"  without {aborted} aborted", str(len(rest)), rest))
    width = max(len(name) for name in ["difficulty", *(name for name, _, _ in rows)])
    wide = max([5, *(len(n) for _, n, _ in rows)])
    zeros = "; aborted traces count as 0.00" if len(rows) > len(groups) else ""
    lines = [f"📈 By {by.removesuffix('_name')} (mean score ± standard error; mean count per trace{zeros})"]
    lines.append(f"   {'':{width}} {'n':>{wide}} {'score':>15} {'easy':>7} {'medium':>7} {'hard':>7} {'invalid':>8}")
    for name, n, group in rows:
        mean = mean_text([result["total_score"] for result in group])
        lines.append(f"   {name:{width}} {n:>{wide}} {mean:>15} {_mean_counts(group)}".rstrip())
    return lines


def _mean_counts(group: list[TraceScore]) -> str:
    if not group:
        return ""
    means = [sum(result["counts"].get(hook, 0) for result in group) / len(group) for hook in WEIGHTS]
    return " ".join(f"{mean:>{wide}.2f}" for mean, wide in zip(means, (7, 7, 7, 8), strict=True))


def without_aborted(scored: Iterable[TraceScore]) -> list[TraceScore]:
    """Leave out the traces that were aborted: their score of 0.00 says nothing."""
    return [result for result in scored if "aborted" not in result.get("flags", [])]


def aborted_text(scored: Sequence[TraceScore]) -> str:
    """Say how many traces were aborted, and the mean score without them; empty where none was."""
    rest = without_aborted(scored)
    if len(rest) == len(scored):
        return ""
    mean = mean_text([result["total_score"] for result in rest])
    return f"{len(scored) - len(rest)}, counted as 0.00; mean score without: {mean}"


def print_ledger(ledger: Ledger | None) -> None:
    """Print how many files were used, skipped and failed, and why those that were not used were not."""
    if ledger is None:
        return
    print()
    print(f"📁 {ledger.summary()}")
    for entry in ledger.entries:
        if entry.status != "used":
            print(f"   {entry.status}: {plain(entry.source)}: {plain(entry.reason)}")


def _write(results: TraceScores, output: str | os.PathLike) -> None:
    content = {"results": list(results), "ledger": [entry._asdict() for entry in results.ledger.entries]}
    try:
        with open(output, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
    except OSError as error:
        raise SourceError(f"{output}: {error.strerror or error}") from error


def _print_ranking(scored: list[TraceScore]) -> None:
    strips = [plain(result["trajectory"], _STRIP) for result in scored]
    width = max(map(len, [*strips, "trajectory"]))
    print(f"   {'rank':>4} {'score':>8}  {'trajectory':{width}}  file")
    for rank, (result, strip) in enumerate(zip(scored, strips, strict=True), start=1):
        print(f"   {rank:>4} {result['total_score']:>8.2f}  {strip:{width}}  {plain(result['trace_file'])}")


def _print_totals(scored: list[TraceScore]) -> None:
    scores = [result["total_score"] for result in scored]
    print(f"   Traces: {len(scores)}")
    print(f"   Mean score: {mean_text(scores)} (standard error, n = {len(scores)})")
    if aborted := aborted_text(scored):
        print(f"   Aborted: {aborted}")
    print(f"   Best: {scores[0]:.2f}")
    print(f"   Worst: {scores[-1]:.2f}")
    for name in WEIGHTS:
        print(f"   {_NAMES[name]}: {sum(result['counts'].get(name, 0) for result in scored)}")
    print("   Bands:")
    for name, _, meaning in BANDS:
        print(f"     {name}: {sum(band(score) == name for score in scores)} ({meaning})")


def mean_text(scores: list[float]) -> str:
    """Write a mean with its standard error; one value has none, and no value has no mean."""
    if not scores:
        return "none"
    n, mean = len(scores), math.fsum(scores) / len(scores)
    if n < 2:
        return f"{mean:.2f}"
    error = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / (n - 1) / n)
    return f"{mean:.2f} ± {error:.2f}"
