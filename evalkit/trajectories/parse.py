"""Parse one file, by the first format that recognises it."""

from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec

from evalkit.io import decode_json, decode_start
from evalkit.io.paths import LimitError
from evalkit.kinds import Parsed
from evalkit.trajectories.formats import atif, harbor, inspect, swe_agent, table, tau2
from evalkit.trajectories.records import TITLE

FORMATS = (harbor, atif, tau2, swe_agent)  # of JSON documents that are decoded whole; each recognises its own
SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".csv", ".tsv", ".parquet")
# other titles are of files that describe logs
_LOGS = ("trial result", "trajectory", "simulation", "tau2-bench results", "log", "table of runs")
_ANYTHING = msgspec.json.Decoder()


def accepts(path: str) -> str:
    """Return why a file need not be read, by its name; empty if it must be."""
    return "" if path.lower().endswith(SUFFIXES) else "not named like a log"


def recognises(head: bytes) -> str | tuple[str, str]:
    """Return the title of a log with its format, or that of another file, by the first bytes; empty for other files."""
    try:
        start, title = decode_start(head), "inspect_ai log" if is_inspect(head) else ""
        title = title or next(filter(None, (one.recognises(start) for one in FORMATS)), "") or table.recognises(head)
    except Exception:
        return ""
    return (TITLE, title) if title.endswith(_LOGS) else title


def is_inspect(data: bytes) -> bool:
    """Return whether a file is a log of inspect_ai, an archive or a document, of which only parts are decoded."""
    if data.startswith(inspect.EXCERPT) or inspect.is_archive(data):
        return True
    head = data[:65_536]
    return b'"eval"' in head and bool(inspect.recognises(decode_start(head)))


def excerpt(path: str, opened: Callable[[], BinaryIO]) -> bytes | None:
    """Return what `parse` needs of an archive, of which only the header and the summaries are read; else None."""
    if not path.lower().endswith(".eval"):
        return None
    try:
        with opened() as file:
            return inspect.excerpt(file)
    except Exception:  # `parse` reads the whole file and reports what is wrong
        return None


def parse(path: str, data: bytes | OSError) -> Parsed:
    """Parse one file; its contents raise only a LimitError or MemoryError, if they are too large once decoded."""
    if isinstance(data, OSError):
        return Parsed("failed", f"{type(data).__name__}: {data.strerror or data}")
    if not data or data.isspace():  # `strip` would copy it
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
        return Parsed("failed", f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}")
    return parsed._replace(reason=", ".join(filter(None, [parsed.reason, *recovered])))


def opened(path: str, data: bytes, *, messages: bool = False) -> tuple[Any, Any, list[str]]:
    """Return the module that reads a file, or None, its contents for `parse` or `messages`, and what was recovered."""
    if is_inspect(data):
        return inspect, inspect.samples_of(data) if messages else data, []
    if table.is_named_table(path, data):
        rows, left_out = table.read_rows(data, messages=messages)  # lines may be documents of a format, too
        return next((one for one in FORMATS if one.recognises(rows[:1])), table), rows, left_out
    value, recovered = decode_json(data, _ANYTHING)
    reader = next((one for one in FORMATS if one.recognises(value)), None)
    if reader is None and table.holds_runs(value):
        return table, table.read_rows(value)[0], recovered
    return reader, value, recovered
