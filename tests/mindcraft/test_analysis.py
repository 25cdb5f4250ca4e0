"""Tables, figures and findings of runs: counted by hand, with runs that logged no score both ways."""

import math
import re

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit import compare
from evalkit._notes import NO_NOTES, note
from evalkit.cli import main
from evalkit.display import finding_text
from evalkit.display.drawing import has_nothing_to_draw
from evalkit.kinds import kind_named, rates_by_denominator, usage
from evalkit.mindcraft import aggregate_results_to_dataframe, analysis, figures, load, runs_df, words
from evalkit.mindcraft.analysis import ENDINGS
from tests.mindcraft.builders import SCORE, log, task, write_all

B1, B2 = "materials_0_rooms_1", "materials_1_rooms_1"
TASKS = {
    "c1": task(target={"bread": 1, "cake": 1}, blocked_access_to_recipe=[], difficulty="hard"),
    "c2": task(target={"bread": 1}, blocked_access_to_recipe=["0"], difficulty="easy"),
    "hk": task(target=["bread", "cake"]),
    "t1": task("techtree", depth=0, missing_items=[], requires_ctable=True),
    "t2": task("techtree", depth=2, blocked_actions={"0": ["!getCraftingPlan"]}),
    B1: task("construction"),
    B2: task("construction"),
}
# model, task, repetition: score, None (no score), "timeout", "late" (with a score of 1) or "broken"; c was not measured
RUNS = {
    ("a", "c1", 0): 1, ("a", "c1", 1): 0, ("a", "c2", 0): None, ("a", "hk", 0): 1, ("a", "t1", 0): 1,
    ("a", "t2", 0): 0.5, ("a", B1, 0): 100, ("a", B2, 0): 0,
    ("b", "c1", 0): 0, ("b", "c2", 0): "timeout", ("b", "t1", 0): "broken", ("b", B1, 0): 40, ("b", "t2", 0): "late",
    ("c", "t1", 0): None, ("c", "t2", 0): "broken",
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    files = {}
    for (model, task_id, repetition), score in RUNS.items():
        late = log("Task timeout reached", f"{SCORE}1")
        content = {"timeout": log("Task timeout reached"), "late": late, "broken": b"{"}.get(score, score)
        for agent in ("Andy_0", "Jill_1"):
            files[f"hand/{model}/{task_id}/{agent}_{repetition}.json"] = content
    return runs_df(write_all(tmp_path_factory.mktemp("runs"), files), TASKS)


def rows(table, *columns) -> list[tuple]:
    values = zip(*(table[column] for column in columns), strict=True)
    return [tuple(None if v != v else round(v, 4) if isinstance(v, float) else v for v in row) for row in values]


def test_a_run_that_was_not_measured_is_a_failure_and_a_model_of_no_others_has_no_rate(runs):
    expected = [("a", 8, 0.5, 1), ("b", 5, 0.2, 1), ("c", 2, None, 2)]
    for table in (analysis.success_by(runs), analysis.overview(runs)):
        assert rows(table, "model_name", "n", "estimate", "n_not_measured") == expected
        inside = (table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])
        assert inside.tolist() == [True, True, False]
        assert [str(warning) for warning in table["warning"]][2:] == ["no run was measured"]
    both = rows(rates_by_denominator(runs), "n_measured", "measured_estimate", "highest_estimate")
    assert both == [(7, 0.5833, 0.6429), (4, 0.25, 0.4), (0, None, None)]


def test_statuses_sum_to_n_by_any_columns(runs):
    table = analysis.overview(runs)
    assert table[list(ENDINGS)].sum(axis=1).tolist() == table["n"].tolist() == [8, 5, 2]
    assert rows(table, "SUCCESS", "FAILED_PARTIAL_SCORE", "FAILED_SCORE_ZERO") == [(4, 1, 2), (0, 1, 1), (0, 0, 0)]
    other = ("TIMED_OUT", "TIMED_OUT_SUCCEEDED", "NO_SCORE_LOGGED", "LOG_FILE_ERROR")
    assert rows(table, *other) == [(0, 0, 1, 0), (1, 1, 0, 1), (0, 0, 1, 1)]
    for by in ("overall_score", "n_blocked_agents", ["model_name", "model_name"], ["task_type", "difficulty"], []):
        table = analysis.overview(runs, by)
        assert table["n"].sum() == table[list(ENDINGS)].sum().sum() == len(runs)


def test_an_unknown_number_of_blocked_agents_stands_before_the_overall_row(runs):
    unknown = runs.assign(n_blocked_agents=runs["n_blocked_agents"].mask(runs["model_name"] == "b"))
    expected = [("a", "0", 2, 0.5), ("a", "1", 1, None), ("a", "overall", 3, 0.25),  # none of Hell's Kitchen
                ("b", "unknown", 2, 0.0), ("b", "overall", 2, 0.0)]  # fmt: skip
    assert rows(analysis.cooking_table(unknown), "model_name", "n_blocked_agents", "n", "estimate") == expected


def test_tasks_of_one_id_and_two_definitions_are_two_tasks(tmp_path):
    files = {f"tasks/{name}.json": {"t": task(agent_count=n)} for name, n in (("a", 1), ("b", 2))}
    for model, name in (("m1", "a"), ("m2", "b"), ("m3", "b")):
        files |= {f"runs/exp_{model}/t/Andy_0_0.json": 1}
        files |= {f"runs/exp_{model}/results.txt": repr({"model": model, "task_path": f"tasks/{name}.json"})}
    runs = runs_df(write_all(tmp_path, files) / "runs", tmp_path / "tasks")
    assert analysis.success_by(runs, [])["n_tasks"].tolist() == [2]
    assert compare.pairs(runs)["n_tasks"].tolist() == [0, 0, 1]


def crafting(plan: str, depth: int, missing: bool = False, table: bool = False) -> dict:
    blocked = {"full": "", "partial": "0", "none": "01"}[plan]
    actions = {agent: ["!getCraftingPlan"] * (agent in blocked) for agent in "01"}
    items = ["stick"] * missing
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
    "all": (11, 6), "base (full plan, depth 0)": (1, 1), "base without plan (items missing)": (2, 1),
    "missing items": (5, 2), "full plan": (4, 2), "partial plan": (2, 1), "no plan": (5, 3), "depth 0": (7, 3),
    "depth 1": (2, 2), "depth 2": (2, 1), "high depth (1 or 2)": (4, 3), "needs a crafting table": (1, 0),
}  # fmt: skip


def test_crafting_groups_follow_the_definitions_of_minecollab(tmp_path):
    files = {f"x/m/{task_id}/agent_0.json": score for task_id, (_, score) in CRAFTED.items()}
    runs = runs_df(write_all(tmp_path, files), {task_id: definition for task_id, (definition, _) in CRAFTED.items()})
    table = analysis.crafting_groups(runs)
    counts = zip(table["n"], (table["n"] * table["estimate"]).round(), strict=True)
    assert dict(zip(table["group"], counts, strict=True)) == GROUPS


STALE = ["success_by", "status_counts", "overview", "event_means", "cooking_by_item", "cooking_table",
         "cooking_trend", "crafting_groups", "construction_scores", "failed_runs", "describe_scale"]  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_stale_copies_count_in_nothing(runs, name):
    opposite = ~runs["overall_is_successful"]
    flagged = {"run_flags": [["stale_copy"]] * len(runs)}
    flagged |= {"overall_is_successful": opposite, "is_successful": opposite, "overall_score": 0.9, "score": 0.9}
    copies = runs.assign(**flagged)
    function = getattr(analysis, name)
    alone, mixed = function(runs), function(pd.concat([runs, copies], ignore_index=True))
    if name == "describe_scale":
        assert mixed == alone
        return
    same = list(alone.columns.drop("warning", errors="ignore"))
    pd.testing.assert_frame_equal(alone[same], mixed[same])
    if "warning" in alone and name != "cooking_trend":
        assert mixed["warning"].map(str).str.contains(r"\d+ cop(?:y|ies) left out").all()


@pytest.mark.parametrize("name", ["success_by", "status_counts", "overview", "event_means", "construction_scores"])
def test_without_groups_there_is_one_row_for_all_runs(runs, name):
    assert len(getattr(analysis, name)(runs, [])) == 1


TEN = {
    "task_id": "cook", "model_name": "m", "agent_count": 2, "task_type": "cooking", "overall_raw_score": 1.0,
    "overall_is_successful": True, "overall_completion_status": "SUCCESS", "total_agent_logs_found": 2,
    "agent_outcomes": [], "task_definition_metrics": {"total_recipe_steps": 4},
}  # fmt: skip


def test_outcomes_with_the_ten_documented_keys_are_enough():
    other = {**TEN, "overall_raw_score": None, "overall_is_successful": False, "model_name": None}
    table = aggregate_results_to_dataframe([TEN, other])
    run = table.iloc[0]
    kept = {name: value for name, value in TEN.items() if name not in ("agent_outcomes", "task_definition_metrics")}
    assert run[list(kept)].to_dict() == kept
    assert (run["metric_total_recipe_steps"], run["overall_is_completed"]) == (4, True)
    assert run[["source", "experiment", "difficulty", "repetition", "timeout", "overall_score"]].isna().all()
    assert not table.filter(like="flag_").any(axis=None)
    assert table.dtypes.equals(aggregate_results_to_dataframe([TEN]).dtypes)
    table = aggregate_results_to_dataframe([TEN, {**other, "model_name": "n"}])
    for name in (*STALE, "progress", "flag_counts", "stale_copies", "with_difficulty"):
        getattr(analysis, name)(table)
    assert analysis.success_by(table)["estimate"].tolist() == [1, 0]


def test_metrics_of_a_definition_stand_below_difficulty_metrics(tmp_path):
    stated = {"steps": 4, "category": "easy", "is": True, "list": [1], "in": {"b": 2}}
    tasks = {"c1": task(difficulty_metrics=stated), "c2": task(difficulty_metrics=7, steps=5)}
    runs = runs_df(write_all(tmp_path, {f"x/m/{name}/Andy_0_0.json": 1 for name in tasks}), tasks)
    metrics = runs.set_index("task_id").filter(like="metric_")
    assert metrics.loc["c1"].to_dict() == {"metric_steps": 4.0, "metric_category": "easy", "metric_is": True}
    assert metrics.loc["c2"].isna().all()


def test_figures_are_drawn_also_without_runs(runs):
    for some in (runs, runs[:0]):
        by_type = figures.estimates(analysis.success_by(some, ["task_type", "model_name"]), "task_type", "model_name")
        for ax in (by_type, figures.statuses(analysis.status_counts(some)), figures.scores(some)):
            assert has_nothing_to_draw(ax.figure) is some.empty


CRAFTS = [f"multiagent_crafting_{name}_full_plan__depth_0" for name in ("bed", "bookshelf", "candle", "shears", "wool")]


def test_findings_lead_to_runs_that_they_count(tmp_path):
    scores = {"alder": (1.0, 1.0, 0.0, 0.0, None), "birch": (1.0,) * 5}
    files = {f"{m}/{t}/Andy_0_0.json": score for m, own in scores.items() for t, score in zip(CRAFTS, own, strict=True)}
    logs = load(write_all(tmp_path, files))
    sides = analysis.focus(logs.runs, "alder")
    by_side = sides.assign(model_name=sides["side"].astype("str"))
    opposite = compare.examples(compare.discordant(by_side, "alder"))
    found = analysis.findings(sides, compare.pairs(by_side), logs.ledger, opposite)
    runs = logs.runs.set_index("run_id")
    rate, against, endings, data = (finding.examples for finding in found)
    assert [runs.loc[one.run_id, "score"] for one in rate] == [1.0, 0.0]
    assert {runs.loc[one.run_id, "model_name"] for one in rate} == {"alder"}
    assert {(runs.loc[one.run_id, "task_id"] == runs.loc[one.other, "task_id"]) for one in against} == {True}
    assert {runs.loc[one.other, "model_name"] for one in against} == {"birch"}
    ways = {one.label: runs.loc[one.run_id, "status"] for one in endings}
    assert ways == {"score of zero": "FAILED_SCORE_ZERO", "no score logged": "NO_SCORE_LOGGED"}
    assert all(one.label.replace(" ", "_") in runs.loc[one.run_id, "run_flags"] for one in data)


def blocked(folder, models, tasks):
    """Make cooking runs: by model the successes without and with blocked agents, of so many tasks each."""
    files, definitions = {}, {}
    for side, n_blocked in (("free", 0), ("one", 1), ("two", 2)):
        for place in range(tasks):
            name = f"{side}{place}"
            definitions[name] = task(target={"bread": 1}, blocked_access_to_recipe=list(map(str, range(n_blocked))))
            for model, successes in models.items():
                score = int(place < successes[min(n_blocked, 1)])
                files[f"x/{model}/{name}/Andy_0_0.json"] = log(f"{SCORE}{score}", who=f"{model} {name}")
    return runs_df(write_all(folder, files), definitions)


def test_the_drop_of_cooking_success_is_that_of_all_models_together_and_of_each(tmp_path):
    runs = blocked(tmp_path, {"a": (10, 4), "b": (5, 5)}, tasks=10)
    table = analysis.cooking_drop(runs)
    assert table["model_name"].tolist() == [analysis.ALL_MODELS, "a", "b"]
    assert table["estimate"].tolist() == pytest.approx([0.3, 0.6, 0.0])
    assert table["none_estimate"].tolist() == pytest.approx([0.75, 1.0, 0.5])
    assert table[["none_n_tasks", "any_n_tasks"]].to_numpy().tolist() == [[10, 20]] * 3
    row = table.iloc[1]  # Newcombe 1998, method 10, with the limits of Wilson
    assert row["low"] == pytest.approx(0.6 - ((1 - row["none_low"]) ** 2 + (row["any_high"] - 0.4) ** 2) ** 0.5)
    drop, tasks = analysis.drop_findings(runs)
    assert finding_text(drop).startswith("Cooking success drops by 30 points [")
    assert "from 75 % on 10 tasks without blocked agents to 45 % on 20 tasks with any" in finding_text(drop)
    assert "has its own tasks (0: 10 tasks, 1: 10 tasks, 2: 10 tasks)" in finding_text(tasks)


UNSURE = "No drop of cooking success with blocked agents was detected: 0 points ["


@pytest.mark.parametrize(("successes", "text"), [((5, 5), UNSURE), ((0, 10), "Cooking success rises by 100")])
def test_a_drop_is_claimed_only_where_its_interval_shows_one(tmp_path, successes, text):
    drop, *_ = analysis.drop_findings(blocked(tmp_path, {"a": successes}, tasks=10))
    assert finding_text(drop).startswith(text)


def test_without_runs_on_both_sides_there_is_no_drop_but_a_reason(runs):
    table = analysis.cooking_drop(runs[runs["task_id"] == "c1"])
    assert table["estimate"].isna().all()
    assert "no model was measured both" in str(table["warning"].iloc[0])
    assert "no run with blocked agents was measured" in str(table["warning"].iloc[1])
    assert analysis.cooking_drop(runs[:0]).empty


LEVELS = {"0": 0, "1": 1, "2": 2}


@pytest.mark.parametrize(
    ("results", "drop", "said"),
    [
        # each model drops by half, of a level of its own: together they do not drop by 0.75
        ({"a": {"0": "1111", "1": "10"}, "b": {"0": "10", "1": "0000"}}, 0.5, "50 points ["),
        ({"a": {"0": "11"}, "b": {"1": "00"}, "c": {"2": "00"}}, None, "no model was measured both"),
        ({"a": {"0": "1111", "2": "0000"}, "b": {"1": "11111"}}, 1, "100 points [31, 100], from 100 % on 4 tasks"),
        ({"a": {"0": "1", "1": "0"}}, 1, "is 100 points (no interval: too few tasks), from 100 % on 1 task"),
        ({"a": {"0": "1", "1": "0"}, "b": {"0": "1", "1": "0"}}, 1, "is 100 points (no interval: too few tasks)"),
        ({"a": {"0": "111"}}, None, "is unknown: no run with blocked agents was measured."),
        ({"a": {"1": "011", "2": "1"}}, None, "is unknown: no run without blocked agents was measured."),
    ],
)
def test_the_drop_of_all_models_is_one_within_models(tmp_path, results, drop, said):
    files, definitions = {}, {}
    for model, levels in results.items():
        for level, scores in levels.items():
            for place, score in enumerate(scores):
                agents = [str(agent) for agent in range(LEVELS[level])]
                definitions[f"t{level}_{place}"] = task(target={"bread": 1}, blocked_access_to_recipe=agents)
                content = log(f"{SCORE}{score}", who=f"{model} {level} {place}")
                files[f"x/{model}/t{level}_{place}/Andy_0_0.json"] = content
    runs = runs_df(write_all(tmp_path, files), definitions)
    row = analysis.cooking_drop(runs).iloc[0]
    assert row["estimate"] == pytest.approx(drop, nan_ok=True) if drop is not None else pd.isna(row["estimate"])
    first, *others = map(finding_text, analysis.drop_findings(runs))
    assert said in first
    assert "nan" not in first
    assert "rough interval" not in first  # there is none
    grid = analysis.rates_by_blocked(runs).set_index(["model_name", "n_blocked_agents"])["estimate"]
    assert grid.get((row["model_name"], 0), math.nan) == pytest.approx(row["none_estimate"], nan_ok=True)
    assert bool(others) == (drop is not None)  # nothing explains a drop that was not estimated


def test_the_interval_of_all_models_is_that_of_a_task_mean_where_all_ran_all_tasks(tmp_path):
    runs = blocked(tmp_path, {"a": (8, 3), "b": (6, 3), "c": (7, 5)}, tasks=10)
    table = analysis.cooking_drop(runs).set_index("model_name")
    assert table.loc["all models", "estimate"] == pytest.approx(table.loc[["a", "b", "c"], "estimate"].mean())
    free = analysis.success_by(runs[runs["n_blocked_agents"] == 0], [])
    pooled = free[["estimate", "low", "high"]].to_numpy()[0]
    assert table.loc["all models", ["none_estimate", "none_low", "none_high"]].tolist() == pytest.approx(pooled)


def test_the_command_prints_a_grid_of_models_and_blocked_agents(tmp_path):
    files = {f"runs/x/m/{name}/Andy_0_0.json": score for name, score in (("c1", 1), ("c2", 0))}
    definitions = write_all(tmp_path, {**files, "tasks.json": TASKS})
    line = ["mindcraft", str(definitions / "runs"), "--tasks", str(definitions / "tasks.json")]
    for more in ([], ["--by", "n_blocked_agents"]):
        text = CliRunner().invoke(main, [*line, *more]).output
        assert re.search(r"0 blocked +1 blocked +drop, points", text)
        assert "has its own tasks" in text
        assert ("no trend" in text) == bool(more)


@pytest.mark.parametrize("models", [1, 4, 9, 26])
def test_the_grid_of_blocked_agents_and_its_caveat_stand_on_one_screen_whatever_the_number_of_models(tmp_path, models):
    files = {
        f"logs/x/model-{model:02}/{name}/Andy_0_0.json": model % 2 for model in range(models) for name in ("c1", "c2")
    }
    folder = write_all(tmp_path, {**files, "tasks.json": TASKS})
    text = CliRunner().invoke(main, ["mindcraft", str(folder / "logs"), "--tasks", str(folder / "tasks.json")]).output
    assert len(text.splitlines()) <= 24
    assert "Each number of blocked agents has its own tasks (0: 1 task, 1: 1 task)" in text
    grid = text.split("drop, points [95 %]")[1].split("\n\n")[0].splitlines()[2:]
    assert len(grid) == (1 if models == 1 else 5)  # 4 models and all models, or the first and last rows
    assert ("more models by blocked agents" in text) == (models > 5)


def test_trends_that_cannot_be_tested_are_not_called_undetected(tmp_path):
    one_level = blocked(tmp_path / "x", dict.fromkeys("abcd", (3, 2)), tasks=4)
    one_level = one_level[one_level["n_blocked_agents"].eq(0) | one_level["model_name"].isin(["a", "b"])]
    said = [finding_text(one) for one in analysis.trend_findings(one_level, analysis.cooking_trend(one_level))]
    assert said[0].startswith("a and b: no trend with blocked agents was detected")
    assert said[1].startswith("c and d: no trend with blocked agents can be tested")
    free = one_level[one_level["n_blocked_agents"].eq(0)]
    (alone,) = map(finding_text, analysis.trend_findings(free, analysis.cooking_trend(free)))
    assert alone.startswith("4 models: no trend with blocked agents can be tested")


@pytest.mark.parametrize(
    ("direction", "p_value", "doubt", "said"),
    [
        ("falls", 0.001, NO_NOTES, "m: success falls with every blocked agent (p = 0.001, 8 runs of 4 tasks)."),
        ("rises overall", 0.02, NO_NOTES, "m: success rises overall, but not every step is decided (p = 0.02"),
        ("no", 0.3, note("unlike", claim_at=0.025), "m: no trend was detected (p = 0.3, 8 runs of 4 tasks); one"),
        (
            "no",
            0.031,
            note("unlike", claim_at=0.025),
            "(p = 0.031, 8 runs of 4 tasks), because clusters of some",
        ),
        ("no", 0.0004, note("uneven"), "many more runs than clusters of other levels."),
    ],
)
def test_a_trend_that_is_not_claimed_in_spite_of_its_p_value_has_a_reason(direction, p_value, doubt, said):
    row = {"model_name": "m", "p_value": p_value, "p_holm": p_value, "n": 8, "n_tasks": 4}
    text = words.trend({**row, "direction": direction, "warning": doubt})
    assert said in text
    assert ("because" in text) == (direction == "no" and p_value <= 0.05)
    assert "each step" not in text


def test_the_table_of_types_begins_with_the_rate_of_all(runs):
    own = runs[runs["model_name"] == "a"]
    table = analysis.with_total(own, "task_type", "all types")
    assert table["task_type"].iloc[0] == "all types"
    assert table["estimate"].iloc[0] == analysis.success_by(own, [])["estimate"].item()


PLAN = {f"cook{i}": task() for i in range(4)} | {f"craft{i}": task("techtree", 3) for i in range(3)}


@pytest.mark.parametrize(
    ("where", "planned"),
    [
        ([], [*PLAN]),
        (["task_type=cooking"], [f"cook{i}" for i in range(4)]),
        (["agent_count>=3"], ["craft0", "craft1"]),  # nobody ran craft2, so that nothing shows that the filter takes it
        (["model_name=b"], [*PLAN]),  # all runs of b are still there
        (["model_name=b", "task_type=cooking"], ["cook0", "cook1", "cook2"]),
        (["score<1"], ["craft1"]),  # of other tasks some runs are left out
    ],
)
def test_a_filter_takes_the_tasks_of_the_runs_that_it_leaves_out_from_the_plan(tmp_path, where, planned):
    files = {f"x/a/{name}/Andy_0_0.json": int(name != "craft1") for name in list(PLAN)[:-1]}
    files |= {f"x/b/{name}/Andy_0_0.json": int(name != "craft1") for name in PLAN if name not in ("cook3", "craft2")}
    write_all(tmp_path, {**files, "tasks/all.json": PLAN})
    logs = load(tmp_path / "x", tmp_path / "tasks", where=where)
    assert logs.kind.planned(logs) == planned
    assert analysis.planned_tasks(logs, logs.runs) == planned


def test_turns_of_which_logs_keep_the_last_are_not_what_a_run_takes(runs):
    assert "turns" not in usage(runs)["quantity"].tolist()
    assert "turns" in usage(runs, kind=kind_named("crafter"))["quantity"].tolist()


def test_missing_trials_are_planned_tasks_whatever_the_repetitions_of_others(tmp_path):
    files = {f"x/a/{name}/Andy_0_{number}.json": 1 for name in PLAN for number in range(3)}
    files |= {f"x/b/{name}/Andy_0_0.json": 0 for name in list(PLAN)[1:]}
    logs = load(write_all(tmp_path, {**files, "tasks/all.json": PLAN}) / "x", tmp_path / "tasks")
    [row] = compare.audit(logs, checks=["missing trials"]).table.to_dict("records")
    assert (row["count"], row["n"]) == (1, 14)
