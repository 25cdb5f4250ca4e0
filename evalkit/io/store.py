"""The store of parsed tables: frames that were made of files are kept, and taken from there while the files stay.

An entry is a folder of Parquet files. Its key is made of everything the frames depend on: path, size and times of every
file, the options, evalkit's own code, the versions of pandas and pyarrow. So an entry is never changed, only dropped:
where the files change, another key is looked for. What can't be read, or is not what was written, is made again.

The store lies in ``$EVALKIT_CACHE`` (``off``: nothing is kept), else in ``$XDG_CACHE_HOME/evalkit`` or
``~/.cache/evalkit``. Entries that were not used for 30 days go, and the oldest ones where the store grows beyond 2 GB.
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
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
        digests = json.loads((entry / "entry.json").read_bytes())
        frames = {name: _frame((entry / f"{name}.parquet").read_bytes(), digests[name]) for name in digests}
    except Exception:
        shutil.rmtree(entry, ignore_errors=True)
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
        aside = Path(tempfile.mkdtemp(prefix=".new-", dir=entry.parent))
        digests = {}
        for name, frame in frames.items():
            data = write_table(to_table(frame))
            digests[name] = hashlib.blake2b(data, digest_size=16).hexdigest()
            (aside / f"{name}.parquet").write_bytes(data)
        (aside / "entry.json").write_text(json.dumps(digests))
        aside.rename(entry)
    except (OSError, ValueError, TypeError, RecursionError):  # no room, not allowed, or cells that can't be held
        if aside:
            shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def _locked(root: Path, name: str) -> Iterator[None]:
    """Let one process at a time build an entry; one that takes too long is not waited for."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = open(root / f".{name}.lock", "w")  # noqa: SIM115 - closed below
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
    total, now = 0, time.time()
    entries = [(path.stat().st_mtime, path) for path in root.iterdir()]
    for used, path in sorted(entries, reverse=True):
        if not path.is_dir():
            if now - used > WAIT * 60:
                path.unlink(missing_ok=True)
            continue
        total += sum(file.stat().st_size for file in path.iterdir())
        if total > KEPT_BYTES or now - used > KEPT_DAYS * 86_400:
            shutil.rmtree(path, ignore_errors=True)
