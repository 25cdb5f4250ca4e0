"""The store of parsed tables: frames that were made of files are kept, and taken from there while the files stay.

An entry is a folder of Parquet files. Its key is made of everything the frames depend on: path, size and times of every
file, the options, evalkit's own code, the versions of pandas and pyarrow. So an entry is never changed, only dropped:
where the files change, another key is looked for. What can't be read, or is not what was written, is made again.

The store lies in ``$EVALKIT_CACHE`` (``off``: nothing is kept), else in ``$XDG_CACHE_HOME/evalkit`` or
``~/.cache/evalkit``. Entries that were not used for 30 days go, and the oldest ones where the store grows beyond 2 GB.
The folder may hold other things too: only what bears the name of an entry and looks like one inside is ever removed.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.io.parquet import read_table, to_frame, to_table, write_table
from evalkit.io.paths import is_url
from evalkit.io.sources import FileMark, mark_of
from evalkit.io.storage import SETTLED, storage_options
from evalkit.io.versions import code_version

if TYPE_CHECKING:
    import pandas as pd

try:
    import fcntl
except ImportError:  # Windows: two processes may build the same entry, and one of them keeps it
    fcntl = None

WAIT = 60.0  # seconds to wait for another process that builds the same entry
KEPT_DAYS = 30
KEPT_BYTES = 2_000_000_000
LIST = "entry.json"  # names the frames of an entry, with their digests

# what the store writes: entries, entries that are not whole yet, locks, and the files of the former two
_ENTRY = re.compile(r"\w+-[0-9a-f]{32}")
_ASIDE = re.compile(rf"\.{_ENTRY.pattern}\.new-\w{{8}}")
_LOCK = re.compile(rf"\.{_ENTRY.pattern}\.lock")
_FILE = re.compile(rf"{re.escape(LIST)}|\w+\.parquet")


def cached_frames(
    kind: str,
    files: Iterable[str | os.PathLike],
    build: Callable[[], Mapping[str, "pd.DataFrame"]],
    marks: "Mapping[str, FileMark] | None" = None,
    **options: Any,
) -> dict[str, "pd.DataFrame"]:
    """Return frames made of files: from the store where nothing has changed, else built and kept.

    Parameters
    ----------
    kind : str
        What the frames are, such as ``mindcraft``.
    files : iterable of paths
        Every file and folder the frames depend on; one that is not there counts too, as not there.
    build : function
        Makes the frames, by name; called where the store has none. Their index must be the plain one.
    marks : mapping of path to FileMark, optional
        Of files behind a URL, as a listing gave them; the others are asked for theirs.
    **options
        What else the frames depend on; anything JSON can hold.

    Returns
    -------
    dict of str to DataFrame
        Equal to what `build` returns. Frames that would not be, as cells hold what JSON has no form for (tuples, sets,
        keys that are no text), are not kept.
    """
    root = store_path()
    if root is None:
        return dict(build())
    key, newest = _key(kind, files, marks or {}, options)
    if time.time() - newest < SETTLED:
        return dict(build())
    entry = root / f"{kind}-{key}"
    frames = _read(entry)
    if frames is not None:
        return frames
    with _locked(root, entry.name):
        frames = _read(entry)  # by another process, while this one waited
        if frames is None:
            frames = dict(build())
            if not _may_pass(frames.get("ledger")):
                _write(entry, frames)
    return frames


def store_path() -> Path | None:
    """Return the store's folder, or None where nothing is to be kept."""
    own = os.environ.get("EVALKIT_CACHE", "")
    if own.lower() == "off":
        return None
    return Path(own or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "evalkit").expanduser()


def _key(
    kind: str, files: Iterable[str | os.PathLike], marks: "Mapping[str, FileMark]", options: Mapping[str, Any]
) -> tuple[str, float]:
    """Return the key, and the time of the newest file in seconds."""
    digest, newest = hashlib.blake2b(digest_size=16), 0.0
    paths = sorted(os.fspath(file) for file in files)
    remote = any(map(is_url, paths))
    where = "" if all(is_url(path) or os.path.isabs(path) for path in paths) else os.getcwd()
    head = [kind, code_version(), version("pandas"), version("pyarrow"), where, options]
    head += [dict(storage_options())] * remote
    digest.update(json.dumps(head, default=str, sort_keys=True).encode())
    for path in paths:
        mark = marks[path] if path in marks else mark_of(path)
        if mark is not None:
            newest = max(newest, mark.modified if mark.modified or mark.tag else math.inf)  # inf: nothing tells changes
        digest.update(f"\0{path}\0{mark}".encode(errors="surrogatepass"))
    return digest.hexdigest(), newest


def _may_pass(ledger: "pd.DataFrame | None") -> bool:
    """Tell whether a file behind a URL could not be read, which may be otherwise the next time."""
    if ledger is None:
        return False
    unread = ledger[(ledger["status"] == "failed") & ledger["source"].map(is_url).astype(bool)]
    return unread["reason"].str.match(r"(?:OS|Timeout|Connection|Permission)Error:").any()


def _read(entry: Path) -> dict[str, "pd.DataFrame"] | None:
    """Read an entry; None where there is none, or it is not what was written."""
    if not entry.is_dir():
        return None
    try:
        digests = json.loads((entry / LIST).read_bytes())
        frames = {name: _frame((entry / f"{name}.parquet").read_bytes(), digests[name]) for name in digests}
    except Exception:
        _remove(entry)
        return None
    with contextlib.suppress(OSError):
        os.utime(entry)  # it was used
    return frames


def _frame(data: bytes, digest: str) -> "pd.DataFrame":
    if hashlib.blake2b(data, digest_size=16).hexdigest() != digest:
        raise ValueError("not what was written")
    return to_frame(read_table(data))


def _write(entry: Path, frames: Mapping[str, "pd.DataFrame"]) -> None:
    """Write an entry beside its place and move it there; where that can't be, the frames are not kept."""
    aside = None
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        _drop_old(entry.parent)
        aside = Path(tempfile.mkdtemp(prefix=f".{entry.name}.new-", dir=entry.parent))
        digests = {}
        for name, frame in frames.items():
            data = write_table(to_table(frame))
            digests[name] = hashlib.blake2b(data, digest_size=16).hexdigest()
            (aside / f"{name}.parquet").write_bytes(data)
        (aside / LIST).write_text(json.dumps(digests))
        aside.rename(entry)
    except (OSError, ValueError, TypeError, RecursionError):  # no room, not allowed, or cells that can't be held
        if aside:
            shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path, name: str) -> Iterator[None]:
    """Let one process at a time build an entry; one that takes too long is not waited for."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = open(root / f".{name}.lock", "a")  # noqa: SIM115 - closed below
    except OSError:
        yield
        return
    with lock:
        deadline = time.monotonic() + WAIT
        while fcntl and time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.02)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.unlink(lock.name)


def _drop_old(root: Path) -> None:
    """Drop entries that were not used for long, and the oldest ones where there is too much."""
    found, total, now = [], 0, time.time()
    for path in root.iterdir():
        with contextlib.suppress(OSError):  # another process may drop it just now
            status, files = path.lstat(), _files(path)
            if files is not None:
                found.append((status.st_mtime, sum(file.lstat().st_size for file in files), path))
            elif _is_lock(path.name, status) and now - status.st_mtime > WAIT * 60:
                path.unlink()
    for used, size, path in sorted(found, reverse=True):
        total += size
        if total > KEPT_BYTES or now - used > KEPT_DAYS * 86_400:
            _remove(path)


def _is_lock(name: str, status: os.stat_result) -> bool:
    return bool(_LOCK.fullmatch(name)) and stat.S_ISREG(status.st_mode) and not status.st_size


def _files(path: Path) -> list[Path] | None:
    """Name the files of an entry, or of one that is not whole yet; None for what the store has not written."""
    aside = _ASIDE.fullmatch(path.name)
    if not (aside or _ENTRY.fullmatch(path.name)) or path.is_symlink() or not path.is_dir():
        return None
    files = list(path.iterdir())
    if any(file.is_symlink() or not file.is_file() or not _FILE.fullmatch(file.name) for file in files):
        return None
    return files if aside or path / LIST in files else None


def _remove(path: Path) -> None:
    """Remove an entry; whatever is none, or holds something else, stays as it is."""
    files = _files(path)
    if files is None:
        return
    with contextlib.suppress(OSError):
        for file in sorted(files, key=lambda file: file.name == LIST):  # last, as without it nothing else would go
            file.unlink()
        path.rmdir()
