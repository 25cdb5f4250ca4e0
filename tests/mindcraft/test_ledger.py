"""The ledger of a folder: every file once, with what became of it and why."""

import os

import pytest

from evalkit.mindcraft import load
from tests.mindcraft.builders import EXPERIMENT, SCORE, task, write_all


def entries(logs, root) -> dict[str, tuple[str, str]]:
    rows = zip(logs.ledger["source"], logs.ledger["status"], logs.ledger["reason"], strict=True)
    return {os.path.relpath(source, root): (status, reason) for source, status, reason in rows}


def test_every_file_is_in_the_ledger_once_with_its_reason(tmp_path):
    root = write_all(tmp_path, EXPERIMENT)
    os.symlink(root / "gone.json", root / "exp_1/other/Jill_1_0.json")
    logs = load(root)
    found = entries(logs, root)
    assert len(logs.ledger) == len(found)
    assert set(found) == {*EXPERIMENT, "exp_1/other/Jill_1_0.json"} - {"exp_1/.hidden/Andy_0_0.json"}
    assert logs.ledger["source"].is_monotonic_increasing
    status = {name: found[name][0] for name in found}
    assert {name for name in status if status[name] == "used"} == {
        "exp_1/results.txt", "exp_1/cook/Andy_0_0.json", "exp_1/cook/Andy_0_1.json",
    }  # fmt: skip
    assert {name for name in status if status[name] == "failed"} == {
        "exp_1/cook/Jill_1_0.json", "exp_1/other/Andy_0_0.json", "exp_1/other/Jill_1_0.json",
    }  # fmt: skip
    assert found["exp_1/cook/Andy_0_1.json"][1] == "recovered_byte_order_mark"
    assert found["exp_1/tasks.json"][1] == "not an agent log: task definitions"
    assert found["exp_1/one_task.json"][1] == "not an agent log: task definitions"
    assert found["exp_1/last_profile.json"][1] == "not an agent log: agent profile"
    assert "Hell's Kitchen" in found["exp_1/cook/hells_kitchen_progress.json"][1]
    assert all(reason for name, (state, reason) in found.items() if state != "used")


def test_files_of_definitions_are_in_the_ledger_too(tmp_path):
    root = write_all(tmp_path, {**EXPERIMENT, "tasks/good.json": {"cook": task()}, "tasks/bad.json": b"{"})
    logs = load(root / "exp_1", [root / "tasks", root / "exp_1/tasks.json"])
    found = entries(logs, root)
    assert len(logs.ledger) == len(found)
    assert found["tasks/good.json"] == ("used", "task definitions")
    assert found["tasks/bad.json"][0] == "failed"
    assert found["exp_1/tasks.json"] == ("used", "task definitions; no definitions: bad entry")
    assert found["exp_1/cook/Andy_0_0.json"][0] == "used"


def test_a_nearly_final_message_stands_in_the_ledger_as_plain_text(tmp_path):
    text = f"Well\x1b[31m\n{SCORE}1" + "!" * 300
    logs = load(write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": [{"role": "system", "content": text}]}))
    (reason,) = logs.ledger["reason"]
    assert reason.startswith("near_final: Well\ufffd[31m Task ended with score : 1!!!")
    assert len(reason) == len("near_final: ") + 200
    assert logs.agents["near_final_message"].tolist() == [text]
    assert logs.runs["flag_near_final"].tolist() == [True]


def test_a_folder_may_be_both_runs_and_tasks(tmp_path):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "tasks.json": {"cook": task()}})
    logs = load(root, root)
    assert {name: state for name, (state, _) in entries(logs, root).items()} == {
        "exp_1/cook/Andy_0_0.json": "used",
        "tasks.json": "used",
    }
    assert logs.runs["has_definition"].tolist() == [True]


def test_a_folder_that_can_not_be_listed_is_no_agent(tmp_path, monkeypatch):
    root = write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, "exp_1/secret/Andy_0_0.json": 1})
    scandir = os.scandir

    def refuse(path):
        if path == str(root / "exp_1/secret"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    logs = load(root, {"cook": task(agent_count=1), "secret": task()})
    status, reason = entries(logs, root)["exp_1/secret"]
    assert status == "failed"
    assert reason.startswith("the folder can't be listed: ")
    assert logs.runs[["task_id", "total_agent_logs_found"]].to_numpy().tolist() == [["cook", 1], ["secret", 0]]


@pytest.mark.parametrize("name", ["results.json", "profile.json", "last_profile.json", "hells_kitchen_progress.json"])
@pytest.mark.parametrize("content", [{}, [], [{"role": "system", "content": "x"}], 5, b"{", b"\xff"])
def test_files_that_are_no_logs_by_their_name_never_count_as_agents(tmp_path, name, content):
    logs = load(write_all(tmp_path, {"exp_1/cook/Andy_0_0.json": 1, f"exp_1/cook/{name}": content}))
    assert logs.runs["total_agent_logs_found"].tolist() == [1]
    broken = isinstance(content, bytes)
    assert sorted(logs.ledger["status"]) == (["failed", "used"] if broken else ["skipped", "used"])


RUN, TRACE = {"m/cook_1/Andy_0_0.json": 1}, {"session_id": "a", "event_history": []}
CHAT = {"messages": [{"role": "system", "content": f"{SCORE}1"}]}


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({**RUN, "m/fry/Andy_0_0.json": b"{"}, 2),  # beside other runs
        ({**RUN, "m/cook_1/Andy_0_1.json": b"{"}, 2),
        ({**RUN, "n/fry/Andy_0_0.json": b"{"}, 2),
        ({**RUN, "traces/1.json": b""}, 1),  # no run lies so high
        ({**RUN, "t/traces/1.json": b"", "t/traces/2.json": TRACE}, 1),
        ({**RUN, "t/traces/1.json": b"", "t/traces/2.json": CHAT}, 1),
        ({**RUN, "t/a/1.json": b"", "t/b/1.json": TRACE, "t/c/1.json": TRACE}, 1),
        ({**RUN, "t/multiagent_cooking_1/Andy_0_0.json": b""}, 2),
        ({**RUN, "m/cook_1/x.json": TRACE, "m/cook_1/Jill_0_0.json": b""}, 1),
        ({"a.json": TRACE, "b.json": TRACE, "c.json": b"", "m/cook/Andy_0_0.json": 1}, 1),
    ],
)
def test_a_broken_file_belongs_to_the_kind_of_its_siblings(tmp_path, files, runs):
    logs = load(write_all(tmp_path, files))
    assert len(logs.runs) == runs
    assert set(logs.runs["model_name"]) <= {"m", "n", "t"}
    assert len(logs.ledger) == len(files)
    assert set(logs.runs.loc[logs.runs["flag_unreadable_logs"], "task_id"]) <= {"fry", "cook_1", "multiagent_cooking_1"}


@pytest.mark.parametrize(
    "content", [CHAT, [CHAT], {"turns": 12}, {"turns": [{"text": "hello"}]}, {"a": 1}, b"5", "text"]
)
def test_other_json_is_skipped_and_no_run(tmp_path, content):
    content = f'"{content}"' if isinstance(content, str) else content
    logs = load(write_all(tmp_path, {**RUN, "m/bake/Andy_0_0.json": content, "rollout.json": content}))
    assert logs.runs["task_id"].tolist() == ["cook_1"]
    skipped = logs.ledger[logs.ledger["status"] == "skipped"]
    assert skipped["reason"].tolist() == ["not an agent log: no list of turns in it"] * 2


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("exp_1/settings.json", {"a": 1}, "skipped"),
        ("exp_1/andy.json", b"", "failed"),
        ("keys.json", {"OPENAI": "x"}, "skipped"),
        ("exp_1/steps.json", [{"a": 1}], "skipped"),
        ("exp_1/cook/steps.json", [{"a": 1}, {"b": 2}], "skipped"),
    ],
)
@pytest.mark.parametrize("runs", [["exp_1/cook/Andy_0_0.json"], ["exp_1/cook_Andy_0_0.json"]], ids=["nested", "flat"])
def test_a_file_above_the_runs_is_no_run(tmp_path, runs, name, content, status):
    logs = load(write_all(tmp_path / "exp_0", {**dict.fromkeys(runs, 1), name: content}))
    assert logs.runs[["task_id", "total_agent_logs_found"]].to_numpy().tolist() == [["cook", 1]]
    assert logs.ledger.set_index("source")["status"].to_dict()[str(tmp_path / "exp_0" / name)] == status
