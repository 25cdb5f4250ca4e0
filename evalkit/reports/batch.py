"""Run a batch: every report in its own process, several at a time, isolated from the failures of others.

Pools of libraries end a worker that is overdue, but not what it started: kernels, and programs of a notebook. Here each
report is the process of one session, which is ended with all that it started.
"""

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
from evalkit.io.parallel import end_with_parent
from evalkit.io.paths import SourceError, redacted
from evalkit.io.text import plain, warnings_as_usual
from evalkit.reports.index import is_missing, write_evidence, write_index
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
        Folder for ``NOTEBOOK/REPORT.html``, beside it ``REPORT.ipynb`` and the folder ``REPORT`` of tables and figures,
        for ``index.html`` and ``manifest.json``.
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
    output, reports = Path(output), list(reports)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = jobs or cores
    for variable in _THREADS:
        os.environ.setdefault(variable, str(max(1, cores // jobs)))
    keys: dict[str, list[str]] = {"made": [], "failed": [], "unusable": [], "unchanged": []}
    with _signals_noted() as stopped, work_folder(output) as work, Progress(len(reports), say, terminal) as progress:
        # new reports first, then those that took longest, so that no long one is left to one core at the end
        due: list[tuple[float, Job]] = []
        fingerprint = cache(input_fingerprint)  # each source is listed once
        pages = evidence if mask else f"{evidence}, not masked"
        for number, planned in enumerate(reports):
            report = _without_clash(planned, output)
            stamp = stamp_of(report, code=code, evidence=pages, fingerprint=fingerprint)
            record = read_record(output, report.key)
            why = why_make(record, stamp, output) or ("forced" if force else "")
            if why or record is None:
                forked = fork and can_fork(report.notebook)
                job = Job(report, output, work / str(number), why, stamp, code, forked, evidence, timeout)
                due.append((record["seconds"] if record else math.inf, job))
            else:
                keys["unchanged"].append(report.key)
                progress.done(record, "unchanged")
        due.sort(key=lambda one: one[0], reverse=True)

        for record in _make([job for _, job in due], jobs, stopped, progress.bar):
            keys["failed" if record["status"] == "failed" else "made"].append(record["key"])
            if record["error"].startswith(f"{SourceError.__name__}: "):
                keys["unusable"].append(record["key"])
            progress.done(record)

        fault = ""
        try:
            if not stopped.is_set() and (keys["made"] or keys["failed"] or is_missing(output)):
                write_evidence(output, mask=mask)
            write_index(output, work)
        except (OSError, SourceError) as error:
            fault = _in_one_line(error)
    paths = {"index": output / "index.html", "manifest": output / "manifest.json"}
    return Summary(**keys, **paths, stopped=stopped.is_set(), index_fault=fault)  # type: ignore[arg-type]


class Progress:
    """The lines of a batch of `total` reports; if `terminal` is one, they are written above a bar."""

    def __init__(self, total: int, say: Callable[[str], None], terminal: TextIO | None = None) -> None:
        self.total, self.n = total, 0
        tqdm.monitor_interval = 0  # no thread, as processes are forked while it is shown
        form = "{bar:24} {n_fmt}/{total_fmt}{postfix}"
        disable = None if terminal else True  # None: unless it is a terminal
        self.bar = tqdm(total=total, file=terminal, disable=disable, leave=False, dynamic_ncols=True, bar_format=form)
        self.say = say if self.bar.disable else lambda line: self.bar.write(line, file=terminal)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def done(self, record: Record, status: str = "") -> None:
        """Print what became of a report, in one line."""
        headline, size = record["headline"] or {}, record["page_bytes"]
        text, note = f"{headline.get('text', '')} {headline.get('label', '')}".strip(), ""
        if record["status"] == "failed":
            status, note = "FAILED", f"({record['seconds']:.1f} s)"
            text = plain((record["error"].splitlines() or [""])[0], 200)
        elif not status:
            large = f", more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
            status, note = "made", f"({record['seconds']:.1f} s, {size / 1e6:.2f} MB{large}, {record['why']})"
        self.n += 1
        self.bar.update()
        columns = [f"[{self.n}/{self.total}] {status:9} {plain(record['key'])}", plain(text), note]
        self.say("  ".join(column for column in columns if column))


class _Attempt(NamedTuple):
    job: Job
    process: Any
    started: float


def _make(due: list[Job], jobs: int, stopped: threading.Event, bar: tqdm) -> Iterator[Record]:
    """Make reports, several at a time, until all are made or the batch is stopped; yield the record of each."""
    context: Any = multiprocessing.get_context(start_method())
    if due and start_method() == "fork":
        preload([job.report.notebook for job in due if job.forked], code=due[0].code)
    waiting, running = deque(due), list[_Attempt]()
    while (waiting or running) and not stopped.is_set():
        while waiting and len(running) < jobs:
            job = waiting.popleft()
            try:
                job.work.mkdir()
                process = context.Process(target=_work, args=(job,))
                process.start()
                running.append(_Attempt(job, process, time.monotonic()))
            except OSError as error:  # a full disk, or too many processes
                yield _failed(job, _in_one_line(error), 0.0)
        bar.set_postfix_str(plain(", ".join(attempt.job.report.key for attempt in running), 60))
        wait([attempt.process.sentinel for attempt in running], _POLL)
        for attempt in list(running):
            job, process, started = attempt
            seconds = time.monotonic() - started
            is_overdue = process.exitcode is None and seconds > job.timeout + GRACE
            if is_overdue:  # and did not end by itself
                end_family(process.pid)
                process.join()
            if process.exitcode is None:
                continue
            running.remove(attempt)
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # what it left running
            record = read_record(job.output, job.report.key) if process.exitcode == 0 else None
            cause = job.overdue if is_overdue else _cause_of_death(job, process.exitcode)
            yield record or _failed(job, cause, seconds)
            shutil.rmtree(job.work, ignore_errors=True)
    for attempt in running:
        end_family(attempt.process.pid)
        attempt.process.join()


def _cause_of_death(job: Job, code: int) -> str:
    """Return what a process died of: the last line that it printed, if it ended by an error of its own."""
    try:
        printed = job.printed[1].read_text(errors="replace").strip().splitlines()
    except OSError:
        printed = []
    last = plain(printed[-1], 200) if printed else ""
    if code > 0 and last:
        return last
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return f"DeadKernelError: the process {how}" + (f"; it last printed: {last}" if last else "")


def _failed(job: Job, cause: str, seconds: float) -> Record:
    """Write the partial report of a process that was ended, or, where it can't be written, its record alone."""
    from evalkit.reports.build import build_failed

    try:
        return build_failed(job, cause, seconds)
    except Exception as error:
        fault = _in_one_line(error)
        shutil.rmtree(job.work, ignore_errors=True)  # makes room on a full disk
        cause = cause if fault in cause else f"{cause}; {fault}"
        record = job.record(error=redacted(plain(cause)), seconds=round(seconds, 3))
        with contextlib.suppress(OSError):
            write_record(job._replace(work=job.work.parent), record)
        return record


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
    return report.marked() if is_other else report
