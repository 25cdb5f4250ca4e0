"""Read and parse many files: in this process, in several, or on a Dask cluster.

JSON decoders hold the interpreter's lock, so threads don't help, and processes pay only from some thousand files on.
They are forked where that is safe, since starting new ones takes longer than reading most folders.
Within ``joblib.parallel_config``, its backend does the same work.
"""

import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from evalkit._version import __version__
from evalkit.io.frames import paused_gc
from evalkit.io.limits import Deadline, OverdueError, failure_of
from evalkit.io.paths import SourceError, is_url, storage, storage_options
from evalkit.io.read import read_files

T = TypeVar("T")
R = TypeVar("R")
Parse = Callable[[str, bytes | OSError], T]
Run = Callable[[list[list[str]], "_Work"], Iterator[Any]]  # of chunks, in order

SERIAL_BELOW = 5000  # files; two processes are 1.4 times as fast for this many, and gain little below 3,000
CHUNK = 256  # files of one task, at most
TASKS = 16  # tasks per process, at least, so that none is idle for long at the end
AHEAD = 3  # tasks given to a process and not finished
CONNECT = 5.0  # seconds to wait for a cluster's scheduler, and for the answers of its workers
LOOK = 1.0  # seconds after which a process checks whether its parent is alive
PATIENCE = 300.0  # seconds to wait for a result, after which the process is considered dead


def parse_files(
    paths: Iterable[str], parse: Parse[T], jobs: int | None = None, serial_below: int | None = None
) -> Iterator[T]:
    """Read and parse files; results come in the order of the paths.

    Parameters
    ----------
    paths : iterable of str
    parse : function of (path, bytes or OSError)
        Must not raise for the contents of a file. If it needs more memory or stack than there is, or more time than
        `evalkit.io.limits` allows, it is called again with that as the file's error. For several processes it must be
        one of a module (or a partial of one), and its results must be picklable.
    jobs : int, optional
        Processes, including this one; -1 for as many as there are cores. None: as in ``joblib.parallel_config`` around
        this, else as many as there are cores, if they can be forked safely. On a `cluster`, all of its workers read,
        whatever is given here.
    serial_below : int, optional
        Fewer files than this are read in this process; by default `SERIAL_BELOW`.

    Yields
    ------
    What `parse` returns

    Warns
    -----
    UserWarning
        If processes or the cluster break down; the files whose results are missing are then read in this process.
    """
    for results in parse_chunks(paths, parse, list, jobs, serial_below):
        yield from results


def parse_chunks(
    paths: Iterable[str],
    parse: Parse[T],
    pack: Callable[[Iterator[T]], R],
    jobs: int | None = None,
    serial_below: int | None = None,
) -> Iterator[R]:
    """Read and parse files, as `parse_files` does, and pack the results chunk by chunk in the process that parsed them.

    Packed results, such as a table, are sent between processes faster than single ones. `pack` is, as `parse`, a
    function of a module.
    """
    paths, work = list(paths), _Work(parse, pack)
    is_serial = len(paths) < (SERIAL_BELOW if serial_below is None else serial_below)
    workers, run = (1, None) if is_serial else _processes(jobs, any(map(is_url, paths)))
    if run is None:
        yield work.do(paths)
        return
    size = max(1, min(CHUNK, len(paths) // (TASKS * workers)))
    chunks = [paths[at : at + size] for at in range(0, len(paths), size)]
    done, packed = 0, run(chunks, work)
    while done < len(chunks):
        try:
            result = next(packed)
        except Exception as error:  # of the processes, since parse raises nothing; if it does, it will do so here, too
            warnings.warn(f"other processes failed ({type(error).__name__}); reading on in this one", stacklevel=2)
            yield work.do(paths[done * size :])
            return
        done += 1
        yield result


class _Work(NamedTuple):
    """The work on a chunk of files: parse each, and pack the results."""

    parse: Callable
    pack: Callable

    def do(self, paths: list[str]) -> Any:
        with Deadline() as deadline:
            return self.pack(self._results(paths, deadline))

    def _results(self, paths: list[str], deadline: Deadline) -> Iterator[Any]:
        """Parse files; one that runs out of memory or time is parsed as one that can't be read."""
        for path, data in read_files(paths):
            try:
                deadline.start()
                result = self.parse(path, data)
                deadline.stop()
            except (MemoryError, RecursionError, OverdueError) as error:
                deadline.stop()
                result = self.parse(path, failure_of(error, deadline))
            del data  # before the next file is read
            yield result


@contextmanager
def cluster(scheduler: str | None) -> Iterator[None]:
    """Read with the workers of a Dask cluster within a ``with`` block; None changes nothing.

    Parameters
    ----------
    scheduler : str or None
        Address of the cluster's scheduler, such as ``tcp://10.0.0.1:8786``. Its workers must have evalkit installed,
        and have the files at the same paths.

    Raises
    ------
    SourceError
        If Dask is not installed, or no scheduler answers.
    """
    if scheduler is None:
        yield
        return
    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError as error:
        raise SourceError("a cluster needs the extra: pip install 'evalkit[distributed]'") from error
    _check_scheduler(scheduler)
    with Client(scheduler, timeout=CONNECT, set_as_default=False) as client:
        _check_workers(client, scheduler)
        with parallel_config("dask", client=client):
            yield


def _check_scheduler(address: str) -> None:
    """Raise SourceError if no scheduler answers soon; a client would wait ten times as long for some addresses."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def ask() -> dict[str, Any]:
        from distributed import rpc

        async with rpc(address, timeout=CONNECT) as there:
            return await there.identity()

    with ThreadPoolExecutor(1) as executor:  # in a notebook this thread already has an event loop
        try:
            identity = executor.submit(lambda: asyncio.run(asyncio.wait_for(ask(), CONNECT))).result()
        except Exception as error:  # of many types: the address decides which library fails
            raise SourceError(f"{address}: no Dask scheduler answers ({type(error).__name__})") from None
    if identity["type"] != "Scheduler":
        raise SourceError(f"{address}: no Dask scheduler, but a {identity['type']}")


def _check_workers(client: Any, scheduler: str) -> None:
    """Raise SourceError for a cluster without workers, or with workers that run other code."""
    try:
        versions = client.run(
            lambda: getattr(__import__("evalkit"), "__version__", ""), on_error="return", callback_timeout=CONNECT
        )
    except (OSError, TimeoutError) as error:
        raise SourceError(f"{scheduler}: the cluster's workers don't answer ({type(error).__name__})") from None
    if not versions:
        raise SourceError(f"{scheduler}: the cluster has no workers")
    for worker, version in versions.items():
        if version != __version__:
            raise SourceError(f"{scheduler}: worker {worker} has no evalkit {__version__} ({version})")


def _do(paths: list[str], work: _Work, options: Mapping[str, Any]) -> Any:
    """Do the work on a chunk of files in another process, or beside other processes."""
    with storage(options), paused_gc():
        return work.do(paths)


def _in_forks(workers: int, chunks: list[list[str]], work: _Work) -> Iterator[Any]:
    """Parse in forked processes from the first chunk on, and in this one from the last one back, until they meet.

    So this process is not idle, and the results it has parsed itself need not be sent to it.
    """
    import multiprocessing  # imported here, as it would slow the start of commands that read in one process
    from concurrent.futures import ProcessPoolExecutor

    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers - 1, multiprocessing.get_context("fork"), _follow, (os.getpid(),))
    todo, begun, parsed_here = deque(chunks), deque[Any](), deque[Any]()
    try:
        while todo or begun:
            for _ in range(AHEAD * (workers - 1) - sum(not future.done() for future in begun)):
                if todo:
                    begun.append(pool.submit(_do, todo.popleft(), work, storage_options()))
            if todo and not begun[0].done():
                parsed_here.appendleft(_do(todo.pop(), work, storage_options()))
            else:
                yield begun.popleft().result(PATIENCE)
        yield from parsed_here
    except TimeoutError:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()  # else the interpreter would wait for it at exit
        raise
    finally:
        pool.shutdown(wait=False)


def _follow(parent: int) -> None:
    """Make this process end when its parent does."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, too, and ends this one
    threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    """End this process soon after its parent was killed, which it would not notice while waiting for work."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)


def _on_cluster(client: Any, chunks: list[list[str]], work: _Work) -> Iterator[Any]:
    """Parse on a Dask cluster, which reassigns the work of a worker that dies."""
    pool = client.get_executor(pure=False)
    try:
        waiting = deque(pool.submit(_do, chunk, work, storage_options()) for chunk in chunks)
        while waiting:
            yield waiting.popleft().result(PATIENCE)
    finally:
        pool.shutdown(wait=False)


def _by_joblib(workers: int, chunks: list[list[str]], work: _Work, **options: Any) -> Iterator[Any]:
    from joblib import Parallel, delayed

    task = delayed(_do)
    yield from Parallel(n_jobs=workers, **options)(task(chunk, work, storage_options()) for chunk in chunks)


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processes(jobs: int | None, remote: bool) -> tuple[int, Run | None]:
    """Return how many processes are to read, and the function that runs them, None for this process alone."""
    configured = None
    if "joblib" in sys.modules:  # else nothing was configured
        from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend

        backend, configured = get_active_backend()
        client: Any = getattr(backend, "client", None)
        if hasattr(client, "get_executor"):
            return max(1, sum(client.ncores().values())), partial(_on_cluster, client)
        if not isinstance(backend, BACKENDS[DEFAULT_BACKEND]):  # the user's choice
            workers = jobs or configured or backend.default_n_jobs
            return backend.effective_n_jobs(workers), partial(_by_joblib, workers)
    workers = jobs or configured or -1
    if workers == -1:
        workers = _cores()
    if workers == 1:
        return 1, None
    import multiprocessing

    if multiprocessing.current_process().daemon:  # has no children
        return 1, None
    if sys.platform == "linux" and threading.current_thread() is threading.main_thread() and not remote:
        return workers, partial(_in_forks, workers)
    if not (jobs or configured):  # a backend that starts slowly was not asked for
        return 1, None
    return workers, partial(_by_joblib, workers, timeout=PATIENCE)
