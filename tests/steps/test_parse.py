import json

import pytest

from evalkit.io import SourceError
from evalkit.steps import load, load_history
from evalkit.steps.parse import parse_file
from tests.steps.cases import A, B, C


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


def test_several_sources_and_empty_names(tmp_path):
    (tmp_path / "h.json").write_text(json.dumps([C]))
    logs = load([tmp_path / "h.json", tmp_path, ""])
    assert len(logs.histories) == len(logs.ledger) == 1


def test_loading_one_history_names_file_and_cause(tmp_path):
    (tmp_path / "h.json").write_text("[")
    with pytest.raises(SourceError, match=r"h\.json.*JSONDecodeError"):
        load_history(tmp_path / "h.json")
    with pytest.raises(SourceError, match=r"gone\.json"):
        load_history(tmp_path / "gone.json")
