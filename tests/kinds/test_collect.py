"""Collecting, on a toy kind: a dataset gives what its folder gives, and leaves alone what is not its own."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalkit.display.follow import Following
from evalkit.io import Column, SourceError, read, sources
from evalkit.io.store import MANIFEST, read_manifest
from evalkit.io.write import exclusive
from evalkit.kinds import FileRules, collect, dataset, load, reading
from tests.kinds.toy import TOY, assert_same_frames, write

OTHER = replace(TOY, name="other")
GROWN = replace(TOY, records={**TOY.records, "games": (*TOY.records["games"], Column("new", "str", ""))})


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
    """Compare the frames of the folder with those of the dataset, and the latter's files with those of its manifest."""
    assert_same_frames(load(folder, kind, **reading), load(made, kind, **reading))
    if isinstance(made, Path):
        listed = {f"{name}/{number:06d}.parquet" for name, (number, _) in read_manifest(made).tables.items()}
        assert {path.relative_to(made).as_posix() for path in made.rglob("*.parquet")} == listed


def test_a_dataset_gives_what_its_folder_gives(games, made):
    write(games / "top.json", task="top")
    assert collect(TOY, games, made).summary() == "13 files: 13 new, 0 changed, 0 vanished, 0 as before"
    for options in ({}, {"pattern": "*[1-3].json"}, {"recursive": False}):
        assert_same(games, made, **options)
    with pytest.raises(SourceError, match=r"made: no file matches \*\.JSON"):
        load(made, TOY, pattern="*.JSON")


def test_after_edits_the_dataset_follows_and_without_nothing_is_read_or_written(games, made, monkeypatch):
    collect(TOY, games, made)
    write(games / "a/broken.json", task="mended", age=9)
    for number in (0, 4):
        write(games / f"a/{number}.json", task=str(4 - number), age=9)
    for number in range(4):
        write(games / f"c/{number}.json", task=f"new {number}")
    (games / "a/2.json").unlink()
    shutil.rmtree(games / "b")
    assert collect(TOY, games, made)[:4] == (4, 3, 6, 3)
    assert_same(games, made)
    before = [(path, path.stat().st_mtime_ns) for path in sorted(made.rglob("*.*"))]
    monkeypatch.setattr(reading, "read_files", lambda paths: pytest.fail("read"))
    assert collect(TOY, games, made)[:3] == (0, 0, 0)
    assert [(path, path.stat().st_mtime_ns) for path in sorted(made.rglob("*.*"))] == before


def test_what_a_dataset_has_not_written_is_never_removed(games, made, tmp_path):
    collect(TOY, games, made)
    collect(TOY, games, tmp_path / "other")
    mine = ("mine.parquet", "games/mine.parquet", "mine/000001.parquet", "a/games/000001.parquet")
    kept = [made / name for name in mine]
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
    assert_same_frames(load(games, TOY), load(made, TOY))


@pytest.mark.parametrize("url", ["memory://made//twice", "local://{}/not/there/yet"])
def test_a_dataset_keeps_its_parts_however_its_url_is_written(games, tmp_path, url):
    url = url.format(tmp_path)
    for _ in range(2):
        collect(TOY, games, url)
        assert_same(games, url)
        write(games / "new.json")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"games"', '"../games"', "contains tables that"),
        ('"tables"', '"table"', "not the manifest of a dataset"),
        ("", "{", "not the manifest of a dataset"),
        ("", "[]", "not the manifest of a dataset"),
        ("", "[" * 100_000, "not the manifest of a dataset"),
        ("", '{"format": 99}', r"of another format \(99\); collect it again into a new folder"),
    ],
)
def test_a_manifest_that_no_dataset_has_is_refused(games, made, old, new, words):
    collect(TOY, games, made)
    (made / MANIFEST).write_text((made / MANIFEST).read_text().replace(old, new) if old else new)
    for use in (lambda: load(made, TOY), lambda: collect(TOY, games, made)):
        with pytest.raises(SourceError, match=words):
            use()


def test_an_unfinished_dataset_warns(games, made, monkeypatch):
    def stop(done, of):
        if done > 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(reading, "COMMIT_EVERY", -1)
    monkeypatch.setattr(read, "CHUNK", 3)
    with pytest.raises(KeyboardInterrupt):
        collect(TOY, games, made, progress=stop)
    with pytest.warns(UserWarning, match="was stopped"):
        assert len(load(made, TOY).ledger) == 4  # the one that is not read comes first
    assert collect(TOY, games, made).unchanged == 4
    assert_same(games, made)


def test_a_dataset_of_another_version_warns_and_is_read_anew_when_collected(games, made, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dataset, "code_version", lambda *_: "0.0.1+abc")
        collect(TOY, games, made)
    with pytest.warns(UserWarning, match="collected by another version of evalkit; collect again"):
        assert len(load(made, TOY).runs) == 10
    assert collect(TOY, games, made).new == 12
    assert_same(games, made)


def _while_another_collects(games, out):
    with exclusive(str(out)) as alone:
        assert alone
        collect(TOY, games, out)


REFUSED = {  # of (folder of the games, dataset made of them, its folder)
    "no such file or folder": lambda games, out, here: collect(TOY, games / "nowhere", here / "new"),
    "can't be inside its own source": lambda games, out, here: collect(TOY, games, games / "made"),
    "linked: a dataset can't be inside": lambda games, out, here: collect(TOY, games, here / "link/linked"),
    "url: a dataset can't be inside": lambda games, out, here: collect(TOY, games, f"file://{games}/url"),
    "not belong to a dataset, such as thesis.txt": lambda games, out, here: collect(TOY, games, here / "other"),
    "a dataset, such as thesis": lambda games, out, here: collect(TOY, games, here / "other/thesis.txt"),
    r"zip://a\.zip: a dataset can't be written into": lambda games, out, here: collect(TOY, games, "zip://a.zip"),
    "written into an archive; name a folder": lambda games, out, here: collect(TOY, games, "tar://ds::mc.tar"),
    "was collected from toy logs in .*; use the same": lambda games, out, here: collect(TOY, games / "a", out),
    r", pattern \*, recursive True; use the same": lambda games, out, here: collect(TOY, games, out, pattern="*.txt"),
    "was collected from toy logs": lambda games, out, here: collect(OTHER, games, out),
    "made: a dataset of toy logs, not of other": lambda games, out, here: load(out, OTHER),
    "exists any more": lambda games, out, here: (shutil.rmtree(games), games.mkdir(), collect(TOY, games, out)),
    "no path was given": lambda games, out, here: collect(TOY, [], out),
    "is a dataset itself": lambda games, out, here: collect(TOY, [games, out], here / "new"),
    "can't be loaded together with other sources": lambda games, out, here: load([games, out], TOY),
    "a dataset can't be followed; name the folder": lambda games, out, here: Following(TOY, out, {}),
    "another process is collecting": lambda games, out, here: _while_another_collects(games, out),
    "remove the dataset and collect": lambda games, out, here: load(out, GROWN),
    "damaged .*; remove the dataset and collect it again": lambda games, out, here: (
        [path.write_bytes(b"PAR1") for path in (out / "games").iterdir()] and load(out, TOY)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_impossible_outputs_of_collect_are_refused_and_nothing_is_written(games, made, tmp_path, message):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("my only copy")
    (tmp_path / "link").symlink_to(games)
    collect(TOY, games, made)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SourceError, match=message):
        REFUSED[message](games, made, tmp_path)
    assert (tmp_path / "other" / "thesis.txt").read_text() == "my only copy"
    assert set(tmp_path.rglob("*")) <= before  # nothing is left behind


@pytest.mark.parametrize("first", ["a", "a/0.json"])
def test_sources_may_be_added_also_with_a_file_that_was_above(games, made, first):
    kind = replace(TOY, files=FileRules(context=lambda files: [str(games / "b/1.json")]))
    collect(kind, games / first, made)
    sources = [games / first, games / "a", games / "b"]
    assert collect(kind, sources, made).vanished == 0
    assert_same([games / "a", games / "b"], made, kind)


def test_a_folder_that_can_not_be_listed_keeps_its_files_and_is_listed_again_later(games, made, monkeypatch):
    collect(TOY, games, made)
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(sources, "SETTLED", -10)  # as if folders had been left alone for a while
    (games / "b/new.txt").write_text("")  # else the folder is not listed again
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        assert collect(TOY, games, made).vanished == 0
        ledger = load(made, TOY).ledger
        (entry,) = ledger[ledger["source"] == str(games / "b")].itertuples()
        assert (entry.status, entry.reason.partition(":")[0]) == ("failed", "the folder can't be listed")
        with pytest.raises(SourceError, match=r"/b: Permission denied"):
            load(games / "b", TOY)
    collect(TOY, games, made)
    assert_same(games, made)
