"""A checkpoint file that attacks its reader fails with the reason, soon, and within little memory."""

import json
import os
import sqlite3
import time
import tracemalloc
from itertools import count
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io.limits import VARIABLE, LimitError
from evalkit.steps import load
from evalkit.steps.history import checkpoints
from evalkit.steps.history.checkpoints import check_msgpack
from evalkit.steps.parse import parse_file
from tests.steps.history.test_records import A
from tests.steps.test_parse import database, state

COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, type, checkpoint"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, '', i, 'json', i FROM n"


def scripted(*statements):
    """Give the bytes of a database that statements make, also by writing into its schema."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    for statement in statements:
        connection.execute(statement)
    try:
        return connection.serialize()
    finally:
        connection.close()


def measured(data):
    """Parse a database; give what it said, and check that it took little time and memory."""
    tracemalloc.start()
    begun = time.perf_counter()
    try:
        parsed = parse_file("c.sqlite", data)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - begun < 5
    return parsed


ATTACKS = {
    "a view without end": [f"CREATE VIEW checkpoints ({COLUMNS}) AS {ENDLESS}"],
    "a view that calls itself a table": [
        f"CREATE VIEW checkpoints ({COLUMNS}) AS {ENDLESS}",
        "UPDATE sqlite_master SET type = 'table'",
    ],
    "a view of much": [
        f"CREATE VIEW checkpoints ({COLUMNS}) AS SELECT 't', '', '1', 'json', zeroblob(900000000)",
    ],
    "a view under another name beside": [
        f"CREATE VIEW other ({COLUMNS}) AS {ENDLESS}",
        "UPDATE sqlite_master SET name = 'checkpoints', tbl_name = 'checkpoints'",
    ],
    "a column that is generated": [
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint AS (zeroblob(900000000)))",
        "INSERT INTO checkpoints VALUES ('t', '', '1', 'json')",
    ],
    "a column that formats much": [
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, "
        "checkpoint AS (printf('%900000000d', 1)))",
        "INSERT INTO checkpoints VALUES ('t', '', '1', 'json')",
    ],
    "a virtual table": ["CREATE VIRTUAL TABLE checkpoints USING fts5(thread_id)"],
    "no columns of these names": ["CREATE TABLE checkpoints (a)"],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_only_real_tables_of_stored_values_are_read(attack):
    parsed = measured(scripted(*ATTACKS[attack]))
    assert parsed.status == "failed"
    assert "no LangGraph checkpoints" in parsed.reason
    assert not parsed.rows.get("histories")


def test_a_schema_that_is_not_utf8_is_a_reason():
    for name in (b"threads", b"checkpoints"):
        data = database([("t", "", "1", "json", json.dumps(state(A)))]).replace(name, b"\xff\xfe" + name[2:])
        parsed = parse_file("c.sqlite", data)
        assert (parsed.status, "no LangGraph checkpoints" in parsed.reason) in (("failed", True), ("used", False))
    data = scripted("CREATE TABLE checkpoints (a)", "CREATE TABLE other (b)").replace(b"(b)", b"(\xff")
    assert parse_file("c.sqlite", data).status == "failed"


def test_values_that_are_not_utf8_are_read():
    data = database([("thread", "", "1", "json", json.dumps(state(A)))]).replace(b"thread\x31", b"thr\xff\xfed\x31")
    assert parse_file("c.sqlite", data).status == "used"


def test_more_threads_than_the_limit_are_not_read(monkeypatch):
    rows = [(f"t{i}", "", "1", "json", json.dumps(state(A))) for i in range(6)]
    monkeypatch.setenv(VARIABLE, "rows=5")
    parsed = parse_file("c.sqlite", database(rows))
    assert (parsed.status, parsed.reason) == ("failed", "LimitError: more threads than the limit of 5 (rows)")
    assert parse_file("c.sqlite", database(rows[:5])).status == "used"


def test_what_is_read_of_one_file_has_a_limit(monkeypatch):
    rows = [(f"t{i}", "", "1", "json", json.dumps(state({**A, "error": "x" * 5000}))) for i in range(6)]
    monkeypatch.setenv(VARIABLE, "bytes=20k")
    parsed = parse_file("c.sqlite", database(rows))
    assert parsed.status == "failed"
    assert 'EVALKIT_LIMITS="bytes=' in parsed.reason


def test_a_statement_that_goes_on_is_stopped(monkeypatch):
    data = database([(f"t{i}", "", "1", "json", "{}") for i in range(2_000)])
    monkeypatch.setenv(VARIABLE, "seconds=1")
    monkeypatch.setattr(checkpoints, "_STEPS", 10)
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=count(0.0, 0.1).__next__))
    parsed = parse_file("c.sqlite", data)
    assert parsed.status == "failed"
    assert "longer than the limit of 1 (seconds)" in parsed.reason


MSGPACK = {
    "a list of very many": (b"\xdd" + (10**9).to_bytes(4), "announces 1000000000 entries"),
    "behind a text of 12 kB": (b"\x92\xda\x30\x00" + b"x" * 0x3000 + b"\xdd\x3b\x9a\xca\x00", "announces"),
    "a map of very many": (b"\xdf" + (10**9).to_bytes(4), "announces 2000000000 entries"),
    "lists within lists": (b"\xdc\xff\xff" * 900, "announces 65535 entries"),
    "deep": (b"\x91" * 100_000 + b"\xc0", "nested deeper"),
    "cut": (b"\x93\x01", "announces 3 entries"),
    "in an extension": (b"\xc7\x05\x05" + b"\xdd" + (10**9).to_bytes(4), "announces"),
    "no value": (b"\xc1", "no value begins with 0xc1"),
    "nothing": (b"", "ends within a value"),
}  # fmt: skip


@pytest.mark.parametrize("attack", MSGPACK)
def test_msgpack_that_asks_for_more_than_there_is(attack):
    blob, reason = MSGPACK[attack]
    parsed = measured(database([("t", "", "1", "msgpack", blob), ("u", "", "2", "json", json.dumps(state(A)))]))
    assert reason in parsed.reason
    assert [thread for thread, _ in parsed.rows["histories"]] == ["u"]


def extension(*inner):
    return msgspec.msgpack.encode(state({**A, "result": msgspec.msgpack.Ext(6, msgspec.msgpack.encode(inner))}))


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (("<f8", [10**9, 0], "C", b""), "an array of more than 5000000 values"),
        (("<f8", [10**6], "C", b"\0" * 8), "can't be decoded"),
        (("<f8", [-1], "C", b"\0" * 4), "can't be decoded"),
        (("O", [1], "C", b"\0" * 8), "another type"),
        (("(1000000,)f8", [1], "C", b"\0" * 8), "another type"),
        (("V9999999", [1], "C", b"\0" * 8), "another type"),
        (("<f8", [1], "K", b"\0" * 8), "another type"),
        (("<f8", [1]), "can't be decoded"),
        (("<f8", 5, "C", b""), "can't be decoded"),
    ],
)
def test_arrays_that_are_none_are_refused(inner, reason):
    assert reason in measured(database([("t", "", "1", "msgpack", extension(*inner))])).reason


def test_arrays_are_read():
    for values in (np.arange(6.0).reshape(2, 3), np.array([1, 2]), np.array(["a", "bc"]), np.zeros((2, 0))):
        data = extension(values.dtype.str, list(values.shape), "C", values.tobytes())
        [(_, entry)] = parse_file("c.sqlite", database([("t", "", "1", "msgpack", data)])).rows["steps"]
        assert json.loads(entry)["result"] == values.tolist()


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSONS)
def test_whatever_is_encoded_passes(value):
    check_msgpack(msgspec.msgpack.encode(value))


@given(st.binary(max_size=60))
def test_what_a_decoder_takes_passes_and_the_rest_raises_nothing_else(data):
    try:
        check_msgpack(data)
    except (ValueError, LimitError):
        with pytest.raises((msgspec.DecodeError, ValueError)):
            msgspec.msgpack.decode(data)


def test_more_values_than_the_limit_are_not_built(monkeypatch):
    monkeypatch.setenv(VARIABLE, "values=100")
    check_msgpack(msgspec.msgpack.encode(list(range(99))))
    with pytest.raises(LimitError, match=r"more values than the limit of 100 \(values\)"):
        check_msgpack(msgspec.msgpack.encode(list(range(100))))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_pipes_in_the_place_of_what_stands_beside_a_database_are_not_opened(tmp_path, beside):
    (tmp_path / "c.sqlite").write_bytes(database([("t", "", "1", "json", json.dumps(state(A)))]))
    (tmp_path / "good.json").write_text(json.dumps([A]))
    (tmp_path / "c.sqlite-wal").touch()
    (tmp_path / f"c.sqlite{beside}").unlink(missing_ok=True)
    os.mkfifo(tmp_path / f"c.sqlite{beside}")
    ledger = load(tmp_path, pattern="*.*").ledger.set_index("source")
    assert "not a regular file" in ledger.loc[str(tmp_path / "c.sqlite"), "reason"]


def test_an_index_of_a_step_sizes_nothing(tmp_path):
    tracemalloc.start()
    try:
        (tmp_path / "h.json").write_text(json.dumps([{**A, "step_index": 9_000_000_000}, {**A, "step_index": 2**52}]))
        logs = load(tmp_path)
        assert logs.steps["step_index"].tolist() == [9_000_000_000, 2**52]
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
