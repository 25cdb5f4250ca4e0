import json

import pandas as pd
import pytest

from evalkit.kinds import RUN_COLUMNS
from evalkit.steps import checks_df, load, steps_df
from evalkit.steps.parse import parse_file
from evalkit.steps.table import FLAGS
from tests.steps.cases import A, B, C


def test_shorthands_give_the_same_frames(logs):
    pd.testing.assert_frame_equal(steps_df("samples:steps"), logs.steps)
    pd.testing.assert_frame_equal(checks_df("samples:steps"), logs.checks)
    records = logs.histories[0].records
    first = logs.steps["verdict"].tolist()[: len(records)]
    assert steps_df({"execution_history": records})["verdict"].tolist() == first


def test_a_run_is_a_row_with_the_common_columns(logs):
    assert [column.name for column in RUN_COLUMNS] == list(logs.runs)[: len(RUN_COLUMNS)]
    first = logs.runs.set_index("history").loc["execution_history.json"]
    assert first[["kind", "model_name", "status", "turns"]].tolist() == ["steps", "unknown", "aborted", 21]
    counts = first[["turns", "judged", "reported", "confirmed", "silent_failures", "failures", "loops", "cut"]]
    assert counts.tolist() == [21, 21, 15, 11, 4, 6, 1, 9]
    assert first["score"] == 11 / 21
    assert first["run_flags"] == ["silent_failures", "critical_failures", "loops", "cut_results", "duplicate"]
    assert first[["tokens_in", "seed", "cost", "is_successful"]].isna().all()


def save(folder, records, plan=None):
    """Write a state with these records, a minute apart, and load it."""
    timed = [{"timestamp": f"2026-03-02T09:{minute:02d}:00+00:00", **record} for minute, record in enumerate(records)]
    (folder / "h.json").write_text(json.dumps({"execution_history": timed, "execution_plan": plan}))
    return load(folder)


RUNS = [
    # planned and executed functions (! failed, - skipped, ? does not say): status, score, is_successful, flags
    ("a b", "a b", "completed", 1, True, []),
    ("a b", "a", "unfinished", 1, None, []),
    ("a b", "a b-", "completed", 1, True, []),
    ("a b", "a b! b", "completed", 2 / 3, True, []),
    ("a b", "a b! b! b!", "aborted", 0.25, False, ["loops"]),
    ("a b", "a c", "completed", 1, False, []),
    ("", "a b", "completed", 1, None, []),
    ("", "a!", "unfinished", 0, None, []),
    ("a", "a?", "unfinished", None, None, ["unknown_outcomes"]),
    ("", "", None, None, None, ["no_steps"]),
]


@pytest.mark.parametrize(("plan", "done", "status", "score", "successful", "flags"), RUNS)
def test_the_status_of_a_run_states_how_its_history_ended(tmp_path, plan, done, status, score, successful, flags):
    records = []
    for call in done.split():
        step = {"function_name": call.rstrip("!-?"), **({"skip_reason": "no"} if call.endswith("-") else {})}
        success = {"!": False, "?": None}.get(call[-1], True)
        records.append({"step": step, "success": success, "result": "r"})
    runs = save(tmp_path, records, {"steps": [{"function_name": name} for name in plan.split()]}).runs
    found = runs[["status", "score", "is_successful", "run_flags"]].astype(object)
    assert found.where(found.notna(), None).to_numpy().tolist() == [[status, score, successful, flags]]
    assert set(flags) <= set(FLAGS)


def test_times_are_those_of_the_records(tmp_path):
    runs = save(tmp_path, [{"function_name": "f", "success": True}] * 3).runs
    assert runs["started"].tolist() == [pd.Timestamp("2026-03-02T09:00:00Z")]
    assert runs["duration"].tolist() == [120]
    odd = ["2026-03-02T11:00:00+02:00", "2026-03-02T09:00:30", "yesterday", None, "0001-01-01T00:00:00+23:59"]
    runs = save(tmp_path, [{"function_name": "f", "success": True, "timestamp": time} for time in odd]).runs
    assert runs[["started", "duration"]].to_numpy().tolist() == [[pd.Timestamp("2026-03-02T09:00:00Z"), 30]]


FILES = [
    ("h.json", json.dumps([C, C]), 2, "used", ""),
    ("h.jsonl", json.dumps(C) + "\n\n" + json.dumps(B) + "\n", 2, "used", ""),
    ("lines.json", json.dumps(C) + "\n" + json.dumps(C), None, "failed", "JSONDecodeError"),
    ("state.json", json.dumps({"execution_history": [A], "other": 1}), 1, "used", ""),
    ("no_step.json", json.dumps({"execution_history": [{"success": False, "error": "e"}]}), 1, "used", ""),
    ("runs.json", json.dumps([{"success": False, "error": "e", "id": 3}]), None, "skipped", "not an execution history"),
    ("snapshot.json", json.dumps({"values": {"execution_history": [A]}}), 1, "used", ""),
    ("bare.json", json.dumps([{**C, "n": float("nan")}]), 1, "used", "recovered: nan_literal"),
    ("bom.json", "\ufeff" + json.dumps([C]), 1, "used", "recovered: byte_order_mark"),
    ("mixed.json", json.dumps([C, 5, "x"]), 1, "used", "2 of 3 entries are not records of steps"),
    ("empty_list.json", "[]", 0, "used", "no steps"),
    ("broken.jsonl", json.dumps(C) + '\n{"function_name": "f", "succ', 1, "used", "line 2: JSONDecodeError"),
    ("cut.json", json.dumps([C])[:-20], None, "failed", "JSONDecodeError"),
    ("latin.json", '[{"error": "é", "step": {}}]'.encode("latin-1"), 1, "used", "recovered: latin_1"),
    ("deep.json", "[" * 100_000, None, "failed", "RecursionError"),
    ("other.json", '{"a": 1}', None, "skipped", "not an execution history"),
    ("notes.txt", "hello", None, "skipped", "not an execution history"),
    ("no.sqlite", b"SQLite format 3\0" + b"x" * 100, None, "failed", "no LangGraph checkpoints"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "steps", "status", "reason"), FILES, ids=[file[0] for file in FILES])
def test_files_are_used_skipped_or_failed_with_a_reason(name, text, steps, status, reason):
    parsed = parse_file(name, text if isinstance(text, bytes) else text.encode())
    assert (parsed.status, reason in parsed.reason) == (status, True)
    assert len(parsed.rows.get("histories", [])) == (steps is not None)
    assert len(parsed.rows.get("steps", [])) == (steps or 0)


def test_what_is_nested_too_deep_to_be_read_again_is_kept_as_text():
    data = b'[{"step": {}, "success": true, "result": ' + b"[" * 800 + b"]" * 800 + b"}]"
    [(_, entry)] = parse_file("h.json", data).rows["steps"]
    assert entry.count('"[') == 1
    assert entry.count("[") == 800
