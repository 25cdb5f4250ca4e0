"""Define the columns, flags and endings in the frames of trajectories."""

from collections.abc import Sequence
from typing import NamedTuple

from evalkit.io import Column
from evalkit.kinds import run_columns
from evalkit.kinds.runs import AS_LOGGED, JUDGED
from evalkit.trajectories.records import CALLS, PLANS, PUBLISHED, RUNS, SCORES, TOOLS

NAME = "trajectories"
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
