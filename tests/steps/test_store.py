import json
import os
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import msgspec
import pandas as pd
import pytest

from evalkit.steps import Options, evaluates, load, table
from evalkit.steps.registry import EVALUATORS
from tests.steps.cases import CELLS, ENRICHMENT

FRAMES = ("steps", "checks", "ledger")


@pytest.fixture
def folder(tmp_path, monkeypatch, make):
    """A folder with two histories that were left alone for a while, and an empty store."""
    monkeypatch.setenv("EVALKIT_CACHE", str(tmp_path / "store"))
    (tmp_path / "logs").mkdir()
    state = {
        "execution_history": [make("process_cells", CELLS), make("f", ENRICHMENT, kind="structured")],
        "execution_plan": {"steps": [{"function_name": "f"}]},
    }
    write(tmp_path / "logs" / "a.json", state)
    write(tmp_path / "logs" / "b.json", [make("f", None, False, error="café")])
    return tmp_path / "logs"


@pytest.fixture
def readings(monkeypatch):
    """The lists of files that were read and judged; evaluators that a test registers are gone afterwards."""
    found, read = [], table.read_listed
    monkeypatch.setattr(table, "read_listed", lambda files, *rest: found.append(files) or read(files, *rest))
    before = dict(EVALUATORS)
    yield found
    EVALUATORS.clear()
    EVALUATORS.update(before)


def write(path, value):
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    settle(path)


def settle(path):
    """Date a file back: what is still being written is not kept."""
    os.utime(path, (time.time() - 60,) * 2)


def assert_equal(one, other):
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))
    assert repr(one.histories) == repr(other.histories)


def test_what_was_read_once_is_not_read_again_and_equal(folder, readings):
    first, second = load(folder), load(folder)
    assert len(readings) == 1
    assert_equal(first, second)
    assert [history.plan is None for history in second.histories] == [False, True]
    assert len(second.checks) > len(second.steps) == 3


def test_nothing_at_all_comes_back_as_nothing(folder, readings):
    assert_equal(load([""]), load([""]))
    assert len(readings) == 1


def test_a_name_that_is_not_utf8_comes_back_as_it_was(folder, readings):
    name = os.fsdecode(os.fsencode(folder / "b") + b"\xff.json")
    os.rename(folder / "b.json", name)
    assert_equal(load(folder), load(folder))
    assert len(readings) == 1
    assert load(folder).histories[1].source == name


CHANGES = {
    "a history": lambda folder, make: write(folder / "a.json", [make("g", "x")]),
    "a new history": lambda folder, make: write(folder / "c.json", [make("g", "x")]),
    "one less": lambda folder, make: (folder / "b.json").unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(folder, readings, make, change):
    before = load(folder)
    CHANGES[change](folder, make)
    after = load(folder)
    assert len(readings) == 2
    assert not before.steps.equals(after.steps)


def test_what_a_database_was_told_last_is_seen(folder, make):
    path = folder / "c.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        for number in (1, 2):
            state = {"channel_values": {"execution_history": [make("f", "x")] * number}}
            row = ("t", "", str(number), json.dumps(state).encode())
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, 'json', ?)", row)
            connection.commit()
            for file in folder.glob("c.sqlite*") if number == 1 else [folder / "c.sqlite-wal"]:
                settle(file)
            assert len(load(path).steps) == number


def test_the_order_of_sources_and_the_options_count(folder, readings):
    a, b = str(folder / "a.json"), str(folder / "b.json")
    assert [history.source for history in load([b, a]).histories] == [b, a]
    assert [history.source for history in load([a, b]).histories] == [a, b]
    assert load([a, b], Options(text_limit=len(CELLS))).steps["truncated"].tolist() == [True, False, False]
    assert len(readings) == 3
    load([a, b], Options(text_limit=len(CELLS)))
    load([a, b], Options(critical_errors=frozenset(sorted(Options().critical_errors, reverse=True))))
    assert len(readings) == 3


def test_evaluators_of_ones_own_are_asked_every_time(folder, readings):
    load(folder)
    for score in (0.25, 0.75):
        evaluates("f")(lambda record, options, score=score: {"checks": [{"name": "mine", "score": score}]})
        found = load(folder).checks.set_index("name")
        assert found.loc["mine", "score"] == score
    assert len(readings) == 3
    del EVALUATORS["f"]
    assert "mine" not in set(load(folder).checks["name"])
    assert len(readings) == 3


@dataclass(frozen=True)
class Lenient(Options):
    """Options for which no error is critical."""

    def is_critical(self, error_type, message):
        """Say no."""
        return False


def test_options_with_code_of_their_own_are_asked_every_time(folder, readings, make):
    write(folder / "b.json", [make("f", None, False, error="No such file or directory")])
    assert "critical failure" in set(load(folder, Options()).steps["verdict"])
    assert "critical failure" not in set(load(folder, Lenient()).steps["verdict"])


def checkpoint(value):
    """Write a database of one thread whose step has this result."""
    record = {"step": {"function_name": "f"}, "success": True, "result": value}
    state = {"channel_values": {"execution_history": [record]}}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        row = ("t", "", "1", "msgpack", msgspec.msgpack.encode(state))
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
        return connection.serialize()


def nested(depth):
    return b'[{"step": {}, "success": true, "result": ' + b"[" * depth + b"]" * depth + b"}]"


UNKEPT = {
    "numbers as keys": ("c.sqlite", checkpoint({1: "a", 2: "b"})),
    "bytes": ("c.sqlite", checkpoint(b"\xff\x00")),
    "a list that was cut": ("c.json", b'[{"step": {"parameters": "{\'a\': [1, 2"}, "success": true}]'),
    "hundreds of brackets": ("c.json", nested(800)),
}
KEPT = {
    "half a character": ("c.json", b'[{"step": {}, "success": true, "result": "\\ud83d"}]'),
    "no number": ("c.sqlite", checkpoint([float("nan"), float("inf"), -0.0])),
    "big numbers": ("c.json", b'[{"step": {}, "success": true, "result": [1e999, 123456789012345678901234567890]}]'),
    "a hundred brackets": ("c.json", nested(100)),
    "tens of thousands of brackets": ("c.json", nested(50_000)),
    "truncated": ("c.json", b'[{"step": {}, "succ'),
    "no history": ("c.json", b'{"a": 1}'),
}


@pytest.mark.parametrize(("name", "content"), [*UNKEPT.values(), *KEPT.values()], ids=[*UNKEPT, *KEPT])
def test_what_comes_from_the_store_is_never_another(folder, tmp_path, readings, name, content):
    write(folder / name, content)
    read, again = load(folder), load(folder)  # beside histories: alone, what can't be read is an error
    assert_equal(read, again)
    assert len(readings) == 1 + ((name, content) in UNKEPT.values())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_every_time_and_not_kept(folder, tmp_path, make):
    os.mkfifo(folder / "pipe")
    for number in (1, 2):
        settle(folder / "pipe")
        said = json.dumps([make("f", "x")] * number)
        writer = threading.Thread(target=(folder / "pipe").write_text, args=(said,))
        writer.start()
        assert len(load(folder / "pipe").steps) == number
        writer.join()
    assert not (tmp_path / "store").exists()
