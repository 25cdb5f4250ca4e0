"""Plan a batch: choose the notebook of each report and check its parameters, before anything is executed.

A sweep is a list of values for a parameter that takes one value; each value makes a report. The value ``all`` sweeps
over all values in the data.
"""

import inspect
import itertools
import multiprocessing
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from evalkit.io.paths import SourceError, is_secret_name, is_url, redacted
from evalkit.io.read import end_with_parent
from evalkit.io.sources import expand, is_sample, own_sources, resolve, without_projects
from evalkit.io.text import cut_line, warnings_as_lines
from evalkit.kinds.detection import kinds_of_source
from evalkit.kinds.options import COMMON
from evalkit.kinds.registry import kind_named
from evalkit.reports.kernels import start_method
from evalkit.reports.notebooks import (
    ANY_KIND,
    NOTEBOOK,
    PARAMS_FILES,
    REQUIRED,
    Faults,
    Notebook,
    Parameter,
    Places,
    check_names,
    check_value,
    from_text,
    read_notebook,
    read_values,
)
from evalkit.reports.report import Report, file_name, refuse_secrets, short_hash

ALL = "all"
MOST_OF_SWEEP = 40  # maximum number of reports in a sweep over a source, such as one per model
_SINGLE = ("str", "int", "float", "bool")  # types of parameters for which a list of values is a sweep


class PlanError(SourceError):
    """Raised for a batch that can't start; `faults` lists all its faults."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = list(dict.fromkeys(cut_line(redacted(fault)) for fault in faults))
        super().__init__("\n".join(self.faults))


class Target(NamedTuple):
    """A notebook to run, and where its values come from: a params file or a source of logs."""

    notebook: Path
    params_file: Path | None = None
    source: str = ""  # the sources that are compared, joined to one text
    values: Mapping[str, Any] = {}  # values of the parameters that depend on the source

    @property
    def where(self) -> str:
        """The file that messages about this target name."""
        return str(self.params_file or self.notebook)


def plan(
    targets: Iterable[str] = (),
    *,
    params: str | os.PathLike | None = None,
    notebooks: str | os.PathLike | None = None,
    kind: str = "",
    values: Mapping[str, Any] | None = None,
    texts: Iterable[tuple[str, str]] = (),
    name: str = "",
    each: bool = False,
) -> list[Report]:
    """Return the reports of a batch, with all parameters checked.

    Parameters
    ----------
    targets : iterable of str
        Names or paths of notebooks, params files, and sources of logs; by default, all params files in `params`. A
        notebook is run with each of its params files, or once if `values` or `texts` are given. A source is run with
        all notebooks for its kinds of logs, or only with the notebooks that are also named.
    params : path, optional
        Folder of ``NOTEBOOK/REPORT.yaml``; by default ``params`` in the current folder, then evalkit's folder.
    notebooks : path, optional
        Folder of ``NOTEBOOK.ipynb``; by default ``notebooks`` in the current folder, then evalkit's folder.
    kind : str
        Kind of the logs of all sources; by default detected from their content.
    values : mapping, optional
        Values that override the params files, for notebooks that have the parameter.
    texts : iterable of (name, text)
        Values as typed on a command line, parsed according to the type of the parameter. A repeated name adds an item
        to a list, or to a sweep if the parameter takes one value.
    name : str
        Name of the report; by default, it consists of the name of its params file or of its values.
    each : bool
        Whether to make separate reports for each source; by default, one report compares all sources of a kind.

    Returns
    -------
    list of Report
        The reports.

    Raises
    ------
    PlanError
        If the batch is invalid. The error lists every fault in every file.

    Examples
    --------
    >>> len(reports.plan(["model_overview"])) > 0  # doctest: +SKIP
    """
    values = dict(values or {})
    texts = list(texts)
    faults = Faults()
    places = Places.of(notebooks, params)
    chosen = _find_targets(list(targets), places, faults, once=bool(values or texts), kind=kind, each=each)
    read: dict[Path, Notebook] = {}
    for path in dict.fromkeys(target.notebook for target in chosen):
        with faults.of():
            read[path] = read_notebook(path)
    known = {name: p for notebook in read.values() for name, p in notebook.parameters.items()}
    if read:
        faults += [f"command line: {fault}" for fault in check_names([*values, *(n for n, _ in texts)], known)]
    drafts = []
    for target in chosen:
        if target.notebook in read:
            own = Faults()
            drafts.append(_check(target, read[target.notebook], values, texts, own))
            faults += [f"{target.where}: {fault}" for fault in own]
    if faults:
        raise PlanError(faults)
    try:
        reports = _expanded(drafts)
    except SourceError as error:
        raise PlanError([str(error)]) from None

    by_key: dict[str, list[Report]] = {}  # ignores case, as some file systems do
    for report in reports:
        same = by_key.setdefault(report.key.casefold(), [])
        if not any(report.parameters == other.parameters for other in same):
            same.append(report)
    reports = [report.with_hash() if len(same) > 1 else report for same in by_key.values() for report in same]
    reports.sort(key=lambda report: report.notebook.order)
    if not name:
        return reports
    if file_name([name]) != name:
        raise PlanError([f"--name {name}: can't be the name of a file; {file_name([name])} could"])
    if len(reports) > 1:
        raise PlanError([f"--name {name}: names one report, and {len(reports)} would be made"])
    return [replace(report, name=name, is_named=True) for report in reports]


def _find_targets(
    given: list[str], places: Places, faults: Faults, *, once: bool, kind: str, each: bool
) -> list[Target]:
    """Find the notebooks (with params files unless `once`) and sources that were named, or else all params files."""
    if not given:
        folder = next((folder for folder in places.params if folder.is_dir()), places.params[0])
        given = list(map(str, Places((), [folder]).params_of("*")))
        if not given:
            cause = "contains no NOTEBOOK/REPORT.yaml" if folder.is_dir() else "does not exist"
            faults.append(
                f"{folder}: the folder {cause}; name a folder of logs or a notebook, or give --params DIR (each file "
                "in it makes a report with the notebook named by the file's folder)"
            )
    known = places.all_notebooks()
    found: list[Target] = []
    sources: list[str] = []
    notebooks: list[Path] = []
    for name in given:
        path = Path(name)
        with faults.of(f"{name}: " if path.suffix in PARAMS_FILES else ""):
            if path.suffix == NOTEBOOK:
                notebooks.append(path)
            elif path.suffix in PARAMS_FILES:
                if not path.is_file():
                    raise SourceError("no such params file")
                found.append(Target(places.notebook(path.resolve().parent.name), path))
            elif name in known or not (name.startswith("samples:") or is_url(name) or has_magic(name) or _exists(name)):
                notebooks.append(places.notebook(name, "file, folder or notebook"))
            else:
                sources.append(name if is_url(name) else name.rstrip("/") or name)  # shells append / to folders
    if sources:
        return found + _targets_of_kinds(sources, places, notebooks, faults, kind=kind, each=each)
    for notebook in notebooks:
        params = [] if once else places.params_of(notebook.stem)
        found += [Target(notebook, file) for file in params or (None,)]
    return found


def _targets_of_kinds(
    sources: Sequence[str], places: Places, only: Sequence[Path], faults: Faults, *, kind: str, each: bool
) -> list[Target]:
    """Select notebooks for sources. One target covers all sources with logs of a kind; with `each`, only one source."""
    by_kind: dict[str, list[str]] = {}
    for source in sources:
        with faults.of():
            for name in [kind] if kind else [detected.name for detected in kinds_of_source(source)]:
                by_kind.setdefault(name, []).append(source)
    groups = list(by_kind.items())
    if each:
        groups = [(name, [source]) for source in sources for name, members in groups if source in members]
    targets: list[Target] = []
    without = dict.fromkeys(source for _, members in groups for source in members)
    for name, members in groups:
        with faults.of():
            if chosen := _targets_of_sources(members, places, name, only):
                targets += chosen
                for source in members:
                    without.pop(source, None)
    for source in without:
        kinds = " and ".join(name for name, members in by_kind.items() if source in members)
        such = "such notebook" if only else "notebook"
        hint = "`evalkit notebooks` lists all notebooks"
        faults.append(f"{source}: contains logs of kind {kinds}, which has no {such}; {hint}")
    return targets


def _targets_of_sources(sources: Sequence[str], places: Places, kind: str, only: Sequence[Path]) -> list[Target]:
    """Select notebooks for sources of logs of one kind: all notebooks for the kind, or only the ones in `only`.

    A notebook with ``only_if_named`` in its metadata needs more than logs, and is selected only if it is in `only`.
    """
    known = []
    for path in (places.all_notebooks() | {path.stem: path for path in only}).values():
        with suppress(SourceError):
            notebook = read_notebook(path)
            if notebook.kind and notebook.settings.get("source") in notebook.parameters:
                known.append(notebook)
    wanted = {path.resolve() for path in only}
    joined = ", ".join(sources)
    chosen = []
    specific = [notebook for notebook in known if notebook.kind == kind_named(kind).name]
    general = [notebook for notebook in known if notebook.kind == ANY_KIND]
    candidates = specific + general if wanted else specific or general
    for notebook in candidates:
        if notebook.path.resolve() not in wanted and (wanted or notebook.settings.get("only_if_named")):
            continue
        parameter = notebook.parameters[notebook.settings["source"]]
        is_list = parameter.type.startswith("list") or len(sources) > 1
        values: dict[str, Any] = {parameter.name: list(sources) if is_list else joined}
        if notebook.kind == ANY_KIND and "kind" in notebook.parameters:
            values["kind"] = kind
        chosen.append(Target(notebook.path, None, joined, values))
    return chosen


def _exists(name: str) -> bool:
    try:
        return bool(resolve(name))
    except SourceError:
        return False


class Draft(NamedTuple):
    """A checked target: its fixed parameters, and the values of its sweeps."""

    target: Target
    notebook: Notebook
    fixed: dict[str, Any]
    sweeps: dict[str, list | str]  # values, or the name of the function that returns all values in the data


def _check(
    target: Target, notebook: Notebook, values: dict[str, Any], texts: list[tuple[str, str]], faults: Faults
) -> Draft:
    """Check the values of one target against its notebook's parameters."""
    parameters, functions = notebook.parameters, notebook.settings.get("sweep", {})
    given: dict[str, Any] = {}
    with faults.of():
        given = read_values(target.params_file) if target.params_file else {}
    faults += check_names(given, parameters)
    given |= target.values
    if target.source:  # sweep over all values in the data
        given |= dict.fromkeys(functions, ALL)
    given |= values
    given |= _typed(texts, parameters, faults)

    draft = Draft(target, notebook, {}, {})
    for name, parameter in parameters.items():
        value = given.get(name, parameter.default)
        try:
            refuse_secrets(name, value)
        except SourceError as error:
            faults.append(str(error) if is_secret_name(name) else f"{name}: {error}")
            continue  # another message could repeat the secret
        if name not in given:
            if value is REQUIRED:
                faults.append(f"{name} has no value, and the notebook has no default")
            continue
        items = _items_of([value])
        with faults.of():
            if value == ALL and name in functions:
                draft.sweeps[name] = functions[name]
            elif items == [] and parameter.type in _SINGLE:
                raise ValueError(f"{name} is an empty list")
            elif isinstance(value, list) and parameter.type in _SINGLE:
                draft.sweeps[name] = list(dict.fromkeys(check_value(item, parameter) for item in items))
            else:
                draft.fixed[name] = check_value(value, parameter)
        for item in items:  # check values that must be paths because of their form or the default
            is_local = isinstance(item, str) and item and "://" not in item
            if is_local and (is_sample(parameter.default) or item.startswith(("samples:", "./", "../", "~/"))):
                with faults.of(f"{name}: "):
                    expand(item)
    chosen = _unmixed(notebook, draft.fixed)
    for name, hint in notebook.settings.get("needs", {}).items():
        if name in chosen and not chosen[name]:
            faults.append(f"{name} is empty; {hint}")
    return draft


def _typed(texts: list[tuple[str, str]], parameters: Mapping[str, Parameter], faults: Faults) -> dict[str, Any]:
    """Parse the texts typed for parameters. A repeated name adds an item to a list or to a sweep."""
    typed: dict[str, list[Any]] = {}
    for name, text in texts:
        if name in parameters:
            try:
                typed.setdefault(name, []).append(from_text(text, parameters[name]))
            except ValueError as error:
                typed[name] = [text]
                if not is_secret_name(name):  # secrets are refused later, and never repeated
                    faults.append(str(error))
    return {name: values[0] if len(values) == 1 else _items_of(values) for name, values in typed.items()}


def _items_of(values: Iterable[Any]) -> list[Any]:
    """Flatten values: return the items of lists, and values that are not lists."""
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def _expanded(drafts: Sequence[Draft]) -> list[Report]:
    """Create one report for each combination of values in each draft's sweeps."""
    made: dict[tuple[str, str], list[Report]] = {}
    faults: dict[tuple[str, str], SourceError] = {}
    for draft in drafts:
        target, notebook, fixed, sweeps = draft
        key = (target.source, str(target.values.get("kind", notebook.kind)))
        reports = made.setdefault(key, [])
        options = _items_of(value for name, value in fixed.items() if name not in target.values)
        named = list(map(without_projects, target.source.split(", "))) if target.source else options[:1]
        rest = options if target.source else options[1:]
        if len(rest) > 1:  # too many for a name; the page and the index list them
            rest = [short_hash(str(rest))]
        stem = [target.params_file.stem] if target.params_file else [*named, *rest]
        try:
            items = [_items(draft, name, hook) if isinstance(hook, str) else hook for name, hook in sweeps.items()]
        except SourceError as error:
            faults.setdefault(key, error)
            continue
        for chosen in itertools.product(*items):
            parameters = _unmixed(notebook, fixed | dict(zip(sweeps, chosen, strict=True)))
            reports.append(Report(notebook, file_name([*stem, *chosen]), parameters, str(target.params_file or "")))
    for (source, kind), fault in faults.items():
        del made[source, kind]
        if not source or not any(other == source for other, _ in made):
            raise fault
        warnings.warn(f"no report of {kind} logs: {fault}", stacklevel=3)
    return [report for reports in made.values() for report in reports]


def _unmixed(notebook: Notebook, given: dict[str, Any]) -> dict[str, Any]:
    """Clear the sample defaults of sources if the user names another source. Keep samples that the user names."""
    sources = {name: given.get(name, p.default) for name, p in notebook.parameters.items() if is_sample(p.default)}
    unmixed = dict(zip(sources, own_sources(*sources.values()), strict=True))
    return given | {name: value for name, value in unmixed.items() if name not in given and value != sources[name]}


def _items(draft: Draft, name: str, hook: str) -> list:
    """Return the values of a parameter that its sweep function finds in the data. Raise SourceError if it fails."""
    target, notebook = draft.target, draft.notebook
    given = {other: p.default for other, p in notebook.parameters.items()} | _unmixed(notebook, draft.fixed)
    context = multiprocessing.get_context(start_method())
    try:  # in a separate process, because the function reads data: this process is forked later and must only import
        with ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent, initargs=(os.getpid(),)) as pool:
            values = pool.submit(_call, hook, given).result()
        if not values:
            raise SourceError("the data contain none")
    except Exception as error:
        cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
        where = "" if target.source and isinstance(error, SourceError) else f"{target.where}: {name}: {ALL}: {hook}: "
        raise SourceError(where + cause) from None
    if target.source and len(values) > MOST_OF_SWEEP:
        only = f"only the first {MOST_OF_SWEEP} are made; -p {name} {name.upper()} makes another"
        warnings.warn(f"{len(values):,} reports of {notebook.name}: {only}", stacklevel=2)
        return values[:MOST_OF_SWEEP]
    return values


def _call(hook: str, parameters: dict[str, Any]) -> list:
    """Call a function of a kind with the parameters that it takes; ``**options`` gets the options of all kinds."""
    function = resolve_name(hook)
    wanted = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in wanted]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in wanted):
        names += [option.name for option in COMMON if option.name != "model"]  # in notebooks, the model to show
    with warnings_as_lines():
        return list(dict.fromkeys(function(**{name: parameters[name] for name in names if name in parameters})))
