"""What runs in the process of one report."""

import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.reports.plan import Report


class Job(NamedTuple):
    """A report to be made, and how."""

    report: Report
    output: Path
    work: Path  # a folder of its own, on the same disk as `output`
    why: str
    stamp: dict[str, Any]
    code: bool = True
    quick: bool = True

    @property
    def journal(self) -> Path:
        """Where finished cells are noted."""
        return self.work / "journal"


def work(job: Job, error: str = "", seconds: float = 0.0) -> None:
    """Make the report of a job; with an error, put in place what a process that died of it left.

    The process is taken out of the terminal's group, so that Ctrl-C reaches the batch alone, which then ends all.
    """
    _detach(job.work / "printed")
    quiet_imports()
    from evalkit.reports.make import make, make_failed

    if error:
        make_failed(job, error, seconds)
    else:
        make(job)


def quiet_imports() -> None:
    """Import papermill without what only slows it down or prints to the terminal.

    rfc3987_syntax, an option of jsonschema that nbformat does not use, takes a second to build its grammar.
    """
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    absent = "rfc3987_syntax" not in sys.modules
    if absent:
        sys.modules["rfc3987_syntax"] = None
    import papermill  # noqa: F401

    if absent:
        del sys.modules["rfc3987_syntax"]


def _detach(printed: Path) -> None:
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _die_with_parent()
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _die_with_parent() -> None:
    """Have Linux end this process when the batch is killed."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
