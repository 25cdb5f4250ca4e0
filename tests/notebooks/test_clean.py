"""Notebooks are calls and prose: clean, annotated, every figure tagged, no logic of their own."""

import ast
import json
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PARAMS = sorted((ROOT / "params").rglob("*.yaml"))
ALLOWED = ("evalkit", "pandas", "IPython.display")
TYPES = {"str", "int", "float", "bool", "list", "dict"}
LOGIC = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.With, ast.Try)
LOGIC += (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(path).cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_are_notebooks():
    assert any(path.stem == "model_overview" for path in NOTEBOOKS)


@every_notebook
def test_it_is_valid_and_has_stable_ids(path):
    notebook = json.loads(path.read_text("utf-8"))
    nbformat.validate(notebook)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"


@every_notebook
def test_it_is_committed_without_outputs(path):
    for cell in code(path):
        assert cell.outputs == [], cell.id
        assert cell.execution_count is None, cell.id
        assert not {"execution", "papermill"} & set(cell.metadata), cell.id
    assert "widgets" not in read(path).metadata


@every_notebook
def test_it_begins_with_a_title_and_ends_with_provenance(path):
    first, last = read(path).cells[0], read(path).cells[-1]
    title, _, answers = first.source.partition("\n")
    assert first.cell_type == "markdown"
    assert title.startswith("# ")
    assert answers.strip()
    assert "evalkit.provenance(" in last.source


@every_notebook
def test_its_cells_hold_calls_only(path):
    for cell in code(path):
        found = [type(node).__name__ for node in ast.walk(ast.parse(cell.source)) if isinstance(node, LOGIC)]
        assert found == [], cell.id
        assert not cell.source.lstrip().startswith(("%", "!")), cell.id


@every_notebook
def test_it_imports_evalkit_pandas_and_display_only(path):
    for cell in code(path):
        for node in ast.walk(ast.parse(cell.source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert any(name == allowed or name.startswith(f"{allowed}.") for allowed in ALLOWED), (cell.id, name)


def parameters(path: Path) -> list[tuple[ast.stmt, str]]:
    """Every statement of the parameters cell with its line."""
    (cell,) = [cell for cell in code(path) if "parameters" in tags(cell)]
    lines = cell.source.splitlines()
    statements = ast.parse(cell.source).body
    assert len(statements) == len(lines), "one parameter per line"
    return list(zip(statements, lines, strict=True))


@every_notebook
def test_every_parameter_is_annotated_and_commented(path):
    for statement, line in parameters(path):
        assert isinstance(statement, ast.AnnAssign), line
        assert statement.value is not None, line
        kind = statement.annotation
        assert (kind.value if isinstance(kind, ast.Subscript) else kind).id in TYPES, line
        value = ast.literal_eval(statement.value)
        assert "#" not in repr(value), line
        name = (kind.value if isinstance(kind, ast.Subscript) else kind).id
        assert type(value).__name__ == name, line
        assert line[statement.end_col_offset :].strip().startswith("# "), line


@every_notebook
def test_figures_are_shown_with_alt_text_in_tagged_cells(path):
    for cell in code(path):
        calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
        shows = [call for call in calls if ast.unparse(call.func).split(".")[-1] == "show_figure"]
        assert bool(shows) == ("figure" in tags(cell)), cell.id
        for call in shows:
            assert len(call.args) > 1 or "alt" in {keyword.arg for keyword in call.keywords}, cell.id


@every_notebook
def test_it_has_one_headline_and_publishes_a_table(path):
    source = "\n".join(cell.source for cell in code(path))
    assert source.count("evalkit.headline(") == 1
    assert "evalkit.publish(" in source


@pytest.mark.parametrize("path", PARAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_parameter_files_name_parameters_of_their_notebook(path):
    notebook = ROOT / "notebooks" / f"{path.parent.name}.ipynb"
    known = {statement.target.id: statement for statement, _ in parameters(notebook)}
    values = yaml.safe_load(path.read_text("utf-8"))
    assert set(values) <= set(known)
    for name, value in values.items():
        kind = known[name].annotation
        assert type(value).__name__ == (kind.value if isinstance(kind, ast.Subscript) else kind).id, name


def test_every_notebook_has_a_report():
    assert {path.stem for path in NOTEBOOKS} == {path.parent.name for path in PARAMS}
