"""The columns of the frames of trajectories."""

from typing import NamedTuple

from evalkit.io import Column
from evalkit.kinds import run_columns
from evalkit.kinds.runs import AS_LOGGED, JUDGED
from evalkit.trajectories.records import PLANS, RUNS, SCORES

NAME = "trajectories"
RUN_ID = Column("run_id", "str", "the run; see the table of runs")
FLAGS = {
    "superseded": "a later log repeats this evaluation: the run counts in no rate",
    "duplicate": "another file holds the same run: it counts in no rate",
    "overruled": "the outcome was stated by the file of outcomes",
    JUDGED: "the outcome is the verdict of a judge, by the file of outcomes",
    "no_outcome": "nothing says whether the task was solved",
}
EXCLUDING_FLAGS = ("superseded", "duplicate")  # of runs that count in no rate
_COMMON = {column.name for column in run_columns()}


class Ending(NamedTuple):
    """How runs ended: in words, and the look in figures."""

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
TABLES = {
    "runs": run_columns(
        *(column for column in RUNS if column.name not in _COMMON | {"continues"}),
        Column("score_key", "name", "which of the scores counts"),
        Column("task_version", "str", "digest of the task's files, where these data hold several of one task"),
        Column("trajectories", "list", "the files of its messages, where these are not its source"),
        Column("plan", "str", "the file that says how many trials were planned"),
        *(Column(f"flag_{name}", "bool", meaning) for name, meaning in FLAGS.items()),
        score=AS_LOGGED,
    ),
    "scores": (RUN_ID, *SCORES[1:]),
    "plans": (Column("source", "str", "the file that says it"), *PLANS),
}
_MESSAGE = Column("message", "int", "place of the message in the run, from 0")
LAZY_TABLES = {
    "messages": (
        RUN_ID,
        Column("turn", "int", "number of the first turn that shows the message, from 1, as in the frame of turns"),
        _MESSAGE,
        Column("role", "str", "system, user, assistant or tool"),
        Column("text", "str", "what it says"),
        Column("reasoning", "str", "what the model thought, where that was logged"),
        Column("tool_calls", "int", "tools that it calls", "count"),
        Column("when", "str", "its time, as logged"),
        Column("tokens_in", "int?", "tokens that the model read", "tokens"),
        Column("tokens_out", "int?", "tokens that it wrote", "tokens"),
        Column("cost", "float", "what it cost", "US dollars"),
    ),
    "tool_calls": (
        RUN_ID,
        Column("turn", "int", "number of the turn that shows the call, from 1, as in the frame of turns"),
        _MESSAGE,
        Column("name", "name", "the tool"),
        Column("arguments", "str", "what it was called with"),
        Column("result", "str", "what it answered; missing if nothing was logged"),
        Column("is_error", "bool", "the answer is an error"),
    ),
}
