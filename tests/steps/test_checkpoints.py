"""Checkpoints of LangGraph; one that attacks its reader fails with the reason, soon, and within little memory."""

import json
import os
import sqlite3
from contextlib import closing
from itertools import count
from pathlib import Path
from shutil import copyfile
from types import SimpleNamespace

import fsspec
import msgspec
import pytest

from evalkit.io.paths import MOST_BYTES
from evalkit.steps import load, parse
from evalkit.steps.parse import companions, parse_file
from tests.steps.cases import A

CORPUS = Path(__file__).parents[1] / "corpus" / "checkpoints"
COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, type, checkpoint"
TABLE = f"CREATE TABLE checkpoints ({COLUMNS})"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, '', i, 'json', i FROM n"


def database(rows, *statements):
    """Give the bytes of a database with these checkpoints, and with what the statements make instead of the table."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements or [TABLE]:
            connection.execute(statement)
        connection.executemany("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", rows)
        return connection.serialize()


def state(*records, **more):
    return {"channel_values": {"execution_history": list(records), **more}}


def thread(name="t", namespace="", checkpoint_id="1", value=None):
    return (name, namespace, checkpoint_id, "json", json.dumps(value or state(A)))


def test_the_newest_checkpoint_of_each_thread_is_read():
    array = msgspec.msgpack.Ext(6, msgspec.msgpack.encode(("<f8", [1], "C", b"\0" * 8)))  # is not read
    odd = state({1: "a", "step": {}, "result": b"\xff\x00", "error": array})
    rows = [
        thread("t", checkpoint_id="2", value=state(A, A, execution_plan=["f"])),
        thread("t", checkpoint_id="1"),
        ("u", "sub", "3", "msgpack", msgspec.msgpack.encode(odd)),
        thread("v", checkpoint_id="4", value={"channel_values": {}}),
    ]
    parsed = parse_file("c.sqlite", database(rows))
    assert (parsed.status, parsed.reason) == ("used", "1 threads without execution_history")
    assert parsed.rows["histories"] == [("t", '["f"]'), ("u/sub", None)]
    assert [name for name, _ in parsed.rows["steps"]] == ["t", "t", "u/sub"]
    kept = {"1": "a", "step": {}, "result": "\ufffd\x00", "error": "an array"}
    assert json.loads(parsed.rows["steps"][2][1]) == kept


def test_pickled_and_broken_checkpoints_are_named_and_the_rest_is_read():
    rows = [("t", "", "1", "pickle", b"\x80"), thread("u", "sub"),
            ("v", "", "1", "msgpack", b"\x91" * 100_000 + b"\xc0"), (None, None, None, None, None)]  # fmt: skip
    assert "pickle" in parse_file("c.sqlite", database(rows[:1])).reason
    parsed = parse_file("c.sqlite", database(rows))
    assert [name for name, _ in parsed.rows["histories"]] == ["u/sub"]
    assert "thread v: a checkpoint can't be decoded" in parsed.reason


@pytest.mark.parametrize("journal", [b"\1\1", b"\2\2"])  # written with a log, a database says so in its head
def test_a_database_behind_a_url_is_read_by_its_bytes(journal):
    data = database([thread(value=state(A, A))])
    fsspec.filesystem("memory").pipe("/steps/c.sqlite", data[:18] + journal + data[20:])
    assert load("memory://steps/c.sqlite").runs["turns"].tolist() == [2]
    assert companions("s3://bucket/c.sqlite") == []


def test_text_that_is_not_utf8_is_read_and_a_schema_of_it_is_a_reason():
    data = database([thread("thread")])
    assert parse_file("c.sqlite", data.replace(b"thread\x31", b"thr\xff\xfed\x31")).status == "used"
    for name in (b"threads", b"checkpoints"):
        parsed = parse_file("c.sqlite", data.replace(name, b"\xff\xfe" + name[2:]))
        assert (parsed.status, "no LangGraph checkpoints" in parsed.reason) in (("failed", True), ("used", False))
    data = database([], "CREATE TABLE checkpoints (a, b, c, d, e)", "CREATE TABLE other (b)")
    assert parse_file("c.sqlite", data.replace(b"(b)", b"(\xff")).status == "failed"


ATTACKS = (
    "a_view_without_end", "a_view_that_calls_itself_a_table", "a_view_under_another_name_beside",
    "a_column_that_is_generated", "a_virtual_table",
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_only_real_tables_of_stored_values_are_read(attack):
    parsed = parse_file("c.sqlite", (CORPUS / f"{attack}.sqlite").read_bytes())
    assert (parsed.status, "no LangGraph checkpoints" in parsed.reason) == ("failed", True)


def test_triggers_and_views_beside_the_table_are_never_run():
    statements = [
        TABLE,
        f"INSERT INTO checkpoints VALUES ('t', '', '1', 'json', '{json.dumps(state({'step': {}, 'success': True}))}')",
        f"CREATE VIEW endless ({COLUMNS}) AS {ENDLESS}",
        "CREATE TRIGGER deleting AFTER INSERT ON checkpoints BEGIN DELETE FROM checkpoints; END",
        "CREATE TRIGGER growing AFTER DELETE ON checkpoints BEGIN INSERT INTO checkpoints SELECT * FROM endless; END",
        "CREATE VIEW one AS SELECT * FROM other",
        "CREATE VIEW other AS SELECT * FROM one",
        "CREATE INDEX by_type ON checkpoints (thread_id) WHERE type != 'x'",
    ]
    assert [name for name, _ in parse_file("c.sqlite", database([], *statements)).rows["histories"]] == ["t"]


def test_what_is_read_of_one_file_has_a_limit(monkeypatch):
    data = database([thread(f"t{i}", value=state({**A, "error": "x" * 5000})) for i in range(6)])
    assert parse_file("c.sqlite", data).status == "used"
    monkeypatch.setenv(MOST_BYTES, "20000")
    parsed = parse_file("c.sqlite", data)
    assert (parsed.status, MOST_BYTES in parsed.reason) == ("failed", True)


def test_a_statement_that_goes_on_is_stopped(monkeypatch):
    data = database([(f"t{i}", "", "1", "json", "{}") for i in range(2_000)])
    monkeypatch.setattr(parse, "SECONDS", 1)
    monkeypatch.setattr(parse, "time", SimpleNamespace(monotonic=count(0.0, 10.0).__next__))
    parsed = parse_file("c.sqlite", data)
    assert (parsed.status, "longer than the limit of 1 seconds" in parsed.reason) == ("failed", True)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_pipes_in_the_place_of_what_stands_beside_a_database_are_not_opened(tmp_path, beside):
    (tmp_path / "c.sqlite").write_bytes(database([thread()]))
    (tmp_path / "good.json").write_text(json.dumps([A]))
    (tmp_path / "c.sqlite-wal").touch()
    (tmp_path / f"c.sqlite{beside}").unlink(missing_ok=True)
    os.mkfifo(tmp_path / f"c.sqlite{beside}")
    ledger = load(tmp_path, pattern="*.*").ledger.set_index("source")
    assert "not a regular file" in ledger.loc[str(tmp_path / "c.sqlite"), "reason"]


@pytest.mark.parametrize(
    ("name", "file_of"),
    {
        "m.sqlite": lambda n: database([("t", "", "1", "msgpack", msgspec.msgpack.encode(state(A, *[[]] * n)))]),
        "maps.sqlite": lambda n: database(
            [("t", "", "1", "msgpack", msgspec.msgpack.encode(state(A, x=[{1: 2}] * (n // 6))))]
        ),
        "thread.sqlite": lambda n: database([thread(f"{i}\0{'x' * n}") for i in range(9)]),
        "namespace.sqlite": lambda n: database([thread("t", "x" * n, str(i)) for i in range(9)]),
        "id.sqlite": lambda n: database([thread("t", "", f"{i}{'é' * (n // 2)}") for i in range(9)]),
        "j.sqlite": lambda n: database([thread(value=state(A, *[[]] * n))]),
        "values.jsonl": lambda n: json.dumps(A).encode() + b"\n{}" * n,
        "empty.jsonl": lambda n: json.dumps(A).encode() + b"\n" * n,
    }.items(),
)
def test_a_file_of_many_small_values_fails_by_the_memory_that_they_take(monkeypatch, name, file_of):
    monkeypatch.setenv(MOST_BYTES, "200000")
    assert parse_file(name, file_of(900)).status == "used"
    parsed = parse_file(name, file_of(9_000))
    assert (parsed.status, MOST_BYTES in parsed.reason) == ("failed", True)


WITH_LOG = ["c.sqlite", "c.sqlite-wal"]


@pytest.mark.parametrize("kept", [["c.sqlite"], WITH_LOG, [*WITH_LOG, "c.sqlite-shm"]])
def test_reading_a_database_makes_no_file_and_changes_neither_it_nor_its_log(tmp_path, kept):
    with closing(sqlite3.connect(tmp_path / "live.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute(TABLE)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", thread())
        (tmp_path / "logs").mkdir()
        for name in kept:
            copyfile(tmp_path / name.replace("c.", "live."), tmp_path / "logs" / name)
    before = {path.name: path.read_bytes() for path in (tmp_path / "logs").iterdir()}
    parsed = parse_file(str(tmp_path / "logs/c.sqlite"), before["c.sqlite"])
    assert len(parsed.rows["histories"]) == (len(kept) > 1)
    after = {path.name: path.read_bytes() for path in (tmp_path / "logs").iterdir()}
    assert after.keys() == before.keys()
    assert [after[name] for name in WITH_LOG[: len(kept)]] == [before[name] for name in WITH_LOG[: len(kept)]]
