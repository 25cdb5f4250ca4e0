"""Estimates from frames of runs: counted by hand here, with runs that logged no score both ways."""

import pytest

from evalkit import compare
from evalkit.mindcraft import analysis, runs_df
from evalkit.mindcraft.analysis import ENDINGS
from tests.mindcraft.builders import SCORE, log, task, write_all

TASKS = {
    "c1": task(target={"bread": 1, "cake": 1}, blocked_access_to_recipe=[], difficulty="hard"),
    "c2": task(target={"bread": 1}, blocked_access_to_recipe=["0"], difficulty="easy"),
    "hk": task(target=["bread", "cake"]),
    "t1": task("techtree", depth=0, missing_items=[], requires_ctable=True),
    "t2": task("techtree", depth=2, blocked_actions={"0": ["!getCraftingPlan"]}),
    "b1": task("construction"),
    "b2": task("construction"),
}
# model, task, repetition: score, None (no score), "timeout" or "broken"
RUNS = {
    ("a", "c1", 0): 1, ("a", "c1", 1): 0, ("a", "c2", 0): None, ("a", "hk", 0): 1, ("a", "t1", 0): 1,
    ("a", "t2", 0): 0.5, ("a", "b1", 0): 100, ("a", "b2", 0): 0,
    ("b", "c1", 0): 0, ("b", "c2", 0): "timeout", ("b", "t1", 0): "broken", ("b", "b1", 0): 40,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    files = {}
    for (model, task_id, repetition), score in RUNS.items():
        content = {"timeout": log("Task timeout reached"), "broken": b"{"}.get(score, score)
        for agent in ("Andy_0", "Jill_1"):
            files[f"hand/{model}/{task_id}/{agent}_{repetition}.json"] = content
    return runs_df(write_all(tmp_path_factory.mktemp("runs"), files), TASKS)


def rows(table, *columns) -> list[tuple]:
    values = zip(*(table[column] for column in columns), strict=True)
    return [tuple(None if v != v else round(v, 4) if isinstance(v, float) else v for v in row) for row in values]


def test_a_run_that_was_not_measured_is_a_failure(runs):
    table = analysis.success_by(runs)
    assert rows(table, "model_name", "n", "estimate", "n_not_measured") == [("a", 8, 0.5, 1), ("b", 4, 0.0, 1)]
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()


def test_a_run_that_timed_out_beside_a_score_of_1_has_succeeded(tmp_path):
    files = {f"x/a/c{n}/Andy_0_0.json": log("Task timeout reached", f"{SCORE}1", who=str(n)) for n in (1, 2)}
    late = runs_df(write_all(tmp_path, files), TASKS)
    counts = analysis.status_counts(late)
    assert rows(counts, "TIMED_OUT_SUCCEEDED", "TIMED_OUT", "SUCCESS") == [(2, 0, 0)]
    assert rows(analysis.success_by(late), "estimate") == [(1.0,)]


def test_statuses_sum_to_n(runs):
    table = analysis.overview(runs)
    counted = table[list(ENDINGS)].sum(axis=1)
    assert counted.tolist() == table["n"].tolist() == [8, 4]
    assert rows(table, "SUCCESS", "FAILED_PARTIAL_SCORE", "FAILED_SCORE_ZERO") == [(4, 1, 2), (0, 1, 1)]
    assert rows(table, "TIMED_OUT", "NO_SCORE_LOGGED", "LOG_FILE_ERROR") == [(0, 1, 0), (1, 0, 1)]


@pytest.mark.parametrize(
    "by",
    ["task_id", "overall_is_successful", "overall_completion_status", "n_blocked_agents", "overall_score", "repetition",
     ["model_name", "model_name"], ["model_name", "task_id"], ["task_type", "difficulty"], []],
)  # fmt: skip
def test_any_columns_may_group(runs, by):
    table = analysis.overview(runs, by)
    assert table["n"].sum() == len(runs)
    assert table[list(ENDINGS)].sum().sum() == len(runs)


def test_failed_runs_stand_broken_ones_first_with_message_and_file(runs):
    table = analysis.failed_runs(runs)
    assert len(table) == 8
    assert table["overall_completion_status"].tolist()[:3] == ["LOG_FILE_ERROR", "NO_SCORE_LOGGED", "TIMED_OUT"]
    assert table["parsing_errors"][0].startswith("JSONDecodeError")
    assert table["final_system_message"][2] == "Task timeout reached"
    assert table["source"].str.contains("hand").all()


def test_tasks_of_one_id_and_two_definitions_are_two_tasks(tmp_path):
    files = {f"tasks/{name}.json": {"t": task(agent_count=n)} for name, n in (("a", 1), ("b", 2))}
    for model, name in (("m1", "a"), ("m2", "b"), ("m3", "b")):
        files |= {f"runs/exp_{model}/t/Andy_0_0.json": 1}
        files |= {f"runs/exp_{model}/results.txt": repr({"model": model, "task_path": f"tasks/{name}.json"})}
    runs = runs_df(write_all(tmp_path, files) / "runs", tmp_path / "tasks")
    assert analysis.success_by(runs, [])["n_clusters"].tolist() == [2]
    pairs = compare.pairs(runs)
    assert pairs["n_tasks"].tolist() == [0, 0, 1]
