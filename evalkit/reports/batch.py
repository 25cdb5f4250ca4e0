"""Run a batch: make each report in a separate process, several at a time, so that one failure affects no other."""

import contextlib
import glob
import math
import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing.connection import Connection, wait
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from evalkit.display.show import REPORT
from evalkit.evidence.site import WRITTEN
from evalkit.io.paths import SourceError, check_path, redacted
from evalkit.io.read import end_with_parent
from evalkit.io.secrets import MASK, masking
from evalkit.io.sources import NOTES
from evalkit.io.store import read_note
from evalkit.io.text import plain, warnings_as_usual
from evalkit.io.write import check_no_links, remove_left
from evalkit.reports.index import is_missing, write_evidence, write_index
from evalkit.reports.kernels import FOLDER_PREFIX, preload, start_method
from evalkit.reports.report import Job, Record, Report, input_fingerprint, read_record, stamp_of, why_due, write_record

TIMEOUT = 600.0  # time limit of one report, in seconds
SIZE_BUDGET = 1_500_000  # size of a page, in bytes, above which the output mentions it
_POLL = 0.2  # time between two checks for signals, in seconds
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS")


class Summary(NamedTuple):
    """The result of a batch: the keys of reports by status, and the paths of the index and the manifest."""

    made: list[str]
    failed: list[str]
    unchanged: list[str]
    stopped: bool
    index: Path  # type: ignore[assignment]  # replaces the method of tuples deliberately
    manifest: Path


def run(
    reports: Iterable[Report],
    *,
    output: str | os.PathLike = "reports",
    jobs: int | None = None,
    timeout: float = TIMEOUT,
    force: bool = False,
    code: bool = True,
    evidence: bool = True,
    mask: bool = True,
    say: Callable[[str], None] = print,
) -> Summary:
    """Make reports, and the index of all reports in the output folder.

    Parameters
    ----------
    reports : iterable of Report
        Result of `plan`.
    output : path
        Folder for ``NOTEBOOK/REPORT.html``, its notebook, tables and figures, ``index.html`` and ``manifest.json``.
    jobs : int, optional
        Number of reports made at a time; by default, one more than the cores this process may use.
    timeout : float
        Time limit of each report, in seconds.
    force : bool
        Whether to also make reports that have not changed.
    code : bool
        Whether pages include the notebook's code, folded.
    evidence : bool
        Whether to write pages of the runs that reports link to, at most 200 for each report.
    mask : bool
        Whether to mask credentials of known forms in reports and on pages of runs.
    say : function
        Called with one line per finished report.

    Returns
    -------
    Summary
        The reports that were made, unchanged or failed.

    Raises
    ------
    SourceError
        If the output folder can't be created or written to.

    Examples
    --------
    >>> reports.run(reports.plan(["samples:mindcraft"]), output="reports")  # doctest: +SKIP
    """
    output = Path(output)
    reports = list(reports)
    check_path(str(output))
    try:
        output.mkdir(parents=True, exist_ok=True)
        names = {report.notebook.name for report in reports} | {path.name for path in output.glob(f"{NOTES}/*")}
        own = (f"{glob.escape(name)}{below}" for name in names for below in ("", "/*", "/*/*"))
        check_no_links(output, (NOTES, f"{NOTES}/**/*", "manifest.json", *own, *WRITTEN))
        for report in reports:  # now: a report may read this folder, and skips folders noted here
            (output / NOTES / report.notebook.name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        cause = "a file, not a folder" if isinstance(error, FileExistsError) else error.strerror
        raise SourceError(f"{output}: {cause}") from error
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    jobs = jobs or cores + 1
    for variable in _THREADS:
        os.environ.setdefault(variable, str(max(1, cores // jobs)))
    keys: dict[str, list[str]] = {"made": [], "failed": [], "unchanged": []}
    printed = set[str]()  # lines on how logs were read, which are the same for most reports of a source

    def done(record: Record, status: str) -> None:
        keys[status].append(record["key"])
        say(f"[{sum(map(len, keys.values()))}/{len(reports)}] {line_of(record, status)}")
        for line in record["chosen"]:
            if line not in printed:
                printed.add(line)
                say(f"  {plain(line)}")

    # new reports first, then the ones that took longest last time, so that no long report runs alone at the end
    due: list[tuple[float, Job]] = []
    are_pages_gone = is_missing(output)
    remove_left(tempfile.gettempdir(), FOLDER_PREFIX)
    fingerprint = cache(input_fingerprint)  # list each source only once
    with _signals_noted() as stopped:
        for report in reports:
            stamp = stamp_of(report, [code, evidence, mask], fingerprint)
            record = read_record(output, report.key)
            has_chosen_name = report.params_file or report.is_named
            if record and not has_chosen_name and record["stamp"].get("parameters") != stamp["parameters"]:
                report = report.with_hash()  # don't replace a report with other parameters
                record = read_record(output, report.key)
            why = why_due(record, stamp, output) or ("forced" if force else "")
            if record and record["links"] and are_pages_gone and read_note(output, f"evidence/{report.key}") is None:
                why = why or "the pages of its runs are missing"
            if why or record is None:
                job = Job(
                    report=report,
                    output=output,
                    why=why,
                    stamp=stamp,
                    code=code,
                    evidence=evidence,
                    mask=mask,
                    timeout=timeout,
                )
                due.append((record["seconds"] if record else math.inf, job))
            else:
                done(record, "unchanged")
        due.sort(key=itemgetter(0), reverse=True)
        passed_on: dict[str, list[Any]] = {}
        for record, data_of_runs in _make([job for _, job in due], jobs, stopped):
            passed_on[record["key"]] = data_of_runs
            done(record, record["status"])
        if not stopped and (keys["made"] or keys["failed"] or is_missing(output)):
            write_evidence(output, passed_on, mask=mask)
        index, manifest = write_index(output)
    return Summary(**keys, stopped=bool(stopped), index=index, manifest=manifest)


def line_of(record: Record, status: str) -> str:
    """Describe the outcome of a report in one line."""
    headline = record["headline"] or {}
    size = record["page_bytes"]
    text = f"{headline.get('text', '')} {headline.get('label', '')}".strip()
    note = ""
    if status == "failed":
        status, note = "FAILED", f"({record['seconds']:.1f} s)"
        text = (record["error"].splitlines() or [""])[0]
    elif status == "made":
        large = f", more than {SIZE_BUDGET / 1e6:.1f}" if size > SIZE_BUDGET else ""
        note = f"({record['seconds']:.1f} s, {size / 1e6:.2f} MB{large}, {record['why']})"
    return "  ".join(filter(None, [f"{status:9} {plain(record['key'])}", plain(text, 200), note]))


def _make(due: list[Job], jobs: int, stopped: list[int]) -> Iterator[tuple[Record, list[Any]]]:
    """Make reports, several at a time, until all are made or the batch is stopped; yield the results of `build`."""
    context: Any = multiprocessing.get_context(start_method())
    if due and start_method() == "fork":
        preload()
    waiting, running = deque(due), dict[Connection, tuple[Job, Any]]()
    while (waiting or running) and not stopped:
        while waiting and len(running) < jobs:
            job = waiting.popleft()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(job, sender, os.getpid()))
            process.start()
            sender.close()
            running[receiver] = job, process
        ready: list[Any] = wait(list(running), _POLL)
        for receiver in ready:
            job, process = running.pop(receiver)
            try:
                yield receiver.recv()
                process.join()
            except EOFError:
                process.join()
                yield _failed(job, f"the report's process ended with exit code {process.exitcode}"), []
    for _, process in running.values():  # kill each process and its descendants
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            first.suspend()  # so that it starts no more children
            for child in [*first.children(recursive=True), first]:
                with contextlib.suppress(psutil.Error):
                    child.kill()
        process.join()


def _work(job: Job, sender: Connection, parent: int) -> None:
    """Make a job's report in this process, then exit, even if threads are still running."""
    if hasattr(os, "setsid"):  # leave the terminal's group: Ctrl-C reaches only the batch, which ends all processes
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(parent)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.environ[REPORT] = "1" if job.evidence else ""
    os.environ[MASK] = "on" if job.mask else "off"  # for kernels that are not forks
    warnings_as_usual()  # warnings of a notebook belong to its outputs
    try:
        from evalkit.reports.build import build

        with masking(job.mask):
            made = build(job)
    except Exception as error:  # such as a full disk
        cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        made = _failed(job, cause), []
    sender.send(made)
    os._exit(0)


def _failed(job: Job, cause: str) -> Record:
    """Return the record of a report that failed without a page, and write the record if possible."""
    record = job.record(error=redacted(plain(cause)))
    with contextlib.suppress(SourceError):
        write_record(job.output, record)
    return record


@contextlib.contextmanager
def _signals_noted() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM within a ``with`` block instead of interrupting it, so that nothing is half done."""
    stopped: list[int] = []  # not an Event: on its lock, the handler of a second signal could wait for the first one
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda n, _: stopped.append(n)) for number in numbers}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
