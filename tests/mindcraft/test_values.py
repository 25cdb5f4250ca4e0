"""Exact values of what reports show, counted by hand on small folders of runs."""

import json

import pandas as pd
import pytest

from evalkit.kinds import denominators
from evalkit.mindcraft import aggregate_results_to_dataframe, analysis, runs_df
from tests.mindcraft.builders import SCORE, log, task, write_all

PLAN = "!getCraftingPlan"


def crafting(plan: str, depth: int, missing: bool = False, table: bool = False) -> dict:
    blocked = {"full": [[], []], "partial": [[PLAN], []], "none": [[PLAN], [PLAN]]}[plan]
    actions = {str(agent): names for agent, names in enumerate(blocked)}
    items = ["stick"] if missing else []
    return task("techtree", depth=depth, blocked_actions=actions, missing_items=items, requires_ctable=table)


# id: definition and score
CRAFTED = {
    "full_0": (crafting("full", 0), 1), "full_0_missing_item": (crafting("full", 0, missing=True), 0),
    "full_0_by_id_missing": (crafting("full", 0), 0), "full_1": (crafting("full", 1), 1),
    "partial_0": (crafting("partial", 0, table=True), 0), "partial_2": (crafting("partial", 2), 1),
    "none_0": (crafting("none", 0), 1), "none_0_missing": (crafting("none", 0, missing=True), 1),
    "none_0_missing_too": (crafting("none", 0, missing=True), 0), "none_1_missing": (crafting("none", 1, True), 1),
    "none_2": (crafting("none", 2), 0),
}  # fmt: skip
GROUPS = {
    "all": (11, 6), "base (full plan, depth 0)": (1, 1), "base without plan (items missing too)": (2, 1),
    "missing items": (5, 2), "full plan": (4, 2), "partial plan": (2, 1), "no plan": (5, 3), "depth 0": (7, 3),
    "depth 1": (2, 2), "depth 2": (2, 1), "high depth (1 or 2)": (4, 3), "needs a crafting table": (1, 0),
}  # fmt: skip


def test_crafting_groups_follow_the_definitions_of_minecollab(tmp_path):
    files = {f"x/m/{task_id}/agent_0.json": score for task_id, (_, score) in CRAFTED.items()}
    runs = runs_df(write_all(tmp_path, files), {task_id: definition for task_id, (definition, _) in CRAFTED.items()})
    table = analysis.crafting_groups(runs)
    counts = zip(table["n"], (table["n"] * table["estimate"]).round(), strict=True)
    assert dict(zip(table["group"], counts, strict=True)) == GROUPS
    assert set(table["group"]) == set(GROUPS)


COOKS = {
    **{f"free_{i}": (task(target={"bread": 1}, blocked_access_to_recipe=[]), i < 2) for i in range(5)},
    **{f"two_{i}": (task(target={"cake": 1}, blocked_access_to_recipe=["0", "1"]), i < 1) for i in range(4)},
    **{f"kitchen_{i}": (task(target=["cake", "bread"]), True) for i in range(6)},
}
CRAFTS = {f"craft_{i}": (task("techtree"), i < 3) for i in range(4)}
BUILDS = {f"materials_{i}_rooms_1": (task("construction"), score) for i, score in enumerate((100, 50, 0))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Cooking 3 of 9, every task run twice, Hell's Kitchen 6 of 6, crafting 3 of 4, construction 100, 50, 0."""
    root = tmp_path_factory.mktemp("values")
    tasks = COOKS | CRAFTS | BUILDS
    files = {f"x/m/{name}/Andy_0_0.json": float(score) for name, (_, score) in tasks.items()}
    files |= {f"x/m/{name}/Andy_0_1.json": float(score) for name, (_, score) in COOKS.items() if "kitchen" not in name}
    write_all(root / "runs", {name: log(f"{SCORE}{score:g}", who=name) for name, score in files.items()})
    return write_all(root, {"tasks.json": {name: definition for name, (definition, _) in tasks.items()}})


@pytest.fixture(scope="module")
def runs(folder):
    return runs_df(folder / "runs", folder / "tasks.json")


def test_cooking_stands_with_overall_rows_by_model_and_by_item(runs):
    table = analysis.cooking_table(runs)
    rows = zip(table["n_blocked_agents"], table["n"], table["estimate"].round(3), strict=True)
    assert list(rows) == [("0", 10, 0.4), ("2", 8, 0.25), ("overall", 18, 0.333)]  # none of Hell's Kitchen
    assert analysis.headline(analysis.cooking(runs), "cooking")["n_clusters"] == 9
    table = analysis.cooking_by_item(runs, "n_blocked_agents")
    rows = zip(table["item"], table["n_blocked_agents"], table["n"], strict=True)
    assert list(rows) == [("bread", 0, 10), ("cake", 2, 8)]
    unknown = runs.assign(n_blocked_agents=runs["n_blocked_agents"].mask(runs["task_id"] == "free_0"))
    assert analysis.cooking_table(unknown)["n_blocked_agents"].tolist() == ["0", "2", "unknown", "overall"]


def test_construction_stands_by_material_and_by_room(runs):
    by_material = analysis.construction_scores(runs, ["materials", "model_name"])
    assert by_material[["materials", "n", "estimate"]].to_numpy().tolist() == [[0, 1, 1], [1, 1, 0.5], [2, 1, 0]]
    by_room = analysis.construction_scores(runs, ["rooms", "model_name"])
    assert by_room[["rooms", "n", "estimate", "completed_n"]].to_numpy().tolist() == [[1, 3, 0.5, 2]]
    both = analysis.construction_scores(runs, ["materials", "rooms", "model_name"])
    assert both[["materials", "rooms"]].to_numpy().tolist() == [[0, 1], [1, 1], [2, 1]]


NO_SCORE = "no run was measured"


@pytest.fixture(scope="module")
def unscored(tmp_path_factory):
    """Model a: 1 of 2 (one without a score); model b: nothing measured; and runs of no named model, all successes."""
    files = {"exp_1/b/t1/Andy_0_0.json": None, "exp_1/b/t2/Andy_0_0.json": b"{"}
    files |= {"exp_1/a/t1/Andy_0_0.json": 1, "exp_1/a/t2/Andy_0_0.json": None, "runs/t1/Andy_0_0.json": 1}
    tasks = {name: task(blocked_access_to_recipe=[], target={"bread": 1}) for name in ("t1", "t2")}
    return runs_df(write_all(tmp_path_factory.mktemp("unscored"), files), tasks)


@pytest.mark.parametrize("function", ["success_by", "overview"])
def test_a_model_of_which_no_run_logged_a_score_has_no_rate_and_the_reason(unscored, function):
    table = getattr(analysis, function)(unscored).set_index("model_name")
    assert table.loc["b", ["estimate", "low", "high"]].isna().all()
    assert (str(table.loc["b", "warning"]), table.loc["b", "n_not_measured"], table.loc["b", "n"]) == (NO_SCORE, 2, 2)
    assert (table.loc["a", "estimate"], table.loc["a", "n"], table.loc["a", "n_not_measured"]) == (0.5, 2, 1)
    both = denominators(unscored).set_index("model_name")
    assert (both.loc["a", "measured_estimate"], both.loc["a", "n_measured"]) == (1, 1)
    assert both.loc["b", ["measured_estimate", "measured_low", "highest_estimate"]].isna().all()


def construction(tmp_path, *scores: float) -> pd.DataFrame:
    files = {f"x/m/build_{i}/Andy_0_0.json": score for i, score in enumerate(scores)}
    return runs_df(write_all(tmp_path, files), {f"build_{i}": task("construction") for i in range(len(scores))})


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ((1, 40), ["read as percentages", "the highest is 40"]),
        ((1, 0.5), ["taken for fractions", "the mean is 75 %", "1 of 2 runs is a whole build", "would be 0.75 %"]),
        ((0, 0), ["read as fractions"]),
    ],
)
def test_the_scale_of_construction_is_said_in_words_with_the_other_reading(tmp_path, scores, words):
    text = analysis.describe_scale(construction(tmp_path, *scores))
    assert all(part in text for part in words), text


STALE = ["success_by", "score_by", "status_counts", "overview", "event_means", "cooking_by_item", "cooking_table",
         "cooking_trend", "crafting_groups", "construction_scores", "failed_runs", "describe_scale"]  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_stale_copies_count_in_nothing(runs, name):
    copies = runs.assign(
        flag_stale_copy=True,
        run_flags=[["stale_copy"]] * len(runs),
        overall_is_successful=~runs["overall_is_successful"],
        overall_score=0.9,
    )
    function = getattr(analysis, name)
    alone, mixed = function(runs), function(pd.concat([runs, copies], ignore_index=True))
    if isinstance(alone, pd.DataFrame):
        drop = [column for column in ("warning", "sentence") if column in alone]
        pd.testing.assert_frame_equal(alone.drop(columns=drop), mixed.drop(columns=drop))
        if "warning" in alone and name != "cooking_trend":
            assert mixed["warning"].map(str).str.contains(r"\d+ stale cop(?:y|ies) left out").all()
    elif isinstance(alone, dict):
        assert {**mixed, "warning": ""} == {**alone, "warning": ""}
    else:
        assert mixed == alone


TEN = {
    "task_id": "cook", "model_name": "m", "agent_count": 2, "task_type": "cooking", "overall_raw_score": 1.0,
    "overall_is_successful": True, "overall_completion_status": "SUCCESS", "total_agent_logs_found": 2,
    "agent_outcomes": [], "task_definition_metrics": {"total_recipe_steps": 4},
}  # fmt: skip
AGENT = {
    "raw_score": 1.0, "completion_status": "SUCCESS", "final_system_message": f"{SCORE}1",
    "agent_log_processed": True, "parsing_errors": ["x"], "timed_out": False,
}  # fmt: skip


@pytest.mark.parametrize("agents", [[], [AGENT, AGENT]])
def test_outcomes_with_the_ten_documented_keys_are_enough(agents):
    other = {**TEN, "overall_raw_score": None, "overall_is_successful": False, "model_name": None}
    table = aggregate_results_to_dataframe([{**TEN, "agent_outcomes": agents}, other])
    run = table.iloc[0]
    kept = {name: value for name, value in TEN.items() if name not in ("agent_outcomes", "task_definition_metrics")}
    assert run[list(kept)].to_dict() == kept
    assert (run["metric_total_recipe_steps"], run["overall_is_completed"]) == (4, True)
    assert run[["source", "experiment", "difficulty", "repetition", "timeout", "overall_score"]].isna().all()
    assert not table.filter(like="flag_").any(axis=None)
    assert table.dtypes.equals(aggregate_results_to_dataframe([TEN]).dtypes)


def test_every_analysis_takes_outcomes_with_the_ten_documented_keys():
    outcomes = [{**TEN, "model_name": model, "overall_is_successful": model == "a"} for model in "ab"]
    table = aggregate_results_to_dataframe(outcomes)
    for name in (*STALE, "progress", "flag_counts", "stale_copies", "with_difficulty"):
        getattr(analysis, name)(table)
    assert analysis.success_by(table)["estimate"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("definition", "metrics"),
    [
        ({"difficulty_metrics": {"total_recipe_steps": 4}}, {"total_recipe_steps": 4}),
        ({"difficulty_metrics": {"category": "easy", "a": 1.5, "is": True, "list": [1], "in": {"b": 2}}},
         {"category": "easy", "a": 1.5, "is": True}),
        ({"difficulty_metrics": 7, "total_recipe_steps": 5}, {}),
    ],
)  # fmt: skip
def test_metrics_of_a_definition_stand_below_difficulty_metrics(tmp_path, definition, metrics):
    root = write_all(tmp_path, {"x/m/cook/Andy_0_0.json": 1})
    run = runs_df(root, {"cook": task(**definition)}).iloc[0]
    found = {name.removeprefix("metric_"): run[name] for name in run.index if name.startswith("metric_")}
    assert json.loads(json.dumps(found, default=float)) == metrics
