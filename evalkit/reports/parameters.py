"""Values of parameters: read from YAML or the command line, and checked against a notebook's parameters cell."""

import json
import os
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml

from evalkit._names import nearest
from evalkit.io.text import shorten
from evalkit.reports.notebooks import Parameter

_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}


class Faults(list[str]):
    """The faults of a batch, collected so that all of them are reported at once."""

    @contextmanager
    def of(self, where: str = "") -> Iterator[None]:
        """Add an error of the ``with`` block, behind the place it belongs to, instead of raising it."""
        try:
            yield
        except ValueError as error:
            self.append(f"{where}{error}")


class _Loader(yaml.SafeLoader):
    """As papermill's loader, with dates as strings."""

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
    return [f"unknown parameter {name}; {nearest(name, parameters)}" for name in values if name not in parameters]


def check_value(value: Any, parameter: Parameter) -> tuple[Any, str]:
    """Return a value as passed to the notebook (an integer given for a float is a float) and its fault, or ``""``."""
    if value is None:
        return value, f"{parameter.name} has no value (null); its type is {parameter.type or 'not annotated'}"
    try:
        return msgspec.convert(value, _type_of(parameter)), ""
    except msgspec.ValidationError:
        given = f"{type(value).__name__} ({json.dumps(value, default=str, ensure_ascii=False)})"
        quoted = '; put it in quotes: "…"' if parameter.type == "str" and isinstance(value, (int, float)) else ""
        return value, f"{parameter.name} must be {parameter.type}, not {shorten(given, 200)}{quoted}"


def from_text(text: str, parameter: Parameter) -> tuple[Any, str]:
    """Parse a value given on the command line by its parameter's type; returns value and fault as `check_value` does.

    A list is written as in YAML, ``[a, b]``, or as a single item.
    """
    wanted = _type_of(parameter)
    holds_many = typing.get_origin(wanted) or wanted
    try:
        if holds_many is list and not text.startswith("["):
            return msgspec.convert([text], wanted, strict=False), ""
        if holds_many in (list, dict):
            return msgspec.convert(yaml.load(text, Loader=_Loader), wanted), ""
        return msgspec.convert(text, wanted, strict=False), ""
    except (msgspec.ValidationError, yaml.YAMLError):
        is_sweep = text.startswith("[") and holds_many is not list
        again = f"; for a report of each, say -p {parameter.name} again" if is_sweep else ""
        return text, f"{parameter.name} must be {parameter.type}, not {shorten(repr(text), 200)}{again}"


def _type_of(parameter: Parameter) -> Any:
    """Return the type of an annotation such as ``list[str]``; Any for one of other names."""
    try:
        return eval(parameter.type, {"__builtins__": {}}, _TYPES)
    except (SyntaxError, NameError, TypeError, AttributeError):
        return Any


def texts_of(value: Any) -> list[str]:
    """List all strings in a value: itself, the items of a list, the keys and values of a mapping."""
    if isinstance(value, str):
        return [value]
    items = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in texts_of(item)]
