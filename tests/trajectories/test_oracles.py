"""The same of logs as the frameworks' own readers say of them, where these are installed.

harbor asks for Python 3.12, but its models can be read from its wheel by any: `pip download harbor --no-deps
--python-version 3.12`, then PYTHONPATH names the wheel.
"""

import glob
import os
from pathlib import Path

import pytest

from evalkit import trajectories
from evalkit.io import resolve
from tests.trajectories import folders as make
from tests.trajectories.test_formats import SHARED, real


def test_atif_files_have_the_steps_tokens_and_costs_of_harbors_models():
    models = pytest.importorskip("harbor.models.trajectories")
    paths = glob.glob(f"{resolve('samples:trajectories/harbor')}/*/agent/trajectory.json")
    paths += glob.glob(f"{SHARED}/trajectories/atif/*.json")
    for path in paths:
        run = trajectories.load(path).runs.iloc[0]
        given = models.Trajectory.model_validate_json(Path(path).read_bytes())
        own = [step for step in given.steps if not step.is_copied_context]
        metrics = [step.metrics for step in own if step.metrics]
        final = given.final_metrics
        assert run["turns"] == sum(step.source == "agent" for step in own)
        for column, key in (("tokens_in", "prompt_tokens"), ("tokens_out", "completion_tokens"), ("cost", "cost_usd")):
            stated = getattr(final, f"total_{key}") if final else None
            assert run[column] == pytest.approx(stated or sum(getattr(one, key) or 0 for one in metrics))


@real
def test_logs_of_inspect_have_the_samples_of_its_own_reader():
    analysis = pytest.importorskip("inspect_ai.analysis")
    theirs = analysis.samples_df(str(SHARED / "inspect"), quiet=True)
    theirs["source"] = theirs["log"].map(os.path.basename)
    runs = trajectories.load(SHARED / "inspect").runs.assign(epoch=lambda rows: rows["repetition"] + 1)
    runs["source"] = runs["source"].map(os.path.basename)
    both = theirs.merge(runs, left_on=["source", "id", "epoch"], right_on=["source", "task_id", "epoch"])
    assert len(both) == len(theirs) == len(runs)
    assert (both["total_tokens"] == both["tokens_in"] + both["tokens_out"]).all()
    assert both["total_time"].tolist() == pytest.approx(both["duration"].tolist())
    grades = both["score_includes"].combine_first(both["score_match"]).map({"C": 1.0, "I": 0.0})
    assert grades.tolist() == both["score"].tolist()


def test_runs_of_mini_swe_agent_have_its_own_cost_and_calls(tmp_path):
    agents = pytest.importorskip("minisweagent.agents.default")
    models = pytest.importorskip("minisweagent.models.test_models")
    local = pytest.importorskip("minisweagent.environments.local")
    said = [("ls", 0.25), ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", 0.5)]
    outputs = [models.make_output(command, [{"command": command}], cost) for command, cost in said]
    agent = agents.DefaultAgent(
        models.DeterministicModel(outputs=outputs),
        local.LocalEnvironment(),
        system_template="You are.",
        instance_template="{{task}}",
        output_path=tmp_path / "t.traj.json",
    )
    agent.run("x")
    logs = trajectories.load(tmp_path)
    assert logs.runs[["cost", "turns"]].to_numpy().tolist() == [[agent.cost, agent.n_calls]]
    assert logs.tool_calls["arguments"].tolist() == [command for command, _ in said]


def test_logs_in_a_bucket_are_joined_as_those_on_a_disk(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    make.harbor_job(tmp_path / "job", make.trial(agent_result=None), planned=2)
    agent = tmp_path / "job" / "fix-bug__0" / "agent"
    make.write(agent / "trajectory.json", make.atif("task", "one", reference="trajectory.cont-1.json"))
    make.write(agent / "trajectory.cont-1.json", make.atif("task", "one", "two", copied=2))
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "job"), "/trajectories/job", recursive=True)
    logs, here = trajectories.load("memory://trajectories/job"), trajectories.load(tmp_path / "job")
    try:
        columns = ["task_id", "score", "turns", "tokens_in", "cost"]
        assert logs.runs[columns].to_numpy().tolist() == here.runs[columns].to_numpy().tolist()
        assert logs.messages["text"].tolist() == here.messages["text"].tolist()
        assert logs.runs["plan"].notna().all()
    finally:
        memory.rm("/trajectories", recursive=True)


def test_of_a_large_archive_in_a_bucket_only_what_is_needed_is_read(monkeypatch):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe_file("/archives/log.eval", make.inspect_archive(make.inspect_log(make.sample("a"))))
    monkeypatch.setattr("evalkit.io.remote.LARGE", 1)
    whole = type(memory).cat_file

    def cat_file(self, path, *span):
        assert not path.endswith(".eval")
        return whole(self, path, *span)

    monkeypatch.setattr(type(memory), "cat_file", cat_file)
    try:
        assert trajectories.load("memory://archives").runs["score"].tolist() == [1.0]
    finally:
        memory.rm("/archives", recursive=True)
