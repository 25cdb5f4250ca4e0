"""A source is looked at again and again: what is read anew, what counts as being written, what is waited for."""

import json
import os
import shutil

import pytest
from evalkit.io.follow import SETTLE, Watch

from evalkit.io import SourceError
from evalkit.io import follow as follow_module

START = 2_000_000_000.0


class Folder:
    """A folder of files that a test writes in steps, with a clock of its own, and a count of what was parsed."""

    def __init__(self, root, **options):
        self.root, self.now, self.parsed = root, START, []
        self.watch = Watch(root, self.parse, lambda value: value is None, clock=lambda: self.now, **options)

    def parse(self, path, data):
        self.parsed.append(os.path.relpath(path, self.root))
        try:
            return json.loads(b"" if isinstance(data, OSError) else data)
        except ValueError:
            return None

    def write(self, name, text, age=0.0):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (self.now - age, self.now - age))

    def look(self, later=0.0):
        """Look once, some seconds later: what was parsed now, all results, and what is being written."""
        self.now += later
        self.parsed.clear()
        self.watch.look()
        results = {os.path.relpath(path, self.root): value for path, value in self.watch.results.items()}
        return self.parsed, results, {os.path.relpath(path, self.root) for path in self.watch.writing}


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path / "runs")
    folder.root.mkdir()
    return folder


def test_only_what_has_changed_is_read_again(folder):
    folder.write("a.json", "1", age=60)
    folder.write("b.json", "2", age=60)
    assert folder.look() == (["a.json", "b.json"], {"a.json": 1, "b.json": 2}, set())
    assert folder.watch.status() == "2 of 2 files new"
    assert folder.look(5) == ([], {"a.json": 1, "b.json": 2}, set())
    assert (folder.watch.changed, folder.watch.status()) == (False, "0 of 2 files new")
    folder.write("b.json", "22")
    folder.write("c/d.json", "3")
    assert folder.look(5) == (["b.json", "c/d.json"], {"a.json": 1, "b.json": 22, "c/d.json": 3}, set())
    assert folder.watch.status() == "2 of 3 files new"


def test_a_file_that_goes_away_is_forgotten(folder):
    folder.write("a.json", "1")
    folder.write("b.json", "{")
    assert folder.look()[2] == {"b.json"}
    (folder.root / "b.json").unlink()
    assert folder.look(1) == ([], {"a.json": 1}, set())
    assert folder.watch.changed


@pytest.mark.parametrize("half", ["", '{"turns": [', "[1, 2"])
def test_a_half_written_file_is_read_until_it_is_whole(folder, half):
    folder.write("a.json", half)
    assert folder.look() == (["a.json"], {"a.json": None}, {"a.json"})
    assert folder.watch.status() == "1 of 1 files new, 1 being written"
    assert folder.look(1) == (["a.json"], {"a.json": None}, {"a.json"})
    folder.write("a.json", "[1, 2, 3]")
    assert folder.look(1) == (["a.json"], {"a.json": [1, 2, 3]}, set())
    assert folder.look(1)[0] == []


def test_a_file_that_stays_broken_fails_and_is_left_alone_until_it_changes(folder):
    folder.write("a.json", "[1, 2")
    folder.look()
    assert folder.look(SETTLE - 1)[2] == {"a.json"}
    assert folder.look(1) == (["a.json"], {"a.json": None}, set())
    assert folder.look(1)[0] == []
    folder.write("a.json", "[1, 2, 3]")
    assert folder.look(1) == (["a.json"], {"a.json": [1, 2, 3]}, set())


def test_what_a_file_said_stands_while_it_is_written_anew(folder):
    folder.write("a.json", "1")
    folder.look()
    folder.write("a.json", "")
    assert folder.look(1) == (["a.json"], {"a.json": 1}, {"a.json"})
    assert folder.look(SETTLE) == (["a.json"], {"a.json": None}, set())


@pytest.mark.parametrize(("age", "writing"), [(SETTLE - 1, True), (SETTLE, False), (-3600, True)])
def test_at_first_a_file_tells_its_own_age(folder, age, writing):
    folder.write("a.json", "[", age)
    assert folder.look()[2] == ({"a.json"} if writing else set())
    assert folder.look(SETTLE)[2] == set()  # also where its clock is wrong


@pytest.mark.parametrize("age", [3600, -3600])
def test_later_the_clock_of_the_files_does_not_matter(folder, age):
    folder.look()
    folder.write("a.json", "[", age)
    assert folder.look(1)[2] == {"a.json"}
    assert folder.look(SETTLE)[2] == set()


def test_a_file_that_can_not_be_read_for_a_moment_is_read_again(folder, monkeypatch):
    folder.write("a.json", "1", age=3600)
    real, failing = follow_module.parse_files, [True]

    def parse_files(paths, parse, **options):
        return (parse(path, OSError(5, "slow down")) for path in paths) if failing else real(paths, parse, **options)

    monkeypatch.setattr(follow_module, "parse_files", parse_files)
    folder = Folder(folder.root)
    assert folder.look() == (["a.json"], {"a.json": None}, set())
    failing.clear()
    assert folder.look(5) == (["a.json"], {"a.json": 1}, set())


def test_how_long_files_and_folders_were_left_alone(folder):
    folder.write("a.json", "1", age=60)
    folder.write("b/c.json", "1", age=60)
    folder.look()
    path = str(folder.root / "a.json")
    assert folder.watch.quiet(path) == 60
    assert folder.watch.quiet(str(folder.root / "b")) == 0
    folder.look(5)
    assert folder.watch.quiet(path) == 65
    assert folder.watch.quiet(str(folder.root / "b")) == 5
    folder.write("a.json", "12", age=60)
    folder.look(5)
    assert folder.watch.quiet(path) == 0


def test_sources_that_are_not_there_yet_are_waited_for(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    watch = Watch([here, f"{there}/exp_*"], lambda path, data: data, lambda value: False)
    watch.look()
    assert (watch.results, watch.problem) == ({}, "")
    assert watch.notes() == [
        f"waiting for {here}: no such file or folder",
        f"waiting for {there}/exp_*: no file matches",
    ]
    here.mkdir()
    (here / "a").write_text("x")
    watch.look()
    assert list(watch.results.values()) == [b"x"]
    assert watch.notes() == [f"waiting for {there}/exp_*: no file matches"]
    (there / "exp_1").mkdir(parents=True)
    (there / "exp_1/b").write_text("y")
    watch.look()
    assert sorted(watch.results.values()) == [b"x", b"y"]
    assert watch.notes() == []
    (there / "exp_2").mkdir()
    (there / "exp_2/c").write_text("z")
    watch.look()
    assert sorted(watch.results.values()) == [b"x", b"y", b"z"]


def test_a_look_that_fails_keeps_what_is_known_and_the_next_one_goes_on(folder, monkeypatch):
    folder.write("a.json", "1")
    folder.look()
    with monkeypatch.context() as patch:
        patch.setattr(folder.watch, "_list", _slow_down)
        assert folder.look(5) == ([], {"a.json": 1}, set())
        assert folder.watch.notes() == ["could not look, so this may be old: s3://b: slow down"]
    folder.write("b.json", "2")
    assert folder.look(5) == (["b.json"], {"a.json": 1, "b.json": 2}, set())
    assert folder.watch.notes() == []


def _slow_down(source):
    raise SourceError("s3://b: slow down")


def test_a_source_that_was_there_and_goes_away_is_a_problem_not_an_empty_one(folder):
    folder.write("a.json", "1")
    folder.look()
    shutil.rmtree(folder.root)
    assert folder.look(5)[1] == {"a.json": 1}
    assert "no such file or folder" in folder.watch.notes()[0]


def test_a_url_is_followed_by_the_marks_of_its_listing():
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.pipe("/follow/a.json", b"1")
    parsed = []
    watch = Watch("memory://follow", lambda path, data: parsed.append(path) or data, lambda value: False)
    watch.look()
    watch.look()
    assert parsed == ["memory://follow/a.json"]
    files.pipe("/follow/a.json", b"22")
    files.pipe("/follow/b.json", b"3")
    watch.look()
    assert list(watch.results.values()) == [b"22", b"3"]
    assert len(parsed) == 3
    files.rm("/follow", recursive=True)


def test_a_dataset_is_refused_since_nothing_in_it_is_a_log(folder):
    folder.write("evalkit-dataset.json", "{}", age=60)
    with pytest.raises(SourceError, match="a dataset can't be followed; name the folder"):
        folder.look()
