"""Find notebooks and params files, read notebooks' metadata and parameters, and check the values of parameters.

The annotated assignments in a notebook's parameters cell are the schema of its parameters. Values come from YAML files
or the command line. The notebook's metadata define which logs it takes::

    {"evalkit": {"kind": "mindcraft", "source": "runs", "sweep": {"model": "evalkit.mindcraft:models"},
                 "order": 2, "question": "How did each model do?"}}

``kind`` is the kind of logs; ``*`` means any kind that has no specific notebooks. ``source`` is the parameter for the
source of logs. ``sweep`` names the function that returns all values of a parameter in the data. A notebook with
``"only_if_named": true`` is run for a source only if the user names it, too. ``"needs"`` maps each parameter that must
not be empty to a hint for the user. Reports are made in the order of ``order``, and the index lists them under their
``question`` in this order; reports of notebooks without it come last.
"""

import ast
import json
import os
import re
import shutil
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import GenericAlias
from typing import Any, NamedTuple

import msgspec
import yaml

import evalkit
from evalkit._text import as_list, did_you_mean
from evalkit.io.paths import SourceError
from evalkit.io.read import read_json
from evalkit.io.sources import anchored, is_sample
from evalkit.io.text import shorten

ANY_KIND = "*"
PARAMS_FILES = (".yaml", ".yml")
NOTEBOOK = ".ipynb"
LAST = 1_000  # order of notebooks whose metadata have none
REQUIRED = object()  # marks a parameter without a default
_TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


class Parameter(NamedTuple):
    """One line of a parameters cell: ``name: type = default``."""

    name: str
    type: str  # as annotated, such as "str" or "list[int]"; "" if unknown
    default: Any  # REQUIRED if the cell gives no value; None if it is not a literal

    @property
    def takes(self) -> Any:
        """The type that the annotation names; Any if it is not made of names in `_TYPES`."""
        try:
            return _type_of(ast.parse(self.type, mode="eval").body)
        except SyntaxError:
            return Any


def _type_of(annotation: ast.expr) -> Any:
    """Return the type of an annotation made of names in `_TYPES`, such as ``dict[str, list[int]]``; else Any."""
    match annotation:
        case ast.Name(id=name):
            return _TYPES.get(name, Any)
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return GenericAlias(list, (_type_of(item),))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, value])):
            return GenericAlias(dict, (_type_of(key), _type_of(value)))
    return Any


class Notebook(NamedTuple):
    """The parts of a notebook that planning needs."""

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
    def settings(self) -> dict[str, Any]:
        """The notebook's metadata for evalkit."""
        return self.metadata.get("evalkit", {})

    @property
    def kind(self) -> str:
        """The kind of logs that the notebook takes, ``*`` for any kind; "" if its metadata name none."""
        return self.settings.get("kind", "")

    @property
    def order(self) -> int:
        """The position of its reports among the reports of all notebooks; `LAST` if its metadata have none."""
        order = self.settings.get("order")
        return order if isinstance(order, int) else LAST


def read_notebook(path: str | os.PathLike) -> Notebook:
    """Read a notebook. Raise SourceError if it is unreadable, not a notebook, or its parameters cell is not Python."""
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
    """Return the first top-level heading in a notebook's cells; "" if there is none."""
    prose = (cell["source"] for cell in cells if cell.get("cell_type") == "markdown")
    return next((match[1] for source in prose if (match := re.search(r"^# +(.+?)\s*$", source, re.MULTILINE))), "")


class Places(NamedTuple):
    """Folders of notebooks and of params files. Folders in the current folder take precedence over evalkit's."""

    notebooks: Sequence[Path]
    params: Sequence[Path]

    @classmethod
    def of(cls, notebooks: str | os.PathLike | None = None, params: str | os.PathLike | None = None) -> "Places":
        """Return the given folders; by default, the folders in the current folder, then evalkit's."""
        places = []
        for name, given in {"notebooks": notebooks, "params": params}.items():
            own, packaged = Path(name), shipped(name)
            usual = [own] if own.absolute() == packaged else [own, packaged]
            places.append(usual if given is None else [Path(given)])
        return cls(*places)

    def all_notebooks(self) -> dict[str, Path]:
        """Return all notebooks by name."""
        paths = [path for folder in reversed(self.notebooks) for path in sorted(folder.glob(f"*{NOTEBOOK}"))]
        return {path.stem: path for path in paths}

    def notebook(self, name: str, what: str = "notebook") -> Path:
        """Find a notebook by name. `what` describes the name in the error message."""
        known = self.all_notebooks()
        if name in known:
            return known[name]
        where = "" if known else f" in {' and '.join(map(str, self.notebooks))}"
        raise SourceError(f"{name}: no such {what}; {did_you_mean(name, sorted(known))}{where}")

    def params_of(self, notebook: str) -> list[Path]:
        """Return the params files of a notebook (``*`` for all notebooks) in the first folder that has any."""
        for folder in self.params:
            files = [path for path in sorted(folder.glob(f"{notebook}/*")) if path.suffix in PARAMS_FILES]
            if files := [path for path in files if not path.name.startswith(".")]:
                return files
        return []


def shipped(name: str) -> Path:
    """Return evalkit's folder ``notebooks`` or ``params``: in the package or, in a checkout, next to it."""
    package = Path(evalkit.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name


def write_filled(folder: Path, notebook: Notebook, values: Mapping[str, Any]) -> Path:
    """Write a copy of a notebook with other values. Keep an existing copy; raise SourceError if its source differs."""
    path, source = folder / notebook.path.name, notebook.settings.get("source", "")
    values = dict(values)
    for name, parameter in notebook.parameters.items():
        place = values.get(name)
        if place and (name == source or is_sample(parameter.default)):  # a parameter that names files
            values[name] = list(map(anchored, place)) if isinstance(place, list) else anchored(place)
    if path.exists():
        kept = read_notebook(path).parameters.get(source)
        if kept and kept.default != values.get(source, kept.default):
            sources = ", ".join(texts_of(kept.default))
            raise SourceError(f"{path}: exists already and reads {sources}; choose another folder with --output DIR")
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
    """Copy evalkit's notebooks into a folder for editing."""
    own, target = Places([shipped("notebooks")], ()), Path(folder)
    sources = [own.notebook(name) for name in names] or list(own.all_notebooks().values())
    if existing := [str(target / source.name) for source in sources if (target / source.name).exists()]:
        raise SourceError(f"{', '.join(existing)}: exists already; nothing was copied or overwritten")
    try:
        target.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(source, target / source.name)) for source in sources]
    except OSError as error:
        raise SourceError(f"{error.filename2 or error.filename or target}: {error.strerror}") from error


class Faults(list[str]):
    """The faults of a batch, collected so that all of them are reported at once."""

    @contextmanager
    def of(self, where: str = "") -> Iterator[None]:
        """Collect a ValueError from the ``with`` block, prefixed by `where`, instead of raising it."""
        try:
            yield
        except ValueError as error:
            self.append(f"{where}{error}")


def read_parameters(source: str) -> dict[str, Parameter]:
    """Read the parameters of a cell from its annotated assignments."""
    parameters = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation = node.target.id, node.annotation
            kind = str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
            default = None if node.value else REQUIRED
            if node.value:
                with suppress(ValueError):
                    default = ast.literal_eval(node.value)
            parameters[name] = Parameter(name, kind, default)
    return parameters


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """Return a parameters cell with other values; lines and comments stay the same."""
    lines = source.encode().splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in values:
            old = node.value or node.annotation
            text = f"{'' if node.value else ast.unparse(node.annotation) + ' = '}{values[node.target.id]!r}".encode()
            last = lines[(old.end_lineno or 0) - 1][old.end_col_offset or 0 :]
            lines[old.lineno - 1 : old.end_lineno] = [lines[old.lineno - 1][: old.col_offset] + text + last]
    return b"".join(lines).decode()


class _Loader(yaml.SafeLoader):
    """YAML loader that keeps dates as strings, as papermill's does, which takes long to import."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_values(path: str | os.PathLike) -> dict[str, Any]:
    """Read a params file as papermill does; an empty file has no values. Raise ValueError if the file is invalid."""
    try:
        values = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise ValueError(f"not YAML: {getattr(error, 'problem', None) or error}{line}") from error
    values = {} if values is None else values
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ValueError("not a mapping of parameter names to values")
    return values


def check_names(values: Iterable[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Return a fault for each name that is not a parameter, with the most similar parameter."""
    return [f"unknown parameter {name}; {did_you_mean(name, parameters)}" for name in values if name not in parameters]


def check_value(value: Any, parameter: Parameter) -> Any:
    """Convert a value to the parameter's type. Raise ValueError if it has another type."""
    name, wanted = parameter.name, parameter.type
    if value is None:
        raise ValueError(f"{name} has no value (null); its type is {wanted or 'not annotated'}")
    if isinstance(value, str) and typing.get_origin(parameter.takes) is list:
        value = as_list(value)
    try:
        return msgspec.convert(value, parameter.takes)
    except msgspec.ValidationError:
        given = f"{type(value).__name__} ({json.dumps(value, default=str, ensure_ascii=False)})"
        quoted = '; put it in quotes: "…"' if wanted == "str" and isinstance(value, (int, float)) else ""
        raise ValueError(f"{name} must be {wanted}, not {shorten(given, 200)}{quoted}") from None


def from_text(text: str, parameter: Parameter) -> Any:
    """Parse a value typed for a parameter; a list is YAML or a single item. Raise ValueError for another type."""
    holds_many = typing.get_origin(parameter.takes) or parameter.takes
    try:
        if holds_many is list and not text.startswith("["):
            return msgspec.convert([text], parameter.takes, strict=False)
        if holds_many in (list, dict):
            return msgspec.convert(yaml.load(text, Loader=_Loader), parameter.takes)
        return msgspec.convert(text, parameter.takes, strict=False)
    except (msgspec.ValidationError, yaml.YAMLError):
        raise ValueError(f"{parameter.name} must be {parameter.type}, not {shorten(repr(text), 200)}") from None


def texts_of(value: Any) -> list[str]:
    """List all strings in a value: itself, the items of a list, the keys and values of a mapping."""
    if isinstance(value, str):
        return [value]
    items: list[Any] = []
    if isinstance(value, dict):
        items = [*value, *value.values()]
    elif isinstance(value, list):
        items = value
    return [text for item in items for text in texts_of(item)]
