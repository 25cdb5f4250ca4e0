"""A source is looked at again and again: what is read anew, what counts as being written, what is waited for."""

import json
import os
import re
import time
from dataclasses import replace
from unittest import mock

import fsspec
import pytest

import evalkit
from evalkit.display.follow import SETTLE, Following
from evalkit.io.frames import summarise
from evalkit.kinds import Command
from evalkit.kinds.registry import kind_named
from tests.kinds.toy import TOY, write
from tests.mindcraft.builders import write_all

START = 1_700_000_000.0


class Folder:
    """A folder of games that a test writes in steps, with a clock of its own, and a record of what was parsed."""

    def __init__(self, root, sources=None, **options):
        self.root, self.now, self.parsed = root, START, []
        kind = replace(TOY, parse=self._parse, command=Command(progress=lambda look, options: ("", False)))
        self.following = Following(kind, sources or root, {}, clock=lambda: self.now, **options)

    def _parse(self, path, data):
        self.parsed.append(os.path.relpath(path, self.root))
        return TOY.parse(path, data)

    def write(self, name, text, age=0.0):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (self.now - age, self.now - age))

    def look(self, later=0.0):
        """Look once, some seconds later: what was parsed now, the tasks by file, and what is being written."""
        self.now += later
        self.parsed.clear()
        self.view = self.following.look()
        runs = self.following.logs.runs if self.following.logs else ()
        tasks = {os.path.relpath(run.source, self.root): run.task_id for run in runs.itertuples()} if len(runs) else {}
        return self.parsed, tasks, {os.path.relpath(path, self.root) for path in self.following.changes.being_written}


def game(task):
    return json.dumps({"moves": [], "task": task})


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path / "runs")
    folder.root.mkdir()
    return folder


ONE, TWO = game("1"), game("2")
BROKEN = "failed: a.json: JSONDecodeError"
# looks: seconds later, files that are written before with their text (None: removed), and what is then parsed, the
# tasks by file, the files that are being written, and words of the status or the text
LOOKS = {
    "what has changed is read again, and what goes away is forgotten": [
        (0, {"a.json": ONE, "b.json": TWO}, ["a.json", "b.json"], {"a.json": "1", "b.json": "2"}, [], "2 of 2 files"),
        (5, {}, [], {"a.json": "1", "b.json": "2"}, [], "0 of 2 files new"),
        (5, {"b.json": ONE, "c/d.json": "{"}, ["b.json", "c/d.json"], {"a.json": "1", "b.json": "1"}, ["c/d.json"],
         "2 of 3 files new, 1 being written"),
        (1, {"c/d.json": None}, [], {"a.json": "1", "b.json": "1"}, [], "0 of 2 files new"),
        (1, {"a.json": None, "b.json": None}, [], {}, [], "0 of 0 files new"),
    ],
    **{
        f"half written: {half}": [
            (0, {"a.json": half}, ["a.json"], {}, ["a.json"], "1 of 1 file new, 1 being written"),
            (1, {}, ["a.json"], {}, ["a.json"], "being written"),
            (1, {"a.json": ONE}, ["a.json"], {"a.json": "1"}, [], ""),
        ]
        for half in ("", '{"moves": [', ONE[:-1])
    },
    "what stays broken fails and is left alone until it changes": [
        (0, {"a.json": "[1, 2"}, ["a.json"], {}, ["a.json"], ""),
        (SETTLE - 1, {}, ["a.json"], {}, ["a.json"], ""),
        (1, {}, ["a.json"], {}, [], BROKEN),
        (1, {}, [], {}, [], BROKEN),
        (1, {"a.json": ONE}, ["a.json"], {"a.json": "1"}, [], ""),
    ],
    "what a file said stands while it is written anew": [
        (0, {"a.json": ONE}, ["a.json"], {"a.json": "1"}, [], ""),
        (1, {"a.json": ""}, ["a.json"], {"a.json": "1"}, ["a.json"], ""),
        (SETTLE, {}, ["a.json"], {}, [], BROKEN),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_each_look_reads_what_has_changed_and_waits_for_what_is_being_written(folder, name):
    for later, written, *expected, words in LOOKS[name]:
        folder.now += later
        for path, text in written.items():
            folder.write(path, text) if text is not None else (folder.root / path).unlink()
        parsed, tasks, writing = folder.look()
        assert [parsed, tasks, sorted(writing)] == expected
        assert words in f"{folder.view.status}\n{folder.view.text}"
        assert BROKEN not in folder.view.text or words == BROKEN


@pytest.mark.parametrize(("age", "is_writing"), [(SETTLE - 1, True), (SETTLE, False), (-3600, True)])
def test_a_file_tells_its_own_age_at_first_and_later_its_clock_does_not_matter(folder, age, is_writing):
    folder.write("a.json", "[", age)
    assert folder.look()[2] == ({"a.json"} if is_writing else set())
    assert folder.look(SETTLE)[2] == set()  # also where its clock is wrong
    folder.write("b.json", "[", age)
    assert folder.look(1)[2] == {"b.json"}
    assert folder.look(SETTLE)[2] == set()


def test_sources_that_are_not_there_yet_are_waited_for(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    folder = Folder(tmp_path, [here, f"{there}/exp_*"])
    assert folder.look()[1] == {}
    waiting = f"waiting for {here}: no such file or folder"
    assert folder.view.text.splitlines() == [waiting, "", "no toy game yet"]
    write(here / "a.json", task="x")
    folder.look()
    assert folder.view.text.splitlines()[0] == f"waiting for {there}/exp_*: no file matches"
    write(there / "exp_1/b.json", task="y")
    assert folder.look()[1] == {"here/a.json": "x", "there/exp_1/b.json": "y"}
    assert "waiting" not in folder.view.text
    write(there / "exp_2/c.json", task="z")
    assert list(folder.look()[1].values()) == ["x", "y", "z"]


def test_a_look_that_fails_keeps_what_is_known_and_the_next_one_goes_on(folder):
    folder.write("a.json", ONE, age=60)
    folder.look()
    folder.root.rename(away := folder.root.with_name("away"))
    assert folder.look(5) == ([], {"a.json": "1"}, set())
    assert re.match("could not update, so this may be old: .*: no such file or folder\n", folder.view.text)
    assert not folder.view.done
    away.rename(folder.root)
    folder.write("b.json", TWO)
    assert folder.look(5) == (["b.json"], {"a.json": "1", "b.json": "2"}, set())
    assert "could not look" not in folder.view.text


def test_a_url_is_followed_by_the_states_of_its_listing():
    files = fsspec.filesystem("memory")
    files.pipe("/follow/a.json", ONE.encode())
    following = Following(TOY, "memory://follow", {})
    following.look()
    files.pipe("/follow/a.json", game("22").encode())
    files.pipe("/follow/b.json", game("3").encode())
    following.look()
    assert following.changes[:4] == (1, 1, 0, 0)
    assert following.logs.runs["task_id"].tolist() == ["22", "3"]
    files.rm("/follow", recursive=True)


def test_a_look_at_which_nothing_has_changed_lists_no_folder(folder, monkeypatch):
    for number in range(3):
        folder.write(f"{number}/a.json", ONE, age=60)
        os.utime(folder.root / str(number), (START - 60, START - 60))
    folder.look()
    listed, now = mock.Mock(wraps=os.scandir), time.time()
    monkeypatch.setattr("evalkit.io.sources.time.time", lambda: now + 60)  # the folders are old by then
    folder.look()
    monkeypatch.setattr("evalkit.io.sources.os.scandir", listed)
    folder.look(5)
    assert listed.call_count == 0
    folder.write("1/b.json", TWO, age=0)
    assert folder.look(5)[0] == ["1/b.json"]
    assert listed.call_count == 4


def test_the_last_line_has_the_statuses_of_the_ledger(tmp_path):
    texts = {"Ana_0": 1, "Beto_0": "[1, 2]", "Cora_0": "null"}  # lists and null are unusable only next to a log
    write_all(tmp_path, {f"x/oak/cook_1/{name}.json": text for name, text in texts.items()})
    following = Following(kind_named("mindcraft"), str(tmp_path), {}, clock=lambda: time.time() + 60)
    statuses = evalkit.load(tmp_path, "mindcraft").ledger["status"]
    assert statuses.eq("failed").any()
    assert summarise(statuses) in following.look().text
