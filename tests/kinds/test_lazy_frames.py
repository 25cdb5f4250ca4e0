"""Frames that are made when they are first asked for."""

from dataclasses import replace

import pytest

from evalkit.io.paths import storage_options
from evalkit.kinds import Assembled, load
from evalkit.kinds.pipeline import as_recorded
from tests.kinds.toy import TOY, write


@pytest.fixture
def made():
    """What the storage options were each time the frame was made."""
    return []


@pytest.fixture
def logs(tmp_path, made):
    def openings(records):
        made.append(dict(storage_options()))
        moves = records.tables["moves"].to_pandas()
        return moves[moves["move"] == 0]

    def assemble(records, options):
        frames = as_recorded(TOY, records).frames
        return Assembled(frames, attributes={"colour": "white"}, lazy={"openings": lambda: openings(records)})

    write(tmp_path / "a.json", ["e4", "d4"])
    write(tmp_path / "b.json", ["c4"])
    return load(replace(TOY, assemble=assemble), tmp_path, {}, storage_options={"anon": True})


def test_a_lazy_frame_is_made_once_and_with_the_storage_options_of_load(logs, made):
    assert made == []
    assert logs.openings["text"].tolist() == ["e4", "c4"]
    assert logs.openings is logs.openings
    assert made == [{"anon": True}]
    assert dict(storage_options()) == {}


def test_it_is_listed_and_unpacking_leaves_it_alone(logs, made):
    assert {"games", "moves", "openings", "colour", "ledger"} <= set(dir(logs))
    games, moves, ledger = logs
    assert [len(frame) for frame in (games, moves, ledger)] == [2, 3, 2]
    assert "openings" not in repr(logs)
    assert made == []


def test_another_name_is_refused_with_those_there_are(logs):
    with pytest.raises(AttributeError, match="'endings': these logs have colour, games, kind, ledger, moves, openings"):
        _ = logs.endings


def test_in_a_notebook_logs_are_a_short_summary_with_escaped_texts(tmp_path):
    folder = tmp_path / "<b>logs"
    folder.mkdir()
    write(folder / "a.json", ["e4", "d4"])
    page = load(TOY, folder, {})._repr_html_()
    assert page.count("<tr>") == 2 + len(TOY.tables)
    assert "&lt;b&gt;logs" in page
    assert "1 files: 1 used, 0 skipped, 0 failed" in page
    assert "<b>" not in page
