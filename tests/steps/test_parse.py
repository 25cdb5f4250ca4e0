import json
import os
import sqlite3

import msgspec
import pytest

from evalkit.io import SourceError
from evalkit.steps import load, load_history
from evalkit.steps.history.checkpoints import companions
from evalkit.steps.parse import parse_file
from tests.steps.history.test_records import A, B, C


def read(path):
    return parse_file(str(path), path.read_bytes())


FILES = [
    ("h.json", json.dumps([C, C]), 2, "used", ""),
    ("h.jsonl", json.dumps(C) + "\n\n" + json.dumps(B) + "\n", 2, "used", ""),
    ("lines.json", json.dumps(C) + "\n" + json.dumps(C), 2, "used", ""),
    ("state.json", json.dumps({"execution_history": [A], "other": 1}), 1, "used", ""),
    ("snapshot.json", json.dumps({"values": {"execution_history": [A]}}), 1, "used", ""),
    ("one.json", json.dumps(A), 1, "used", ""),
    ("bare.json", json.dumps([{**C, "n": float("nan")}]), 1, "used", "recovered: nan_literal"),
    ("bom.json", "\ufeff" + json.dumps([C]), 1, "used", "recovered: byte_order_mark"),
    ("mixed.json", json.dumps([C, 5, "x"]), 1, "used", "2 of 3 entries are no records of steps"),
    ("empty_list.json", "[]", 0, "used", "no steps"),
    ("broken.jsonl", json.dumps(C) + '\n{"function_name": "f", "succ', 1, "used", "line 2: JSONDecodeError"),
    ("cut.json", json.dumps([C])[:-20], None, "failed", "JSONDecodeError"),
    ("empty.json", "", None, "failed", "the file is empty"),
    ("latin.json", '[{"error": "é", "step": {}}]'.encode("latin-1"), 1, "used", "recovered: latin_1"),
    ("deep.json", "[" * 100_000, None, "failed", "RecursionError"),
    ("other.json", '{"a": 1}', None, "skipped", "not an execution history"),
    ("list.json", "[1, 2]", None, "skipped", "not an execution history"),
    ("number.json", "5", None, "skipped", "not an execution history"),
    ("notes.txt", "hello", None, "skipped", "not an execution history"),
    ("no.sqlite", b"SQLite format 3\0" + b"x" * 100, None, "failed", "no LangGraph checkpoints"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "steps", "status", "reason"), FILES, ids=[file[0] for file in FILES])
def test_files_of_all_kinds(name, text, steps, status, reason):
    parsed = parse_file(name, text if isinstance(text, bytes) else text.encode())
    assert parsed.status == status
    assert reason in parsed.reason
    assert len(parsed.rows.get("histories", [])) == (steps is not None)
    assert len(parsed.rows.get("steps", [])) == (steps or 0)


def test_rows_are_the_records_as_they_stand_in_the_file_and_the_plan():
    state = {"execution_history": [A, {**C, "more": [1, None, {"x": -0.0}]}], "execution_plan": {"steps": [1]}}
    rows = parse_file("h.json", json.dumps(state).encode()).rows
    assert [(thread, json.loads(plan)) for thread, plan in rows["histories"]] == [("", {"steps": [1]})]
    assert [json.loads(entry) for _, entry in rows["steps"]] == state["execution_history"]
    assert parse_file("h.json", json.dumps([A]).encode()).rows["histories"] == [("", None)]


def test_what_is_nested_too_deep_to_be_read_again_is_kept_as_text():
    data = b'[{"step": {}, "success": true, "result": ' + b"[" * 800 + b"]" * 800 + b"}]"
    [(_, entry)] = parse_file("h.json", data).rows["steps"]
    assert entry.count('"[') == 1
    assert entry.count("[") == 800


def test_a_folder_is_read_and_every_file_is_in_the_ledger(tmp_path):
    for name, text, *_ in FILES:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    logs = load(tmp_path)
    assert sorted(logs.ledger["status"]) == sorted(file[3] for file in FILES)
    assert len(logs.histories) == len(logs.runs) == sum(file[2] is not None for file in FILES)


def test_a_file_that_cannot_be_read_is_in_the_ledger(tmp_path):
    (tmp_path / "h.json").symlink_to(tmp_path / "gone.json")
    (tmp_path / "good.json").write_text(json.dumps([C]))
    ledger = load(tmp_path).ledger
    assert ledger["status"].tolist() == ["used", "failed"]
    assert "FileNotFoundError" in ledger["reason"][1]


def test_several_sources_and_empty_names(tmp_path):
    (tmp_path / "h.json").write_text(json.dumps([C]))
    logs = load([tmp_path / "h.json", tmp_path, ""])
    assert len(logs.histories) == len(logs.ledger) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").write_text(json.dumps([C]))
    logs = load(tmp_path)
    assert [history.label for history in logs.histories] == ["b.json"]
    assert logs.ledger[["status", "reason"]].to_numpy().tolist() == [
        ["failed", "OSError: not a regular file"],
        ["used", ""],
    ]
    with pytest.raises(SourceError, match="not a regular file"):
        load(tmp_path / "a.json")


def test_loading_one_history_names_file_and_cause(tmp_path):
    (tmp_path / "h.json").write_text("[")
    with pytest.raises(SourceError, match=r"h\.json.*JSONDecodeError"):
        load_history(tmp_path / "h.json")
    with pytest.raises(SourceError, match=r"gone\.json"):
        load_history(tmp_path / "gone.json")


def database(rows, schema="CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)"):
    """Give the bytes of a database with these checkpoints."""
    connection = sqlite3.connect(":memory:")
    connection.execute(schema)
    connection.executemany("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    try:
        return connection.serialize()
    finally:
        connection.close()


def state(*records, **more):
    return {"channel_values": {"execution_history": list(records), **more}}


def test_a_database_of_another_kind_is_failed(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    connection.close()
    assert (read(tmp_path / "x.db").status, read(tmp_path / "x.db").reason) == (
        "failed",
        "no LangGraph checkpoints: no such table: checkpoints",
    )


def test_a_view_in_the_place_of_the_checkpoints_is_not_asked(tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, '', i, 'json', i FROM n"
    columns = "(thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)"
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute(f"CREATE VIEW checkpoints {columns} AS {endless}")
    connection.close()
    assert read(tmp_path / "x.db").reason == "no LangGraph checkpoints: no such table: checkpoints"


def test_the_newest_checkpoint_of_each_thread_is_read():
    rows = [
        ("t", "", "2", "json", json.dumps(state(A, A, execution_plan=["f"]))),
        ("t", "", "1", "json", json.dumps(state(A))),
        ("u", "sub", "3", "msgpack", msgspec.msgpack.encode(state({1: "a", "step": {}, "result": b"\xff\x00"}))),
        ("v", "", "4", "json", json.dumps({"channel_values": {}})),
    ]
    parsed = parse_file("c.sqlite", database(rows))
    assert (parsed.status, parsed.reason) == ("used", "1 threads without execution_history")
    assert parsed.rows["histories"] == [("t", '["f"]'), ("u/sub", None)]
    assert [thread for thread, _ in parsed.rows["steps"]] == ["t", "t", "u/sub"]
    assert json.loads(parsed.rows["steps"][2][1]) == {"1": "a", "step": {}, "result": "\ufffd\x00"}


def test_pickled_and_broken_checkpoints_are_named_and_the_rest_is_read():
    pickled = ("t", "", "1", "pickle", b"\x80")
    parsed = parse_file("c.sqlite", database([pickled]))
    assert parsed.status == "failed"
    assert "pickle" in parsed.reason
    good = ("u", "sub", "1", "json", json.dumps(state(A)).encode())
    broken = ("v", "", "1", "msgpack", b"\xc1")
    parsed = parse_file("c.sqlite", database([pickled, good, broken, (None, None, None, None, None)]))
    assert [thread for thread, _ in parsed.rows["histories"]] == ["u/sub"]
    assert "thread v: a checkpoint can't be decoded" in parsed.reason


def test_a_log_beside_a_database_belongs_to_it():
    assert companions("/a/c.sqlite") == ["/a/c.sqlite-wal"]
    assert companions("s3://bucket/c.sqlite") == []


def test_a_database_behind_a_url_is_read_by_its_bytes(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    data = database([("t", "", "1", "json", json.dumps(state(A, A)))])
    for journal in (b"\1\1", b"\2\2"):  # a database that was written with a log says so in its head
        fsspec.filesystem("memory").pipe("/steps/c.sqlite", data[:18] + journal + data[20:])
        assert load("memory://steps/c.sqlite").runs["records"].tolist() == [2]
