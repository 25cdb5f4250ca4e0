"""Records: one small JSON file beside each page; written last, it says that the report is whole."""

import json
import os
from pathlib import Path
from typing import Any, TypedDict


class Record(TypedDict, total=False):
    """What is known of a report that was made or failed."""

    key: str  # notebook/report
    notebook: str
    name: str
    title: str
    params_file: str
    parameters: dict[str, Any]
    status: str  # made or failed
    why: str  # why it was built
    error: str
    cell: int | None  # the cell it failed in
    made: str  # ISO 8601, UTC
    seconds: float
    kernel: str
    headline: dict[str, Any] | None
    tables: list[dict[str, Any]]  # name, file, rows
    figures: list[str]  # files of named figures, beside the page
    page: str  # files, relative to the output folder
    page_bytes: int
    executed: str
    stamp: dict[str, Any]  # what it was made from
    previous: dict[str, Any] | None  # headline and time of the page it replaced


def record_path(output: Path, key: str) -> Path:
    """Return where the record of a report stands."""
    return output / f"{key}.json"


def read_record(output: Path, key: str) -> Record | None:
    """Return a report's record, or None where there is none that can be read."""
    return _read(record_path(output, key))


def read_records(output: Path) -> list[Record]:
    """Return all records of an output folder, sorted by key."""
    found = [record for path in output.glob("*/*.json") if (record := _read(path))]
    return sorted(found, key=lambda record: record["key"])


def _read(path: Path) -> Record | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(record, dict) and Record.__annotations__.keys() <= record.keys()
    return record if whole and path.with_suffix("").name == record["name"] else None


def files_beside(record: Record | None) -> set[str]:
    """Name the files that a report has beside its page: tables and figures."""
    return {table["file"] for table in record["tables"]} | set(record["figures"]) if record else set()


def write_aside(path: Path, content: str | bytes, aside: Path) -> None:
    """Write a file in the folder `aside`, then move it to `path`: a half-written file is never seen there."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    temporary = aside / f"{os.getpid()}-{path.name}"
    temporary.write_bytes(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(path)
