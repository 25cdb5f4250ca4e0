"""A folder aside: where a batch writes what is not finished, on the disk it is moved to later."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evalkit.io.paths import SourceError

try:
    import fcntl
except ImportError:  # Windows: folders of killed batches stay
    fcntl = None

PREFIX = ".work-"


@contextlib.contextmanager
def folder_aside(output: Path) -> Iterator[Path]:
    """Give a hidden folder within `output` that is gone afterwards; also remove those of batches that were killed.

    A batch holds a lock in its folder as long as it lives, so that another's folder is known to be in use.

    Raises
    ------
    SourceError
        Where `output` can't be made or written to.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        for left in output.glob(f"{PREFIX}*"):
            _remove_if_free(left)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=output))
    except OSError as error:
        cause = "a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise SourceError(f"{output}: {cause}") from error
    try:
        with open(folder / "lock", "w") as lock:
            if fcntl:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_if_free(folder: Path) -> None:
    if not fcntl:
        return
    with contextlib.suppress(OSError), open(folder / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
