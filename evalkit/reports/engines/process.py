"""One attempt at a report: its process, its time limit, and how it is ended."""

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from evalkit.io.text import plain, warnings_as_usual
from evalkit.reports.job import BEGUN, OVERDUE, PRINTED, Job
from evalkit.reports.processes import end_with_parent, quiet_imports, release_signals, start_method

VARIABLE = "EVALKIT_EVIDENCE"  # as evalkit.evidence.VARIABLE, which would import pandas
START = 60.0  # seconds within which the first cell must have begun, else the report is retried
GRACE = 5.0  # seconds between interrupting an overdue report and ending its process
POST_MORTEM = 120.0  # seconds for writing the partial report of a process that died

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS) if os.name == "posix" else ()


class Attempt:
    """A process that makes a report; or, with the `error` of an earlier one and its `seconds`, the partial report.

    `number` is 1 or 2, `timeout` the limit in seconds.
    """

    def __init__(self, job: Job, timeout: float, number: int = 1, *, error: str = "", seconds: float = 0.0) -> None:
        self.job, self.timeout, self.number, self.error = job, timeout, number, error
        self.overdue = ""
        job.work.mkdir(exist_ok=True)
        context: Any = multiprocessing.get_context(start_method())
        self._faults, faults = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(job, faults, error, seconds))
        self.process.start()
        faults.close()
        self.started = time.monotonic()
        self.deadline = self.started + (POST_MORTEM if error else min(START, timeout))
        # A process that the notebook started may hold the sentinel open; a pidfd refers to this process only
        has_pidfd = hasattr(os, "pidfd_open")
        self.handle = os.pidfd_open(self.process.pid) if has_pidfd else self.process.sentinel

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def end_if_overdue(self) -> None:
        """Interrupt a process that takes too long; later, end it."""
        now = time.monotonic()
        if now < self.deadline:
            return
        if self.error or self.overdue:
            self.kill()
            self.deadline = now + POST_MORTEM
        elif self.number == 1 and not (self.job.work / BEGUN).exists():
            self.kill()  # it hangs before the first cell, and is worth a retry
        elif now < self.started + self.timeout:
            self.deadline = self.started + self.timeout
        else:
            self.overdue = f"TimeoutError: not finished after {self.timeout:g} s"
            with contextlib.suppress(OSError):  # on a full disk, only the batch knows
                (self.job.work / OVERDUE).write_text(self.overdue)
            self.deadline = now + GRACE
            self._interrupt()

    def finish(self) -> int:
        """Join a process that ended, kill all it left running, and return its exit code."""
        self.process.join()
        if self.handle != self.process.sentinel:
            os.close(self.handle)
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.exitcode

    def is_worth_another(self) -> bool:
        """Return whether a retry may help: the kernel did not start, or the crash may come from forking."""
        may_pass = self.job.forked and -self.process.exitcode in _CRASHES
        return self.number == 1 and not self.error and (may_pass or not (self.job.work / BEGUN).exists())

    def cause(self) -> str:
        """Return what the process died of."""
        if self.overdue:
            return self.overdue
        with contextlib.suppress(EOFError, OSError):
            if self._faults.poll():
                return plain(self._faults.recv())
        code = self.process.exitcode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        try:
            printed = (self.job.work / PRINTED[1]).read_text(errors="replace").strip().splitlines()
        except OSError:
            printed = []
        last = f"; it last printed: {plain(printed[-1], 200)}" if printed else ""
        return f"DeadKernelError: the process {how}{last}"

    def kill(self) -> None:
        """End the process and all it started."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            members = [psutil.Process(self.process.pid)]
            for member in members:  # it grows by the children of those that are suspended, and so start no others
                with contextlib.suppress(psutil.Error):
                    member.suspend()
                    members += member.children()
            for member in members:
                with contextlib.suppress(psutil.Error):
                    member.kill()
        self.process.kill()

    def _interrupt(self) -> None:
        """Interrupt the execution of cells, so that the notebook shows where it was."""
        import psutil

        with contextlib.suppress(psutil.Error, ProcessLookupError, IndexError, ValueError):
            if self.job.forked:
                os.kill(self.process.pid, signal.SIGINT)
            else:
                psutil.Process(self.process.pid).children()[0].send_signal(signal.SIGINT)


def work(job: Job, faults: Connection, error: str = "", seconds: float = 0.0) -> None:
    """Make the report of a job in this process; with an error, write the partial report of a process that died of it.

    The process leaves the terminal's group, so that Ctrl-C reaches only the batch, which then ends all processes.
    It ends as soon as the report is written, whatever threads the notebook left running. Its own errors are sent
    through `faults`, which needs no disk space.
    """
    try:
        _detach(job)
        os.environ[VARIABLE] = job.evidence
        warnings_as_usual()  # warnings of a notebook belong to its outputs
        quiet_imports()
        from evalkit.reports.engines.build import build, build_failed

        if error:
            build_failed(job, error, seconds)
        else:
            build(job)
    except BaseException as fault:
        faults.send(describe(fault))
        try:
            os.write(2, traceback.format_exc().encode(errors="replace"))
        finally:
            os._exit(1)
    os._exit(0)


def describe(fault: BaseException) -> str:
    """Describe an error in one line, with the file if there is one."""
    if isinstance(fault, OSError) and fault.strerror:
        return f"{fault.filename}: {fault.strerror}" if fault.filename else fault.strerror
    return f"{type(fault).__name__}: {fault}"


def _detach(job: Job) -> None:
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: None)  # a handler of Python's own is not passed on to kernels
    release_signals()
    if (parent := multiprocessing.parent_process()) is not None and parent.pid is not None:
        end_with_parent(parent.pid)
    faulthandler.disable()  # it would write to the batch's own standard error
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor, name in enumerate(PRINTED, 1):
        file = os.open(job.work / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
