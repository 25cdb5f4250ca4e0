import json
import os
import sqlite3

import pytest

from evalkit.io import SourceError
from evalkit.steps import load_history, normalise_history
from evalkit.steps.histories import read_histories
from evalkit.steps.parse import read_history_file
from evalkit.steps.records import normalise_record
from tests.steps.cases import CELLS

A = {"step_index": 3, "step": {"function_name": "process_cells"}, "success": True, "result": CELLS, "error": None}
B = {**A, "result_type": "structured", "result_summary": "s", "result_metadata": {}, "error_type": None}
C = {"timestamp": "t", "function_name": "process_cells", "parameters": {}, "success": True, "error": None,
     "result_summary": CELLS}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "shape", "kind", "index"), [(A, "A", "text", 3), (B, "B", "structured", 3), (C, "C", "text", 0)]
)
def test_three_shapes_become_one(record, shape, kind, index):
    found = normalise_history([record])[0]
    assert (found["shape"], found["result_type"], found["step_index"]) == (shape, kind, index)
    assert found["result"] == CELLS
    assert found["step"]["function_name"] == "process_cells"
    assert found["success"] is True


@pytest.mark.parametrize("record", [A, B, C])
def test_normalising_twice_changes_nothing(record):
    once = normalise_record(record)
    assert normalise_record(once) == once


@pytest.mark.parametrize(
    ("value", "success"),
    [(True, True), ("True", True), ("false", False), (1, True), (0, False), (None, None), ("maybe", None), ([], None)],
)
def test_success_is_read_from_what_writers_emit_and_never_guessed(value, success):
    assert normalise_record({"function_name": "f", "success": value})["success"] is success


@pytest.mark.parametrize(
    ("record", "truncated"),
    [
        ({**C, "result_summary": "x" * 500}, [None, 500]),
        ({**C, "result_summary": "x" * 499}, None),
        ({**C, "function_name": "display_x", "result_summary": "<div>" + "x" * 495}, [None, 500]),
        ({**A, "result": "x" * 500}, [None, 500]),
        ({**A, "step": {"function_name": "display_x"}, "result": "<div>" + "x" * 495}, None),  # plots are whole in A
        ({**B, "result": "x" * 500}, None),  # a structured text is whole
        ({**B, "result_type": "text", "result": "x" * 500}, [None, 500]),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"length": 500}}, None),
        ({**B, "result_type": "text", "result": "x" * 500, "result_metadata": {"truncated": [900, 500]}}, [900, 500]),
    ],
)
def test_what_counts_as_cut(record, truncated):
    assert normalise_record(record)["result_metadata"].get("truncated") == truncated


def test_without_an_index_a_retry_keeps_its_steps():
    calls = [("a", True), ("b", False), ("b", False), ("b", True), ("b", True), ("c", True)]
    records = [{"function_name": f, "parameters": {}, "success": s} for f, s in calls]
    assert [record["step_index"] for record in normalise_history(records)] == [0, 1, 1, 1, 2, 3]


def test_parameters_written_as_text_are_read():
    assert normalise_record({**C, "parameters": "{'n': '354'}"})["step"]["parameters"] == {"n": "354"}


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
    ("latin.json", '[{"error": "é", "step": {}}]'.encode("latin-1"), None, "failed", "not UTF-8"),
    ("deep.json", "[" * 100_000, None, "failed", "RecursionError"),
    ("other.json", '{"a": 1}', None, "skipped", "not an execution history"),
    ("list.json", "[1, 2]", None, "skipped", "not an execution history"),
    ("number.json", "5", None, "skipped", "not an execution history"),
    ("notes.txt", "hello", None, "skipped", "not an execution history"),
    ("no.sqlite", b"SQLite format 3\0" + b"x" * 100, None, "failed", "no LangGraph checkpoints"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "steps", "status", "reason"), FILES, ids=[file[0] for file in FILES])
def test_files_of_all_kinds(tmp_path, name, text, steps, status, reason):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    histories, found, why = read_history_file(str(path))
    assert found == status
    assert reason in why
    assert [len(history.records) for history in histories] == ([] if steps is None else [steps])


def test_a_folder_is_read_and_every_file_is_in_the_ledger(tmp_path):
    for name, text, *_ in FILES:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    histories, ledger = read_histories(tmp_path)
    assert len(ledger.entries) == len(FILES)
    assert sorted(entry.status for entry in ledger.entries) == sorted(file[3] for file in FILES)
    assert len(histories) == sum(file[2] is not None for file in FILES)


def test_a_file_that_cannot_be_read_is_in_the_ledger(tmp_path):
    (tmp_path / "h.json").symlink_to(tmp_path / "gone.json")
    histories, ledger = read_histories(tmp_path)
    assert not histories
    assert ledger.entries[0].status == "failed"
    assert "FileNotFoundError" in ledger.entries[0].reason


def test_several_sources_and_empty_names(tmp_path):
    (tmp_path / "h.json").write_text(json.dumps([C]))
    histories, ledger = read_histories([tmp_path / "h.json", tmp_path, ""])
    assert len(histories) == len(ledger.entries) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "b.json").write_text(json.dumps([C]))
    histories, ledger = read_histories(tmp_path)
    assert [history.label for history in histories] == ["b.json"]
    assert ledger.entries[0][1:] == ("failed", "OSError: not a regular file")


def test_loading_one_history_names_file_and_cause(tmp_path):
    (tmp_path / "h.json").write_text("[")
    with pytest.raises(SourceError, match=r"h\.json.*JSONDecodeError"):
        load_history(tmp_path / "h.json")
    with pytest.raises(SourceError, match=r"gone\.json"):
        load_history(tmp_path / "gone.json")


def test_a_database_of_another_kind_is_failed(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (a)")
    assert read_history_file(str(tmp_path / "x.db")).status == "failed"
    connection.close()


def test_pickled_and_broken_checkpoints_are_named_and_the_rest_is_read(tmp_path):
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint)")
        connection.execute("INSERT INTO checkpoints VALUES ('t', '', '1', 'pickle', x'80')")
    found = read_history_file(str(path))
    assert found.status == "failed"
    assert "pickle" in found.reason
    state = json.dumps({"channel_values": {"execution_history": [A]}}).encode()
    with connection:
        connection.execute("INSERT INTO checkpoints VALUES ('u', 'sub', '1', 'json', ?)", [state])
        connection.execute("INSERT INTO checkpoints VALUES ('v', '', '1', 'msgpack', x'c1')")
        connection.execute("INSERT INTO checkpoints VALUES (NULL, NULL, NULL, NULL, NULL)")
    connection.close()
    found = read_history_file(str(path))
    assert [history.thread for history in found.histories] == ["u/sub"]
    assert "thread v: a checkpoint can't be decoded" in found.reason
