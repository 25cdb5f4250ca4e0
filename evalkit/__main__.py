"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import os
import signal
import sys


def run() -> None:
    """Run the command line; neither Ctrl-C nor an output that is full or closed ends in a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing has begun that needs cleaning up
    from evalkit.cli import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stdout is None:
        sys.exit("evalkit: the standard output is closed")
    try:
        main(prog_name="evalkit")
    except OSError as error:
        if error.filename:  # not of the output
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there at exit
        sys.exit(f"evalkit: the output can't be written: {error.strerror}")


if __name__ == "__main__":
    run()
