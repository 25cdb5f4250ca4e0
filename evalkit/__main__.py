"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import errno
import os
import signal
import sys

_STOPS = (signal.SIGINT, signal.SIGTERM)
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def run() -> None:
    """Run the command line; neither Ctrl-C, even pressed twice, nor a full or closed output ends in a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing has begun that needs cleaning up
    from evalkit.cli import main

    for number in _STOPS:
        signal.signal(number, _stop)
    if sys.stdout is None:
        sys.exit("evalkit: the standard output is closed")
    try:
        try:
            main(prog_name="evalkit")
        finally:
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # nothing is left to be stopped
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and (error.filename or error.errno not in _OF_OUTPUT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there at exit
        sys.exit(0 if isinstance(error, BrokenPipeError) else f"evalkit: the output can't be written: {error.strerror}")


def _stop(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, and ignore further signals while the first is handled."""
    for other in _STOPS:
        signal.signal(other, lambda number, frame: None)  # not SIG_IGN: one that came just before would be an error
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
