"""Check that the docstring of every public function has the sections of NumPy's style.

    python -m tools.docstrings           # prints what is missing; the exit code is 1 if anything is
    python -m tools.docstrings --count   # prints the number of public functions, and of those without a defect

Public functions are the names in the stubs (``__init__.pyi``) of the packages in `docs/hooks.py`, before the line
``# isort: split``; only evalkit itself uses the names after it. Each public function needs a one-line summary,
Parameters (all, in the order of the signature), Returns or Yields unless it returns None, and Examples for doctest.
Raises is needed if the function raises an error itself.
"""

import ast
import inspect
import runpy
import sys
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe

ROOT = Path(__file__).parents[1]


def public_functions() -> dict[str, Callable[..., Any]]:
    """Return each public function of evalkit once, by its shortest public name."""
    named: dict[Callable[..., Any], str] = {}
    hooks = runpy.run_path(str(ROOT / "docs/hooks.py"))
    for package in hooks["PACKAGES"]:
        module = import_module(f"evalkit.{package}".rstrip("."))
        for name in hooks["public_names"](module.__name__):
            function = getattr(module, name)
            if inspect.isfunction(function) and function.__module__.startswith("evalkit"):
                named.setdefault(function, f"{module.__name__}.{name}")
    return {name: function for function, name in named.items()}


def defects(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the defects of a function's docstring, such as a missing section."""
    docstring = griffe.Docstring(inspect.getdoc(function) or "")
    sections = {section.kind.value: section.value for section in docstring.parse("numpy", warnings=False)}
    summary, _, rest = docstring.value.partition("\n")
    if not summary.endswith(".") or rest.partition("\n")[0].strip():
        yield "the summary is not one line that ends with a full stop"
    signature = inspect.signature(function)
    documented = [name.strip().lstrip("*") for item in sections.get("parameters", []) for name in item.name.split(",")]
    if documented != list(signature.parameters):
        lacking = [name for name in signature.parameters if name not in documented]
        unknown = [name for name in documented if name not in signature.parameters]
        yield f"Parameters: missing {lacking}, unknown {unknown}" if lacking or unknown else "Parameters: another order"
    returned = signature.return_annotation
    if returned not in (None, "None") and not {"returns", "yields"} & sections.keys():
        yield "no Returns"
    if _raises(function) and "raises" not in sections:
        yield "no Raises"
    if ">>> " not in docstring.value:
        yield "no Examples"


def _raises(function: Callable[..., Any]) -> bool:
    """Return whether a function itself raises an error."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    found = {name: list(defects(function)) for name, function in public_functions().items()}
    if "--count" in arguments:
        print(f"{len(found)} public functions, {sum(not one for one in found.values())} without a defect")
        return 0
    for name, lacking in found.items():
        if lacking:
            print(f"{name}: {'; '.join(lacking)}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
