"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import os
import signal
import sys


def run() -> None:
    """Run the command line. Ctrl-C, a full disk and a closed output print no traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end at once: nothing needs cleaning up yet
    from evalkit.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stdout is None:
        sys.exit("evalkit: the standard output is closed")
    try:
        main(prog_name="evalkit")
    except OSError as error:
        if error.filename:  # the error is not about the output
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discard buffered output at exit
        sys.exit(f"evalkit: the output can't be written: {error.strerror}")


if __name__ == "__main__":
    run()
