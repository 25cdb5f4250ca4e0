"""The format on disk: agent logs of all versions, the wordings of their final message, and other files."""

import ast
import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from evalkit.io import BrokenFileError

Scale = Literal["auto", "percent", "fraction"]
SCALES: tuple[Scale, ...] = ("auto", "percent", "fraction")  # what construction scores are logged in
LOG_TITLE = "Mindcraft agent log"
UNKNOWN = "unknown"  # the name of an unknown model
DEFAULT_TIMEOUT = 300.0  # seconds, where a definition names none


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


class Turn(msgspec.Struct, gc=False):
    """One message; both fields may hold anything in a damaged log."""

    role: Any = None
    content: Any = None


class AgentLog(msgspec.Struct, gc=False):
    """A copy of an agent's memory, of any version; `turns` is a window of its last messages."""

    turns: list[Turn]
    taskStart: Any = None  # epoch milliseconds


LOG = msgspec.json.Decoder(AgentLog | list[Turn])
ANYTHING = msgspec.json.Decoder()


_CODE = r"(?: ended with code : (?:[0-9]+|undefined))?"
WORDINGS = {  # final messages, as whole texts
    "scored": r"Task ended (?:with score : |in score ?: )(?P<score>\S+)",
    "succeeded": rf"Task completed(?:, exiting)?|Task successful{_CODE}",
    "timed_out": rf"Task unsuccessful: Timeout reached|Task timeout reached{_CODE}",
    "ended": rf"(?:Task unsuccessful: )?Agent ended (?:goal|conversation){_CODE}|No other agents found{_CODE}",
}
FINAL = re.compile("|".join(f"(?P<{name}>{text})" for name, text in WORDINGS.items()))
FINAL_STARTS = ("Task ", "Agent ended ", "No other agents found")
NEARLY_FINAL = re.compile(rf"{FINAL.pattern}|Task ended (?:with|in) score")  # within a longer text
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)  # as JavaScript writes them

# lines of a system turn that report trouble, and the event that each counts as
EVENTS = {
    "restarts": r"Agent process restarted\.",
    "disconnects": r"Bot (?:disconnected|kicked)!",
    "missing_players": r"Not all required players/bots are present in the world\.",
    "code_timeouts": r"Code execution timed out after",
    "deaths": r"You died at position",
    "unknown_commands": r"Command !\S+ does not exist\.",
}
EVENT = re.compile("|".join(f"^(?P<{name}>{text})" for name, text in EVENTS.items()), re.MULTILINE)
# text of those without an exclamation mark, from its rarest character on
EVENT_PARTS = ("Agent process restarted.", "/bots are present in the world.", "xecution timed out after", "You died at")
COMMAND = re.compile(r"!(?<![\w!]!)[A-Za-z]")  # not within a word


def holds_any(text: str, phrases: Iterable[str]) -> bool:
    """Return whether a text holds any of the phrases, each of which begins with a character that is rare in texts.

    A single character is found thirty times as fast as a phrase, so its occurrences are checked one by one.
    """
    last = len(text) - 1
    for phrase in phrases:
        first, second = phrase[0], phrase[1]
        at = text.find(first, 0, last)
        while at >= 0:
            if text[at + 1] == second and text.startswith(phrase, at):
                return True
            at = text.find(first, at + 1, last)
    return False


# the keys that distinguish the other JSON files of an experiment from agent logs
TASK_KEYS = frozenset((
    "goal", "type", "task_type", "agent_count", "timeout", "conversation", "initial_inventory", "target",
    "number_of_target", "blueprint", "difficulty", "difficulty_metrics", "blocked_actions", "blocked_access_to_recipe",
    "depth", "max_depth", "missing_items", "requires_ctable", "requires_crafting_table", "human_count", "usernames",
))  # fmt: skip
MEMORY_KEYS = frozenset((
    "memory", "memory_bank", "self_prompt", "self_prompting_state", "last_sender", "modes", "npc", "taskStart",
))  # fmt: skip
LOG_KEYS = MEMORY_KEYS | {"name", "turns"}
TURN_KEYS = frozenset(("role", "content", "imagePath"))
ROLES = frozenset(("system", "assistant", "user"))
OTHER = "no list of turns in it"  # what any other JSON file is called
RESULTS = "results.txt"  # beside the task folders of an experiment; no JSON
MAX_RESULTS = 100_000  # bytes: a results file is a few lines; a bigger one is something else
MAX_INT = 2**53  # above it, floats skip whole numbers
NOT_LOGS_BY_NAME = frozenset(("last_profile.json", "profile.json", "hells_kitchen_progress.json", "results.json"))


def is_agent_log(value: Any) -> bool:
    """Return whether decoded JSON is an agent's log, perhaps a damaged one, by its structure.

    It is an object with `turns`, and these have roles or stand beside other parts of an agent's memory; or a list of
    nothing but turns, as messages of other chats have more keys; or an empty list.
    """
    if isinstance(value, dict):
        turns = value.get("turns", ())
        if isinstance(turns, list) and any(isinstance(turn, dict) and "role" in turn for turn in turns):
            return True
        return turns == [] or ("turns" in value and bool(MEMORY_KEYS & value.keys()))
    turns = [turn for turn in value if isinstance(turn, dict)] if isinstance(value, list) else []
    roles = {turn["role"] for turn in turns if isinstance(turn.get("role"), str)}
    return value == [] or (bool(roles & ROLES) and all(turn.keys() <= TURN_KEYS for turn in turns))


def other_kind(value: Any) -> str | None:
    """Name what a decoded JSON file of an experiment is that holds no turns; None for any other file."""
    if not isinstance(value, dict):
        return None
    if {"total", "successful"} & value.keys() and {"model", "exp_name", "task_path"} & value.keys():
        return "results"
    if "model" in value:
        return "agent profile"
    if is_task_definition(value) or any(map(is_task_definition, value.values())):
        return "task definitions"
    if "taskId" in value or any(str(key).endswith("Complete") or "hells_kitchen" in str(key) for key in value):
        return "Hell's Kitchen progress"
    return None


def is_task_definition(value: Any) -> bool:
    """Return whether a JSON object is a single definition: it has a goal and one more key of a definition."""
    return isinstance(value, dict) and "goal" in value and len(TASK_KEYS & value.keys()) >= 2


def model_of(value: Any) -> str | None:
    """Read the model's name from `model` of a profile or of results: a string or ``{api, model, ...}``."""
    if isinstance(value, dict):
        value = value.get("model")
        if isinstance(value, dict):
            value = value.get("model")
    if not isinstance(value, str) or not value.strip():
        return None
    return value.strip()


LATEST_START = 2.0**33 * 1000  # epoch milliseconds, in the year 2242


def positive_number(value: Any, highest: float = sys.float_info.max) -> float | None:
    """Convert a number, or a string of one, to a float above 0 and up to the highest; else None."""
    try:
        number = float(value) if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number <= highest else None


def as_int(value: Any) -> int | None:
    """Convert a whole number, or a string of one, to int; None if it is too large to be exact in a frame."""
    try:
        is_whole = not isinstance(value, bool) and abs(float(value)) < MAX_INT and float(value) == int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(value) if is_whole else None


class Results(NamedTuple):
    """The contents of an experiment's ``results.txt`` or ``results.json``."""

    model_name: str | None = None
    task_path: str | None = None
    total: int | None = None


NO_RESULTS = Results()


def parse_results(data: bytes) -> Results:
    """Parse ``results.txt``, the repr of a Python dictionary (literals and ``nan``); BrokenFileError if it is none."""
    if len(data) > MAX_RESULTS:
        raise BrokenFileError(f"ValueError: {len(data)} bytes are too many for a results file")
    try:
        value = ast.literal_eval(re.sub(r"(?<=: )-?(?:nan|inf)\b", "None", data.decode("utf-8-sig")).strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise BrokenFileError(f"{type(error).__name__}: no Python dictionary in it") from error
    return results_of(value)


def results_of(value: Any) -> Results:
    """Return the used fields of a decoded results file."""
    if not isinstance(value, dict):
        raise BrokenFileError("TypeError: no dictionary in it")
    path = value.get("task_path")
    return Results(model_of(value), path if isinstance(path, str) else None, as_int(value.get("total")))


def stem_of(source: str) -> str:
    """Return a log's file name without its extension."""
    name = source[source.rfind("/") + 1 :]
    return name[:-5] if name[-5:].lower() == ".json" else name


@lru_cache(maxsize=4096)  # every run's folder has the same few
def split_stem(stem: str) -> tuple[str, int | None]:
    """Split a log's file name without its extension: ``Andy_0_1`` into ``Andy_0`` and 1, ``andy`` has no number."""
    name, _, number = stem.rpartition("_")
    if name and number.isascii() and number.isdigit() and len(number) < 10:
        return name, int(number)
    return stem, None


def error_text(error: Exception) -> str:
    """Format an exception as ``ErrorName: cause``, without the path, which is shown beside it."""
    return f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}"
