"""All agents of a run on one timeline: each message is heard behind the turn that said it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.kinds import show_run, transcript_of
from evalkit.mindcraft import load
from evalkit.mindcraft.transcript import AgentTurns, merge
from tests.mindcraft.builders import SCORE, turn, write_all

TURN = st.tuples(
    st.sampled_from(["system", "assistant", "user"]),
    st.sampled_from(["a", "b", "a: (FROM OTHER BOT)b", "b: (FROM OTHER BOT)a", "c: (FROM OTHER BOT)", ""]),
)


@given(st.lists(st.lists(TURN, max_size=8), max_size=4))
def test_every_turn_comes_once_and_those_of_an_agent_in_their_order(turns):
    order = merge([AgentTurns("abcd"[number], own) for number, own in enumerate(turns)])
    assert sorted(order) == [(agent, place) for agent, own in enumerate(turns) for place in range(len(own))]
    for agent in range(len(turns)):
        assert [place for own, place in order if own == agent] == list(range(len(turns[agent])))


def test_a_message_is_heard_behind_the_turn_that_said_it():
    late = [("assistant", "!nearbyBlocks"), ("system", "result"), ("assistant", "bring wood")]
    early = [("user", "Andy: (FROM OTHER BOT)bring wood"), ("assistant", "ok")]
    order = merge([AgentTurns("Jill", early), AgentTurns("Andy", late)])
    assert order == [(1, 0), (1, 1), (1, 2), (0, 0), (0, 1)]


def test_a_message_that_was_said_twice_is_heard_behind_each():
    said = [("assistant", "go"), ("assistant", "wait"), ("assistant", "go")]
    heard = [("user", "Andy: (FROM OTHER BOT)go"), ("user", "Andy: (FROM OTHER BOT)go")]
    order = merge([AgentTurns("Andy", said), AgentTurns("Jill", heard)])
    assert order.index((1, 0)) > order.index((0, 0))
    assert order.index((1, 1)) > order.index((0, 2))


@pytest.mark.parametrize(
    ("finals", "decides"),
    [
        ({"Andy": "0", "Jill": "1"}, "Jill_0"),  # the highest score is the run's
        ({"Andy": "0.5", "Jill": None}, "Andy_0"),
    ],
)
def test_the_final_message_that_decides_is_marked(tmp_path, finals, decides):
    logs = {
        f"e/t/{name}_0_0.json": {"turns": [turn("assistant", "x"), turn("system", f"{SCORE}{score}" if score else "y")]}
        for name, score in finals.items()
    }
    loaded = load(write_all(tmp_path, logs))
    made = transcript_of(loaded.kind, loaded.kind.run_files(loaded, loaded.runs.iloc[0]))
    assert [made_turn.actor for made_turn in made.turns if "decision" in made_turn.events] == [decides]


def test_a_log_of_several_that_is_broken_is_named_and_the_others_are_shown(tmp_path):
    good = {"turns": [turn("assistant", "hello"), turn("system", f"{SCORE}1")]}
    logs = load(write_all(tmp_path, {"e/t/Andy_0_0.json": good, "e/t/Jill_1_0.json": b'{"turns": ['}))
    text = show_run(logs)
    assert "Jill_1: log can't be read:" in text
    assert "» Andy_0: hello" in text


def test_a_run_whose_logs_are_all_broken_was_decided_by_that(tmp_path):
    broken = {"e/t/Andy_0_0.json": b'{"turns": [', "e/t/Jill_1_0.json": b"{"}
    logs = load(write_all(tmp_path, {**broken, "e/u/Andy_0_0.json": 1}))
    run = logs.runs[logs.runs["task_id"] == "t"].iloc[0]
    made = transcript_of(logs.kind, logs.kind.run_files(logs, run))
    assert [turn.events for turn in made.turns] == [("error",), ("error", "decision")]
