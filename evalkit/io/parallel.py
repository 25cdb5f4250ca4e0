"""Reading and parsing many files: in this process, in several, or on a cluster that joblib knows.

Serial reading is the rule. JSON decoders hold the interpreter's lock, so threads don't help, and processes pay only
from some hundred files on. They are forked where that is safe, since starting new ones takes longer than most folders.
Within ``joblib.parallel_config("dask")``, or with any other of joblib's backends, the same work is done there.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from evalkit._version import __version__
from evalkit.io.bulk import paused_gc
from evalkit.io.files import SourceError, read_files
from evalkit.io.paths import is_url
from evalkit.io.storage import storage, storage_options

T = TypeVar("T")
Parse = Callable[[str, bytes | OSError], T]

SERIAL_BELOW = 1000  # files; for fewer, processes take longer to start than they save
CHUNK = 64  # files of one task, at most
AHEAD = 8  # tasks per process that are handed out before their results are taken
CONNECT = 10.0  # seconds to wait for a cluster's scheduler
PATIENCE = 300.0  # seconds without a result, after which a process is taken for dead


def parse_files(
    paths: Iterable[str], parse: Parse[T], jobs: int | None = None, serial_below: int | None = None
) -> Iterator[T]:
    """Read and parse files; results come in the order of the paths.

    Parameters
    ----------
    paths : iterable of str
    parse : function of (path, bytes or OSError)
        Must not raise for what a file holds. For several processes it must be one of a module (or a partial of one),
        and its results must be picklable.
    jobs : int, optional
        Processes; -1 for as many as there are cores. None: one, or what ``joblib.parallel_config`` says around this.
    serial_below : int, optional
        Fewer files than this are read in this process; `SERIAL_BELOW`, where nothing is said.

    Yields
    ------
    What `parse` returns
    """
    paths = list(paths)
    workers, options = _workers(jobs, any(map(is_url, paths)))
    if workers == 1 or len(paths) < (SERIAL_BELOW if serial_below is None else serial_below):
        yield from _parse_here(paths, parse)
        return
    import multiprocessing  # not above: it would slow the start of commands that read in this process

    from joblib import Parallel, delayed, effective_n_jobs

    task = delayed(_parse_chunk)
    size = max(1, min(CHUNK, len(paths) // (4 * effective_n_jobs(workers))))
    window = size * AHEAD * effective_n_jobs(workers)
    with Parallel(n_jobs=workers, **options) as parallel:
        for start in range(0, len(paths), window):
            chunks = [paths[at : at + size] for at in range(start, min(start + window, len(paths)), size)]
            try:
                results = parallel(task(chunk, parse, storage_options()) for chunk in chunks)
            except (TimeoutError, multiprocessing.TimeoutError, RuntimeError) as error:
                warnings.warn(f"a process died ({type(error).__name__}); reading on in this one", stacklevel=2)
                yield from _parse_here(paths[start:], parse)
                return
            for chunk in results:
                yield from chunk


@contextmanager
def cluster(scheduler: str | None) -> Iterator[None]:
    """Read with the processes of a Dask cluster within a ``with`` block; None changes nothing.

    Parameters
    ----------
    scheduler : str or None
        Address of the cluster's scheduler, such as ``tcp://10.0.0.1:8786``. Its workers must have evalkit installed,
        and see the files under the same paths.

    Raises
    ------
    SourceError
        Where Dask is not installed, or no scheduler answers.
    """
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError as error:
        raise SourceError("a cluster needs the extra: pip install 'evalkit[distributed]'") from error
    try:
        client = Client(scheduler, timeout=CONNECT)
    except (OSError, ValueError) as error:
        raise SourceError(f"{scheduler}: no Dask scheduler answers ({type(error).__name__})") from None
    with client:
        _check_workers(client, scheduler)
        with parallel_config("dask"):
            yield


def _check_workers(client: Any, scheduler: str) -> None:
    """Refuse a cluster whose workers can't run this code: a task that can't be unpickled would never end."""
    for worker, version in client.run(
        lambda: getattr(__import__("evalkit"), "__version__", ""), on_error="return"
    ).items():
        if version != __version__:
            raise SourceError(f"{scheduler}: worker {worker} has no evalkit {__version__} ({version})")


def _parse_here(paths: Iterable[str], parse: Parse[T]) -> Iterator[T]:
    for path, data in read_files(paths):
        result = parse(path, data)
        del data  # before the next file is read
        yield result


def _parse_chunk(paths: list[str], parse: Parse[T], options: Mapping[str, Any]) -> list[T]:
    with storage(options), paused_gc():
        return list(_parse_here(paths, parse))


def _workers(jobs: int | None, remote: bool) -> tuple[int, dict[str, Any]]:
    """Say how many processes to use, and the options that joblib needs for them."""
    if jobs in (None, 1) and "joblib" not in sys.modules:  # nothing was configured
        return 1, {}
    import multiprocessing

    from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend

    backend, configured = get_active_backend()
    if not isinstance(backend, BACKENDS[DEFAULT_BACKEND]):  # a cluster, or whatever the user has chosen
        return jobs or configured or backend.default_n_jobs, {}
    workers = jobs or configured or 1
    if workers == -1:
        workers = os.cpu_count() or 1
    if multiprocessing.current_process().daemon:  # has no children of its own
        return 1, {}
    forks = sys.platform == "linux" and threading.current_thread() is threading.main_thread() and not remote
    how = {"backend": "multiprocessing", "context": multiprocessing.get_context("fork")} if forks else {}
    return workers, {"timeout": PATIENCE, **how}
