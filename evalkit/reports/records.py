"""The output folder: a record beside each page, which says that the report is whole, and how files get there."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from evalkit.io.paths import SourceError, redacted
from evalkit.io.read import read_json
from evalkit.io.write import check_path, exclusive, flush

_WORK = ".work-"


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
    findings: list[dict[str, str]]  # text, section; none in records of former versions
    source: str  # folder or file that the report is about
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
    """Return all records of an output folder, sorted by key; credentials that former versions let in are left out."""
    found = [_redacted(record) for path in output.glob("*/*.json") if (record := _read(path))]
    return sorted(found, key=lambda record: record["key"])


def _read(path: Path) -> Record | None:
    record: Any
    try:
        record = read_json(path)
    except (OSError, ValueError):
        return None
    record = {"findings": [], "source": "", **record} if isinstance(record, dict) else record
    whole = isinstance(record, dict) and Record.__annotations__.keys() <= record.keys()
    own = whole and [record["notebook"], record["name"]] == [path.parent.name, path.with_suffix("").name]
    return record if own and record["key"] == f"{record['notebook']}/{record['name']}" else None


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {_redacted(key): _redacted(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_redacted, value))
    return redacted(value) if isinstance(value, str) else value


def files_beside(record: Record | None) -> set[str]:
    """Name the files that a report has beside its page: tables and figures."""
    return {table["file"] for table in record["tables"]} | set(record["figures"]) if record else set()


def find_records(output: Path, name: str) -> list[Record]:
    """Give the records of the reports that are meant by ``NOTEBOOK/REPORT``, or by ``REPORT`` alone."""
    return [record for record in read_records(output) if name in (record["key"], record["name"])]


def remove_report(output: Path, record: Record) -> None:
    """Delete all files of a report, its record first: without it nothing else belongs to a report.

    Raises
    ------
    OSError
    """
    folder = output / record["notebook"]
    record_path(output, record["key"]).unlink(missing_ok=True)
    names = {f"{record['name']}.html", f"{record['name']}.ipynb", *files_beside(record)}
    for name in names:
        if Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # others are in it
        folder.rmdir()


def write_file(path: Path, content: str | bytes, work: Path) -> None:
    """Write a file in the folder `work`, then move it to `path`: a half-written file is never seen there.

    Raises
    ------
    OSError
        Of the file `path`.
    """
    data = content.encode(errors="replace") if isinstance(content, str) else content
    temporary = work / f"{os.getpid()}-{path.name}"
    try:
        temporary.write_bytes(data)
        flush(temporary)  # the user is told that it is made
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def work_folder(output: Path) -> Iterator[Path]:
    """Give a hidden folder within `output` for unfinished files; those of batches that were killed are removed.

    A batch holds a lock in its folder as long as it lives, so that another's folder is known to be in use.

    Raises
    ------
    SourceError
        Where `output` can't be made or written to.
    """
    check_path(str(output))
    try:
        output.mkdir(parents=True, exist_ok=True)
        for left in output.glob(f"{_WORK}*"):
            with contextlib.suppress(SourceError), exclusive(str(left)) as alone:
                if alone:
                    shutil.rmtree(left, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_WORK, dir=output))
    except OSError as error:
        cause = "a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise SourceError(f"{output}: {cause}") from error
    try:
        with exclusive(str(folder)):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
