"""Texts from logs that a spreadsheet would take for formulas are written as texts; numbers stay numbers."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.display.show import TABLE, publish
from evalkit.io import SourceError, for_spreadsheets, write_frame
from evalkit.io.write import from_spreadsheet

NAME = '=HYPERLINK("http://x")'


@pytest.mark.parametrize("text", [NAME, "+a", "-a", "@a", "\ta", "\ra", "\na", "＝a", "-", "-1+2", "=1"])
@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_what_looks_like_a_formula_gets_an_apostrophe(text, dtype):
    table = for_spreadsheets(pd.DataFrame({text: pd.Series([text, "b", None], dtype=dtype)}))
    assert table.columns.tolist() == [f"'{text}"]
    assert table.iloc[:2, 0].tolist() == [f"'{text}", "b"]
    assert table.iloc[:, 0].isna().tolist() == [False, False, True]


def test_numbers_and_the_rest_stay_as_they_are():
    columns = {
        "n": [-1, 2],
        "x": [-0.5, None],
        "numbers in a text": ["-5", "+1e3"],
        "words": ["a=b", "a-b"],
        "lists": [["=a"], []],
        "yes": pd.array([True, None], "boolean"),
        "when": pd.to_datetime(["2025-01-01", None]),
    }
    table = pd.DataFrame(columns)
    assert for_spreadsheets(table).to_csv() == table.to_csv()
    assert for_spreadsheets(table)["n"].dtype == "int64"
    for empty in (table.iloc[:0], pd.DataFrame()):
        assert for_spreadsheets(empty).to_csv() == empty.to_csv()


def test_only_csv_is_changed(tmp_path):
    table = pd.DataFrame({"model": [NAME]})
    for suffix, read in ((".csv", pd.read_csv), (".json", pd.read_json), (".parquet", pd.read_parquet)):
        write_frame(table, str(tmp_path / f"t{suffix}"))
        assert read(tmp_path / f"t{suffix}")["model"].tolist() == [f"'{NAME}" if suffix == ".csv" else NAME]


def test_published_tables_and_output_of_commands(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr("evalkit.display.show.display", lambda data, **_: shown.append(data[TABLE]["csv"]))
    publish(pd.DataFrame({"model": [NAME]}), "models")
    assert "'=HYPERLINK" in shown[0]
    (tmp_path / "h.json").write_text(json.dumps([{"step": {"function_name": NAME}, "success": True, "result": 1}]))
    out = tmp_path / "out.csv"
    assert CliRunner().invoke(main, ["steps", str(tmp_path / "h.json"), "--output", str(out)]).exit_code == 0
    assert "'=HYPERLINK" in out.read_text()


@pytest.mark.parametrize(
    "command",
    [
        ["mindcraft", "a\0b"],
        ["mindcraft", "s3://a[b/x"],
        ["show", "s3://a[b/x"],
        ["steps", "http://[::1/x"],
        ["collect", "mindcraft", "samples:mindcraft", "-o", "a\0b"],
        ["steps", "samples:steps", "--output", "a\0b.csv"],
        ["report", "crafter_scores", "-o", "a\0b"],
    ],
)
def test_a_path_that_is_none_is_one_line(command):
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert result.stderr.startswith("evalkit: ")
    assert result.stderr.count("\n") == 1


def test_a_path_with_a_nul_character_is_refused_before_anything_is_written():
    with pytest.raises(SourceError, match="NUL"):
        write_frame(pd.DataFrame(), "a\0.csv")


@pytest.mark.parametrize("text", ["=1+1", "＝1+1", "@a", "-a", "-5", "plain", "", "it's", "'quoted'"])
def test_a_text_is_read_back_as_it_was(text):
    written = for_spreadsheets(pd.DataFrame({"a": [text]}))["a"][0]
    assert from_spreadsheet(written) == text
