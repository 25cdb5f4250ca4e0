import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.iorw import NoDatesSafeLoader, yaml

from evalkit.io import SourceError
from evalkit.reports.notebooks import (
    REQUIRED,
    Parameter,
    check_names,
    check_value,
    from_text,
    parse_values,
    read_notebook,
    read_parameters,
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
    assert check_names(["run"], found) == ["unknown parameter run; did you mean 'runs'?"]
    assert check_names(["zzz"], {}) == ["unknown parameter zzz; there is none"]


@pytest.mark.parametrize(
    ("kind", "value", "passed"),
    [
        ("str", "a", "a"),
        ("float", 1, 1.0),
        ("list", ["a", 1], ["a", 1]),
        ("list[float]", [1, 2.5], [1.0, 2.5]),
        ("dict[str, float]", {"a": 1}, {"a": 1.0}),
        ("", 7, 7),
        ("Path", 7, 7),
        ("str", 4, 'p must be str, not int (4); put it in quotes: "…"'),
        ("str", None, "p has no value (null); its type is str"),
        ("int", True, "p must be int, not bool (true)"),
        ("int", 4.0, "p must be int, not float (4.0)"),
        ("float", "1e-3", 'p must be float, not str ("1e-3")'),
        ("bool", "yes", 'p must be bool, not str ("yes")'),
        ("list[str]", "a", 'p must be list[str], not str ("a")'),
        ("list[list[int]]", [[1], ["a"]], 'p must be list[list[int]], not list ([[1], ["a"]])'),
        ("dict[str, float]", {"a": "b"}, 'p must be dict[str, float], not dict ({"a": "b"})'),
    ],
)
def test_values_are_of_their_type_whole_numbers_become_floats_and_others_are_faults(kind, value, passed):
    if str(passed).startswith("p "):
        with pytest.raises(ValueError, match=f"^{re.escape(passed)}$"):
            check_value(value, Parameter("p", kind, None))
    else:
        assert repr(check_value(value, Parameter("p", kind, None))) == repr(passed)


WRONG = object()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("str", "4", "4"),
        ("str", "[a]", "[a]"),
        ("int", "4", 4),
        ("float", "1e-3", 0.001),
        ("bool", "true", True),
        ("list[str]", "a/b", ["a/b"]),
        ("list[str]", "[a, b]", ["a", "b"]),
        ("dict[str, int]", "{a: 1}", {"a": 1}),
        ("", "4", "4"),
        ("int", "4.5", WRONG),
        ("bool", "maybe", WRONG),
        ("list[int]", "[a", WRONG),
    ],
)
def test_typed_texts_are_read_by_the_parameters_type(kind, text, value):
    if value is not WRONG:
        assert from_text(text, Parameter("p", kind, None)) == value
        return
    with pytest.raises(ValueError, match=rf"^p must be {re.escape(kind)}, not "):
        from_text(text, Parameter("p", kind, None))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1", "not YAML"),
        ("- 1", "not a mapping of parameter names to values"),
        ("1: a", "not a mapping of parameter names to values"),
        ("a: !!python/object:os.system 1", "not YAML"),
    ],
)
def test_broken_params_files_are_explained(text, fault):
    with pytest.raises(ValueError, match=f"^{fault}"):
        parse_values(text)


@given(
    st.dictionaries(
        st.text("abc_", min_size=1),
        st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.dates().map(str)),
    )
)
def test_values_are_read_as_papermill_reads_them(values):
    text = yaml.safe_dump(values)
    assert parse_values(text) == yaml.load(text, Loader=NoDatesSafeLoader)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"cells": 1}', b'{"cells": [{}]}', b"\xff\xfe"])
def test_what_is_no_notebook_is_explained(tmp_path, content):
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(SourceError, match="not a notebook"):
        read_notebook(path)
