"""Parse one file into a record: an agent's log of any version, or one of the files next to logs."""

import ast
import math
import os
import re
import sys
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypedDict, cast

import msgspec

from evalkit.io import BrokenFileError, WrongShapeError, check_path, decode_json, decode_start, read_file, reason_of
from evalkit.io.paths import check_document
from evalkit.kinds import HEAD, Parsed
from evalkit.mindcraft.table import EVENTS, FLAG_LABELS, RECORDS, CompletionStatus, Wording

LOG_TITLE = "Mindcraft agent log"
UNKNOWN = "unknown"  # model name of runs for which no source gives one
LATEST_START = 2.0**33 * 1000  # epoch milliseconds, in the year 2242
USUAL_SIZE = 10_000_000  # bytes; for a larger log, evalkit first checks how much memory decoding needs
ENDS = 1024  # bytes at each end of a log; the checksum of a log with a start time covers only these
_NO_OTHER_FILE: dict[str, Any] = {
    **dict.fromkeys(column.name for column in RECORDS["other_files"]),
    "other": "",
    "defined": [],
}
_row = itemgetter(*(column.name for column in RECORDS["logs"]))


class LoggedTurn(msgspec.Struct, gc=False):
    """One message of a log."""

    role: str | None = None
    content: str | None = None


class AgentLog(msgspec.Struct, gc=False):
    """A saved copy of an agent's memory, of any version of the format; `turns` has only its last messages."""

    turns: Sequence[LoggedTurn]
    taskStart: Any = None  # epoch milliseconds


class KnownTurn(LoggedTurn, gc=False, forbid_unknown_fields=True):
    """A message with only the known keys."""

    imagePath: Any = None


class KnownLog(AgentLog, gc=False, forbid_unknown_fields=True, kw_only=True):
    """A log with only the known keys. As its decoder skips nothing, it finds every text that is not UTF-8."""

    turns: Sequence[KnownTurn]
    name: Any = None
    memory: Any = None
    memory_bank: Any = None
    self_prompt: Any = None
    self_prompting_state: Any = None
    last_sender: Any = None
    modes: Any = None
    npc: Any = None


LOG = msgspec.json.Decoder(AgentLog | list[LoggedTurn])
KNOWN_LOG = msgspec.json.Decoder(KnownLog)

_CODE = r"(?: ended with code : (?:[0-9]+|undefined))?"
# Final messages by meaning; each must be the whole text. A score follows the wordings of `scored`, and a message that
# only contains the beginning of such a wording is nearly final. Wordings of `timed_out` mean that a limit ended the
# run. If a meaning is the name of a status, its wordings decide the status, whatever the score; the first meaning wins
WORDINGS = {
    "scored": (Wording("Task ended with score", " : "), Wording("Task ended in score", " ?: ")),
    "succeeded": (Wording("Task completed", r"(?:, exiting)?"), Wording("Task successful", _CODE)),
    "timed_out": (Wording("Task unsuccessful: Timeout reached"), Wording("Task timeout reached", _CODE)),
    "ended": (
        Wording("Agent ended ", rf"(?:goal|conversation){_CODE}"),
        Wording("Task unsuccessful: Agent ended ", rf"(?:goal|conversation){_CODE}"),
        Wording("No other agents found", _CODE),
    ),
}


_DECIDED_BY_SCORE = ("scored", "succeeded", "ended")
# statuses that wordings state, by meaning
STATED = {meaning: CompletionStatus[meaning.upper()] for meaning in WORDINGS if meaning not in _DECIDED_BY_SCORE}
_PRECEDENCE: dict[CompletionStatus | None, int] = {status: place for place, status in enumerate(STATED.values())}


def _pattern(meaning: str) -> str:
    """Return the pattern for all final messages with the given meaning."""
    texts = "|".join(text.pattern for text in WORDINGS[meaning])
    score = r"(?P<score>\S+)" if meaning == "scored" else ""
    return f"(?P<{meaning}>(?:{texts}){score})"


FINAL = re.compile("|".join(map(_pattern, WORDINGS)))
FINAL_STARTS = tuple(text.start for texts in WORDINGS.values() for text in texts)
FINAL_START = re.compile("|".join(map(re.escape, FINAL_STARTS)))
_NO_SCORE = "|".join(re.escape(text.start) for text in WORDINGS["scored"])
NEARLY_FINAL = re.compile(f"{FINAL.pattern}|{_NO_SCORE}")  # to search in a longer text
OUTCOME = re.compile(f"{_pattern('scored')}|{_pattern('succeeded')}|{_NO_SCORE}")
ENDED = re.compile(_pattern("ended"))  # a final message without a score, which means that the run did not succeed
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)  # as JavaScript writes them

EVENT = re.compile("|".join(f"^(?P<{name}>{text.pattern})" for name, text in EVENTS.items()), re.MULTILINE)
COMMAND = re.compile(r"!(?<![\w!]!)[A-Za-z]")  # start of a command; its `!` does not follow a word or another `!`

# characters of game logs, the most frequent first; all others are rarer
_COMMON = " etaoinsrhldcumpgfbwyvk\n_.,:-0123456789()\"'CTSIARBDMNPOFLEWGHUVKYJ!"


class Phrases:
    """A set of phrases to search for in texts.

    Searching for a single character is thirty times as fast as searching for a phrase. So `places_in` searches for a
    rare character of each phrase, and compares the phrase only where that character occurs.
    """

    def __init__(self, phrases: Sequence[str]) -> None:
        self._by_place: dict[tuple[str, int], tuple[str, ...]] = {}  # by a rare character and its offset
        for phrase in phrases:
            rarity = [_COMMON.find(character) % (len(_COMMON) + 1) for character in phrase]
            rarest = rarity.index(max(rarity))
            places = [(character, offset) for offset, character in enumerate(phrase)]
            place = places[rarest]
            for other in places:
                if other in self._by_place:  # `places_in` searches for this character anyway
                    place = other
                    break
            self._by_place[place] = (*self._by_place.get(place, ()), phrase)

    def places_in(self, text: str) -> list[int]:
        """Return the places in a text where any of the phrases begins, in order."""
        places = []
        for (character, offset), phrases in self._by_place.items():
            at = text.find(character, offset)
            while at >= 0:
                if text.startswith(phrases, at - offset):
                    places.append(at - offset)
                at = text.find(character, at + 1)
        return sorted(set(places))  # one phrase may be the beginning of another


FINAL_PHRASES = Phrases(FINAL_STARTS)
OUTCOME_PHRASES = Phrases([text.start for meaning in ("scored", "succeeded") for text in WORDINGS[meaning]])
GAME_PHRASES = Phrases([*FINAL_STARTS, *(event.start for event in EVENTS.values())])  # in the game's own messages

# keys that distinguish agent logs from the other JSON files of an experiment
TASK_KEYS = frozenset((
    "goal", "type", "task_type", "agent_count", "timeout", "conversation", "initial_inventory", "target",
    "number_of_target", "blueprint", "difficulty", "difficulty_metrics", "blocked_actions", "blocked_access_to_recipe",
    "depth", "max_depth", "missing_items", "requires_ctable", "requires_crafting_table", "human_count", "usernames",
))  # fmt: skip
LOG_KEYS = frozenset(KnownLog.__struct_fields__)
MEMORY_KEYS = LOG_KEYS - {"name", "turns"}
TURN_KEYS = frozenset(KnownTurn.__struct_fields__)
ROLES = frozenset(("system", "assistant", "user"))
NO_TURNS = "no list of turns in it"  # reason for JSON that is neither a log nor another known kind of file
RESULTS = "results.txt"  # results file, next to the task folders of an experiment; it is not JSON
MAX_RESULTS = 100_000  # bytes; results files have a few lines, so a larger file is something else
MAX_INT = 2**53  # above this, floats cannot represent every integer
NOT_LOGS_BY_NAME = frozenset(("last_profile.json", "profile.json", "hells_kitchen_progress.json", "results.json"))


class AgentOutcome(TypedDict):
    """The outcome of one agent's log. All counts are lower bounds, because logs keep only the last messages."""

    raw_score: float | None  # logged score; 1.0 for old success messages, which contain no score
    completion_status: str  # a `CompletionStatus`; the task type is unknown, so scores above 1 count as percentages
    final_system_message: str | None  # message that decided the status
    agent_log_processed: bool  # whether the file could be read
    parsing_errors: list[str]  # errors in the file: ``ErrorName: cause``
    timed_out: bool  # whether the log reports a time-out
    agent_name: str  # from the file name
    repetition: int  # last number of the file name; other files in the folder may show that it is not a repetition
    message_count: int  # number of turns with text
    command_count: int  # number of commands (``!name``) in the agent's turns
    events: dict[str, int]  # number of lines per event, such as deaths
    flags: list[str]  # names in `table.FLAGS_OF_LOGS`, except the flag of copies
    task_start: float | None  # epoch milliseconds
    digest: str  # equal for copies of a log
    source: str


def analyze_agent_log(file_path: str | os.PathLike) -> AgentOutcome:
    """Read the log of one agent. An unreadable log has an outcome, too.

    Only ``system`` turns whose whole text is a known final message decide the status: any message that states a
    time-out or another status, or else the first message with a score.

    Parameters
    ----------
    file_path : path
        The log.

    Returns
    -------
    AgentOutcome
        Score, status, final message and errors of the log.

    Examples
    --------
    >>> mindcraft.analyze_agent_log("missing.json")["agent_log_processed"]
    False
    """
    source = os.fspath(file_path)
    check_path(source)
    try:
        return agent_outcome(source, decode_log(read_file(source)))
    except (OSError, ValueError) as error:  # a path with a NUL byte raises ValueError
        return agent_outcome(source, broken_log(reason_of(error)))


def agent_outcome(source: str, record: Mapping[str, Any]) -> AgentOutcome:
    """Return the record of a log as a dictionary for users, with agent and repetition from the file name."""
    name, repetition = split_stem(stem_of(source))
    shared = {key: record[key] for key in AgentOutcome.__annotations__ if key in record}
    own = {
        "completion_status": status_of(record),
        "agent_name": name,
        "repetition": repetition or 0,
        "events": {event: record[event] for event in EVENTS if record[event]},
        "source": source,
    }
    return cast(AgentOutcome, shared | own)


def unreadable(path: str, reason: str) -> Parsed:
    """Return the result for an unreadable file: a row of logs if its name may be a log's, so that its run counts."""
    return Parsed("failed", reason, {"logs": [_row(broken_log(reason))]} if _may_be_log(path) else {})


def _may_be_log(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name != RESULTS and name not in NOT_LOGS_BY_NAME and not name.endswith(".traj.json")


def parse(path: str, data: bytes) -> Parsed:
    """Detect the kind of a file from its name and contents, and parse it.

    In a run's folder, every JSON file is a log, except a file of another shape whose name has no number
    (``notes.json``). A file with rows in both tables is a log only if it is in a run's folder.
    """
    may_be_log = _may_be_log(path)
    is_results_text = path.rpartition("/")[2] == RESULTS
    try:
        if is_results_text:
            value, kind = parse_results(data), "results"
        else:
            value, repaired = _decode_log(data) if may_be_log else decode_json(data)
            if may_be_log and (isinstance(value, AgentLog) or is_agent_log(value)):
                log = value if isinstance(value, AgentLog) else _as_log(value)
                notes = ", ".join(map(FLAG_LABELS.__getitem__, repaired))
                return Parsed("used", notes, {"logs": [_row(_read_log(log, repaired, data))]})
            kind = other_kind(value) or ("" if may_be_log else "another kind of file, from its name")
    except BrokenFileError as error:
        broken = unreadable(path, str(error))
        start = decode_start(data[:HEAD]) if may_be_log else None
        if isinstance(start, dict) and start and not start.keys() & LOG_KEYS:
            logs = broken.rows["logs"] if split_stem(stem_of(path))[1] is not None else []
            rows = {"logs": logs, "other_files": [_other_row(other=NO_TURNS)]}
            return Parsed("failed", f"{error} (it does not begin like an agent log)", rows)
        return broken

    if kind:
        others = []
        if kind in ("results", "agent profile"):  # the model is a string or ``{api, model, ...}``
            model = value.get("model")
            if isinstance(model, dict):
                model = model.get("model")
            model = model.strip() or None if isinstance(model, str) else None
            if kind == "agent profile":
                others.append(_other_row(profile_model=model))
            else:
                task_path = value["task_path"] if isinstance(value.get("task_path"), str) else None
                total = as_int(value.get("total"))
                others.append(_other_row(results_model=model, task_path=task_path, total=total))
        elif kind == "task definitions":
            defined = [str(value.get("task_id", stem_of(path)))] if is_task_definition(value) else list(value)
            others.append(_other_row(defined=defined))
        if is_results_text:
            return Parsed("used", "names the model", {"other_files": others})
        return Parsed("skipped", f"not an agent log: {kind}", {"other_files": others})

    logs = [_row(broken_log(f"TypeError: {NO_TURNS}"))]
    is_numbered = split_stem(stem_of(path))[1] is not None
    if isinstance(value, dict):
        is_memory = not value or bool((LOG_KEYS - {"name"}) & value.keys())
    else:
        is_memory = not value or not isinstance(value, list)
    if is_memory and is_numbered:
        return Parsed("failed", f"TypeError: {NO_TURNS}", {"logs": logs})
    rows = {"logs": logs if is_memory or is_numbered else [], "other_files": [_other_row(other=NO_TURNS)]}
    return Parsed("skipped", f"not an agent log: {NO_TURNS}", rows)


def _other_row(**values: Any) -> tuple:
    """Return a row of the table of other files."""
    return tuple({**_NO_OTHER_FILE, **values}.values())


def states_outcome(text: str) -> bool:
    """Return whether a text, of any role, contains a final message of the game that reports a score or success."""
    return any(OUTCOME.match(text, place) for place in OUTCOME_PHRASES.places_in(text))


def parse_results(data: bytes) -> dict[str, Any]:
    """Parse ``results.txt``, the repr of a Python dictionary of literals and ``nan``; else raise BrokenFileError."""
    if len(data) > MAX_RESULTS:
        raise BrokenFileError(f"ValueError: {len(data)} bytes are too many for a results file")
    try:
        value = ast.literal_eval(re.sub(r"(?<=: )-?(?:nan|inf)\b", "None", data.decode("utf-8-sig")).strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise BrokenFileError(f"{type(error).__name__}: no Python dictionary in it") from error
    if not isinstance(value, dict):
        raise BrokenFileError("TypeError: no dictionary in it")
    return value


def is_agent_log(value: Any) -> bool:
    """Return whether JSON is an agent's log, perhaps damaged: it has turns with roles, or turns and memory keys."""
    if isinstance(value, dict):
        turns = value.get("turns", ())
        if isinstance(turns, list) and any(isinstance(turn, dict) and "role" in turn for turn in turns):
            return True
        return turns == [] or ("turns" in value and bool(MEMORY_KEYS & value.keys()))
    turns = [turn for turn in value if isinstance(turn, dict)] if isinstance(value, list) else []
    roles = {turn["role"] for turn in turns if isinstance(turn.get("role"), str)}  # other chats have more keys
    return value == [] or (bool(roles & ROLES) and all(turn.keys() <= TURN_KEYS for turn in turns))


def other_kind(value: Any) -> str | None:
    """Name the kind of a decoded JSON file of an experiment that has no turns; None if the kind is unknown."""
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
    """Return whether JSON is a single task definition: it has a goal and at least one other key of a definition."""
    return isinstance(value, dict) and "goal" in value and len(TASK_KEYS & value.keys()) >= 2


def decode_log(data: bytes) -> dict[str, Any]:
    """Read a file as an agent's log, regardless of its name. Return a record with the columns of `table.RECORDS`."""
    try:
        value, repaired = _decode_log(data)
        return _read_log(value if isinstance(value, AgentLog) else _as_log(value), repaired, data)
    except BrokenFileError as error:
        return broken_log(str(error))


def decode_turns(data: bytes) -> tuple[dict[str, Any], Sequence[LoggedTurn]] | None:
    """Read a log of the usual shape. Return its record and its turns, or None for any other file."""
    try:
        value, repaired = _decode_log(data)
    except BrokenFileError:
        return None
    return (_read_log(value, repaired, data), value.turns) if isinstance(value, AgentLog) else None


def broken_log(error: str) -> dict[str, Any]:
    """Return the record of a log that could not be read."""
    return {**_read_log(AgentLog([]), [], b""), "agent_log_processed": False, "parsing_errors": [error]}


def _decode_log(data: bytes) -> tuple[Any, list[str]]:
    """Decode a log or any other JSON value. Also return a flag for each repair."""
    check_document(data, usual_size=USUAL_SIZE)
    try:
        known = KNOWN_LOG.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        known = None
    if known and known.turns and known.turns[0].role is not None:
        return known, []
    try:
        value, repaired = decode_json(data, LOG)
    except WrongShapeError:
        value, repaired = decode_json(data)
    else:
        log = AgentLog(turns=value) if isinstance(value, list) else value
        may_differ = log is not value or (log.turns and log.turns[0].role is None)  # other JSON may decode as a log
        if may_differ:
            value, _ = decode_json(data)
        if not may_differ or is_agent_log(value):
            value = log
    return value, [f"recovered_{name}" for name in repaired]


def _as_log(value: Any) -> AgentLog:
    """Return damaged JSON as a log; turns of another shape become empty. Raise WrongShapeError without any turns."""
    fields = value if isinstance(value, dict) else {"turns": value}
    turns = fields.get("turns")
    if not isinstance(turns, list) or (turns is value and not any(isinstance(turn, dict) for turn in turns)):
        raise WrongShapeError(f"TypeError: {NO_TURNS}")
    logged = []
    for turn in turns:
        parts = turn if isinstance(turn, dict) else {}
        texts = {key: parts[key] for key in ("role", "content") if isinstance(parts.get(key), str)}
        logged.append(LoggedTurn(**texts))
    return AgentLog(turns=logged, taskStart=fields.get("taskStart"))


def _read_log(log: AgentLog, repaired: Sequence[str], data: bytes) -> dict[str, Any]:
    """Return the record of a log; `data` are the bytes of its file, `repaired` the flags of repairs."""
    system: list[str] = []
    agent: list[str] = []
    others: list[str] = []
    for turn in log.turns:
        content, role = turn.content, turn.role
        if content is None:
            continue
        if role == "system":
            system.append(content)
        elif role == "assistant":
            agent.append(content)
        else:
            others.append(content)
    messages = len(system) + len(agent) + len(others)
    # searching the joined texts is safe: no event, final message or command contains a line break
    logged = "\n".join(system)
    said = "\n".join(agent)
    places = GAME_PHRASES.places_in(logged)

    events = dict.fromkeys(EVENTS, 0)
    for place in places:
        if match := EVENT.match(logged, place):
            events[str(match.lastgroup)] += 1

    stated: list[Final] = []
    scored: list[Final] = []
    unscored: list[Final] = []
    is_near = False
    for text in _texts_at(places, system):
        final = read_final(text)
        if final is None:
            is_near = is_near or NEARLY_FINAL.search(text) is not None
        elif final.status:
            stated.append(final)
        elif final.score is not None or final.flag:
            scored.append(final)
        else:
            unscored.append(final)
    # the first time-out decides the status, or else the first message that states another status, the first with a
    # score, or the first final message
    stated.sort(key=lambda final: _PRECEDENCE[final.status])
    deciding = next(iter(stated or scored or unscored), None)
    score = scored[0].score if scored else None

    start = positive_number(log.taskStart, LATEST_START)
    # The digest is equal for copies of a log: length, checksum and start in milliseconds. The start distinguishes logs
    # so well that the checksum then covers only both ends.
    if start is None:
        digest = f"{len(data):x}-{zlib.crc32(data):08x}"
    else:
        checksum = zlib.crc32(data[-ENDS:], zlib.crc32(data[:ENDS]))
        digest = f"{len(data):x}-{checksum:08x}-{int(start)}"

    flags = [scored[0].flag] if scored and scored[0].flag else []
    scores = {final.score for final in scored}
    if len(scores) > 1 or (stated and any(scores)):
        flags.append("conflicting")
    if is_near:
        flags.append("near_final")
    if deciding is None:
        quoting = "\n".join([said, *others])
        if any(FINAL.match(quoting, place) for place in FINAL_PHRASES.places_in(quoting)):
            flags.append("quoted_only")
    if events["restarts"]:
        flags.append("restarted")
    if messages < len(log.turns):
        flags.append("turns_skipped")
    return {
        "raw_score": score,
        "stated_status": stated[0].status if stated else None,
        "timed_out": any(final.status == CompletionStatus.TIMED_OUT for final in stated),
        "final_system_message": deciding.text if deciding else None,
        "agent_log_processed": True,
        "parsing_errors": [],
        "task_start": start,
        "message_count": messages,
        "command_count": len(COMMAND.findall(said)),
        **events,
        "flags": [*flags, *repaired],
        "digest": digest if agent or others else "",
    }


def _texts_at(places: Sequence[int], texts: Sequence[str]) -> list[str]:
    """Return the texts that contain the given places, in order, of all texts joined by line breaks; each text once."""
    found = list[str]()
    if not places:
        return found
    end = passed = 0  # the end of a text, and the number of places before it
    for text in texts:
        end += len(text) + 1
        before = passed
        passed = bisect_left(places, end)
        if passed > before:
            found.append(text)
    return found


def status_of(record: Mapping[str, Any]) -> CompletionStatus:
    """Return how a log ended, from its record alone: a score of 1 may be 1 %, but one above 1 must be a percentage."""
    score = record["raw_score"]
    if not record["agent_log_processed"]:
        return CompletionStatus.LOG_FILE_ERROR
    if record["stated_status"]:
        return CompletionStatus(record["stated_status"])
    if score is None:
        return CompletionStatus.NO_SCORE_LOGGED
    if score in (1, 100):
        return CompletionStatus.SUCCESS
    return CompletionStatus.FAILED_PARTIAL_SCORE if score > 0 else CompletionStatus.FAILED_SCORE_ZERO


class Final(NamedTuple):
    """A final message of a system turn."""

    text: str
    status: CompletionStatus | None  # if the message states it
    score: float | None
    flag: str = ""  # score_implied, score_not_a_number or ""


@lru_cache(maxsize=64)  # most logs end with one of a few messages
def read_final(content: str) -> Final | None:
    """Parse a system message whose whole text is a known final message; None for any other message."""
    text = content.strip()
    match = FINAL.fullmatch(text)
    if match is None:
        return None
    if match.lastgroup == "succeeded":
        return Final(text, None, 1.0, "score_implied")
    if match["score"] is None:
        return Final(text, STATED.get(str(match.lastgroup)), None)
    score = float(match["score"]) if NUMBER.fullmatch(match["score"]) else math.nan
    if math.isfinite(score):
        return Final(text, None, score)
    return Final(text, None, None, "score_not_a_number")


def stem_of(source: str) -> str:
    """Return a log's file name without its extension."""
    name = source[source.rfind("/") + 1 :]
    return name[:-5] if name[-5:].lower() == ".json" else name


@lru_cache(maxsize=4096)  # the folders of runs have the same few file names
def split_stem(stem: str) -> tuple[str, int | None]:
    """Split the stem of a log's file name into name and number: ``Andy_0_1`` into ``Andy_0``, 1; ``andy`` has none."""
    name, _, number = stem.rpartition("_")
    if name and number.isascii() and number.isdigit() and len(number) < 10:
        return name, int(number)
    return stem, None


def positive_number(value: Any, highest: float = sys.float_info.max) -> float | None:
    """Convert a number or a numeric string to float; None unless it is above 0 and at most `highest`."""
    try:
        number = float(value) if not isinstance(value, bool) else 0.0
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 < number <= highest else None


def as_int(value: Any) -> int | None:
    """Convert a whole number or a string with one to int; None for others, and if a float could not represent it."""
    try:
        is_whole = not isinstance(value, bool) and abs(float(value)) < MAX_INT and float(value) == int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(value) if is_whole else None
