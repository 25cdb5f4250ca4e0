import json
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import to_jsonable
from evalkit.steps.format import normalise_history, normalise_record
from evalkit.steps.judge import histories_of
from evalkit.steps.literals import CUT, CutDict, CutList, read_literal
from tests.steps.cases import CELLS, A, B, C
from tests.steps.records import JSON


def test_three_shapes_become_one():
    keys = ("shape", "result_type", "step_index", "result", "success")
    assert [[normalise_history([record])[0][key] for key in keys] for record in (A, B, C)] == [
        ["A", "text", 3, CELLS, True],
        ["B", "structured", 3, CELLS, True],
        ["C", "text", 0, CELLS, True],
    ]


def test_success_is_read_from_what_writers_emit_and_never_guessed():
    for success, given_as in ((True, (True, "True", 1)), (False, ("false", 0)), (None, (None, "maybe", []))):
        for value in given_as:
            assert normalise_record({"function_name": "f", "success": value})["success"] is success


@pytest.mark.parametrize(
    ("record", "truncated"),
    [
        ({**C, "result_summary": "x" * 500}, [None, 500]),
        ({**C, "result_summary": "x" * 499}, None),
        ({**A, "step": {"function_name": "display_x"}, "result": "<div>" + "x" * 495}, None),  # plots are whole in A
        ({**B, "result_type": "text", "result": "x" * 500}, [None, 500]),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"length": 500}}, None),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"truncated": [900, 500]}}, [900, 500]),
    ],
)
def test_texts_of_exactly_the_limit_count_as_cut_unless_metadata_say_otherwise(record, truncated):
    assert normalise_record(record)["result_metadata"].get("truncated") == truncated


def test_without_an_index_a_retry_keeps_its_steps():
    calls = [("a", True), ("b", False), ("b", False), ("b", True), ("b", True), ("c", True)]
    records = [{"function_name": f, "parameters": {}, "success": s} for f, s in calls]
    assert [record["step_index"] for record in normalise_history(records)] == [0, 1, 1, 1, 2, 3]


def test_a_label_is_the_shortest_path_that_tells_histories_apart():  # how it is shortened: see `short_paths`
    for files, labels in (
        ([("/a/c.db", "t"), ("/b/c.db", "t")], ["a/c.db · t", "b/c.db · t"]),
        ([("/a/c.db · t", ""), ("/a/c.db", "t")], ["c.db · t", "c.db · t #2"]),
    ):
        assert [history.label for history in histories_of([(*file, None) for file in files], [])] == labels


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int64(7), 7),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.datetime64("NaT"), None),
        (np.array(["2026-03-02", "NaT"], dtype="datetime64[D]"), ["2026-03-02", None]),
        (float("nan"), None),
        (float("inf"), None),
        (pd.NA, None),
        (pd.Timestamp("2026-03-02T09:00"), "2026-03-02T09:00:00"),
        (date(2026, 3, 2), "2026-03-02"),
        ({3, 1, 2}, [1, 2, 3]),
        (Decimal("1.5"), 1.5),
        (b"caf\xc3\xa9", "café"),
        (2**70, 2**70),
        ("\ud800", "\ufffd"),
        ({("a", 1): 2}, {"('a', 1)": 2}),
        (pd.DataFrame({"g": ["A", "B"], "p": [0.1, np.nan]}), [{"g": "A", "p": 0.1}, {"g": "B", "p": None}]),
        (pd.DataFrame({"p": [0.1]}, index=["GENE"]), [{"index": "GENE", "p": 0.1}]),
        (pd.Series([1, 2]), [1, 2]),
        (pd.Series([1, 2], index=["a", "b"]), {"a": 1, "b": 2}),
    ],
)
def test_values_become_json_with_their_numbers(value, expected):
    found = to_jsonable(value)
    assert found == expected
    assert type(found) is type(expected)
    json.dumps(found, allow_nan=False)


def test_a_structure_that_holds_itself_ends():
    loop = {"n": 1}
    loop["self"] = loop
    assert to_jsonable(loop) == {"n": 1, "self": to_jsonable(loop)["self"]}
    assert isinstance(to_jsonable(loop)["self"], str)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()


@given(st.recursive(LEAVES, lambda c: st.lists(c) | st.dictionaries(st.text() | st.integers(), c) | st.tuples(c, c)))
def test_anything_becomes_strict_json(value):
    json.dumps(to_jsonable(value), allow_nan=False, ensure_ascii=False).encode("utf-8")


LITERALS = [  # complete texts: reprs and JSON
    ("{'a': [1, 2.5], 'b': None}", {"a": [1, 2.5], "b": None}),
    ('{"a": [1, true], "b": NaN, "c": null}', {"a": [1, True], "b": None, "c": None}),
    ("{'p': np.float64(0.01), 'q': nan, 'r': -inf}", {"p": 0.01, "q": None, "r": None}),
    ("  ('a', 1) and more", ["a", 1]),
    ("array([1, 2])", None),
    ("[array([1, 2]), np.True_, b'x', (1,), (2), {3}]", [[1, 2], True, "b'x'", [1], 2, [3]]),
    ("{('a', 1): 2}", {("a", 1): 2}),
    ("no bracket", None),
    ("{'a': <object at 0x1>}", None),
]
CUT_TEXTS = [  # their complete elements are kept
    ("{'a': 1, 'b': 'x", {"a": 1}),
    ("{'a': 1, 'b': 12", {"a": 1}),  # 12 may be the beginning of 1234
    ("{'a': 1, 'b': 'x'", {"a": 1, "b": "x"}),
    ("{'a': {'t': ['x', 'y'], 'n': 3}, 'b': {'t': ['z', 'w", {"a": {"t": ["x", "y"], "n": 3}, "b": {"t": ["z"]}}),
    ('{"a": [1, 2.5, tru', {"a": [1, 2.5]}),
    ('{"\\ud83d\\ude0d": ["false", "nan", 1', {"😍": ["false", "nan"]}),
    ("[np.float64(1.0), np.float64(0.0", [1.0]),
    ("['it\\'s', \"b'\", 'c", ["it's", "b'"]),
    ("[array([1, 2", [[1]]),
    ("[1, {'a", [1]),
    ("{'a': b'x", {}),
]


@pytest.mark.parametrize(("text", "value"), LITERALS + CUT_TEXTS)
def test_texts_are_read_as_far_as_they_are_complete(text, value):
    found = read_literal(text)
    assert found == value
    assert isinstance(found, CUT) is ((text, value) in CUT_TEXTS)


def test_dots_stand_for_items_that_were_left_out():
    [value] = read_literal("[array([1, 2, ..., 9])]")
    assert (value, type(value)) == ([1, 2, 9], CutList)


@pytest.mark.parametrize("text", ["[" * 5000, "-" * 100_000, "[" + "-" * 100_000 + "1]", "{'a': " * 500, "(" * 200])
def test_deep_nesting_is_refused(text):
    assert isinstance(read_literal(text), (*CUT, type(None)))


FINITE = JSON.filter(lambda value: to_jsonable(value) == value)  # what texts can tell apart


def _is_beginning(part, whole):
    """Whether a structure read from a cut text holds nothing that the whole does not hold at the same place."""
    if isinstance(part, dict):
        known = isinstance(whole, dict) and all(key in whole for key in part)
        same_size = isinstance(part, CutDict) or len(part) == len(whole)
        return known and same_size and all(_is_beginning(value, whole[key]) for key, value in part.items())
    if isinstance(part, list):
        whole = whole if isinstance(whole, (list, tuple)) else []
        fits = len(part) <= len(whole) if isinstance(part, CUT) else len(part) == len(whole)
        return fits and all(_is_beginning(a, b) for a, b in zip(part, whole, strict=False))
    return part == whole and type(part) is type(whole)


@given(st.lists(FINITE, max_size=4) | st.dictionaries(st.text(max_size=5), FINITE, max_size=4), st.data())
def test_a_text_cut_anywhere_gives_nothing_that_was_not_there(value, data):
    text = data.draw(st.sampled_from([str(value), json.dumps(value)]))
    assert read_literal(text) == value
    cut = data.draw(st.integers(0, len(text)))
    found = read_literal(text[:cut])
    assert found is None or _is_beginning(found, value)
