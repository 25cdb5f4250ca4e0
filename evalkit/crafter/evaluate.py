"""Score events and single files, and format the results as text; needs no pandas."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from evalkit.crafter import scoring
from evalkit.crafter.format import UNKNOWN, WEIGHTS, Event, fit
from evalkit.crafter.parse import open_trace
from evalkit.crafter.scoring import Counting
from evalkit.crafter.table import EPISODES, FLAGS, order_flags
from evalkit.io import Entry, Ledger, frame, plain, read_file, refuse_credentials, unescape_surrogates

if TYPE_CHECKING:
    import pandas as pd

NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_OTHER = {
    "achievement": ("score_by_hook", "Per hook", "every hook counts once"),
    "hook": ("score_by_achievement", "Per achievement", "every achievement that a hook names counts"),
}
_WHOSE = {  # in results as in the frame of episodes, with what stands where nothing is known
    **dict.fromkeys(("session_id", "task_id", "task_source", "max_turns"), None),
    **dict.fromkeys(("model_name", "difficulty"), UNKNOWN),
}
_WHAT = ("score_by_achievement", "score_by_hook", "suspect_invalid_actions")
Group = Literal["model_name", "difficulty"]


class TraceScore(TypedDict, total=False):
    """Result of one trace; `total_score` is None and `error` is set if the file can't be read."""

    total_score: float | None
    counts: dict[str, int]
    trajectory: str
    num_events: int
    trace_file: str
    source: str
    session_id: str | None
    task_id: str | None
    task_source: str | None
    max_turns: int | None
    model_name: str
    difficulty: str
    score_by_achievement: float
    score_by_hook: float
    suspect_invalid_actions: int
    flags: list[str]
    weights: dict[str, float]
    counting: Counting
    error: str


class TraceScores(list[TraceScore]):
    """Results of a folder in descending order of score; `ledger` names every file that was seen."""

    def __init__(self, results: Iterable[TraceScore], ledger: Ledger) -> None:
        super().__init__(sorted(results, key=lambda result: result["total_score"] or 0.0, reverse=True))
        self.ledger = ledger
        sessions = Counter(result["session_id"] for result in self)
        for result in self:
            if result["session_id"] is not None and sessions[result["session_id"]] > 1:
                result["flags"] = order_flags([*result["flags"], "duplicate_session"])


def evaluate_event(
    event: Mapping[str, Any] | Event, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> scoring.EventScore:
    """Score one event by its hooks.

    Parameters
    ----------
    event : mapping
        An event of ``event_history``.
    weights : mapping
        Points per hook; missing names have those of `WEIGHTS`.
    counting : {"achievement", "hook"}
        Count every achievement a hook names (a hook without names counts once), or every hook once, as the original
        trace_eval does: with its running sum, and the sign of the last scored hook as the symbol.

    Returns
    -------
    EventScore
        (score, symbol). The symbol is empty if the event has no scored hook, and by hook also if the score is 0.

    Raises
    ------
    ValueError
        For an unknown weight or counting.
    """
    weights = scoring.check_rules(weights, counting)
    read = event if isinstance(event, Event) else fit(event, Event)
    return scoring.score_event(scoring.read_hooks(read).hooks, weights, counting)


def evaluate_trace(
    path: str | os.PathLike, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> TraceScore:
    """Score one session trace. Never raises for the contents of the file.

    Parameters
    ----------
    path : str or path
    weights, counting
        As for `evaluate_event`.

    Returns
    -------
    TraceScore
        total_score (Σ count × weight; 0.0 for an aborted trace), counts (the nonzero ones), trajectory (a symbol
        per event with a scored hook, or ``(no scored events)``), num_events (all of them), trace_file (the file's
        name); also source (its path), session_id, task_id, task_source, max_turns, model_name, difficulty,
        score_by_achievement and score_by_hook (the score by either counting), suspect_invalid_actions, flags, weights
        and counting. With `total_score` None and `error` for a file that can't be read.
    """
    weights, place = scoring.check_rules(weights, counting), os.fspath(path)
    refuse_credentials(place)
    try:
        data: bytes | OSError = read_file(path)
    except OSError as error:
        data = error
    entry, result = evaluate_file(place, data, weights, counting)
    return result or TraceScore(
        total_score=None,
        counts={},
        trajectory=scoring.NO_SCORED_EVENTS,
        num_events=0,
        trace_file=os.path.basename(place),
        source=place,
        model_name=UNKNOWN,
        difficulty=UNKNOWN,
        suspect_invalid_actions=0,
        flags=[],
        weights=weights,
        error=entry.reason,
    )


def evaluate_file(
    path: str, data: bytes | OSError, weights: dict[str, float], counting: Counting
) -> tuple[Entry, TraceScore | None]:
    """Score one file; return its ledger entry and, if it is a trace, its result."""
    entry, judged = open_trace(path, data)
    if judged is None:
        return entry, None
    scored = scoring.score_verdicts(judged.verdicts, weights, counting)
    foreign = ["unknown_to_original"] * (judged.foreign and counting == "hook")
    episode = {
        **judged.session._asdict(),
        "score": scored.by_counting[counting],
        "trajectory": scored.trajectory,
        "events": len(judged.events),
        **{f"score_by_{way}": score for way, score in scored.by_counting.items()},
        "suspect_invalid_actions": sum(verdict.suspect for verdict in judged.verdicts),
        "flags": order_flags([*judged.flags, *foreign]),
    }
    return entry, _result(path, scored.counts, episode, {"weights": weights, "counting": counting})


def results_of(episodes: "pd.DataFrame", rules: Mapping[str, Any]) -> list[TraceScore]:
    """Convert the frame of episodes scored by these rules to results, in descending order of score."""
    columns = {name: f"{name}s" for name in WEIGHTS}
    scores = ("score", "score_by_achievement", "score_by_hook")
    aborted: dict[str, Any] = dict.fromkeys([*scores, "suspect_invalid_actions", *columns.values()], 0)
    rows = episodes.fillna(aborted | {"trajectory": scoring.NO_SCORED_EVENTS})
    results = []
    for row in rows.sort_values("score", ascending=False, kind="stable").to_dict("records"):
        named = {name: None if row[name] != row[name] else row[name] for name in _WHOSE}
        counts = {name: int(row[column]) for name, column in columns.items() if row[column]}
        more = {"suspect_invalid_actions": int(row["suspect_invalid_actions"]), "flags": list(row["run_flags"])}
        results.append(_result(unescape_surrogates(row["source"]), counts, {**row, **named, **more}, rules))
    return results


def _result(path: str, counts: dict[str, int], episode: Mapping[Any, Any], rules: Mapping[str, Any]) -> TraceScore:
    result: Any = {
        "total_score": episode["score"],
        "counts": counts,
        "trajectory": episode["trajectory"],
        "num_events": episode["events"],
        "trace_file": os.path.basename(path),
        "source": path,
        **{name: episode[name] for name in (*_WHOSE, *_WHAT, "flags")},
        **rules,
    }
    return result


def print_trace_evaluation(result: TraceScore) -> None:
    """Print a result of `evaluate_trace`: score, events, breakdown, trajectory, and notes about anything doubtful.

    Only its first five keys are required.
    """
    print(trace_text(result))


def trace_text(result: TraceScore) -> str:
    """Return the text that `print_trace_evaluation` prints."""
    lines = [f"📊 Trace: {plain(result['trace_file'])}"]
    if result["total_score"] is None:
        return "\n".join([*lines, f"   Error: {plain(result['error'])}"])
    lines += [f"   Score: {round(result['total_score'], 2) + 0.0:.2f}", f"   Events: {result['num_events']}"]
    lines.append("   Breakdown:")
    for name, count in result["counts"].items():
        weight = result.get("weights", WEIGHTS)[name]
        lines.append(f"     {NAMES[name]}: {count} × {weight} = {count * weight:.2f}")
    key, title, meaning = _OTHER[result.get("counting", "achievement")]
    other: Any = result.get(key)
    if other is not None and round(other - result["total_score"], scoring.DIGITS):
        lines.append(f"   {title}: {round(other, 2) + 0.0:.2f} ({meaning})")
    lines.append(f"   Trajectory: {result['trajectory']}")
    if suspect := result.get("suspect_invalid_actions"):
        invalid = result["counts"]["invalid_action"]
        lines.append(f"   Suspect: {suspect} of {invalid} invalid actions, judged over turns of several actions")
    if others := [flag.replace("_", " ") for flag in result.get("flags", []) if flag != "suspect_invalid_actions"]:
        lines.append(f"   Flags: {', '.join(others)}")
    return "\n".join(lines)


def episodes_of_results(results: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Convert results to the frame of episodes, with missing values where a result lacks a key.

    Results of unreadable files (`total_score` None) are left out. The first five keys are enough.
    """
    rows, names = [], Counter[str]()
    for result in results:
        score = result["total_score"]
        if score is None:
            continue
        name = result.get("source") or result["trace_file"]
        names[name] += 1
        flags = {*result.get("flags", ()), *(["aborted"] if not result["num_events"] else [])}
        row = {key: result.get(key) or default for key, default in _WHOSE.items()}
        row |= {"source": name if names[name] == 1 else f"{name} ({names[name]})", "events": result["num_events"]}
        row |= {f"flag_{flag}": flag in flags for flag in FLAGS}
        if "aborted" not in flags:
            row |= {name: result.get(name) for name in ("trajectory", *_WHAT)}
            row |= {"score": score, "band": scoring.band(score)}
            cost = (result.get("suspect_invalid_actions") or 0) * result.get("weights", WEIGHTS)["invalid_action"]
            row["score_without_suspects"] = round(score - cost, scoring.DIGITS)
            row |= {f"{name}s": result["counts"].get(name, 0) for name in WEIGHTS}
        rows.append(row)
    return frame(rows, EPISODES)
