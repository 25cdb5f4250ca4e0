"""Frames that are made when they are first asked for."""

from dataclasses import replace

import pytest

from evalkit.io.paths import storage_options
from evalkit.kinds import Assembled, Transcript, Turn, load
from evalkit.kinds.pipeline import as_recorded
from tests.kinds.toy import TOY, write
from tests.mindcraft.builders import write_all


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
    return load(tmp_path, replace(TOY, assemble=assemble), storage_options={"anon": True})


def test_a_lazy_frame_is_made_once_when_it_is_asked_for_with_the_storage_options_of_load(logs, made):
    assert list(map(len, logs)) == [2, 3, 2]  # games, moves and the ledger
    assert "openings" not in repr(logs)
    with pytest.raises(
        AttributeError, match="'endings': these logs have chosen, colour, games, kind, ledger, moves, openings"
    ):
        _ = logs.endings
    assert made == []
    assert logs.openings["text"].tolist() == ["e4", "c4"]
    assert logs.openings is logs.openings
    assert made == [{"anon": True}]
    assert dict(storage_options()) == {}


def test_in_a_notebook_logs_are_a_short_summary_with_escaped_texts(tmp_path):
    files = {"a.json": {"moves": ["e4", "d4"]}, "b.json": {"moves": ["e4"], "model": "<b>elm"}, "c.json": {}}
    folder = write_all(tmp_path / "<b>logs", files)
    page = load(folder, TOY)._repr_html_()
    models, files = "unknown (1 run) and &lt;b&gt;elm (1 run)", "3 files: 2 used, 1 skipped, 0 failed"
    for text in ("&lt;b&gt;logs", models, "<th>moves</th><td>3 rows, 3 columns", files):
        assert text in page
    assert f"1 file, as {folder}/c.json: not a game".replace("<b>", "&lt;b&gt;") in page
    assert "<b>" not in page


def test_in_a_notebook_a_run_is_its_turns_with_long_ones_folded_and_escaped_texts():
    turns = [Turn("<i>elm", "user", "<script>\nx", marks=("final",)), *[Turn("", "assistant", "word " * 200)] * 2_000]
    page = Transcript("<i>game", ["won"], turns)._repr_html_()
    assert "… 1,001 more turns" in page
    assert page.count("<details>") == 999
    assert "&lt;i&gt;elm</b> <mark>final</mark>" in page
    assert "&lt;script&gt;\nx</pre>" in page
    assert "<i>" not in page
    assert "<script>" not in page
