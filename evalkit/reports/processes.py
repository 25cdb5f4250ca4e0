"""Processes of a batch: how they are started, which notebooks forked ones can execute, and how they end."""

import gc
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import psutil

from evalkit.io.frames import paused_gc
from evalkit.reports.notebooks import Notebook

# Libraries whose import only defines things. Others, such as polars, start threads that a fork loses.
PRELOADED = {"evalkit", "IPython", "matplotlib", "numpy", "pandas", "pyarrow", "scipy", "seaborn", "statsmodels"}

# Code that needs a kernel's channels, or its event loop
_NEEDS_KERNEL = re.compile(
    r"\b(ipywidgets|ipykernel|nest_asyncio|comm)\b|^\s*%(gui|matplotlib +(?!inline))", re.MULTILINE
)


def start_method() -> str:
    """Return the start method of processes: fork if that is safe, else spawn."""
    return "fork" if sys.platform == "linux" else "spawn"


def can_fork(notebook: Notebook) -> bool:
    """Return whether a notebook has the same outputs in a forked process as in a Jupyter kernel.

    It does not if it asks for another kernel than this Python's, uses widgets or a kernel's own modules, has
    ``{"evalkit": {"quick": false}}`` in its metadata, or if the user's IPython profile has settings.
    """
    spec = notebook.metadata.get("kernelspec", {})
    wanted = spec.get("name", "python3") == "python3" and spec.get("language", "python") == "python"
    if start_method() != "fork" or not wanted or notebook.settings.get("quick") is False:
        return False
    profile = Path(os.environ.get("IPYTHONDIR", "~/.ipython")).expanduser() / "profile_default"
    has_profile = any(profile.glob("ipython_*config.*")) or any(profile.glob("startup/*.*py"))
    return not has_profile and not any(map(_NEEDS_KERNEL.search, notebook.codes))


def preload(notebooks: Iterable[Notebook], *, code: bool) -> None:
    """Import what makes reports, once for all processes, and what notebooks import, if it is in `PRELOADED`.

    So are the names that they use of evalkit's lazy packages. Errors are left to the notebook itself.
    """
    # an option of jsonschema that nbformat does not use: it takes a second to build its grammar
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    with paused_gc():
        import_module("evalkit.reports.build")
        import_module("evalkit.reports.page").warm_up(code=code)
        names = set[str]()
        for source in {source for notebook in notebooks for source in notebook.codes}:
            names |= set(re.findall(r"^\s*import +([\w.]+)", source, re.MULTILINE))
            names |= set(re.findall(r"\bevalkit(?:\.\w+)+", source))
            for module, imported in re.findall(r"^\s*from +([\w.]+) +import +([\w, ]+)", source, re.MULTILINE):
                names |= {f"{module}.{name.split()[0]}" for name in imported.split(",") if name.strip()}
        if any(name.startswith("evalkit") for name in names):  # what libraries import when they need it
            names |= {"pyarrow.dataset", "pyarrow.parquet", "seaborn"}
        for name in sorted(names):
            if name.partition(".")[0] in PRELOADED:
                with suppress(Exception):
                    resolve_name(name)
    gc.collect()
    gc.freeze()  # so that the children's collections leave the parent's pages shared


def end_family(pid: int) -> None:
    """End a process and all that it started."""
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        first.suspend()  # it starts no others meanwhile
        for process in [*first.children(recursive=True), first]:
            with suppress(psutil.Error):
                process.kill()
