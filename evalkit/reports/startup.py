"""What every process of a batch begins with: how it is started and ended, and the import of papermill."""

import os
import signal
import sys


def start_method() -> str:
    """Return how processes are started: forked where that is safe, else spawned."""
    return "fork" if sys.platform == "linux" else "spawn"


def quiet_imports() -> None:
    """Import papermill without what only slows it down or prints to the terminal.

    rfc3987_syntax, an option of jsonschema that nbformat does not use, takes a second to build its grammar.
    """
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    absent = "rfc3987_syntax" not in sys.modules
    if absent:
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # None stops its import
    import papermill  # noqa: F401

    if absent:
        del sys.modules["rfc3987_syntax"]


def end_with_parent(parent: int) -> None:
    """Have Linux end this process when the one that started it is killed.

    Parameters
    ----------
    parent : int
        The id of that process: where it is gone by now, this one ends at once.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
