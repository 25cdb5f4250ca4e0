"""Writing: frames by suffix, whole or not at all; one process at a time in a folder."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from evalkit.io import SourceError
from evalkit.io.write import check_output, exclusive, write_frame, write_text

TABLE = pd.DataFrame(
    {
        "name": pd.Series(["é", None], dtype="str"),
        "n": pd.Series([1, None], dtype="Int64"),
        "share": [0.5, None],
        "items": [["bread"], []],
    }
)
READERS = {
    "csv": lambda path: pd.read_csv(path)["name"].tolist(),
    "json": lambda path: [row["name"] for row in json.loads(path.read_text("utf-8"))],
    "parquet": lambda path: pd.read_parquet(path)["name"].tolist(),
}


@pytest.mark.parametrize("suffix", [*READERS, "CSV"])
def test_a_frame_is_written_as_its_suffix_says(tmp_path, suffix):
    path = tmp_path / f"out.{suffix}"
    write_frame(TABLE, str(path))
    names = READERS[suffix.lower()](path)
    assert names[0] == "é"
    assert pd.isna(names[1])
    assert os.listdir(tmp_path) == [path.name]


def test_json_writes_null_for_what_is_missing(tmp_path):
    write_frame(TABLE, str(tmp_path / "out.json"))
    rows = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert rows[1] == {"name": None, "n": None, "share": None, "items": []}


@pytest.mark.parametrize("name", ["out.xlsx", "out", ".csv", "no/such/folder/out.csv"])
def test_an_output_that_can_not_be_is_refused_beforehand(tmp_path, name):
    with pytest.raises(SourceError, match=r"out|csv"):
        check_output(str(tmp_path / name))


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


def test_a_folder_in_the_place_of_the_output_is_named(tmp_path):
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(SourceError, match=r"out\.csv"):
        write_frame(TABLE, str(tmp_path / "out.csv"))


def test_texts_are_written_in_utf8(tmp_path):
    write_text("é\n", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == "é\n".encode()


def test_one_process_at_a_time_writes_into_a_folder(tmp_path):
    code = "import sys; from evalkit.io.write import exclusive\nwith exclusive(sys.argv[1]) as alone: print(alone)"

    def ask():
        return subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True).stdout.strip()

    with exclusive(str(tmp_path)) as alone:
        assert alone
        assert ask() == "False"
        with exclusive(str(tmp_path), wait=0.05) as other:
            assert not other
    assert ask() == "True"


def test_a_folder_that_can_not_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match="file/below: Not a directory"), exclusive(str(tmp_path / "file" / "below")):
        pass
