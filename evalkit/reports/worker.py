"""What runs in the process of one report."""

import faulthandler
import os
import signal
import sys
import traceback

from evalkit.io.text import warnings_as_usual
from evalkit.reports.job import Job
from evalkit.reports.processes import quiet_imports


def work(job: Job, error: str = "", seconds: float = 0.0) -> None:
    """Make the report of a job; with an error, put in place what a process that died of it left.

    The process is taken out of the terminal's group, so that Ctrl-C reaches the batch alone, which then ends all.
    It ends at once when the report is written, whatever threads the notebook left running.
    """
    _detach(job)
    warnings_as_usual()  # those of a notebook belong to its outputs
    try:
        quiet_imports()
        from evalkit.reports.make import make, make_failed

        if error:
            make_failed(job, error, seconds)
        else:
            make(job)
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
        os._exit(1)
    os._exit(0)


def _detach(job: Job) -> None:
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, lambda *_: None)  # a handler of Python's own is not passed on to kernels
    _die_with_parent()
    faulthandler.disable()  # it would write to the batch's own standard error
    sys.stdout.flush()
    sys.stderr.flush()
    for descriptor in (1, 2):
        file = os.open(job.printed(descriptor), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)


def _die_with_parent() -> None:
    """Have Linux end this process when the batch is killed."""
    if sys.platform == "linux":
        import ctypes
        from multiprocessing import parent_process

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent_process().pid:  # it was killed before that
            os._exit(1)
