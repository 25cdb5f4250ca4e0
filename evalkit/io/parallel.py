"""Read many files, in this process or in several.

JSON decoders hold the interpreter's lock, so threads don't help, and processes pay only from some thousand files on.
They are forked where that is safe, since starting new ones takes longer than reading most folders. Within
``joblib.parallel_config``, its backend does the work, such as Dask's on a cluster.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import joblib
from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend

from evalkit.io.paths import is_url

R = TypeVar("R")

SERIAL_FILES, SERIAL_BYTES = 2_000, 100_000_000  # from here on several processes are faster
CHUNK = 256  # files of one task, at most
TASKS = 16  # tasks per process, at least, so that none is idle for long at the end


def in_chunks(work: Callable[[list[str]], R], paths: list[str], size: int, jobs: int | None = None) -> Iterator[R]:
    """Yield what `work` returns of the files, chunk by chunk, in the order of the paths.

    `work` gets some of the paths, and raises nothing. For several processes it must be a function of a module (or a
    partial of one), and what it returns picklable.

    `jobs` is the number of processes, -1 for as many as there are cores. None: as in ``joblib.parallel_config`` around
    this, else as many as there are cores, if they can be forked safely. Few files, of few bytes together (`size`), are
    read in this process, and so are, with a warning, those of processes that break down.
    """
    is_many = len(paths) >= SERIAL_FILES or size >= SERIAL_BYTES
    workers, can_fork = _workers(jobs, any(map(is_url, paths))) if is_many else (1, False)
    length = max(1, min(CHUNK, len(paths) // (TASKS * workers) if workers > 1 else CHUNK))
    chunks, done = list[list[str]](), 0
    for at in range(0, len(paths), length):
        chunks.append(paths[at : at + length])
    if workers > 1:
        try:
            for result in (_in_forks if can_fork else _by_joblib)(work, chunks, workers):
                done += 1
                yield result
        except Exception as error:  # of the processes, since work raises nothing; if it does, it will do so here, too
            warnings.warn(f"other processes failed ({type(error).__name__}); reading on in this one", stacklevel=2)
    for chunk in chunks[done:]:
        yield work(chunk)


def _workers(jobs: int | None, is_remote: bool) -> tuple[int, bool]:
    """Return how many processes are to read, and whether they are to be forked from this one."""
    backend, configured = get_active_backend()
    if not isinstance(backend, BACKENDS[DEFAULT_BACKEND]):  # the user's choice
        return backend.effective_n_jobs(jobs or configured or backend.default_n_jobs), False
    is_main = threading.current_thread() is threading.main_thread()
    can_fork = sys.platform == "linux" and is_main and not is_remote and not multiprocessing.current_process().daemon
    if not (can_fork or jobs or configured):  # a backend that starts slowly was not asked for
        return 1, False
    return joblib.effective_n_jobs(jobs or configured or -1), can_fork


def _in_forks(work: Callable[[list[str]], R], chunks: list[list[str]], workers: int) -> Iterator[R]:
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, fork, _begin_worker, (os.getpid(),)) as pool:
        yield from pool.map(work, chunks)


def _begin_worker(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, too, and ends this one
    end_with_parent(parent)


def end_with_parent(parent: int) -> None:
    """Let Linux end this process when that of the id `parent` is killed; if it is gone by now, end at once."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


def _by_joblib(work: Callable[[list[str]], R], chunks: list[list[str]], workers: int) -> Iterator[R]:
    yield from joblib.Parallel(n_jobs=workers)(joblib.delayed(work)(chunk) for chunk in chunks)
