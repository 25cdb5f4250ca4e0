"""Expand sweeps into single reports, each with its own name.

A sweep is a list given for a parameter that takes one value; ``all`` means all values in the data. A notebook names the
function that returns them in its metadata: ``{"evalkit": {"sweep": {"model": "evalkit.mindcraft:models"}}}``.
The function gets the parameters of the notebook that its signature names, and returns the list of values.
"""

import inspect
import itertools
import multiprocessing
import os
import warnings
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
from evalkit.reports.parameters import Faults, Notebook
from evalkit.reports.planning.targets import Target
from evalkit.reports.processes import end_with_parent, start_method

ALL = "all"
MOST = 40  # reports of a source that differ in one parameter, such as the model


class Draft(NamedTuple):
    """A checked target: its fixed parameters, and the values of its sweeps."""

    choice: Target
    notebook: Notebook
    fixed: dict[str, Any]
    sweeps: dict[str, list | str]  # values, or the function that returns all values in the data


def hooks_of(notebook: Notebook, faults: Faults) -> dict[str, str]:
    """Return a notebook's sweep functions by parameter."""
    hooks, where = notebook.settings.get("sweep", {}), f"{notebook.path}: metadata evalkit.sweep"
    if not isinstance(hooks, dict) or not all(isinstance(h, str) and h.count(":") == 1 for h in hooks.values()):
        faults.append(f'{where} must be {{"parameter": "module:function"}}')
        return {}
    faults += [f"{where}: no parameter {name}" for name in hooks if name not in notebook.parameters]
    return hooks


def _call_sweep(hook: str, parameters: Mapping[str, Any]) -> list:
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
    hooks = {name: hook for name, hook in draft.sweeps.items() if isinstance(hook, str)}
    sweeps = draft.sweeps | {name: _items(draft, name, hook) for name, hook in hooks.items()}
    own = [choice.source, *(value for name, value in fixed.items() if name not in choice.values)]
    stem = [choice.params_file.stem] if choice.params_file else own
    reports = []
    for items in itertools.product(*sweeps.values()):
        parameters = _unmixed(notebook, fixed | dict(zip(sweeps, items, strict=True)))
        reports.append(Report(notebook, file_name([*stem, *items]), parameters, str(choice.params_file or "")))
    return reports


def _unmixed(notebook: Notebook, given: dict[str, Any]) -> dict[str, Any]:
    """Clear the sample defaults of sources if one source is the user's own."""
    sources = {name: given.get(name, p.default) for name, p in notebook.parameters.items() if is_sample(p.default)}
    unmixed = dict(zip(sources, own_sources(*sources.values()), strict=True))
    return given | {name: value for name, value in unmixed.items() if value != sources[name]}


def _items(draft: Draft, name: str, hook: str) -> list:
    """Return the values of a parameter that its sweep function finds in the data; SourceError if it fails."""
    defaults = {other: p.default for other, p in draft.notebook.parameters.items()}
    try:
        values = _call_sweep(hook, defaults | _unmixed(draft.notebook, draft.fixed))
    except Exception as error:
        cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        if draft.choice.source and isinstance(error, SourceError):  # it names the source
            raise SourceError(cause) from None
        raise SourceError(f"{draft.choice.where}: {name}: {ALL}: {hook}: {cause}") from None
    if draft.choice.source and len(values) > MOST:
        one = f"evalkit report {draft.choice.source} {draft.notebook.name} -p {name} {name.upper()}"
        warnings.warn(
            f"{len(values):,} reports of {draft.notebook.name}: only the first {MOST} are made; another: {one}",
            stacklevel=2,
        )
    return values[:MOST] if draft.choice.source else values


def marked(report: Report) -> Report:
    """Append a hash of its parameters to a report's name."""
    return replace(report, name=f"{report.name}-{mark(repr(report.parameters))}")


def named(reports: list[Report], name: str) -> list[Report]:
    """Rename a report to the name that the user chose; SourceError if it can't be the name of one file."""
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
