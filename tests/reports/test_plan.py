"""Planning a batch: which reports, with which names and parameters, and all faults at once."""

import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import SourceError, resolve
from evalkit.kinds import kind_names
from evalkit.reports import PlanError, plan
from evalkit.reports.notebooks import ANY_KIND, Places, copy_notebooks, shipped
from evalkit.reports.report import file_name
from tests.io.test_sources import WITH

CELL = 'model: str = "a"  # model\nruns: str = "samples:none"  # folder\nn: int = 1  # number\ntasks: list[str] = []'
TRACE = resolve("samples:crafter/session_crafter_episode_1_scripted-miner.json")
HISTORY = resolve("samples:steps/typed.json")


def keys(reports):
    return sorted(report.key for report in reports)


def faults_of(*args, **kwargs):
    with pytest.raises(PlanError) as raised:
        plan(*args, **kwargs)
    return raised.value.faults


def test_params_files_and_notebooks_stand_for_reports(project):
    project("one", parameters=CELL, params={"b.yaml": "model: b", "a.yml": "", ".x.yaml": "model: 1", "c.txt": "x"})
    project("two", params={"only.yaml": ""}, metadata={"evalkit": {"order": 1}})
    project("three")
    reports = plan()
    assert [report.key for report in reports] == ["two/only", "one/a", "one/b"]
    assert [report.parameters for report in reports] == [{}, {}, {"model": "b"}]
    assert reports[2].all_parameters == {"model": "b", "runs": "samples:none", "n": 1, "tasks": []}
    assert keys(plan(["one", "params/one/b.yaml", "notebooks/three.ipynb"])) == ["one/a", "one/b", "three/defaults"]


def test_a_notebook_named_with_values_is_run_once_with_these(project, tmp_path):
    project("one", parameters=CELL, params={"b.yaml": "model: b", "c.yaml": "model: c"})
    (tmp_path / "logs").mkdir()
    (report,) = plan(["one"], texts=[("runs", "logs"), ("tasks", "x"), ("tasks", "[y, z]")])
    assert report.parameters == {"runs": "logs", "tasks": ["x", "y", "z"]}
    assert report.name.startswith("logs-")
    assert keys(plan(["one"], values={"n": 2}, name="mine")) == ["one/mine"]
    assert faults_of(["one"], values={"n": 2}, name="a/b") == ["--name a/b: can't be the name of a file; a_b could"]
    assert faults_of(["one"], name="mine") == ["--name mine: names one report, and 2 would be made"]


def test_a_notebook_that_needs_more_than_logs_says_so_before_it_runs(project):
    cell = 'a: str = "samples:x"\nb: str = "samples:y"\nc: list[str] = []'
    root = project("one", parameters=cell, metadata={"evalkit": {"needs": {"b": "-p b FILE", "a": "never seen"}}})
    (root / "mine").mkdir()
    assert len(plan(["one"])) == len(plan(["one"], values={"a": "mine", "b": "mine"})) == 1
    [fault] = faults_of(["one"], values={"a": "mine"})
    assert fault.endswith(": b is empty; -p b FILE")


def test_sample_defaults_are_emptied_as_soon_as_one_source_is_given(project):
    cell = 'a: str = "samples:x"\nb: str = "samples:y"\nc: list[str] = ["samples:z"]\nn: int = 1'
    root = project("one", parameters=cell, params={"p.yaml": "n: 2"})
    (root / "mine").mkdir()
    ((own,), (untouched,)) = plan(["one"], values={"b": "mine"}), plan()
    assert own.all_parameters == {"a": "", "b": "mine", "c": [], "n": 1}
    assert own.parameters == {"b": "mine", "a": "", "c": []}
    assert untouched.parameters == {"n": 2}
    (named,) = plan(["one"], values={"a": "samples:crafter", "b": "mine"})
    assert named.parameters == {"a": "samples:crafter", "b": "mine", "c": []}


NO_VALUES = ("x: [", "x: !!python/object:os.system 1", "- 1", "1: x")


def test_all_faults_of_all_files_are_listed_at_once(project, tmp_path):
    project("one", parameters=CELL, params={"a.yaml": "modle: x\nn: many", "b.yaml": "model: 4"})
    project("one", parameters=CELL, params={f"c{i}.yaml": text for i, text in enumerate(NO_VALUES)})
    project("two", parameters="must: str", params={"d.yaml": "", "e.yaml": "must:"})
    project("cell", parameters="x: int = (", params={"h.yaml": ""})
    for name in ("gone", "broken"):
        project(name, params={f"{name}.yaml": ""})
    (tmp_path / "notebooks/broken.ipynb").write_text("{")
    (tmp_path / "notebooks/gone.ipynb").unlink()
    expected = [
        "command line: unknown parameter zzz",
        "notebooks/broken.ipynb: not a notebook",
        "notebooks/cell.ipynb: the parameters cell is not Python",
        'params/one/a.yaml: n must be int, not str ("many")',
        "params/one/a.yaml: unknown parameter modle; did you mean 'model'?",
        "params/one/b.yaml: model must be str, not int (4)",
        *(f"params/one/c{i}.yaml: not YAML" for i in (0, 1)),
        *(f"params/one/c{i}.yaml: not a mapping of parameter names to values" for i in (2, 3)),
        "params/gone/gone.yaml: gone: no such notebook; did you mean 'one'?",
        "params/two/d.yaml: must has no value",
        "params/two/e.yaml: must has no value",
    ]
    for fault, start in zip(sorted(faults_of(texts=[("zzz", "1")])), sorted(expected), strict=True):
        assert fault.startswith(start)


def test_lists_for_single_values_and_values_typed_again_are_sweeps(project):
    project("one", parameters=CELL, params={"s.yaml": "model: [a/b, ft:x, a/b]\nn: [1, 2]\ntasks: [x, y]"})
    reports = plan()
    pairs = [("a/b", 1), ("a/b", 2), ("ft:x", 1), ("ft:x", 2)]
    assert [(r.parameters["model"], r.parameters["n"]) for r in reports] == pairs
    assert all(r.parameters["tasks"] == ["x", "y"] for r in reports)
    assert len(set(keys(reports))) == 4
    assert reports[0].name.startswith("s-a_b-")
    reports = plan(["one"], texts=[("model", "a"), ("model", "[b, c]"), ("n", "1"), ("model", "a"), ("n", "2")])
    pairs = [("a", 1), ("a", 2), ("[b, c]", 1), ("[b, c]", 2)]
    assert [(r.parameters["model"], r.parameters["n"]) for r in reports] == pairs


def numbered(runs: str, n: int = 0) -> list[str]:
    if n > 7:
        raise SourceError(f"{runs}: holds no run") if n == 9 else KeyError("x")
    return [f"m{i}" for i in range(n)]


SWEEP = {"evalkit": {"sweep": {"model": f"{__name__}:numbered"}}}


def test_all_means_what_the_notebooks_sweep_function_finds_and_one_that_fails_is_named_with_its_cause(project):
    project("one", parameters=CELL, params={"s.yaml": "model: all\nn: 2"}, metadata=SWEEP)
    assert [r.parameters for r in plan()] == [{"n": 2, "model": "m0"}, {"n": 2, "model": "m1"}]
    assert keys(plan()) == ["one/s-m0", "one/s-m1"]
    causes = {9: "samples:none: holds no run", 8: "KeyError: 'x'", 0: "the data contain none"}
    for n, cause in causes.items():
        (fault,) = faults_of(["one"], values={"model": "all", "n": n})
        assert fault == f"notebooks/one.ipynb: model: all: {__name__}:numbered: {cause}"


def test_models_of_a_source_are_those_that_have_runs_under_the_conditions_and_names_given():
    own = "cedar-8b-sft"
    for name, value, models in (
        ("where", f"model_name={own}", [own]),
        ("rename", "alder-large=birch-lab/birch-70b", ["birch-lab/birch-70b", own, "dogwood-8b"]),
    ):
        reports = plan(["samples:mindcraft", "model_overview"], values={name: [value]})
        assert [report.parameters["model"] for report in reports] == models
    (fault,) = faults_of(["samples:mindcraft"], values={"where": ["task_type=none"]})
    assert fault == "no run where task_type=none; of task_type there are 'construction', 'cooking' and 'techtree'"


# Sources of logs stand for the notebooks of the kinds of logs they hold

SWEPT = {"kind": "crafter", "source": "traces", "sweep": {"model": f"{__name__}:models"}}


def models(traces: str) -> list[str]:
    return [f"{Path(traces).name}-1", "2"]


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    shutil.copy(TRACE, "logs/trace.json")
    return tmp_path / "logs"


def test_without_folders_of_ones_own_those_of_evalkit_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {"model_comparison/all_models", "crafter_scores/every_model"} <= set(keys(plan()))
    assert keys(plan(["model_comparison"])) == ["model_comparison/all_models"]
    assert all(plan([f"samples:{kind}"]) for kind in kind_names())


def test_a_folder_of_several_kinds_is_read_by_the_notebooks_of_each_or_by_the_one_named(logs):
    shutil.copy(HISTORY, logs / "history.json")
    assert keys(plan(["logs"])) == ["crafter_scores/logs", "step_evaluation/logs"]
    assert [report.parameters["history"] for report in plan(["logs/", "step_evaluation"])] == [["logs"]]
    assert keys(plan(["logs"], kind="steps")) == ["step_evaluation/logs"]
    assert keys(plan(["step_evaluation", "logs"])) == ["step_evaluation/logs"]
    with pytest.raises(PlanError, match="logs of kind crafter and steps, which has no such notebook"):
        plan(["model_comparison", "logs"])


def test_one_kind_that_can_not_be_read_ends_no_report_of_another(logs):
    (logs / "gpt/cook").mkdir(parents=True)
    (logs / "gpt/cook/Andy_0_0.json").write_text('{"memory": "", "turns": [{"role": "user"}')
    with pytest.warns(UserWarning, match="no report of mindcraft logs: logs: no Mindcraft agent log could be read"):
        assert keys(plan(["logs"])) == ["crafter_scores/logs"]
    with pytest.raises(PlanError, match="no Mindcraft agent log could be read"):
        plan(["logs/gpt"])


def test_sweeps_go_over_all_there_is_and_a_kind_without_a_notebook_gets_the_general_one(logs, project, monkeypatch):
    project("own", parameters='traces: str = ""\nmodel: str = ""', metadata={"evalkit": SWEPT})
    assert keys(plan(["logs", "own"])) == ["own/logs-2", "own/logs-logs-1"]
    assert keys(plan(["logs", "own"], values={"model": "3"})) == ["own/logs-3"]
    monkeypatch.setattr("evalkit.reports.planning.MOST_OF_SWEEP", 1)
    with pytest.warns(UserWarning, match="2 reports of own: only the first 1 are made; -p model MODEL makes another"):
        assert keys(plan(["logs", "own"])) == ["own/logs-logs-1"]
    general = {"evalkit": {"kind": ANY_KIND, "source": "logs"}}
    project("any", parameters='logs: list[str] = []\nkind: str = ""', metadata=general)
    (report,) = plan(["logs", "any"])
    assert report.parameters == {"logs": ["logs"], "kind": "crafter"}
    (logs.parent / "notebooks/own.ipynb").unlink()
    assert keys(plan(["logs"], notebooks="notebooks")) == ["any/logs"]
    assert keys(plan(["logs"])) == ["crafter_scores/logs"]


def test_each_source_without_logs_is_one_fault(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("words")
    causes = {
        "empty": "it contains no file",
        "gone": "no such file, folder or notebook; there are 'audit', 'cooking_blocked_agents', ",
        "text": "evalkit recognised no logs (1 file)",
    }
    for fault, (name, cause) in zip(sorted(faults_of([*causes])), causes.items(), strict=True):
        assert fault.startswith(f"{name}: {cause}")


def test_notebooks_are_copied_to_be_changed_and_never_overwritten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (copy,) = copy_notebooks("notebooks", ["crafter_scores"])
    assert copy.read_bytes() == (shipped("notebooks") / "crafter_scores.ipynb").read_bytes()
    copy.write_text(copy.read_text().replace("Crafter: scores", "My scores"))
    with pytest.raises(SourceError, match="exists already; nothing was copied"):
        copy_notebooks("notebooks")
    assert list(Path("notebooks").iterdir()) == [copy]
    (report,) = plan(["samples:crafter"])
    assert report.notebook.title.startswith("My scores")
    assert len(copy_notebooks("all")) == len(Places.of().all_notebooks())
    with pytest.raises(SourceError, match="did you mean 'crafter_scores'"):
        copy_notebooks("new", ["crafter_score"])


# Credentials are refused before anything is made of them, and repeated nowhere

SECRET = "SEK"  # a part of every secret in WITH


@pytest.mark.parametrize("url", WITH)
def test_no_report_is_planned_with_credentials(project, url):
    project("one", parameters=f"{CELL}\nby: dict[str, str] = {{}}")
    valued = ({"tasks": ["x", url]}, {"runs": ["x", url]}, {"by": {"x": url}}, {"by": {url: "x"}}, {"n": url}, {url: 1})
    typed = (("tasks", f"[x, '{url}']"), ("n", url))
    for wrong in (*({"values": values} for values in valued), *({"texts": [text]} for text in typed)):
        with pytest.raises(PlanError) as raised:
            plan(["one"], **wrong)
        assert SECRET not in f"{raised.value} {raised.value.faults} {raised.value.__cause__}"
    project("one", parameters=CELL, params={"a.yaml": f"runs: '{url}'"})
    project("two", parameters=f"runs: str = {url!r}", params={"b.yaml": ""})
    faults = faults_of()
    assert [fault.partition(": runs: ")[0] for fault in faults] == ["params/one/a.yaml", "params/two/b.yaml"]
    assert SECRET not in str(faults)


# Names of reports are names of files


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([""], "defaults"),
        (["all", "gpt-4o"], "all-gpt-4o"),
        ([0.5, True, 3], "0.5-True-3"),
        (["Привет"], "Привет"),
        (["meta-llama/Llama-3-8B"], "meta-llama_Llama-3-8B"),
        (["ft:gpt:x"], "ft_gpt_x"),
        (["/home/me/experiments/"], "experiments"),
        (["<script>"], "script"),
        (["task!=a", "score>=0.5"], "task_not_a-score_at_least_0.5"),
        (["score<1", "turns>9"], "score_below_1-turns_above_9"),
        ([["a", "b"]], "a_b"),
        (["."], Path.cwd().name),
        (["../"], Path.cwd().parent.name),
        (["/"], "HASH"),
    ],
)
def test_values_stay_readable_in_names_and_are_made_safe(values, name):
    assert re.fullmatch(re.escape(name).replace("HASH", "[0-9a-f]{6}"), file_name(values))


@given(st.lists(st.text() | st.integers() | st.floats() | st.lists(st.text())))
def test_names_are_safe_whatever_the_values(values):
    name = file_name(values)
    assert 0 < len(name.encode()) <= 120
    assert not set(name) & set('/\\:*?"<>|\0\n')
    assert name not in (".", "..")
    assert not name.startswith((".", "-"))


def test_several_sources_of_a_kind_are_compared_unless_each_is_asked_for(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(TRACE, tmp_path / name)
    sources = [str(tmp_path / name) for name in ("one", "two")]
    (both,) = plan(sources)
    assert both.parameters["traces"] == sources
    assert both.name == "one-two"
    assert [report.name for report in plan(sources, each=True)] == ["one", "two"]


def test_the_name_of_a_report_does_not_list_more_than_one_option(tmp_path):
    (tmp_path / "logs").mkdir()
    shutil.copy(TRACE, tmp_path / "logs")
    source = str(tmp_path / "logs")
    names = [plan([source], values={"where": ["turns>=1", *more]})[0].name for more in ([], ["turns>=2"], ["turns>=3"])]
    assert names[0] == "logs-turns_at_least_1"
    assert all(re.fullmatch(r"logs-[0-9a-f]{6}", name) for name in names[1:])
    assert len(set(names)) == 3
