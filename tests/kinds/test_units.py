"""What is compared: models, agents with their models, or any columns."""

import json

import pandas as pd
import pytest

import evalkit
from evalkit.compare import against, leaderboard
from evalkit.compare.ranking import ranked
from evalkit.display.words import finding_text
from evalkit.io import SourceError
from evalkit.kinds import select
from evalkit.kinds.runs import compared_in
from evalkit.trajectories import analysis

ROWS = [  # model, agent, prompt
    ("sonnet", "terminus", "v1"),
    ("sonnet", "goose", "v2"),
    ("opus", "terminus", ""),
    ("opus", "", "v1"),
]


def _write(folder, rows):
    pd.DataFrame(rows).to_csv(folder / "runs.csv", index=False)
    return str(folder)


@pytest.fixture
def source(tmp_path):
    rows = [
        {"task_id": task, "model": model, "agent": agent, "prompt": prompt, "success": (task + place) % 2}
        for place, (model, agent, prompt) in enumerate(ROWS)
        for task in range(4)
    ]
    return _write(tmp_path, rows)


SWAPPED = ["sonnet · terminus", "sonnet · goose", "opus · terminus", "opus"]
PAIRS = ["terminus · sonnet", "goose · sonnet", "terminus · opus", "opus"]


@pytest.mark.parametrize(
    ("compare_by", "names", "columns"),
    [
        ("", PAIRS, ["agent", "model_name"]),
        ("agent,model_name", PAIRS, ["agent", "model_name"]),
        (["agent", "model_name"], PAIRS, ["agent", "model_name"]),
        (" model_name , agent", SWAPPED, ["model_name", "agent"]),
        ("agent", ["terminus", "goose", "terminus", "no agent"], ["agent"]),
        ("prompt", ["v1", "v2", "no prompt", "v1"], ["prompt"]),
        ("model_name", ["sonnet", "sonnet", "opus", "opus"], None),
    ],
)
def test_what_is_compared_is_the_values_of_columns(source, compare_by, names, columns):
    runs = evalkit.load(source, compare_by=compare_by).runs
    assert runs["model_name"].tolist() == [name for name in names for _ in range(4)]
    compared_by = runs.get("compared_by", [None] * len(runs))
    assert list(compared_by) == [columns and tuple(columns)] * len(runs)
    assert compared_in(runs) == tuple(columns or ())
    if columns:
        assert runs["logged_model"].tolist() == [model for model, _, _ in ROWS for _ in range(4)]


def test_the_model_alone_is_compared_where_no_model_has_several_agents(source):
    runs = evalkit.load(source, where=["agent=terminus"]).runs
    assert set(runs["model_name"]) == {"sonnet", "opus"}
    assert "compared_by" not in runs


@pytest.mark.parametrize(
    ("compare_by", "said"),
    [("agent", "best of 3 agents on"), ("cot", "best of 2 cots on"), ("agent,cot", "best of 4 groups on")],
)
def test_the_answer_names_what_is_compared(tmp_path, compare_by, said):
    solved = {("crow", True): 40, ("crow", False): 39, ("", False): 3, ("wren", False): 2}
    if compare_by == "agent,cot":
        solved["crow", False] = 4
    rows = [
        {"model": "m", "task_id": task, "agent": agent, "cot": cot, "success": task < count}
        for (agent, cot), count in solved.items()
        for task in range(40)
    ]
    logs = evalkit.load(_write(tmp_path, rows), compare_by=compare_by)
    assert said in finding_text(ranked(leaderboard(logs.runs)))
    names = set(logs.runs["model_name"])
    assert names.isdisjoint(["unknown", "True", "False"])
    if "agent" in compare_by:
        assert {"agent": "no agent", "agent,cot": "cot False"}[compare_by] in names


@pytest.mark.parametrize("compare_by", ["agent", "agent,model_name", "note"])
def test_a_column_without_a_value_can_not_be_compared(tmp_path, compare_by):
    rows = [{"model": name, "task_id": task, "success": 1, "note": ""} for name in "ab" for task in range(3)]
    with pytest.raises(SourceError, match="no run has a value in this column"):
        evalkit.load(_write(tmp_path, rows), compare_by=compare_by)


@pytest.mark.parametrize(("compare_by", "said"), [("", "agent and model"), ("agent", "agent")])
def test_the_answer_says_what_is_compared(source, compare_by, said):
    logs = evalkit.load(source, compare_by=compare_by)
    assert finding_text(ranked(leaderboard(logs.runs))).endswith(f". Compared by {said}.")
    assert "compared_by" in logs.chosen


def test_a_model_of_several_agents_that_are_compared_as_one_has_a_note(source):
    logs = evalkit.load(source, compare_by="model_name")
    assert logs.chosen.only("agents_merged").notes[0].values["models"] == ["sonnet"]


def test_names_that_would_be_equal_name_their_columns(tmp_path):
    rows = [{"task_id": 1, "model": model, "agent": agent, "success": 1} for model, agent in (("x", ""), ("", "x"))]
    runs = evalkit.load(_write(tmp_path, rows), compare_by="agent,model_name").runs
    assert runs["model_name"].tolist() == ["model_name=x", "agent=x"]


def test_a_temperature_that_differs_between_models_of_a_table_has_a_note(tmp_path):
    rows = [
        {"task_id": n, "model": model, "temperature": t, "success": 1}
        for model, t in (("x", 0.5), ("y", 0.7))
        for n in range(3)
    ]
    board = leaderboard(evalkit.load(_write(tmp_path, rows)).runs)
    assert board.notes.only("settings_differ").notes[0].values["settings"] == {"temperature": ["0.5", "0.7"]}


def test_numbers_have_the_name_of_their_column(tmp_path):
    rows = [
        {"task_id": 1, "model": "x", "temperature": value, "top p": value, "success": 1} for value in (0.5, 1, None)
    ]
    for column in ("temperature", "top p"):  # a column of all runs, and one of this table
        names = set(evalkit.load(_write(tmp_path, rows), compare_by=column).runs["model_name"])
        assert f"{column} 0.5" in names
        assert len(names) == 3
        assert f"no {column}" in names
        assert "nan" not in " ".join(names)


def test_renaming_acts_first_and_an_unknown_column_is_an_error_with_a_hint(source):
    runs = evalkit.load(source, rename=["sonnet=s4"]).runs
    assert "goose · s4" in set(runs["model_name"])
    with pytest.raises(SourceError, match="compare-by 'agnt': runs have no such column; did you mean 'agent'"):
        evalkit.load(source, compare_by="agnt")


def test_runs_are_selected_by_the_name_of_what_is_compared_and_by_the_model(source):
    runs = evalkit.load(source).runs
    assert set(select(runs, "goose · sonnet")["model_name"]) == {"goose · sonnet"}
    assert set(select(runs, ["sonnet"])["model_name"]) == {"goose · sonnet", "terminus · sonnet"}
    with pytest.raises(SourceError, match="no runs of model 'haiku'"):
        select(runs, "haiku")


def test_a_baseline_can_be_a_model_only_where_one_thing_compared_has_it(source):
    runs = evalkit.load(source, compare_by="prompt,model_name", where=["agent!="]).runs
    assert set(against(runs, "opus")["model_name"]) == {"v1 · sonnet", "v2 · sonnet"}
    with pytest.raises(SourceError, match="compared by prompt and model, 'sonnet' is one of 'v1 · sonnet'"):
        against(runs, "sonnet")


def test_what_a_job_planned_for_a_model_is_divided_among_its_agents(tmp_path):
    job = tmp_path / "job"
    planned = ["x", "x", "y", "y"]
    for place, agent in enumerate(planned[:3]):
        trial = {"id": f"t{place}", "task_name": "a", "trial_name": f"t{place}", "source": "set"}
        trial |= {"agent_info": {"name": agent, "model_info": {"name": "m"}}, "config": {"job_id": "job"}}
        trial |= {"verifier_result": {"rewards": {"reward": 1.0}}}
        (job / f"t{place}").mkdir(parents=True)
        (job / f"t{place}" / "result.json").write_text(json.dumps(trial))
    trials = [{"task": {"name": "a"}, "agent": {"name": agent, "model_name": "m"}} for agent in planned]
    (job / "lock.json").write_text(json.dumps({"n_concurrent_trials": 1, "trials": trials}))
    logs = evalkit.load(str(tmp_path), "trajectories")
    assert set(logs.runs["model_name"]) == {"x · m", "y · m"}
    plans = logs.plans[logs.plans["task_id"] == "a"]
    assert plans.set_index("model_name")["planned"].to_dict() == {"x · m": 2, "y · m": 2}
    missing = analysis.missing(logs.runs, logs.plans)
    assert missing[["model_name", "missing"]].to_numpy().tolist() == [["y · m", 1]]


def test_published_figures_keep_their_model_in_a_file_of_their_own(tmp_path):
    sample = {
        "doc": {"q": "1 + 1"},
        "target": "2",
        "filtered_resps": ["2"],
        "filter": "none",
        "metrics": ["em"],
        "em": 1,
    }
    for model in ("oak", "elm"):
        stated = {"results": {"sums": {"em,none": 0.25}}, "versions": {"sums": 1}, "model_name": model}
        (tmp_path / model).mkdir()
        (tmp_path / model / "results_2026-11-24T17-32-30.json").write_text(json.dumps(stated))
        lines = "".join(f"{json.dumps({'doc_id': doc, **sample})}\n" for doc in range(3))
        (tmp_path / model / "samples_sums_2026-11-24T17-32-30.jsonl").write_text(lines)
    logs = evalkit.load(tmp_path, compare_by="agent,model_name")
    assert sorted(logs.published["model_name"]) == ["lm-eval · elm", "lm-eval · oak"]
    found = evalkit.compare.audit(logs).table.set_index("check").loc["published figures"]
    assert (found["count"], found["n"]) == (2, 2)
