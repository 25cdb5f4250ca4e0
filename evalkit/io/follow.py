"""Following a source that is still written to: each look lists it, and reads only the files that changed.

Files are written in place, so any look may meet one that is only half there. A file that can't be parsed and changed
less than `SETTLE` seconds ago counts as being written: what it said before stands, and the next look reads it again.
Only one that is still broken after that time is a failed file.

How long a file has been left alone is counted from the look that saw it change, so that the clock of a file server
does not matter; for files that are there already at the first look, from their own time.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from evalkit.io.dataset import MANIFEST
from evalkit.io.files import SourceError
from evalkit.io.parallel import SERIAL_BELOW, Parse, parse_files
from evalkit.io.sources import Listing, Source, list_source, mark_of
from evalkit.io.storage import FileMark, StorageOptions, storage
from evalkit.io.text import plain

T = TypeVar("T")

SETTLE = 10.0  # seconds after its last change in which a broken file counts as being written

_NOT_THERE = FileMark(0, 0.0)  # a dangling link, or a file that went away since it was listed


class _Seen(NamedTuple):
    """The state a file or folder was last seen in, and since when it is in it."""

    mark: FileMark
    since: float


class Watch(Generic[T]):
    """A source that is looked at again and again; what was parsed of it stays until it changes.

    Parameters
    ----------
    source : str, path, or several of them
        As for `evalkit.io.list_source`. One that is not there yet is waited for.
    parse : function of (path, bytes or OSError)
        As for `evalkit.io.parse_files`.
    broken : function of what `parse` returns
        Tells whether the file could not be read.
    choose : function of a Listing
        Which files to parse; all that are listed, where none is given.
    pattern, recursive
        As for `evalkit.io.list_source`.
    jobs, serial_below, storage_options
        As for `evalkit.io.parse_files` and `evalkit.io.storage`.
    clock : function
        Gives the time in epoch seconds.

    Attributes
    ----------
    listing : Listing
        The files of the last look that worked.
    results : dict of str to what `parse` returns
        By path, in the order of the listing.
    writing : set of str
        Files that count as being written.
    waiting : list of str
        Why sources that are not there yet could not be listed.
    problem : str
        Why the last look could not list the source; the rest is as the look before left it.
    changed : bool
        Whether the last look read anything anew, or missed a file.
    new : int
        How many files were new or changed.
    now : float
        When the last look began.
    """

    def __init__(
        self,
        source: Source,
        parse: Parse[T],
        broken: Callable[[T], bool],
        *,
        choose: Callable[[Listing], list[str]] = lambda listing: listing.files,
        pattern: str = "*",
        recursive: bool = True,
        jobs: int | None = None,
        serial_below: int = SERIAL_BELOW,
        storage_options: StorageOptions = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._sources = [source] if isinstance(source, (str, os.PathLike)) else list(source)
        self._broken, self._choose = broken, choose
        self._list = partial(list_source, pattern=pattern, recursive=recursive)
        self._read = partial(parse_files, parse=partial(_parse, parse), jobs=jobs, serial_below=serial_below)
        self._options, self._clock = storage_options, clock
        self._listed: set[str | os.PathLike] = set()
        self._seen: dict[str, _Seen] = {}
        self._retry: set[str] = set()
        self._looks = 0
        self.listing = Listing("", [], [], {})
        self.results: dict[str, T] = {}
        self.writing: set[str] = set()
        self.waiting: list[str] = []
        self.problem = ""
        self.changed, self.new, self.now = False, 0, 0.0

    def look(self) -> None:
        """List the source, and read what is new, what has changed, and what was being written or could not be read.

        Raises
        ------
        SourceError
            Where a dataset stands in the source: nothing in it is a log.
        """
        self.now, self.changed, self.new = self._clock(), False, 0
        with storage(self._options):
            try:
                listing = self._find()
            except SourceError as error:
                self.problem = plain(error)
                return
            if dataset := next((file for file in listing.files if os.path.basename(file) == MANIFEST), None):
                folder = os.path.dirname(dataset)
                raise SourceError(f"{folder}: a dataset can't be followed; name the folder that it is collected from")
            self.problem, self.listing = "", listing
            files = self._choose(listing)
            marks = {path: listing.marks.get(path) or mark_of(path) or _NOT_THERE for path in files}
            self._update(marks)
        self._looks += 1

    def quiet(self, path: str) -> float:
        """Give the seconds for which a file, or a folder of the listing, has been left alone."""
        if path not in self.results:
            with storage(self._options):
                self._note(path, mark_of(path) or _NOT_THERE)
        return self.now - self._seen[path].since

    def name(self, path: str) -> str:
        """Shorten a path to its part below the source, for a line that has to be short."""
        return path.removeprefix(self.listing.root.rstrip("/") + "/")

    def status(self) -> str:
        """Say in a few words what the last look met."""
        text = f"{self.new} of {len(self.results)} files new"
        return text + f", {len(self.writing)} being written" * bool(self.writing)

    def notes(self) -> list[str]:
        """Say what could not be listed, a line each."""
        lines = [f"waiting for {plain(reason)}" for reason in self.waiting]
        return lines + [f"could not look, so this may be old: {self.problem}"] * bool(self.problem)

    def _find(self) -> Listing:
        """List the sources; one that was there before must be there, others are waited for."""
        try:
            listing = self._list(self._sources)
            self._listed, self.waiting = set(self._sources), []
            return listing
        except SourceError:
            here, waiting = [], []
            for source in self._sources:
                try:
                    self._list(source)
                    here.append(source)
                except SourceError as error:
                    if source in self._listed:
                        raise
                    waiting.append(str(error))
            listing = self._list(here) if here else self.listing
            self._listed, self.waiting = set(here), waiting
            return listing

    def _note(self, path: str, mark: FileMark) -> bool:
        """Note the state of a file or folder; tell whether it is another one than before."""
        known = self._seen.get(path)
        if known is not None and known.mark == mark:
            return False
        there_before = self._looks == 0 and 0 < mark.modified <= self.now
        self._seen[path] = _Seen(mark, mark.modified if there_before else self.now)
        return True

    def _update(self, marks: Mapping[str, FileMark]) -> None:
        gone = self.results.keys() - marks.keys()
        changed = {path for path, mark in marks.items() if self._note(path, mark)}
        paths = [path for path in marks if path in changed or path in self._retry]
        for path, (read, result) in zip(paths, self._read(paths), strict=True):
            self._take(path, read, result)
        for path in gone:
            del self._seen[path]
        self._retry &= marks.keys()
        self.writing &= marks.keys()
        self.results = {path: self.results[path] for path in marks}
        self.changed, self.new = bool(paths or gone), len(changed)

    def _take(self, path: str, read: bool, result: T) -> None:
        """Keep what a file gave; while it is being written, what it gave before."""
        for paths in (self._retry, self.writing):
            paths.discard(path)
        if self._broken(result):
            if self.now - self._seen[path].since < SETTLE:
                self.writing.add(path)
                self._retry.add(path)
                result = self.results.get(path, result)
            elif not read:  # nothing of the file's own tells when that will be over
                self._retry.add(path)
        self.results[path] = result


def _parse(parse: Parse[T], path: str, data: bytes | OSError) -> tuple[bool, T]:
    return not isinstance(data, OSError), parse(path, data)
