"""Tables of task runs: how runs end, what is doubtful about them, and the name, type and unit of every column."""

import re
from enum import StrEnum
from typing import Literal, NamedTuple

from evalkit.io import Column
from evalkit.kinds import run_columns

Scale = Literal["auto", "percent", "fraction"]
SCALES: tuple[Scale, ...] = ("auto", "percent", "fraction")  # what construction scores are logged in


class CompletionStatus(StrEnum):
    """How a log or a run ended."""

    SUCCESS = "SUCCESS"
    FAILED_SCORE_ZERO = "FAILED_SCORE_ZERO"
    FAILED_PARTIAL_SCORE = "FAILED_PARTIAL_SCORE"
    TIMED_OUT = "TIMED_OUT"
    NO_SCORE_LOGGED = "NO_SCORE_LOGGED"
    LOG_FILE_ERROR = "LOG_FILE_ERROR"


class Status(NamedTuple):
    """What a status is called, in a table's head too, what it says of a run, and its colour and hatch in figures."""

    label: str
    short: str
    outcome: Literal["success", "failure", "not measured"]  # of a run that does not say whether it succeeded
    colour: str
    hatch: str


SUCCEEDED_LATE = "TIMED_OUT_SUCCEEDED"  # no status of its own: a time-out with a score of 1
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
    """A text that the game logs: how it begins, letter by letter, and the pattern of what follows."""

    start: str
    rest: str = ""

    @property
    def pattern(self) -> str:
        """The pattern of the whole text."""
        return re.escape(self.start) + self.rest


# lines of a system turn that report trouble, by the event that each counts as
EVENTS = {
    "restarts": Wording("Agent process restarted."),
    "disconnects": Wording("Bot ", r"(?:disconnected|kicked)!"),
    "missing_players": Wording("Not all required players/bots are present in the world."),
    "code_timeouts": Wording("Code execution timed out after"),
    "deaths": Wording("You died at position"),
    "unknown_commands": Wording("Command !", r"\S+ does not exist\."),
}
# flags, each by what it is called in tables and what it means; a run carries those of its logs, too
FLAGS_OF_LOGS = {
    "conflicting": ("contradicting final messages", "final messages contradict each other, in a log or between agents"),
    "near_final": ("final wording among other text", "in a system message, which decides nothing"),
    "quoted_only": ("final wording quoted only", "a final wording in turns of agents or users never counts"),
    "recovered_byte_order_mark": ("byte order mark removed", "the file began with a byte order mark"),
    "recovered_latin_1": ("read as Latin-1", "the file was not UTF-8, and read as Latin-1"),
    "recovered_lone_surrogate": ("half a character replaced", "the file held half a character, replaced"),
    "recovered_nan_literal": ("bare NaN read as null", "the file held a bare NaN or Infinity, read as null"),
    "recovered_utf_16": ("read as UTF-16", "the file was UTF-16 with a byte order mark"),
    "restarted": ("agent restarted", "the agent's process was restarted during the run"),
    "score_implied": ("score implied by the wording", "an old success wording names no score and stands for 1"),
    "score_not_a_number": ("score is no number", "the score logged is NaN, undefined or no number"),
    "stale_copy": ("copy of another run's log", "by its content, or its agent and start: the run counts in no rate"),
    "turns_skipped": ("turns without text", "some turns hold no text and were left out"),
}
FLAGS_OF_RUNS = {
    "ambiguous_definition": ("several definitions", "files define the task differently; the logs' number may decide"),
    "facts_from_id": ("task read from its id", "no definition: what the task asks for was read from its id"),
    "extra_agent_logs": ("more logs than agents", "more agents than the definition names, or named by ids or dates"),
    "inferred_timeout": ("time-out inferred", "the duration reached the timeout; the log itself does not say so"),
    "layout_mismatch": ("path unlike the layout", "the path does not fit the layout that was stated"),
    "missing_agent_logs": ("fewer logs than agents", "fewer agents logged than the definition names"),
    "repetitions_merged": ("repetitions read as one run", "several repetitions were read as one run: best-of-n"),
    "score_out_of_range": ("score out of range", "the score does not fit the task's type"),
    "scale_assumed": ("scale of scores assumed", "no construction score exceeds 1: fractions, could be percentages"),
    "unreadable_logs": ("unreadable log", "at least one agent's log could not be read"),
}
FLAG_LABELS = {name: label for name, (label, _) in (FLAGS_OF_LOGS | FLAGS_OF_RUNS).items()}
LOG_FLAGS = {name: meaning for name, (_, meaning) in FLAGS_OF_LOGS.items()}
FLAGS = {name: meaning for name, (_, meaning) in sorted((FLAGS_OF_LOGS | FLAGS_OF_RUNS).items())}
COUNT_COLUMNS = (
    Column("message_count", "int?", "turns with text; logs keep only the last, so a lower bound", "messages"),
    Column("command_count", "int?", "commands in the agents' own turns; a lower bound", "commands"),
    *(Column(name, "int?", f"lines of this kind in the logs: {name}; a lower bound", "lines") for name in EVENTS),
)
_MESSAGE = Column("final_system_message", "str", "the message that decided the status")
_OF_LOG = (
    Column("raw_score", "float", "score as logged", "as logged"),
    Column("completion_status", "str", "how this log ended, by its score on the scale of its run"),
    Column("timed_out", "bool", "a time-out was logged"),
    _MESSAGE,
    Column("agent_log_processed", "bool", "the file could be read"),
    Column("parsing_errors", "str", "what was wrong with it"),
    Column("task_start", "float", "start of the task", "epoch milliseconds"),
    *COUNT_COLUMNS,
)
_FLAGS_OF_LOG = Column("flags", "list", "what is doubtful about the log")
_STORED = {"parsing_errors": "list", **{column.name: "int" for column in COUNT_COLUMNS}}  # their types in records
RECORDS = {
    "logs": (
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
    ),
}
RUNS = run_columns(
    Column("experiment_folder", "str", "path of the experiment's folder, which distinguishes experiments of one name"),
    Column("flat_layout", "bool", "the logs of several tasks are in one folder, distinguished by the files' names"),
    Column("experiment_total", "int?", "tasks of the experiment, as its results file says", "tasks"),
    Column("suite", "name", "name of the task file, where the path says it"),
    Column("agent_count", "int?", "agents of the task; those that logged, where no definition says", "agents"),
    Column("agents_asked_for", "int?", "agents of the task, where its definition or id says", "agents"),
    Column("total_agent_logs_found", "int?", "agent logs in the folder", "logs"),
    Column("raw_score", "float", "highest score of the agents, as logged", "as logged"),
    Column("score_scale", "str", "percent or fraction (construction), binary, unknown"),
    _MESSAGE,
    Column("parsing_errors", "str", "what was wrong with logs that could not be read"),
    Column("copy_of", "str", "run_id of the run whose log it holds, of a stale copy"),
    Column("copied_model", "str", "the model of that run"),
    Column("repetition_rule", "str", "how repetitions were distinguished from agents"),
    Column("has_definition", "bool", "a task definition was at hand"),
    Column("definition_file", "str", "where the definition stands"),
    Column("difficulty", "name", "easy, medium, hard"),
    Column("n_blocked_agents", "int?", "agents without access to the recipe (cooking)", "agents"),
    Column("target_items", "list", "items to make"),
    Column("hells_kitchen", "bool", "each agent holds the other's recipe (cooking)"),
    Column("plan_availability", "str", "full, partial or none (techtree)"),
    Column("depth", "int?", "depth of the recipe tree (techtree)", "levels"),
    Column("missing_items", "list", "items no agent starts with (techtree)"),
    Column("requires_crafting_table", "bool?", "a crafting table is needed (techtree)"),
    Column("materials", "int?", "number of materials (construction)", "materials"),
    Column("rooms", "int?", "number of rooms (construction)", "rooms"),
    Column("timeout", "float", "time given to the task", "seconds"),
    *COUNT_COLUMNS[1:],  # messages are the turns of a run
    score="share, 0 to 1",
)
_IDS = (
    Column("run_id", "str", "name of the run, as in runs"),
    Column("source", "str", "path of the log"),
    *(column for column in RUNS if column.name in ("model_name", "task_id", "repetition", "experiment")),
    Column("agent_name", "name", "name of the agent"),
)
_SCORE = Column("score", "float", "score of this log from 0 to 1", "share")
AGENTS = (*_IDS, *_OF_LOG[:1], _SCORE, *_OF_LOG[1:], _FLAGS_OF_LOG)
TABLES = {"runs": RUNS, "agents": AGENTS}
_POSITION = Column("position", "int", "position of the turn in the log of its agent, from 0")
LAZY_TABLES = {
    "messages": (
        *_IDS,
        _POSITION,
        Column("role", "str", "system, assistant (the agent), user (all others)"),
        Column("content", "str", "the message; missing where the turn holds no text"),
        Column("mark", "str", "final message, nearly a final message, or the event that the turn tells of"),
    ),
    "commands": (
        *_IDS,
        _POSITION,
        Column("command", "name", "name of the command, with its exclamation mark"),
        Column("arguments", "str", "the text in the brackets after it"),
    ),
}

# what statuses and flags are called in tables, and those columns of frames and estimates whose names are no words
LABELS = {
    **{code: status.label for code, status in STATUSES.items()},
    **FLAG_LABELS,
    "any_tasks": "tasks with any",
    "any_estimate": "any blocked",
    "command_count": "commands per run",
    "completed_estimate": "mean score of runs above 0",
    "completed_n": "runs above 0",
    "completion_estimate": "completion rate",
    "final_system_message": "final message",
    "mean_duration": "mean duration (s)",
    "total_duration": "total duration (s)",
    "message_count": "messages per run",
    "n_blocked_agents": "blocked agents",
    "none_tasks": "tasks with none",
    "none_estimate": "none blocked",
    "overall_completion_status": "how it ended",
    "overall_score": "score",
    "parsing_errors": "problems in the logs",
    "plan_availability": "plan",
}
