"""Define the tables of task runs: statuses, flags, and the name, type and unit of every column."""

import re
from enum import StrEnum
from typing import Literal, NamedTuple

from evalkit.io import Column
from evalkit.io.frames import Dtype
from evalkit.kinds import run_columns

Scale = Literal["auto", "percent", "fraction"]
SCALES: tuple[Scale, ...] = ("auto", "percent", "fraction")  # units of logged construction scores


class CompletionStatus(StrEnum):
    """How a log or a run ended."""

    SUCCESS = "SUCCESS"
    FAILED_SCORE_ZERO = "FAILED_SCORE_ZERO"
    FAILED_PARTIAL_SCORE = "FAILED_PARTIAL_SCORE"
    TIMED_OUT = "TIMED_OUT"
    NO_SCORE_LOGGED = "NO_SCORE_LOGGED"
    LOG_FILE_ERROR = "LOG_FILE_ERROR"


class Status(NamedTuple):
    """The labels, outcome, colour and hatch of a status."""

    label: str
    short: str  # label in table headers
    outcome: Literal["success", "failure", "not measured"]  # of a run whose `is_successful` is missing
    colour: str
    hatch: str


SUCCEEDED_LATE = "TIMED_OUT_SUCCEEDED"  # not a status of logs: a time-out with a score of 1
STATUSES = {  # from best to worst; the last two are defects of the logs, not of the model
    str(CompletionStatus.SUCCESS): Status("success", "success", "success", "#009E73", ""),
    SUCCEEDED_LATE: Status("timed out, succeeded", "timed out, succeeded", "success", "#7FB800", "xx"),
    str(CompletionStatus.FAILED_PARTIAL_SCORE): Status("partial score", "partial", "failure", "#56B4E9", ".."),
    str(CompletionStatus.FAILED_SCORE_ZERO): Status("score of zero", "zero", "failure", "#D55E00", "//"),
    str(CompletionStatus.TIMED_OUT): Status("timed out", "timed out", "failure", "#E69F00", "xx"),
    str(CompletionStatus.NO_SCORE_LOGGED): Status("no score logged", "no score", "not measured", "#B8BDC6", "--"),
    str(CompletionStatus.LOG_FILE_ERROR): Status("unreadable log", "broken", "not measured", "#595959", "++"),
}
OUTCOMES = {code: status.outcome for code, status in STATUSES.items()}


class Wording(NamedTuple):
    """A text that the game logs: its literal beginning, and a pattern for the rest."""

    start: str
    rest: str = ""

    @property
    def pattern(self) -> str:
        """The pattern of the whole text."""
        return re.escape(self.start) + self.rest


# events, and how the lines in system turns that report them begin
EVENTS = {
    "restarts": Wording("Agent process restarted."),
    "disconnects": Wording("Bot ", r"(?:disconnected|kicked)!"),
    "missing_players": Wording("Not all required players/bots are present in the world."),
    "code_timeouts": Wording("Code execution timed out after"),
    "deaths": Wording("You died at position"),
    "unknown_commands": Wording("Command !", r"\S+ does not exist\."),
}
# label in tables and meaning of each flag; a run also has the flags of its logs
FLAGS_OF_LOGS = {
    "conflicting": ("contradicting final messages", "final messages contradict each other, in a log or between agents"),
    "near_final": (
        "final wording among other text",
        "a system message contains a final wording and other text; ignored",
    ),
    "quoted_only": ("final wording quoted only", "agents or users quoted a final wording; ignored"),
    "recovered_byte_order_mark": ("byte order mark removed", "the file began with a byte order mark"),
    "recovered_latin_1": ("read as Latin-1", "the file was not UTF-8; it was read as Latin-1"),
    "recovered_lone_surrogate": (
        "half a character replaced",
        "the file contained half a character, which was replaced",
    ),
    "recovered_nan_literal": ("bare NaN read as null", "the file contained a bare NaN or Infinity, read as null"),
    "recovered_utf_16": ("read as UTF-16", "the file was UTF-16 with a byte order mark"),
    "restarted": ("agent restarted", "the agent's process was restarted during the run"),
    "score_implied": ("score implied by the wording", "an old success wording without a score counts as 1"),
    "score_not_a_number": ("score is not a number", "the logged score is NaN, undefined or not a number"),
    "stale_copy": ("copy of another run's log", "same content, or same agent and start; all rates exclude the run"),
    "turns_skipped": ("turns without text", "some turns contain no text; they were skipped"),
}
FLAGS_OF_RUNS = {
    "ambiguous_definition": ("several definitions", "files define the task differently; the number of logs may decide"),
    "facts_from_id": ("task inferred from its id", "no task definition; fields were inferred from the task id"),
    "extra_agent_logs": (
        "more logs than agents",
        "more logs than agents in the definition, or logs named by ids or dates",
    ),
    "inferred_timeout": ("time-out inferred", "the duration reached the timeout; the log does not mention it"),
    "layout_mismatch": ("path unlike the layout", "the path does not match --layout"),
    "missing_agent_logs": ("fewer logs than agents", "fewer logs than agents in the definition"),
    "repetitions_merged": ("repetitions read as one run", "several repetitions were read as one run: best-of-n"),
    "score_out_of_range": ("score out of range", "the score does not fit the task's type"),
    "scale_assumed": (
        "scale of scores assumed",
        "no construction score is above 1: read as fractions, could be percentages",
    ),
    "unreadable_logs": ("unreadable log", "the log of at least one agent is unreadable"),
}
FLAG_LABELS = {name: label for name, (label, _) in (FLAGS_OF_LOGS | FLAGS_OF_RUNS).items()}
FLAGS = {name: meaning for name, (_, meaning) in sorted((FLAGS_OF_LOGS | FLAGS_OF_RUNS).items())}
COUNT_COLUMNS = (
    Column(
        "message_count", "int?", "turns with text; a lower bound, because logs keep only the last turns", "messages"
    ),
    Column("command_count", "int?", "commands in the turns of agents; a lower bound", "commands"),
    *(Column(name, "int?", f"{name.replace('_', ' ')} in the logs; a lower bound", "lines") for name in EVENTS),
)
_MESSAGE = Column("final_system_message", "str", "the message that decided the status")
_RAW_SCORE = Column("raw_score", "float", "score as logged", "as logged")
_OF_LOG = (
    Column("timed_out", "bool", "a time-out was logged"),
    _MESSAGE,
    Column("agent_log_processed", "bool", "the file is readable"),
    Column("parsing_errors", "str", "errors in the file"),
    Column("task_start", "float", "start of the task", "epoch milliseconds"),
    *COUNT_COLUMNS,
)
_FLAGS_OF_LOG = Column("flags", "list", "flags of the log")
# types of columns in records
_STORED: dict[str, Dtype] = {"parsing_errors": "list", **{column.name: "int" for column in COUNT_COLUMNS}}
RECORDS = {
    "logs": (
        _RAW_SCORE,
        Column("stated_status", "str", "status that a final message states, such as TIMED_OUT; else the score decides"),
        *(column._replace(dtype=_STORED.get(column.name, column.dtype)) for column in _OF_LOG),
        _FLAGS_OF_LOG,
        Column("digest", "str", "equal for copies"),
    ),
    "other_files": (
        Column("results_model", "name", "the model that a results file names"),
        Column("task_path", "str", "the definition file that a results file names"),
        Column("total", "int?", "tasks of the experiment, as a results file says", "tasks"),
        Column("profile_model", "name", "the model that an agent's profile names"),
        Column("other", "str", "why it is a log only in the folder of a run; empty for a known file"),
        Column("defined", "list", "ids of the tasks that a file of definitions defines"),
    ),
}
RUNS = run_columns(
    Column(
        "experiment_folder",
        "str",
        "path of the experiment's folder, which distinguishes experiments with the same name",
    ),
    Column("flat_layout", "bool", "one folder contains the logs of several tasks, distinguished by file names"),
    Column("experiment_total", "int?", "tasks of the experiment, from its results file", "tasks"),
    Column("suite", "name", "name of the task file, if the path contains it"),
    Column("agent_count", "int?", "agents of the task; without a definition, agents with a log", "agents"),
    Column("agents_asked_for", "int?", "agents of the task, from its definition or id", "agents"),
    Column("total_agent_logs_found", "int?", "agent logs in the folder", "logs"),
    Column("raw_score", "float", "highest score of the agents, as logged", "as logged"),
    Column("score_scale", "str", "percent or fraction (construction), binary, unknown"),
    _MESSAGE,
    Column("parsing_errors", "str", "errors in unreadable logs"),
    Column("copy_of", "str", "stale copy: run_id of the run whose log it contains"),
    Column("copied_model", "str", "stale copy: model of that run"),
    Column("repetition_rule", "str", "rule that distinguished repetitions from agents"),
    Column("has_definition", "bool", "there is a task definition"),
    Column("definition_file", "str", "file of the definition"),
    Column("difficulty", "name", "easy, medium, hard"),
    Column("n_blocked_agents", "int?", "agents without access to the recipe (cooking)", "agents"),
    Column("target_items", "list", "items to make"),
    Column("hells_kitchen", "bool", "each agent has the other's recipe (cooking)"),
    Column("plan_availability", "str", "full, partial or none (techtree)"),
    Column("depth", "int?", "depth of the recipe tree (techtree)", "levels"),
    Column("missing_items", "list", "items that no agent has at the start (techtree)"),
    Column("requires_crafting_table", "bool?", "a crafting table is needed (techtree)"),
    Column("materials", "int?", "number of materials (construction)", "materials"),
    Column("rooms", "int?", "number of rooms (construction)", "rooms"),
    Column("timeout", "float", "time limit of the task", "seconds"),
    *COUNT_COLUMNS[1:],  # without message_count, which is turns
    score="share, 0 to 1",
)
_IDS = (
    Column("run_id", "str", "name of the run, as in runs"),
    Column("source", "str", "path of the log"),
    *(column for column in RUNS if column.name in ("model_name", "task_id", "repetition", "experiment")),
    Column("agent_name", "name", "name of the agent"),
)
AGENTS = (
    *_IDS,
    _RAW_SCORE,
    Column("score", "float", "score of this log from 0 to 1", "share"),
    Column("completion_status", "str", "how this log ended, from its score on the scale of its run"),
    *_OF_LOG,
    _FLAGS_OF_LOG,
)
TABLES = {"runs": RUNS, "agents": AGENTS}
_PLACE = (
    Column("position", "int", "position of the turn in the log of its agent, from 0"),
    Column("turn", "int", "number of the turn in its run, from 1, as in the frame of turns and on pages"),
)
LAZY_TABLES = {
    "messages": (
        *_IDS,
        *_PLACE,
        Column("role", "str", "system, assistant (the agent), user (all others)"),
        Column("content", "str", "the message; missing if the turn contains no text"),
        Column("mark", "str", "final message, nearly a final message, or the event in the turn"),
    ),
    "commands": (
        *_IDS,
        *_PLACE,
        Column("command", "name", "name of the command, with its exclamation mark"),
        Column("arguments", "str", "text in the brackets after the command"),
    ),
}

# labels in tables: of statuses, flags, and the columns of frames and estimates whose names are not plain words
LABELS = {
    **{code: status.label for code, status in STATUSES.items()},
    **FLAG_LABELS,
    "agents_asked_for": "number of agents",
    "any_estimate": "with blocked agents",
    "any_n_tasks": "tasks with blocked agents",
    "command_count": "commands per run",
    "completed_estimate": "mean score of runs above 0",
    "completed_n": "runs above 0",
    "completion_estimate": "completion rate",
    "final_system_message": "final message",
    "mean_duration": "mean duration (s)",
    "total_duration": "total duration (s)",
    "message_count": "messages per run",
    "n_blocked_agents": "blocked agents",
    "none_estimate": "without blocked agents",
    "none_n_tasks": "tasks without blocked agents",
    "overall_completion_status": "how it ended",  # a column of `runs_df`, like the next one
    "overall_score": "score",
    "parsing_errors": "problems in the logs",
    "plan_availability": "plan",
    "techtree": "crafting (techtree)",
}
