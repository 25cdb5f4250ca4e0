"""Session traces as tables: what is recorded of a file, and the frames of episodes, events and achievements."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from evalkit.crafter.game import TIERS
from evalkit.crafter.parse import UNKNOWN, kind_of, open_trace, sum_tokens, tokens_of, turn_of
from evalkit.crafter.scoring import WEIGHTS, band, judge_trace
from evalkit.io import Column, frame
from evalkit.kinds import Parsed, run_columns

if TYPE_CHECKING:
    import pandas as pd

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

RECORDS = {
    "episodes": (
        Column("session_id", "str", "id of the session"),
        Column("model_name", "str", "the model, or unknown"),
        Column("task_id", "str", "the task instance (the game's world), where the trace names one"),
        Column("difficulty", "str", "of the task, or unknown"),
        Column("agent_type", "str", "kind of agent"),
        Column("events", "int", "all of event_history", "count"),
        Column("turns", "int?", "turns that have an event", "count"),
        Column("actions", "int?", "actions in runtime events", "count"),
        Column("can_tell", "bool", "the trace says of all 22 achievements whether they were unlocked"),
        Column("prompt_tokens", "int?", "of all calls that tell", "tokens"),
        Column("completion_tokens", "int?", "of all calls that tell", "tokens"),
        Column("total_tokens", "int?", "of all calls that tell", "tokens"),
        Column("flags", "list", "what is doubtful about the trace"),
        Column("foreign", "bool", "some hooks are unknown to the original trace_eval"),
    ),
    "events": (
        Column("event", "int", "position in event_history, from 0"),
        Column("turn", "int?", "turn (or step) of the event, from 0"),
        Column("kind", "str", "language_model, runtime, environment or other"),
        Column("actions", "int?", "actions of a runtime event", "count"),
        Column("hooks", "str", "scored hooks in order, each with the number of achievements it names: NAME:N NAME:N"),
        Column("suspect_invalid_actions", "int", "judged over a turn of several actions", "count"),
        Column("achievements", "str", "names, separated by spaces"),
        Column("reason", "str", "why actions were judged invalid; missing where none was"),
        Column("total_tokens", "int?", "of a call of a language model", "tokens"),
    ),
}

_DIFFICULTY = Column("difficulty", "str", "of the task, or unknown")
_IDS = (
    Column("source", "str", "path of the trace"),
    Column("model_name", "str", "the model, or unknown"),
    Column("task_id", "str", "the task instance (the game's world), where the trace names one"),
    _DIFFICULTY,
)
EPISODES = run_columns(
    _DIFFICULTY,
    Column("session_id", "str", "id of the session"),
    Column("agent_type", "str", "kind of agent"),
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
    Column("actions", "int?", "actions in runtime events", "count"),
    Column("unlocked", "int?", "different achievements of the 22", "count"),
    Column("progression", "float", "unlocked / 22", "share"),
    Column("prompt_tokens", "int?", "of all calls that tell", "tokens"),
    Column("completion_tokens", "int?", "of all calls that tell", "tokens"),
    Column("total_tokens", "int?", "of all calls that tell", "tokens"),
    *(Column(f"flag_{name}", "bool", meaning) for name, meaning in FLAGS.items()),
    score="points",
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


def parse_file(path: str, data: bytes | OSError) -> Parsed:
    """Say what one file says: its session, and what the hooks of each event say."""
    entry, read = open_trace(path, data)
    if read is None:
        return Parsed(entry.status, entry.reason)
    trace, notes = read
    judged = judge_trace(trace)
    session, events = judged.session, judged.events
    actions = [len(event.actions) for event in events if isinstance(event.actions, list)]
    turns = {turn for event in events if (turn := turn_of(event)) is not None}
    episode = (
        session.session_id,
        session.model_name,
        session.task_id,
        session.difficulty,
        session.agent_type,
        len(events),
        len(turns) if turns else None,
        sum(actions) if actions else None,
        judged.unlocked is not None,
        *(sum_tokens(events) if events else (None, None, None)),
        [*judged.flags, *notes],
        judged.foreign,
    )
    rows = [
        (
            position,
            turn_of(event),
            kind := kind_of(event),
            len(event.actions) if isinstance(event.actions, list) else None,
            " ".join([f"{name}:{n}" for name, n in verdict.hooks]) or None,
            verdict.suspect,
            " ".join(verdict.achievements) or None,
            "; ".join(verdict.reasons) or None,
            tokens_of(event)[2] if kind == "language_model" else None,
        )
        for position, (event, verdict) in enumerate(zip(events, judged.verdicts, strict=True))
    ]
    return Parsed("used", entry.reason, {"episodes": [episode], "events": rows})


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
    return frame(rows, EPISODES)


def _scores_of_result(result: Mapping[str, Any]) -> dict[str, Any]:
    names = ("trajectory", "suspect_invalid_actions", "score_by_achievement", "score_by_hook")
    score = result["total_score"]
    counts = {f"{name}s": result["counts"].get(name, 0) for name in WEIGHTS}
    return {"score": score, "band": band(score), **counts, **{name: result.get(name) for name in names}}


def order_difficulties(found: Iterable[str]) -> list[str]:
    """Put difficulties in their natural order: easy, medium, hard, others by name, unknown; none twice."""
    order = {name: place for place, name in enumerate(TIERS)} | {UNKNOWN: len(TIERS) + 1}
    return sorted(set(found), key=lambda name: (order.get(name, len(TIERS)), name))


def order_flags(raised: Iterable[str]) -> list[str]:
    """Put flags in the order of `FLAGS`; what the decoder recovered comes last."""
    raised = dict.fromkeys(raised)
    return [flag for flag in FLAGS if flag in raised] + [flag for flag in raised if flag not in FLAGS]
