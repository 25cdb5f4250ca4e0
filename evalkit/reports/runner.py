"""The batch: every report in a process of its own, several at a time, and one that fails harms no other."""

import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.io.text import plain
from evalkit.reports import changes
from evalkit.reports.plan import Report
from evalkit.reports.records import Record, read_record, record_path, write_aside
from evalkit.reports.sweeps import start_method
from evalkit.reports.worker import Job, work

TIMEOUT = 600.0  # seconds for one report
GRACE = 5.0  # seconds between asking a report that takes too long to stop, and ending it
SIZE_BUDGET = 1_500_000  # bytes; a larger page is named

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS")


class Summary(NamedTuple):
    """What became of a batch: keys of reports, and where to look."""

    made: list[str]
    failed: list[str]
    unchanged: list[str]
    stopped: bool
    index: Path
    manifest: Path


@dataclass
class _Running:
    process: BaseProcess
    job: Job
    started: float
    deadline: float
    attempt: int
    asked: bool = False  # asked to stop, as it took too long
    mortem: bool = False  # putting in place what a dead process left
    error: str = ""


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

    Returns
    -------
    Summary
    """
    reports, output = list(reports), Path(output)
    jobs = jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    output.mkdir(parents=True, exist_ok=True)
    for variable in _THREADS:
        os.environ.setdefault(variable, str(max(1, (os.cpu_count() or 1) // jobs)))
    aside = Path(tempfile.mkdtemp(prefix=".work-", dir=output))
    batch = _Batch(output, aside, jobs, timeout, len(reports), say)
    try:
        due = batch.choose(reports, force=force, code=code, fork=fork)
        stopped = batch.execute(due)
        index, manifest = _index(output, aside)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Summary(batch.made, batch.failed, batch.unchanged, stopped, index, manifest)


def _index(output: Path, aside: Path) -> tuple[Path, Path]:
    from evalkit.reports.index import write_index

    return write_index(output, aside)


class _Batch:
    """The state of a batch while it runs."""

    def __init__(
        self, output: Path, aside: Path, jobs: int, timeout: float, total: int, say: Callable[[str], None]
    ) -> None:
        self.output, self.aside, self.jobs, self.timeout, self.total, self.say = (
            output,
            aside,
            jobs,
            timeout,
            total,
            say,
        )
        self.made: list[str] = []
        self.failed: list[str] = []
        self.unchanged: list[str] = []
        self.running: dict[int, _Running] = {}

    def choose(self, reports: list[Report], *, force: bool, code: bool, fork: bool) -> list[Job]:
        """Return the jobs of the reports that must be made; the others are said to be up to date."""
        fingerprint = changes.cached_fingerprint()
        due = []
        for number, report in enumerate(reports):
            stamp = changes.stamp(report, code=code, fingerprint=fingerprint)
            record = read_record(self.output, report.key)
            why = changes.why(record, stamp, self.output) or ("forced" if force else "")
            if why:
                work = self.aside / str(number)
                due.append(Job(report, self.output, work, why, stamp, code, fork))
            else:
                self.unchanged.append(report.key)
                self._line("unchanged", report.key, _headline(record), "")
        return due

    def execute(self, due: list[Job]) -> bool:
        """Make the jobs; returns whether it was stopped before all were done."""
        waiting = deque((job, 1) for job in due)
        before = signal.signal(signal.SIGTERM, _stop)
        try:
            while waiting or self.running:
                while waiting and len(self.running) < self.jobs:
                    self._start(*waiting.popleft())
                for entry in self._finished():
                    again = self._settle(entry)
                    if again:
                        waiting.appendleft(again)
                self._end_overdue()
        except KeyboardInterrupt:
            for entry in self.running.values():
                _kill(entry.process)
            return True
        finally:
            signal.signal(signal.SIGTERM, before)
        return False

    def _start(self, job: Job, attempt: int, error: str = "", seconds: float = 0.0) -> None:
        job.work.mkdir(exist_ok=True)
        process = multiprocessing.get_context(start_method()).Process(target=work, args=(job, error, seconds))
        process.start()
        now = time.monotonic()
        self.running[process.sentinel] = _Running(
            process, job, now, now + self.timeout, attempt, mortem=bool(error), error=error
        )

    def _finished(self) -> list[_Running]:
        pause = max(0.0, min(entry.deadline for entry in self.running.values()) - time.monotonic())
        return [self.running.pop(sentinel) for sentinel in wait(list(self.running), pause)]

    def _settle(self, entry: _Running) -> tuple[Job, int] | None:
        """See to a process that ended: say what became of its report, or have it tried again."""
        entry.process.join()
        job, code = entry.job, entry.process.exitcode
        if code == 0:
            self._report(read_record(self.output, job.report.key))
        elif entry.mortem:
            self._report(self._bare_record(job, f"{entry.error}; {_last_words(job)}"))
        elif entry.attempt == 1 and not entry.asked and not job.journal.exists():
            shutil.rmtree(job.work, ignore_errors=True)
            return job, 2  # the kernel did not start: ports race when many start at once
        else:
            self._start(job, entry.attempt, self._cause(entry), time.monotonic() - entry.started)
        return None

    def _cause(self, entry: _Running) -> str:
        if entry.asked:
            return f"TimeoutError: not finished after {self.timeout:g} s"
        code = entry.process.exitcode
        if code < 0:
            return f"DeadKernelError: the process was ended by {signal.Signals(-code).name}"
        return f"DeadKernelError: the process ended with exit code {code}; {_last_words(entry.job)}"

    def _end_overdue(self) -> None:
        for entry in self.running.values():
            if time.monotonic() < entry.deadline:
                continue
            if entry.asked or entry.mortem:
                _kill(entry.process)
                entry.deadline += 60
            else:
                entry.asked = True
                entry.deadline = time.monotonic() + GRACE
                (entry.job.work / "overdue").write_text(f"{self.timeout:g}")
                _interrupt(entry)

    def _bare_record(self, job: Job, error: str) -> Record:
        """Record a failure of which nothing but the error is left."""
        report = job.report
        record = Record(
            key=report.key,
            notebook=report.notebook.name,
            name=report.name,
            title=report.notebook.title,
            params_file=report.params_file,
            parameters=report.parameters,
            status="failed",
            why=job.why,
            error=plain(error),
            cell=None,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=0.0,
            kernel="",
            headline=None,
            tables=[],
            page="",
            page_bytes=0,
            executed="",
            stamp=job.stamp,
            previous=None,
        )
        write_aside(record_path(self.output, report.key), json.dumps(record, default=str), self.aside)
        return record

    def _report(self, record: Record) -> None:
        if record["status"] == "failed":
            self.failed.append(record["key"])
            self._line("FAILED", record["key"], record["error"].splitlines()[0][:200], _seconds(record))
            return
        self.made.append(record["key"])
        size = record["page_bytes"]
        large = f", {size / 1e6:.1f} MB: more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
        self._line("made", record["key"], _headline(record), f"{_seconds(record)}, {record['why']}{large}")

    def _line(self, status: str, key: str, text: str, note: str) -> None:
        done = len(self.made) + len(self.failed) + len(self.unchanged)
        parts = [f"[{done}/{self.total}] {status:9} {plain(key)}", plain(text), f"({note})" if note else ""]
        self.say("  ".join(part for part in parts if part))


def _headline(record: Record | None) -> str:
    headline = (record or {}).get("headline") or {}
    return f"{headline.get('text', '')} {headline.get('label', '')}".strip()


def _seconds(record: Record) -> str:
    return f"{record['seconds']:.1f} s"


def _last_words(job: Job) -> str:
    """Return the last line a process printed before it died."""
    try:
        lines = (job.work / "printed").read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return f"it last printed: {plain(lines[-1], 200)}" if lines else "it printed nothing"


def _interrupt(entry: _Running) -> None:
    """Interrupt what executes the cells, so that the notebook shows where it was."""
    import psutil

    try:
        kernels = psutil.Process(entry.process.pid).children()
        os.kill(kernels[0].pid if kernels and not entry.job.quick else entry.process.pid, signal.SIGINT)
    except (psutil.Error, ProcessLookupError):
        return


def _kill(process: BaseProcess) -> None:
    """End a process and all it started."""
    import psutil

    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        family = []
    process.kill()
    for member in family:
        try:
            member.kill()
        except psutil.Error:
            continue


def _stop(*_: Any) -> None:
    raise KeyboardInterrupt
