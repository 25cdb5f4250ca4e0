"""Names of models: read as the user says, on every door and for every kind."""

import pickle

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import compare, crafter, mindcraft
from evalkit.cli import main
from evalkit.display.words import text_of
from evalkit.io import SourceError
from evalkit.kinds.selection import renames_of
from tests.crafter.traces import config, environment, trace
from tests.mindcraft.builders import SCORE, log, write_all


def _trace(model):
    return trace(environment(0, ()), metadata=[config(model_name=model)])


FOLDERS = {
    "mindcraft": {
        f"x/{model}/{name}/Andy_0_0.json": log(f"{SCORE}{score}")
        for model, name, score in [("GPT-4o", "cook", 1), ("gpt-4o", "bake", 0)]
    },
    "crafter": {"a.json": _trace("GPT-4o"), "b.json": _trace("gpt-4o")},
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_two_names_become_one_model_on_every_door(tmp_path, kind):
    write_all(tmp_path, FOLDERS[kind])
    names = {"rename": ["GPT-4o=gpt-4o"]}
    assert set(evalkit.load(tmp_path).runs["model_name"]) == {"GPT-4o", "gpt-4o"}
    assert set(evalkit.load(tmp_path, **names).runs["model_name"]) == {"gpt-4o"}
    assert set(evalkit.load(tmp_path, rename={"GPT-4o": "gpt-4o"}).runs["model_name"]) == {"gpt-4o"}
    printed = CliRunner().invoke(main, ["compare", str(tmp_path), "--rename", "GPT-4o=gpt-4o"]).output
    assert "GPT-4o" not in printed
    assert "gpt-4o" in printed


def test_all_frames_are_renamed_and_models_are_asked_for_by_their_new_names(tmp_path):
    write_all(tmp_path, FOLDERS["crafter"])
    logs = evalkit.crafter.load(tmp_path, rename=["GPT-4o=new"], models=["new"])
    for frame in (logs.episodes, logs.events, pickle.loads(pickle.dumps(logs)).turns):
        assert set(frame["model_name"]) == {"new"}
    with pytest.raises(SourceError, match="no runs of model 'GPT-4o'"):
        evalkit.crafter.load(tmp_path, rename=["GPT-4o=new"], models=["GPT-4o"])


def test_runs_without_a_model_get_the_one_that_is_stated():
    runs = evalkit.steps.load("samples:steps", model="m").runs
    assert set(runs["model_name"]) == {"m"}
    assert set(runs["model_source"]) == {"stated"}


def test_an_old_name_that_no_run_has_is_a_warning(tmp_path):
    write_all(tmp_path, FOLDERS["crafter"])
    with pytest.warns(UserWarning, match="no run of model 'GPT4o'; did you mean 'GPT-4o'"):
        evalkit.load(tmp_path, rename=["GPT4o=b"])


@pytest.mark.parametrize(
    ("rename", "renames"),
    [
        (["a=b", "c=d=e"], {"a": "b", "c": "d=e"}),
        ("a=b", {"a": "b"}),
        ({"a=b": "c"}, {"a=b": "c"}),
        ((), {}),
        (["a"], None),
        (["=b"], None),
        (["a="], None),
    ],
)
def test_a_renaming_is_a_mapping_or_a_list_of_texts(rename, renames):
    if renames is None:
        with pytest.raises(SourceError, match="write OLD=NEW"):
            renames_of(rename)
    else:
        assert renames_of(rename) == renames


@pytest.mark.parametrize("kind", FOLDERS)
def test_names_that_may_mean_one_model_are_told_with_what_to_type(tmp_path, kind):
    logs = evalkit.load(write_all(tmp_path, FOLDERS[kind]))
    said = "GPT-4o and gpt-4o may be one model: --rename GPT-4o=gpt-4o (parameter rename) reads them as one"
    for command in (["compare"], [kind]):
        assert said in CliRunner().invoke(main, [*command, str(tmp_path)]).output
    findings = compare.findings(compare.leaderboard(logs.runs), logs.ledger)
    findings += (mindcraft.analysis.data_findings if kind == "mindcraft" else crafter.analysis.findings)(
        logs.runs, logs.ledger
    )
    assert sum(said in text_of(finding) for finding in findings) == 2
