"""Collecting, on a toy kind: a dataset gives what its folder gives, and leaves alone what is not its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from evalkit.io import Column, SourceError, read
from evalkit.io.store import MANIFEST, read_manifest
from evalkit.io.write import exclusive
from evalkit.kinds import collect, load, pipeline
from tests.kinds.toy import TOY, write

OTHER = replace(TOY, name="other")


@pytest.fixture
def games(tmp_path):
    """Write ten games in two folders, with a broken file and one that is no game."""
    folder = tmp_path / "games"
    for number in range(10):
        write(folder / f"{'ab'[number % 2]}/{number}.json", task=str(number))
    write(folder / "a/broken.json").write_text("{")
    (folder / "notes.txt").write_text("hello")
    for path in (folder / "a/broken.json", folder / "notes.txt"):
        os.utime(path, (1, 1))
    return folder


@pytest.fixture
def made(tmp_path):
    return tmp_path / "made"


def assert_same(folder, made, kind=TOY, **reading):
    """Compare the frames of the folder with those of the dataset."""
    for expected, got in zip(load(folder, kind, **reading), load(made, kind, **reading), strict=True):
        pd.testing.assert_frame_equal(expected, got)


def parts_of(made: Path) -> set[str]:
    return {path.relative_to(made).as_posix() for path in made.rglob("*.parquet")}


def listed_parts(made: Path) -> set[str]:
    return {f"{name}/{number:06d}.parquet" for name, (number, _) in read_manifest(made).tables.items()}


def test_a_dataset_gives_what_its_folder_gives(games, made):
    write(games / "top.json", task="top")
    assert collect(TOY, games, made).summary() == "13 files: 13 new, 0 changed, 0 vanished, 0 as before"
    for reading in ({}, {"pattern": "*[1-3].json"}, {"recursive": False}):
        assert_same(games, made, **reading)
    with pytest.raises(SourceError, match=r"made: no file matches \*\.JSON"):
        load(made, TOY, pattern="*.JSON")


def test_nothing_is_read_or_written_where_nothing_changed(games, made, monkeypatch):
    collect(TOY, games, made)
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*.*")}
    monkeypatch.setattr(pipeline, "read_files", lambda paths: pytest.fail("read"))
    assert collect(TOY, games, made)[:3] == (0, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*.*")} == before


def edit(folder):
    """Change, mend, swap, add and remove files, and a folder."""
    write(folder / "a/broken.json", task="mended", age=9)
    for number in (0, 4):
        write(folder / f"a/{number}.json", task=str(4 - number), age=9)
    for number in range(4):
        write(folder / f"c/{number}.json", task=f"new {number}")
    (folder / "a/2.json").unlink()
    shutil.rmtree(folder / "b", ignore_errors=True)


def test_after_edits_the_dataset_follows(games, made):
    collect(TOY, games, made)
    edit(games)
    assert collect(TOY, games, made)[:4] == (4, 3, 6, 3)
    assert_same(games, made)
    assert parts_of(made) == listed_parts(made)


STOPPED = """
    import sys
    from evalkit.io import read
    from evalkit.kinds import collect, pipeline
    from tests.kinds.toy import TOY
    pipeline.COMMIT_EVERY, read.CHUNK = -1, 2
    collect(TOY, *sys.argv[1:], progress=lambda done, of: print(done, flush=True))
"""


def test_killed_at_any_moment_it_goes_on_from_there(games, made):
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), str(games), str(made)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(3):  # chunks
            read = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    assert collect(TOY, games, made).unchanged >= read
    assert_same(games, made)
    assert parts_of(made) == listed_parts(made)


def test_what_a_dataset_has_not_written_is_never_removed(games, made, tmp_path):
    collect(TOY, games, made)
    collect(TOY, games, tmp_path / "other")
    kept = [
        made / name for name in ("mine.parquet", "games/mine.parquet", "mine/000001.parquet", "a/games/000001.parquet")
    ]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("my only copy")
    (made / "linked").symlink_to(tmp_path / "other")
    kept += list((tmp_path / "other").rglob("*.parquet"))
    left = made / "games/999999.parquet"
    left.write_text("left by a process that was killed")
    write(games / "new.json")
    collect(TOY, games, made)
    assert [path for path in kept if not path.exists()] == []
    assert not left.exists()
    assert_same(games, made)


def test_a_dataset_keeps_its_parts_however_its_url_is_written(games):
    url = "memory://made//twice"
    for _ in range(2):
        collect(TOY, games, url)
        assert_same(games, url)
        write(games / "new.json")


MANIFESTS = {
    "a path above": lambda text: text.replace('"games"', '"../games"'),
    "no tables": lambda text: text.replace('"tables"', '"table"'),
    "no JSON": lambda text: "{",
    "a list": lambda text: "[]",
    "deep": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_no_dataset_has_is_refused(games, made, name):
    collect(TOY, games, made)
    (made / MANIFEST).write_text(MANIFESTS[name]((made / MANIFEST).read_text()))
    for use in (lambda: load(made, TOY), lambda: collect(TOY, games, made)):
        with pytest.raises(SourceError, match=r"not the manifest of a dataset|holds tables that"):
            use()


def test_an_unfinished_dataset_warns(games, made, monkeypatch):
    def stop(done, of):
        if done > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "COMMIT_EVERY", -1)
    monkeypatch.setattr(read, "CHUNK", 3)
    with pytest.raises(KeyboardInterrupt):
        collect(TOY, games, made, progress=stop)
    with pytest.warns(UserWarning, match="was stopped"):
        assert len(load(made, TOY).ledger) == 4  # the one that is not read comes first
    assert collect(TOY, games, made).unchanged == 4
    assert_same(games, made)


def test_a_dataset_of_another_version_warns_and_is_read_anew_when_collected(games, made, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "code_version", lambda *_: "0.0.1+abc")
        collect(TOY, games, made)
    with pytest.warns(UserWarning, match="collected by another version of evalkit; collect again"):
        assert len(load(made, TOY).runs) == 10
    assert collect(TOY, games, made).new == 12
    assert_same(games, made)


REFUSED = {
    "no such file or folder": lambda games, out: collect(TOY, games / "nowhere", out.parent / "new"),
    "can't lie in its own source": lambda games, out: collect(TOY, games, games / "made"),
    "linked: a dataset can't lie": lambda games, out: (
        (games.parent / "link").symlink_to(games) or collect(TOY, games, games.parent / "link" / "linked")
    ),
    "url: a dataset can't lie": lambda games, out: collect(TOY, games, f"file://{games}/url"),
    "holds other files than a dataset, such as thesis.txt": lambda games, out: collect(
        TOY, games, games.parent / "other"
    ),
    "a dataset, such as thesis": lambda games, out: collect(TOY, games, games.parent / "other" / "thesis.txt"),
    r"zip://a\.zip: a dataset can't be written into an archive": lambda games, out: collect(TOY, games, "zip://a.zip"),
    "can't be written into an archive; name a folder": lambda games, out: collect(TOY, games, "tar://ds::mc.tar"),
    "was collected from toy logs in .*; keep to that": lambda games, out: collect(TOY, games / "a", out),
    r", pattern \*, recursive True; keep to that": lambda games, out: collect(TOY, games, out, pattern="*.txt"),
    "was collected from toy logs": lambda games, out: collect(OTHER, games, out),
    "made: a dataset of toy logs, not of other": lambda games, out: load(out, OTHER),
    "is there any more": lambda games, out: (shutil.rmtree(games), games.mkdir(), collect(TOY, games, out)),
    "no path was given": lambda games, out: collect(TOY, [], out),
    "is a dataset itself": lambda games, out: collect(TOY, [games, out], games.parent / "new"),
    "can't be loaded together with other sources": lambda games, out: load([games, out], TOY),
    "another process is collecting": lambda games, out: _while_another_collects(games, out),
    "remove the dataset and collect it again": lambda games, out: (
        [path.write_bytes(b"PAR1") for path in (out / "games").iterdir()] and load(out, TOY)
    ),
}


def _while_another_collects(games, out):
    with exclusive(str(out)) as alone:
        assert alone
        collect(TOY, games, out)


@pytest.mark.parametrize("message", REFUSED)
def test_what_can_not_be_is_refused_in_plain_words(games, made, tmp_path, message):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("my only copy")
    collect(TOY, games, made)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SourceError, match=message):
        REFUSED[message](games, made)
    assert (tmp_path / "other" / "thesis.txt").read_text() == "my only copy"
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "link"}  # nothing is left behind


def test_a_dataset_of_another_format_or_with_tables_of_another_shape_is_refused(games, made):
    collect(TOY, games, made)
    grown = replace(TOY, records={**TOY.records, "games": (*TOY.records["games"], Column("new", "str", ""))})
    with pytest.raises(SourceError, match="remove the dataset and collect it again"):
        load(made, grown)
    (made / MANIFEST).write_text(json.dumps({"format": 99}))
    with pytest.raises(SourceError, match=r"of another format \(99\); collect it again into a new folder"):
        load(made, TOY)


@pytest.mark.parametrize("first", ["a", "a/0.json"])
def test_sources_may_be_added(games, made, first):
    collect(TOY, games / first, made)
    sources = [games / first, games / "a", games / "b"]
    assert collect(TOY, sources, made).vanished == 0
    assert_same([games / "a", games / "b"], made)


def test_a_folder_that_can_not_be_listed_keeps_its_files(games, made, monkeypatch):
    collect(TOY, games, made)
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    (games / "b/new.txt").write_text("")  # else the folder is not listed again
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert collect(TOY, games, made).vanished == 0
        ledger = load(made, TOY).ledger
        (reason,) = ledger["reason"][ledger["source"] == str(games / "b")]
        assert reason.startswith("the folder can't be listed: ")
    collect(TOY, games, made)
    assert_same(games, made)
