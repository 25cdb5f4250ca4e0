"""What a batch consists of: every report with its notebook and checked parameters, before any kernel starts."""

import difflib
import glob
import hashlib
import itertools
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalkit.io.files import SourceError, resolve
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
from evalkit.reports.sweeps import expand, hooks_of

PARAMS_FILES = (".yaml", ".yml")


class PlanError(SourceError):
    """A batch that can't start; `faults` lists everything that is wrong with it."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)


@dataclass(frozen=True)
class Report:
    """One report to be made: a notebook with parameters."""

    notebook: Notebook
    name: str
    parameters: dict[str, Any]  # what differs from the notebook's defaults
    params_file: str = ""

    @property
    def key(self) -> str:
        """Name of the report within the output folder: ``notebook/report``."""
        return f"{self.notebook.name}/{self.name}"

    @property
    def all_parameters(self) -> dict[str, Any]:
        """The parameters with the notebook's defaults."""
        return {name: p.default for name, p in self.notebook.parameters.items()} | self.parameters


@dataclass
class _Chosen:
    """One thing the user chose, not yet checked: a notebook and where its values come from."""

    notebook: Path
    params_file: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)


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
        The same as typed on a command line: read by the parameter's type, a name given again adds to a list.

    Returns
    -------
    list of Report

    Raises
    ------
    PlanError
        With every fault of every file.
    """
    values, texts = dict(values or {}), list(texts)
    faults: list[str] = []
    chosen = _choose(list(targets), Path(params), Path(notebooks), bool(values or texts), faults)
    read: dict[Path, Notebook] = {}
    for path in dict.fromkeys(choice.notebook for choice in chosen):
        try:
            read[path] = read_notebook(path)
        except (OSError, ValueError) as error:
            faults.append(str(error) if isinstance(error, ValueError) else f"{path}: {error.strerror}")
    faults += _same_names(read)
    known = {name: p for notebook in read.values() for name, p in notebook.parameters.items()}
    if read:
        faults += [f"command line: {fault}" for fault in check_names([*values, *(n for n, _ in texts)], known)]
    found = []
    for choice in chosen:
        if choice.notebook in read:
            found += _check(choice, read[choice.notebook], values, texts, faults)
    if faults:
        raise PlanError(list(dict.fromkeys(faults)))
    return _distinct([report for one in found for report in _expand(one)])


def _choose(targets: list[str], params: Path, notebooks: Path, has_values: bool, faults: list[str]) -> list[_Chosen]:
    if not targets:
        files = _params_files(params) if params.is_dir() else []
        if not files:
            cause = "holds no NOTEBOOK/REPORT.yaml" if params.is_dir() else "is not there"
            faults.append(
                f"{params}: the folder {cause}; name a notebook, or say --params DIR (each file of that folder "
                "is a report, and the folder it lies in names the notebook)"
            )
        targets = [str(file) for file in files]
    chosen = []
    for target in targets:
        path = Path(target)
        if path.suffix in PARAMS_FILES:
            if not path.is_file():
                faults.append(f"{path}: no such params file")
                continue
            name = path.resolve().parent.name
            notebook = _find_notebook(name, notebooks, faults, f"{path}: ")
            chosen += [_Chosen(notebook, path)] if notebook else []
            continue
        notebook = path if path.suffix == ".ipynb" else _find_notebook(target, notebooks, faults)
        files = [] if has_values or not notebook else _params_files(params, notebook.stem)
        chosen += [_Chosen(notebook, file) for file in files or [None]] if notebook else []
    return chosen


def _params_files(params: Path, notebook: str = "*") -> list[Path]:
    return sorted(p for p in params.glob(f"{notebook}/*") if p.suffix in PARAMS_FILES and not p.name.startswith("."))


def _find_notebook(name: str, notebooks: Path, faults: list[str], where: str = "") -> Path | None:
    path = notebooks / f"{name}.ipynb"
    if path.is_file():
        return path
    if not notebooks.is_dir():
        faults.append(
            f"{where}{notebooks}: no such folder; the notebooks come with a checkout of evalkit: "
            "run this in the checkout, or say --notebooks DIR, or name a notebook by its path"
        )
        return None
    there = sorted(p.stem for p in notebooks.glob("*.ipynb"))
    near = difflib.get_close_matches(name, there, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(there) or 'none'}"
    faults.append(f"{where}{path}: no such notebook; {hint}")
    return None


def _same_names(read: Mapping[Path, Notebook]) -> list[str]:
    first: dict[str, Path] = {}
    return [
        f"{path}: has the same name as {first[path.stem]}, and their reports would share a folder"
        for path in read
        if first.setdefault(path.stem, path).resolve() != path.resolve()
    ]


def _check(
    choice: _Chosen, notebook: Notebook, values: dict[str, Any], texts: list[tuple[str, str]], faults: list[str]
) -> list[Report]:
    """Check one choice; returns the report, its sweeps not yet expanded, or adds to the faults."""
    where = str(choice.params_file or notebook.path)
    try:
        given = read_values(choice.params_file) if choice.params_file else {}
    except ValueError as error:
        faults.append(f"{where}: {error}")
        return []
    found = check_names(given, notebook.parameters)
    given = {name: value for name, value in given.items() if name in notebook.parameters}
    given |= {name: value for name, value in values.items() if name in notebook.parameters}
    given |= _from_texts(texts, notebook.parameters, found)
    hooks, hook_faults = hooks_of(notebook)
    found += hook_faults
    for name, value in given.items():
        parameter = notebook.parameters[name]
        if is_sweep(value, parameter) or (name in hooks and value == "all"):
            items = value if isinstance(value, list) else []
            found += [fault for item in items if (fault := check_value(item, parameter)[1])]
            found += [f"{name} is an empty list"] if value == [] else []
            continue
        given[name], fault = check_value(value, parameter)
        found += [fault] if fault else []
    for name, parameter in notebook.parameters.items():
        if parameter.default is REQUIRED and name not in given:
            found.append(f"{name} has no value, and the notebook no default for it")
    found += _missing_sources(given, notebook.parameters)
    faults += [f"{where}: {fault}" for fault in found]
    stem = choice.params_file.stem if choice.params_file else ""
    fixed = [v for n, v in given.items() if not is_sweep(v, notebook.parameters[n]) and not (n in hooks and v == "all")]
    name = file_name([stem]) if choice.params_file else file_name(fixed)
    return [Report(notebook, name, given, str(choice.params_file or ""))]


def is_sweep(value: Any, parameter: Parameter) -> bool:
    """Tell whether a list was given where the notebook takes one value."""
    return isinstance(value, list) and parameter.type.split("[")[0] in ("str", "int", "float", "bool")


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
        elif isinstance(value, list):
            given[name] += value
        else:
            faults.append(f"{name} is given twice, and takes one value")
    return given


def _missing_sources(given: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> list[str]:
    """Name what is not there among values that must be paths: those of a parameter whose default is a sample."""
    faults = []
    for name, value in given.items():
        default = parameters[name].default
        defaults = default if isinstance(default, list) else [default]
        is_source = any(isinstance(d, str) and d.startswith("samples:") for d in defaults)
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str) or not item or "://" in item:
                continue
            if is_source or item.startswith(("samples:", "/", "./", "../", "~/")):
                faults += _missing(name, item)
    return faults


def _missing(name: str, item: str) -> list[str]:
    if glob.has_magic(item) and glob.glob(os.path.expanduser(item), recursive=True):
        return []
    try:
        resolve(item)
    except SourceError as error:
        return [f"{name}: {error}"]
    return []


def _expand(report: Report) -> list[Report]:
    """Make one report per item of the sweeps, each with a name of its own."""
    hooks, _ = hooks_of(report.notebook)
    axes: dict[str, list] = {}
    for name, value in report.parameters.items():
        if is_sweep(value, report.notebook.parameters[name]):
            axes[name] = list(dict.fromkeys(check_value(item, report.notebook.parameters[name])[0] for item in value))
        elif name in hooks and value == "all":
            try:
                axes[name] = expand(hooks[name], report.all_parameters)
            except Exception as error:
                where = report.params_file or report.notebook.path
                cause = str(error) if isinstance(error, SourceError) else f"{type(error).__name__}: {error}"
                raise PlanError([f"{where}: {name}: all: {hooks[name]}: {cause}"]) from error
    if not axes:
        return [report]
    stem = [] if report.name == "defaults" else [report.name]
    return [
        replace(
            report,
            name="-".join([*stem, *(file_name([value]) for value in values)]),
            parameters=report.parameters | dict(zip(axes, values, strict=True)),
        )
        for values in itertools.product(*axes.values())
    ]


def _distinct(reports: list[Report]) -> list[Report]:
    """Leave out what is there twice; names that differ by case only, or not at all, get a mark."""
    seen: dict[str, list[Report]] = {}
    for report in reports:
        same = seen.setdefault(report.key.casefold(), [])
        if not any(report.parameters == other.parameters for other in same):
            same.append(report)
    return [
        replace(report, name=f"{report.name}-{_mark(repr(report.parameters))}") if len(same) > 1 else report
        for same in seen.values()
        for report in same
    ]


def file_name(values: Iterable[Any]) -> str:
    """Make a readable file name of values, safe on every system.

    A value that can't stand in a file name as it is, such as ``meta-llama/Llama-3-8B``, gets a mark of six hexadecimal
    digits, so that different values keep different names. Of a path only the last part is shown.
    """
    return "-".join(part for value in values if (part := _part(value))) or "defaults"


_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def _part(value: Any) -> str:
    text = unicodedata.normalize("NFC", str(value))
    shown = text.rstrip("/").rsplit("/", 1)[-1] if text.startswith(("/", "./", "../", "~/")) else text
    safe = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in shown).strip("._-")
    safe = safe.encode()[:80].decode(errors="ignore")
    if safe == text and not _RESERVED.fullmatch(text):
        return safe
    return f"{safe}-{_mark(text)}".lstrip("-") if text else ""


def _mark(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
