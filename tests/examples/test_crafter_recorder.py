import json

import pytest

pytest.importorskip("crafter")

from evalkit.crafter import evaluate_trace, load
from evalkit.crafter.format import read_trace
from examples.crafter_recorder.recorder import Recorder
from tools.samples import crafter as samples

SAMPLES = sorted(samples.FOLDER.glob("*.json"))


@pytest.fixture(scope="module")
def played():
    """One episode of a scripted policy, with the game's own unlocks noted after every action."""
    recorder = Recorder(3, "scripted-forager", length=80)
    recorder.reset()
    policy = samples.Scripted(recorder.env, samples.GOALS["scripted-forager"], samples.Random(0))
    unlocked = [set()]

    def watched():
        for action in policy.turn():
            yield action
            unlocked.append(set(recorder.env._unlocked))

    while not recorder.done:
        recorder.play_turn(watched())
    return recorder, unlocked


def test_hooks_name_what_the_game_unlocks_in_the_turn_it_does(played):
    recorder, unlocked = played
    environments = [event for event in recorder.trace()["event_history"] if "reward" in event]
    assert len(environments) == 16
    for turn, event in enumerate(environments):
        named = {name for entry in event["event_metadata"] for name in entry["data"]["achievements"]}
        assert named == unlocked[min(5 * turn + 5, len(unlocked) - 1)] - unlocked[5 * turn]
    assert len(unlocked[-1]) >= 5


def test_a_recorded_episode_goes_through_parser_score_and_tables(played, tmp_path):
    recorder, unlocked = played
    path = recorder.save(tmp_path)
    result = evaluate_trace(path)
    assert result["flags"] == []
    assert (result["model_name"], result["num_events"]) == ("scripted-forager", 32)
    traces = load(tmp_path)
    episode = traces.episodes.iloc[0]
    assert (episode["unlocked"], episode["actions"], episode["turns"]) == (len(unlocked[-1]), 80, 16)
    rows = traces.achievements
    assert set(rows.loc[rows["unlocked"], "achievement"]) == unlocked[-1]
    with open(path, "rb") as file:
        assert len(read_trace(file.read())[0].event_history) == 32


def test_a_recorder_refuses_what_the_game_does_not_know():
    recorder = Recorder(1, "m")
    with pytest.raises(RuntimeError, match="call reset"):
        recorder.play_turn(["noop"])
    recorder.reset()
    with pytest.raises(ValueError, match="the game has no action 'fly'"):
        recorder.play_turn(["fly"])
    with pytest.raises(ValueError, match="unknown observations 'all'"):
        Recorder(1, "m", observations="all")


def test_the_samples_are_real_episodes_in_which_hooks_and_game_agree():
    assert len(SAMPLES) == len(samples.EPISODES)
    reached = {}
    for path in SAMPLES:
        content = json.loads(path.read_text())
        config, results = (entry["data"] for entry in content["session_metadata"])
        hooks = [hook["data"] for event in content["event_history"] for hook in event["event_metadata"]]
        named = [name for data in hooks for name in data.get("achievements", [])]
        counts = results["achievement_counts"]
        assert sorted(named) == sorted(name for name, n in counts.items() if n > 0)
        assert results["achievements"] == {name: n > 0 for name, n in counts.items()}
        evaluated = evaluate_trace(path)
        assert evaluated["flags"] == []
        reached.setdefault(config["model_name"], set()).update(evaluated["counts"])
    assert "medium_achievement" in reached["scripted-forager"]
    assert "hard_achievement" in reached["scripted-miner"]
    assert sum(path.stat().st_size for path in SAMPLES) < 600_000
