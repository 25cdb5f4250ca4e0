"""Define the tables of trajectories: the columns of records and frames, flags and endings."""

from collections.abc import Sequence
from typing import NamedTuple

from evalkit.io import Column
from evalkit.kinds import run_columns
from evalkit.kinds.runs import AS_LOGGED, JUDGED

NAME = "trajectories"
# columns of all kinds that logs of trajectories may contain
_COMMON = "experiment task_id model_name repetition seed started duration turns tokens_in tokens_out cost status"
RUNS = (  # read from files; nearly all of these columns are also columns of the frame of runs
    Column("part", "str", "run within its file; empty if the file contains one run"),
    Column("log_id", "str", "id of the run in its log"),
    Column("format", "str", "format of the log"),
    Column("created", "str", "start of the job that the run belongs to"),
    Column("dataset", "name", "benchmark of the task"),
    Column("task_checksum", "str", "digest of the task's files, or its version"),
    Column("document_hash", "str", "digest of the document that is the task"),
    Column("agent", "name", "program that ran the model"),
    Column("agent_version", "str", "its version"),
    Column("exit_reason", "line", "reason why the run ended, as logged"),
    Column("target", "line", "expected result of the run, such as the right answer"),
    Column("answer_length", "int?", "characters of the final answer, if the log contains it", "count"),
    Column("tokens_cache", "int?", "input tokens from a cache", "tokens"),
    Column("uncounted", "line", "tokens or cost that the log states as 0, which are missing"),
    Column("limits", "line", "limits of the run"),
    Column("temperature", "float", "sampling temperature of the model, if set"),
    Column("retries", "int?", "number of restarts after an error", "count"),
    Column("error", "line", "exception of the run, in one line"),
    Column("continues", "str", "file of the trajectory that continues this one"),
    Column("extra", "str", "other values of the run in the log, as JSON"),
    *(column for column in run_columns() if column.name in _COMMON.split()),
)
SCORES = (
    Column("part", "str", "run within its file"),
    Column("key", "name", "name of the score: a reward, a scorer"),
    Column("value", "float", "the score; missing if it is not a number"),
    Column("text", "line", "the score as logged"),
)
PLANS = (
    Column("model_name", "name", "the model; missing for all models together"),
    Column("dataset", "name", "benchmark of the task"),
    Column("task_id", "name", "the task; empty for all tasks together"),
    Column("planned", "int?", "planned trials", "count"),
    Column("retried", "int?", "trials that were repeated after an error", "count"),
)
PUBLISHED = (  # figures over many runs, as published in files
    Column("model_name", "name", "the model"),
    Column("agent", "name", "the program that ran the model"),
    Column("dataset", "name", "what the tasks belong to, or a group of such"),
    Column("metric", "name", "what was published"),
    Column("value", "float", "the figure; of rates, the share from 0 to 1"),
    Column("n", "int?", "runs that it is of", "count"),
)
FACTS = (  # what a file states about runs in other files
    Column(
        "fact",
        "str",
        "model, outcome: of a task's run; the name of a format: of all runs, as JSON; subagent: a file of steps;"
        " part_of, forked_from: a session; unknown: the number of records of a type",
    ),
    Column("task_id", "name", "task of the entry; empty for all"),
    Column("model_name", "name", "model of the entry; empty for all"),
    Column("value", "str", "what the file states"),
)
CALLS = (  # calls of models; several files may contain the same call
    Column("call_id", "str", "its id, which is the same in another file; empty for all calls of a model together"),
    Column("model_name", "name", "the model"),
    Column("tokens_in", "int?", "tokens that it read, with those from a cache", "tokens"),
    Column("tokens_cache", "int?", "of these, those from a cache", "tokens"),
    Column("tokens_out", "int?", "tokens that it wrote", "tokens"),
    Column("is_replayed", "bool?", "the file copied it from another session; missing where it doesn't tell"),
)
TOOLS = (  # calls of tools, each within a call of a model
    Column("call_id", "str", "the call of a model that calls the tool"),
    Column("tool", "name", "the tool"),
    Column("is_error", "bool?", "the call failed; missing without a result"),
)
RECORDS = {
    "runs": RUNS,
    "scores": SCORES,
    "plans": PLANS,
    "published": PUBLISHED,
    "facts": FACTS,
    "calls": CALLS,
    "tools": TOOLS,
}

RUN_ID = Column("run_id", "str", "the run; see the table of runs")
FLAGS = {
    "superseded": "a later log repeats this evaluation; rates exclude the run",
    "duplicate": "another file contains the same run; rates exclude it",
    "overruled": "the outcome is from the file of --outcomes",
    JUDGED: "the outcome is the verdict of a judge, by the file of outcomes",
    "no_outcome": "the log does not show whether the task was solved",
    "several_models": "several models took part: the run counts for the one that wrote most of its own answers",
}
# columns of records that are no columns of runs: `task_type` contains the dataset, and `continues` only joins files
_ONLY_RECORDED = {column.name for column in run_columns()} | {"dataset", "continues"}


def _in_frames(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return columns of records for a frame, in which the dataset is the `task_type`, as in the frame of runs."""
    return tuple(column._replace(name="task_type") if column.name == "dataset" else column for column in columns)


class Ending(NamedTuple):
    """How runs ended: the text, and the style in figures."""

    text: str
    colour: str
    hatch: str = ""


ENDINGS = {
    "success": Ending("success", "#009E73"),
    "scored": Ending("scored only", "#56B4E9", ".."),
    "failure": Ending("failure", "#D55E00", "//"),
    "failure, stopped": Ending("stopped at a limit", "#E69F00", "xx"),
    "not measured": Ending("not measured", "#595959", "++"),
    "no outcome": Ending("no outcome logged", "#B8BDC6", "--"),
    "running": Ending("still running", "#FFFFFF", "oo"),
}
_SUMS = [column for column in CALLS if column.dtype == "int?"]
TABLES = {
    "runs": run_columns(
        *(column for column in RUNS if column.name not in _ONLY_RECORDED),
        Column("score_key", "name", "name of the score in use"),
        Column("is_share", "bool", "all scores of its dataset that were loaded are from 0 to 1"),
        Column("task_version", "str", "digest of the task's files, if the data contain several versions of a task"),
        Column("trajectories", "list", "files of its messages, if they are not in its source"),
        Column("plan", "str", "file with the number of planned trials"),
        score=AS_LOGGED,
    ),
    "scores": (RUN_ID, *SCORES[1:]),
    "plans": (Column("source", "str", "file with the plan"), *_in_frames(PLANS)),
    "published": (Column("source", "str", "file with the figure"), *_in_frames(PUBLISHED)),
    # usage and tools of sessions, in which several models may take part; each call counts once
    "usage": (RUN_ID, CALLS[1], Column("calls", "int?", "its calls, unless only sums are logged", "count"), *_SUMS),
    "tools": (
        RUN_ID,
        CALLS[1],
        TOOLS[1],
        Column("calls", "int", "calls of the tool by the model", "count"),
        Column("results", "int", "of these, those whose result was logged", "count"),
        Column("errors", "int", "of the results, those that are errors", "count"),
    ),
}
_MESSAGE = Column("message", "int", "position of the message in the run, from 0")
LAZY_TABLES = {
    "messages": (
        RUN_ID,
        Column("turn", "int", "number of the first turn that shows the message, from 1, as in the frame of turns"),
        _MESSAGE,
        Column("role", "str", "system, user, assistant or tool"),
        Column("text", "str", "what it says"),
        Column("reasoning", "str", "reasoning of the model, if logged"),
        Column("tool_calls", "int", "tools that it calls", "count"),
        Column("when", "str", "its time, as logged"),
        Column("tokens_in", "int?", "input tokens", "tokens"),
        Column("tokens_out", "int?", "tokens that it wrote", "tokens"),
        Column("cost", "float", "what it cost", "US dollars"),
    ),
    "tool_calls": (
        RUN_ID,
        Column("turn", "int", "number of the turn that shows the call, from 1, as in the frame of turns"),
        _MESSAGE,
        Column("name", "name", "the tool"),
        Column("arguments", "str", "arguments of the call"),
        Column("result", "str", "result of the call; missing if not logged"),
        Column("is_error", "bool", "the result is an error"),
    ),
}
