"""One attempt at a report: its process, how long it may take, and how it is ended."""

import contextlib
import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from evalkit.io.text import plain
from evalkit.reports.engines.worker import work
from evalkit.reports.job import Job
from evalkit.reports.startup import start_method

if TYPE_CHECKING:
    import psutil

START = 60.0  # seconds within which the first cell must have been begun, else another try is made
GRACE = 5.0  # seconds between interrupting a report that takes too long, and ending its process
POST_MORTEM = 120.0  # seconds to put in place what a process left that died

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS) if os.name == "posix" else ()


class Attempt:
    """A process that makes a report, or puts in place what is left of it.

    Parameters
    ----------
    job : Job
    timeout : float
        Seconds it may take.
    number : int
        1 or 2.
    error : str
        What an earlier process died of, to be put in place.
    seconds : float
        How long that process took.
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
        # A process that the notebook started may hold the sentinel open; a pidfd tells of the one process alone
        has_pidfd = hasattr(os, "pidfd_open")
        self.handle = os.pidfd_open(self.process.pid) if has_pidfd else self.process.sentinel

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def end_if_overdue(self) -> None:
        """Interrupt, or after that end, a process that takes too long."""
        now = time.monotonic()
        if now < self.deadline:
            return
        if self.error or self.overdue:
            self.kill()
            self.deadline = now + POST_MORTEM
        elif self.number == 1 and not self.job.begun.exists():
            self.kill()  # it hangs before the first cell, and is worth another try
        elif now < self.started + self.timeout:
            self.deadline = self.started + self.timeout
        else:
            self.overdue = f"TimeoutError: not finished after {self.timeout:g} s"
            with contextlib.suppress(OSError):  # on a full disk only the batch knows
                self.job.overdue.write_text(self.overdue)
            self.deadline = now + GRACE
            self._interrupt()

    def finish(self) -> int:
        """Take leave of a process that ended, and of all it left running; returns its exit code."""
        self.process.join()
        if self.handle != self.process.sentinel:
            os.close(self.handle)
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.exitcode

    def is_worth_another(self) -> bool:
        """Tell a kernel that did not start, and a crash that may come from forking, from a fault of the notebook."""
        crashed = -self.process.exitcode in _CRASHES
        return self.number == 1 and not self.error and (not self.job.begun.exists() or (self.job.forked and crashed))

    def cause(self) -> str:
        """Say what the process died of."""
        if self.overdue:
            return self.overdue
        with contextlib.suppress(EOFError, OSError):
            if self._faults.poll():
                return plain(self._faults.recv())
        code = self.process.exitcode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        try:
            printed = self.job.printed(2).read_text(errors="replace").strip().splitlines()
        except OSError:
            printed = []
        last = f"; it last printed: {plain(printed[-1], 200)}" if printed else ""
        return f"DeadKernelError: the process {how}{last}"

    def kill(self) -> None:
        """End the process and all it started."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            for member in _stopped_tree(psutil.Process(self.process.pid)):
                with contextlib.suppress(psutil.Error):
                    member.kill()
        self.process.kill()

    def _interrupt(self) -> None:
        """Interrupt what executes the cells, so that the notebook shows where it was."""
        import psutil

        with contextlib.suppress(psutil.Error, ProcessLookupError, IndexError, ValueError):
            if self.job.forked:
                os.kill(self.process.pid, signal.SIGINT)
            else:
                psutil.Process(self.process.pid).children()[0].send_signal(signal.SIGINT)


def _stopped_tree(root: "psutil.Process") -> "list[psutil.Process]":
    """Stop a process and all below it, so that none of them starts another one meanwhile, and list them."""
    import psutil

    stopped: list[psutil.Process] = []
    found = [root]
    while found:
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.suspend()
        stopped += found
        try:
            found = [process for process in root.children(recursive=True) if process not in stopped]
        except psutil.Error:  # it has ended meanwhile
            break
    return stopped
