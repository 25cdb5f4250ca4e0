"""Plan a batch: every report with its notebook and checked parameters, before any kernel starts."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalkit.io.paths import SourceError, is_secret_name, redacted
from evalkit.io.sources import is_sample, paths_of
from evalkit.io.text import cut_line
from evalkit.reports.job import Report, refuse_secrets
from evalkit.reports.parameters import (
    REQUIRED,
    Faults,
    Notebook,
    Parameter,
    check_names,
    check_value,
    from_text,
    read_notebook,
    read_values,
)
from evalkit.reports.planning.expansion import ALL, Draft, distinct, expand, hooks_of, named
from evalkit.reports.planning.places import Places
from evalkit.reports.planning.targets import Target, find_targets

_SINGLE = ("str", "int", "float", "bool")  # types of a single value: a list of these is a sweep


class PlanError(SourceError):
    """A batch that can't start; `faults` lists all its faults."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = list(dict.fromkeys(cut_line(redacted(fault)) for fault in faults))
        super().__init__("\n".join(self.faults))


def plan(
    targets: Iterable[str] = (),
    *,
    params: str | os.PathLike | None = None,
    notebooks: str | os.PathLike | None = None,
    kind: str = "",
    values: Mapping[str, Any] | None = None,
    texts: Iterable[tuple[str, str]] = (),
    name: str = "",
) -> list[Report]:
    """Return the reports of a batch, with all parameters checked.

    Parameters
    ----------
    targets : iterable of str
        Names or paths of notebooks, params files, and sources of logs; by default every params file of `params`.
        A notebook named together with values is run once with these; else its params files are run. A source is run
        with all notebooks of the kinds of logs it holds, or with those that are named beside it.
    params, notebooks : path, optional
        Folders of ``NOTEBOOK/REPORT.yaml`` and of ``NOTEBOOK.ipynb``; by default those of the current folder, then
        evalkit's own.
    kind : str
        The kind of logs of all sources; by default it is detected from their content.
    values : mapping, optional
        Values that override those of the params files, for notebooks that have the parameter.
    texts : iterable of (name, text)
        The same as typed on a command line: parsed by the parameter's type; a repeated name adds to a list, or to a
        sweep if the parameter takes one value.
    name : str
        Name of the report; by default that of its params file or its values.

    Returns
    -------
    list of Report

    Raises
    ------
    PlanError
        Lists every fault of every file.
    """
    values, texts, faults = dict(values or {}), list(texts), Faults()
    choices = find_targets(targets, Places.of(notebooks, params), faults, once=bool(values or texts), kind=kind)
    read = _read([choice.notebook for choice in choices], faults)
    known = {name: p for notebook in read.values() for name, p in notebook.parameters.items()}
    if read:
        faults += [f"command line: {fault}" for fault in check_names([*values, *(n for n, _ in texts)], known)]
    drafts = []
    for choice in choices:
        if choice.notebook in read:
            own = Faults()
            drafts.append(_check(choice, read[choice.notebook], values, texts, own))
            faults += [f"{choice.where}: {fault}" for fault in own]
    if faults:
        raise PlanError(faults)
    try:
        reports = distinct(_expanded(drafts))
        return named(reports, name) if name else reports
    except SourceError as error:
        raise PlanError([str(error)]) from None


def _expanded(drafts: Sequence[Draft]) -> list[Report]:
    """Create the reports of drafts; a kind of a source that can't be read is a warning if there is another kind."""
    made: dict[tuple[str, str], list[Report]] = {}
    faults: dict[tuple[str, str], SourceError] = {}
    for draft in drafts:
        key = (draft.choice.source, str(draft.choice.values.get("kind", draft.notebook.kind)))
        try:
            made.setdefault(key, []).extend(expand(draft))
        except SourceError as error:
            faults.setdefault(key, error)
    for (source, kind), fault in faults.items():
        del made[source, kind]
        if not source or not any(other == source for other, _ in made):
            raise fault
        warnings.warn(f"no report of {kind} logs: {fault}", stacklevel=3)
    return [report for reports in made.values() for report in reports]


def _read(paths: list[Path], faults: Faults) -> dict[Path, Notebook]:
    read: dict[Path, Notebook] = {}
    names: dict[str, Path] = {}
    for path in dict.fromkeys(paths):
        if names.setdefault(path.stem, path).resolve() != path.resolve():
            faults.append(f"{path}: has the name of {names[path.stem]}; their reports would share a folder")
        try:
            with faults.of():
                read[path] = read_notebook(path)
        except OSError as error:
            faults.append(f"{path}: {error.strerror or error}")
    return read


def _check(
    choice: Target, notebook: Notebook, values: dict[str, Any], texts: list[tuple[str, str]], faults: Faults
) -> Draft:
    """Check the values of one target against its notebook's parameters."""
    parameters, hooks = notebook.parameters, hooks_of(notebook, faults)
    given: dict[str, Any] = {}
    with faults.of():
        given = read_values(choice.params_file) if choice.params_file else {}
    faults += check_names(given, parameters)
    given |= choice.values
    if choice.source:  # every possible report of it
        given |= dict.fromkeys(hooks, ALL)
    given = {name: value for name, value in (given | values).items() if name in parameters}
    given |= _from_texts(texts, parameters, faults)
    for name, value in ({name: p.default for name, p in parameters.items()} | given).items():
        try:
            refuse_secrets({name: value})
        except SourceError as error:  # in a notebook's defaults too
            faults.append(str(error) if is_secret_name(name) else f"{name}: {error}")
            given.pop(name, None)
    fixed: dict[str, Any] = {}
    sweeps: dict[str, list[Any] | str] = {}
    for name, value in given.items():
        if name in hooks and value == ALL:
            sweeps[name] = hooks[name]
        elif isinstance(value, list) and parameters[name].type in _SINGLE:
            checked = [check_value(item, parameters[name]) for item in value]
            sweeps[name] = list(dict.fromkeys(item for item, fault in checked if not fault))
            faults += [fault for _, fault in checked if fault] or ([] if value else [f"{name} is an empty list"])
        else:
            fixed[name], fault = check_value(value, parameters[name])
            faults += [fault] if fault else []
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in given:
            faults.append(f"{name} has no value, and the notebook no default for it")
    for name, value in given.items():
        _check_sources(value, parameters[name], faults)
    return Draft(choice, notebook, fixed, sweeps)


def _from_texts(texts: list[tuple[str, str]], parameters: Mapping[str, Parameter], faults: Faults) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in texts:
        if name not in parameters:
            continue
        # text with credentials is refused later, like that of a file; a fault found here would repeat it
        is_secret = redacted(text) != text or is_secret_name(name)
        value, fault = (text, "") if is_secret else from_text(text, parameters[name])
        if fault:
            faults.append(fault)
        elif name not in given:
            given[name] = value
        elif isinstance(value, list) or parameters[name].type in _SINGLE:
            given[name] = [*_listed(given[name]), *_listed(value)]
        else:
            faults.append(f"{name} is given twice, and takes one value")
    return given


def _listed(value: Any) -> list:
    return value if isinstance(value, list) else [value]


def _check_sources(value: Any, parameter: Parameter, faults: Faults) -> None:
    """Check that the paths exist in a value that must be a path: by its form, or as its default is a sample."""
    for item in _listed(value):
        is_local = isinstance(item, str) and item and "://" not in item
        if is_local and (is_sample(parameter.default) or item.startswith(("samples:", "./", "../", "~/"))):
            with faults.of(f"{parameter.name}: "):
                paths_of(item)
