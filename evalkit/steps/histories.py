"""From a source to histories: files, folders, URLs, or a dataset."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from evalkit.io import (
    Ledger,
    Listing,
    Source,
    SourceError,
    StorageOptions,
    is_url,
    list_source,
    parse_files,
    read_file,
    storage,
)
from evalkit.kinds import nothing_used
from evalkit.steps.collecting import collected_histories, open_collected
from evalkit.steps.format import DEFAULTS, Options, StepRecord
from evalkit.steps.parse import History, labelled, parse_history


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
        `evalkit.io.list_source`. An empty name in a list stands for none. A dataset of `collect` stands for what it was
        collected from.
    options : Options
    jobs : int, optional
        Processes to read with; see `evalkit.io.parse_files`.
    storage_options : mapping, optional
        For the file systems behind URLs, as fsspec takes them.

    Returns
    -------
    histories : list of History
        In the order of the files, each with a label of its own.
    ledger : Ledger
        Every file seen: used, skipped (not an execution history) or failed (can't be read).

    Raises
    ------
    SourceError
        Where a source is not there.
    """
    with storage(storage_options):
        if dataset := open_collected(source):
            return collected_histories(dataset, options)
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
    return labelled(histories), ledger


def check_used(source: Source, ledger: Sequence[Mapping[str, str]]) -> None:
    """Refuse a source of which no file is an execution history.

    Parameters
    ----------
    source : str, path, or a list of them
        As `load` takes it. Where all names in it are empty, there is nothing to be refused.
    ledger : list of mappings
        With source, status and reason of each file seen.

    Raises
    ------
    SourceError
        It says what the files look like, and why the first that failed could not be read.
    """
    sources = [source] if isinstance(source, (str, os.PathLike)) else [one for one in source if one]
    if not sources or any(entry["status"] == "used" for entry in ledger):
        return
    named = ", ".join(map(os.fspath, sources))
    error = nothing_used(named, [entry["source"] for entry in ledger], "execution history")
    failed = next((entry for entry in ledger if entry["status"] == "failed"), None)
    if failed is None:
        raise error
    file = "" if len(ledger) == 1 else f"{failed['source']}: "
    raise SourceError(f"{error}: {file}{failed['reason']}")


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
