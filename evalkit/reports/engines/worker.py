"""The process of one report."""

import faulthandler
import multiprocessing
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection

from evalkit.io.text import warnings_as_usual
from evalkit.reports.engines.signals import release_signals
from evalkit.reports.job import Job
from evalkit.reports.startup import end_with_parent, quiet_imports


def work(job: Job, faults: Connection, error: str = "", seconds: float = 0.0) -> None:
    """Make the report of a job; with an error, write the partial report of a process that died of it.

    The process leaves the terminal's group, so that Ctrl-C reaches only the batch, which then ends all processes.
    It ends as soon as the report is written, whatever threads the notebook left running. Its own errors are sent
    through `faults`, which needs no disk space.
    """
    try:
        _detach(job)
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
    for descriptor in (1, 2):
        file = os.open(job.printed(descriptor), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, descriptor)
        os.close(file)
