import json
import os
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit import crafter, mindcraft
from evalkit.io import Column, cached_frames, frame, ledger, store

COLUMNS = (
    Column("text", "str", ""),
    Column("whole", "int", ""),
    Column("maybe", "int?", ""),
    Column("number", "float", ""),
    Column("flag", "bool", ""),
    Column("perhaps", "bool?", ""),
    Column("things", "object", ""),
)
ROWS = [
    {"text": "<b>é\n", "whole": 1, "maybe": None, "number": float("nan"), "flag": True, "things": ["a", {"b": [None]}]},
    {"text": None, "whole": -(2**60), "maybe": 3, "number": 1e-300, "perhaps": False, "things": None},
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with two files that were left alone for a while; the store is an empty one."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "store"))
    (tmp_path / "logs").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "logs" / name).write_text("{}")
    _age(tmp_path / "logs")
    return tmp_path / "logs"


def _age(folder, seconds=100):
    for path in folder.iterdir():
        os.utime(path, (time.time() - seconds,) * 2)


def _nested(depth):
    return [_nested(depth - 1)] if depth else []


class Build:
    """Builds frames, and counts how often."""

    def __init__(self, rows=ROWS):
        self.rows, self.times = rows, 0

    def __call__(self):
        self.times += 1
        return {"runs": frame(self.rows, COLUMNS), "none": frame([], COLUMNS)}


def files(folder):
    return sorted(folder.iterdir())


def entries(root):
    return sorted(path for path in root.iterdir() if path.is_dir())


def test_frames_are_built_once_and_come_back_equal(folder):
    build = Build()
    first = cached_frames("x", files(folder), build)
    second = cached_frames("x", files(folder), build)
    assert build.times == 1
    assert list(second) == ["runs", "none"]
    for name in first:
        pd.testing.assert_frame_equal(first[name], second[name])
    assert second["runs"]["things"][0] == ["a", {"b": [None]}]
    assert second["runs"]["things"][1] is None


def test_the_order_of_files_and_options_does_not_count(folder):
    build = Build()
    cached_frames("x", files(folder), build, a=1, b=[2])
    cached_frames("x", reversed(files(folder)), build, b=[2], a=1)
    assert build.times == 1


def _write(folder):
    (folder / "a.json").write_text("[]")
    os.utime(folder / "a.json", (1, 1))


CHANGES = {
    "another file": lambda folder: (folder / "c.json").touch() or _age(folder),
    "a file less": lambda folder: (folder / "a.json").unlink(),
    "other content": _write,
    "only its time": _age,
    "only its rights": lambda folder: (folder / "a.json").chmod(0o600),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_files_are_read_again(folder, change):
    build = Build()
    cached_frames("x", files(folder), build)
    CHANGES[change](folder)
    cached_frames("x", files(folder), build)
    assert build.times == 2


def test_other_kinds_options_and_code_have_entries_of_their_own(folder, monkeypatch):
    build = Build()
    cached_frames("x", files(folder), build)
    cached_frames("y", files(folder), build)
    cached_frames("x", files(folder), build, scale="auto")
    monkeypatch.setattr(store, "code_version", lambda: "0+1")
    cached_frames("x", files(folder), build)
    assert build.times == 4


def test_relative_paths_mean_other_files_in_another_folder(folder, monkeypatch):
    build = Build()
    monkeypatch.chdir(folder)
    cached_frames("x", ["a.json"], build)
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub")
    cached_frames("x", ["a.json"], build)
    assert build.times == 2


def test_a_file_that_appears_later_counts(folder):
    build = Build()
    cached_frames("x", [folder / "later"], build)
    (folder / "later").touch()
    _age(folder)
    cached_frames("x", [folder / "later"], build)
    assert build.times == 2


def test_files_still_being_written_are_not_kept(folder, tmp_path):
    (folder / "a.json").write_text("{}")
    build = Build()
    cached_frames("x", files(folder), build)
    cached_frames("x", files(folder), build)
    assert build.times == 2
    assert not (tmp_path / "store").exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_damaged_entry_is_built_again(folder, tmp_path, data):
    build = Build()
    expected = cached_frames("x", files(folder), build)
    (entry,) = entries(tmp_path / "store")
    path = data.draw(st.sampled_from(sorted(entry.iterdir())))
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[at:]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    found = cached_frames("x", files(folder), build)
    for name in expected:
        pd.testing.assert_frame_equal(expected[name], found[name])


def test_a_lost_file_of_an_entry_is_noticed(folder, tmp_path):
    build = Build()
    cached_frames("x", files(folder), build)
    (entry,) = entries(tmp_path / "store")
    (entry / "runs.parquet").unlink()
    cached_frames("x", files(folder), build)
    assert build.times == 2
    cached_frames("x", files(folder), build)
    assert build.times == 2


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), pd.NA, (1, 2), [{"a": (1,)}], {1: 2}, OrderedDict(a=1), "\ud83d\ude00", _nested(900)]
)
def test_what_cannot_be_kept_is_returned_all_the_same(folder, tmp_path, value):
    build = Build([{**ROWS[0], "things": value}])
    assert cached_frames("x", files(folder), build)["runs"]["things"][0] is value
    assert entries(tmp_path / "store") == []


def test_text_that_arrow_cannot_hold_is_returned_all_the_same(folder, tmp_path):
    def build():
        return {"runs": pd.DataFrame({"text": pd.Series(["\ud83d"], dtype=object), "n": 1})}

    assert cached_frames("x", files(folder), build)["runs"]["text"][0] == "\ud83d"
    assert cached_frames("x", files(folder), build)["runs"]["text"][0] == "\ud83d"


def test_a_store_that_cannot_be_written_is_done_without(folder, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "file"))
    build = Build()
    assert len(cached_frames("x", files(folder), build)["runs"]) == 2


def test_the_store_can_be_turned_off(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    build = Build()
    cached_frames("x", files(folder), build)
    cached_frames("x", files(folder), build)
    assert build.times == 2
    assert not (tmp_path / "store").exists()


def test_the_store_lies_where_caches_lie(monkeypatch, tmp_path):
    monkeypatch.delenv("EVALKIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store.store_path() == tmp_path / "evalkit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert store.store_path() == Path("~/.cache/evalkit").expanduser()


def test_an_error_while_building_is_passed_on_and_leaves_nothing(folder, tmp_path):
    def build():
        raise KeyError("x")

    with pytest.raises(KeyError):
        cached_frames("x", files(folder), build)
    assert list((tmp_path / "store").iterdir()) == []


def test_old_and_surplus_entries_go(folder, tmp_path, monkeypatch):
    for kind in ("a", "b", "c"):
        cached_frames(kind, files(folder), Build())
    first, second, third = entries(tmp_path / "store")
    os.utime(first, (1, 1))
    os.utime(second, (time.time() - 100,) * 2)
    size = sum(file.stat().st_size for file in third.iterdir())
    monkeypatch.setattr(store, "KEPT_BYTES", size + 1)
    cached_frames("d", files(folder), Build())
    assert [path.name[0] for path in entries(tmp_path / "store")] == ["c", "d"]


NAME = "mindcraft-" + 32 * "0"
ASIDE = f".{NAME}.new-abc_1234"


def _put(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _link(path, to):
    _put(to / "entry.json", "{}")
    path.symlink_to(to)


FOREIGN = {
    "a file": lambda root: _put(root / "notes.txt", "x"),
    "a folder": lambda root: _put(root / "thesis" / "chapter.txt", "x"),
    "an empty folder": lambda root: (root / "later").mkdir(),
    "an empty folder with a store's name": lambda root: (root / NAME).mkdir(),
    "a folder with a store's name": lambda root: _put(root / NAME / "thesis.txt", "x"),
    "tables in a folder with a store's name": lambda root: _put(root / NAME / "part.parquet", "x"),
    "an entry with something else in it": lambda root: (
        _put(root / NAME / "entry.json", "{}"),
        _put(root / NAME / "mine.txt", "x"),
    ),
    "an entry with a folder in it": lambda root: (
        _put(root / NAME / "entry.json", "{}"),
        _put(root / NAME / "runs.parquet" / "a.txt", "x"),
    ),
    "an entry with a link in it": lambda root: (
        _put(root / NAME / "entry.json", "{}"),
        (root / NAME / "runs.parquet").symlink_to(root.parent / "logs" / "a.json"),
    ),
    "a link with a store's name": lambda root: _link(root / NAME, root.parent / "elsewhere"),
    "a link with the name of what is not whole": lambda root: _link(root / ASIDE, root.parent / "elsewhere"),
    "a folder that is almost aside": lambda root: _put(root / ".new-abc_1234" / "mine.parquet", "x"),
    "a file with a lock's name": lambda root: _put(root / f".{NAME}.lock", "x"),
    "a lock of something else": lambda root: _put(root / ".my.lock"),
    "a file with an entry's name": lambda root: _put(root / NAME, "x"),
}


def _everything(root):
    return {path: path.is_file() and path.read_bytes() for path in root.rglob("*")}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_the_store_has_not_written_stays(folder, tmp_path, monkeypatch, name):
    root = tmp_path / "store"
    root.mkdir()
    FOREIGN[name](root)
    for path in [*root.rglob("*"), *tmp_path.glob("elsewhere*")]:
        os.utime(path, (1, 1), follow_symlinks=False)
    before = _everything(tmp_path)
    monkeypatch.setattr(store, "KEPT_BYTES", 0)
    cached_frames("x", files(folder), Build())
    after = _everything(tmp_path)
    assert {path: after.get(path) for path in before} == before


def test_the_size_of_other_things_does_not_count(folder, tmp_path, monkeypatch):
    _put(tmp_path / "store" / "film.mkv", 100_000 * "x")
    _put(tmp_path / "store" / "films" / "film.mkv", 100_000 * "x")
    monkeypatch.setattr(store, "KEPT_BYTES", 100_000)
    for kind in ("a", "b"):
        cached_frames(kind, files(folder), Build())
    assert [path.name[0] for path in entries(tmp_path / "store")] == ["a", "b", "f"]


def test_a_damaged_entry_that_holds_something_else_stays(folder, tmp_path):
    expected = cached_frames("x", files(folder), Build())
    (entry,) = entries(tmp_path / "store")
    _put(entry / "entry.json", "{")
    _put(entry / "mine.txt", "my only copy")
    found = cached_frames("x", files(folder), Build())
    assert (entry / "mine.txt").read_text() == "my only copy"
    pd.testing.assert_frame_equal(found["runs"], expected["runs"])


def test_what_a_killed_process_has_left_goes(folder, tmp_path):
    root = tmp_path / "store"
    _put(root / ASIDE / "runs.parquet", "x")
    _put(root / f".{NAME}.lock")
    for path in (root / ASIDE, root / f".{NAME}.lock"):
        os.utime(path, (1, 1))
    cached_frames("x", files(folder), Build())
    assert [path.name[0] for path in root.iterdir()] == ["x"]


SLOW = """
import sys, time
import pandas as pd
from evalkit.io import cached_frames
def build():
    open(sys.argv[1] + "/../built-" + sys.argv[2], "w").close()
    time.sleep(0.5)
    return {"runs": pd.DataFrame({"a": range(1000)})}
assert len(cached_frames("x", [sys.argv[1] + "/a.json"], build)["runs"]) == 1000
"""


def test_processes_at_the_same_time_build_once(folder, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    commands = [[sys.executable, "-c", SLOW, str(folder), str(i)] for i in range(3)]
    processes = [subprocess.Popen(command, env=environment) for command in commands]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert len(list(tmp_path.glob("built-*"))) == 1
    assert len(list((tmp_path / "store").iterdir())) == 1


@pytest.mark.parametrize("load", [mindcraft.load, crafter.load])
def test_the_store_keeps_to_the_order_of_the_sources(folder, load):
    (folder / "b.json").write_text(json.dumps({"turns": [], "session_id": "b", "event_history": []}))
    (folder / "a.json").write_text(json.dumps({"turns": [], "session_id": "a", "event_history": []}))
    _age(folder)
    for names in (["a", "b"], ["b", "a"], ["a", "b"]):
        found = load([folder / f"{name}.json" for name in names])
        sources = (found.agents if load is mindcraft.load else found.episodes)["source"]
        assert [os.path.basename(source)[0] for source in sources] == names


def test_a_file_behind_a_url_that_could_not_be_read_is_tried_again(folder):
    def build(reason):
        rows = [{"source": "s3://x/a.json", "status": "failed", "reason": reason}]
        return {"ledger": frame(rows, ledger.COLUMNS)}

    reasons = ("TimeoutError: slow", "JSONDecodeError: truncated", "JSONDecodeError: built again")
    found = [cached_frames("x", files(folder), lambda reason=reason: build(reason))["ledger"] for reason in reasons]
    assert [ledger["reason"][0] for ledger in found] == [reasons[0], reasons[1], reasons[1]]
