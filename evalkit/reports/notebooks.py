"""Notebooks and their params files: where they are, and what a notebook says of itself.

A notebook's annotated parameters cell is the schema of its parameters. Its metadata say which logs it takes::

    {"evalkit": {"kind": "mindcraft", "source": "runs", "within": {"tasks": "tasks"},
                 "sweep": {"model": "evalkit.mindcraft:models"}, "quick": false}}

``kind`` is the kind of logs, ``*`` any kind without a notebook of its own; ``source`` the parameter that gets the
source of logs; ``within`` gives a parameter the folder of that name in the source, if there is one; ``sweep`` names the
function that returns all values of a parameter in the data; with ``"quick": false`` a Jupyter kernel executes it.
"""

import ast
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import evalkit
from evalkit._names import nearest
from evalkit.io.paths import SourceError
from evalkit.io.read import read_json

ANY_KIND = "*"
REQUIRED = object()  # the default of a parameter without one
PARAMS_FILES = (".yaml", ".yml")
NOTEBOOK = ".ipynb"


class Parameter(NamedTuple):
    """One line of a parameters cell: ``name: type = default``."""

    name: str
    type: str  # as annotated, such as "str" or "list[int]"; "" if unknown
    default: Any  # REQUIRED if the cell gives no value; None if it is not a literal


class Notebook(NamedTuple):
    """A notebook as far as planning needs it."""

    path: Path
    title: str
    parameters: dict[str, Parameter]
    metadata: dict[str, Any]
    cells: list[dict]

    @property
    def name(self) -> str:
        """The notebook's file name without its suffix."""
        return self.path.stem

    @property
    def codes(self) -> list[str]:
        """The sources of its code cells."""
        return [cell["source"] for cell in self.cells if cell.get("cell_type") == "code"]

    @property
    def settings(self) -> dict[str, Any]:
        """The notebook's metadata for evalkit."""
        return self.metadata.get("evalkit", {})

    @property
    def kind(self) -> str:
        """The kind of logs that the notebook takes, ``*`` for any; empty if its metadata name none."""
        return self.settings.get("kind", "")


def read_notebook(path: str | os.PathLike) -> Notebook:
    """Read a notebook; raises OSError, or ValueError if it is none or its parameters cell is not Python."""
    path = Path(path)
    try:
        content = read_json(path)
        cells = [{**cell, "source": "".join(cell["source"])} for cell in content["cells"]]
        metadata = dict(content.get("metadata", {}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a notebook (nbformat 4): {type(error).__name__}: {error}") from error
    tagged = [cell for cell in cells if "parameters" in cell.get("metadata", {}).get("tags", [])]
    try:
        parameters = read_parameters(tagged[0]["source"]) if tagged else {}
    except SyntaxError as error:
        raise ValueError(f"{path}: the parameters cell is not Python: {error.msg} (line {error.lineno})") from error
    return Notebook(path, title_of(cells) or path.stem, parameters, metadata, cells)


def title_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """Return the first top-level heading of a notebook's cells; empty if there is none."""
    prose = (cell["source"] for cell in cells if cell.get("cell_type") == "markdown")
    return next((match[1] for source in prose if (match := re.search(r"^# +(.+?)\s*$", source, re.MULTILINE))), "")


def read_parameters(source: str) -> dict[str, Parameter]:
    """Read the parameters of a cell: annotated assignments, and plain ones, with the type of their default."""
    parameters = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            annotation = node.annotation
            kind = str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
            default = REQUIRED if node.value is None else _literal(node.value)
            parameters[node.target.id] = Parameter(node.target.id, kind, default)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, default = node.targets[0].id, _literal(node.value)
            parameters[name] = Parameter(name, "" if default is None else type(default).__name__, default)
    return parameters


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


class Places(NamedTuple):
    """Folders of notebooks and of params files; those of the current folder take precedence over evalkit's own."""

    notebooks: Sequence[Path]
    params: Sequence[Path]

    @classmethod
    def of(cls, notebooks: str | os.PathLike | None = None, params: str | os.PathLike | None = None) -> "Places":
        """Return the given folders; by default those of the current folder, then evalkit's own."""

        def places(given: str | os.PathLike | None, name: str) -> list[Path]:
            local, packaged = Path(name), shipped(name)
            usual = [local] if local.absolute() == packaged else [local, packaged]
            return usual if given is None else [Path(given)]

        return cls(places(notebooks, "notebooks"), places(params, "params"))

    def all_notebooks(self) -> dict[str, Path]:
        """Return every notebook by its name."""
        paths = [path for folder in reversed(self.notebooks) for path in sorted(folder.glob(f"*{NOTEBOOK}"))]
        return {path.stem: path for path in paths}

    def notebook(self, name: str, what: str = "notebook") -> Path:
        """Find a notebook by its name; the error calls it a `what`."""
        known = self.all_notebooks()
        if name in known:
            return known[name]
        where = "" if known else f" in {' and '.join(map(str, self.notebooks))}"
        raise SourceError(f"{name}: no such {what}; {nearest(name, sorted(known))}{where}")

    def params_of(self, notebook: str) -> list[Path]:
        """Return the params files of a notebook, from the first folder that has any."""
        return next(filter(None, (_params_files(folder, notebook) for folder in self.params)), [])

    def all_params(self) -> list[Path]:
        """Return every params file of the first folder of params that exists."""
        folder = next((folder for folder in self.params if folder.is_dir()), self.params[0])
        if files := _params_files(folder):
            return files
        cause = "holds no NOTEBOOK/REPORT.yaml" if folder.is_dir() else "is not there"
        raise SourceError(
            f"{folder}: the folder {cause}; name a folder of logs or a notebook, or say --params DIR (each file in it "
            "is a report, and the folder the file lies in names the notebook)"
        )


def shipped(name: str) -> Path:
    """Return evalkit's own folder ``notebooks`` or ``params``, in its package or beside it (checkout)."""
    package = Path(evalkit.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


def copy_notebooks(folder: str | os.PathLike, names: Iterable[str] = ()) -> list[Path]:
    """Copy evalkit's own notebooks into a folder for editing."""
    own, target = Places([shipped("notebooks")], ()), Path(folder)
    sources = [own.notebook(name) for name in names] or list(own.all_notebooks().values())
    existing = [str(target / source.name) for source in sources if (target / source.name).exists()]
    if existing:
        raise SourceError(f"{', '.join(existing)}: there already, and not overwritten; nothing was copied")
    try:
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(source, target / source.name)) for source in sources]
    except OSError as error:
        raise SourceError(f"{error.filename2 or error.filename or target}: {error.strerror}") from error


def _params_files(params: Path, notebook: str = "*") -> list[Path]:
    return sorted(p for p in params.glob(f"{notebook}/*") if p.suffix in PARAMS_FILES and not p.name.startswith("."))
