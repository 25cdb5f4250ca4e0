"""Score events and single files, and format the results as text; needs no pandas."""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from evalkit.crafter.format import UNKNOWN, WEIGHTS, Event, Trace, fit, read_trace
from evalkit.crafter.parse import judge_trace, open_trace
from evalkit.crafter.scoring import (
    DIGITS,
    NO_SCORED_EVENTS,
    Counting,
    EventScore,
    band,
    check_rules,
    read_hooks,
    score_event,
    score_verdicts,
)
from evalkit.crafter.table import EPISODES, FLAGS, order_flags
from evalkit.io import BrokenFileError, Entry, Ledger, frame, plain, read_file, refuse_credentials, unescape_surrogates

if TYPE_CHECKING:
    import pandas as pd

NAMES = {name: name.replace("_", " ").capitalize() + "s" for name in WEIGHTS}
_OTHER = {
    "achievement": ("score_by_hook", "Per hook", "every hook counts once"),
    "hook": ("score_by_achievement", "Per achievement", "every achievement that a hook names counts"),
}
_SCORES = ("score", "score_by_achievement", "score_by_hook")
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
    model_name: str
    difficulty: str
    score_by_achievement: float
    score_by_hook: float
    suspect_invalid_actions: int
    flags: list[str]
    weights: dict[str, float]
    counting: Counting
    error: str


def _score_of(result: TraceScore) -> float:
    return math.nan if result["total_score"] is None else result["total_score"]


class TraceScores(list[TraceScore]):
    """Results of a folder in descending order of score; `ledger` names every file that was seen."""

    def __init__(self, results: Iterable[TraceScore], ledger: Ledger) -> None:
        super().__init__(sorted(results, key=lambda result: -_score_of(result)))
        self.ledger = ledger
        sessions = Counter(result["session_id"] for result in self if result["session_id"] is not None)
        for result in self:
            if (session := result["session_id"]) is not None and sessions[session] > 1:
                result["flags"] = order_flags([*result["flags"], "duplicate_session"])


def evaluate_event(
    event: Mapping[str, Any] | Event, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> EventScore:
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
    weights = check_rules(weights, counting)
    read = event if isinstance(event, Event) else fit(event, Event)
    return score_event(read_hooks(read).hooks, weights, counting)


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
        name); also source (its path), session_id, task_id, model_name, difficulty, score_by_achievement and
        score_by_hook (the score by either counting), suspect_invalid_actions, flags, weights and counting. With
        `total_score` None and `error` for a file that can't be read.
    """
    weights = check_rules(weights, counting)
    refuse_credentials(os.fspath(path))
    try:
        trace, notes = read_trace(read_file(path))
    except OSError as error:
        return _broken(path, f"{type(error).__name__}: {error.strerror or error}", weights)
    except BrokenFileError as error:
        return _broken(path, str(error), weights)
    return _result(path, trace, notes, weights, counting)


def evaluate_file(
    path: str, data: bytes | OSError, weights: dict[str, float], counting: Counting
) -> tuple[Entry, TraceScore | None]:
    """Score one file; return its ledger entry and, if it is a trace, its result."""
    entry, read = open_trace(path, data)
    return entry, None if read is None else _result(path, *read, weights, counting)


def results_of(episodes: "pd.DataFrame", rules: Mapping[str, Any]) -> list[TraceScore]:
    """Convert the frame of episodes scored by these rules to results, in descending order of score."""
    counts = {name: f"{name}s" for name in WEIGHTS}
    aborted: dict[str, Any] = dict.fromkeys([*_SCORES, "suspect_invalid_actions", *counts.values()], 0)
    ranked = episodes.fillna(aborted | {"trajectory": NO_SCORED_EVENTS}).sort_values(
        "score", ascending=False, kind="stable"
    )
    results = []
    for row in ranked.to_dict("records"):
        source = unescape_surrogates(row["source"])
        result = TraceScore(
            total_score=row["score"],
            counts={name: int(row[column]) for name, column in counts.items() if row[column]},
            trajectory=row["trajectory"],
            num_events=row["events"],
            trace_file=os.path.basename(source),
            source=source,
            session_id=_text(row["session_id"]),
            task_id=_text(row["task_id"]),
            model_name=row["model_name"],
            difficulty=row["difficulty"],
            score_by_achievement=row["score_by_achievement"],
            score_by_hook=row["score_by_hook"],
            suspect_invalid_actions=int(row["suspect_invalid_actions"]),
            flags=list(row["flags"]),
            weights=rules["weights"],
            counting=rules["counting"],
        )
        results.append(result)
    return results


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None  # a missing value is NaN in a frame


def _result(
    path: str | os.PathLike, trace: Trace, notes: list[str], weights: dict[str, float], counting: Counting
) -> TraceScore:
    judged = judge_trace(trace)
    scored = score_verdicts(judged.verdicts, weights, counting)
    foreign = ["unknown_to_original"] * (judged.foreign and counting == "hook")
    return TraceScore(
        total_score=scored.score,
        counts=scored.counts,
        trajectory=scored.trajectory,
        num_events=len(judged.events),
        trace_file=os.path.basename(path),
        source=os.fspath(path),
        session_id=judged.session.session_id,
        task_id=judged.session.task_id,
        model_name=judged.session.model_name,
        difficulty=judged.session.difficulty,
        score_by_achievement=scored.by_counting["achievement"],
        score_by_hook=scored.by_counting["hook"],
        suspect_invalid_actions=sum(verdict.suspect for verdict in judged.verdicts),
        flags=order_flags([*judged.flags, *notes, *foreign]),
        weights=weights,
        counting=counting,
    )


def _broken(path: str | os.PathLike, error: str, weights: dict[str, float]) -> TraceScore:
    return TraceScore(
        total_score=None,
        counts={},
        trajectory=NO_SCORED_EVENTS,
        num_events=0,
        trace_file=os.path.basename(path),
        source=os.fspath(path),
        model_name=UNKNOWN,
        difficulty=UNKNOWN,
        suspect_invalid_actions=0,
        flags=[],
        weights=weights,
        error=error,
    )


def print_trace_evaluation(result: TraceScore) -> None:
    """Print one trace: score, events, breakdown, trajectory, and notes about anything doubtful.

    Parameters
    ----------
    result : TraceScore
        As `evaluate_trace` returns it; only its first five keys are required.
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
    score: Any = result.get(key)
    differs = score is not None and round(score - _score_of(result), DIGITS)
    return [f"   {title}: {round(score, 2) + 0.0:.2f} ({meaning})"] if differs else []


def episodes_of_results(results: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Convert results of `evaluate_all_traces` to the frame of episodes, for the same analyses as `load`.

    Parameters
    ----------
    results : iterable of TraceScore
        Results of unreadable files (`total_score` None) are left out. The first five keys are enough.

    Returns
    -------
    DataFrame
        With the columns of `EPISODES`; missing values where a result lacks the key.
    """
    rows, names = [], Counter[str]()
    for result in results:
        if result["total_score"] is None:
            continue
        name = result.get("source") or result["trace_file"]
        names[name] += 1
        row = {"source": name if names[name] == 1 else f"{name} ({names[name]})", "events": result["num_events"]}
        row |= {key: result.get(key) for key in ("session_id", "task_id")}
        row |= {key: result.get(key) or UNKNOWN for key in ("model_name", "difficulty")}
        flags = {*result.get("flags", ()), *(["aborted"] if not result["num_events"] else [])}
        row |= {f"flag_{flag}": flag in flags for flag in FLAGS}
        rows.append(row if "aborted" in flags else row | _scores_of_result(result))
    return frame(rows, EPISODES)


def _scores_of_result(result: Mapping[str, Any]) -> dict[str, Any]:
    names = ("trajectory", "suspect_invalid_actions", "score_by_achievement", "score_by_hook")
    score = result["total_score"]
    counts = {f"{name}s": result["counts"].get(name, 0) for name in WEIGHTS}
    return {"score": score, "band": band(score), **counts, **{name: result.get(name) for name in names}}
