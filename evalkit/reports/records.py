"""The output folder: a record beside each page, which marks the report as complete, and what changed since."""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from evalkit._version import code_version, package_versions
from evalkit.io.paths import SourceError
from evalkit.io.read import read_json
from evalkit.io.sources import MISSING, list_files, state_of
from evalkit.io.write import write_bytes
from evalkit.reports.parameters import texts_of
from evalkit.reports.report import Record, Report

RECORDS = ".evalkit"  # the folder of records, in the output folder


def record_path(output: Path, key: str) -> Path:
    """Return the path of a report's record, which holds full paths: it is not for those who are handed the page."""
    return output / RECORDS / f"{key}.json"


def read_record(output: Path, key: str) -> Record | None:
    """Return a report's record; None if it is missing, unreadable, that of another report or an older evalkit."""
    try:
        record: Record = read_json(record_path(output, key))
        is_own = record["key"] == key == f"{record['notebook']}/{record['name']}" and "sources" in record
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if is_own else None


def read_records(output: Path) -> list[Record]:
    """Return all records of an output folder, sorted by key; a report whose page was deleted by hand has none."""
    keys = sorted(f"{path.parent.name}/{path.stem}" for path in output.glob(f"{RECORDS}/*/*.json"))
    records = (record for key in keys if (record := read_record(output, key)))
    return [record for record in records if not record["page"] or (output / record["page"]).is_file()]


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed by a function, those in its lists and mappings too."""
    if isinstance(value, dict):
        return type(value)({mapped(key, change): mapped(item, change) for key, item in value.items()})
    if isinstance(value, list):
        return [mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def places_of(record: Record) -> list[str]:
    """Return the texts of a record that may be paths, which those who are handed pages see shortened."""
    return [*texts_of(record["parameters"]), *record["sources"]]


def files_beside(record: Record | None) -> set[str]:
    """Return a report's tables and figures, files in the folder beside its page: ``REPORT/NAME.csv``."""
    return {table["file"] for table in record["tables"]} | set(record["figures"]) if record else set()


def delete_files(folder: Path, names: Iterable[str]) -> None:
    """Delete files of a notebook's reports, and their folders once these are empty."""
    for path in (folder / name for name in names):
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it holds other files
            path.parent.rmdir()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically; SourceError names it if it can't be written."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    write_bytes(data, str(path))


def write_record(output: Path, record: Record) -> None:
    """Write the record of a report, the last of its files."""
    write_file(record_path(output, record["key"]), json.dumps(record, indent=1, default=str))


def input_fingerprint(text: str) -> str:
    """Hash names, sizes and times of the files that a parameter's value names; empty if it names none."""
    if "://" in text:
        return f"remote {uuid.uuid4()}"  # such a report is always made again
    if not text.strip("/"):  # a separator, hardly the root folder
        return ""
    try:
        files = list_files(text)
    except SourceError:
        return ""
    return _digest([(path, *(state_of(path) or MISSING)[:2]) for path in files]) if files else ""


def stamp_of(report: Report, options: list[bool], fingerprint: Callable[[str], str]) -> dict[str, Any]:
    """Return the stamp of a report's inputs and of the options of its page, as plain JSON."""
    inputs = {}
    for name, value in report.all_parameters.items():
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
        if fingerprints := {text: mark for text in texts if (mark := fingerprint(text))}:
            inputs[name] = fingerprints
    return {
        "notebook": _digest([(cell.get("cell_type"), cell["source"]) for cell in report.notebook.cells]),
        "parameters": json.loads(json.dumps(report.parameters, default=str)),
        "input": inputs,
        "packages": package_versions(),
        "evalkit": code_version(),
        "page options": options,
    }


def why_make(record: Record | None, stamp: dict[str, Any], output: Path) -> str:
    """Return why a report must be made; empty if it is up to date."""
    if record is None:
        return "new"
    if record["status"] == "failed":
        return "failed last time"
    files = [record["page"], record["executed"], *(f"{record['notebook']}/{file}" for file in files_beside(record))]
    if not all((output / file).is_file() for file in files):
        return "a file of it is missing"
    for part, now in stamp.items():
        before = record["stamp"].get(part)
        if isinstance(now, dict) and isinstance(before, dict):
            names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
            if names:
                return f"changed {part}: {', '.join(names)}"
        elif before != now:
            return f"changed {part}"
    return ""


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, default=str).encode(), digest_size=8).hexdigest()
