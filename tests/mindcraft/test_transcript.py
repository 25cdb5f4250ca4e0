"""A log as a conversation, and all agents of a run on one timeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import SourceError
from evalkit.kinds import RunFiles, transcript_of
from evalkit.mindcraft import KIND, load
from evalkit.mindcraft.transcript import AgentTurns, merge
from tests.mindcraft.builders import SCORE, turn, write, write_all


def lines(folder, content, name="Andy_0_0.json") -> list[str]:
    return transcript_of(KIND, RunFiles([str(write(folder / name, content))])).text().splitlines()


def test_content_that_is_no_text_is_shown_as_it_is(tmp_path):
    out = lines(tmp_path, [turn("user", None), turn("system", {"a": 1}), 5])
    assert out[-3:] == ["1 « user: (no text: None)", "2 · system: (no text: {'a': 1})", "3 ? (no turn): 5"]
    assert "flags: turns without text" in out[1]
    for content in ({"model": "m"}, b"5"):  # what can't be read: `test_cli.py`
        with pytest.raises(SourceError, match=r"Andy_0_0\.json.*no list of turns"):
            lines(tmp_path, content)


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


def test_a_message_is_heard_behind_the_turn_that_said_it_and_one_said_twice_behind_each():
    late = [("assistant", "!nearbyBlocks"), ("system", "result"), ("assistant", "bring wood")]
    early = [("user", "Andy: (FROM OTHER BOT)bring wood"), ("assistant", "ok")]
    order = merge([AgentTurns("Jill", early), AgentTurns("Andy", late)])
    assert order == [(1, 0), (1, 1), (1, 2), (0, 0), (0, 1)]
    twice = [("assistant", "go"), ("assistant", "wait"), ("assistant", "go")]
    order = merge([AgentTurns("Andy", twice), AgentTurns("Jill", [("user", "Andy: (FROM OTHER BOT)go")] * 2)])
    assert order.index((1, 0)) > order.index((0, 0))
    assert order.index((1, 1)) > order.index((0, 2))


@pytest.mark.parametrize(
    ("logs", "decides"),
    [
        ((0, 1), ("Jill_1", f"{SCORE}1")),  # the highest score is the run's
        ((0.5, None), ("Andy_0", f"{SCORE}0.5")),
        ((b'{"turns": [', b"{"), ("Jill_1", "unreadable log: ")),
    ],
)
def test_the_turn_that_decides_is_marked(tmp_path, logs, decides):
    files = dict(zip(("e/t/Andy_0_0.json", "e/t/Jill_1_0.json"), logs, strict=True))
    loaded = load(write_all(tmp_path, {**files, "e/u/Andy_0_0.json": 1}))
    made = transcript_of(loaded.kind, loaded.kind.run_files(loaded, loaded.runs.iloc[0]))
    (decisive,) = (turn for turn in made.turns if "decision" in turn.events)
    assert decisive.actor == decides[0]
    assert decisive.text.startswith(decides[1])
