"""The batch: every report in a process of its own, several at a time, and one that fails harms no other."""

import contextlib
import json
import math
import os
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from evalkit.io.frames import paused_gc
from evalkit.io.paths import SourceError
from evalkit.io.text import plain
from evalkit.reports import changes
from evalkit.reports.aside import folder_aside
from evalkit.reports.attempt import Attempt
from evalkit.reports.forking import can_be_quick, preload_engine, preload_libraries
from evalkit.reports.job import Job
from evalkit.reports.plan import Report
from evalkit.reports.processes import start_method
from evalkit.reports.progress import Progress
from evalkit.reports.records import Record, read_record, record_path, write_aside

TIMEOUT = 600.0  # seconds for one report

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS")


class Summary(NamedTuple):
    """What became of a batch: keys of reports, and where to look; `unusable` failed for what their sources hold."""

    made: list[str]
    failed: list[str]
    unusable: list[str]
    unchanged: list[str]
    stopped: bool
    index: Path
    manifest: Path


def run(
    reports: Iterable[Report],
    *,
    output: str | os.PathLike = "reports",
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    force: bool = False,
    code: bool = True,
    fork: bool = True,
    say: Callable[[str], None] = print,
    terminal: TextIO | None = None,
) -> Summary:
    """Make reports, and the index of all that are in the output folder.

    Parameters
    ----------
    reports : iterable of Report
        As `evalkit.reports.plan` returns them.
    output : path
        Folder for ``NOTEBOOK/REPORT.html`` with its executed notebook and tables, ``index.html``, ``manifest.json``.
    jobs : int, optional
        Reports at a time; default: one for each core this process may use.
    timeout : float
        Seconds for each report.
    force : bool
        Also make what has not changed.
    code : bool
        Whether pages hold the notebook's code, folded.
    fork : bool
        Execute notebooks in forked processes that have their imports done, where that can be; else in Jupyter kernels.
    say : function
        Called with one line per finished report.
    terminal : text file, optional
        Where a bar is drawn, if it is a terminal.

    Returns
    -------
    Summary

    Raises
    ------
    SourceError
        Where the output folder can't be made or written to.
    """
    reports, output = list(reports), Path(output)
    jobs = jobs or _cores()
    for variable in _THREADS:
        os.environ.setdefault(variable, str(max(1, _cores() // jobs)))
    with folder_aside(output) as aside:
        batch = _Batch(output, aside, jobs, timeout, Progress(len(reports), say, terminal))
        stopped = batch.run(reports, force=force, code=code, fork=fork)
        from evalkit.reports.index import write_index

        index, manifest = write_index(output, aside)
    return Summary(batch.made, batch.failed, batch.unusable, batch.unchanged, stopped, index, manifest)


class _Batch:
    """The state of a batch while it runs."""

    def __init__(self, output: Path, aside: Path, jobs: int, timeout: float, progress: Progress) -> None:
        self.output, self.aside, self.jobs, self.timeout, self.progress = output, aside, jobs, timeout, progress
        self.made: list[str] = []
        self.failed: list[str] = []
        self.unusable: list[str] = []
        self.unchanged: list[str] = []
        self.running: dict[int, Attempt] = {}

    def run(self, reports: list[Report], *, force: bool, code: bool, fork: bool) -> bool:
        """Make what is due; returns whether it was stopped before the end."""
        with _interruptible():
            try:
                due = self._choose(reports, force=force, code=code, fork=fork)
                self._make(deque((job, 1) for job in due), code)
            except KeyboardInterrupt:
                for attempt in self.running.values():
                    attempt.kill()
                    attempt.finish()
                return True
            finally:
                self.progress.clear()
        return False

    def _choose(self, reports: list[Report], *, force: bool, code: bool, fork: bool) -> list[Job]:
        """Return the jobs of the reports that must be made; the others are said to be up to date.

        Those that took longest come first, so that none is left to one core at the end; and before these, new ones.
        """
        fingerprint = changes.cached_fingerprint()
        due, took = [], {}
        for number, report in enumerate(reports):
            stamp = changes.stamp(report, code=code, fingerprint=fingerprint)
            record = read_record(self.output, report.key)
            why = changes.why(record, stamp, self.output) or ("forced" if force else "")
            if why:
                quick = fork and can_be_quick(report.notebook)
                due.append(Job(report, self.output, self.aside / str(number), why, stamp, code, quick))
                took[report.key] = record["seconds"] if record else math.inf
            else:
                self.unchanged.append(report.key)
                self.progress.unchanged(record)
        return sorted(due, key=lambda job: took[job.report.key], reverse=True)

    def _make(self, waiting: deque[tuple[Job, int]], code: bool) -> None:
        if waiting and start_method() == "fork":
            quick = {job.report.notebook.path: job.report.notebook for job, _ in waiting if job.quick}
            with paused_gc():
                preload_engine(code=code)
                preload_libraries(quick.values())
        while waiting or self.running:
            while waiting and len(self.running) < self.jobs:
                self._start(*waiting.popleft())
            self.progress.bar(attempt.job.report.key for attempt in self.running.values())
            first = min(attempt.deadline for attempt in self.running.values())
            for handle in wait(list(self.running), max(0.0, first - time.monotonic())):
                again = self._settle(self.running.pop(handle))
                if again:
                    waiting.appendleft((again, 2))
            for attempt in self.running.values():
                attempt.end_if_overdue()

    def _start(self, job: Job, number: int, **died: Any) -> None:
        attempt = Attempt(job, self.timeout, number, **died)
        self.running[attempt.handle] = attempt

    def _settle(self, attempt: Attempt) -> Job | None:
        """See to a process that ended: note what became of its report; returns a job that is worth another try."""
        job, code = attempt.job, attempt.finish()
        if code == 0:
            self._note(read_record(self.output, job.report.key))
        elif attempt.is_worth_another():
            shutil.rmtree(job.work, ignore_errors=True)
            return job._replace(quick=False)
        elif attempt.error:  # what was left could not be put in place
            record = job.record(error=plain(f"{attempt.error}; {attempt.cause()}"), seconds=round(attempt.seconds, 3))
            write_aside(record_path(self.output, job.report.key), json.dumps(record, default=str), self.aside)
            self._note(record)
        else:
            self._start(job, attempt.number, error=attempt.cause(), seconds=attempt.seconds)
        return None

    def _note(self, record: Record) -> None:
        (self.failed if record["status"] == "failed" else self.made).append(record["key"])
        self.unusable += [record["key"]] * record["error"].startswith(f"{SourceError.__name__}: ")
        self.progress.finished(record)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _interruptible():
    """Let SIGTERM stop a batch as Ctrl-C does; signals are the main thread's alone."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
