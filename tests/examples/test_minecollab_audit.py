"""What the original scripts say: recorded for the samples, and run live where the scripts lie beside the checkout."""

import importlib.util
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from evalkit.io import resolve
from evalkit.mindcraft import analysis, load
from tests.examples.originals import SCRIPTS, call_all

EXAMPLE = Path(__file__).parents[2] / "examples/minecollab-audit/minecollab_audit.py"
_SPEC = importlib.util.spec_from_file_location("minecollab_audit", EXAMPLE)
example = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(example)
live = pytest.mark.skipif(not SCRIPTS.is_dir(), reason="the original scripts are not here")
UNSCORED = SCRIPTS.parents[1] / "data/mindcraft/unscored_logs"

# names of groups here: keys of what the crafting scripts return
CRAFTING = {
    "all": "", "base": "base_", "base without plan": "base_no_plan_", "missing": "missing_", "full plan": "full_plan_",
    "partial plan": "partial_plan_", "no plan": "no_plan_", "high depth": "high_depth_", "depth 0": "depth_0_",
    "depth 1": "depth_1_", "depth 2": "depth_2_",
}  # fmt: skip
NOTHING = (0, 0.0, 0.0)
NO_FOLDER = "no task folder in it: nothing is said"


def audited(logs, source):
    """Return the audit of logs as the command makes it."""
    return example.audit(logs.runs, example.read_folders(logs.runs, [str(source)]))


def said_of(totals: pd.DataFrame, script: str, where: str = "") -> dict[str, tuple]:
    """What `audit` says of a folder, or of the model whose buildings are scored: group to (n, successes, rate).

    Of what the scripts say nothing about, it is the exception.
    """
    place = "model_name" if script == "construction" else "folder"
    own = totals[(totals["script"] == script) & (totals[place] == where)]
    values = zip(own["group"], own["their_n"], own["their_successes"], own["their_rate"], own["note"], strict=True)
    return {group: note or (n, successes, rate) for group, n, successes, rate, note in values}


def same(ours: dict[str, tuple], theirs: dict[str, tuple]) -> None:
    """Groups that only one side has are empty ones."""
    for group in {*ours, *theirs}:
        left, right = ours.get(group, NOTHING), theirs.get(group, NOTHING)
        assert left == pytest.approx(right, rel=1e-9, abs=1e-9, nan_ok=True), group


def counts(value: dict) -> tuple:
    n, successes = value["total"], value["success"]
    return n, successes, successes / n if n else 0.0


def of_evaluation(answer, folder) -> dict[str, tuple]:
    result = answer["result"]
    rate = result["successful"] if "construction" in folder else result["success_rate"]
    return {"all": (result["total"], result["successful"], rate)}


def of_crafting(answer, folder) -> dict[str, tuple]:
    keys, result = ("total", "successful", "success_rate"), answer["result"]
    there = {group: start for group, start in CRAFTING.items() if f"{start}total" in result}
    return {group: tuple(result[f"{start}{key}"] for key in keys) for group, start in there.items()}


def of_cooking(answer, folder) -> dict[str, tuple]:
    blocked, items, _, _ = answer["result"]
    every = {name: sum(value[name] for value in blocked.values()) for name in ("total", "success")}
    theirs = {f"{key.split()[0]} blocked": value for key, value in blocked.items()} | {"all": every}
    theirs |= {f"item {item}": value for item, value in items.items()}
    return {group: counts(value) for group, value in theirs.items()}


def of_items(answer, folder) -> dict[str, tuple]:
    cells = ((item, key, value) for item, values in answer["result"][0].items() for key, value in values.items())
    return {f"item {item}, {key.split()[0]} blocked": counts(value) for item, key, value in cells}


@pytest.fixture(scope="module")
def samples():
    """The sample logs and their audit."""
    source = resolve("samples:mindcraft/runs")
    logs = load(source, "samples:mindcraft/tasks")
    return logs, audited(logs, source)


class Asked:
    """The calls of the scripts that logs need, each with what to compare of its answer."""

    def __init__(self, logs, totals: pd.DataFrame) -> None:
        self.totals = totals
        self.calls: list[tuple] = []
        self.known: list[tuple] = []  # script, folder or model, and what the answer says by group
        for folder in sorted(set(totals["folder"]) - {""}):
            below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
            asked = set(totals.loc[totals["folder"] == folder, "script"])
            self.ask("evaluation", "check_folder_results", [folder], folder, of_evaluation)
            for script in asked & {"crafting", "analyse_results"}:
                self.ask(script, "aggregate_results", [below], folder, of_crafting)
            if "cooking" in asked:
                self.ask("cooking", "analyze_experiments", [folder, "m"], folder, of_cooking)
                self.ask("cooking", "generate_item_blocked_data", [folder], folder, of_items)
        building = logs.runs[(logs.runs["task_type"] == "construction") & ~logs.runs["flat_layout"]]
        for model, own in building.groupby("model_name"):
            roots = sorted(set(map(os.path.dirname, own["source"])))
            self.ask("construction", "extract_success_scores", [roots, [model] * len(roots)], model, None)

    def ask(self, script, function, arguments, where, theirs):
        self.calls.append((script, function, arguments))
        self.known.append((script, where, theirs))

    def check(self, answers):
        for (script, where, theirs), answer in zip(self.known, answers, strict=True):
            assert answer["error"] == ""
            ours = said_of(self.totals, script, where)
            if theirs is None:
                self.check_construction(answer, ours)
            elif set(ours.values()) != {NO_FOLDER}:  # their main function ends before it gets there
                of_both = {group: value for group, value in ours.items() if ("," in group) is (theirs is of_items)}
                same(of_both, theirs(answer, where))
            elif script == "cooking":
                assert not any(answer["result"][:2])

    def check_construction(self, answer, ours):
        tables = {table[0][0]: [] for table in answer["tables"]}
        for table in answer["tables"]:
            tables[table[0][0]].append(dict(table[1:]) if len(table[0]) > 1 else table[1:])
        (metrics,), (tasks,) = tables["Metric"], tables["Task"]
        material, room, both = tables["Category"]
        both = {key.strip("()"): value for key, value in both.items()}
        averages = {
            "average score, all tasks": metrics["Average Score (All Tasks)"],
            "average score, completed tasks": metrics["Average Score (Completed Tasks)"],
            "completion rate": metrics["Task Completion Rate (%)"] / 100,
            **{f"material {key}": value for key, value in material.items()},
            **{f"room {key}": value for key, value in room.items()},
            **{"material {}, room {}".format(*key.split(", ")): value for key, value in both.items()},
            **{f"task {key}": value for key, value in tasks.items()},
        }
        own = {group: value[2] for group, value in ours.items() if value[0]}
        for group in averages.keys() | own.keys() - {"skipped tasks", "tasks with score 0"}:
            rounded = round(own.get(group, 0.0), 4 if group == "completion rate" else 2)
            assert rounded == pytest.approx(averages.get(group, 0.0), abs=1e-9, nan_ok=True), group
        assert ours.get("completion rate", NOTHING)[0] == metrics["Total Tasks"]
        assert ours.get("skipped tasks", NOTHING)[0] == metrics["Skipped Tasks"]
        zeros = [len(rows) for name, (rows, *_) in tables.items() if name.endswith("with 0 Score")]
        assert ours.get("tasks with score 0", NOTHING)[0] == sum(zeros)


@live
def test_every_group_of_the_samples_is_what_the_scripts_say(samples, tmp_path):
    logs, found = samples
    asked = Asked(logs, found.totals)
    assert len(asked.calls) == 10 + 2 * 4 + 2 * 4 + 4
    asked.check(call_all(asked.calls, tmp_path / "originals"))


@live
@pytest.mark.skipif(not UNSCORED.is_dir(), reason="the real logs are not here")
def test_every_group_of_real_logs_is_what_the_scripts_say(tmp_path):
    logs = load(UNSCORED)
    asked = Asked(logs, audited(logs, UNSCORED).totals)
    assert set(asked.totals["script"]) == {"evaluation", "crafting", "analyse_results"}
    asked.check(call_all(asked.calls, tmp_path / "originals"))


def test_the_command_prints_what_the_scripts_say_with_their_names_and_commit(samples, tmp_path, monkeypatch):
    logs, found = samples

    def audit(runs, folders):
        """Return the audit of the samples, which takes seconds, for the same runs."""
        pd.testing.assert_frame_equal(runs, logs.runs)
        assert len(folders) >= runs["source"].nunique()
        return found

    monkeypatch.setattr(example, "audit", audit)
    options = ["--tasks", "samples:mindcraft/tasks", "--output", str(tmp_path)]
    out = CliRunner().invoke(example.main, ["samples:mindcraft/runs", *options]).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["differences.csv", "totals.csv"]
    assert "kolbytn/mindcraft, tasks/ at commit 00127506" in out
    assert re.search(r"evaluation_script\.py, .*\n.*\n.*\n.*\ncooking and crafting +97 +33 +34\.0 %", out)
    assert re.search(r"analyze_crafting_tasks\.py, .*\n.*\n.*\n.*\nall +32 +11 +34\.4 %", out)
    for name in ("analyse_results.py", "analyze_cooking_tasks.py", "analyze_construction_tasks.py"):
        assert name in out
    assert "evaluation: a wording that the script does not know: 1\n" in out


def test_our_estimate_weighs_tasks_as_every_other_command_does(samples):
    """Several repetitions of a task weighed as several tasks here, and as one in `evalkit mindcraft`."""
    logs, found = samples
    said = found.totals
    runs, totals = logs.runs, said.set_index(["script", "folder", "group"])["our_rate"]
    cooking = runs[runs["task_type"] == "cooking"]
    assert totals["cooking", "", "all"] == pytest.approx(analysis.success_by(cooking, [])["estimate"][0])
    both = runs[runs["task_type"] != "construction"]
    pooled = totals["evaluation", "", "cooking and crafting"]
    assert pooled == pytest.approx(analysis.success_by(both, [])["estimate"][0])
    assert pooled != pytest.approx(analysis.counted(both)["success_rate"].mean())
    groups = analysis.crafting_groups(runs.assign(model_name="m")).set_index("group")["estimate"]
    assert totals["crafting", "", "high depth"] == pytest.approx(groups["high depth (1 or 2)"])
    scores = analysis.construction_scores(runs)
    own = said[said["group"] == "average score, all tasks"].set_index("model_name")["our_rate"]
    for model, estimate in zip(scores["model_name"], scores["estimate"], strict=True):
        assert own[model] == pytest.approx(100 * estimate)
