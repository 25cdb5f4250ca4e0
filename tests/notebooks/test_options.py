import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import evalkit
from evalkit.kinds.names import BUILT_IN
from evalkit.kinds.registry import kind_named
from evalkit.reports.notebooks import read_notebook

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def logs_of(notebook: str, **given: Any) -> evalkit.kinds.Logs:
    """Load logs with the cells of a notebook, with these values of its parameters."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text())["cells"]
    code = {cell["id"]: "".join(cell["source"]) for cell in cells}
    names: dict[str, Any] = {}
    exec(code["parameters"], names)
    assert set(given) <= set(names)
    names |= given
    before, line, rest = code["load"].partition("\nlogs = ")
    exec(before + line + rest.partition("\n")[0], names)
    return names["logs"]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_for_one_kind_takes_all_options_of_the_kind(path):
    notebook = read_notebook(path)
    options = kind_named(notebook.kind).options if notebook.kind in BUILT_IN else ()
    cells = json.loads(path.read_text())["cells"]
    [load] = ["".join(cell["source"]) for cell in cells if cell["id"] == "load"]
    for option in options:
        assert option.name in notebook.parameters, f"{path.name}: the parameters cell needs {option.name}"
        assert re.search(rf"load\(.*\b{option.name}\b", load), f"{path.name}: pass {option.name} to `load`"


@pytest.mark.parametrize("notebook", ["failures", "audit", "judges"])
def test_notebooks_for_all_kinds_take_the_options_of_one_kind(notebook, tmp_path):
    table = pd.DataFrame({"model": "m", "task": list("abcdabcd"), "metric": [*["truth"] * 4, *["style"] * 4]})
    table.assign(score=[0, 0, 0, 0, 1, 1, 0, 0], other=1).to_csv(tmp_path / "runs.csv", index=False)
    source = str(tmp_path / "runs.csv")
    ids = evalkit.load(source, score="style").runs["run_id"]
    pd.DataFrame({"run_id": ids[:1], "outcome": ["failure"]}).to_csv(tmp_path / "outcomes.csv", index=False)
    ways: list[dict[str, Any]] = [
        {"source": "samples:mindcraft/runs"},
        {"source": "samples:mindcraft/runs", "tasks": ["samples:mindcraft/tasks"]},
        {"source": source, "score": "style"},
        {"source": source, "score": "style", "outcomes": str(tmp_path / "outcomes.csv")},
    ]
    if notebook != "judges":  # whose columns are those of verdicts
        ways.append({"source": source, "score": "style", "columns": ["agent=other"]})
    found = [logs_of(notebook, **way).runs for way in ways]
    for way, runs in zip(ways, found, strict=True):
        pd.testing.assert_frame_equal(runs, evalkit.load(way.pop("source"), **way).runs)
    assert not found[0].equals(found[1])
    assert [runs["score"].tolist() for runs in found[2:4]] == [[1, 1, 0, 0], [0, 1, 0, 0]]
