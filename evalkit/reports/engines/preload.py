"""Prepare the parent of forked engines: which notebooks may be forked, and what is imported before the forks.

It has read no data and started no thread: so every report begins in a fresh process whose imports cost nothing.
"""

import ast
import contextlib
import gc
import os
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from evalkit.reports.parameters import Notebook
from evalkit.reports.processes import quiet_imports, start_method

# Libraries whose import only defines things. Others, such as polars, start threads that a fork loses.
PRELOADED = {"evalkit", "IPython", "matplotlib", "numpy", "pandas", "scipy", "seaborn", "statsmodels"}

# Modules that every report uses, but that its libraries import lazily
_LATER = (
    "evalkit.kinds.logs", "evalkit.kinds.update", "evalkit.display.drawing", "pyarrow.dataset", "pyarrow.parquet",
    "seaborn",
)  # fmt: skip

# Code that needs a kernel's channels, or its event loop
_NEEDS_KERNEL = re.compile(
    r"\b(ipywidgets|ipykernel|nest_asyncio|comm)\b|^\s*%(gui|matplotlib +(?!inline))", re.MULTILINE
)


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
    settings = (f"ipython_{config}.{suffix}" for config in ("config", "kernel_config") for suffix in ("py", "json"))
    has_profile = any((profile / name).exists() for name in settings) or any(profile.glob("startup/*.*py"))
    return not has_profile and not any(map(_NEEDS_KERNEL.search, notebook.codes))


def preload_engine(*, code: bool = True) -> None:
    """Import what executes notebooks and renders pages; rendering a first, empty page initialises libraries."""
    quiet_imports()
    import IPython.core.completerlib  # noqa: F401 - every shell does
    import nbformat

    import evalkit.reports.engines.build
    import evalkit.reports.engines.forked  # noqa: F401
    from evalkit.reports.html.page import render

    cells = [nbformat.v4.new_markdown_cell("# Title"), nbformat.v4.new_code_cell("1")]
    render(nbformat.v4.new_notebook(cells=cells), key="", code=code)


def preload_libraries(notebooks: Iterable[Notebook]) -> None:
    """Import what the notebooks import, if it is in `PRELOADED`; errors are left to the notebook itself.

    Modules that their functions import later are named in their metadata: ``{"evalkit": {"preload": [...]}}``.
    """
    for notebook in notebooks:
        for code in notebook.codes:
            with contextlib.suppress(SyntaxError, ValueError):
                _import_all(ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", code)))
        later = notebook.settings.get("preload", [])
        for name in later if isinstance(later, list) else ():
            with contextlib.suppress(Exception):
                _resolve(name, "")
    if "evalkit.display" in sys.modules:
        for name in _LATER:
            with contextlib.suppress(ImportError):
                import_module(name)
    gc.collect()
    gc.freeze()  # so that the children's collections leave the parent's pages shared


def _import_all(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        with contextlib.suppress(Exception):
            if isinstance(node, ast.Import):
                for name in node.names:
                    _resolve(name.name, "")
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    _resolve(node.module, name.name)
            elif isinstance(node, ast.Attribute) and (chain := ast.unparse(node)).startswith("evalkit."):
                _resolve("evalkit", chain.partition(".")[2])


def _resolve(module: str, attributes: str) -> None:
    """Import a module, and look up attributes of it, which lazy packages import on access."""
    if module.partition(".")[0] not in PRELOADED:
        return
    value = import_module(module)
    for name in filter(None, attributes.split(".")):
        value = getattr(value, name)
