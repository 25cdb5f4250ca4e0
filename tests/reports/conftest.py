import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes a notebook of an empty project, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebooks").mkdir()

    def write(name, *codes, parameters="", params=None, metadata=None, tags=()):
        cells = [new_markdown_cell(f"# {name}\n\nWhat it answers.")]
        if parameters:
            cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
        cells += [new_code_cell(code, metadata={"tags": list(tags)}) for code in codes]
        nb = new_notebook(cells=cells, metadata={**KERNEL, **(metadata or {})})
        nbformat.write(nb, tmp_path / "notebooks" / f"{name}.ipynb")
        for report, text in (params or {}).items():
            path = tmp_path / "params" / name / report
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write
