"""Estimates from frames of runs: counted by hand here, with runs that logged no score both ways."""

import math

import pytest

from evalkit import compare
from evalkit.io import SourceError
from evalkit.kinds import denominators
from evalkit.kinds.runs import NO_OUTCOME
from evalkit.mindcraft import TaskDefinitions, analysis, runs_df
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
EMPTY_OK = [
    "success_by", "completion_by", "score_by", "status_counts", "overview", "with_difficulty",
    "failed_runs", "without_score", "flag_counts", "event_means", "cooking_by_blocked", "cooking_by_item",
    "cooking_item_by_blocked", "crafting_by_plan", "crafting_groups", "construction_scores", "progress",
]  # fmt: skip


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


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("failure", [("a", 8, 0.5, 1), ("b", 4, 0.0, 1)]),
        ("exclude", [("a", 7, 0.5833, 1), ("b", 3, 0.0, 1)]),
        ("success", [("a", 8, 0.6429, 1), ("b", 4, 0.25, 1)]),
    ],
)
def test_a_run_that_was_not_measured_is_a_failure_or_left_out_or_a_success(runs, missing, expected):
    table = analysis.success_by(runs, missing=missing)
    assert rows(table, "model_name", "n", "estimate", "n_not_measured") == expected
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()


def test_both_denominators_and_the_worst_case_stand_side_by_side(runs):
    table = denominators(runs)
    assert rows(table, "n", "estimate", "n_measured", "measured_estimate") == [(8, 0.5, 7, 0.5833), (4, 0.0, 3, 0.0)]
    assert rows(table, "n_not_measured", "highest_estimate") == [(1, 0.6429), (1, 0.25)]


def test_a_run_that_timed_out_beside_a_score_of_1_has_succeeded(tmp_path):
    files = {f"x/a/c{n}/Andy_0_0.json": log("Task timeout reached", f"{SCORE}1", who=str(n)) for n in (1, 2)}
    late = runs_df(write_all(tmp_path, files), TASKS)
    counts = analysis.status_counts(late)
    assert rows(counts, "TIMED_OUT_SUCCEEDED", "TIMED_OUT", "SUCCESS") == [(2, 0, 0)]
    assert rows(analysis.success_by(late), "estimate") == [(1.0,)]


def test_a_group_in_which_nothing_was_measured_has_no_rate(runs):
    table = analysis.success_by(runs[runs["is_successful"].isna()], missing="exclude")
    assert rows(table, "n", "estimate", "low", "n_not_measured") == [(0, None, None, 1), (0, None, None, 1)]


def test_completion_is_the_looser_rule(runs):
    assert rows(analysis.completion_by(runs), "estimate") == [(0.6429,), (0.25,)]


def test_scores_are_averaged_over_runs_that_have_one(runs):
    table = analysis.score_by(runs[runs["task_type"] == "construction"])
    assert rows(table, "model_name", "n", "estimate") == [("a", 2, 0.5), ("b", 1, 0.4)]
    assert table["low"].dropna().between(0, 1).all()
    assert table["high"].dropna().between(0, 1).all()


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


def test_an_unknown_way_of_missing_is_refused(runs):
    with pytest.raises(ValueError, match="drop"):
        analysis.success_by(runs, missing="drop")


def test_repetitions_of_a_task_are_a_cluster(runs):
    table = analysis.success_by(runs[runs["task_type"] == "cooking"])
    assert rows(table, "n", "n_clusters") == [(4, 3), (2, 2)]


def test_cooking_by_blocked_leaves_hells_kitchen_out(runs):
    table = analysis.cooking_by_blocked(runs)
    assert rows(table, "model_name", "n_blocked_agents", "n", "estimate") == [
        ("a", 0, 2, 0.5), ("a", 1, 1, None), ("b", 0, 1, 0.0), ("b", 1, 1, 0.0),
    ]  # fmt: skip
    assert table["warning"][1] == NO_OUTCOME


def test_a_run_counts_once_for_each_of_its_items(runs):
    table = analysis.cooking_by_item(runs)
    assert rows(table, "item", "model_name", "n", "estimate") == [
        ("bread", "a", 3, 0.25), ("bread", "b", 2, 0.0), ("cake", "a", 2, 0.5), ("cake", "b", 1, 0.0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("items", "found"), [(["cake"], {"cake"}), (["bread", "cake"], {"bread", "cake"}), (["x"], set())]
)
def test_items_can_be_chosen(runs, items, found):
    assert set(analysis.cooking_by_item(runs, items=items)["item"]) == found
    assert set(analysis.cooking_item_by_blocked(runs, items=items)["item"]) == found


def test_crafting_groups_overlap_and_leave_out_what_has_no_runs(runs):
    table = analysis.crafting_groups(runs)
    found = {(group, model): n for group, model, n in rows(table, "group", "model_name", "n")}
    assert found == {
        ("all", "a"): 2, ("all", "b"): 1, ("base (full plan, depth 0)", "a"): 1, ("base (full plan, depth 0)", "b"): 1,
        ("full plan", "a"): 1, ("full plan", "b"): 1, ("partial plan", "a"): 1, ("depth 0", "a"): 1,
        ("depth 0", "b"): 1, ("depth 2", "a"): 1, ("high depth (1 or 2)", "a"): 1, ("needs a crafting table", "a"): 1,
        ("needs a crafting table", "b"): 1,
    }  # fmt: skip


def test_construction_scores_count_zeros_and_say_so_where_they_do_not(runs):
    table = analysis.construction_scores(runs)
    columns = ("model_name", "n", "estimate", "completed_n", "completed_estimate", "completion_estimate")
    assert rows(table, *columns) == [("a", 2, 0.5, 1, 1.0, 0.5), ("b", 1, 0.4, 1, 0.4, 1.0)]


def test_failed_runs_stand_broken_ones_first_with_message_and_file(runs):
    table = analysis.failed_runs(runs)
    assert len(table) == 8
    assert table["overall_completion_status"].tolist()[:3] == ["LOG_FILE_ERROR", "NO_SCORE_LOGGED", "TIMED_OUT"]
    assert table["parsing_errors"][0].startswith("JSONDecodeError")
    assert table["final_system_message"][2] == "Task timeout reached"
    assert table["source"].str.contains("hand").all()


def test_difficulty_is_ordered_and_unknown_comes_last(runs):
    table = analysis.success_by(analysis.with_difficulty(runs), "difficulty")
    assert table["difficulty"].tolist() == ["easy", "hard", "unknown"]


def test_flags_are_counted_with_their_meaning(runs):
    counts = analysis.flag_counts(runs).set_index("flag")["runs"].to_dict()
    assert counts == {"unreadable_logs": 1}


@pytest.mark.parametrize(
    ("model", "baseline", "sides", "n"),
    [("", "", ["a", "all others"], 12), ("b", "", ["b", "all others"], 12), ("b", "a", ["b", "a"], 12)],
)
def test_one_model_is_set_against_another_or_all_others(runs, model, baseline, sides, n):
    table = analysis.focus(runs, model, baseline)
    assert table["side"].cat.categories.tolist() == sides
    assert len(table) == n
    assert table["side"].notna().all()


@pytest.mark.parametrize(("model", "baseline"), [("x", ""), ("a", "x")])
def test_a_model_without_runs_is_named_with_those_that_have_some(runs, model, baseline):
    with pytest.raises(SourceError, match=r"'x'.*'a', 'b'"):
        analysis.focus(runs, model, baseline)


@pytest.mark.parametrize("name", EMPTY_OK)
def test_no_runs_give_no_rows_and_the_same_columns(runs, name):
    function = getattr(analysis, name)
    empty, full = function(runs.iloc[:0]), function(runs)
    assert len(empty) == 0
    assert list(empty) == list(full)


@pytest.mark.parametrize("name", ["success_by", "completion_by", "score_by", "construction_scores"])
def test_all_runs_together_make_one_row(runs, name):
    assert len(getattr(analysis, name)(runs, [])) == 1
    assert len(getattr(analysis, name)(runs.iloc[:0], [])) == 0


def test_focus_on_no_runs_says_so(runs):
    with pytest.raises(SourceError, match="no run was found"):
        analysis.focus(runs.iloc[:0])


def test_ambiguous_ids_are_listed_with_their_files():
    definitions = TaskDefinitions()
    definitions.add("cook", task(), "one.json")
    definitions.add("cook", task(agent_count=3), "two.json")
    definitions.add("same", task(), "one.json")
    table = analysis.ambiguous_definitions(definitions)
    assert table.to_numpy().tolist() == [["cook", 2, ["one.json", "two.json"]]]


def test_a_sentence_says_that_samples_are_made(runs):
    assert "made-up" in analysis.describe_runs(runs, "samples:mindcraft/runs")
    sentence = analysis.describe_runs(runs, "my/logs")
    assert sentence.startswith("12 runs of a, b on 7 tasks (")
    assert "made-up" not in sentence


def test_events_are_means_per_run(runs):
    table = analysis.event_means(runs)
    assert rows(table, "model_name", "n") == [("a", 8), ("b", 4)]
    assert math.isclose(table["message_count"][0], runs[runs["model_name"] == "a"]["message_count"].mean())


def test_tasks_of_one_id_and_two_definitions_are_two_tasks(tmp_path):
    files = {f"tasks/{name}.json": {"t": task(agent_count=n)} for name, n in (("a", 1), ("b", 2))}
    for model, name in (("m1", "a"), ("m2", "b"), ("m3", "b")):
        files |= {f"runs/exp_{model}/t/Andy_0_0.json": 1}
        files |= {f"runs/exp_{model}/results.txt": repr({"model": model, "task_path": f"tasks/{name}.json"})}
    runs = runs_df(write_all(tmp_path, files) / "runs", tmp_path / "tasks")
    assert analysis.success_by(runs, [])["n_clusters"].tolist() == [2]
    pairs = compare.pairs(runs)
    assert pairs["n_tasks"].tolist() == [0, 0, 1]


def test_experiments_of_one_name_in_two_folders_are_counted_apart(tmp_path):
    files = {f"cooking/m/{suite}/exp/t{n}/Andy_0_0.json": 1 for suite in ("s1", "s2") for n in range(2)}
    files |= {f"cooking/m/{suite}/exp/results.txt": "{'model': 'm', 'total': 3}" for suite in ("s1", "s2")}
    table = analysis.progress(runs_df(write_all(tmp_path, files | {"cooking/m/s1/own/t/Andy_0_0.json": 1})))
    assert table[["experiment", "tasks"]].to_numpy().tolist() == [["own", 1], ["s1/exp", 2], ["s2/exp", 2]]
    assert table["tasks_expected"].tolist()[1:] == [3, 3]
