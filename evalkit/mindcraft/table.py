"""Frames of runs and agents; every column's name, type and unit stands here once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, repeat
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from evalkit.io import Column, frame, frame_of, joined, paused_gc
from evalkit.mindcraft.facts import Facts
from evalkit.mindcraft.format import EVENTS
from evalkit.mindcraft.outcome import TaskOutcome
from evalkit.mindcraft.parse import AgentOutcome

if TYPE_CHECKING:
    import pandas as pd

# what one log can carry; its run carries it too
LOG_FLAGS = {
    "conflicting": "final messages contradict each other, in one log or between agents",
    "near_final": "a final wording stands among other text in a system message, which decides nothing",
    "quoted_only": "a final wording stands in turns of agents or users only, which never counts",
    "recovered_byte_order_mark": "the file began with a byte order mark",
    "recovered_lone_surrogate": "the file held half a character, replaced",
    "recovered_nan_literal": "the file held a bare NaN or Infinity, read as null",
    "restarted": "the agent's process was restarted during the run",
    "score_implied": "an old success wording names no score and stands for 1",
    "score_not_a_number": "the score logged is NaN, undefined or no number",
    "score_out_of_range": "the score does not fit the task's type",
    "stale_copy": "a copy of another run's log, by its content or its agent and start: the run counts in no rate",
    "turns_skipped": "some turns hold no text and were left out",
}
RUN_FLAGS = {
    "ambiguous_definition": "files define the task id differently and only the number of logs, or nothing, decided; "
    "or the results name a file that was not loaded",
    "facts_from_id": "no definition: what the task asks for was read from its id",
    "extra_agent_logs": "more agents logged than the definition names",
    "inferred_timeout": "the duration reached the timeout; the log itself does not say so",
    "layout_mismatch": "the path does not fit the layout that was stated",
    "missing_agent_logs": "fewer agents logged than the definition names",
    "repetitions_merged": "several repetitions were read as one run: best-of-n",
    "scale_assumed": "no construction score of all that was read exceeds 1: taken for fractions, could be percentages",
    "unreadable_logs": "at least one agent's log could not be read",
}
FLAGS = dict(sorted((LOG_FLAGS | RUN_FLAGS).items()))


def _flag_columns(flags: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(f"flag_{name}", "bool", meaning) for name, meaning in flags.items())


EVENT_COLUMNS = tuple(
    Column(name, "int?", f"lines of this kind in the logs: {name}; a lower bound", "lines") for name in EVENTS
)
COUNT_COLUMNS = (
    Column("message_count", "int?", "turns with text; logs keep only the last, so a lower bound", "messages"),
    Column("command_count", "int?", "commands in the agents' own turns; a lower bound", "commands"),
    *EVENT_COLUMNS,
)
LEGACY = Column("legacy", "str", "what the original scripts read in the folder, for `legacy_summary`, as JSON")
FOLDER_COLUMNS = (Column("source", "str", "path of a folder without any run"), LEGACY)
IDS = (
    Column("source", "str", "path of the run's folder (runs) or of the log (agents)"),
    Column("model_name", "str", "the model that ran; unknown where nothing tells"),
    Column("task_id", "str", "id of the task"),
    Column("repetition", "int?", "number of the repetition, from 0"),
    Column("experiment", "str", "name of the experiment's folder"),
)
RUN_COLUMNS = (
    *IDS,
    Column("experiment_folder", "str", "path of the experiment's folder, which tells those of one name apart"),
    Column("flat_layout", "bool", "the logs of several tasks lie in one folder, told apart by the files' names"),
    Column("model_source", "str", "where the model's name comes from"),
    Column("experiment_total", "int?", "tasks of the experiment, as its results file says", "tasks"),
    Column("suite", "str", "name of the task file, where the path says it"),
    Column("task_type", "str", "cooking, techtree, construction, …"),
    Column("agent_count", "int?", "agents of the task; those that logged, where no definition says", "agents"),
    Column("total_agent_logs_found", "int?", "agent logs in the folder", "logs"),
    Column("overall_raw_score", "float", "highest score of the agents, as logged", "as logged"),
    Column("overall_score", "float", "the same from 0 to 1", "share"),
    Column("overall_is_successful", "bool", "score = 1"),
    Column("overall_is_completed", "bool", "score > 0"),
    Column("overall_completion_status", "str", "how the run ended"),
    Column("score_scale", "str", "percent or fraction (construction), binary, unknown"),
    Column("final_system_message", "str", "the message that decided the status"),
    Column("parsing_errors", "str", "what was wrong with logs that could not be read"),
    Column("repetition_rule", "str", "how repetitions were told from agents"),
    Column("has_definition", "bool", "a task definition was at hand"),
    Column("definition_file", "str", "where the definition stands"),
    Column("facts_source", "str", "definition, or id where none was at hand"),
    Column("difficulty", "str", "easy, medium, hard"),
    Column("n_blocked_agents", "int?", "agents without access to the recipe (cooking)", "agents"),
    Column("target_items", "object", "items to make"),
    Column("hells_kitchen", "bool", "each agent holds the other's recipe (cooking)"),
    Column("plan_availability", "str", "full, partial or none (techtree)"),
    Column("depth", "int?", "depth of the recipe tree (techtree)", "levels"),
    Column("max_depth", "int?", "largest depth of the recipe tree (techtree)", "levels"),
    Column("missing_items", "object", "items no agent starts with (techtree)"),
    Column("requires_crafting_table", "bool?", "a crafting table is needed (techtree)"),
    Column("materials", "int?", "number of materials (construction)", "materials"),
    Column("rooms", "int?", "number of rooms (construction)", "rooms"),
    Column("timeout", "float", "time given to the task", "seconds"),
    Column("duration", "float", "last change of a log since the task's start; only from original mtimes", "seconds"),
    *COUNT_COLUMNS,
    *_flag_columns(FLAGS),
    LEGACY,
)
AGENT_COLUMNS = (
    *IDS,
    Column("agent_name", "str", "name of the agent"),
    Column("raw_score", "float", "score as logged", "as logged"),
    Column("completion_status", "str", "how this log ended"),
    Column("timed_out", "bool", "a time-out was logged"),
    Column("final_system_message", "str", "the message that decided the status"),
    Column("near_final_message", "str", "the first system message with a final wording among other text"),
    Column("agent_log_processed", "bool", "the file could be read"),
    Column("parsing_errors", "str", "what was wrong with it"),
    Column("skipped_turns", "int", "turns without text", "turns"),
    Column("task_start", "float", "start of the task", "epoch milliseconds"),
    *COUNT_COLUMNS,
    *_flag_columns(LOG_FLAGS),
)
BLOCK = 10_000  # runs of which the outcomes are held while their frames are made
_FACTS = sorted(Facts.__annotations__.keys() - {"agent_count", "task_type"})
_COUNTS = ("message_count", "command_count")
_IDS_OF_RUN = ("model_name", "task_id", "repetition", "experiment")  # also of its logs


@paused_gc()
def aggregate_results_to_dataframe(task_outcomes: Iterable[TaskOutcome]) -> "pd.DataFrame":
    """Make a frame of task outcomes: one row per run.

    Parameters
    ----------
    task_outcomes : iterable of TaskOutcome
        Or of dictionaries with only task_id, model_name, agent_count, task_type, overall_raw_score,
        overall_is_successful, overall_completion_status, total_agent_logs_found, agent_outcomes (their documented keys)
        and task_definition_metrics; the other columns then hold missing values, and overall_is_completed tells whether
        the raw score is above 0.

    Returns
    -------
    DataFrame
        The columns of `RUN_COLUMNS`, then one column ``metric_NAME`` for every metric of the definitions: numbers,
        truth values, or text where they are neither (or of several kinds).
    """
    outcomes = list(task_outcomes)
    return _with_metrics(_runs_frame(outcomes), list(map(_metrics_of, outcomes)))


def _runs_frame(outcomes: list[TaskOutcome]) -> "pd.DataFrame":
    logs = [outcome.get("agent_outcomes") or [] for outcome in outcomes]
    values = _values(outcomes, RUN_COLUMNS, FLAGS, list(map(_events_of, logs)))
    values |= {name: map(methodcaller("get", name), [o.get("facts") or {} for o in outcomes]) for name in _FACTS}
    values |= {name: map(_count_of(name), logs) for name in _COUNTS}
    values["overall_is_completed"] = map(_is_completed, outcomes)
    values["final_system_message"] = map(_deciding_message, outcomes)
    errors = ([error for log in own for error in log.get("parsing_errors") or ()] for own in logs)
    values["parsing_errors"] = map("; ".join, errors)
    return frame_of(values, RUN_COLUMNS)


def _metrics_of(outcome: TaskOutcome) -> dict[str, Any]:
    return outcome.get("task_definition_metrics") or {}


def _is_completed(outcome: TaskOutcome) -> bool:
    return outcome.get("overall_is_completed", (outcome.get("overall_raw_score") or 0) > 0)


def _events_of(logs: list[AgentOutcome]) -> list[dict[str, int]] | None:
    """Give what was counted in a run's logs; None where nobody counted."""
    counted = [log["events"] for log in logs if "events" in log]
    return None if logs and not counted else [events for events in counted if events]


def _count_of(name: str) -> Callable[[list[AgentOutcome]], int | None]:
    def count(logs: list[AgentOutcome]) -> int | None:
        counted = [log[name] for log in logs if name in log]  # type: ignore[literal-required]
        return None if logs and not counted else sum(counted)

    return count


def _with_metrics(table: "pd.DataFrame", of_runs: list[dict[str, Any]]) -> "pd.DataFrame":
    metrics = [_flat(own, "metric") for own in of_runs]
    names = dict.fromkeys(name for row in metrics for name in row)
    columns = [Column(n, _dtype([row.get(n) for row in metrics]), "metric of the definition") for n in names]
    return table.join(frame(metrics, columns)) if columns else table


@paused_gc()
def agents_frame(task_outcomes: Iterable[TaskOutcome]) -> "pd.DataFrame":
    """Make a frame of all agents of task outcomes: one row per log, with the columns of `AGENT_COLUMNS`."""
    pairs = [(outcome, log) for outcome in task_outcomes for log in outcome.get("agent_outcomes") or ()]
    runs, logs = [run for run, _ in pairs], [log for _, log in pairs]
    values = _values(logs, AGENT_COLUMNS, LOG_FLAGS, [_events_of([log]) for log in logs])
    values |= {name: map(methodcaller("get", name), runs) for name in _IDS_OF_RUN}
    values["parsing_errors"] = ("; ".join(log["parsing_errors"]) for log in logs)
    return frame_of(values, AGENT_COLUMNS)


@paused_gc()
def frames_of(task_outcomes: Iterable[TaskOutcome]) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Make the frames of runs and of agents; of an iterator, only `BLOCK` outcomes are held at a time."""
    outcomes = iter(task_outcomes)
    runs, agents, metrics = [], [], []
    block = list(islice(outcomes, BLOCK))
    while block or not runs:
        runs.append(_runs_frame(block))
        agents.append(agents_frame(block))
        metrics += map(_metrics_of, block)
        block = list(islice(outcomes, BLOCK))
    return _with_metrics(joined(runs), metrics), joined(agents)


def _values(
    outcomes: Sequence[Mapping],
    columns: Iterable[Column],
    flags: Iterable[str],
    events: list[list[dict[str, int]] | None],
) -> dict[str, Iterable]:
    """Give the values of columns: as the outcomes have them, of the flags, of the events counted in their logs."""
    values: dict[str, Iterable] = {column.name: map(methodcaller("get", column.name), outcomes) for column in columns}
    raised = {flag for outcome in outcomes for flag in outcome.get("flags") or ()}
    seen = {name for counts in events for found in counts or () for name in found}
    nobody_counted = None in events
    for name in flags:  # most flags are never raised, and most events never met
        values[f"flag_{name}"] = map(_has_flag(name), outcomes) if name in raised else repeat(False, len(outcomes))
    for name in EVENTS:
        values[name] = map(_sum_of(name), events) if name in seen or nobody_counted else repeat(0, len(outcomes))
    return values


def _has_flag(name: str) -> Callable[[Mapping], bool]:
    return lambda outcome: name in (outcome.get("flags") or ())


def _sum_of(name: str) -> Callable[[list[dict[str, int]] | None], int | None]:
    return lambda counts: None if counts is None else sum([count.get(name, 0) for count in counts])


def _deciding_message(outcome: TaskOutcome) -> str | None:
    """Give the message of the first log that ended as the run did, else of the first with any."""
    status = outcome["overall_completion_status"]
    logs = [log for log in outcome.get("agent_outcomes") or () if log.get("final_system_message")]
    first = next((log for log in logs if log["completion_status"] == status), logs[0] if logs else None)
    return first and first["final_system_message"]


def _flat(value: Any, name: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{name}_{key}").items()}
    return {name: value}


def _dtype(values: list) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(v, bool) for v in known):
        return "bool?"
    numbers = (isinstance(v, (int, float)) and not isinstance(v, bool) and not abs(v) > 1e300 for v in known)
    return "float" if all(numbers) else "str"
