"""What an experiment's results file says of it: ``results.txt`` or ``results.json``."""

import ast
from typing import Any, NamedTuple

from evalkit.io import BrokenFileError
from evalkit.mindcraft.facts import as_int
from evalkit.mindcraft.format import model_of

MAX_BYTES = 100_000  # a results file is a few lines; a bigger one is something else


class Results(NamedTuple):
    """What ``results.txt`` or ``results.json`` of an experiment says of itself."""

    model_name: str | None
    task_path: str | None
    total: int | None


def parse_results(data: bytes) -> Results:
    """Read an experiment's ``results.txt``: the repr of a Python dictionary (literals only, ``nan`` allowed).

    Raises
    ------
    BrokenFileError
        Where it is none.
    """
    if len(data) > MAX_BYTES:
        raise BrokenFileError(f"ValueError: {len(data)} bytes are too many for a results file")
    try:
        tree = ast.parse(data.decode("utf-8-sig").strip(), mode="eval")
        value = ast.literal_eval(_NoNan().visit(tree))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise BrokenFileError(f"{type(error).__name__}: no Python dictionary in it") from error
    return results_of(value)


def results_of(value: Any) -> Results:
    """Take what is used of a decoded results file."""
    if not isinstance(value, dict):
        raise BrokenFileError("TypeError: no dictionary in it")
    path = value.get("task_path")
    return Results(model_of(value), path if isinstance(path, str) else None, as_int(value.get("total")))


class _NoNan(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(None) if node.id in ("nan", "inf") else node
