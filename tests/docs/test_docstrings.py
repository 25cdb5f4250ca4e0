"""Docstrings of public functions have all sections, and their examples print what they show."""

import doctest
import functools
import inspect
import runpy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from evalkit.compare.check_registry import CHECKS
from evalkit.display import show
from evalkit.display.drawing import Drawing
from evalkit.evidence import links
from evalkit.failures import search
from tools import docstrings

HOOKS = runpy.run_path(str(Path(__file__).parents[2] / "docs/hooks.py"))
PUBLIC = docstrings.public_functions()

COMPLETE = {"n", "n_tasks", "low", "high", "method", "warning"}  # columns next to an estimate
# frames with a part of these columns, and why
PARTIAL = {
    "compare.answer_table": "the columns of a leaderboard at the top of a page",
    "compare.pairs_to_show": "the columns of pairs on a page",
    "compare.rank_table": "the columns of a leaderboard on a page",
    "compare.standings": "the columns of a leaderboard in the index",
    "crafter.analysis.answer_table": "the columns of models at the top of a page",
    "failures.contrast": "the runs of both sides are counted in failed and successful",
    "stats.rank_models": "ranks; the intervals are those of adjusted_rates",
}
RANGES = ("rank", "tasks")  # columns such as rank_low without an estimate


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


def frames_in(result: Any) -> Iterator[pd.DataFrame]:
    """Yield the frames of a result: itself, or the parts of a tuple or a record."""
    if isinstance(result, pd.DataFrame):
        yield result
    elif isinstance(result, tuple):
        for part in result:
            yield from frames_in(part)
    elif is_dataclass(result):
        for field in fields(result):
            yield from frames_in(getattr(result, field.name))


def misnamed(columns: set[str]) -> set[str]:
    """Return columns of a frame of estimates whose names differ from those in all other frames, or that are missing.

    An estimate is `estimate`, `low` and `high`. A second one is X_estimate, X_low and X_high.
    """
    found = set()
    for name in columns:
        if name.endswith(("estimate", "low", "high")):
            prefix = name.removesuffix("estimate").removesuffix("low").removesuffix("high")
            if prefix == "" or (prefix.endswith("_") and prefix[:-1] not in RANGES):
                found |= {f"{prefix}{part}" for part in ("estimate", "low", "high")} - columns
    if "estimate" in columns:
        found |= COMPLETE - columns
    return found


def recorded(name: str, function: Callable[..., Any], wrong: dict[str, set[str]]) -> Callable[..., Any]:
    """Return a function that also records the misnamed columns of the frames that it returns."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        for frame in frames_in(result):
            if columns := misnamed({str(column) for column in frame}):
                wrong[name] = columns
        return result

    return call


def test_no_public_function_lacks_a_section(capsys):
    assert docstrings.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("package", HOOKS["PACKAGES"])
def test_examples_print_what_they_show_and_estimates_have_the_same_columns_in_all_frames(package, monkeypatch):
    module = f"evalkit.{package}".rstrip(".")
    names = given(HOOKS["examples_begin"](module))
    wrong: dict[str, set[str]] = {}
    for home in (show, links):
        monkeypatch.setattr(home, "display", shown)
    monkeypatch.setattr(show, "draw", lambda figure, alt, pdf=False: Drawing("", b"", b""))  # is not printed
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for name, function in PUBLIC.items():
        if name.rpartition(".")[0] == module:
            short = name.removeprefix("evalkit.")
            monkeypatch.setattr(import_module(module), name.rpartition(".")[2], recorded(short, function, wrong))
            text = inspect.getdoc(function) or ""
            example = doctest.DocTestParser().get_doctest(text, dict(names), name, name, 0)
            with (
                patch.dict(CHECKS),
                patch.dict(search.OWN_DETECTORS),
            ):  # no other example or test may see what one registers
                runner.run(example, out=printed.append)
    plt.close("all")
    assert not printed, "".join(printed)
    assert {name: columns for name, columns in wrong.items() if name not in PARTIAL} == {}


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
