"""Read tables of runs from CSV, JSON lines, JSON or Parquet; `evalkit.kinds.headers` interprets the columns."""

import codecs
import csv
import io
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evalkit._text import counted_noun
from evalkit.io import decode_json, decode_start
from evalkit.io.paths import CELL, CHARACTER, check_size, check_text, most_bytes
from evalkit.io.read import without_mark
from evalkit.kinds import Parsed
from evalkit.kinds.headers import OWN_TASK, fields, is_table_of_runs, roles_of
from evalkit.trajectories.chat import Message, OpenNamed, chat_messages
from evalkit.trajectories.json_lines import Lines, read_lines
from evalkit.trajectories.json_values import objects, text_of
from evalkit.trajectories.records import run_rows, used

MESSAGES = ("messages", "conversation", "trajectory", "history", "traj")  # usual columns of messages
CHATS = ("messages", "history")  # columns whose messages make a row a run even without a score
_MOST_NAMED = 3  # maximum number of doubtful cells that the ledger names
_MOST_HEADER = 2**24  # number of characters in which the header is searched
_IN_CELL = re.compile(r'(?:\A|[,;\t|])"[^"]*\Z')  # the end of a line that breaks within a cell
_DECIMALS = re.compile(r"\A(-?\d+),(\d+\s*%?)\Z")
csv.field_size_limit(2**28)  # characters; many transcripts exceed the default of 131,072


def is_named_table(path: str, data: bytes) -> bool:
    """Return whether a file is a table, judged by its name, the magic bytes of Parquet, or a JSON object per line."""
    is_named = path.lower().endswith((".csv", ".tsv", ".jsonl", ".ndjson"))
    return is_named or data.startswith(b"PAR1") or _has_object_lines(data)


def _has_object_lines(data: bytes) -> bool:
    """Return whether one JSON object ends before the first line break and another begins after it."""
    at = data.find(b"\n", 1)
    begins_behind = re.search(rb"\}\s*\n\s*\{", data[max(0, at - 9) : at + 9]) is not None
    return begins_behind and data[:at].lstrip().startswith(b"{")


def recognises(head: bytes) -> str:
    """Return the title of a table from its first bytes, or "" if the file is not a table; may raise any error."""
    start = decode_start(head)
    if head.startswith(b"PK") and b"[Content_Types].xml" in head:
        return "spreadsheet"
    if head.startswith(b"PAR1"):
        if not head.endswith(b"PAR1"):
            return "Parquet file"  # the names of its columns are at its end
        columns = pq.read_schema(pa.BufferReader(head)).names
    elif start is not None:
        return title_of(read_rows(head, messages=False)[0] if _has_object_lines(head) else start)
    else:
        line, below, *_ = [*_from_header(text := _text(head, [])), "", ""]
        is_other = line.startswith("|") or "\0" in text  # a Markdown table is not a table of runs
        columns = [] if is_other else _fields(line)
        n = len(columns)
        is_table = all(columns) and n > 1 and len(set(columns)) == n and len(_fields(below)) == n
        if is_table and not is_table_of_runs(columns):
            return "table"
    return "table of runs" if is_table_of_runs(columns) else ""


def title_of(value: Any) -> str:
    """Return the title of a decoded document that contains rows or is one row; empty without at least two columns."""
    listed = _listed(value)
    rows = [row for row in listed if isinstance(row, dict)]
    names = _names(rows)
    if is_table_of_runs(names, rows=rows):
        return "table of runs"
    if _are_chats(rows):
        return "chat"
    is_table = len(names) > 1 and len(rows) == len(listed) and "content" not in names  # only messages have content
    return "table" if is_table else ""


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _are_chats(rows: list[Any]) -> bool:
    """Return whether all rows contain messages."""
    return bool(rows) and all(map(_is_chat, rows))


def _is_chat(row: Any) -> bool:
    """Return whether a row contains messages: the first one has content, and a role or a name."""
    first = next(chain.from_iterable(objects(row, name) for name in CHATS), {})
    return bool(first.keys() & {"role", "name"}) and "content" in first


def parse(path: str, rows: list[dict[str, Any]]) -> Parsed:
    """Return a run for each row, with all cells except messages in `extra`; a chat without a task is its own task."""
    cells = list[dict[str, Any]]()
    turns = list[int | None]()
    for row in rows:
        chat = _messages_name(row)
        cells.append({name: cell for name, cell in row.items() if name not in (*MESSAGES, chat)})
        speakers = [one.get("role") or one.get("name") for one in objects(row, chat)]
        turns.append(speakers.count("assistant") if speakers else None)
    flat = [dict(fields(own)) for own in cells]
    if CELL * len(flat) * len(_names(flat)) <= most_bytes():  # else objects stay cells
        cells = flat
    if _are_chats(rows):
        roles = roles_of(_names(cells))
        stem = posixpath.basename(path.replace("\\", "/")).rpartition(".")[0]
        for number, own in enumerate(cells):
            if not roles & {"score", "is_successful"}:
                own["score"] = None  # so that no column has to be named as the score
            if "task_id" not in roles:
                own[OWN_TASK] = stem if len(cells) == 1 else f"{stem} {number + 1}"
    columns: dict[str, Any] = {"part": map(str, range(len(rows))), "extra": cells}
    if not any(turns):  # the agent has another role in all chats
        turns = [None] * len(turns)
    columns["turns"] = turns
    runs = run_rows(columns, {"format": "table"})
    return used(runs) if runs else Parsed("skipped", "a table without rows")


def messages(rows: Sequence[dict[str, Any]], part: str, open_named: OpenNamed) -> list[Message]:
    """List the messages of a row."""
    row = rows[int(part)]
    found = row.get(_messages_name(row))
    return chat_messages(msgspec.json.decode(found) if isinstance(found, str) else found)


def _messages_name(row: dict[str, Any]) -> str:
    """Return the column of a row's messages: the first of `MESSAGES` with a value, or else the only one with a chat."""
    for name in MESSAGES:
        if row.get(name):
            return name
    chats = [name for name, cell in row.items() if _is_conversation(cell)]
    return chats[0] if len(chats) == 1 else MESSAGES[0]


def _is_conversation(cell: Any) -> bool:
    """Return whether a cell is a list, or text that begins like JSON of a list, with a message of an agent."""
    if isinstance(cell, str):
        cell = decode_start(cell.encode(errors="replace")) if cell.startswith("[{") else None
    speakers = {text_of(one.get("role") or one.get("type")) for one in objects(cell) if "content" in one}
    return not speakers.isdisjoint(("assistant", "ai", "model"))


def read_rows(data: Any, *, messages: bool = True) -> tuple[Sequence[dict[str, Any]], list[str]]:
    """Return the rows of a table (bytes or a decoded document) and doubts about them; ValueError if it is broken.

    With `messages`, rows in JSON lines are decoded when they are accessed, and Parquet columns of messages are read.
    """
    doubts: list[str] = []
    if not isinstance(data, bytes):
        rows = _listed(data)
    elif data.startswith(b"PAR1"):
        rows = _parquet_rows(data, messages=messages)
    else:
        _check_lines(data)
        if not data.isascii() or b"\0" in data[:2]:
            data = _text(data, doubts).encode()
        start = data[:_MOST_HEADER].lstrip()[:1]
        if start == b"[":
            rows = decode_json(data)[0]
        elif start == b"{":
            if messages:
                return Lines(data), doubts
            rows = list(read_lines(data, (), doubts))
        else:
            rows = _cells(data.decode(), doubts)
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("rows that are not objects")
    check_size(CELL * len(rows) * len(_names(rows)))  # rows get an empty cell for each name that only others have
    return rows, doubts


def _check_lines(data: bytes) -> None:
    """Raise LimitError for a line that is too long, before any line is decoded."""
    start, most = 0, most_bytes() // CHARACTER
    while len(data) - start > most:
        end = data.rfind(b"\n", start, start + most + 1)
        if end < 0:
            end = data.find(b"\n", start)
            check_text((end if end >= 0 else len(data)) - start)
        start = end + 1


def _parquet_rows(data: bytes, *, messages: bool) -> list[dict[str, Any]]:
    """Read the rows of a Parquet file; LimitError if they are too large once each row has a copy of its values.

    The sizes in the headers of pages are added up before any page is unpacked. Columns are then decoded to
    dictionaries, in which a text that many rows share occurs once, and their sizes are checked before rows are made.
    Texts in delta encodings or of a fixed length can't be decoded to dictionaries. Their rows are decoded in batches
    small enough to fit the limit even if each text were as long as a page.
    """
    stored = pq.read_metadata(pa.BufferReader(data))
    total = CELL * sum(max(0, stored.row_group(group).num_rows) for group in range(stored.num_row_groups))
    packed = 0
    batch_rows = 1_000
    to_dictionaries: list[str] = []
    uuids: set[str] = set()
    for at in range(stored.num_columns):
        column = stored.schema.column(at)
        chunks = [stored.row_group(group).column(at) for group in range(stored.num_row_groups)]
        packed += sum(max(0, chunk.total_compressed_size) for chunk in chunks)
        if packed > len(data):
            raise ValueError("columns share bytes")
        pages = [page for chunk in chunks for page in _pages(data, chunk)]
        values = max(sum(chunk.num_values for chunk in chunks), sum(page.values for page in pages))
        total += CELL * values + sum(page.size for page in pages)
        if column.logical_type.type == "UUID":
            uuids.add(column.path)
        is_delta = any(encoding.startswith("DELTA") for chunk in chunks for encoding in chunk.encodings)
        if column.physical_type == "BYTE_ARRAY" and not is_delta:
            to_dictionaries.append(column.path)
        elif column.physical_type.endswith("BYTE_ARRAY"):
            if column.max_repetition_level:
                raise ValueError(f"column {column.path}: lists of texts in this encoding can't be read")
            batch_rows = max(1, min(batch_rows, most_bytes() // max([1, *(page.size for page in pages)])))
    check_size(total)
    file = pq.ParquetFile(  # with its extensions, Arrow would unpack the dictionaries of JSON columns
        pa.BufferReader(data), read_dictionary=to_dictionaries, arrow_extensions_enabled=False
    )
    names = [name for name in file.schema_arrow.names if messages or name not in MESSAGES]
    if not names:  # then Arrow would make any number of empty rows
        return []
    rows, size = list[Any](), 0
    for group in range(stored.num_row_groups):  # one at a time: Arrow can't join nested dictionaries of several groups
        for batch in file.iter_batches(batch_rows, row_groups=[group], columns=names):
            size += sum(map(_decoded_size, batch.columns))
            check_size(size)
            read = zip(batch.schema.names, batch.columns, strict=True)
            columns = [column.cast(pa.uuid()) if name in uuids else column for name, column in read]
            rows += pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()
    return rows


class _Page(NamedTuple):
    """Sizes from the header of a page."""

    size: int  # bytes of the unpacked page
    values: int  # number of values, including missing values and elements of lists; 0 for a dictionary


def _pages(data: bytes, chunk: Any) -> Iterator[_Page]:
    """Yield the pages of a column from their headers, because the sizes that the column states may be wrong."""
    at = min(at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at and at > 0)
    end = at + chunk.total_compressed_size
    while at < end:
        header, at = _thrift_struct(data, at)
        size, packed = header[2], header[3]
        at += packed
        if min(size, packed) < 0 or at > len(data):
            raise ValueError("the header of a page is broken")
        yield _Page(size, max(header.get(version, {}).get(1, 0) for version in (5, 8)))


def _thrift_struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Read a struct of Thrift's compact protocol: return its integers and structs by field number, and its end."""
    values, field = dict[int, Any](), 0
    while head := data[at]:
        step, kind = divmod(head, 16)
        at += 1
        field += step
        if not step:
            field, at = _thrift_integer(data, at)
        field &= 0xFFFF  # as Arrow reads it
        if field in values:
            raise ValueError("the header of a page is broken")
        if kind in (4, 5, 6):
            values[field], at = _thrift_integer(data, at)
        elif kind == 8:  # bytes, preceded by their unsigned length
            size, at = _thrift_integer(data, at, is_signed=False)
            at += size
        elif kind == 12:
            values[field], at = _thrift_struct(data, at)
        elif kind not in (1, 2):  # true and false have no bytes beyond the field header
            raise ValueError("the header of a page is broken")
    return values, at + 1


def _thrift_integer(data: bytes, at: int, *, is_signed: bool = True) -> tuple[int, int]:
    """Read an integer of at most ten bytes; like Arrow, keep only the lowest 32 bits."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            value &= 0xFFFFFFFF
            return (value >> 1) ^ -(value & 1) if is_signed else value, at
    raise ValueError("the header of a page is broken")


def _decoded_size(values: pa.Array) -> int:
    """Return the size in bytes of an array's values once each is decoded."""
    size, kind = CELL * len(values), values.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(values.dictionary).cast(pa.int64())
        return size + (pc.sum(lengths.take(values.indices)).as_py() or 0)
    if pa.types.is_map(kind):
        return size + _decoded_size(values.keys) + _decoded_size(values.items)
    if pa.types.is_struct(kind):
        return size + sum(map(_decoded_size, values.flatten()))
    return size + (_decoded_size(values.flatten()) if pa.types.is_nested(kind) else values.nbytes)


def _listed(value: Any) -> list[Any]:
    """Return the rows of a decoded document (a list of rows, columns with their cells, or one run), else no rows."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else []
    if _is_chat(value):
        return [value]
    given = map(value.get, ("results", "runs", "records", "rows", "data"))
    lists = [rows for rows in given if isinstance(rows, list)]
    if lists or not is_table_of_runs(list(value)):
        return next(iter(lists), [])
    columns = [list(cells.values()) if isinstance(cells, dict) else cells for cells in value.values()]
    if all(isinstance(cells, list) for cells in columns):
        return [dict(zip(value, row, strict=False)) for row in zip(*columns, strict=False)]
    return [value] if is_table_of_runs(list(value), "model_name") else []


def _cells(text: str, doubts: list[str]) -> list[dict[str, Any]]:
    """Return the non-empty rows of a table and add doubts; ValueError for equal names of columns or unclosed quotes."""
    header = (_from_header(text) or [""])[0]
    start, delimiter = text.index(header), _delimiter(header)
    file = io.TextIOWrapper(io.BytesIO(text[start:].encode()), "utf-8", newline="")  # StringIO needs 4 times the memory
    taken: list[str] = []  # lines of the current row
    line = text.count("\n", 0, start)
    del text

    def lines() -> Iterator[str]:
        for one in chain(file, ["\n"]):  # so that a quote that the last line opens spans two lines
            taken.append(one)
            check_text(len(one))
            yield one

    names: list[str] = []
    rows: list[dict[str, Any]] = []
    longer = shorter = spanning = 0
    for cells in csv.reader(lines(), delimiter=delimiter):
        first, line = line + 1, line + len(taken)
        if len(taken) > 1 or len(cells) != len(names):
            try:
                list(csv.reader(taken, delimiter=delimiter, strict=True))
            except csv.Error:
                raise ValueError(f"line {first}: a quote is never closed, or followed by text in its cell") from None
        are_rows = [one.count(delimiter) >= len(names) - 1 for one in taken if one.strip()]
        if names and len(are_rows) > 1 and sum(are_rows) > len(are_rows) / 2:  # the others may be comments
            spanning += 1
            if spanning <= _MOST_NAMED:
                doubts.append(f"line {first}: a quoted cell spans {len(taken)} lines like rows; is a quote missing?")
        taken.clear()
        if not names:
            names = cells
            continue
        if cells == names:  # a repeated header, from concatenated files
            continue
        longer += len(cells) > len(names)
        shorter += 0 < len(cells) < len(names)
        rows.append(dict(zip(names, cells + [""] * (len(names) - len(cells)), strict=False)))
        check_size(CELL * len(names) * len(rows))  # a short row has an empty cell in every other column
    name, count = (Counter(filter(None, names)).most_common(1) or [("", 0)])[0]
    if count > 1:
        raise ValueError(f"several columns are named {name!r}")
    if spanning > _MOST_NAMED:
        doubts.append(f"{counted_noun(spanning - _MOST_NAMED, 'other quoted cell')} like these")
    for count, what in ((longer, "more"), (shorter, "fewer")):
        if count:
            doubts.append(f"{counted_noun(count, 'row')} with {what} cells than columns")
    if delimiter == ";":  # such tables use decimal commas
        rows = [{name: _DECIMALS.sub(r"\1.\2", cell) for name, cell in row.items()} for row in rows]
    return [row for row in rows if any(row.values())]


def _from_header(text: str) -> list[str]:
    """Return the first lines of a table from its header on, without a title or comments above it."""
    lines = [""]
    for line in islice(io.StringIO(text[:_MOST_HEADER], newline=""), 10):
        if lines[-1] and not _IN_CELL.search(lines[-1]):
            lines.append("")
        lines[-1] += line
    cells = list(map(_fields, lines))
    known = (at for at, names in enumerate(cells) if is_table_of_runs(names))
    alike = (at for at, (one, below) in enumerate(pairwise(cells)) if len(one) > 1 and len(one) == len(below))
    return lines[next(chain(known, alike), 0) :]


def _text(data: bytes, doubts: list[str]) -> str:
    """Decode a table in UTF-8, UTF-32 with a byte order mark, UTF-16, or else Windows-1252, and add that to doubts."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return data.decode("utf-32", "replace")
    data = without_mark(data)[0]
    if b"\0" in data[:2]:
        return data.decode("utf-16-be" if data.startswith(b"\0") else "utf-16-le", "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        doubts.append("not UTF-8: read as Windows-1252; save it as UTF-8 if letters are wrong")
        return data.decode("cp1252", "replace")


def _delimiter(line: str) -> str:
    return max(",\t;|", key=line.count)


def _fields(line: str) -> list[str]:
    return next(csv.reader([line], delimiter=_delimiter(line)), [])
