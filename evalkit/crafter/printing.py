"""Scores in a terminal. Names and texts from traces are made plain before they are printed."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from evalkit.crafter.collecting import EVERY
from evalkit.crafter.evaluate import Group, TraceScore, TraceScores, evaluate_all_traces
from evalkit.crafter.scoring import DIGITS, WEIGHTS, Counting
from evalkit.crafter.table import episodes_of_results
from evalkit.crafter.traces import no_traces
from evalkit.io import Ledger, Source, SourceError, StorageOptions, plain, resolve, storage
from evalkit.io.paths import has_magic

_NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_MOST_NAMED = 5  # files left out for one reason, that are all named
_OTHER = {
    "achievement": ("score_by_hook", "Per hook", "every hook counts once"),
    "hook": ("score_by_achievement", "Per achievement", "every achievement that a hook names counts"),
}


def report_traces(
    traces: Source,
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
    pattern: str = EVERY,
    recursive: bool = True,
    counting: Counting = "achievement",
    verbose: bool = False,
    by_difficulty: bool = False,
    output: str | os.PathLike | None = None,
) -> TraceScores:
    """Score a folder or one file and print it: what ``evalkit crafter`` does.

    Parameters
    ----------
    traces : str, path, or several of them
    pattern, recursive, counting, jobs, storage_options
        As for `evaluate_all_traces`.
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
    options = {"recursive": recursive, "jobs": jobs, "storage_options": storage_options}
    results = evaluate_all_traces(traces, pattern, counting=counting, **options)
    if not results:
        with storage(storage_options):
            raise no_traces(traces, results.ledger.entries, pattern, recursive=recursive)
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
    print(f"   Score: {round(result['total_score'], 2) + 0.0:.2f}")
    print(f"   Events: {result['num_events']}")
    print("   Breakdown:")
    for name, count in result["counts"].items():
        weight = result.get("weights", WEIGHTS)[name]
        print(f"     {_NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    _print_other_counting(result)
    print(f"   Trajectory: {result['trajectory']}")
    if suspect := result.get("suspect_invalid_actions"):
        invalid = result["counts"]["invalid_action"]
        print(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result.get("flags", []) if flag != "suspect_invalid_actions"]:
        print(f"   Flags: {', '.join(others)}")


def _print_other_counting(result: TraceScore) -> None:
    key, title, meaning = _OTHER[result.get("counting", "achievement")]
    score = result.get(key)
    if score is not None and round(score - result["total_score"], DIGITS):
        print(f"   {title}: {round(score, 2) + 0.0:.2f} ({meaning})")


def print_evaluation_summary(results: Sequence[TraceScore], by: Sequence[Group] = ()) -> None:
    """Print a folder: mean score, spread and points, then the best three, the ranking, and files that were not used.

    Aborted traces are left out of all means, and the mean with them at 0 is given beside.

    Parameters
    ----------
    results : sequence of TraceScore
        As `evaluate_all_traces` returns it; what its ledger could not use is named at the end.
    by : sequence of {"model_name", "difficulty"}
        Break the scores down too.
    """
    scored = [result for result in results if result["total_score"] is not None]
    if not scored:
        print("📈 no traces")
    else:
        _print_scored(scored, by)
    for result in results:
        if result["total_score"] is None:
            print(f"   not read: {plain(result['trace_file'])}: {plain(result['error'])}")
    print_ledger(getattr(results, "ledger", None))


def _print_scored(scored: Sequence[TraceScore], by: Sequence[Group]) -> None:
    from evalkit.crafter import terminal  # imports pandas, which one trace does without

    episodes = episodes_of_results(scored)
    rules = _same(scored, "weights", WEIGHTS), _same(scored, "counting", "achievement") or "achievement"
    parts = [terminal.summary_lines(episodes, *rules)]
    parts += [terminal.breakdown_lines(episodes, group) for group in by]
    parts += [terminal.top_lines(episodes), terminal.ranking_lines(episodes)]
    print("\n\n".join("\n".join(part) for part in parts if part))


def _same(results: Iterable[TraceScore], key: str, default: Any) -> Any:
    """Give what all results say alike; None where they differ."""
    first, *others = [result.get(key, default) for result in results]
    return first if all(other == first for other in others) else None


def print_breakdown(results: Iterable[TraceScore], by: Group) -> None:
    """Print one line per model or per difficulty: n, mean score with its interval, mean counts per trace.

    Aborted traces are left out; where there are any, a second line counts them as 0.
    """
    from evalkit.crafter.terminal import breakdown_lines

    print("\n".join(breakdown_lines(episodes_of_results(results), by)))


def print_ledger(ledger: Ledger | None) -> None:
    """Print how many files were used, skipped and failed, and why; of many for one reason an example."""
    if ledger is None:
        return
    print()
    print(f"📁 {ledger.summary()}")
    unused: dict[tuple[str, str], list[str]] = {}
    for entry in ledger.entries:
        if entry.status != "used":
            unused.setdefault((entry.status, entry.reason), []).append(entry.source)
    for (status, reason), sources in unused.items():
        many = f"{len(sources)} files, such as " if len(sources) > _MOST_NAMED else ""
        for source in sources[: 1 if many else None]:
            print(f"   {status}: {many}{plain(source)}: {plain(reason)}")


def _write(results: TraceScores, output: str | os.PathLike) -> None:
    content = {"results": list(results), "ledger": [entry._asdict() for entry in results.ledger.entries]}
    try:
        with open(output, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
    except OSError as error:
        raise SourceError(f"{output}: {error.strerror or error}") from error
