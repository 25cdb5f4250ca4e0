"""Resolve what the user named: sources of logs, notebooks and params files, or all params files."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.io.paths import SourceError, has_magic, is_url
from evalkit.io.sources import resolve
from evalkit.reports.parameters import Faults, Notebook, read_notebook
from evalkit.reports.planning.places import NOTEBOOK, PARAMS_FILES, Places

ANY_KIND = "*"  # the kind of a notebook for logs of every kind without its own notebook
_SAMPLES = "samples:"


class Target(NamedTuple):
    """A notebook, and the origin of its values: a params file, or a source of logs."""

    notebook: Path
    params_file: Path | None = None
    source: str = ""
    values: Mapping[str, Any] = {}  # those of a source

    @property
    def where(self) -> str:
        """The file that faults of this target are reported for."""
        return str(self.params_file or self.notebook)


def find_targets(
    targets: Iterable[str], places: Places, faults: Faults, *, once: bool = False, kind: str = ""
) -> list[Target]:
    """Find the notebooks, params files and sources that were named; arguments as for `evalkit.reports.plan`.

    `once`: a notebook that is named alone is run once, without its params files.
    """
    given = list(targets)
    if not given:
        with faults.of():
            given = list(map(str, places.all_params()))
    files = [Path(target) for target in given if Path(target).suffix in PARAMS_FILES]
    names = [target for target in given if Path(target).suffix not in PARAMS_FILES]
    known = places.all_notebooks()
    sources = [name for name in names if name not in known and _is_source(name)]
    notebooks: list[Path] = []
    for name in names:
        if Path(name).suffix == NOTEBOOK:
            notebooks.append(Path(name))
        elif name not in sources:
            with faults.of():
                notebooks.append(places.notebook(name, "file, folder or notebook"))
    choices: list[Target] = []
    for path in files:
        with faults.of(f"{path}: "):
            if not path.is_file():
                raise SourceError("no such params file")
            choices.append(Target(places.notebook(path.resolve().parent.name), path))
    for source in sources:
        with faults.of():
            choices += of_source(source, places, kind, notebooks)
    for notebook in [] if sources else notebooks:
        params = [] if once else places.params_of(notebook.stem)
        choices += [Target(notebook, file) for file in params or (None,)]
    return choices


def of_source(source: str, places: Places, kind: str = "", only: Iterable[Path] = ()) -> list[Target]:
    """Select notebooks for a source of logs: all those of each kind of logs that it holds.

    A notebook's metadata define what it takes: ``{"evalkit": {"kind": "mindcraft", "source": "runs"}}``, the kind and
    the parameter that gets the source. The kind ``*`` means any kind without a notebook of its own, which the parameter
    `kind` gets. ``"within": {"tasks": "tasks"}`` gives a parameter the folder of that name in the source, if any.

    Raises SourceError if the source holds no logs, or a kind has no notebook among those that were named.
    """
    from evalkit.kinds.detection import kinds_of_source
    from evalkit.kinds.registry import kind_named

    kinds = [kind_named(kind)] if kind else kinds_of_source(source)
    wanted = {path.resolve() for path in only}
    paths = places.all_notebooks() | {path.stem: path for path in only}
    known = [notebook for path in paths.values() if (notebook := _read(path))]
    chosen = []
    for log_kind in kinds:
        specific = [notebook for notebook in known if notebook.kind == log_kind.name]
        general = [notebook for notebook in known if notebook.kind == ANY_KIND]
        fitting = [n for n in specific + general if n.path.resolve() in wanted] if wanted else specific or general
        chosen += [Target(n.path, None, source, _values(n, source, log_kind.name)) for n in fitting]
    if not chosen:
        names, such = " and ".join(log_kind.name for log_kind in kinds), "such " * bool(wanted)
        none = f"for which there is no {such}notebook; `evalkit notebooks` lists those there are"
        raise SourceError(f"{source}: holds logs of kind {names}, {none}")
    return chosen


def _values(notebook: Notebook, source: str, kind: str) -> dict[str, Any]:
    takes_many = notebook.parameters[notebook.source].type.startswith("list")
    values: dict[str, Any] = {notebook.source: [source] if takes_many else source}
    if notebook.kind == ANY_KIND and "kind" in notebook.parameters:
        values["kind"] = kind
    if not is_url(source) and not has_magic(source) and os.path.isdir(resolve(source)):
        places = {name: f"{source.rstrip('/')}/{folder}" for name, folder in notebook.within.items()}
        values |= {name: place for name, place in places.items() if _is_there(place)}
    return values


def _read(path: Path) -> Notebook | None:
    """Read a notebook; None if it is unreadable or names no kind of logs."""
    try:
        notebook = read_notebook(path)
    except (OSError, ValueError):
        return None
    return notebook if notebook.kind and notebook.source in notebook.parameters else None


def _is_source(name: str) -> bool:
    if Path(name).suffix == NOTEBOOK:
        return False
    return name.startswith(_SAMPLES) or is_url(name) or has_magic(name) or _is_there(name)


def _is_there(name: str) -> bool:
    try:
        return bool(resolve(name))
    except SourceError:
        return False
