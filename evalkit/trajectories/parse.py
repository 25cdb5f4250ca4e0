"""Parse one file with the first format that recognises it."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import msgspec

from evalkit.io import decode_json, decode_start, reason_of
from evalkit.io.paths import LimitError
from evalkit.kinds import Parsed
from evalkit.trajectories.formats import (
    atif,
    claude_code,
    codex,
    every_eval_ever,
    gemini_cli,
    harbor,
    inspect,
    lm_eval,
    openhands,
    sessions,
    swe_agent,
    table_of_runs,
    tau2,
    tau_bench,
    terminal_bench,
)
from evalkit.trajectories.json_lines import read_lines
from evalkit.trajectories.records import TITLE

LINE_FORMATS = (lm_eval, openhands, every_eval_ever)  # formats of JSON lines, decoded in part
# formats of JSON documents, most of which are decoded whole; a file has at most one format
FORMATS = (harbor, terminal_bench, atif, tau2, tau_bench, *LINE_FORMATS, swe_agent)
# formats of sessions between a user and an agent, read line by line; several files may belong to one run
SESSIONS = (gemini_cli, claude_code, codex)
SESSION_FORMATS = tuple(one.FORMAT for one in SESSIONS)
SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".csv", ".tsv", ".parquet", "tb.lock")
_MOST_EXAMINED = 100  # maximum number of records of a document that are examined for a session
# titles of files that only describe logs, or that are logs only with certain options; all other titles are of logs
_NO_LOGS = {
    *("Harbor job lock", "Harbor job result", "Terminal-Bench lock", "Terminal-Bench run description"),
    *("lm-eval results file", "OpenHands metadata file", "OpenHands index scores file", "Every Eval Ever evaluation"),
    *("SWE-bench predictions", "SWE-bench report", "table", "spreadsheet", "Parquet file"),
}


def accepts(path: str) -> str:
    """Return the reason to skip a file, judged by its name; empty if it must be read."""
    if path.endswith("/journal.jsonl") and "/workflows/" in path:
        return "the journal of a workflow, whose agents have files of their own"
    if path.endswith(".meta.json") and "/subagents/" in path:
        return "about a subagent, which has a file of its own"
    if path.lower().endswith(SPREADSHEETS):
        return "a spreadsheet: save it as CSV"
    if path.lower().endswith(".jsonl.zst"):
        return "a compressed rollout: decompress it with zstd -d"
    return "" if path.lower().endswith(SUFFIXES) else "not named like a log"


def context_files(files: Sequence[str]) -> list[str]:
    """Return paths where files that describe the given files may be, even if the user did not name them."""
    formats = (lm_eval, openhands, terminal_bench)
    return list(dict.fromkeys(path for one in formats for path in one.context_files(files)))


def recognises(head: bytes) -> str | tuple[str, str]:
    """Return `TITLE` and the format of a log, or the title of a file next to logs, from the first bytes; else ""."""
    try:
        start, title = decode_start(head), "inspect_ai log" if is_inspect(head) else ""
        title = title or next(filter(None, (one.recognises(start) for one in FORMATS)), "")
        title = title or _session(sessions.first_records(head))[1]
        title = title or table_of_runs.recognises(head)
    except Exception:
        return ""
    return title if not title or title in _NO_LOGS else (TITLE, title)


def is_inspect(data: bytes) -> bool:
    """Return whether a file is a log of inspect_ai (an archive or a document); decodes only parts of it."""
    if data.startswith(inspect.EXCERPT) or inspect.is_archive(data):
        return True
    head = data[:65_536]
    return b'"eval"' in head and bool(inspect.recognises(decode_start(head)))


def _session(records: list[Any]) -> tuple[Any, str]:
    """Return the module that reads a session and its title, judged by some records; None and "" for other files."""
    for reader in SESSIONS:
        for record in records:
            if title := reader.recognises(record):
                return reader, title
    return None, ""


def _session_format(path: str, head: bytes) -> Any:
    """Return the module that reads a session, judged by its name or first records; None for other files."""
    for one in SESSIONS:
        if head.startswith(sessions.EXCERPT + msgspec.json.encode(one.FORMAT)):
            return one
    records = sessions.first_records(head)
    if any(one.recognises(records[:1]) for one in FORMATS):
        return None
    name = os.path.basename(path)
    if name.startswith("rollout-") and name.endswith(".jsonl"):
        return codex
    return _session(records)[0]


def excerpt(path: str, opened: Callable[[], BinaryIO]) -> bytes | None:
    """Return the part of an archive or a session that `parse` needs, to save memory; None for other files."""
    is_archive = path.lower().endswith(".eval")
    if not is_archive and not path.lower().endswith((".jsonl", ".ndjson")):
        return None
    try:
        with opened() as file:
            if is_archive:
                return inspect.excerpt(file)
            reader = _session_format(path, file.read(sessions.HEAD))
            file.seek(0)
            return msgspec.json.encode(reader.summary(path, file)) if reader else None
    except Exception:  # `parse` reads the whole file and reports what is wrong
        return None


def parse(path: str, data: bytes) -> Parsed:
    """Parse one file; raise only LimitError or MemoryError, if the decoded contents are too large."""
    if not data or data.isspace():  # `strip` would copy the data
        return Parsed("failed", "the file is empty")
    if data.startswith(b"PK") and not is_inspect(data):
        return Parsed("failed", "an archive without a log of inspect_ai in it")
    try:
        reader, value, recovered = opened(path, data)
        if reader is None:
            return Parsed("skipped", "not a known format of trajectories")
        parsed = reader.parse(path, value)
    except (LimitError, MemoryError):
        raise
    except Exception as error:
        return Parsed("failed", reason_of(error))
    return parsed._replace(reason=", ".join(filter(None, [parsed.reason, *recovered])))


def opened(path: str, data: bytes, *, messages: bool = False) -> tuple[Any, Any, list[str]]:
    """Return the module that reads a file (or None), its contents for `parse` or `messages`, and notes on losses."""
    if is_inspect(data):
        return inspect, inspect.samples_of(data) if messages else data, []
    if table_of_runs.is_named_table(path, data):
        if reader := _session_format(path, data):
            return reader, data, []
        start = decode_start(data[:65_536])
        if lines_of := next((one for one in LINE_FORMATS if one.recognises(start)), None):
            lost = list[str]()  # filled once the last line has been read
            lines: Any = read_lines(data, getattr(lines_of, "ENCODED", ()), lost)
            if isinstance(start, list):  # a JSON document, despite its name
                lines, lost = decode_json(data)
            return lines_of, _for_messages(lines_of, lines) if messages else lines, lost
        # each line may also be a document of some format
        rows, left_out = table_of_runs.read_rows(data, messages=messages)
        reader = next((one for one in FORMATS if one.recognises(rows[:1])), None)
        if reader is None:
            return table_of_runs, rows, left_out
        return reader, _for_messages(reader, list(rows)) if messages else rows, left_out
    if messages and (parts := tau2.encoded_parts(data)) is not None:
        return tau2, parts, []
    value, recovered = decode_json(data)
    reader = next((one for one in FORMATS if one.recognises(value)), None)
    records = value if isinstance(value, list) else [value]
    if reader is None and (of_session := _session(records[:_MOST_EXAMINED])[0]):  # one document, or a list of records
        return of_session, msgspec.json.Encoder().encode_lines(records), recovered
    if reader is None and table_of_runs.title_of(value):
        return table_of_runs, table_of_runs.read_rows(value)[0], recovered
    return reader, _for_messages(reader, value) if messages else value, recovered


def _for_messages(reader: Any, value: Any) -> Any:
    """Return the contents of a file for the reader's `messages`: by part if the reader has a function for this."""
    if isinstance(value, Iterator):  # the lines of a file
        return reader.by_part(value) if hasattr(reader, "by_part") else list(value)
    if not hasattr(reader, "by_part"):
        return value
    return reader.by_part(value if isinstance(value, list) else [value])
