"""Write files atomically, so that readers never see half a file, and let one process at a time write into a folder."""

import contextlib
import glob
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import psutil
from filelock import FileLock, Timeout

from evalkit._notes import Notes
from evalkit.io.paths import SourceError, check_path, is_url
from evalkit.io.remote import remove_remote, write_remote
from evalkit.io.secrets import is_masking, masked
from evalkit.io.text import plain

LOCK = ".evalkit.lock"  # name of the file that is locked while a process writes into a folder
_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_LATER_FORMULA = re.compile(r"(?<=[;\t])'?(?=[=+\-@＝＋－＠])")  # spreadsheets may split cells there
TEMPORARY = f".evalkit-{platform.node()}-"  # prefix of the name of a file being written; the process id follows


def _for_people(table: pd.DataFrame) -> pd.DataFrame:
    """Convert lists and texts to plain text on one line, and times to UTC without a zone, as Excel requires."""
    table = with_texts(table)
    changed = {}
    for name, column in table.items():
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            changed[name] = column.dt.tz_convert(None)
        elif column.dtype in (object, "string", "str", "category"):
            texts = column.astype("object")
            changed[name] = texts.map(_on_one_line, na_action="ignore").where(texts.notna(), None)
    return pd.DataFrame({**table, **changed}).rename(columns=plain)


def _on_one_line(value: Any) -> str:
    return plain(", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value)


def for_spreadsheets(table: pd.DataFrame, *, mask: bool = False) -> pd.DataFrame:
    """Put an apostrophe before every text and column name that a spreadsheet would treat as a formula.

    With `mask`, known forms of credentials are masked, including in lists and mappings, which become text.
    """
    table, texts = with_texts(table), (object, "string", "str", "category")
    cell = (lambda value: to_spreadsheet(_masked(value))) if mask else to_spreadsheet
    columns = [column.map(cell) if column.dtype in texts else column for _, column in table.items()]
    return pd.concat(columns, axis=1).set_axis(list(map(cell, table.columns)), axis=1) if columns else table


def with_texts(table: pd.DataFrame) -> pd.DataFrame:
    """Convert notes in a frame to text, such as in the column `warning`."""
    noted = [name for name, cells in table.items() if cells.dtype == object and Notes in set(map(type, cells))]
    return table.astype(dict.fromkeys(noted, "str"))


def from_spreadsheet(value: Any) -> Any:
    """Undo `to_spreadsheet` for a text: remove the apostrophes before what looks like a formula."""
    if not isinstance(value, str):
        return value
    without = _LATER_FORMULA.sub("", value)
    return next((original for original in (without[1:], without) if to_spreadsheet(original) == value), value)


def _masked(value: Any) -> Any:
    return masked(str(value)) if isinstance(value, str | list | tuple | set | dict) else value


def to_spreadsheet(value: Any) -> Any:
    """Put an apostrophe before a text, or a part of it after a semicolon or tab, that looks like a formula."""
    if not isinstance(value, str):
        return value
    value = _LATER_FORMULA.sub("'", value)
    if not value.startswith(_FORMULA_STARTS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _write_csv(table: pd.DataFrame, path: str) -> None:
    for_spreadsheets(table, mask=is_masking()).to_csv(path, index=False)


def _write_excel(table: pd.DataFrame, path: str) -> None:
    for_spreadsheets(_for_people(table)).to_excel(path, index=False)


def _write_latex(table: pd.DataFrame, path: str) -> None:
    _for_people(table).to_latex(path, index=False, escape=True, na_rep="–", float_format="%.4g")


def _write_json(table: pd.DataFrame, path: str) -> None:
    table = with_texts(table)
    times = table.select_dtypes(["datetime", "datetimetz"])  # pandas can't write times before 1677 or after 2262
    epochs = {}
    for name, column in times.items():
        epochs[name] = column.dt.as_unit("ms").astype("int64").astype("Int64").where(column.notna())
    pd.DataFrame({**table, **epochs}).to_json(path, orient="records", indent=1, force_ascii=False)


def _write_parquet(table: pd.DataFrame, path: str) -> None:
    with_texts(table).to_parquet(path, index=False)


WRITERS: dict[str, Callable[[pd.DataFrame, str], None]] = {  # by suffix
    ".csv": _write_csv,
    ".xlsx": _write_excel,
    ".tex": _write_latex,
    ".json": _write_json,
    ".parquet": _write_parquet,
}
OUTPUT = f"FILE{', '.join(list(WRITERS)[:-1])} or {list(WRITERS)[-1]}"  # for help texts


def check_output(path: str) -> None:
    """Raise SourceError if an output file can't be written. Call this before doing any work."""
    check_path(path)
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in WRITERS:
        raise SourceError(f"{path}: the output's name must end in {', '.join(WRITERS)}")
    if suffix == ".xlsx" and not find_spec("openpyxl"):
        raise SourceError(f"{path}: openpyxl, which writes Excel files, is not installed: pip install openpyxl")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise SourceError(f"{path}: no folder {folder}")


def check_no_links(folder: str | os.PathLike, patterns: Iterable[str]) -> None:
    """Raise SourceError for a link, pipe or device where evalkit writes, since someone else may have put it there."""
    for pattern in patterns:
        for path in Path(folder).glob(pattern):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise SourceError(f"{path}: a link, pipe or device, which evalkit does not write to; remove it")


def write_frame(table: pd.DataFrame, path: str) -> None:
    """Write a frame as CSV, JSON, Parquet, LaTeX or Excel, depending on the suffix of the path.

    Parameters
    ----------
    table : DataFrame
        The frame.
    path : str
        The file.

    Raises
    ------
    SourceError
        If the file can't be written, or the suffix is unknown.

    Examples
    --------
    >>> io.write_frame(runs, "runs.csv")  # doctest: +SKIP
    """
    check_output(path)
    with _replaced(path) as new:
        try:
            WRITERS[os.path.splitext(new)[1]](table, new)
        except (ValueError, OverflowError) as error:  # such as too many rows for a sheet
            raise SourceError(f"{path}: {error}") from error


def write_text(text: str, path: str | os.PathLike) -> None:
    """Write a local text file in UTF-8.

    Parameters
    ----------
    text : str
        The text.
    path : path
        The file.

    Raises
    ------
    SourceError
        If the file can't be written.

    Examples
    --------
    >>> io.write_text("text", "file.txt")  # doctest: +SKIP
    """
    write_bytes(text.encode(), os.fspath(path))


def write_bytes(data: bytes, path: str) -> None:
    """Write a local or remote file, and create its parent folders. Raise SourceError if it can't be written."""
    check_path(path)
    if is_url(path):
        try:
            write_remote(path, bytes(data))
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror or error}") from None
    else:
        with _replaced(path) as temporary, open(temporary, "wb") as file:
            file.write(data)


def remove_files(paths: Iterable[str]) -> None:
    """Remove local or remote files. Ignore files that are missing or can't be removed."""
    for path in paths:
        if is_url(path):
            remove_remote(path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)


@cache  # once per process is enough
def remove_left(folder: str, prefix: str) -> None:
    """Remove files and folders that killed processes left in a folder: their names are a prefix and a process id."""
    for path in glob.glob(f"{glob.escape(os.path.join(folder, prefix))}*-*"):
        process = os.path.basename(path).removeprefix(prefix).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            remove_files([path])
            shutil.rmtree(path, ignore_errors=True)  # files of other users can't be removed


@contextlib.contextmanager
def exclusive(folder: str, wait: float = 0.0) -> Iterator[bool]:
    """Lock a local folder for writing by this process. Yield False if another process still has it after `wait`."""
    check_path(folder)
    if is_url(folder):
        yield True
        return
    try:
        os.makedirs(folder, exist_ok=True)
        lock = FileLock(os.path.join(folder, LOCK))
        lock.acquire(timeout=wait, poll_interval=0.02)
    except Timeout:
        yield False
        return
    except OSError as error:
        raise SourceError(f"{folder}: {error.strerror or error}") from error
    try:
        yield True
    finally:
        lock.release()


@contextlib.contextmanager
def _replaced(path: str) -> Iterator[str]:
    """Yield the name of a temporary file next to `path`, and rename it to `path` once the block has written it.

    A device or a pipe is written directly, because renaming would replace it.
    """
    folder, suffix = os.path.dirname(os.path.abspath(path)), os.path.splitext(path)[1].lower()
    temporary = os.path.join(folder, f"{TEMPORARY}{os.getpid()}-{uuid4().hex}{suffix}")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            yield path
            return
        os.makedirs(folder, exist_ok=True)
        remove_left(folder, TEMPORARY)
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
