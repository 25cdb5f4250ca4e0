"""Notebooks and their params files: where they are, and what a notebook says of itself.

Its annotated parameters cell is the schema of its parameters. Its metadata say which logs it takes::

    {"evalkit": {"kind": "mindcraft", "source": "runs", "within": {"tasks": "tasks"},
                 "sweep": {"model": "evalkit.mindcraft:models"}, "quick": false,
                 "order": 2, "question": "How did each model do?"}}

``kind`` is the kind of logs, ``*`` any kind without a notebook of its own; ``source`` the parameter that gets the
source of logs; ``within`` gives a parameter the folder of that name in the source, if there is one; ``sweep`` names the
function that returns all values of a parameter in the data; with ``"quick": false`` a Jupyter kernel executes it.
Reports are made, and listed in the index under their ``question``, by ``order``; those without one come last.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import evalkit
from evalkit._words import did_you_mean
from evalkit.io.paths import SourceError
from evalkit.io.read import read_json
from evalkit.io.sources import anchored
from evalkit.reports.parameters import Parameter, read_parameters, with_values

ANY_KIND = "*"
PARAMS_FILES = (".yaml", ".yml")
NOTEBOOK = ".ipynb"
LAST = 1_000  # the order of notebooks that name none


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

    @property
    def order(self) -> int:
        """The place of its reports among those of other notebooks; the last if its metadata name none."""
        order = self.settings.get("order")
        return order if isinstance(order, int) else LAST


def read_notebook(path: str | os.PathLike) -> Notebook:
    """Read a notebook; SourceError if it can't be read, is none, or its parameters cell is not Python."""
    path = Path(path)
    try:
        content = read_json(path)
        cells = [{**cell, "source": "".join(cell["source"])} for cell in content["cells"]]
        tagged = [cell["source"] for cell in cells if "parameters" in cell.get("metadata", {}).get("tags", [])]
        metadata = dict(content.get("metadata", {}))
        return Notebook(path, title_of(cells) or path.stem, read_parameters(*tagged[:1] or [""]), metadata, cells)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    except SyntaxError as error:
        raise SourceError(f"{path}: the parameters cell is not Python: {error.msg} (line {error.lineno})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"{path}: not a notebook (nbformat 4): {type(error).__name__}: {error}") from error


def title_of(cells: Iterable[Mapping[str, Any]]) -> str:
    """Return the first top-level heading of a notebook's cells; empty if there is none."""
    prose = (cell["source"] for cell in cells if cell.get("cell_type") == "markdown")
    return next((match[1] for source in prose if (match := re.search(r"^# +(.+?)\s*$", source, re.MULTILINE))), "")


class Places(NamedTuple):
    """Folders of notebooks and of params files; those of the current folder take precedence over evalkit's own."""

    notebooks: Sequence[Path]
    params: Sequence[Path]

    @classmethod
    def of(cls, notebooks: str | os.PathLike | None = None, params: str | os.PathLike | None = None) -> "Places":
        """Return the given folders; by default those of the current folder, then evalkit's own."""
        places = []
        for name, given in {"notebooks": notebooks, "params": params}.items():
            own, packaged = Path(name), shipped(name)
            usual = [own] if own.absolute() == packaged else [own, packaged]
            places.append(usual if given is None else [Path(given)])
        return cls(*places)

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
        raise SourceError(f"{name}: no such {what}; {did_you_mean(name, sorted(known))}{where}")

    def params_of(self, notebook: str) -> list[Path]:
        """Return the params files of a notebook (``*``: of all) in the first folder that has any."""
        for folder in self.params:
            files = [path for path in sorted(folder.glob(f"{notebook}/*")) if path.suffix in PARAMS_FILES]
            if files := [path for path in files if not path.name.startswith(".")]:
                return files
        return []

    def all_params(self) -> list[Path]:
        """Return every params file of the first folder of params that exists; SourceError if there is none."""
        folder = next((folder for folder in self.params if folder.is_dir()), self.params[0])
        if files := Places((), [folder]).params_of("*"):
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


def write_filled(folder: Path, notebook: Notebook, values: Mapping[str, Any]) -> Path:
    """Write a copy of a notebook with other values in its parameters cell, its sources as absolute paths.

    A copy that is there already is kept; SourceError if it reads another source.
    """
    path, source = folder / notebook.path.name, notebook.settings.get("source", "")
    values = dict(values)
    for name in filter(values.get, (source, *notebook.settings.get("within", ()))):
        place = values[name]
        values[name] = list(map(anchored, place)) if isinstance(place, list) else anchored(place)
    if path.exists():
        kept = read_notebook(path).parameters.get(source)
        if kept and kept.default != values.get(source, kept.default):
            raise SourceError(f"{path}: there already, and reads {kept.default}; --output DIR takes another folder")
        return path
    content = read_json(notebook.path)
    for cell in content["cells"]:
        if "parameters" in cell.get("metadata", {}).get("tags", []):
            cell["source"] = with_values("".join(cell["source"]), values)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise SourceError(f"{error.filename or path}: {error.strerror}") from error
    return path


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
