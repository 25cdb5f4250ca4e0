"""Parameters of a notebook: declared in its parameters cell, their values read from YAML or typed, and checked."""

import ast
import json
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from evalkit._words import did_you_mean
from evalkit.io.text import shorten

REQUIRED = object()  # the default of a parameter without one
_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


class Parameter(NamedTuple):
    """One line of a parameters cell: ``name: type = default``."""

    name: str
    type: str  # as annotated, such as "str" or "list[int]"; "" if unknown
    default: Any  # REQUIRED if the cell gives no value; None if it is not a literal

    @property
    def takes(self) -> Any:
        """The type that the annotation names; Any for one of other names."""
        try:
            return eval(self.type, {"__builtins__": {}}, _TYPES)
        except (SyntaxError, NameError, TypeError, AttributeError):
            return Any


class Faults(list[str]):
    """The faults of a batch, collected so that all of them are reported at once."""

    @contextmanager
    def of(self, where: str = "") -> Iterator[None]:
        """Add an error of the ``with`` block, behind the place it belongs to, instead of raising it."""
        try:
            yield
        except ValueError as error:
            self.append(f"{where}{error}")


def read_parameters(source: str) -> dict[str, Parameter]:
    """Read the parameters of a cell, its annotated assignments."""

    def literal(node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except ValueError:
            return None

    parameters = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, annotation = node.target.id, node.annotation
            kind = str(annotation.value) if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
            parameters[name] = Parameter(name, kind, REQUIRED if node.value is None else literal(node.value))
    return parameters


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """Return a parameters cell with other values, each on its line, with its comment."""
    lines = source.encode().splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in values:
            old = node.value or node.annotation
            text = f"{'' if node.value else ast.unparse(node.annotation) + ' = '}{values[node.target.id]!r}".encode()
            last = lines[(old.end_lineno or 0) - 1][old.end_col_offset or 0 :]
            lines[old.lineno - 1 : old.end_lineno] = [lines[old.lineno - 1][: old.col_offset] + text + last]
    return b"".join(lines).decode()


class _Loader(yaml.SafeLoader):
    """As papermill's loader, which takes long to import, with dates as strings."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_values(path: str | os.PathLike) -> dict[str, Any]:
    """Read a params file as papermill does; raises ValueError if it can't be read."""
    try:
        return parse_values(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error


def parse_values(text: str) -> dict[str, Any]:
    """Read values from YAML text, none if it is empty; raises ValueError if they are not a mapping."""
    try:
        values = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" (line {where.line + 1})" if where else ""
        raise ValueError(f"not YAML: {getattr(error, 'problem', None) or error}{line}") from error
    values = {} if values is None else values
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise ValueError("not a mapping of parameter names to values")
    return values


def check_names(values: Iterable[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Return a fault for each name that is not a parameter, with the nearest parameter."""
    return [f"unknown parameter {name}; {did_you_mean(name, parameters)}" for name in values if name not in parameters]


def check_value(value: Any, parameter: Parameter) -> Any:
    """Return a value as passed to the notebook: an integer given for a float is a float; ValueError for other types."""
    name, wanted = parameter.name, parameter.type
    if value is None:
        raise ValueError(f"{name} has no value (null); its type is {wanted or 'not annotated'}")
    try:
        return msgspec.convert(value, parameter.takes)
    except msgspec.ValidationError:
        given = f"{type(value).__name__} ({json.dumps(value, default=str, ensure_ascii=False)})"
        quoted = '; put it in quotes: "…"' if wanted == "str" and isinstance(value, (int, float)) else ""
        raise ValueError(f"{name} must be {wanted}, not {shorten(given, 200)}{quoted}") from None


def from_text(text: str, parameter: Parameter) -> Any:
    """Parse a value given on the command line by its parameter's type; ValueError if it has another.

    A list is written as in YAML, ``[a, b]``, or as a single item.
    """
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
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_of(item)]
