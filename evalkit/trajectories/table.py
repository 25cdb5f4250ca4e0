"""The columns of the frames of trajectories."""

from evalkit.io import Column
from evalkit.kinds import run_columns
from evalkit.trajectories.format import RUNS, SCORES

RUN_ID = Column("run_id", "str", "the run; see the table of runs")
FLAGS = {
    "superseded": "a later log repeats this evaluation: the run counts in no rate",
    "duplicate": "another file holds the same run: it counts in no rate",
    "overruled": "the outcome was stated by the file of outcomes",
    "no_outcome": "nothing says whether the task was solved",
}
_COMMON = frozenset(column.name for column in run_columns())
TABLES = {
    "runs": run_columns(
        *(column for column in RUNS if column.name not in _COMMON and column.name != "continues"),
        Column("score_key", "name", "which of the scores counts"),
        Column("trajectory", "str", "the file of the messages, where it is another than the source"),
        score="as logged",
    ),
    "scores": (RUN_ID, *SCORES[1:]),
}
LAZY_TABLES = {
    "turns": (
        RUN_ID,
        Column("turn", "int", "number of the message, from 0", "count"),
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
        Column("turn", "int", "number of the message that calls, from 0", "count"),
        Column("name", "name", "the tool"),
        Column("arguments", "str", "what it was called with"),
        Column("result", "str", "what it answered; missing if nothing was logged"),
        Column("is_error", "bool", "the answer is an error"),
    ),
}
