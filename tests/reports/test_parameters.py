import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.iorw import NoDatesSafeLoader, yaml

from evalkit.io import SourceError
from evalkit.reports.notebooks import (
    REQUIRED,
    Parameter,
    check_value,
    from_text,
    read_notebook,
    read_parameters,
    read_values,
)

CELL = """
# what the report is about
runs: str = "samples:mindcraft"  # folder, or URL (s3://…)
tasks: list[str] = ["a", "b"]
weights: "dict[str, float]" = {"a": 1.0}
must: str
"""


def test_the_parameters_cell_is_the_schema():
    found = read_parameters(CELL)
    assert {name: (p.type, p.default) for name, p in found.items()} == {
        "runs": ("str", "samples:mindcraft"),
        "tasks": ("list[str]", ["a", "b"]),
        "weights": ("dict[str, float]", {"a": 1.0}),
        "must": ("str", REQUIRED),
    }


@pytest.mark.parametrize(
    ("read", "kind", "given", "result"),
    [
        (check_value, "float", 1, 1.0),
        (check_value, "list", ["a", 1], ["a", 1]),
        (check_value, "list[str]", "a b", ["a b"]),
        (check_value, "list[float]", [1, 2.5], [1.0, 2.5]),
        (check_value, "dict[str, float]", {"a": 1}, {"a": 1.0}),
        (check_value, "", 7, 7),
        (check_value, "Path", 7, 7),
        (check_value, "str", 4, ValueError('p must be str, not int (4); put it in quotes: "…"')),
        (check_value, "str", None, ValueError("p has no value (null); its type is str")),
        (check_value, "int", True, ValueError("p must be int, not bool (true)")),
        (check_value, "float", "1e-3", ValueError('p must be float, not str ("1e-3")')),
        (check_value, "list[list[int]]", [["a"]], ValueError('p must be list[list[int]], not list ([["a"]])')),
        (from_text, "str", "[a]", "[a]"),
        (from_text, "", "4", "4"),
        (from_text, "float", "1e-3", 0.001),
        (from_text, "bool", "true", True),
        (from_text, "list[str]", "a/b", ["a/b"]),
        (from_text, "list[str]", "[a, b]", ["a", "b"]),
        (from_text, "dict[str, int]", "{a: 1}", {"a": 1}),
        (from_text, "int", "4.5", ValueError("p must be int, not '4.5'")),
        (from_text, "list[int]", "[a", ValueError("p must be list[int], not '[a'")),
    ],
)
def test_values_are_read_by_the_parameters_type_and_others_are_faults(read, kind, given, result):
    try:
        found = read(given, Parameter("p", kind, None))
    except ValueError as error:
        found = error
    assert repr(found) == repr(result)


@given(
    st.dictionaries(
        st.text("abc_", min_size=1),
        st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.dates().map(str)),
    )
)
def test_values_are_read_as_papermill_reads_them(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "values.yaml"
    path.write_text(text := yaml.safe_dump(values), "utf-8")
    assert read_values(path) == yaml.load(text, Loader=NoDatesSafeLoader)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"cells": 1}', b'{"cells": [{}]}', b"\xff\xfe"])
def test_what_is_no_notebook_is_explained(tmp_path, content):
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="not a notebook"):
        read_notebook(path)
