"""Docstrings of public functions have all sections, and their examples print what they show."""

import doctest
import inspect
import runpy
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import pytest

from evalkit.compare.check import CHECKS
from evalkit.display import show
from evalkit.display.drawing import Drawing
from evalkit.evidence import links
from evalkit.failures import search
from tools import docstrings

HOOKS = runpy.run_path(str(Path(__file__).parents[2] / "docs/hooks.py"))
PUBLIC = docstrings.public_functions()


def shown(data, **_) -> None:
    """Print what IPython displays in a terminal."""
    if text := data.get("text/plain"):
        print(text)


@cache
def given(code: str) -> dict[str, Any]:
    """Return the names that the examples of some packages begin with."""
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_no_public_function_lacks_a_section(capsys):
    assert docstrings.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("package", HOOKS["PACKAGES"])
def test_examples_print_what_they_show(package, monkeypatch):
    module = f"evalkit.{package}".rstrip(".")
    names = given(HOOKS["examples_begin"](module))
    for home in (show, links):
        monkeypatch.setattr(home, "display", shown)
    monkeypatch.setattr(show, "draw", lambda figure, alt, pdf=False: Drawing("", b"", b""))  # is not printed
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name, function in PUBLIC.items():
        if name.rpartition(".")[0] == module:
            text = inspect.getdoc(function) or ""
            example = doctest.DocTestParser().get_doctest(text, dict(names), name, name, 0)
            with patch.dict(CHECKS), patch.dict(search._OWN):  # no other example or test may see what one registers
                runner.run(example, out=printed.append)
    plt.close("all")
    assert not printed, "".join(printed)


def complete(runs: list[str], least: int = 1) -> int:
    """Count runs.

    Parameters
    ----------
    runs : list of str
        Names of runs.
    least : int
        Smallest number.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError
        If there are too few.

    Examples
    --------
    >>> complete(["a"])
    1
    """
    if len(runs) < least:
        raise ValueError("too few")
    return len(runs)


@pytest.mark.parametrize(
    ("old", "new", "defect"),
    [
        ("", "", None),
        ("Count runs.", "Count\nruns.", "the summary is not one line that ends with a full stop"),
        ("least : int", "most : int", "Parameters: missing ['least'], unknown ['most']"),
        ("Returns\n-------\nint\n    The number.\n", "", "no Returns"),
        ("Raises\n------\nValueError\n    If there are too few.\n", "", "no Raises"),
        (">>> ", "", "no Examples"),
    ],
)
def test_each_missing_section_is_a_defect(monkeypatch, old, new, defect):
    monkeypatch.setattr(complete, "__doc__", (inspect.getdoc(complete) or "").replace(old, new, 1))
    assert list(docstrings.defects(complete)) == ([defect] if defect else [])
