"""Loading only the runs that meet conditions on their columns."""

import pandas as pd
import pytest
from click.testing import CliRunner

import evalkit
from evalkit import compare
from evalkit.cli import main
from evalkit.io import SourceError
from evalkit.kinds import outcomes, rates
from evalkit.kinds.selection import meets
from tests import messy

RUNS = pd.DataFrame({
    "task": pd.array(["a", "b", None], "str"),
    "turns": pd.array([4, 20, None], "Int64"),
    "score": [0.5, 1.0, float("nan")],
    "done": pd.array([True, False, None], "boolean"),
    "started": pd.to_datetime(["2026-01-01", "2026-02-01", None]).tz_localize("UTC"),
    "run_flags": [["x", "y"], [], ["y"]],
})  # fmt: skip


@pytest.mark.parametrize(
    ("where", "met"),
    [
        ("task=a", [True, False, False]),
        ("task!=a", [False, True, True]),  # one of which nothing is known is not a
        ("task=", [False, False, True]),
        ("task!=", [True, True, False]),
        (" turns >= 20 ", [False, True, False]),
        ("turns=4", [True, False, False]),
        ("turns!=4", [False, True, True]),
        ("score<0.75", [True, False, False]),
        ("score>0.75", [False, True, False]),
        ("score<=1", [True, True, False]),
        ("done=yes", [True, False, False]),
        ("done!=true", [False, True, True]),
        ("started>=2026-01-15", [False, True, False]),
        ("run_flags=y", [True, False, True]),
        ("run_flags!=y", [False, True, False]),
        (["turns>=4", "done=false"], [False, True, False]),
        ([], [True, True, True]),
    ],
)
def test_conditions_select_runs(where, met):
    assert meets(RUNS, where).tolist() == met


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("turns", "write COLUMN=VALUE"),
        ("turn=4", "no column 'turn'; did you mean 'turns'"),
        ("turns>=many", "turns holds numbers"),
        ("done=perhaps", "done is true or false"),
        ("task>a", "task holds no numbers"),
        ("started>soon", "started holds times"),
    ],
)
def test_a_condition_that_can_t_be_met_says_what_to_write(where, words):
    with pytest.raises(SourceError, match=words):
        meets(RUNS, where)


@pytest.mark.parametrize("kind", messy.KINDS)
def test_all_frames_follow_the_runs(kind):
    source = str(messy.folder(kind) / "logs")
    everything = evalkit.load(source, kind)
    run = everything.runs.iloc[0] if kind != "crafter" else everything.episodes.iloc[0]
    logs = evalkit.load(source, kind, where=[f"run_id={run['run_id']}"])
    for name in dir(logs):
        frame = getattr(logs, name)
        if isinstance(frame, pd.DataFrame) and name != "ledger" and "source" in frame:
            own = frame["run_id"].eq(run["run_id"]) if "run_id" in frame else frame["source"].eq(run["source"])
            assert own.all(), name
    if kind == "steps":
        assert [history.source for history in logs.histories] == [run["source"]]
    text = CliRunner().invoke(main, [kind, source, "--where", f"run_id={run['run_id']}"]).output
    assert "1 " in text


def test_no_run_that_meets_a_condition_is_an_error_that_says_which_values_there_are():
    source = str(messy.folder("mindcraft") / "logs")
    done = CliRunner().invoke(main, ["mindcraft", source, "--where", "task_type=cooking", "--where", "model_name=none"])
    assert done.exit_code == 2
    assert "no run where task_type=cooking and model_name=none" in done.output
    assert messy.ONE in done.output


def test_success_is_a_number_too():
    runs = evalkit.load(str(messy.folder("mindcraft") / "logs"), "mindcraft").runs
    means = runs[runs["run_flags"].map(len) == 0].groupby("task_type").success_rate.mean()
    assert means.between(0, 1).all()
    assert runs["success_rate"].isna().equals(runs["is_successful"].isna())


@pytest.mark.parametrize("kind", messy.KINDS)
def test_a_cluster_stands_for_the_task_on_every_door(kind):
    source = str(messy.folder(kind) / "logs")
    logs = evalkit.load(source, kind, cluster="model_name")
    runs = getattr(logs, logs.kind.runs)
    assert set(outcomes(runs).table["task"]) == set(runs["model_name"])
    assert rates(runs)["n_clusters"].max() == 1
    assert compare.leaderboard(runs).table["n_tasks"].max() <= 1
    text = CliRunner().invoke(main, ["compare", source, "--kind", kind, "--cluster", "model_name"]).output
    assert "share no tasks" in text or "one model" in text or len(set(runs["model_name"])) == 1
    with pytest.raises(SourceError, match="cluster 'modelname': runs have no such column; did you mean 'model_name'"):
        evalkit.load(source, kind, cluster="modelname")
