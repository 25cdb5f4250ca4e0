"""Every flag: a folder that carries it, and the same folder mended, that does not."""

import os

import pytest

from evalkit.display.words import finding_text
from evalkit.kinds import has_flag
from evalkit.mindcraft import analysis, load
from evalkit.mindcraft.table import FLAGS, FLAGS_OF_LOGS
from tests.mindcraft.builders import SCORE, log, task, turn, write, write_all

START = 1757845200000
COOK, PAIR = {"tasks": {"cook": task(agent_count=1)}}, {"tasks": {"cook": task()}}
A, B = "exp_1/cook/Andy_0_0.json", "exp_1/cook/Jill_1_0.json"
COOKING, TASK_COOK = "exp_1/multiagent_cooking_1_bread/Andy_0_0.json", "exp_1/task_cook/Andy_0_0.json"
RESTARTED, MINE = "Agent process restarted.", log("x", who="me")
FAILED_AT_START = log(f"{SCORE}0", start=START)
# flag: files, options, and what makes it go away (None: the file is not there)
CASES = {
    "ambiguous_definition": (
        {A: 1, "t/1.json": COOK["tasks"], "t/2.json": PAIR["tasks"]}, {"tasks": "t"}, {"t/2.json": COOK["tasks"]},
    ),
    "conflicting": ({A: log(f"{SCORE}1", f"{SCORE}0")}, COOK, {A: 1}),
    "extra_agent_logs": ({A: 1, B: 1}, COOK, {B: None}),
    "facts_from_id": ({COOKING: 1}, {}, {COOKING: None, A: 1}),
    "inferred_timeout": ({A: FAILED_AT_START}, {"original_mtimes": True}, {A: log(f"{SCORE}1", start=START)}),
    "layout_mismatch": ({A: 1}, {"layout": "{experiment}/task_{task_id}"}, {TASK_COOK: 1, A: None}),
    "near_final": ({A: [turn("system", f"Well. {SCORE}1")]}, COOK, {A: [turn("system", f"{SCORE}1")]}),
    "missing_agent_logs": ({A: 1}, PAIR, {B: 1}),
    "quoted_only": ({A: [turn("user", f"It says {SCORE}1")]}, COOK, {A: [turn("system", f"{SCORE}1")]}),
    "recovered_byte_order_mark": ({A: b"\xef\xbb\xbf[]"}, COOK, {A: b"[]"}),
    "recovered_latin_1": ({A: b'{"name": "\xe9", "turns": [{"role": "user", "content": "a"}]}'}, COOK, {A: b"[]"}),
    "recovered_utf_16": ({A: "[]".encode("utf-16")}, COOK, {A: b"[]"}),
    "recovered_lone_surrogate": ({A: b'{"memory": "\\ud83d", "turns": []}'}, COOK, {A: b"[]"}),
    "recovered_nan_literal": ({A: b'{"memory": NaN, "turns": []}'}, COOK, {A: b"[]"}),
    "restarted": ({A: [turn("system", RESTARTED)]}, COOK, {A: [turn("user", RESTARTED)]}),
    "scale_assumed": ({A: 0.5}, {"tasks": {"cook": task("construction", 1)}}, {A: 50}),
    "score_implied": ({A: log("Task successful")}, COOK, {A: 1}),
    "score_not_a_number": ({A: log(f"{SCORE}undefined")}, COOK, {A: 1}),
    "score_out_of_range": ({A: 150}, COOK, {A: 0.65}),
    "stale_copy": ({A: MINE, "exp_1/b/Andy_0_0.json": MINE}, COOK, {A: log("x", who="you")}),
    "turns_skipped": ({A: [turn("system", None)]}, COOK, {A: [turn("system", "text")]}),
    "unreadable_logs": ({A: b"{", B: 1}, PAIR, {A: 1}),
}  # fmt: skip


@pytest.mark.parametrize("flag", sorted(set(FLAGS) - {"repetitions_merged"}))  # of outcomes of several runs; see there
def test_the_case_carries_the_flag_alone_and_mended_does_not(tmp_path, monkeypatch, flag):
    files, options, mended = CASES[flag]
    monkeypatch.chdir(write_all(tmp_path / "flagged", files))
    logs = load("exp_1", **options)
    assert set().union(*logs.runs["run_flags"]) == {flag}
    assert set().union(*logs.agents["flags"]) == {flag} & set(FLAGS_OF_LOGS)
    files = {name: content for name, content in {**files, **mended}.items() if content is not None}
    monkeypatch.chdir(write_all(tmp_path / "mended", files))
    assert flag not in set().union(*load("exp_1", **options).runs["run_flags"])


@pytest.mark.parametrize(
    ("whose", "starts", "original_mtimes", "copies"),
    [("me me me", (None, None, None), False, "bc"), ("me me me", (None, None, None), True, "ab"),
     ("old new other", (START, START, 1), False, "b")],
)  # fmt: skip
def test_of_equal_logs_or_starts_the_first_or_the_oldest_is_no_copy(tmp_path, whose, starts, original_mtimes, copies):
    for task_id, who, start, minutes in zip("abc", whose.split(), starts, (2, 1, 0), strict=True):
        path = write(tmp_path / f"exp_1/{task_id}/Andy_0_0.json", log(f"{SCORE}1", who=who, start=start))
        os.utime(path, (START / 1000 + 60 * minutes,) * 2)
    logs = load(tmp_path, original_mtimes=original_mtimes)
    assert "".join(logs.runs.loc[has_flag(logs.runs, "stale_copy"), "task_id"]) == copies
    assert "".join(logs.agents.loc[logs.agents["flags"].map(len) > 0, "task_id"]) == copies


@pytest.mark.parametrize("name", ["{}/x", "x/{}/cooking", "{}_exp_09-14", "runs/{}-zoo_1", "runs/exp of {}"])
@pytest.mark.parametrize("agents", [("Andy", "Jill"), ("Andy",)])  # of the copies, of which one may lack a log
def test_copying_a_model_s_logs_to_another_name_leaves_its_own_runs_alone(tmp_path, name, agents):
    files = {}
    for n, (model, there) in enumerate([("A", ("Andy", "Jill")), ("A-new", agents)] * 5):
        for agent in there:
            begun = START + n // 2 * 400_000 + 60_000 * (agent == "Jill")
            files[f"{name.format(model)}/task_{n // 2}/{agent}_0.json"] = log(f"{SCORE}1", who=agent, start=begun)
    runs = load(write_all(tmp_path, files)).runs
    copies = runs[has_flag(runs, "stale_copy")]
    assert copies["source"].str.contains("A-new").tolist() == [True] * 5
    originals = runs.set_index("run_id")["source"][copies["copy_of"]]
    assert not originals.str.contains("A-new").any()
    assert originals.str.split("/").str[-1].tolist() == copies["source"].str.split("/").str[-1].tolist()
    assert runs.loc[~has_flag(runs, "stale_copy"), ["copy_of", "copied_model"]].isna().all(axis=None)
    if name == "x/{}/cooking":
        text = " ".join(map(finding_text, analysis.data_findings(runs, load(tmp_path).ledger)))
        assert "rates: 5 runs of A-new copied from A." in text


@pytest.mark.parametrize(
    ("seconds", "ending", "options", "status"),
    [
        (400, f"{SCORE}0", {"original_mtimes": True}, "TIMED_OUT"),
        (299, f"{SCORE}0", {"original_mtimes": True}, "FAILED_SCORE_ZERO"),
        (400, f"{SCORE}0", {}, "FAILED_SCORE_ZERO"),
        (400, f"{SCORE}0", {"original_mtimes": True, "tasks": {"cook": task(timeout=500)}}, "FAILED_SCORE_ZERO"),
    ],
)
def test_a_time_out_is_inferred_from_original_times_only(tmp_path, seconds, ending, options, status):
    root = write_all(tmp_path, {A: log(ending, start=START)})
    os.utime(root / A, (START / 1000 + seconds, START / 1000 + seconds))
    (run,) = load(root, **options).runs.to_dict("records")
    assert run["status"] == status
    assert ("inferred_timeout" in run["run_flags"]) is (status == "TIMED_OUT")
    assert run["duration"] == pytest.approx(seconds) if options else run["duration"] != run["duration"]
