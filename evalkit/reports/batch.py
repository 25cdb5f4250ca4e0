"""Run a batch: every report in its own process, several at a time, isolated from the failures of others."""

import contextlib
import json
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from evalkit.io.frames import paused_gc
from evalkit.io.paths import SourceError, redacted
from evalkit.io.text import plain
from evalkit.reports import changes
from evalkit.reports.engines.preload import can_fork, preload_engine, preload_libraries
from evalkit.reports.engines.process import Attempt, describe
from evalkit.reports.evidence import is_missing, write_evidence
from evalkit.reports.job import Job, Report
from evalkit.reports.planning.expansion import marked
from evalkit.reports.processes import held_signals, start_method, stopped_once
from evalkit.reports.progress import Progress
from evalkit.reports.records import Record, read_record, record_path, work_folder, write_file

TIMEOUT = 600.0  # seconds for one report
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS")


class Summary(NamedTuple):
    """The result of a batch: keys of reports, and paths; those in `unusable` failed because of their sources."""

    made: list[str]
    failed: list[str]
    unusable: list[str]
    unchanged: list[str]
    stopped: bool
    index: Path  # type: ignore[assignment]  # shadows the method of tuples on purpose
    manifest: Path
    index_fault: str = ""  # why index and manifest could not be written


def run(
    reports: Iterable[Report],
    *,
    output: str | os.PathLike = "reports",
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    force: bool = False,
    code: bool = True,
    fork: bool = True,
    evidence: str = "linked",
    mask: bool = True,
    say: Callable[[str], None] = print,
    terminal: TextIO | None = None,
) -> Summary:
    """Make reports, and the index of all reports in the output folder.

    Parameters
    ----------
    reports : iterable of Report
        As `evalkit.reports.planning.plan` returns them.
    output : path
        Folder for ``NOTEBOOK/REPORT.html`` with its executed notebook and tables, ``index.html``, ``manifest.json``.
    jobs : int, optional
        Number of reports made at a time; by default, the number of cores this process may use.
    timeout : float
        Time limit of each report, in seconds.
    force : bool
        Whether to make reports that have not changed too.
    code : bool
        Whether pages include the notebook's code, folded.
    fork : bool
        Whether to execute notebooks in forked processes with their imports done, if possible; else in Jupyter kernels.
    evidence : {"linked", "all", "none"}
        Which runs get a page beside the reports: those that a table links to, all of its source, or none.
    mask : bool
        Whether to mask credentials of known forms on pages of runs.
    say : function
        Called with one line per finished report.
    terminal : text file, optional
        Where a progress bar is drawn, if it is a terminal.

    Returns
    -------
    Summary

    Raises
    ------
    SourceError
        If the output folder can't be created or written to.
    """
    output = Path(output)
    reports = [_without_clash(report, output) for report in reports]
    jobs = jobs or _cores()
    for variable in _THREADS:
        os.environ.setdefault(variable, str(max(1, _cores() // jobs)))
    with stopped_once(), work_folder(output) as work:
        batch = _Batch(output, work, jobs, timeout, Progress(len(reports), say, terminal))
        stopped = batch.run(reports, force=force, code=code, fork=fork, evidence=evidence, mask=mask)
        from evalkit.reports.html.index import write_index

        fault = ""
        try:
            if not stopped and (batch.keys["made"] or batch.keys["failed"] or is_missing(output)):
                write_evidence(output, mask=mask)
            write_index(output, work)
        except (OSError, SourceError) as error:
            fault = describe(error)
    result: dict[str, Any] = {**batch.keys, "index": output / "index.html", "manifest": output / "manifest.json"}
    return Summary(**result, stopped=stopped, index_fault=fault)


class _Batch:
    """The state of a batch while it runs."""

    def __init__(self, output: Path, work: Path, jobs: int, timeout: float, progress: Progress) -> None:
        self.output, self.work, self.jobs, self.timeout, self.progress = output, work, jobs, timeout, progress
        self.keys: dict[str, list[str]] = {"made": [], "failed": [], "unusable": [], "unchanged": []}
        self.running: dict[int, Attempt] = {}

    def run(self, reports: list[Report], **options: Any) -> bool:
        """Make the reports that are due; return whether the batch was stopped before the end."""
        try:
            self._make(deque((job, 1) for job in self._choose(reports, **options)))
        except KeyboardInterrupt:
            for attempt in self.running.values():
                attempt.kill()
                attempt.finish()
            return True
        finally:
            self.progress.close()
        return False

    def _choose(
        self, reports: list[Report], *, force: bool, code: bool, fork: bool, evidence: str, mask: bool
    ) -> list[Job]:
        """Return the jobs of the reports that must be made; the others are printed as up to date.

        New reports come first, then those that took longest, so that no long one is left to one core at the end.
        """
        fingerprint = cache(changes.input_fingerprint)  # each source is listed once
        due, took, pages = [], {}, evidence if mask else f"{evidence}, not masked"
        for number, report in enumerate(reports):
            stamp = changes.stamp(report, code=code, evidence=pages, fingerprint=fingerprint)
            record = read_record(self.output, report.key)
            why = changes.why(record, stamp, self.output) or ("forced" if force else "")
            if why or record is None:
                forked = fork and can_fork(report.notebook)
                due.append(Job(report, self.output, self.work / str(number), why, stamp, code, forked, evidence))
                took[report.key] = record["seconds"] if record else math.inf
            else:
                self.keys["unchanged"].append(report.key)
                self.progress.unchanged(record)
        return sorted(due, key=lambda job: took[job.report.key], reverse=True)

    def _make(self, waiting: deque[tuple[Job, int]]) -> None:
        if waiting and start_method() == "fork":
            notebooks = {job.report.notebook.path: job.report.notebook for job, _ in waiting if job.forked}
            with paused_gc():
                preload_engine(code=waiting[0][0].code)
                preload_libraries(notebooks.values())
        while waiting or self.running:
            while waiting and len(self.running) < self.jobs:
                self._start(*waiting.popleft())
            self.progress.running(attempt.job.report.key for attempt in self.running.values())
            first = min((attempt.deadline for attempt in self.running.values()), default=0.0)
            for handle in wait(list(self.running), max(0.0, first - time.monotonic())):
                with held_signals():  # processes that it left running must be ended too
                    again = self._settle(self.running.pop(cast(int, handle)))
                if again:
                    waiting.appendleft((again, 2))
            for attempt in self.running.values():
                attempt.end_if_overdue()

    def _start(self, job: Job, number: int, **died: Any) -> None:
        with held_signals():  # a signal in between would leave the process untracked
            try:
                attempt = Attempt(job, self.timeout, number, **died)
                self.running[attempt.handle] = attempt
            except OSError as error:  # a full disk, or too many processes
                self._give_up(job, describe(error))

    def _settle(self, attempt: Attempt) -> Job | None:
        """Record the result of a process that ended; return its job if that is worth a retry."""
        job, code = attempt.job, attempt.finish()
        record = read_record(self.output, job.report.key) if code == 0 else None
        if record is not None:
            shutil.rmtree(job.work, ignore_errors=True)
            self._note(record)
        elif attempt.is_worth_another():
            shutil.rmtree(job.work, ignore_errors=True)
            return job._replace(forked=False)
        elif attempt.error:  # the partial report could not be written
            cause = attempt.cause()
            message = attempt.error if cause == attempt.error else f"{attempt.error}; {cause}"
            self._give_up(job, message, attempt.seconds)
        else:
            self._start(job, attempt.number, error=attempt.cause(), seconds=attempt.seconds)
        return None

    def _give_up(self, job: Job, error: str, seconds: float = 0.0) -> None:
        """Mark a report as failed of which nothing could be written, also in its record if possible."""
        shutil.rmtree(job.work, ignore_errors=True)  # makes room on a full disk
        record = job.record(error=redacted(plain(error)), seconds=round(seconds, 3))
        with contextlib.suppress(OSError):
            write_file(record_path(self.output, job.report.key), json.dumps(record, default=str), self.work)
        self._note(record)

    def _note(self, record: Record) -> None:
        self.keys["failed" if record["status"] == "failed" else "made"].append(record["key"])
        self.keys["unusable"] += [record["key"]] * record["error"].startswith(f"{SourceError.__name__}: ")
        self.progress.finished(record)


def _without_clash(report: Report, output: Path) -> Report:
    """Add a hash to a report's name if the output folder has it for other parameters, unless the user chose it."""
    existing = None if report.params_file or report.is_named else read_record(output, report.key)
    given = json.loads(json.dumps(report.parameters, default=str))
    is_other = existing and (existing["params_file"] or existing["parameters"] != given)
    return marked(report) if is_other else report


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
