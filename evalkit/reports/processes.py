"""What every process of a batch begins with: how it is started, and the import of papermill."""

import os
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
        sys.modules["rfc3987_syntax"] = None
    import papermill  # noqa: F401

    if absent:
        del sys.modules["rfc3987_syntax"]
