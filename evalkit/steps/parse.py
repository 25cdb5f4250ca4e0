"""From files to histories: JSON, JSONL and SQLite checkpoints; never raises for what a file holds."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from evalkit.io import (
    BrokenFileError,
    Ledger,
    Listing,
    Source,
    SourceError,
    StorageOptions,
    decode_json,
    is_url,
    list_source,
    parse_files,
    read_file,
    storage,
)
from evalkit.io.ledger import Status
from evalkit.steps.checkpoint import SQLITE_MAGIC, CheckpointError, read_checkpoints
from evalkit.steps.format import DEFAULTS, HISTORY_KEY, PLAN_KEY, Options, StepRecord
from evalkit.steps.records import is_record, normalise_history

LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES, ".sqlite", ".sqlite3", ".db")
_DECODER = msgspec.json.Decoder()
_NONE = "not an execution history"


class History(NamedTuple):
    """One history: the file it stands in, the thread (of a checkpoint; else empty), its records, the plan if kept."""

    source: str
    thread: str
    records: list[StepRecord]
    plan: Any = None

    @property
    def label(self) -> str:
        """A short name: the file's, with the thread where there is one."""
        file = os.path.basename(self.source)
        return f"{file} · {self.thread}" if self.thread else file


class Found(NamedTuple):
    """What one file held: its histories, and the status and reason its entry in the ledger gets."""

    histories: list[History]
    status: Status
    reason: str


def read_histories(
    source: Source,
    options: Options = DEFAULTS,
    *,
    jobs: int | None = None,
    storage_options: StorageOptions = None,
) -> tuple[list[History], Ledger]:
    """Read every history of files and folders.

    Parameters
    ----------
    source : str, path, or several of them
        Files, folders (also what is below them), or ``samples:steps``; also globs and URLs: see
        `evalkit.io.list_source`. An empty name in a list stands for none.
    options : Options
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        For the file systems behind URLs, as fsspec takes them.

    Returns
    -------
    histories : list of History
        In the order of the files.
    ledger : Ledger
        Every file seen: used, skipped (not an execution history) or failed (can't be read).

    Raises
    ------
    SourceError
        Where a source is not there.
    """
    with storage(storage_options):
        listing, pipes = list_histories(source)
        return read_listed(listing.files, pipes, options, jobs)


def list_histories(source: Source) -> tuple[Listing, set[str]]:
    """List the files of a source, as `read_histories` takes it, and those of them that are pipes named one by one."""
    sources = [source] if isinstance(source, (str, os.PathLike)) else [one for one in source if one]
    listing = list_source(sources)
    return listing, _named_pipes(sources, listing.files)


def read_listed(
    files: list[str], pipes: set[str], options: Options = DEFAULTS, jobs: int | None = None
) -> tuple[list[History], Ledger]:
    """Read the files that `list_histories` has listed; see `read_histories`."""
    parse = partial(parse_history, options=options)
    histories, ledger = [], Ledger()
    found = parse_files((path for path in files if path not in pipes), parse, jobs)
    for path in files:
        one = parse(path, read_file(path)) if path in pipes else next(found)
        histories += one.histories
        ledger.add(path, one.status, one.reason)
    return histories, ledger


def _named_pipes(sources: Iterable[str | os.PathLike], files: Iterable[str]) -> set[str]:
    """Give the pipes among the files that were named one by one: they are waited for, those in folders are not."""
    named = {str(Path(source).expanduser()) for source in sources}
    local = (Path(path) for path in named.intersection(files) if not is_url(path))
    return {str(path) for path in local if path.exists() and not (path.is_file() or path.is_dir())}


def load_history(path: str | os.PathLike, options: Options = DEFAULTS) -> list[StepRecord]:
    """Read one history of any shape from a JSON or JSONL file, or the one written last of a SQLite checkpoint.

    Raises
    ------
    SourceError
        Where the file is not there or holds no history; the message names file and cause.
    """
    histories, ledger = read_histories(path, options)
    if not histories:
        raise SourceError(f"{path}: {ledger.entries[0].reason if ledger.entries else 'an empty folder'}")
    return histories[-1].records


def read_history_file(path: str, options: Options = DEFAULTS) -> Found:
    """Read the histories of one file; see `parse_history`."""
    try:
        return parse_history(path, read_file(path), options)
    except OSError as error:
        return parse_history(path, error, options)


def parse_history(path: str, data: bytes | OSError, options: Options = DEFAULTS) -> Found:
    """Find the histories in the bytes of a file; the kind is told by the first of them and the suffix."""
    try:
        if isinstance(data, OSError):
            raise data
        if data.startswith(SQLITE_MAGIC):
            return _from_database(path, data, options)
        if Path(path).suffix.lower() in LINES:
            return _from_lines(path, data, options)
        return _from_json(path, data, options)
    except OSError as error:
        return Found([], "failed", f"{type(error).__name__}: {error.strerror or error}")
    except (BrokenFileError, CheckpointError) as error:
        other = Path(path).suffix.lower() not in SUFFIXES
        return Found([], "skipped", _NONE) if other else Found([], "failed", str(error))


def _from_database(path: str, data: bytes, options: Options) -> Found:
    if not is_url(path):
        return _from_checkpoints(path, path, options)
    with tempfile.TemporaryDirectory() as folder:  # SQLite opens local files only
        copy = os.path.join(folder, "checkpoints.sqlite")
        Path(copy).write_bytes(data)
        return _from_checkpoints(path, copy, options)


def _from_json(path: str, data: bytes, options: Options) -> Found:
    try:
        value, recovered = decode_json(data, _DECODER)
    except BrokenFileError:
        if data.lstrip()[:1] == b"{" and b"\n" in data.strip():  # records line by line under another suffix
            found = _from_lines(path, data, options)
            if found.histories:
                return found
        raise
    return _from_value(path, value, options, [f"recovered: {', '.join(recovered)}"] if recovered else [])


def _from_lines(path: str, data: bytes, options: Options) -> Found:
    values, broken, notes = [], [], set()
    for i, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value, recovered = decode_json(line, _DECODER)
            values.append(value)
            notes.update(recovered)
        except BrokenFileError as error:
            broken.append(f"line {i}: {error}")
    reasons = [f"recovered: {', '.join(sorted(notes))}"] if notes else []
    if broken:
        more = f" and {len(broken) - 1} more broken lines" if len(broken) > 1 else ""
        reasons.append(f"{broken[0]}{more}")
    if not values:
        raise BrokenFileError(broken[0] if broken else "JSONDecodeError: the file is empty")
    return _from_value(path, values, options, reasons)


def _from_value(path: str, value: Any, options: Options, reasons: list[str]) -> Found:
    state = _state_in(value)
    plan = state.get(PLAN_KEY) if state else None
    entries = state[HISTORY_KEY] if state else [value] if is_record(value) else value
    if not isinstance(entries, list):
        return Found([], "skipped", _NONE)
    records = [entry for entry in entries if is_record(entry)]
    if entries and not records:
        return Found([], "skipped", _NONE)
    if len(records) < len(entries):
        reasons = [*reasons, f"{len(entries) - len(records)} of {len(entries)} entries are no records of steps"]
    if not entries:
        reasons = [*reasons, "no steps"]
    history = History(path, "", normalise_history(records, options), plan)
    return Found([history], "used", "; ".join(reasons))


def _state_in(value: Any) -> Mapping | None:
    """Find the state that holds a history, also one level below, as in a dumped snapshot."""
    if not isinstance(value, Mapping):
        return None
    inner = [value[key] for key in ("values", "channel_values", "state") if isinstance(value.get(key), Mapping)]
    return next((state for state in (value, *inner) if isinstance(state.get(HISTORY_KEY), list)), None)


def _from_checkpoints(path: str, database: str, options: Options) -> Found:
    histories, without, broken = [], 0, []
    for thread, values in read_checkpoints(database):
        if isinstance(values, CheckpointError):
            broken.append(f"thread {thread}: {values}")
        elif isinstance(values.get(HISTORY_KEY), list):
            records = normalise_history(values[HISTORY_KEY], options)
            histories.append(History(path, thread, records, values.get(PLAN_KEY)))
        else:
            without += 1
    reasons = broken + ([f"{without} threads without {HISTORY_KEY}"] if without else [])
    status = "used" if histories else "failed" if broken else "skipped"
    return Found(histories, status, "; ".join(reasons) or ("" if histories else "no checkpoints"))
