"""Run the command line: ``evalkit``, or ``python -m evalkit``."""

import signal


def run() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, also while modules are imported, and also twice."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun yet that would have to be ended
    from evalkit.cli import main

    signal.signal(signal.SIGINT, _interrupt)
    main(prog_name="evalkit")


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt, and let no second one come in between while the first is seen to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    run()
