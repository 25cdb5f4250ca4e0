"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import errno
import os
import signal
import sys

_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def run() -> None:
    """Run the command line; neither Ctrl-C, even pressed twice, nor a full or closed output ends in a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing has begun that needs cleaning up
    from evalkit.cli import main

    signal.signal(signal.SIGINT, _interrupt)
    if sys.stdout is None:
        sys.exit("evalkit: the standard output is closed")
    try:
        try:
            main(prog_name="evalkit")
        finally:
            sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError) and (error.filename or error.errno not in _OF_OUTPUT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there at exit
        sys.exit(0 if isinstance(error, BrokenPipeError) else f"evalkit: the output can't be written: {error.strerror}")


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, and ignore further signals while the first is handled."""
    signal.signal(signal.SIGINT, lambda number, frame: None)  # not SIG_IGN: one that came just before would be an error
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
