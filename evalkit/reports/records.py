"""The output folder: a record beside each page, which marks the report as complete, and atomic writes."""

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypedDict, cast

from evalkit.io.paths import SourceError, redacted
from evalkit.io.read import read_json
from evalkit.io.sources import shown_paths
from evalkit.io.text import short_paths
from evalkit.io.write import check_path, exclusive, flush
from evalkit.reports.parameters import texts_of

RECORDS = ".evalkit"  # the folder of records, in the output folder
_WORK = ".work-"


class Record(TypedDict, total=False):
    """The record of a report that was made or failed."""

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
    findings: list[dict[str, str]]  # text, section; missing in records of earlier versions
    source: str  # folder or file of the report's logs
    tables: list[dict[str, Any]]  # name, file, rows
    figures: list[str]  # files of named figures, beside the page
    page: str  # files, relative to the output folder
    page_bytes: int
    executed: str
    stamp: dict[str, Any]  # its inputs, see evalkit.reports.changes
    previous: dict[str, Any] | None  # headline and time of the page it replaced


def record_path(output: Path, key: str) -> Path:
    """Return the path of a report's record, which holds full paths: it is not for those who are handed the page."""
    return output / RECORDS / f"{key}.json"


def read_record(output: Path, key: str) -> Record | None:
    """Return a report's record; None if it is missing, unreadable or that of another report."""
    try:
        record = {"findings": [], "source": "", **read_json(record_path(output, key))}
    except (OSError, ValueError, TypeError):
        return None
    is_complete = Record.__annotations__.keys() <= record.keys()
    is_own = is_complete and record["key"] == key == f"{record['notebook']}/{record['name']}"
    return cast(Record, record) if is_own else None


def read_records(output: Path) -> list[Record]:
    """Return all records of an output folder, sorted by key, without credentials that earlier versions stored.

    A report whose page was deleted by hand has none.
    """
    keys = sorted(f"{path.parent.name}/{path.stem}" for path in output.glob(f"{RECORDS}/*/*.json"))
    records = (mapped(record, redacted) for key in keys if (record := read_record(output, key)))
    return [record for record in records if not record["page"] or (output / record["page"]).is_file()]


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed by a function, those in its lists and mappings too."""
    if isinstance(value, dict):
        return type(value)({mapped(key, change): mapped(item, change) for key, item in value.items()})
    if isinstance(value, list):
        return [mapped(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def shown_in(record: Record) -> Callable[[str], str]:
    """Return a function that shortens the paths of a record for those who are handed pages."""
    return shown_paths([*texts_of(record["parameters"]), *record["source"].split(", ")])


def names_of_sources(records: Iterable[Record]) -> dict[str, str]:
    """Return a name of the source of each record, with no more of its path than tells it from the others."""
    sources = {record["source"] for record in records}
    names = {source: shown_paths(source.split(", "))(source) for source in sources}
    shared, ends = Counter(names.values()), short_paths(sources)
    return {source: ends[source] if shared[name] > 1 else name for source, name in names.items()}


def files_beside(record: Record | None) -> set[str]:
    """Return the names of a report's files beside its page: tables and figures."""
    return {table["file"] for table in record["tables"]} | set(record["figures"]) if record else set()


def find_records(output: Path, name: str) -> list[Record]:
    """Return the records of the reports named ``NOTEBOOK/REPORT``, or ``REPORT`` alone."""
    return [record for record in read_records(output) if name in (record["key"], record["name"])]


def remove_report(output: Path, record: Record) -> None:
    """Delete all files of a report, its record first: without it, the other files belong to no report."""
    folder = output / record["notebook"]
    record_path(output, record["key"]).unlink(missing_ok=True)
    names = {f"{record['name']}.html", f"{record['name']}.ipynb", *files_beside(record)}
    for name in names:
        if Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it holds other files
        folder.rmdir()


def write_file(path: Path, content: str | bytes, work: Path) -> None:
    """Write a file atomically, in the folder `work`, then moved to `path`, which an OSError names."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    temporary = work / f"{os.getpid()}-{path.name}"
    try:
        temporary.write_bytes(data)
        flush(temporary)  # the user relies on it once it is reported as made
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def work_folder(output: Path) -> Iterator[Path]:
    """Create a hidden folder within `output` for unfinished files, and remove those of killed batches.

    A batch holds a lock on its folder while it runs, so that other batches leave it alone. Raises SourceError if
    `output` can't be created or written to.
    """
    check_path(str(output))
    try:
        output.mkdir(parents=True, exist_ok=True)
        for leftover in output.glob(f"{_WORK}*"):
            with contextlib.suppress(SourceError), exclusive(str(leftover)) as alone:
                if alone:
                    shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=output))
    except OSError as error:
        cause = "a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise SourceError(f"{output}: {cause}") from error
    try:
        with exclusive(str(folder)):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
