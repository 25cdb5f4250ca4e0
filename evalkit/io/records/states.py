"""The states of files: what a store knows of its source, compared with what is there now."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalkit.io.frames import unescaped
from evalkit.io.paths import FileState
from evalkit.io.records.store import RecordStore
from evalkit.io.sources import FolderState, KnownFolders, Listing, Source, list_source

if TYPE_CHECKING:
    import numpy as np


class States(NamedTuple):
    """The states of files, as columns, which are compared faster than objects."""

    paths: list[str]
    times: "np.ndarray"  # size, modified, changed: one row per file
    tags: list[str]

    @classmethod
    def of(cls, states: Sequence[tuple[str, FileState]]) -> "States":
        """Return the columns of states."""
        import numpy as np

        times = np.array([state[:3] for _, state in states], np.int64).reshape(-1, 3)
        return cls([path for path, _ in states], times, [state.tag for _, state in states])

    def items(self, places: Iterable[int] | None = None) -> Iterator[tuple[str, FileState]]:
        """Yield files and their states, of all or of those at some places."""
        for i in range(len(self.paths)) if places is None else places:
            size, modified, changed = self.times[i].tolist()
            yield self.paths[i], FileState(size, modified, changed, self.tags[i])


class Known(NamedTuple):
    """What a store knows about a source.

    Attributes
    ----------
    files : dict of str to int
        The place of each file in the columns below.
    states : States
    settled : array of bool
        Whether a file need not be read again while it has this state.
    context : array of bool
        Whether a file lies above the source.
    folders : dict of str to FolderState
    """

    files: dict[str, int]
    states: States
    settled: "np.ndarray"
    context: "np.ndarray"
    folders: dict[str, FolderState]

    @property
    def listed(self) -> list[str]:
        """The files of the source, without those above it."""
        paths = self.states.paths
        return [paths[i] for i in (~self.context).nonzero()[0].tolist()] if self.context.any() else paths

    def are_current(self, states: States, context: "np.ndarray") -> "np.ndarray":
        """Return for each file whether it need not be read: it is known, and has the same state."""
        import numpy as np

        if not self.files:
            return np.zeros(len(states.paths), bool)
        places = np.array([self.files.get(path, -1) for path in states.paths], int)
        same = (places >= 0) & self.settled[places] & (self.context[places] == context)
        same &= (self.states.times[places] == states.times).all(axis=1)
        return same & (np.array(self.states.tags, object)[places] == np.array(states.tags, object))


def known_in(store: RecordStore) -> Known:
    """Return what a store knows about its source."""
    import numpy as np

    files, folders = store.table("files"), store.folders()
    paths, settled, context = unescaped(files["source"]), files["settled"].to_numpy(), files["context"].to_numpy()
    times = np.column_stack([files[name].to_numpy() for name in ("size", "modified", "changed")])
    of_folders = (folders[name].to_numpy().tolist() for name in FolderState._fields)
    return Known(
        {path: place for place, path in enumerate(paths)},
        States(paths, times, files["tag"].to_pylist()),
        settled,
        context,
        dict(zip(unescaped(folders["source"]), map(FolderState, *of_folders), strict=True)),
    )


def list_again(known: Known, source: Source, pattern: str, *, recursive: bool) -> Listing:
    """List a source; local folders unchanged since the store's last update are not listed again."""
    return list_source(source, pattern, recursive=recursive, known=KnownFolders(known.folders, known.listed))
