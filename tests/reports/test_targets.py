"""A source of logs stands for the notebooks of the kinds of logs it holds."""

import shutil
from pathlib import Path

import pytest

from evalkit.io import SourceError, resolve
from evalkit.kinds import kind_names
from evalkit.reports import PlanError, plan
from evalkit.reports.notebooks import ANY_KIND, Places, copy_notebooks, shipped

TRACE = resolve("samples:crafter/session_crafter_episode_1_scripted-miner.json")
HISTORY = resolve("samples:steps/typed.json")
SWEPT = {"kind": "crafter", "source": "traces", "sweep": {"model": "tests.reports.test_targets:models"}}


def models(traces: str) -> list[str]:
    return [f"{Path(traces).name}-1", "2"]


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    shutil.copy(TRACE, "logs/trace.json")
    return tmp_path / "logs"


def keys(reports) -> list[str]:
    return sorted(report.key for report in reports)


@pytest.mark.parametrize("kind", kind_names())
def test_the_samples_of_each_kind_have_a_report(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert plan([f"samples:{kind}"])


def test_a_folder_of_several_kinds_is_read_by_the_notebooks_of_each(logs):
    shutil.copy(HISTORY, logs / "history.json")
    assert keys(plan(["logs"])) == ["crafter_scores/logs", "step_evaluation/logs"]
    assert keys(plan(["logs"], kind="steps")) == ["step_evaluation/logs"]


def test_a_notebook_beside_a_folder_is_the_only_one(logs):
    shutil.copy(HISTORY, logs / "history.json")
    assert keys(plan(["step_evaluation", "logs"])) == ["step_evaluation/logs"]
    with pytest.raises(PlanError, match="logs of kind crafter and steps, for which there is no such notebook"):
        plan(["model_comparison", "logs"])


def test_one_kind_that_can_not_be_read_ends_no_report_of_another(logs):
    (logs / "gpt/cook").mkdir(parents=True)
    (logs / "gpt/cook/Andy_0_0.json").write_text('{"memory": "", "turns": [{"role": "user"}')
    with pytest.warns(UserWarning, match="no report of mindcraft logs: logs: no Mindcraft agent log could be read"):
        assert keys(plan(["logs"])) == ["crafter_scores/logs"]
    with pytest.raises(PlanError, match="no Mindcraft agent log could be read"):
        plan(["logs/gpt"])


def test_a_folder_within_the_source_is_given_to_the_parameter_that_asks_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(resolve("samples:mindcraft"), "exp")
    (report,) = plan(["exp", "model_comparison"])
    assert report.parameters == {"runs": "exp", "tasks": "exp/tasks"}
    (report,) = plan(["exp", "model_comparison"], values={"tasks": "exp/tasks/cooking_tasks.json"})
    assert report.parameters["tasks"] == "exp/tasks/cooking_tasks.json"
    (report,) = plan(["exp/runs", "model_comparison"])
    assert report.parameters == {"runs": "exp/runs", "tasks": ""}


def test_sweeps_go_over_all_there_is(logs, project):
    project("own", parameters='traces: str = ""\nmodel: str = ""', metadata={"evalkit": SWEPT})
    assert keys(plan(["logs", "own"])) == ["own/logs-2", "own/logs-logs-1"]
    assert keys(plan(["logs", "own"], values={"model": "3"})) == ["own/logs-3"]


def test_a_kind_without_a_notebook_of_its_own_gets_the_general_one(logs, project):
    general = {"evalkit": {"kind": ANY_KIND, "source": "logs"}}
    project("any", parameters='logs: list[str] = []\nkind: str = ""', metadata=general)
    (report,) = plan(["logs", "any"])
    assert report.parameters == {"logs": ["logs"], "kind": "crafter"}
    assert keys(plan(["logs"], notebooks="notebooks")) == ["any/logs"]
    assert keys(plan(["logs"])) == ["crafter_scores/logs"]


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda path: path.mkdir(), "x: there is no file in it"),
        (lambda path: path.write_text("words"), "x: no log of a kind that evalkit knows (1 file)"),
        (lambda path: None, "x: no such file, folder or notebook; there are 'cooking_blocked_agents', "),
        (
            lambda path: path.write_bytes(b'{"version": 2, "status": "success", "eval": {}}'),
            "x: no log of a kind that evalkit knows (1 file; 1 looks like an inspect_ai log)",
        ),
    ],
)
def test_a_source_without_logs_is_one_fault(tmp_path, monkeypatch, make, cause):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x")
    with pytest.raises(PlanError) as raised:
        plan(["x"])
    (fault,) = raised.value.faults
    assert fault.startswith(cause)


def test_notebooks_are_copied_to_be_changed_and_never_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (copy,) = copy_notebooks("notebooks", ["crafter_scores"])
    assert copy.read_bytes() == (shipped("notebooks") / "crafter_scores.ipynb").read_bytes()
    copy.write_text(copy.read_text().replace("Crafter: scores", "My scores"))
    with pytest.raises(SourceError, match="there already, and not overwritten"):
        copy_notebooks("notebooks")
    assert list(Path("notebooks").iterdir()) == [copy]
    (report,) = plan(["samples:crafter"])
    assert report.notebook.title.startswith("My scores")
    assert len(copy_notebooks("all")) == len(Places.of().all_notebooks())
    with pytest.raises(SourceError, match="did you mean 'crafter_scores'"):
        copy_notebooks("new", ["crafter_score"])
