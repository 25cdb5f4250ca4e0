"""What a batch consists of: every report with its notebook and checked parameters, before any kernel starts."""

import glob
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.io import SourceError, own_sources, resolve
from evalkit.io.sources import is_sample
from evalkit.reports.choose import Choice, choose
from evalkit.reports.names import file_name, mark
from evalkit.reports.parameters import (
    REQUIRED,
    Notebook,
    Parameter,
    check_names,
    check_value,
    from_text,
    read_notebook,
    read_values,
)
from evalkit.reports.sweeps import ALL, expand, hooks_of

_SINGLE = ("str", "int", "float", "bool")  # types of one value: a list of such is a sweep


class PlanError(SourceError):
    """A batch that can't start; `faults` lists everything that is wrong with it."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(dict.fromkeys(faults))


@dataclass(frozen=True)
class Report:
    """One report to be made: a notebook with parameters."""

    notebook: Notebook
    name: str
    parameters: dict[str, Any]  # those that are given; the others have the notebook's defaults
    params_file: str = ""

    @property
    def key(self) -> str:
        """Name of the report within the output folder: ``notebook/report``."""
        return f"{self.notebook.name}/{self.name}"

    @property
    def all_parameters(self) -> dict[str, Any]:
        """The parameters with the notebook's defaults."""
        return {name: p.default for name, p in self.notebook.parameters.items()} | self.parameters


class _Draft(NamedTuple):
    """A choice that was checked: its fixed parameters, and the values of its sweeps."""

    choice: Choice
    notebook: Notebook
    fixed: dict[str, Any]
    sweeps: dict[str, list | None]  # None: all there are in the data


def plan(
    targets: Iterable[str] = (),
    *,
    params: str | os.PathLike = "params",
    notebooks: str | os.PathLike = "notebooks",
    values: Mapping[str, Any] | None = None,
    texts: Iterable[tuple[str, str]] = (),
) -> list[Report]:
    """List the reports of a batch, all parameters checked.

    Parameters
    ----------
    targets : iterable of str
        Names or paths of notebooks, and params files; none means every params file of `params`.
        A notebook named together with values is run once with these; else its params files are run.
    params, notebooks : path
        Folders of ``NOTEBOOK/REPORT.yaml`` and of ``NOTEBOOK.ipynb``.
    values : mapping, optional
        Values that go before those of the params files, wherever the notebook has the parameter.
    texts : iterable of (name, text)
        The same as typed on a command line: read by the parameter's type; a name given again adds to a list,
        or to a sweep where the parameter takes one value.

    Returns
    -------
    list of Report

    Raises
    ------
    PlanError
        With every fault of every file.
    """
    values, texts = dict(values or {}), list(texts)
    choices, faults = choose(targets, Path(params), Path(notebooks), once=bool(values or texts))
    read = _read([choice.notebook for choice in choices], faults)
    known = {name: p for notebook in read.values() for name, p in notebook.parameters.items()}
    if read:
        faults += [f"command line: {fault}" for fault in check_names([*values, *(n for n, _ in texts)], known)]
    drafts = []
    for choice in choices:
        if choice.notebook in read:
            draft, found = _check(choice, read[choice.notebook], values, texts)
            drafts.append(draft)
            faults += [f"{choice.where}: {fault}" for fault in found]
    if faults:
        raise PlanError(faults)
    return _distinct([report for draft in drafts for report in _expand(draft)])


def _read(paths: list[Path], faults: list[str]) -> dict[Path, Notebook]:
    read: dict[Path, Notebook] = {}
    names: dict[str, Path] = {}
    for path in dict.fromkeys(paths):
        if names.setdefault(path.stem, path).resolve() != path.resolve():
            faults.append(f"{path}: has the name of {names[path.stem]}; their reports would share a folder")
        try:
            read[path] = read_notebook(path)
        except OSError as error:
            faults.append(f"{path}: {error.strerror or error}")
        except ValueError as error:
            faults.append(str(error))
    return read


def _check(
    choice: Choice, notebook: Notebook, values: dict[str, Any], texts: list[tuple[str, str]]
) -> tuple[_Draft, list[str]]:
    """Check the values of one choice against its notebook's parameters."""
    parameters = notebook.parameters
    hooks, faults = hooks_of(notebook)
    given: dict[str, Any] = {}
    try:
        given = read_values(choice.params_file) if choice.params_file else {}
    except ValueError as error:
        faults.append(str(error))
    faults += check_names(given, parameters)
    given = {name: value for name, value in (given | values).items() if name in parameters}
    given |= _from_texts(texts, parameters, faults)
    fixed, sweeps = {}, {}
    for name, value in given.items():
        if name in hooks and value == ALL:
            sweeps[name] = None
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
        faults += _missing_sources(value, parameters[name])
    return _Draft(choice, notebook, fixed, sweeps), faults


def _from_texts(texts: list[tuple[str, str]], parameters: Mapping[str, Parameter], faults: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, text in texts:
        if name not in parameters:
            continue
        value, fault = from_text(text, parameters[name])
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


def _missing_sources(value: Any, parameter: Parameter) -> list[str]:
    """Name what is not there of a value that must be a path: by its look, or as the default is a sample."""
    faults = []
    for item in _listed(value):
        if not isinstance(item, str) or not item or "://" in item:
            continue
        if is_sample(parameter.default) or item.startswith(("samples:", "./", "../", "~/")):
            if glob.has_magic(item) and glob.glob(os.path.expanduser(item), recursive=True):
                continue
            try:
                resolve(item)
            except SourceError as error:
                faults.append(f"{parameter.name}: {error}")
    return faults


def _expand(draft: _Draft) -> list[Report]:
    """Make one report per item of the sweeps, each with a name of its own."""
    choice, notebook, fixed, _ = draft
    sweeps = {name: _items(draft, name) if items is None else items for name, items in draft.sweeps.items()}
    stem = [choice.params_file.stem] if choice.params_file else list(fixed.values())
    reports = []
    for items in itertools.product(*sweeps.values()):
        name = file_name([*stem, *items])
        parameters = _unmixed(notebook, fixed | dict(zip(sweeps, items, strict=True)))
        reports.append(Report(notebook, name, parameters, str(choice.params_file or "")))
    return reports


def _unmixed(notebook: Notebook, given: dict[str, Any]) -> dict[str, Any]:
    """Empty the sample defaults of sources as soon as one source is the user's own."""
    sources = {name: given.get(name, p.default) for name, p in notebook.parameters.items() if is_sample(p.default)}
    own = dict(zip(sources, own_sources(*sources.values()), strict=True))
    return given | {name: value for name, value in own.items() if value != sources[name]}


def _items(draft: _Draft, name: str) -> list:
    """Ask a notebook's sweep function what there is in the data."""
    hook = hooks_of(draft.notebook)[0][name]
    defaults = {other: p.default for other, p in draft.notebook.parameters.items()}
    others = defaults | _unmixed(draft.notebook, draft.fixed)
    try:
        return expand(hook, others)
    except Exception as error:
        cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        raise PlanError([f"{draft.choice.where}: {name}: {ALL}: {hook}: {cause}"]) from error


def _distinct(reports: list[Report]) -> list[Report]:
    """Leave out what is there twice; names that are the same, or differ by case only, get a mark."""
    seen: dict[str, list[Report]] = {}
    for report in reports:
        same = seen.setdefault(report.key.casefold(), [])
        if not any(report.parameters == other.parameters for other in same):
            same.append(report)
    return [
        replace(report, name=f"{report.name}-{mark(repr(report.parameters))}") if len(same) > 1 else report
        for same in seen.values()
        for report in same
    ]
