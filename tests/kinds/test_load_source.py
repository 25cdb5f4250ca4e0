"""``evalkit.load``: any kind of logs, told by their content."""

import pickle

import pandas as pd
import pytest

import evalkit
from evalkit.io import SourceError


@pytest.mark.parametrize(
    ("source", "kind", "found"),
    [
        ("samples:mindcraft/runs", "", "mindcraft"),
        ("samples:crafter", "", "crafter"),
        ("samples:steps", "", "steps"),
        ("samples:crafter", "crafter", "crafter"),
    ],
)
def test_the_kind_is_told_by_content_or_by_name(source, kind, found):
    assert evalkit.load(source, kind).kind.name == found


def test_options_are_those_of_the_kind(tmp_path):
    assert evalkit.load("samples:crafter", counting="hook").episodes["score"].sum() < 268
    with pytest.raises(SourceError, match="mindcraft logs have no option 'counting'; there are 'tasks'"):
        evalkit.load("samples:mindcraft/runs", counting="hook")
    with pytest.raises(SourceError, match="there is no file in it"):
        evalkit.load(tmp_path)


def test_a_dataset_knows_its_kind(tmp_path):
    evalkit.mindcraft.collect("samples:mindcraft/runs", tmp_path / "made")
    assert len(evalkit.load(tmp_path / "made").runs) == len(evalkit.load("samples:mindcraft/runs").runs)


@pytest.mark.parametrize("kind", ["mindcraft/runs", "crafter", "steps"])
def test_logs_can_be_sent_to_another_process(kind):
    logs = evalkit.load(f"samples:{kind}")
    copy = pickle.loads(pickle.dumps(logs))
    assert copy.kind is logs.kind
    assert repr(copy) == repr(logs)
    assert sorted(dir(copy)) == sorted(dir(logs))
    for name in [logs.kind.runs, *logs.kind.lazy_tables]:
        pd.testing.assert_frame_equal(getattr(copy, name), getattr(logs, name))
