"""Start processes of a batch: the start method, the end with the parent, and the import of papermill."""

import os
import signal
import sys


def start_method() -> str:
    """Return the start method of processes: fork if that is safe, else spawn."""
    return "fork" if sys.platform == "linux" else "spawn"


def quiet_imports() -> None:
    """Import papermill without slow, unused modules and without output to the terminal.

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
    """Let Linux end this process when its parent is killed."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
