"""Frames: the dtypes that were declared, also without rows, and whatever text comes in."""

import pandas as pd
import pytest

from evalkit.io import Column, Ledger, frame, summarise
from evalkit.io.frames import MOST_NAME, Entry, arrow_table, cut_name, frame_of
from evalkit.io.text import MOST_LINE

COLUMNS = (
    Column("text", "str", ""),
    Column("count", "int", ""),
    Column("maybe", "int?", ""),
    Column("share", "float", "", "share"),
    Column("sure", "bool", ""),
    Column("unsure", "bool?", ""),
    Column("items", "object", ""),
    Column("constant", "category", ""),
)
KEPT = (*COLUMNS[:-2], Column("list", "list", ""), Column("counts", "counts", ""), Column("time", "time", ""))
DTYPES = {"text": "str", "count": "int64", "maybe": "Int64", "share": "float64", "sure": "bool", "unsure": "boolean",
          "items": "object", "constant": "category"}  # fmt: skip


WHOLE = {"text": "a", "count": 1, "maybe": 2, "share": 0.5, "sure": True, "unsure": False, "items": [1],
         "constant": "k"}  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "missing"),
    [
        ([], []),
        ([{"count": 0}], ["text", "maybe", "share", "unsure", "items", "constant"]),
        ([WHOLE, WHOLE], []),
        ([{**WHOLE, "text": "a\ud83d", "share": 2**70}, {**WHOLE, "text": 5, "maybe": None}], ["maybe"]),
    ],
)
def test_dtypes_are_those_declared_and_what_is_missing_is_never_zero(rows, missing):
    table = frame(rows, COLUMNS)
    assert {name: str(dtype) for name, dtype in table.dtypes.items()} == DTYPES
    assert [name for name in table if table[name].isna().any()] == missing
    expected = [(row["count"], row.get("sure", False)) for row in rows]
    assert list(zip(table["count"], table["sure"], strict=True)) == expected


ROWS = [
    ("é\n", 1, None, float("nan"), True, None, ["a", "b"], {"x": 1, "y": 2}, 1_600_000_000_000),
    (None, -(2**60), 3, 1e-300, None, False, [], {}, None),
    ("half \ud83d", 0, 0, None, False, True, ["half \ud83d"], {"half \ud83d": 1}, 0),
]


def test_what_is_kept_comes_back_as_it_was():
    table = arrow_table(list(zip(*ROWS, strict=True)), KEPT)
    kept = frame_of({name: table[name] for name in table.column_names}, KEPT)
    made = frame([dict(zip(table.column_names, row, strict=True)) for row in ROWS], KEPT[:6])
    pd.testing.assert_frame_equal(kept.iloc[:, :6], made)
    assert kept["list"].tolist() == [["a", "b"], [], [r"half \ud83d"]]
    assert kept["counts"].tolist() == [{"x": 1, "y": 2}, {}, {r"half \ud83d": 1}]
    times = [pd.Timestamp(at, unit="ms", tz="UTC") for at in (1_600_000_000_000, 0)]
    assert kept["time"].tolist() == [times[0], pd.NaT, times[1]]
    assert kept["text"].tolist()[::2] == ["é\n", r"half \ud83d"]
    none = arrow_table([], KEPT)
    assert (len(none), none.schema) == (0, table.schema)
    assert frame_of({name: none[name] for name in none.column_names}, KEPT).dtypes.equals(kept.dtypes)


def test_long_names_and_lines_are_cut_and_different_names_stay_different():
    columns = (Column("name", "name", ""), Column("line", "line", ""))
    texts = ["x" * 100_000 + end for end in ("a", "b", "\ud800")]
    stored = arrow_table([texts, texts], columns)
    for values in ({"name": texts, "line": texts}, {"name": stored["name"], "line": stored["line"]}):
        table = frame_of(values, columns)
        assert table["name"].nunique() == 3
        assert table.map(len).max().tolist() == [MOST_NAME, MOST_LINE]
        assert list(map(cut_name, table["name"])) == table["name"].tolist()


def test_the_ledger_names_every_file_with_its_status():
    ledger = Ledger()
    assert {name: str(dtype) for name, dtype in ledger.frame().dtypes.items()} == dict.fromkeys(Entry._fields, "str")
    for entry in (("a", "used", ""), ("b", "skipped", "no log"), ("c", "failed", "broken")):
        ledger.add(*entry)
    assert ledger.frame()["status"].tolist() == ["used", "skipped", "failed"]
    assert summarise(ledger.frame()["status"]) == "3 files: 1 used, 1 skipped, 1 failed"
    assert summarise([]) == "0 files: 0 used, 0 skipped, 0 failed"
