import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps.literal import CutDict, is_cut, read_cell_types, read_literal

WHOLE = [
    ("{'a': [1, 2.5], 'b': None}", {"a": [1, 2.5], "b": None}),
    ('{"a": [1, true], "b": NaN, "c": null}', {"a": [1, True], "b": None, "c": None}),
    ("{'p': np.float64(0.01), 'q': nan, 'r': -inf}", {"p": 0.01, "q": None, "r": None}),
    ("  ('a', 1) and more", ["a", 1]),
    ("array([1, 2])", None),
    ("no bracket", None),
    ("{'a': <object at 0x1>}", None),
    ('["false", "null", "np.float64"]', ["false", "null", "np.float64"]),
    ("[}", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "value"), WHOLE)
def test_complete_texts_are_read_as_literals_or_json(text, value):
    assert read_literal(text) == (value, False)


CUT = [
    ("{'a': 1, 'b': 'x", {"a": 1}),
    ("{'a': 1, 'b': 12", {"a": 1}),  # 12 may be the beginning of 1234
    ("{'a': 1, 'b'", {"a": 1}),
    ("{'a': 1, 'b': 'x'", {"a": 1, "b": "x"}),
    ("{'a': {'t': ['x', 'y'], 'n': 3}, 'b': {'t': ['z', 'w", {"a": {"t": ["x", "y"], "n": 3}, "b": {"t": ["z"]}}),
    ('{"a": [1, 2.5, tru', {"a": [1, 2.5]}),
    ('{"\\ud83d\\ude0d": ["false", "nan", 1', {"😍": ["false", "nan"]}),
    ("[np.float64(1.0), np.float64(0.0", [1.0]),
    ("['it\\'s', \"b'\", 'c", ["it's", "b'"]),
    ("[", []),
]


@pytest.mark.parametrize(("text", "value"), CUT)
def test_of_a_cut_text_the_complete_elements_are_kept(text, value):
    found = read_literal(text)
    assert found == (value, True)
    assert is_cut(found.value)


def test_only_what_was_open_at_the_cut_is_marked():
    value = read_literal("{'a': [1, 2], 'b': [3, 4").value
    assert (is_cut(value), is_cut(value["a"]), is_cut(value["b"])) == (True, False, True)


def test_a_list_printed_with_dots_is_not_complete():
    assert is_cut(read_literal("[1, 2, ..., 9]").value)


@pytest.mark.parametrize("text", ["[" * 5000, "-" * 100_000, "[" + "-" * 100_000 + "1]", "{'a': " * 500, "(" * 200])
def test_deep_nesting_is_refused(text):
    assert read_literal(text).value is None or is_cut(read_literal(text).value)


CELLS = [
    ("group_to_cell_type = {'0': 'T cell', '1': 'B cell'}\nmore", {"0": "T cell", "1": "B cell"}, False),
    ("Done. group_to_cell_type = {'0': 'T cell', '1': 'B ce", {"0": "T cell"}, True),
    ("Done. group_to_cell_type = {'0': 'T ce", {}, True),
    ("group_to_cell_type = {0: 'T cell'}", {"0": "T cell"}, False),
    ("{'group_to_cell_type': {'0': 'T cell'}}", {"0": "T cell"}, False),
    ("no mapping", None, False),
]


@pytest.mark.parametrize(("text", "mapping", "cut"), CELLS)
def test_cell_types_of_a_text(text, mapping, cut):
    assert read_cell_types(text) == (mapping, cut)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda c: st.lists(c, max_size=4) | st.dictionaries(st.text(max_size=5), c, max_size=4),
    max_leaves=12,
)


def _is_beginning(part, whole):
    """Whether a structure read from a cut text holds nothing that the whole does not hold at the same place."""
    if isinstance(part, dict):
        known = isinstance(whole, dict) and all(key in whole for key in part)
        same_size = isinstance(part, CutDict) or len(part) == len(whole)
        return known and same_size and all(_is_beginning(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        whole = whole if isinstance(whole, (list, tuple)) else []
        fits = len(part) <= len(whole) if is_cut(part) else len(part) == len(whole)
        return fits and all(_is_beginning(a, b) for a, b in zip(part, whole, strict=False))
    return part == whole and type(part) is type(whole)


@given(st.lists(JSON, max_size=4) | st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.data())
def test_a_text_cut_anywhere_gives_nothing_that_was_not_there(value, data):
    text = data.draw(st.sampled_from([str(value), json.dumps(value)]))
    assert read_literal(text).value == value
    cut = data.draw(st.integers(0, len(text)))
    found = read_literal(text[:cut]).value
    assert found is None or _is_beginning(found, value)


@given(st.text())
def test_any_text_is_survived(text):
    read_literal(text)
    read_cell_types("group_to_cell_type = " + text)
