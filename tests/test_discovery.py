"""The bare command, completion, the names of packages, and hints for wrong names work."""

import importlib
import os
import re

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import compare, kinds, mindcraft
from evalkit.cli import main
from evalkit.io import list_source, resolve
from evalkit.kinds import kind_named
from evalkit.reports import PlanError, plan


def run(*words: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, words, env=environment, prog_name="evalkit")
    return result.exit_code, result.output


def test_the_bare_command_says_what_to_do_with_a_folder():
    code, text = run()
    assert code == 0
    for line in ("evalkit detect FOLDER", "evalkit report FOLDER", "evalkit KIND FOLDER", "samples:mindcraft"):
        assert line in text


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("evalkit ", ["mindcraft", "crafter", "steps", "collect", "show", "detect", "compare", "report"]),
        ("evalkit collect c", ["crafter"]),
        ("evalkit mindcraft --scale ", ["auto", "percent", "fraction"]),
    ],
)
def test_shells_complete_commands_kinds_and_options(line, offered):
    words = line.split(" ")
    environment = {"_EVALKIT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    names = [text.partition(",")[2] for text in run(**environment)[1].splitlines()]
    assert set(offered) <= set(names)
    assert all(name.startswith(words[-1]) for name in names)


PACKAGES = ["evalkit", *(f"evalkit.{name}" for name in evalkit.__all__)]
PACKAGES = [name for name in PACKAGES if importlib.util.find_spec(name)] + ["evalkit.crafter.benchmark"]
PACKAGES += [f"evalkit.{name}" for name in ("io", "kinds", "display", "display.plots", "evidence", "reports")]
PACKAGES += [f"evalkit.{kind}.{name}" for kind in ("mindcraft", "crafter") for name in ("analysis", "figures")]
PACKAGES += ["evalkit.compare.figures"]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_lists_its_public_names(name):
    module = importlib.import_module(name)
    assert set(module.__all__) <= set(dir(module))
    for public in module.__all__:
        assert getattr(module, public) is not None
        assert not public.startswith("_") or public == "__version__"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda runs: mindcraft.analysis.status_counts(runs, "zzz"), "no column 'zzz'; there are "),
        (lambda runs: compare.leaderboard(runs, "succesful"), "did you mean 'is_successful'?"),
        (lambda runs: compare.leaderboard(runs.drop(columns="run_id")), "no column 'run_id'; "),
        (lambda runs: kinds.select(runs, ["dogwod-8b"]), "no runs of model 'dogwod-8b'; did you mean 'dogwood-8b'?"),
        (lambda runs: kind_named("minecraft"), "no kind of log is named 'minecraft'; did you mean 'mindcraft'?"),
    ],
)
def test_a_wrong_name_gets_a_hint(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(mindcraft.load("samples:mindcraft/runs/small-models").runs)


def test_samples_may_be_named_by_a_glob(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    folder = resolve("samples:mindcraft/runs")
    assert sorted(list_source("samples:mindcraft/runs/*").files) == list_source(folder).files
    some = list_source(os.path.join(folder, "small-models")).files
    assert list_source("samples:mindcraft/runs/small-*").files == some
    (report,) = plan(["samples:mindcraft/runs/*", "model_comparison"])
    assert report.parameters["runs"] == ["samples:mindcraft/runs/*"]
    with pytest.raises(PlanError, match="no file matches"):
        plan(["model_comparison"], values={"runs": "samples:nothing/*"})
