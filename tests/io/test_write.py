"""Writing: by suffix, whole or not at all, and as texts what a spreadsheet would take for formulas."""

import csv
import json
import multiprocessing
import os
import sys
import threading
import types
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import openpyxl
import pandas as pd
import pytest

from evalkit._version import code_version
from evalkit.io import SourceError, for_spreadsheets
from evalkit.io.write import check_output, exclusive, from_spreadsheet, write_bytes, write_frame

FORMULA = '=HYPERLINK("http://x")'
NAMED = pd.Series(["é", FORMULA, None], dtype="str")
TABLE = pd.DataFrame({"name": NAMED, "n": pd.Series([1, 2, None], dtype="Int64"), "items": [["bread"], [], []]})
READERS = {"csv": pd.read_csv, "json": pd.read_json, "parquet": pd.read_parquet, "CSV": pd.read_csv}


@pytest.mark.parametrize("suffix", READERS)
def test_a_frame_is_written_as_its_suffix_says(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    write_frame(TABLE, str(path))
    table = READERS[suffix](path)
    first, formula, missing = table["name"]
    assert (first, formula, list(table)) == ("é", "'" * (suffix.lower() == "csv") + FORMULA, list(TABLE))
    assert pd.isna(missing)
    assert os.listdir(tmp_path) == [path.name]


def test_json_holds_any_time_in_milliseconds(tmp_path):
    times = np.array(["0001-01-01", "2024-01-02T03:04:05.678", "9999-12-31", "NaT"], "datetime64[ms]")
    table = pd.DataFrame({"naive": times, "zoned": pd.Series(times).dt.tz_localize("UTC")})
    write_frame(table, str(tmp_path / "out.json"))
    rows = json.loads((tmp_path / "out.json").read_text())
    milliseconds = [-62135596800000, 1704164645678, 253402214400000, None]
    assert [tuple(row.values()) for row in rows] == [(at, at) for at in milliseconds]
    odd = pd.DataFrame({"when": pd.Series([pd.Timestamp("2300-01-01"), None], dtype=object)})
    with pytest.raises(SourceError, match=r"out\.json: Overflow"):
        write_frame(odd, str(tmp_path / "out.json"))


def test_excel_and_latex_hold_plain_text_and_no_formula(tmp_path):
    times = pd.to_datetime(["2025-01-01T00:00:00Z", None, None])
    table = TABLE.assign(name=[FORMULA, "50 % & a_b", "x\x07"], when=times)
    for suffix in ("xlsx", "tex"):
        write_frame(table, str(tmp_path / f"out.{suffix}"))
    cells = pd.read_excel(tmp_path / "out.xlsx")
    assert cells["name"].tolist() == [f"'{FORMULA}", "50 % & a_b", "x\ufffd"]
    assert cells["when"][0] == pd.Timestamp("2025-01-01")
    write_frame(table.rename(columns={"n": FORMULA}), str(tmp_path / "out.xlsx"))
    rows = openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows()
    assert "f" not in {cell.data_type for row in rows for cell in row}
    table[["name"]].head(1).to_excel(tmp_path / "plain.xlsx")
    rows = openpyxl.load_workbook(tmp_path / "plain.xlsx").active.iter_rows()
    assert "f" in {cell.data_type for row in rows for cell in row}
    text = (tmp_path / "out.tex").read_text()
    assert r"50 \% \& a\_b" in text
    assert "bread" in text


def test_without_the_package_for_excel_its_name_is_said_beforehand(tmp_path, monkeypatch):
    monkeypatch.setattr("evalkit.io.write.find_spec", lambda name: None)
    with pytest.raises(SourceError, match="pip install openpyxl"):
        check_output(str(tmp_path / "out.xlsx"))


@pytest.mark.parametrize("name", ["out.ods", "out", ".csv", "no/such/folder/out.csv", "a\0.csv"])
def test_an_output_that_can_not_be_is_refused_beforehand(tmp_path, name):
    for use in (check_output, partial(write_frame, TABLE)):
        with pytest.raises(SourceError, match=r"out|csv"):
            use(str(tmp_path / name))


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    path.write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(SourceError, match=r"out\.csv: No space left"):
        write_frame(TABLE, str(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def _is_alone(folder):
    with exclusive(folder) as alone:
        return alone


def test_one_process_at_a_time_writes_into_a_folder(tmp_path):
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as other:
        with exclusive(str(tmp_path)) as alone:
            assert alone
            assert not other.submit(_is_alone, str(tmp_path)).result()
            with exclusive(str(tmp_path), wait=0.05) as again:
                assert not again
        assert other.submit(_is_alone, str(tmp_path)).result()


@pytest.mark.parametrize("text", [FORMULA, "+a", "-a", "@a", "\ta", "\ra", "\na", "＝a", "-", "-1+2", "=1"])
@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_what_looks_like_a_formula_gets_an_apostrophe_and_is_read_back(text, dtype):
    table = for_spreadsheets(pd.DataFrame({text: pd.Series([text, "b", None], dtype=dtype)}))
    assert table.columns.tolist() == [f"'{text}"]
    assert table.iloc[:2, 0].tolist() == [f"'{text}", "b"]
    assert table.iloc[:, 0].isna().tolist() == [False, False, True]
    assert from_spreadsheet(table.iloc[0, 0]) == text


SPLIT = {  # texts that look like a formula once a spreadsheet has split them, and how they are written
    "m;@SUM(1)": "m;'@SUM(1)",
    "a\t+1;-b": "a\t'+1;'-b",
    "=a;＝b": "'=a;'＝b",
    "a; b;c=1": "a; b;c=1",
    "a;;b\t\t": "a;;b\t\t",
}


@pytest.mark.parametrize("text", SPLIT)
def test_no_part_of_a_cell_is_a_formula_however_it_is_split(tmp_path, text):
    write_frame(pd.DataFrame({"n": [1], text: [text]}), str(tmp_path / "out.csv"))
    assert pd.read_csv(tmp_path / "out.csv").to_dict("list") == {"n": [1], SPLIT[text]: [SPLIT[text]]}
    assert from_spreadsheet(SPLIT[text]) == text
    for delimiter in ",;\t":
        with open(tmp_path / "out.csv", newline="") as file:
            parts = [part for row in csv.reader(file, delimiter=delimiter) for part in row]
        assert not [part for part in parts if part.startswith(("=", "+", "-", "@", "＝"))]
    assert for_spreadsheets(pd.DataFrame({"n": ["1;2", "-1;2"]}))["n"].tolist() == ["1;2", "'-1;2"]


def test_numbers_and_the_rest_stay_as_they_are():
    columns = {"n": [-1, 2], "x": [-0.5, None], "numbers in a text": ["-5", "+1e3"], "words": ["a=b", "'quoted'"]}
    columns |= {"lists": [["=a"], []], "yes": pd.array([True, None], "boolean")}
    table = pd.DataFrame({**columns, "when": pd.to_datetime(["2025-01-01", None])})
    for part in (table, table.iloc[:0], pd.DataFrame()):
        assert for_spreadsheets(part).to_csv() == part.to_csv()
    assert for_spreadsheets(table)["n"].dtype == "int64"
    for text in ("-5", "plain", "", "it's", "'quoted'"):
        assert from_spreadsheet(text) == text


def test_code_of_files_has_one_version_and_typed_in_code_another_at_each_call(monkeypatch):
    assert code_version("tests.io.test_write") == code_version("tests.io.test_write") != code_version()
    for name in (None, "<stdin>"):
        typed = types.ModuleType("typed_in")
        if name:
            typed.__file__ = name
        monkeypatch.setitem(sys.modules, "typed_in", typed)
        assert code_version("typed_in") != code_version("typed_in")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(
    ("name", "write"),
    [("pipe", partial(write_bytes, b"text")), ("pipe.csv", partial(write_frame, pd.DataFrame({"text": [1]})))],
)
def test_a_pipe_is_written_and_not_replaced(tmp_path, name, write):
    path = tmp_path / name
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write(str(path))
    reader.join(60)
    assert path.is_fifo()
    assert b"text" in read[0]
