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
from typing import Any, TypeVar

from evalkit.io.bulk import paused_gc
from evalkit.io.files import read_files
from evalkit.io.paths import is_url
from evalkit.io.storage import storage, storage_options

T = TypeVar("T")
Parse = Callable[[str, bytes | OSError], T]

SERIAL_BELOW = 1000  # files; for fewer, processes take longer to start than they save
CHUNK = 64  # files of one task, at most
AHEAD = 8  # tasks per process that are handed out before their results are taken
PATIENCE = 300.0  # seconds without a result, after which a process is taken for dead


def parse_files(
    paths: Iterable[str], parse: Parse[T], jobs: int | None = None, serial_below: int = SERIAL_BELOW
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
    serial_below : int
        Fewer files than this are read in this process.

    Yields
    ------
    What `parse` returns
    """
    paths = list(paths)
    workers, options = _workers(jobs, any(map(is_url, paths)))
    if workers == 1 or len(paths) < serial_below:
        yield from _parse_here(paths, parse)
        return
    import multiprocessing  # not above: it would slow the start of commands that read in this process

    from joblib import Parallel, delayed, effective_n_jobs

    task = delayed(_parse_chunk)
    size = max(1, min(CHUNK, len(paths) // (4 * effective_n_jobs(workers))))
    window = size * AHEAD * effective_n_jobs(workers)
    with Parallel(n_jobs=workers, timeout=PATIENCE, **options) as parallel:
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
    return workers, {"backend": "multiprocessing", "context": multiprocessing.get_context("fork")} if forks else {}
