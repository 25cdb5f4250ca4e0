"""Run a batch: every report in its own process, several at a time, isolated from the failures of others."""

import contextlib
import faulthandler
import json
import math
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from tqdm import tqdm

from evalkit.evidence import VARIABLE
from evalkit.io.frames import paused_gc
from evalkit.io.parallel import end_with_parent
from evalkit.io.paths import SourceError, redacted
from evalkit.io.text import plain, warnings_as_usual
from evalkit.reports.index import is_missing, write_evidence, write_index
from evalkit.reports.planning import marked
from evalkit.reports.processes import can_fork, end_family, preload, start_method
from evalkit.reports.records import input_fingerprint, read_record, stamp_of, why_make, work_folder, write_record
from evalkit.reports.report import Job, Record, Report

TIMEOUT = 600.0  # seconds for one report
GRACE = 5.0  # seconds in which an overdue report ends by itself, showing where it was
SIZE_BUDGET = 1_500_000  # bytes; larger pages are pointed out
_POLL = 0.2  # seconds between two looks at time limits and signals
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
        As `evalkit.reports.plan` returns them.
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
    with _signals_noted() as stopped, work_folder(output) as work:
        batch = _Batch(output, work, Progress(len(reports), say, terminal))
        pages = evidence if mask else f"{evidence}, not masked"
        due = batch.choose(reports, force=force, code=code, fork=fork, evidence=evidence, pages=pages, timeout=timeout)
        try:
            batch.make(due, jobs, stopped)
        finally:
            batch.progress.bar.close()
        fault = ""
        try:
            if not stopped.is_set() and (batch.keys["made"] or batch.keys["failed"] or is_missing(output)):
                write_evidence(output, mask=mask)
            write_index(output, work)
        except (OSError, SourceError) as error:
            fault = _in_one_line(error)
    paths = {"index": output / "index.html", "manifest": output / "manifest.json"}
    return Summary(**batch.keys, **paths, stopped=stopped.is_set(), index_fault=fault)  # type: ignore[arg-type]


class Progress:
    """The lines of a batch of `total` reports; if `terminal` is one, they are written above a bar."""

    def __init__(self, total: int, say: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self.total, self.done = total, 0
        tqdm.monitor_interval = 0  # no thread, as processes are forked while it is shown
        form = "{bar:24} {n_fmt}/{total_fmt}{postfix}"
        disable = None if terminal else True  # None: unless it is a terminal
        self.bar = tqdm(total=total, file=terminal, disable=disable, leave=False, dynamic_ncols=True, bar_format=form)
        self.say = say if self.bar.disable else lambda line: self.bar.write(line, file=terminal)

    def unchanged(self, record: Record) -> None:
        """Print that a report is up to date."""
        self._line("unchanged", record["key"], _headline(record), "")

    def finished(self, record: Record) -> None:
        """Print the result of a report."""
        seconds = f"{record['seconds']:.1f} s"
        if record["status"] == "failed":
            first = (record["error"].splitlines() or [""])[0]
            self._line("FAILED", record["key"], plain(first, 200), seconds)
            return
        size = record["page_bytes"]
        large = f", more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
        self._line("made", record["key"], _headline(record), f"{seconds}, {size / 1e6:.2f} MB{large}, {record['why']}")

    def running(self, keys: Iterable[str]) -> None:
        """Draw the bar, with the reports in progress beside it."""
        self.bar.set_postfix_str(plain(", ".join(keys), 60))

    def _line(self, status: str, key: str, text: str, note: str) -> None:
        self.done += 1
        self.bar.update()
        columns = [f"[{self.done}/{self.total}] {status:9} {plain(key)}", plain(text), f"({note})" if note else ""]
        self.say("  ".join(column for column in columns if column))


def _headline(record: Record) -> str:
    headline = record["headline"] or {}
    return f"{headline.get('text', '')} {headline.get('label', '')}".strip()


class _Batch:
    """The state of a batch while it runs."""

    def __init__(self, output: Path, work: Path, progress: Progress) -> None:
        self.output, self.work, self.progress = output, work, progress
        self.keys: dict[str, list[str]] = {"made": [], "failed": [], "unusable": [], "unchanged": []}

    def choose(
        self, reports: list[Report], *, force: bool, code: bool, fork: bool, evidence: str, pages: str, timeout: float
    ) -> list[Job]:
        """Return the jobs of the reports that must be made; the others are printed as up to date.

        New reports come first, then those that took longest, so that no long one is left to one core at the end.
        """
        fingerprint = cache(input_fingerprint)  # each source is listed once
        due, took = [], {}
        for number, report in enumerate(reports):
            stamp = stamp_of(report, code=code, evidence=pages, fingerprint=fingerprint)
            record = read_record(self.output, report.key)
            why = why_make(record, stamp, self.output) or ("forced" if force else "")
            if why or record is None:
                forked = fork and can_fork(report.notebook)
                work = self.work / str(number)
                due.append(Job(report, self.output, work, why, stamp, code, forked, evidence, timeout))
                took[report.key] = record["seconds"] if record else math.inf
            else:
                self.keys["unchanged"].append(report.key)
                self.progress.unchanged(record)
        return sorted(due, key=lambda job: took[job.report.key], reverse=True)

    def make(self, due: list[Job], jobs: int, stopped: threading.Event) -> None:
        """Make reports, several at a time, until all are made or the batch is stopped."""
        if due and start_method() == "fork":
            _prepare_forks(due)
        waiting, running = deque(due), list[_Attempt]()
        while (waiting or running) and not stopped.is_set():
            while waiting and len(running) < jobs:
                job = waiting.popleft()
                try:
                    running.append(_Attempt(job))
                except OSError as error:  # a full disk, or too many processes
                    self._give_up(job, _in_one_line(error))
            self.progress.running(attempt.job.report.key for attempt in running)
            wait([attempt.process.sentinel for attempt in running], _POLL)
            for attempt in [attempt for attempt in running if attempt.has_ended()]:
                running.remove(attempt)
                self._settle(attempt)
        for attempt in running:
            end_family(attempt.pid)
            attempt.process.join()

    def _settle(self, attempt: "_Attempt") -> None:
        """Note the result of a process that ended; of one that died, make the partial report."""
        job = attempt.job
        record = read_record(self.output, job.report.key) if attempt.process.exitcode == 0 else None
        if record is None:
            from evalkit.reports.build import build_failed

            cause = attempt.cause()
            try:
                build_failed(job, cause, attempt.seconds)
                record = read_record(self.output, job.report.key)
            except Exception as error:
                fault = _in_one_line(error)
                self._give_up(job, cause if fault in cause else f"{cause}; {fault}", attempt.seconds)
        if record is not None:
            self._note(record)
        shutil.rmtree(job.work, ignore_errors=True)

    def _give_up(self, job: Job, error: str, seconds: float = 0.0) -> None:
        """Note a report as failed of which nothing could be written, also in its record if possible."""
        shutil.rmtree(job.work, ignore_errors=True)  # makes room on a full disk
        record = job.record(error=redacted(plain(error)), seconds=round(seconds, 3))
        with contextlib.suppress(OSError):
            write_record(job._replace(work=self.work), record)
        self._note(record)

    def _note(self, record: Record) -> None:
        self.keys["failed" if record["status"] == "failed" else "made"].append(record["key"])
        if record["error"].startswith(f"{SourceError.__name__}: "):
            self.keys["unusable"].append(record["key"])
        self.progress.finished(record)


class _Attempt:
    """A process that makes a report."""

    def __init__(self, job: Job) -> None:
        self.job, self.is_overdue = job, False
        job.work.mkdir(exist_ok=True)
        context: Any = multiprocessing.get_context(start_method())
        self.process = context.Process(target=_work, args=(job,))
        self.process.start()
        self.pid: int = self.process.pid
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def has_ended(self) -> bool:
        """Return whether the process has ended; one that is overdue, and does not end by itself, is ended."""
        if self.process.exitcode is None and self.seconds > self.job.timeout + GRACE:
            self.is_overdue = True
            end_family(self.pid)
            self.process.join()
        if self.process.exitcode is None:
            return False
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # what it left running
        return True

    def cause(self) -> str:
        """Return what the process died of."""
        if self.is_overdue:
            return self.job.overdue
        code = self.process.exitcode
        try:
            printed = self.job.printed[1].read_text(errors="replace").strip().splitlines()
        except OSError:
            printed = []
        last = plain(printed[-1], 200) if printed else ""
        if code > 0 and last:
            return last  # an error of its own
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"DeadKernelError: the process {how}" + (f"; it last printed: {last}" if last else "")


def _work(job: Job) -> None:
    """Make the report of a job in this process, which ends as soon as it is written, whatever threads it left running.

    The process leaves the terminal's group, so that Ctrl-C reaches only the batch, which then ends all processes.
    """
    try:
        if hasattr(os, "setsid"):
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, lambda *_: None)  # a handler of Python's own is not passed on to kernels
        if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
            end_with_parent(parent.pid)
        faulthandler.disable()  # it would write to the batch's own standard error
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, path in enumerate(job.printed, 1):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(file, descriptor)
            os.close(file)
        os.environ[VARIABLE] = job.evidence
        warnings_as_usual()  # warnings of a notebook belong to its outputs
        from evalkit.reports.build import build

        build(job)
    except BaseException as error:
        traceback.print_exc()
        os.write(2, f"{_in_one_line(error)}\n".encode(errors="replace"))
        os._exit(1)
    os._exit(0)


def _prepare_forks(due: list[Job]) -> None:
    """Import what makes reports, and what their notebooks import, once for all processes."""
    # an option of jsonschema that nbformat does not use: it takes a second to build its grammar
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    with paused_gc():
        import evalkit.reports.build  # noqa: F401
        from evalkit.reports.page import warm_up

        warm_up(code=due[0].code)
        preload({job.report.notebook.path: job.report.notebook for job in due if job.forked}.values())


@contextlib.contextmanager
def _signals_noted() -> Iterator[threading.Event]:
    """Set an event at SIGINT or SIGTERM within a ``with`` block, so that nothing is left half-done.

    Signals belong to the main thread; in others, nothing is changed.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_one_line(error: BaseException) -> str:
    """Describe an error in one line, with the file if there is one."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}"


def _without_clash(report: Report, output: Path) -> Report:
    """Add a hash to a report's name if the output folder has it for other parameters, unless the user chose it."""
    existing = None if report.params_file or report.is_named else read_record(output, report.key)
    given = json.loads(json.dumps(report.parameters, default=str))
    is_other = existing and (existing["params_file"] or existing["parameters"] != given)
    return marked(report) if is_other else report


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
