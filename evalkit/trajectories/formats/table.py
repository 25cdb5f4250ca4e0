"""A table of runs, with a row for each: CSV, JSON lines, a JSON array, or Parquet, with columns named in any usual way."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from evalkit.io import SourceError
from evalkit.kinds import Parsed
from evalkit.trajectories.format import Message, chat_messages, number_of, run_row, text_of, used

NAMES = {  # columns of runs, and what people call them; the first that is there counts, those on a line are equals
    "task_id": [
        ("task_id", "task", "task_name", "instance_id", "question_id", "problem_id", "sample_id", "test_id"),
        ("id", "question", "instance", "problem"),
    ],
    "model_name": [("model", "model_name", "model_id", "llm"), ("agent", "agent_name", "system")],
    "score": [("score", "reward", "accuracy", "grade", "points", "value")],
    "is_successful": [("success", "is_successful", "correct", "is_correct", "passed", "resolved", "solved", "pass")],
    "repetition": [("repetition", "trial", "epoch", "attempt", "repeat"), ("run", "run_number")],
    "seed": [("seed",)],
    "dataset": [("dataset", "benchmark", "suite")],
    "status": [("status", "exit_reason", "termination_reason", "exit_status")],
    "started": [("started", "started_at", "start_time", "timestamp", "created_at", "date")],
    "duration": [("duration", "duration_s", "seconds", "time_s", "total_time", "latency", "time", "elapsed")],
    "turns": [("turns", "n_turns", "steps", "n_steps", "num_steps")],
    "tokens_in": [("tokens_in", "input_tokens", "prompt_tokens", "n_input_tokens")],
    "tokens_out": [("tokens_out", "output_tokens", "completion_tokens", "n_output_tokens")],
    "cost": [("cost", "cost_usd", "total_cost", "price", "usd")],
    "error": [("error", "exception", "error_message")],
}
MESSAGES = ("messages", "conversation", "trajectory")
_TRUTH = {"true": 1.0, "yes": 1.0, "pass": 1.0, "passed": 1.0, "correct": 1.0, "resolved": 1.0, "success": 1.0}
_TRUTH |= {"false": 0.0, "no": 0.0, "fail": 0.0, "failed": 0.0, "incorrect": 0.0, "unresolved": 0.0, "failure": 0.0}
_LEAST = ("task_id", "score")  # what a table of runs has; a column of success stands for a score


def recognises(columns: Sequence[str]) -> str:
    """Return ``table of runs`` if the columns tell tasks and scores; empty for any other table."""
    found = {role for role in NAMES if any(_found(role, columns, level) for level in range(len(NAMES[role])))}
    is_table = "task_id" in found and found & {"score", "is_successful"} and len(columns) > 2
    return "table of runs" if is_table else ""


def header_of(head: bytes) -> list[str]:
    """Return the columns that the first line of text names."""
    line = head.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip()
    if line.startswith("{"):
        try:
            return list(msgspec.json.decode(line))
        except msgspec.DecodeError:
            return []
    return next(csv.reader([line], delimiter="\t" if "\t" in line else ","), [])


def parse(path: str, data: bytes) -> Parsed:
    """Return a run for each row, all of whose cells stand in `extra`: which column means what is decided for all files."""
    rows = rows_of(path, data)
    if not rows:
        return Parsed("skipped", "a table without rows")
    return used(
        [
            run_row(part=str(at), format="table", extra=text_of({k: v for k, v in row.items() if k not in MESSAGES}))
            for at, row in enumerate(rows)
        ]
    )


def rows_of(path: str, data: bytes) -> list[dict[str, Any]]:
    """Read the rows of a table; ValueError or an error of Arrow for one that can't be read."""
    if data.startswith(b"PAR1"):
        return pq.read_table(pa.BufferReader(data)).to_pylist()
    text = data.decode("utf-8-sig")
    if text.lstrip().startswith("["):
        rows = msgspec.json.decode(data)
    elif text.lstrip().startswith("{"):
        rows = [msgspec.json.decode(line) for line in text.splitlines() if line.strip()]
    else:
        first = text.partition("\n")[0]
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if "\t" in first else ","))
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows that are no objects")
    return [{str(key): value for key, value in row.items() if key is not None} for row in rows]


def messages(path: str, data: bytes, part: str) -> list[Message]:
    """List the messages of a row."""
    row = rows_of(path, data)[int(part)]
    found = next((row[name] for name in MESSAGES if row.get(name)), None)
    return chat_messages(msgspec.json.decode(found) if isinstance(found, str) else found)


def meanings(columns: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return which column of a table stands for which column of runs.

    Parameters
    ----------
    columns : sequence of str
        Of the table.
    given : mapping of str to str
        Column of runs to column of the table; the rest is told by name.

    Raises
    ------
    SourceError
        For a given column that is not there, for several that could be meant, and for a table without tasks or scores.
    """
    there = ", ".join(columns)
    for role, name in given.items():
        if role not in NAMES:
            raise SourceError(f"{role!r} is no column of runs; there are {', '.join(NAMES)}")
        if name not in columns:
            raise SourceError(f"no column {name!r}; there are {there}")
    found = dict(given)
    for role, levels in NAMES.items():
        for level in range(len(levels)):
            names = [name for name in _found(role, columns, level) if name not in found.values()]
            if role in found or not names:
                continue
            if len(names) > 1:
                raise SourceError(
                    f"columns {' and '.join(names)} could both be the {role}; say which: --column {role}={names[0]}"
                )
            found[role] = names[0]
    for role in _LEAST:
        if role not in found and not (role == "score" and "is_successful" in found):
            raise SourceError(f"no column for the {role}; there are {there}; say which: --column {role}=NAME")
    return found


def _found(role: str, columns: Sequence[str], level: int) -> list[str]:
    wanted = NAMES[role][level]
    return [name for name in columns if name.strip().lower().replace(" ", "_").replace("-", "_") in wanted]


def mapped(rows: Sequence[Mapping[str, Any]], meaning: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of runs that a table tells; numbers and truths that can't be read are missing."""
    out = {}
    for role, name in meaning.items():
        values = pd.Series([row.get(name) for row in rows], dtype="object")
        if role in ("score", "is_successful", "duration", "cost", "repetition", "turns", "tokens_in", "tokens_out"):
            out[role] = values.map(_number).astype("float64")
        else:
            out[role] = values.map(lambda value: None if value in (None, "") else text_of(value))
    return pd.DataFrame(out)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        text = value.strip().lower()
        if text in _TRUTH:
            return _TRUTH[text]
        try:
            value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            return None
    return number_of(value)
