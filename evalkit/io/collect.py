"""Collecting: what the files of a source say, kept in a dataset that is brought up to date, not made again."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from evalkit.io.bulk import paused_gc
from evalkit.io.dataset import Dataset, marks_of, open_dataset
from evalkit.io.files import SourceError
from evalkit.io.frames import Column, whole
from evalkit.io.manifest import MANIFEST
from evalkit.io.output import locked
from evalkit.io.parallel import SERIAL_BELOW, Parse, parse_files
from evalkit.io.paths import absolute, has_magic, is_url, protocol_of
from evalkit.io.sources import Listing, Source, identity_of, list_source, mark_of
from evalkit.io.storage import SETTLED, FileMark

FILE_COLUMNS = (
    Column("source", "str", "path of the file"),
    Column("size", "int", "length", "bytes"),
    Column("modified", "float", "time of the last change", "epoch seconds"),
    Column("tag", "str", "what else tells its states apart; unsettled: it is read again next time"),
)
FOLDER_COLUMNS = (Column("source", "str", "path of a folder that was looked into"),)
ARCHIVES = ("zip", "tar")  # protocols of what can only be read
UNSETTLED = "unsettled"
NOWHERE = FileMark(0, 0.0, UNSETTLED)  # of a file that was listed and is not there, such as a broken link

Progress = Callable[[int, int], object] | None


class Kind:
    """How one kind of logs is collected; each room has one.

    Attributes
    ----------
    name : str
        Also the name of the room whose code decides what a log says.
    tables : mapping of str to sequence of Column
        Each has a column `source`; ``files`` and ``folders`` are among them.
    parse : function of (path, bytes or OSError)
        As for `parse_files`.
    options : dict
        What the rows depend on beside the files; anything JSON can hold.
    pattern : str
        Glob for the names of files.
    chunk : int
        Files that are read before their rows are written: what bounds the memory.
    serial_below : int
        As for `parse_files`.
    """

    name: str
    tables: Mapping[str, Sequence[Column]]
    parse: Parse
    options: Mapping[str, Any]
    pattern: str = "*"
    chunk: int = 10_000
    serial_below: int = SERIAL_BELOW

    def beside(self, files: list[str]) -> list[str]:
        """Name files outside the source that tell something of it; those that are not there are left out."""
        return []

    def mark(self, path: str) -> FileMark | None:
        """Give a local file's mark, or that of one beside the source; None where it is not there."""
        return mark_of(path)

    def first(self, path: str) -> bool:
        """Tell whether a file is to be read before the others."""
        return False

    def wants(self, path: str) -> bool:
        """Tell whether a file is to be read at all; `unread` says what becomes of the others."""
        return True

    def unread(self, path: str) -> Any:
        """Give what `parse` would give for a file that is not wanted."""
        raise NotImplementedError

    def rows(self, parsed: Sequence[Any], dataset: Dataset) -> Mapping[str, list[dict[str, Any]]]:
        """Make the rows of a chunk; those of ``files`` stand in the order of `parsed`."""
        raise NotImplementedError

    def finish(self, dataset: Dataset) -> None:
        """Put right what a chunk could not know."""


class Collected(NamedTuple):
    """What collecting did, in numbers of files.

    Attributes
    ----------
    new, changed : int
        Files that were read.
    vanished : int
        Files whose rows were dropped.
    unchanged : int
        Files that were not read again.
    """

    new: int
    changed: int
    vanished: int
    unchanged: int

    def summary(self) -> str:
        """Return one line."""
        files = self.new + self.changed + self.unchanged
        changes = f"{self.new} new, {self.changed} changed, {self.vanished} vanished, {self.unchanged} as before"
        return f"{files} files: {changes}"


def collect_files(
    source: Source, output: str | os.PathLike, kind: Kind, jobs: int | None = None, progress: Progress = None
) -> Collected:
    """Bring a dataset up to date with its source, or begin one.

    Only new and changed files are read, told by size, time and tag. What was read is written chunk by chunk: whoever
    stops in between goes on from there the next time.

    Parameters
    ----------
    source : str, path, or several of them
        As for `list_source`. A dataset keeps its sources: more may be named later on, none left out.
    output : str or path
        The dataset's folder, or a URL.
    kind : Kind
    jobs : int, optional
        As for `parse_files`.
    progress : function of (files read, files to read), optional
        Called after each chunk.

    Returns
    -------
    Collected

    Raises
    ------
    SourceError
        Where the source is not there or holds nothing any more, `output` is no such dataset or lies in the source, it
        was collected with other options or sources, or another process is at work on it.
    """
    from evalkit.io.versions import code_version  # slow to import, and what reads traces imports this module

    sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    names = [_anchored(name) for name in sources]
    path = _anchored(output).rstrip("/")
    if not names:
        raise SourceError("no path was given")
    if protocol_of(path) in ARCHIVES:
        raise SourceError(f"{path}: a dataset can't be written into an archive; name a folder")
    if not path or path.startswith("samples:") or (is_url(path) and has_magic(path)):
        raise SourceError(f"{path or repr(path)}: no name for a dataset")
    listing = list_source(names, kind.pattern)
    if _lies_in(path, listing.folders):
        raise SourceError(f"{path}: a dataset can't lie in its own source")
    listed = set(listing.files)
    if datasets := [name for name in names if f"{name.rstrip('/')}/{MANIFEST}" in listed]:
        raise SourceError(f"{datasets[0]}: is a dataset itself; collect from the logs")
    if open_dataset(path, kind.name, kind.tables) is None:
        _check_free(path)
    with locked(path):
        dataset = open_dataset(path, kind.name, kind.tables)  # again: another process may have made it just now
        code, root = code_version("io", kind.name), absolute(listing.root)
        about = {"sources": names, "root": root, "options": dict(kind.options), "code": code}
        if dataset is None:
            dataset = Dataset(path, kind.tables, {"kind": kind.name, "complete": False, **about})
            dataset.commit()  # before any part is written: a folder with parts and no list is somebody else's
        else:
            dataset.sweep()  # what an edit that was stopped has left may fill the disk
        _check_same(dataset, names, kind)
        return _update(dataset, about, listing, kind, jobs, progress)


def _anchored(name: str | os.PathLike) -> str:
    """Write a name so that it means the same in every working folder."""
    text = os.path.expanduser(os.fspath(name))
    if protocol_of(text) in ("file", "local"):
        text = unquote(text.partition("://")[2])
    return absolute(text) if text and not text.startswith("samples:") else text


def _lies_in(path: str, folders: Iterable[str]) -> bool:
    """Tell whether a path is one of the folders or below one, also by way of a link."""
    if is_url(path):
        return any(f"{path}/".startswith(f"{folder.rstrip('/')}/") for folder in folders)
    place = Path(path).resolve()
    here = {identity_of(str(folder)) for folder in (place, *place.parents)}
    return any(identity_of(folder) in here for folder in folders)


@paused_gc()
def _update(
    dataset: Dataset,
    about: Mapping[str, Any],
    listing: Listing,
    kind: Kind,
    jobs: int | None,
    progress: Progress,
) -> Collected:
    if not listing.files and any(part.table == "files" for part in dataset.parts):
        raise SourceError(f"{dataset.path}: none of its files is there any more; remove it, if that is meant")
    if dataset.about["code"] != about["code"]:  # what logs say may be read otherwise now
        dataset.parts.clear()
    known = marks_of(dataset.read("files", ["source", *FileMark._fields]))
    paths = {whole(path): path for path in [*listing.files, *kind.beside(listing.files)]}
    above = set(paths.values()).difference(listing.files)
    marks = {name: listing.marks.get(path) or kind.mark(path) for name, path in paths.items()}
    marks = {name: mark or NOWHERE for name, mark in marks.items() if mark or paths[name] not in above}
    # a file beside the source is another thing than the same file in a source that was added
    marks |= {name: _beside(marks[name]) for name, path in paths.items() if path in above and name in marks}
    to_read = [name for name, mark in marks.items() if known.get(name) != mark or mark == NOWHERE]
    vanished = known.keys() - marks.keys()
    vanished -= _below(vanished, [f"{name}/" for name in to_read if vanished and os.path.isdir(paths[name])])
    done = Collected(
        new := len([name for name in to_read if name not in known]),
        len(to_read) - new,
        len(vanished),
        len(marks) - len(to_read),
    )
    folders = dataset.read("folders")["source"].tolist()
    moved = folders != [whole(folder) for folder in listing.folders]
    if to_read or vanished or moved or dataset.about != {**dataset.about, **about}:
        dataset.drop(vanished.union(to_read), kind.tables.keys() - {"folders"})
        if moved:
            dataset.drop(folders, ["folders"])
            dataset.add("folders", [{"source": folder} for folder in listing.folders])
        dataset.commit(complete=False, **about)
    to_read.sort(key=lambda name: not kind.first(name))
    for at in range(0, len(to_read), kind.chunk):
        chunk = to_read[at : at + kind.chunk]
        _add(dataset, kind, {name: paths[name] for name in chunk}, marks, jobs)
        dataset.commit()
        if progress:
            progress(at + len(chunk), len(to_read))
    if not dataset.about["complete"]:
        kind.finish(dataset)
        dataset.commit(complete=True)
    return done


def _add(
    dataset: Dataset, kind: Kind, paths: Mapping[str, str], marks: Mapping[str, FileMark], jobs: int | None
) -> None:
    """Read a chunk of files and add its rows."""
    begun = time.time()
    wanted = {path for path in paths.values() if kind.wants(path)}  # asked once: a file may become a folder
    reading = [path for path in paths.values() if path in wanted]
    read = parse_files(reading, partial(_parse, kind.parse), jobs, kind.serial_below)
    found = [next(read) if path in wanted else (False, kind.unread(path)) for path in paths.values()]
    tables = kind.rows([parsed for _, parsed in found], dataset)
    for name, row, (failed, _) in zip(paths, tables["files"], found, strict=True):
        mark = marks[name]
        row |= {"source": name, **mark._asdict()}
        if failed or not (mark.tag if is_url(name) else mark.modified < begun - SETTLED):
            row["tag"] = UNSETTLED
    for table, rows in tables.items():
        dataset.add(table, rows)


def _parse(parse: Parse, path: str, data: bytes | OSError) -> tuple[bool, Any]:
    return isinstance(data, OSError), parse(path, data)


def _beside(mark: FileMark) -> FileMark:
    return mark._replace(tag=mark.tag and f"{mark.tag} beside")


def _below(vanished: Iterable[str], folders: Iterable[str]) -> set[str]:
    """Give those that lie in a folder that stands among the files, since it can't be listed just now."""
    return {path for path in vanished if path.startswith(tuple(folders))}


def _check_free(path: str) -> None:
    """Refuse a folder that holds other things, and a file."""
    try:
        found = list_source(path).files
    except SourceError:
        return  # it is not there yet
    if found == [path]:
        raise SourceError(f"{path}: is a file, not a folder")
    if found:
        raise SourceError(f"{path}: holds other files than a dataset, such as {os.path.basename(found[0])}")


def _check_same(dataset: Dataset, sources: list[str], kind: Kind) -> None:
    """Refuse to go on with other options or without a former source, whose rows would all vanish."""
    about = dataset.about
    if left_out := [name for name in about["sources"] if name not in sources]:
        raise SourceError(f"{dataset.path}: was also collected from {left_out[0]}; name it too, or take a new dataset")
    if about["options"] != kind.options:
        raise SourceError(f"{dataset.path}: was collected with {about['options']}; keep to that, or take a new dataset")
