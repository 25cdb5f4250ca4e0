"""Scores in a terminal. Names and texts from traces are made plain before they are printed."""

from collections.abc import Iterable, Sequence
from typing import Any

from evalkit.crafter.evaluate import Group, TraceScore
from evalkit.crafter.scoring import DIGITS, WEIGHTS
from evalkit.crafter.table import episodes_of_results
from evalkit.io import Entry, Ledger, plain, summarise

_NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_MOST_NAMED = 5  # files left out for one reason, that are all named
_OTHER = {
    "achievement": ("score_by_hook", "Per hook", "every hook counts once"),
    "hook": ("score_by_achievement", "Per achievement", "every achievement that a hook names counts"),
}


def print_trace_evaluation(result: TraceScore) -> None:
    """Print one trace: score, events, breakdown, trajectory, and notes where something needs a second look.

    Parameters
    ----------
    result : TraceScore
        As `evaluate_trace` returns it; of its keys the first five are needed.
    """
    print(trace_text(result))


def trace_text(result: TraceScore) -> str:
    """Write what `print_trace_evaluation` prints."""
    lines = [f"📊 Trace: {plain(result['trace_file'])}"]
    if result["total_score"] is None:
        return "\n".join([*lines, f"   Error: {plain(result['error'])}"])
    lines += [f"   Score: {round(result['total_score'], 2) + 0.0:.2f}", f"   Events: {result['num_events']}"]
    lines.append("   Breakdown:")
    for name, count in result["counts"].items():
        weight = result.get("weights", WEIGHTS)[name]
        lines.append(f"     {_NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    lines += _other_counting(result)
    lines.append(f"   Trajectory: {result['trajectory']}")
    if suspect := result.get("suspect_invalid_actions"):
        invalid = result["counts"]["invalid_action"]
        lines.append(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result.get("flags", []) if flag != "suspect_invalid_actions"]:
        lines.append(f"   Flags: {', '.join(others)}")
    return "\n".join(lines)


def _other_counting(result: TraceScore) -> list[str]:
    key, title, meaning = _OTHER[result.get("counting", "achievement")]
    score = result.get(key)
    differs = score is not None and round(score - result["total_score"], DIGITS)
    return [f"   {title}: {round(score, 2) + 0.0:.2f} ({meaning})"] if differs else []


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

    rules = _same(scored, "weights", WEIGHTS), _same(scored, "counting", "achievement") or "achievement"
    print(terminal.summary_text(episodes_of_results(scored), by, *rules))


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
    if ledger is not None:
        print()
        print(ledger_text(ledger.entries))


def ledger_text(entries: Sequence[Entry]) -> str:
    """Write what `print_ledger` prints."""
    lines = [f"📁 {summarise(entry.status for entry in entries)}"]
    unused: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        if entry.status != "used":
            unused.setdefault((entry.status, entry.reason), []).append(entry.source)
    for (status, reason), sources in unused.items():
        many = f"{len(sources)} files, such as " if len(sources) > _MOST_NAMED else ""
        shown = sources[: 1 if many else None]
        lines += [f"   {status}: {many}{plain(source)}: {plain(reason)}" for source in shown]
    return "\n".join(lines)
