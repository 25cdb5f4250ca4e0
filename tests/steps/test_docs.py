import pkgutil
import re
from pathlib import Path

import pytest

from evalkit.steps import analysis, load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "steps.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:-1] for line in TEXT.split("## What was asked for")[1].splitlines() if line.startswith("| ")]


@pytest.mark.parametrize(("requirement", "functions", "tests"), [row for row in ROWS if "`" in row[2]])
def test_every_requirement_has_its_function_and_its_test(requirement, functions, tests):
    for name in re.findall("`([^`]+)`", functions):
        if name.endswith(".py"):
            assert (ROOT / name).is_file()
            continue
        assert pkgutil.resolve_name(f"evalkit.steps.{name}")
    for name in re.findall("`([^`]+)`", tests):
        file, _, test = name.partition(".")
        folder = ROOT if file.startswith("tests/") else ROOT / "tests" / "steps"
        assert f"def {test}(" in (folder / f"{file}.py").read_text(encoding="utf-8")


def test_no_row_is_left_without_a_test():
    assert len([row for row in ROWS if "`" not in row[2]]) == 1  # the head


def test_the_figures_of_the_samples_are_those_of_the_samples():
    table = analysis.storage_comparison(load("samples:steps/typed.json").histories)
    figures = re.search(r"(\d+) of (\d+) numbers can be read back, and (\d+) of (\d+) items", TEXT)
    sums = [int(table[column].sum()) for column in ("numbers_old", "numbers_new", "items_old", "items_new")]
    assert [int(n) for n in figures.groups()] == sums
    assert (len(table), int(table["cut"].sum())) == (11, 9)
