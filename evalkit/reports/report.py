"""Reports: the notebook and parameters of a report, the job that makes it, and the record of the result.

A record in the output folder marks a report as complete. The record's fields with full paths are in the user's cache.
"""

import hashlib
import json
import re
import unicodedata
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import msgspec

from evalkit._version import code_version, package_versions
from evalkit.display.anchors import section_keys
from evalkit.io.paths import SourceError, check_path, is_secret_name
from evalkit.io.read import read_json
from evalkit.io.secrets import is_masking, masked
from evalkit.io.sources import MISSING, NOTES, is_sample, list_source, shown_paths, source_names, state_of
from evalkit.io.store import collected_from, read_note, write_note
from evalkit.io.text import map_texts
from evalkit.io.write import write_bytes
from evalkit.reports.notebooks import REQUIRED, Notebook, texts_of

_PRIVATE = ("parameters", "params_file", "sources")  # fields of a record with full paths
_SIGNS = {"!=": " not ", ">=": " at least ", "<=": " at most ", ">": " above ", "<": " below "}
_LONGEST = 120  # maximum length of a name, in bytes; file systems allow 255, and suffixes and hashes are added


class Record(TypedDict):
    """The record of a report that was made or failed. The types are checked when it is read back from a folder."""

    key: str
    notebook: str
    name: str
    title: str
    question: str
    order: float
    params_file: str
    parameters: dict[str, Any]
    status: str
    why: str
    error: str
    cell: int | None
    made: str
    seconds: float
    headline: dict[str, Any] | None
    findings: list[dict[str, str]]
    chosen: list[str]
    sources: list[str]
    tables: list[dict[str, Any]]
    figures: list[str]
    page: str
    page_bytes: int
    executed: str
    links: bool
    stamp: dict[str, Any]
    previous: dict[str, Any] | None


@dataclass(frozen=True)
class Report:
    """A notebook with parameters."""

    notebook: Notebook
    name: str
    parameters: dict[str, Any]  # values that are given; other parameters have the notebook's defaults
    params_file: str = ""
    is_named: bool = False  # whether the user chose the name

    @property
    def key(self) -> str:
        """Name of the report within the output folder: ``notebook/report``."""
        return f"{self.notebook.name}/{self.name}"

    @property
    def all_parameters(self) -> dict[str, Any]:
        """All parameters, including the notebook's defaults."""
        return {name: p.default for name, p in self.notebook.parameters.items()} | self.parameters

    @property
    def shown(self) -> Callable[[str], str]:
        """A function that shortens the paths in a text for pages."""
        given = texts_of(self.all_parameters)
        return shown_paths([*given, *(place for text in given for place in collected_from(text))])

    @property
    def sources(self) -> list[str]:
        """The sources of the report: the values of its first parameter whose default is a sample."""
        named = (name for name, parameter in self.notebook.parameters.items() if is_sample(parameter.default))
        return source_names(self.all_parameters.get(next(named, ""), ""))

    def with_hash(self) -> "Report":
        """Return the report with a hash of its parameters appended to its name."""
        return replace(self, name=f"{self.name}-{short_hash(repr(self.parameters))}")


class Failure(NamedTuple):
    """Why a report failed, and the index of the cell in which it failed (None if it did not fail in a cell)."""

    error: str
    cell: int | None


class Job(NamedTuple):
    """A report to make, and how to make it."""

    report: Report
    output: Path
    why: str
    stamp: dict[str, Any]
    code: bool
    evidence: bool  # whether runs get pages
    mask: bool  # whether credentials in logs are masked
    timeout: float  # time limit, in seconds

    def record(self, **fields: Any) -> Record:
        """Return the report's record with these fields; by default, the record of a failed report without a page."""
        report = self.report
        blank: Record = {
            "key": report.key,
            "notebook": report.notebook.name,
            "name": report.name,
            "title": report.notebook.title,
            "question": report.notebook.settings.get("question", ""),
            "order": report.notebook.order,
            "params_file": report.params_file,
            "parameters": report.parameters,
            "status": "failed",  # or "made"
            "why": self.why,  # reason for making it
            "error": "",
            "cell": None,  # index of the cell in which it failed
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": 0.0,
            "headline": None,
            "findings": [],  # text of each finding, and the key of its section
            "chosen": [],  # how logs were read, such as the meaning of columns, as lines
            "sources": report.sources,  # folders or files of the report's logs
            "tables": [],  # name, file (relative to the page) and number of rows of each table
            "figures": [],  # files of named figures, relative to the page
            "page": "",  # path relative to the output folder
            "page_bytes": 0,
            "executed": "",  # path of the executed notebook, relative to the output folder
            "links": False,  # whether it links to pages of runs
            "stamp": self.stamp,  # result of `stamp_of`
            "previous": None,  # headline and time of the page that it replaced
        }
        return cast("Record", {**blank, **fields})


def refuse_secrets(name: str, value: Any) -> None:
    """Raise SourceError for a secret, by a parameter's name or in a URL, since pages and records would show it."""
    if is_secret_name(name) and value and value is not True and value is not REQUIRED:
        raise SourceError(
            f"{name}: the page, its file name, the index and the manifest would show this value; "
            "set an environment variable, and read it in the notebook"
        )
    for text in texts_of(value):
        check_path(text)
    if isinstance(value, dict):
        for key, item in value.items():
            refuse_secrets(key, item)


def file_name(values: Iterable[Any]) -> str:
    """Return a file name without suffix for values; ``defaults`` if all are empty. Different values may share a name.

    Invalid characters become ``_``, as in ``meta-llama_Llama-3-8B``. Only the last part of a path is used. A value
    with a credential is masked and gets a hash of six hexadecimal digits. Such a hash also replaces a value without any
    valid character.
    """
    parts = []
    for text in filter(None, map(str, values)):
        text = str(Path(text).resolve()) if text.rstrip("/") in (".", "..") else text
        is_path = text.startswith(("/", "./", "../", "~/"))
        shown = unicodedata.normalize("NFC", text.rstrip("/").rsplit("/", 1)[-1] if is_path else text)
        shown = re.sub(r"(?<=\w)([<>!]=|[<>])(?=\w)", lambda match: _SIGNS[match[0]], shown)
        if is_masking() and masked(shown) != shown:
            shown = f"{masked(shown)}-{short_hash(shown)}"
        parts.append(re.sub(r"[^\w.+-]+", "_", shown).strip("._-") or short_hash(text))
    name = "-".join(parts)
    if len(name.encode()) > _LONGEST:
        name = f"{name.encode()[: _LONGEST - 7].decode(errors='ignore')}-{short_hash(name)}"
    return name or "defaults"


def short_hash(text: str) -> str:
    """Hash a text to six hexadecimal digits."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()


def read_record(output: Path, key: str) -> Record | None:
    """Return a report's record; None if it is missing, unreadable, or from another report or an older evalkit.

    A record that names files outside of its report counts as unreadable, since evalkit reads and deletes these files.
    """
    try:
        record: Record = msgspec.convert(read_json(output / NOTES / f"{key}.json"), Record)
        folders = {Path(file).parts[:-1] for file in files_beside(record)}
    except (OSError, ValueError, KeyError, msgspec.ValidationError):
        return None
    is_own = record["key"] == key and f"{record['notebook']}/{record['name']}" == key
    pages = {record["page"], record["executed"]} - {""}
    if not is_own or not folders <= {(record["name"],)} or not pages <= {f"{key}.html", f"{key}.ipynb"}:
        return None
    return cast("Record", {**record, **(read_note(output, f"records/{key}") or {})})


def read_records(output: Path) -> list[Record]:
    """Return all records of an output folder, sorted by key, except records whose page was deleted."""
    keys = sorted(f"{path.parent.name}/{path.stem}" for path in output.glob(f"{NOTES}/*/*.json"))
    records = (record for key in keys if (record := read_record(output, key)))
    return [record for record in records if not record["page"] or (output / record["page"]).is_file()]


def places_of(record: Record) -> list[str]:
    """Return the texts of a record that may be paths, which pages shorten."""
    return [*texts_of(record["parameters"]), *record["sources"]]


def files_beside(record: Record | None) -> set[str]:
    """Return the files of a report's tables and figures, in the folder next to its page: ``REPORT/NAME.csv``."""
    return {table["file"] for table in record["tables"]} | set(record["figures"]) if record else set()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically. Raise SourceError with its name if it can't be written."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    write_bytes(data, str(path))


def write_record(output: Path, record: Record) -> None:
    """Write the record of a report. Call it after all other files of the report are written."""
    write_note(output, f"records/{record['key']}", {name: value for name, value in record.items() if name in _PRIVATE})
    shown = map_texts(record, shown_paths([*places_of(record), record["params_file"]]))
    write_file(output / NOTES / f"{record['key']}.json", json.dumps(shown, indent=1, default=str))


def input_fingerprint(text: str) -> str:
    """Hash names, sizes and times of the files that a parameter's value names; "" if it names none."""
    if "://" in text:
        return f"remote {uuid.uuid4()}"  # changes can't be detected: always make the report again
    if not text.strip("/"):  # more likely a separator than the root folder
        return ""
    try:
        files = list_source(text).files
    except SourceError:
        return ""
    return _digest([(path, *(state_of(path) or MISSING)[:2]) for path in files]) if files else ""


def stamp_of(report: Report, options: list[bool], fingerprint: Callable[[str], str]) -> dict[str, Any]:
    """Return the stamp of a report, as plain JSON: hashes of its inputs, versions of packages, and page options."""
    inputs = {}
    for name, value in report.all_parameters.items():
        texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str) and item]
        if fingerprints := {text: mark for text in texts if (mark := fingerprint(text))}:
            inputs[name] = _digest(fingerprints)
    cells = [(cell.get("cell_type"), cell["source"], section_keys(cell)) for cell in report.notebook.cells]
    return {
        "notebook": _digest(cells),
        "parameters": {name: _digest(value) for name, value in report.parameters.items()},
        "input": inputs,
        "packages": package_versions(),
        "evalkit": code_version(),
        "page options": options,
    }


def why_due(record: Record | None, stamp: dict[str, Any], output: Path) -> str:
    """Return why a report must be made; "" if it is up to date."""
    if record is None:
        return "new"
    if record["status"] == "failed":
        return "failed last time"
    files = [record["page"], record["executed"], *(f"{record['notebook']}/{file}" for file in files_beside(record))]
    if not all((output / file).is_file() for file in files):
        return "one of its files is missing"
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
