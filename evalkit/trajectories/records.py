"""Rows of records, which the readers of all formats fill, and the statuses that make a run an outcome."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from evalkit._notes import NO_NOTES, Notes
from evalkit.io import Entry
from evalkit.io.paths import CELL, check_size, most_bytes
from evalkit.kinds import Parsed
from evalkit.trajectories.chat import content_text
from evalkit.trajectories.json_values import count_of, number_of, seconds_between, text_of, time_of
from evalkit.trajectories.table import RECORDS, RUNS, TABLES

TITLE = "agent trajectory"

# A status means the same in all formats and in tables of runs. A key only names a format that writes the status.
_AGENT_FAILED = {  # statuses of runs that failed because of their agent, unless there is a score
    "harbor": (
        "AgentTimeoutError ContextWindowExceededError OutputTokenExceededError ContextLengthExceededError"
        " OutputLengthExceededError AgentSafetyRefusalError ContentPolicyViolationError"
    ),
    "inspect_ai": "limit_context limit_message limit_token limit_time limit_working limit_cost limit_turn",
    "tau2-bench": "max_steps timeout too_many_errors agent_error context_window_exceeded judge_stop",
    "SWE-bench": "empty_patch unresolved",
    "Terminal-Bench": "agent_timeout context_length_exceeded output_length_exceeded fatal_llm_parse_error",
}
_ENDED = {  # statuses of runs that ended regularly, whose score is the outcome
    "": "completed",
    "inspect_ai": "limit_operator limit_custom",
    "tau2-bench": "user_stop agent_stop",
    "Codex": "turn_aborted unended",  # aborted, mostly by the user; killed or still running
    "OpenHands": "stuck_in_loop max_iterations max_budget",
    "SWE-agent": (
        "Submitted submitted LimitsExceeded TimeExceeded RepeatedFormatError exit_cost exit_context exit_format"
        " exit_forfeit exit_command_timeout exit_total_execution_time submitted_(exit_cost) submitted_(exit_context)"
        " submitted_(exit_format) submitted_(exit_command_timeout) submitted_(exit_total_execution_time)"
    ),
}
AGENT_FAILED = frozenset(" ".join(_AGENT_FAILED.values()).split())
ENDED = frozenset(" ".join(_ENDED.values()).split())
# something other than the agent ended runs of all other statuses: they are not measured, even with a logged score


class Plan(NamedTuple):
    """A row of `PLANS`."""

    model_name: str | None = None
    dataset: str | None = None
    task_id: str = ""
    planned: int | None = None
    retried: int | None = None


class Published(NamedTuple):
    """A row of `PUBLISHED`."""

    model_name: str | None = None
    agent: str | None = None
    dataset: str | None = None
    metric: str | None = None
    value: float | None = None
    n: float | None = None


class Fact(NamedTuple):
    """A row of `FACTS`."""

    fact: str
    task_id: str = ""
    model_name: str = ""
    value: str = ""


@dataclass(eq=False, slots=True)
class Run:
    """A run during assembly. Its fields are named like columns of records (`RUNS`) or frames; None means missing."""

    # from records
    source: str
    part: str
    log_id: str | None
    format: str
    created: str | None
    dataset: str | None
    task_checksum: str | None
    document_hash: str | None
    agent: str | None
    agent_version: str | None
    exit_reason: str | None
    target: str | None
    answer_length: int | None
    tokens_cache: int | None
    uncounted: str | None
    limits: str | None
    temperature: float | None
    retries: int | None
    error: str | None
    continues: str | None
    extra: str | None
    model_name: str | None
    experiment: str | None
    task_id: str
    repetition: int | None
    seed: str | None
    status: str
    started: datetime | None
    duration: float | None
    turns: int | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    # set during assembly
    run_id: str = ""
    task_type: str | None = None
    score: float | None = None
    is_successful: bool | None = None
    task_version: str | None = None
    plan: str | None = None
    score_key: str | None = None
    lower_is_better: list[str] | None = None  # names of metrics
    is_turned: bool = False
    is_share: bool = False
    is_copy: bool = False
    is_judged: bool = False
    is_left_out: bool = False  # the records turned out not to be a separate run
    trajectories: list[str] = field(default_factory=list)
    run_flags: list[str] = field(default_factory=list)
    model_source: str = "log"


_FIELDS = [one.name for one in fields(Run)]
LOGGED = [one.name for one in fields(Run) if one.default is MISSING and one.default_factory is MISSING]
OF_RUNS = [column for column in TABLES["runs"] if column.name in _FIELDS]  # other common columns stay missing
Runs = Sequence[Run]
Rows = list[dict[str, Any]]  # rows of a table of records


class Joined(NamedTuple):
    """What the `join` of a format learns from the other files of a source."""

    plan_of: Mapping[str, str | None] = MappingProxyType({})  # file with the plan, by the file of the runs
    without_plan: Collection[str] = ()  # files to ignore as plans: another file has the plan, or the runs are copies
    entries: Sequence[Entry] = ()  # entries that replace the files' entries in the ledger
    filters: Mapping[str, Mapping[str, str]] = MappingProxyType({})  # names of lm-eval's filters, by the file of runs
    notes: Notes = NO_NOTES


def run_rows(columns: Mapping[str, Iterable[Any]], shared: Mapping[str, Any] = MappingProxyType({})) -> list[tuple]:
    """Return rows of `RUNS` from logged columns and values that all rows share; values of a wrong type are missing."""
    if unknown := (columns.keys() | shared.keys()) - _COLUMNS.keys():
        raise TypeError(f"no columns of runs: {sorted(unknown)}")
    cells: list[Iterable[Any]] = []
    most = most_bytes() // (CELL * len(_COLUMNS))
    for name, read in _COLUMNS.items():
        given = columns.get(name, [shared.get(name)])
        if read is None:  # a text column
            values = [value or None if isinstance(value, str) or value is None else text_of(value) for value in given]
        else:
            values = [None if value is None else read(value) for value in given]
        if len(values) > most:  # a small file may contain many rows
            check_size(CELL * len(_COLUMNS) * len(values))
        if name in _MISSING:
            values = [value or _MISSING[name] for value in values]
        cells.append(values if name in columns else repeat(values[0]))
    return list(zip(*cells, strict=False))


def run_row(*, ended: Any = None, **values: Any) -> tuple:
    """Return one row of `RUNS`, like `run_rows`; without a logged duration, it is the time from start to `ended`."""
    if number_of(values.get("duration")) is None:
        values["duration"] = seconds_between(values.get("started"), ended)
    return run_rows({name: [value] for name, value in values.items()})[0]


def counted(**amounts: float | None) -> dict[str, Any]:
    """Return columns of a run from logged amounts; 0 means not counted: it becomes missing, named in `uncounted`."""
    zeros = [name for name, amount in amounts.items() if amount == 0]
    return {**amounts, **dict.fromkeys(zeros), "uncounted": ", ".join(zeros)}


_Cells = Sequence[tuple]


def used(
    runs: _Cells = (), scores: _Cells = (), plans: _Cells = (), facts: _Cells = (), reason: str = "", **others: _Cells
) -> Parsed:
    """Return the parsed contents of a log or of a file that describes logs; `others` are more tables of `RECORDS`."""
    rows = {"runs": runs, "scores": scores, "plans": plans, "facts": facts, **others}
    return Parsed("used", reason, {name: rows.get(name, ()) for name in RECORDS})


def score_rows(part: str, scores: Any, grades: Mapping[str, float] = MappingProxyType({})) -> list[tuple]:
    """Return the rows of `SCORES` for one run; a key with several values gets a row for each."""
    rows = []
    for key, score in scores.items() if isinstance(scores, dict) else ():
        for name, value in score.items() if isinstance(score, dict) else (("", score),):
            number = grades.get(value) if isinstance(value, str) else number_of(value)
            rows.append((part, f"{key}/{name}" if name else key, number, content_text(value)))
    return rows


def by_file(runs: Runs, of_format: str) -> dict[str, list[Run]]:
    """Return the runs of a format, grouped by file."""
    files: dict[str, list[Run]] = {}
    for run in runs:
        if run.format == of_format:
            files.setdefault(run.source, []).append(run)
    return files


def stated_by(facts: Rows, of_format: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what files of a format state about runs, as tuples of file, task (empty for all) and values."""
    own = [fact for fact in facts if fact["fact"] == of_format]
    return [(fact["source"], fact["task_id"], msgspec.json.decode(fact["value"])) for fact in own]


_READERS: dict[str, Callable[[Any], Any]] = {"int?": count_of, "float": number_of, "time": time_of}  # the rest is text
_COLUMNS = {column.name: _READERS.get(column.dtype) for column in RUNS}
_MISSING = {"part": "", "status": "completed"}
