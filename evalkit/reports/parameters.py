"""Read and check parameters of notebooks: the annotated parameters cell is the schema.

Nothing here starts a kernel or imports papermill: a whole batch is checked in the time it takes to read its files.
"""

import ast
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from evalkit._names import nearest
from evalkit.io import read_file, read_json, shorten

MOST_TEXT = 200_000  # characters of a params file
MOST_VALUES = 10_000  # of a params file, counting repetition by aliases
REQUIRED = object()  # the default of a parameter without one

_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


class Faults(list[str]):
    """The faults of a batch, collected so that all of them are reported at once."""

    @contextmanager
    def of(self, where: str = "") -> Iterator[None]:
        """Add an error of the ``with`` block, behind the place it belongs to, instead of raising it."""
        try:
            yield
        except ValueError as error:
            self.append(f"{where}{error}")


class Parameter(NamedTuple):
    """One line of a parameters cell: ``name: type = default``."""

    name: str
    type: str  # as annotated, such as "str" or "list[int]"; "" if unknown
    default: Any  # REQUIRED if the cell gives no value; None if it is not a literal


class Notebook(NamedTuple):
    """A notebook as far as planning needs it; its settings for evalkit stand in its metadata."""

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
        """The settings for evalkit in the notebook's metadata; empty if they are not a mapping."""
        settings = self.metadata.get("evalkit", {})
        return settings if isinstance(settings, dict) else {}

    @property
    def kind(self) -> str:
        """The kind of logs that the notebook takes, ``*`` for any; empty if its metadata name none."""
        return str(self.settings.get("kind", ""))

    @property
    def source(self) -> str:
        """The parameter for the source of logs; empty if the metadata name none."""
        return str(self.settings.get("source", ""))

    @property
    def within(self) -> dict[str, str]:
        """Parameters whose value is a folder of this name within the source, if it has one."""
        within = self.settings.get("within", {})
        named = within if isinstance(within, dict) else {}
        return {str(name): str(folder) for name, folder in named.items() if name in self.parameters}


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


def read_values(path: str | os.PathLike) -> dict[str, Any]:
    """Read a params file as papermill does: YAML, with dates as strings; raises ValueError if it can't be read."""
    try:
        return parse_values(read_file(path).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


def parse_values(text: str) -> dict[str, Any]:
    """Read values from YAML text, none if it is empty; raises ValueError as `read_values` does."""
    values = _read_yaml(text)
    values = {} if values is None else values
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ValueError("not a mapping of parameter names to values")
    return values


def _read_yaml(text: str) -> Any:
    """Parse YAML text; ValueError if it is invalid, or expands to too many values."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"longer than {MOST_TEXT} characters")
    try:
        values = yaml.load(text, Loader=_Loader)
        n = _count_values(values, {})
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise ValueError(f"not YAML: {getattr(error, 'problem', None) or error}{line}") from error
    except RecursionError:
        raise ValueError("nested too deep") from None
    except (AttributeError, KeyError, TypeError, IndexError) as error:  # of a tag that does not fit, as !!bool 5
        raise ValueError(f"not YAML: {type(error).__name__}: {error}") from error
    if n > MOST_VALUES:
        raise ValueError(f"its aliases (*name) stand for more than {MOST_VALUES} values")
    return values


def _count_values(value: Any, known: dict[int, float]) -> float:
    """Count values, repeated by aliases; infinite if a list or mapping contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf  # until it is known; met before that, it contains itself
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count_values(item, known) for item in items)
    return known[id(value)]


class _Loader(yaml.SafeLoader):
    """Like papermill's loader, with dates as strings; duplicate names and long merges are errors too."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        names: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a name must be a text", key)
            if key.value in names:
                raise _fault(f"{key.value} is given twice", key)
            names.add(key.value)
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:
            raise _fault(f"merges (<<) make more than {MOST_VALUES} names", node)


def _fault(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def check_names(values: Iterable[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Return a fault for each name that is not a parameter, with the nearest parameter."""
    return [f"unknown parameter {name}; {nearest(name, parameters)}" for name in values if name not in parameters]


def check_value(value: Any, parameter: Parameter) -> tuple[Any, str]:
    """Return a value as passed to the notebook (an integer given for a float is a float) and its fault, or ``""``."""
    if value is None:
        return value, f"{parameter.name} has no value (null); its type is {parameter.type or 'not annotated'}"
    outer, inner = _split(parameter.type)
    if outer not in _TYPES:
        return value, ""
    if outer == "float" and type(value) is int:
        value = float(value)
    if type(value) is not _TYPES[outer]:
        given = f"{type(value).__name__} ({json.dumps(value, default=str, ensure_ascii=False)})"
        return value, f"{parameter.name} must be {parameter.type}, not {given}{_hint(value, outer)}"
    held: Any = value  # the type check narrowed it from Any
    items = held if outer == "list" else held.values() if outer == "dict" else ()
    kind = inner[-1] if inner else ""
    for i, item in enumerate(items):
        item, fault = check_value(item, Parameter(f"{parameter.name}[{i + 1}]", kind, None))
        if fault:
            return value, fault
    if kind == "float":
        value = [float(v) for v in held] if outer == "list" else {k: float(v) for k, v in held.items()}
    return value, ""


def from_text(text: str, parameter: Parameter) -> tuple[Any, str]:
    """Parse a value given on the command line by its parameter's type; returns value and fault as `check_value` does.

    A list is written as in YAML, ``[a, b]``, or as a single item.
    """
    outer, inner = _split(parameter.type)
    again = f"; for a report of each, say -p {parameter.name} again" if text.startswith("[") and outer != "list" else ""
    wrong = f"{parameter.name} must be {parameter.type}, not {shorten(repr(text), 200)}{again}"
    try:
        if outer in ("int", "float"):
            return _TYPES[outer](text), ""
        if outer == "bool":
            return {"true": True, "false": False}[text.lower()], ""
        if outer == "list" and not text.startswith("["):
            item, fault = from_text(text, Parameter(parameter.name, inner[0] if inner else "str", None))
            return [item], fault
        if outer in ("list", "dict"):
            return check_value(_read_yaml(text), parameter)
    except (ValueError, KeyError):
        return text, wrong
    return text, ""


def texts_of(value: Any) -> list[str]:
    """List all strings in a value: itself, the items of a list, the keys and values of a mapping."""
    if isinstance(value, str):
        return [value]
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_of(item)]


def _split(annotation: str) -> tuple[str, list[str]]:
    """Split ``dict[str, int]`` into ``dict`` and its inner types."""
    if match := re.fullmatch(r"(\w+)(?:\[(.*)\])?", annotation.strip()):
        return match[1], [inner for part in (match[2] or "").split(",") if (inner := part.strip())]
    return annotation, []


def _hint(value: Any, wanted: str) -> str:
    """Return a hint at the usual cause of a value of the wrong type in YAML."""
    if wanted == "str" and isinstance(value, (int, float)):
        return '; put it in quotes: "…"'
    if wanted == "float" and isinstance(value, str):
        try:
            return f"; write {float(value)!r} without quotes" if math.isfinite(float(value)) else ""
        except ValueError:
            return ""
    return ""


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
