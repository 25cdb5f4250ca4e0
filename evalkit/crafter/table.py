"""Define the columns of session traces: of the records of a file, and of the frames built from records."""

from evalkit.crafter.format import TIERS, WEIGHTS
from evalkit.io import Column
from evalkit.kinds import run_columns

FLAGS = {
    "aborted": "no events; the score and all values from events are missing",
    "error_entry": "the session reported an error; its events count",
    "derived": "no hooks: achievements are read from changes of achievements_status",
    "unnamed_achievements": "a hook or a state names no achievement of the game: unlocked achievements are unknown",
    "no_environment_events": "no event could show an achievement: unlocked achievements are unknown",
    "suspect_invalid_actions": "invalid actions were judged over turns of several actions",
    "verdicts_disagree": "metadata.invalid_action contradicts the hook",
    "results_mismatch": "episode_results names other achievements than the events",
    "malformed_fields": "values of unexpected types were ignored",
    "duplicate_session": "another file has the same session_id with other events",
    "duplicate": "another file contains the same trace, or its continuation; means exclude it",
}

RECORDS = {
    "episodes": (
        Column("session_id", "name", "id of the session"),
        Column("model_name", "name", "the model, or unknown"),
        Column("model_source", "str", "source of the model name: session_metadata, event_history or session_id"),
        Column("task_id", "name", "world of the game, if the trace identifies it"),
        Column(
            "task_source",
            "str",
            "what identifies the world: map (the first one), seed, instance (its number in an "
            "experiment), map_hash, or id (of the task instance, which may be new in each episode)",
        ),
        Column("experiment", "name", "id of the experiment"),
        Column("difficulty", "name", "of the task, or unknown"),
        Column("seed", "name", "of the game"),
        Column("max_turns", "int?", "turns that the agent may take", "count"),
        Column("started", "time", "start of the session; UTC if it has no time zone"),
        Column("duration", "float", "from the start to the last time in the trace", "seconds"),
        Column("status", "str", "aborted (no events), error, or finished (with results)"),
        Column("events", "int", "all of event_history", "count"),
        Column("turns", "int?", "turns with an event", "count"),
        Column("actions", "int?", "actions in runtime events", "count"),
        Column("can_tell", "bool", "whether the trace records all 22 achievements"),
        Column("tokens_in", "int?", "prompt tokens of all calls with a count", "tokens"),
        Column("tokens_out", "int?", "completion tokens of all calls with a count", "tokens"),
        Column("cost", "float", "cost of all calls with a cost", "US dollars"),
        Column("flags", "list", "flags of the trace"),
    ),
    "events": (
        Column("event", "int", "position in event_history, from 0"),
        Column("step", "int?", "step as the environment counts it, from 0; an agent may take several actions in it"),
        Column("kind", "str", "language_model, runtime, environment or other"),
        Column("actions", "int?", "actions of a runtime event", "count"),
        Column("hooks", "list", "names of scored hooks, in order; a hook that names several achievements as often"),
        Column("original_hooks", "list", "names of hooks that the original trace_eval scores, in order, each once"),
        Column("suspect_invalid_actions", "int", "judged over a turn of several actions", "count"),
        Column("achievements", "list", "names of achievements"),
        Column("invalid", "list", "actions that were judged invalid"),
        Column("reasons", "list", "reasons, in the same order"),
    ),
}


def _of(table: str, *names: str) -> list[Column]:
    """Return the columns of a table of records that a frame also has."""
    return [column for column in RECORDS[table] if column.name in names]


LABELS = {  # labels of columns of frames and estimates
    "suspect": "doubtful verdicts",
    "without_suspects": "mean without doubtful verdicts",
}
_IDS = (
    Column("run_id", "str", "the episode, as in episodes"),
    Column("source", "str", "path of the trace"),
    *_of("episodes", "model_name", "task_id", "difficulty"),
)
EPISODES = run_columns(
    *_of("episodes", "session_id", "task_source", "difficulty", "max_turns"),
    Column(
        "score_without_suspects", "float", "score without doubtful verdicts of invalid action: an upper bound", "points"
    ),
    Column("band", "str", "Excellent (> 2), Good [1, 2], Limited [0, 1), Poor (< 0)"),
    *(
        Column(f"{t}_achievements", "int?", f"{t} achievements that hooks name (by hook: hooks)", "count")
        for t in TIERS
    ),
    Column("invalid_actions", "int?", "verdicts of invalid action", "count"),
    Column("suspect_invalid_actions", "int?", "of these, judged over a turn of several actions", "count"),
    Column("trajectory", "str", "a symbol per event with a scored hook"),
    *_of("episodes", "events", "actions"),
    Column("unlocked", "int?", "different achievements, of 22", "count"),
    Column("progression", "float", "unlocked / 22", "share"),
    score="points",
)
EVENTS = (
    *_IDS,
    *_of("events", "event"),
    Column("turn", "int", "number of the turn that shows it, from 1, as in the frame of turns and on pages"),
    *_of("events", "step", "kind", "actions"),
    Column("score", "float", "score of this event; missing without a scored hook", "points"),
    *(Column(f"{name}s", "int", "counts of the event's hooks", "count") for name in WEIGHTS),
    *_of("events", "suspect_invalid_actions", "achievements", "invalid", "reasons"),
)
ACHIEVEMENT_ROWS = (
    *_IDS,
    Column("achievement", "str", "one of the 22"),
    Column("tier", "str", "easy, medium or hard"),
    Column("unlocked", "bool?", "whether this episode unlocked it; missing if not recorded"),
    Column("turn", "int?", "number of the turn of the first unlock, from 1, as in the frame of turns and on pages"),
)
TABLES = {"episodes": EPISODES, "events": EVENTS, "achievements": ACHIEVEMENT_ROWS}
