"""A table of runs, with a row for each: CSV, JSON lines, a JSON array, or Parquet.

What its columns mean is told by their names, once the user's options are known: `evalkit.kinds.columns`.
"""

import csv
import io
import os
import re
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from evalkit._words import counted_noun
from evalkit.io.read import decode_start, without_mark
from evalkit.kinds import Parsed
from evalkit.kinds.columns import is_table_of_runs
from evalkit.trajectories.chat import Beside, Message, chat_messages
from evalkit.trajectories.format import run_row, used
from evalkit.trajectories.values import text_of

MESSAGES = ("messages", "conversation", "trajectory")  # columns that hold what was said
_TOLD = re.compile(r"\Asep=.\r?\n")  # a first line for spreadsheets: what stands between cells
_DECIMALS = re.compile(r"\A(-?\d+),(\d+%?)\Z")
_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")


def is_named_table(path: str, data: bytes) -> bool:
    """Return whether a file is a table by its name, or by the mark of Parquet."""
    return data.startswith(b"PAR1") or os.path.splitext(path)[1].lower() in _ENDINGS


def recognises(head: bytes) -> str:
    """Return ``table of runs`` for the first bytes of one, and what else is a table; empty for any other file.

    Options may say what columns mean, so a table of other columns is of this kind, too. `csv` or Arrow may raise.
    """
    start = decode_start(head)
    if head.startswith(b"PAR1"):
        if not head.endswith(b"PAR1"):
            return "Parquet file"  # the names of its columns stand at its end
        columns = pq.read_schema(pa.BufferReader(head)).names
    elif isinstance(start, list):
        columns = list(start[0]) if start and isinstance(start[0], dict) else []
    else:
        line, _, rest = _TOLD.sub("", without_mark(head)[0].decode("utf-8", "replace")).partition("\n")
        line, second = line.strip(), rest.partition("\n")[0].strip()
        if start is not None and not line.endswith("}"):
            return ""  # a document, not lines
        columns = list(start) if isinstance(start, dict) else _fields(line)
        is_table = start is None and all(columns) and 2 < len(set(columns)) == len(columns) == len(_fields(second))
        if is_table and not is_table_of_runs(columns):
            return "table"
    return "table of runs" if is_table_of_runs(columns) else ""


def parse(path: str, data: bytes) -> Parsed:
    """Return a run for each row, all of whose cells but the messages stand in `extra`."""
    rows, reason = _rows(data, messages=False)
    runs = [
        run_row(part=str(at), format="table", extra=text_of({k: v for k, v in row.items() if k not in MESSAGES}))
        for at, row in enumerate(rows)
    ]
    return used(runs, reason=reason) if runs else Parsed("skipped", "a table without rows")


def messages(data: bytes, part: str, beside: Beside) -> list[Message]:
    """List the messages of a row."""
    row = _rows(data)[0][int(part)]
    found = next((row[name] for name in MESSAGES if row.get(name)), None)
    return chat_messages(msgspec.json.decode(found) if isinstance(found, str) else found)


def _rows(data: bytes, *, messages: bool = True) -> tuple[list[dict[str, Any]], str]:
    """Read the rows of a table, and what was left out; ValueError for one that can't be read."""
    if data.startswith(b"PAR1"):
        file = pq.ParquetFile(pa.BufferReader(data))
        names = [name for name in file.schema_arrow.names if messages or name not in MESSAGES]
        return file.read(names).to_pylist(), ""
    data = without_mark(data)[0]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")  # as spreadsheets write it
    broken, start = 0, text.lstrip()[:1]
    if start == "[":
        rows = msgspec.json.decode(text)
    elif start == "{":
        rows = []
        for line in filter(str.strip, text.splitlines()):
            try:
                rows.append(msgspec.json.decode(line))
            except msgspec.DecodeError:  # such as a last line that is still being written
                broken += 1
    else:
        text = _TOLD.sub("", text)
        delimiter = _delimiter(text.partition("\n")[0])
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        if delimiter == ";":  # where a comma stands before decimals
            rows = [{key: _DECIMALS.sub(r"\1.\2", cell or "") for key, cell in row.items() if key} for row in rows]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows that are no objects")
    rows = [{str(key): value for key, value in row.items() if key is not None} for row in rows]
    return rows, f"{counted_noun(broken, 'broken line')} left out" * bool(broken)


def _fields(line: str) -> list[str]:
    return next(csv.reader([line], delimiter=_delimiter(line)), [])


def _delimiter(line: str) -> str:
    return max(",\t;|", key=line.count)
