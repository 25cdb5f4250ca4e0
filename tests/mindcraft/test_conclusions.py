"""Findings of runs, from made-up folders of each shape."""

import pytest

from evalkit import compare, mindcraft
from evalkit.display import finding_text
from evalkit.mindcraft import analysis
from tests.mindcraft.builders import write_all

TASKS = [f"multiagent_crafting_{name}_full_plan__depth_0" for name in ("bed", "bookshelf", "candle", "shears", "wool")]


def logs_of(tmp_path, scores):
    """Scores as {model: {task: score or None}}."""
    files = {f"{m}/{t}/Andy_0_0.json": value for m, own in scores.items() for t, value in own.items()}
    return mindcraft.load(str(write_all(tmp_path / "runs", files)))


def test_findings_lead_to_runs_that_they_count(tmp_path):
    scores = {"alder": dict(zip(TASKS, (1.0, 1.0, 0.0, 0.0, None), strict=True)), "birch": dict.fromkeys(TASKS, 1.0)}
    logs = logs_of(tmp_path, scores)
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


@pytest.mark.parametrize(("models", "shown"), [(1, "alder: "), (3, "For alder, birch and cedar no trend")])
def test_a_trend_that_is_not_shown_is_no_proof_of_none(tmp_path, models, shown):
    names = [f"multiagent_cooking_1_bread_1_cake{end}" for end in ("", "_blocked_access_0", "_blocked_access_0_1")]
    scores = {m: dict(zip(names, (1.0, 0.0, 1.0), strict=True)) for m in ("alder", "birch", "cedar")[:models]}
    logs = logs_of(tmp_path, scores)
    cooking = analysis.cooking(logs.runs)
    found = analysis.blocked_findings(cooking, analysis.cooking_trend(cooking), logs.ledger)
    assert finding_text(found[0]).startswith("Cooking success of all models together is 67 %")
    assert finding_text(found[1]).startswith(shown)
    assert 2 <= len(found) <= 5
