"""What editors and mypy know of `load` and of logs agrees with the options and frames of the kinds."""

import inspect

import pandas as pd
import pytest

from evalkit import crafter, kinds, mindcraft, show_table, trajectories
from evalkit.crafter.kind import EpisodesOptions
from evalkit.display.show import TableOptions
from evalkit.kinds import CollectOptions, KindOptions, LoadOptions, Logs, collect, kind_named, load
from evalkit.kinds.keywords import RunOptions
from evalkit.kinds.names import BUILT_IN
from evalkit.kinds.options import COMMON
from evalkit.mindcraft.kind import RunsOptions
from evalkit.trajectories.kind import RunsOptions as TrajectoriesOptions
from tests import messy

KINDS = [kind_named(name) for name in BUILT_IN]


def keywords_of(function) -> set[str]:
    """Return the names of the keyword arguments of a function that have a default."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name for one in parameters if one.default is not one.empty}


def test_the_types_of_options_name_the_options_of_all_built_in_kinds():
    common = {option.name for option in COMMON}
    own = {name for kind in KINDS for name in (*kind.defaults, *kind.settings)}
    assert set(RunOptions.__annotations__) == common
    assert set(KindOptions.__annotations__) == common | own


@pytest.mark.parametrize(
    ("options", "function", "positional"),
    [
        (CollectOptions, collect, set()),
        (RunsOptions, mindcraft.load, {"tasks"}),
        (EpisodesOptions, crafter.load, set()),
        (TrajectoriesOptions, trajectories.load, set()),
        (TableOptions, show_table, {"caption"}),
    ],
)
def test_options_that_are_passed_on_have_the_names_of_the_keywords(options, function, positional):
    own = keywords_of(function) - positional
    of_all_kinds = set(LoadOptions.__annotations__)
    assert set(options.__annotations__) in (own, own | of_all_kinds)


@pytest.mark.parametrize("kind", KINDS, ids=list(BUILT_IN))
def test_the_class_of_logs_declares_the_frames_and_attributes_of_its_kind_and_no_others(kind):
    logs = load(str(messy.folder(kind.name) / "logs"), kind)
    frames = {*kind.tables, *kind.lazy_tables, "turns", "ledger"}
    always = {"kind", "sources", "source", "runs", "ledger", "chosen", "storage_options", "show"}
    assert type(logs) is kind.logs
    assert set(dir(logs)) == {*Logs.__annotations__, *kind.logs.__annotations__, *always}
    assert frames <= set(dir(logs))
    for name in kind.tables:
        pd.testing.assert_frame_equal(logs[name], getattr(logs, name))


def test_an_unknown_frame_is_refused_with_the_names_of_the_others():
    logs = kinds.load("samples:crafter")
    with pytest.raises(KeyError, match="episodes, events, achievements, turns, ledger"):
        logs["nonsense"]
