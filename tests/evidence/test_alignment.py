"""Two runs side by side: the first difference is where the logs say."""

import re

import pytest

from evalkit.evidence import RunRef
from evalkit.evidence.pages import pair_page
from evalkit.kinds import RunFiles, kind_named, transcript_of
from tests.crafter.traces import hook, runtime, trace
from tests.crafter.traces import write as write_trace
from tests.mindcraft.builders import SCORE, turn, write_all

LOOK, COOK, EAT = ("Looking. !nearbyBlocks", 'Now. !craftRecipe("bread", 1)', 'So. !consume("bread")')


def differing(kind, *runs):
    """Return the numbers of the rows that differ on the page of two runs, each given by its files."""
    made = [transcript_of(kind_named(kind), RunFiles(list(map(str, paths)))) for paths in runs]
    page = pair_page([RunRef(name, "mindcraft", [], "", []) for name in "ab"], *made)
    return list(map(int, re.findall(r'<li id="r(\d+)"[^>]*class="(?:first-difference|differs)"', page)))


@pytest.mark.parametrize(
    ("a", "b", "rows"),
    [
        ([LOOK, COOK], [LOOK, COOK], []),
        ([LOOK, COOK], [LOOK, EAT], [2]),
        ([LOOK], [LOOK, COOK, EAT], [2, 3]),
        (["I look around. !nearbyBlocks", COOK], [LOOK, EAT], [2]),  # the same command in other words
        (["hello", COOK], ["good day", COOK], [1]),
    ],
)
def test_agents_logs_differ_first_where_a_command_does(tmp_path, a, b, rows):
    logs = {f"{run}.json": {"turns": [turn("assistant", text) for text in said]} for run, said in (("a", a), ("b", b))}
    folder = write_all(tmp_path, {f"e/t/Andy_0_{name}": log for name, log in logs.items()})
    assert differing("mindcraft", *([folder / f"e/t/Andy_0_{name}"] for name in logs)) == rows


def test_names_of_agents_are_no_difference(tmp_path):
    runs = []
    for one, other in (("Andy_0", "Jill_1"), ("agent_0", "agent_1")):
        logs = {
            f"{one}_e/t/{one}_0.json": {"turns": [turn("assistant", "hi"), turn("system", f"{SCORE}1")]},
            f"{one}_e/t/{other}_0.json": {"turns": [turn("user", f"{one}: (FROM OTHER BOT)hi")]},
        }
        folder = write_all(tmp_path, logs)
        runs.append([folder / name for name in logs])
    assert differing("mindcraft", *runs) == []


def test_episodes_differ_first_where_an_action_or_an_unlock_does(tmp_path):
    wood = hook("easy_achievement", ["collect_wood"])
    traces = {
        "a": trace(runtime(0, actions=[1]), runtime(1, [wood], [5]), runtime(2, actions=[3])),
        "b": trace(runtime(0, actions=[1], action_reasoning="else"), runtime(1, actions=[5]), runtime(2, actions=[3])),
    }
    for content in traces.values():
        for event in content["event_history"]:
            event["metadata"].pop("action_names")
    assert differing("crafter", *([write_trace(tmp_path, own, f"{name}.json")] for name, own in traces.items())) == [2]
