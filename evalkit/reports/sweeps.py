"""Sweeps: the functions that say what ``all`` means for a parameter.

A notebook names them in its metadata, ``{"evalkit": {"sweep": {"model": "evalkit.mindcraft:models"}}}``. The function
gets those of the notebook's other parameters that its signature names, and returns the list of values.
"""

import inspect
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any

from evalkit.io.paths import SourceError
from evalkit.io.text import warnings_as_lines
from evalkit.reports.parameters import Notebook
from evalkit.reports.processes import start_method

ALL = "all"


def hooks_of(notebook: Notebook) -> tuple[dict[str, str], list[str]]:
    """Return a notebook's sweep functions by parameter, and what is wrong with them."""
    own = notebook.metadata.get("evalkit", {})
    hooks = own.get("sweep", {}) if isinstance(own, dict) else {}
    if not isinstance(hooks, dict) or not all(isinstance(h, str) and h.count(":") == 1 for h in hooks.values()):
        return {}, [f'{notebook.path}: metadata evalkit.sweep must be {{"parameter": "module:function"}}']
    faults = [
        f"{notebook.path}: metadata evalkit.sweep: no parameter {n}" for n in hooks if n not in notebook.parameters
    ]
    return hooks, faults


def expand(hook: str, parameters: Mapping[str, Any]) -> list:
    """Call a sweep function, in a process of its own: it reads files, and the batch's process must only import.

    Raises
    ------
    SourceError
        Where it returns no list of values, or an empty one; beside that, whatever the function raises.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(start_method())) as pool:
        values = pool.submit(_call, hook, dict(parameters)).result()
    if not values:
        raise SourceError("there are none in the data")
    return values


def _call(hook: str, parameters: dict[str, Any]) -> list:
    module, name = hook.split(":")
    function = getattr(import_module(module), name)
    wanted = inspect.signature(function).parameters
    with warnings_as_lines():
        values = function(**{key: value for key, value in parameters.items() if key in wanted})
    return list(dict.fromkeys(values))
