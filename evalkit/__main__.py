"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import signal


def run() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, even during imports or when pressed twice."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing has begun that needs cleaning up
    from evalkit.cli import main

    signal.signal(signal.SIGINT, _interrupt)
    main(prog_name="evalkit")


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, and ignore further signals while the first is handled."""
    signal.signal(signal.SIGINT, lambda number, frame: None)  # not SIG_IGN: one that came just before would be an error
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
