"""Expand sweeps into single reports, each with its own name.

A sweep is a list given for a parameter that takes one value; ``all`` means all values in the data. A notebook names the
function that returns them in its metadata: ``{"evalkit": {"sweep": {"model": "evalkit.mindcraft:models"}}}``.
The function gets the parameters of the notebook that its signature names, and returns the list of values.
"""

import inspect
import itertools
import multiprocessing
import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from evalkit.io.paths import SourceError
from evalkit.io.sources import is_sample, own_sources
from evalkit.io.text import warnings_as_lines
from evalkit.reports.filenames import file_name, mark
from evalkit.reports.job import Report
from evalkit.reports.parameters import Notebook
from evalkit.reports.planning.targets import Target
from evalkit.reports.startup import end_with_parent, start_method

ALL = "all"


class Draft(NamedTuple):
    """A checked target: its fixed parameters, and the values of its sweeps."""

    choice: Target
    notebook: Notebook
    fixed: dict[str, Any]
    sweeps: dict[str, list | None]  # None: all values in the data


def hooks_of(notebook: Notebook) -> tuple[dict[str, str], list[str]]:
    """Return a notebook's sweep functions by parameter, and their faults."""
    hooks = notebook.settings.get("sweep", {})
    if not isinstance(hooks, dict) or not all(isinstance(h, str) and h.count(":") == 1 for h in hooks.values()):
        return {}, [f'{notebook.path}: metadata evalkit.sweep must be {{"parameter": "module:function"}}']
    faults = [
        f"{notebook.path}: metadata evalkit.sweep: no parameter {n}" for n in hooks if n not in notebook.parameters
    ]
    return hooks, faults


def call_sweep(hook: str, parameters: Mapping[str, Any]) -> list:
    """Call a sweep function in a separate process: it reads files, while the batch's process must only import."""
    context, others = multiprocessing.get_context(start_method()), set(multiprocessing.active_children())
    with ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent, initargs=(os.getpid(),)) as pool:
        try:
            values = pool.submit(_call, hook, dict(parameters)).result()
        except KeyboardInterrupt:
            for child in set(multiprocessing.active_children()) - others:
                child.kill()
            raise
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


def expand(draft: Draft) -> list[Report]:
    """Create one report per item of the sweeps, each with its own name."""
    choice, notebook, fixed, _ = draft
    sweeps = {name: _items(draft, name) if items is None else items for name, items in draft.sweeps.items()}
    if choice.params_file:
        stem: list[Any] = [choice.params_file.stem]
    else:
        stem = [choice.source, *(value for name, value in fixed.items() if name not in choice.values)]
    reports = []
    for items in itertools.product(*sweeps.values()):
        name = file_name([*stem, *items])
        parameters = _unmixed(notebook, fixed | dict(zip(sweeps, items, strict=True)))
        reports.append(Report(notebook, name, parameters, str(choice.params_file or "")))
    return reports


def _unmixed(notebook: Notebook, given: dict[str, Any]) -> dict[str, Any]:
    """Clear the sample defaults of sources if one source is the user's own."""
    sources = {name: given.get(name, p.default) for name, p in notebook.parameters.items() if is_sample(p.default)}
    unmixed = dict(zip(sources, own_sources(*sources.values()), strict=True))
    return given | {name: value for name, value in unmixed.items() if value != sources[name]}


def _items(draft: Draft, name: str) -> list:
    """Return the values of a notebook's sweep function for the data."""
    hook = hooks_of(draft.notebook)[0][name]
    defaults = {other: p.default for other, p in draft.notebook.parameters.items()}
    others = defaults | _unmixed(draft.notebook, draft.fixed)
    try:
        return call_sweep(hook, others)
    except Exception as error:
        cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        if draft.choice.source and isinstance(error, SourceError):  # it names the source
            raise SourceError(cause) from None
        raise SourceError(f"{draft.choice.where}: {name}: {ALL}: {hook}: {cause}") from None


def marked(report: Report) -> Report:
    """Append a hash of its parameters to a report's name."""
    return replace(report, name=f"{report.name}-{mark(repr(report.parameters))}")


def named(reports: list[Report], name: str) -> list[Report]:
    """Rename a report to the name that the user chose."""
    if file_name([name]) != name:
        raise SourceError(f"--name {name}: can't be the name of a file; {file_name([name])} could")
    counts = Counter(report.notebook.name for report in reports)
    for notebook, n in counts.items():
        if n > 1:
            raise SourceError(f"--name {name}: names one report, and {n} of {notebook} would be made")
    return [replace(report, name=name, is_named=True) for report in reports]


def distinct(reports: list[Report]) -> list[Report]:
    """Drop duplicate reports; names that are equal, or differ by case only, get a hash."""
    seen: dict[str, list[Report]] = {}
    for report in reports:
        same = seen.setdefault(report.key.casefold(), [])
        if not any(report.parameters == other.parameters for other in same):
            same.append(report)
    return [marked(report) if len(same) > 1 else report for same in seen.values() for report in same]
