"""Session traces as tables: episodes, events, achievements and the ledger of files."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.crafter.format import Event, Trace
from evalkit.crafter.game import ACHIEVEMENTS, TIER_OF, TIERS
from evalkit.crafter.parse import UNKNOWN, events_of, kind_of, open_trace, sum_tokens, tokens_of, turn_of
from evalkit.crafter.scoring import (
    WEIGHTS,
    Counting,
    Scored,
    band,
    score_event,
    score_trace,
)
from evalkit.io import Column, frame
from evalkit.io.ledger import Entry

if TYPE_CHECKING:
    import pandas as pd

_IDS = (
    Column("source", "str", "path of the trace"),
    Column("model_name", "str", "the model, or unknown"),
    Column("task_id", "str", "the task instance (the game's world), where the trace names one"),
    Column("difficulty", "str", "of the task, or unknown"),
)

FLAGS = {
    "aborted": "no events; score and all that follows from events is missing",
    "error_entry": "the session says that it met an error; its events count",
    "derived": "no hooks: achievements come from the changes of achievements_status",
    "unnamed_achievements": "an achievement hook names nothing: what is unlocked can't be told",
    "unknown_achievements": "an achievement without difficulty is none of the game's, and does not count",
    "unknown_to_original": "counted per hook: points of hooks that the original trace_eval does not know",
    "no_environment_events": "nothing that could show an achievement: what is unlocked can't be told",
    "suspect_invalid_actions": "invalid actions were judged over turns of several actions",
    "verdicts_disagree": "metadata.invalid_action says other than the hook",
    "results_mismatch": "episode_results names other achievements than the events",
    "malformed_fields": "values of unexpected types were left out",
    "duplicate_session": "another file has the same session_id",
}

EPISODES = (
    *_IDS,
    Column("session_id", "str", "id of the session"),
    Column("agent_type", "str", "kind of agent"),
    Column("score", "float", "Σ count × weight; missing for aborted traces", "points"),
    Column("score_by_achievement", "float", "the score where every named achievement counts", "points"),
    Column("score_by_hook", "float", "the score where every hook counts once, as in the original script", "points"),
    Column("band", "str", "Excellent (> 2), Good [1, 2], Limited [0, 1), Poor (< 0)"),
    Column("easy_achievements", "int?", "easy achievements that hooks name (by hook: hooks)", "count"),
    Column("medium_achievements", "int?", "medium achievements that hooks name (by hook: hooks)", "count"),
    Column("hard_achievements", "int?", "hard achievements that hooks name (by hook: hooks)", "count"),
    Column("invalid_actions", "int?", "verdicts of invalid action", "count"),
    Column("suspect_invalid_actions", "int?", "of these, judged over a turn of several actions", "count"),
    Column("trajectory", "str", "a symbol per event with a scored hook"),
    Column("events", "int", "all of event_history", "count"),
    Column("turns", "int?", "turns that have an event", "count"),
    Column("actions", "int?", "actions in runtime events", "count"),
    Column("unlocked", "int?", "different achievements of the 22", "count"),
    Column("progression", "float", "unlocked / 22", "share"),
    Column("prompt_tokens", "int?", "of all calls that tell", "tokens"),
    Column("completion_tokens", "int?", "of all calls that tell", "tokens"),
    Column("total_tokens", "int?", "of all calls that tell", "tokens"),
    *(Column(f"flag_{name}", "bool", meaning) for name, meaning in FLAGS.items()),
)

EVENTS = (
    *_IDS,
    Column("event", "int", "position in event_history, from 0"),
    Column("turn", "int?", "turn (or step) of the event, from 0"),
    Column("kind", "str", "language_model, runtime, environment or other"),
    Column("actions", "int?", "actions of a runtime event", "count"),
    Column("score", "float", "of this event; missing where it has no scored hook", "points"),
    Column("symbol", "str", "+, - or 0 in the trajectory; missing where the event has no scored hook"),
    *(Column(f"{name}s", "int", "counts of the event's hooks", "count") for name in WEIGHTS),
    Column("suspect_invalid_actions", "int", "judged over a turn of several actions", "count"),
    Column("achievements", "str", "names, separated by spaces"),
    Column("reason", "str", "why actions were judged invalid; missing where none was"),
    Column("total_tokens", "int?", "of a call of a language model", "tokens"),
)

ACHIEVEMENT_ROWS = (
    *_IDS,
    Column("achievement", "str", "one of the 22"),
    Column("tier", "str", "easy, medium or hard"),
    Column("unlocked", "bool?", "unlocked in this episode; missing where the trace can't tell"),
    Column("turn", "int?", "turn of the first unlock, from 0"),
)
TABLES = {"episodes": EPISODES, "events": EVENTS, "achievements": ACHIEVEMENT_ROWS}


def episodes_of_results(results: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Make the frame of episodes of what `evaluate_all_traces` returns, for the analyses that `load` is for.

    Parameters
    ----------
    results : iterable of TraceScore
        Those of files that can't be read (`total_score` None) are left out. The first five keys are enough.

    Returns
    -------
    DataFrame
        With the columns of `EPISODES`; missing values where a result does not say.
    """
    rows, names = [], Counter()
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
    return mark_repeats(frame(rows, EPISODES))


def _scores_of_result(result: Mapping[str, Any]) -> dict[str, Any]:
    names = ("trajectory", "suspect_invalid_actions", "score_by_achievement", "score_by_hook")
    score = result["total_score"]
    counts = {f"{name}s": result["counts"].get(name, 0) for name in WEIGHTS}
    return {"score": score, "band": band(score), **counts, **{name: result.get(name) for name in names}}


def mark_repeats(episodes: "pd.DataFrame") -> "pd.DataFrame":
    """Flag the sessions that stand in several files."""
    sessions = episodes["session_id"]
    return episodes.assign(flag_duplicate_session=sessions.notna() & sessions.duplicated(keep=False))


def order_difficulties(found: Iterable[str]) -> list[str]:
    """Put difficulties in their natural order: easy, medium, hard, others by name, unknown; none twice."""
    order = {name: place for place, name in enumerate(TIERS)} | {UNKNOWN: len(TIERS) + 1}
    return sorted(set(found), key=lambda name: (order.get(name, len(TIERS)), name))


class TraceRows(NamedTuple):
    """What one file gives: its entry for the ledger and, where it is a trace, the rows of all frames."""

    entry: Entry
    episode: dict[str, Any] | None = None
    events: Sequence[dict[str, Any]] = ()
    achievements: Sequence[dict[str, Any]] = ()


def rows_of_file(
    source: str, data: bytes | OSError, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement"
) -> TraceRows:
    """Read and score one file, and make its rows."""
    entry, read = open_trace(source, data)
    if read is None:
        return TraceRows(entry)
    trace, notes = read
    return TraceRows(entry, *rows_of(source, trace, notes, score_trace(trace, weights, counting), weights))


def rows_of(
    source: str, trace: Trace, notes: list[str], scored: Scored, weights: Mapping[str, float]
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of one trace: its episode, its events, its achievements."""
    events, session = events_of(trace), scored.session
    ids = {"source": source, **{name: getattr(session, name) for name in ("model_name", "task_id", "difficulty")}}
    return (
        {**ids, **_episode(events, scored, notes)},
        [{**ids, **row} for row in _event_rows(events, scored, weights)],
        [{**ids, **row} for row in _achievement_rows(events, scored)],
    )


def _episode(events: list[Event], scored: Scored, notes: list[str]) -> dict[str, Any]:
    session = scored.session
    flags = {f"flag_{name}": name in scored.flags or name in notes for name in FLAGS}
    row = {"session_id": session.session_id, "agent_type": session.agent_type, "events": len(events), **flags}
    if not events:
        return row
    tokens = sum_tokens(events)
    actions = [len(event.actions) for event in events if isinstance(event.actions, list)]
    turns = {turn for event in events if (turn := turn_of(event)) is not None}
    unlocked = None if scored.unlocked is None else len(scored.unlocked.intersection(ACHIEVEMENTS))
    return {
        **row,
        "score": scored.score,
        **{f"score_by_{counting}": score for counting, score in scored.by_counting.items()},
        "band": band(scored.score),
        **{f"{name}s": scored.counts.get(name, 0) for name in WEIGHTS},
        "suspect_invalid_actions": scored.suspect,
        "trajectory": scored.trajectory,
        "turns": len(turns) if turns else None,
        "actions": sum(actions) if actions else None,
        "unlocked": unlocked,
        "progression": math.nan if unlocked is None else unlocked / len(ACHIEVEMENTS),
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "total_tokens": tokens[2],
    }


def _event_rows(events: list[Event], scored: Scored, weights: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for position, (event, verdict) in enumerate(zip(events, scored.verdicts, strict=True)):
        kind = kind_of(event)
        counts = verdict.counts(scored.counting)
        score, symbol = score_event(verdict, weights, scored.counting)
        yield {
            "event": position,
            "turn": turn_of(event),
            "kind": kind,
            "actions": len(event.actions) if isinstance(event.actions, list) else None,
            "score": score if counts else None,
            "symbol": symbol or None,
            **{f"{name}s": counts.get(name, 0) for name in WEIGHTS},
            "suspect_invalid_actions": verdict.suspect,
            "achievements": " ".join(verdict.achievements) or None,
            "reason": "; ".join(verdict.reasons) or None,
            "total_tokens": tokens_of(event)[2] if kind == "language_model" else None,
        }


def _achievement_rows(events: list[Event], scored: Scored) -> Iterator[dict[str, Any]]:
    turns: dict[str, int | None] = {}
    for event, verdict in zip(events, scored.verdicts, strict=True):
        for name in verdict.achievements:
            turns.setdefault(name, turn_of(event))
    for name in ACHIEVEMENTS:
        unlocked = None if scored.unlocked is None and name not in turns else name in turns
        yield {"achievement": name, "tier": TIER_OF[name], "unlocked": unlocked, "turn": turns.get(name)}
