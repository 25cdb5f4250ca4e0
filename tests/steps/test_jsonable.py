import json
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.steps import to_jsonable


class Pair(NamedTuple):
    a: int
    b: float


@dataclass
class Box:
    inside: object


class Kind(Enum):
    ONE = "one"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.datetime64("2026-03-02"), "2026-03-02"),
        (np.datetime64("NaT"), None),
        (np.array(["2026-03-02", "NaT"], dtype="datetime64[D]"), ["2026-03-02", None]),
        (deque([1, np.int64(2)]), [1, 2]),
        (range(3), [0, 1, 2]),
        ({"b": 1, "a": 2}.keys(), ["b", "a"]),
        ({"b": np.float64(0.5)}.values(), [0.5]),
        (float("nan"), None),
        (float("inf"), None),
        (np.float64("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (pd.Timestamp("2026-03-02T09:00"), "2026-03-02T09:00:00"),
        (datetime(2026, 3, 2, tzinfo=UTC), "2026-03-02T00:00:00+00:00"),
        (date(2026, 3, 2), "2026-03-02"),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((1, 2), [1, 2]),
        (Pair(1, 2.5), {"a": 1, "b": 2.5}),
        (Box(np.int8(1)), {"inside": 1}),
        (Kind.ONE, "one"),
        (Decimal("1.5"), 1.5),
        (Path("a/b"), "a/b"),
        (b"caf\xc3\xa9", "café"),
        (2**70, 2**70),
        ("\ud800", "\ufffd"),
        ({1: "x", "1": "y"}, {"1": "x", "1 #2": "y"}),
        ({("a", 1): 2}, {"('a', 1)": 2}),
        (pd.DataFrame({"g": ["A", "B"], "p": [0.1, np.nan]}), [{"g": "A", "p": 0.1}, {"g": "B", "p": None}]),
        (pd.DataFrame({"p": [0.1]}, index=["GENE"]), [{"index": "GENE", "p": 0.1}]),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), [{"x": 1, "x #2": 2}]),
        (pd.DataFrame(), []),
        (pd.Series([1, 2]), [1, 2]),
        (pd.Series([1, 2], index=["a", "b"]), {"a": 1, "b": 2}),
        (pd.Categorical(["a", "b"]), ["a", "b"]),
        (pd.Index(["a"]), ["a"]),
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
    found = to_jsonable(loop)
    assert found["n"] == 1
    assert isinstance(found["self"], str)


def test_deep_nesting_is_kept_as_text():
    deep = value = []
    for _ in range(5000):
        value.append([])
        value = value[0]
    json.dumps(to_jsonable(deep))


def test_a_faulty_object_becomes_its_type():
    class Faulty:
        def __str__(self):
            raise RuntimeError("no")

    assert to_jsonable([Faulty()]) == ["<Faulty>"]


def test_nothing_is_shared_with_the_value():
    inner = [1]
    to_jsonable({"a": inner})["a"].append(2)
    assert inner == [1]


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates()


@given(st.recursive(LEAVES, lambda c: st.lists(c) | st.dictionaries(st.text() | st.integers(), c) | st.tuples(c, c)))
def test_anything_becomes_strict_json(value):
    text = json.dumps(to_jsonable(value), allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
