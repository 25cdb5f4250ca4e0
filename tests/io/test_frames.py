"""Frames: the dtypes that were declared, also without rows, and whatever text comes in."""

import math

import pandas as pd
import pytest

from evalkit.io import Column, frame

COLUMNS = (
    Column("text", "str", ""),
    Column("count", "int", ""),
    Column("maybe", "int?", ""),
    Column("share", "float", "", "share"),
    Column("sure", "bool", ""),
    Column("unsure", "bool?", ""),
    Column("items", "object", ""),
)
DTYPES = {
    "text": "str",
    "count": "int64",
    "maybe": "Int64",
    "share": "float64",
    "sure": "bool",
    "unsure": "boolean",
    "items": "object",
}


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"count": 1}],
        [{"text": "a", "count": 1, "maybe": 2, "share": 0.5, "sure": True, "unsure": False, "items": [1]}] * 2,
    ],
    ids=["no rows", "missing values", "all values"],
)
def test_dtypes_are_those_declared(rows):
    table = frame(rows, COLUMNS)
    assert {name: str(dtype) for name, dtype in table.dtypes.items()} == DTYPES
    assert len(table) == len(rows)


def test_missing_values_are_missing_and_never_zero():
    (row,) = frame([{"count": 0}], COLUMNS).to_dict("records")
    assert pd.isna(row["text"])
    assert pd.isna(row["maybe"])
    assert math.isnan(row["share"])
    assert row["sure"] is False
    assert pd.isna(row["unsure"])
    assert row["items"] is None


def test_keys_that_are_no_column_are_left_out():
    assert list(frame([{"count": 1, "other": 2}], COLUMNS)) == [column.name for column in COLUMNS]


def test_lists_of_one_length_stay_lists():
    assert frame([{"items": [1, 2]}, {"items": [3, 4]}], COLUMNS[-1:])["items"].tolist() == [[1, 2], [3, 4]]


def test_half_characters_are_written_out_and_the_rest_stays():
    texts = frame([{"text": "caf\udce9"}, {"text": None}, {"text": "é"}], COLUMNS[:1])["text"]
    assert texts.isna().tolist() == [False, True, False]
    assert texts[0] == r"caf\udce9"
    assert texts[2] == "é"


def test_rows_may_come_from_a_generator():
    assert frame(({"count": i} for i in range(3)), COLUMNS)["count"].tolist() == [0, 1, 2]
