"""The contents of one file of a trajectory's format, by the first format that recognises it."""

import csv
import struct
import zipfile
import zlib
from typing import Any

import msgspec

from evalkit.io import decode_json, decode_start
from evalkit.kinds import Parsed
from evalkit.trajectories.formats import atif, harbor, inspect, swe_agent, table, tau2

FORMATS = (harbor, atif, inspect, tau2, swe_agent)  # of JSON documents; each recognises its own
SUFFIXES = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".csv", ".tsv", ".parquet")
_ANYTHING = msgspec.json.Decoder()
_BROKEN = (  # what the contents of a file can raise: values of another type than the format's, damaged archives
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,  # and with it errors of JSON, of Unicode and of Arrow
    csv.Error,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    OSError,  # of an archive's member
)


def accepts(path: str) -> str:
    """Return why a file need not be read, by its name; empty if it must be."""
    return "" if path.lower().endswith(SUFFIXES) else "no log by its name"


def recognises(head: bytes) -> str:
    """Return what a file is by its first bytes; empty if it is none of these formats."""
    if inspect.is_archive(head):
        return "inspect_ai log"
    start = decode_start(head)
    if title := next(filter(None, (one.recognises(start) for one in FORMATS)), ""):
        return title
    if isinstance(start, list):
        return table.recognises(list(start[0])) if start and isinstance(start[0], dict) else ""
    if isinstance(start, dict) and not head.lstrip().split(b"\n", 1)[0].rstrip().endswith(b"}"):
        return ""  # a document, not lines
    return table.recognises(table.header_of(head))


def parse(path: str, data: bytes | OSError) -> Parsed:
    """Parse one file; what it holds never raises."""
    if isinstance(data, OSError):
        return Parsed("failed", f"{type(data).__name__}: {data.strerror or data}")
    if not data.strip():
        return Parsed("failed", "the file is empty")
    try:
        if inspect.is_archive(data):
            return inspect.parse_archive(path, data)
        if data.startswith(b"PAR1") or path.lower().endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
            return table.parse(path, data)
        value, recovered = decode_json(data, _ANYTHING)
        for one in FORMATS:
            if one.recognises(value) or (one is swe_agent and swe_agent.is_bare(path, value)):
                return one.parse(path, value)._replace(reason=", ".join(recovered))
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return table.parse(path, data)
    except _BROKEN as error:
        return Parsed("failed", f"{type(error).__name__}: {error}")
    return Parsed("skipped", "of no format of trajectories that is known")


def decode(data: bytes) -> Any:
    """Decode a JSON document; `BrokenFileError` for one that is broken."""
    return decode_json(data, _ANYTHING)[0]
