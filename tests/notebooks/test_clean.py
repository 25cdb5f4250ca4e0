"""Notebooks are calls and prose: clean, annotated, every figure tagged, no logic of their own."""

import ast
import json
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest

import evalkit
from evalkit import kinds
from evalkit.kinds.options import COMMON
from evalkit.mindcraft import analysis
from evalkit.reports.notebooks import read_notebook

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ALLOWED = ("evalkit.", "pandas.", "IPython.display.")
TYPES = {"str", "int", "float", "bool", "list", "dict"}
LOGIC = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.With, ast.Try)
LOGIC += (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


@every_notebook
def test_papermill_sees_every_parameter(path):
    assert list(papermill.inspect_notebook(str(path))) == list(read_notebook(path).parameters)


@every_notebook
def test_it_is_valid_committed_without_outputs_and_begins_with_a_title_and_ends_with_provenance(path):
    content, notebook = json.loads(path.read_text("utf-8")), nbformat.read(path, as_version=4)
    nbformat.validate(content)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook.metadata
    for cell in code(path):
        assert (cell.outputs, cell.execution_count) == ([], None), cell.id
        assert not {"execution", "papermill"} & set(cell.metadata), cell.id
    first, last = notebook.cells[0], notebook.cells[-1]
    assert first.cell_type == "markdown"
    assert re.match(r"# \S.*\n+\S", first.source)
    assert "evalkit.provenance(" in last.source
    assert tags(last) == ["nbval-ignore-output"]  # it holds times


@every_notebook
def test_its_cells_hold_calls_only_of_evalkit_pandas_and_display_and_figures_are_tagged(path):
    for cell in code(path):
        nodes = list(ast.walk(ast.parse(cell.source)))  # magics are no Python
        assert [type(node).__name__ for node in nodes if isinstance(node, LOGIC)] == [], cell.id
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert [name for name in names if not f"{name}.".startswith(ALLOWED)] == [], cell.id
        assert ("show_figure(" in cell.source) == ("figure" in tags(cell)), cell.id


@every_notebook
def test_every_parameter_has_a_line_with_its_type_and_a_comment(path):
    (cell,) = [cell for cell in code(path) if "parameters" in tags(cell)]
    for statement, line in zip(ast.parse(cell.source).body, cell.source.splitlines(), strict=True):
        assert isinstance(statement, ast.AnnAssign), line
        value, kind = ast.literal_eval(statement.value), ast.unparse(statement.annotation).partition("[")[0]
        assert kind in TYPES, line
        assert type(value).__name__ == kind, line
        assert "#" not in repr(value), line
        assert line[statement.end_col_offset :].strip().startswith("# "), line
    names = {ast.unparse(statement.target) for statement in ast.parse(cell.source).body}
    assert names >= {option.name for option in COMMON if option.name != "model"}  # of `report`, which is a `rename`


@every_notebook
def test_it_has_one_headline_a_published_table_and_a_report(path):
    source = "\n".join(cell.source for cell in code(path))
    assert source.count("evalkit.show_answer(") == 1
    assert "evalkit.publish(" in source
    assert list((ROOT / "params" / path.stem).glob("*.yaml"))


@pytest.mark.parametrize(("options", "passes"), [(["--nbval"], False), ([], True)])
def test_stored_outputs_are_compared_where_nbval_asks_for_it(pytester, options, passes):
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, pytester.path)
    cell = nbformat.v4.new_code_cell(
        "print(1)", execution_count=1, outputs=[nbformat.v4.new_output("stream", text="2\n")]
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), pytester.path / "tampered.ipynb")
    found = pytester.runpytest_inprocess("-p", "no:cacheprovider", *options, "tampered.ipynb")
    found.assert_outcomes(passed=int(passes), failed=int(not passes))


def test_a_string_for_a_list_parameter_as_papermill_passes_it_is_a_list_of_one():
    lists = {name for path in NOTEBOOKS for name, one in read_notebook(path).parameters.items() if "list" in one.type}
    sources = {"history", "labels", "runs", "source", "tasks", "traces", "verdicts"}
    own = {"checks", "columns", "items", "models", "rename", "where"}
    assert lists == own | sources  # a new one needs a line below
    given = {"rename": "alder-large=oak", "where": "task_type=cooking"}
    logs = [evalkit.mindcraft.load("samples:mindcraft", **{name: value}) for name, value in given.items()]
    listed = [evalkit.mindcraft.load("samples:mindcraft", **{name: [value]}) for name, value in given.items()]
    for one, other in zip(logs, listed, strict=True):
        pd.testing.assert_frame_equal(one.runs, other.runs)
        assert one.chosen == other.chosen
    audits = [evalkit.compare.audit(logs[0], checks=names).table for names in ("copies", ["copies"])]
    pd.testing.assert_frame_equal(*audits)
    runs, item = logs[1].runs, "bread"
    one, listed = (evalkit.load(source, "mindcraft") for source in ("samples:mindcraft", ["samples:mindcraft"]))
    pd.testing.assert_frame_equal(one.runs, listed.runs)
    for text in ("alder-large", "dogwood-8b"):
        pd.testing.assert_frame_equal(kinds.select(runs, text), kinds.select(runs, [text]))
        pd.testing.assert_frame_equal(analysis.select(runs, text, "cooking"), analysis.select(runs, [text], "cooking"))
    for select in (analysis.cooking, analysis.cooking_table):
        pd.testing.assert_frame_equal(select(runs, items=item), select(runs, items=[item]))
    by_item = (analysis.cooking_by_item(runs, "model_name", items) for items in (item, [item]))
    pd.testing.assert_frame_equal(*by_item)
