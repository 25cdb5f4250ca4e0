"""Notebooks take a dataset where they take a folder."""

from pathlib import Path

import pandas as pd
import pytest

from evalkit.io import resolve
from evalkit.kinds import collect, kind_named
from evalkit.reports import plan, run

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TASKS = resolve("samples:mindcraft/tasks")  # by its path: the name of sample data is left out beside other data
# notebook: what is collected, its samples, the parameter that names them, and the others
CASES = {
    "model_comparison": ("mindcraft", "mindcraft/runs", "runs", {"tasks": TASKS}),
    "crafter_scores": ("crafter", "crafter", "traces", {}),
    "step_evaluation": ("steps", "steps/typed.json", "history", {}),
}


def tables_of(notebook: str, output: Path, **parameters) -> dict[str, pd.DataFrame]:
    """Make one report, and read the tables it leaves."""
    report = plan([str(NOTEBOOKS / f"{notebook}.ipynb")], values=parameters)
    assert run(report, output=output, jobs=1, say=lambda line: None).failed == []
    return {path.name.rpartition(".")[0].rpartition(".")[2]: pd.read_csv(path) for path in output.rglob("*.csv")}


@pytest.mark.parametrize("notebook", CASES)
def test_a_notebook_says_the_same_of_a_dataset(notebook, tmp_path):
    kind, samples, name, others = CASES[notebook]
    folder = resolve(f"samples:{samples}")
    collect(kind_named(kind), folder, tmp_path / "made")
    expected = tables_of(notebook, tmp_path / "a", **{name: folder}, **others)
    found = tables_of(notebook, tmp_path / "b", **{name: str(tmp_path / "made")}, **others)
    assert len(expected) >= 1
    assert expected.keys() == found.keys()
    for table in expected:
        pd.testing.assert_frame_equal(expected[table], found[table], obj=table)
