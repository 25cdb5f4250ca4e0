import sys

import pytest

from evalkit.reports import PlanError, plan

CELL = 'model: str = "a"  # model\nruns: str = "samples:none"  # folder\nn: int = 1  # number\ntasks: list[str] = []'


def faults_of(*args, **kwargs):
    with pytest.raises(PlanError) as raised:
        plan(*args, **kwargs)
    return raised.value.faults


def keys(reports):
    return [report.key for report in reports]


def test_every_params_file_is_a_report(project):
    project("one", parameters=CELL, params={"b.yaml": "model: b", "a.yml": "", ".x.yaml": "model: 1", "c.txt": "x"})
    project("two", params={"only.yaml": ""})
    project("three")
    reports = plan()
    assert keys(reports) == ["one/a", "one/b", "two/only"]
    assert [report.parameters for report in reports] == [{}, {"model": "b"}, {}]
    assert reports[1].all_parameters == {"model": "b", "runs": "samples:none", "n": 1, "tasks": []}


def test_a_notebook_stands_for_its_params_files_or_its_defaults(project):
    project("one", parameters=CELL, params={"b.yaml": "model: b"})
    project("two")
    assert keys(plan(["one", "notebooks/two.ipynb"])) == ["one/b", "two/defaults"]


def test_a_notebook_named_with_values_is_run_once_with_these(project, tmp_path):
    project("one", parameters=CELL, params={"b.yaml": "model: b", "c.yaml": "model: c"})
    (tmp_path / "logs").mkdir()
    (report,) = plan(["one"], texts=[("runs", "logs"), ("tasks", "x"), ("tasks", "[y, z]")])
    assert report.parameters == {"runs": "logs", "tasks": ["x", "y", "z"]}
    assert report.name.startswith("logs-")


def test_sample_defaults_are_emptied_as_soon_as_one_source_is_given(project):
    cell = 'a: str = "samples:x"\nb: str = "samples:y"\nc: list[str] = ["samples:z"]\nn: int = 1'
    root = project("one", parameters=cell, params={"p.yaml": "n: 2"})
    (root / "mine").mkdir()
    ((own,), (untouched,)) = plan(["one"], values={"b": "mine"}), plan()
    assert own.all_parameters == {"a": "", "b": "mine", "c": [], "n": 1}
    assert own.parameters == {"b": "mine", "a": "", "c": []}
    assert untouched.parameters == {"n": 2}


def test_all_faults_of_all_files_are_listed_at_once(project):
    project("one", parameters=CELL, params={"a.yaml": "modle: x\nn: many", "b.yaml": "model: 4", "c.yaml": "x: ["})
    project("two", parameters="must: str", params={"d.yaml": "", "e.yaml": "must:"})
    project("gone", params={"f.yaml": ""})
    project("broken", params={"g.yaml": ""})
    project("cell", parameters="x: int = (", params={"h.yaml": ""})
    broken = "notebooks/broken.ipynb"
    with open(broken, "w") as file:
        file.write("{")
    (__import__("pathlib").Path("notebooks") / "gone.ipynb").unlink()
    faults = faults_of(texts=[("zzz", "1")])
    expected = [
        "params/gone/f.yaml: gone: no such notebook; did you mean 'one'?",
        f"{broken}: not a notebook",
        "notebooks/cell.ipynb: the parameters cell is not Python",
        "command line: unknown parameter zzz",
        "params/one/a.yaml: unknown parameter modle; did you mean 'model'?",
        'params/one/a.yaml: n must be int, not str ("many")',
        "params/one/b.yaml: model must be str, not int (4)",
        "params/one/c.yaml: not YAML",
        "params/two/d.yaml: must has no value",
        "params/two/e.yaml: must has no value",
    ]
    assert len(faults) == len(expected)
    assert [e for e in expected if not any(fault.startswith(e) for fault in faults)] == []


def test_without_folders_of_ones_own_those_of_evalkit_are_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {"model_comparison/all_models", "crafter_scores/every_model"} <= set(keys(plan()))
    assert keys(plan(["model_comparison"])) == ["model_comparison/all_models"]


def test_a_list_for_a_single_value_is_a_sweep(project):
    project("one", parameters=CELL, params={"s.yaml": "model: [a/b, ft:x, a/b]\nn: [1, 2]\ntasks: [x, y]"})
    reports = plan()
    assert [(r.parameters["model"], r.parameters["n"]) for r in reports] == [
        ("a/b", 1),
        ("a/b", 2),
        ("ft:x", 1),
        ("ft:x", 2),
    ]
    assert all(r.parameters["tasks"] == ["x", "y"] for r in reports)
    assert len(set(keys(reports))) == 4
    assert reports[0].name.startswith("s-a_b-")


SWEEP = {"evalkit": {"sweep": {"model": "own_models:models"}}}


@pytest.fixture
def own_models(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from evalkit.io import SourceError\n"
        "def models(runs, n=0):\n"
        "    if n == 9: raise SourceError(f'{runs}: holds no run')\n"
        "    if n == 8: raise KeyError('x')\n"
        "    return [f'm{i}' for i in range(n)]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("own_models", None)


@pytest.mark.usefixtures("own_models")
def test_all_means_what_the_notebooks_sweep_function_finds(project):
    project("one", parameters=CELL, params={"s.yaml": "model: all\nn: 2"}, metadata=SWEEP)
    assert [r.parameters for r in plan()] == [{"n": 2, "model": "m0"}, {"n": 2, "model": "m1"}]
    assert keys(plan()) == ["one/s-m0", "one/s-m1"]


@pytest.mark.usefixtures("own_models")
@pytest.mark.parametrize(
    ("n", "cause"), [(9, "samples:none: holds no run"), (8, "KeyError: 'x'"), (0, "there are none in the data")]
)
def test_a_sweep_function_that_fails_is_named_with_its_cause(project, n, cause):
    project("one", parameters=CELL, metadata=SWEEP)
    (fault,) = faults_of(["one"], values={"model": "all", "n": n})
    assert fault == f"notebooks/one.ipynb: model: all: own_models:models: {cause}"


def test_the_same_report_named_twice_is_made_once(project):
    project("one", parameters=CELL, params={"b.yaml": "model: b"})
    assert keys(plan(["one", "params/one/b.yaml"])) == ["one/b"]


def test_a_single_value_typed_again_is_a_sweep(project):
    project("one", parameters=CELL)
    reports = plan(["one"], texts=[("model", "a"), ("model", "[b, c]"), ("n", "1"), ("model", "a"), ("n", "2")])
    assert [(r.parameters["model"], r.parameters["n"]) for r in reports] == [
        ("a", 1),
        ("a", 2),
        ("[b, c]", 1),
        ("[b, c]", 2),
    ]
