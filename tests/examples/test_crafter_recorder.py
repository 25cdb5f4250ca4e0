import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("crafter")

from evalkit.crafter import ACTIONS, evaluate_trace, hooks, load
from evalkit.crafter.format import read_trace
from evalkit.crafter.table import FLAGS
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


def test_images_are_written_as_raw_rgb_or_as_a_checksum(tmp_path):
    states = {}
    for kind in ("images", "no images", "none"):
        recorder = Recorder(1, "m", observations=kind, session_id=f"s-{kind}")
        image = recorder.reset()
        recorder.play_turn(["noop", 5], reasoning="why", call={"prompt_tokens": 3, "total_tokens": 5})
        path = recorder.save(tmp_path, indent=None)
        call, runtime, environment = json.loads(Path(path).read_text())["event_history"]
        assert call["metadata"] == {"model_name": "m", "prompt_tokens": 3, "total_tokens": 5, "turn": 0}
        assert runtime["metadata"]["action_names"] == ["noop", "do"]
        states[kind] = environment["system_state_before"]
    assert base64.b64decode(states["images"]["public_state"]["observation_image_base64"]) == image.tobytes()
    assert states["no images"]["public_state"]["observation_image_size_kb"] == 12.0
    assert states["none"] is None
    episodes = load(tmp_path).episodes
    assert episodes["total_tokens"].tolist() == [5, 5, 5]
    assert episodes["score"].nunique() == 1


PLAY = """
import hashlib, json, sys
from datetime import datetime
from examples.crafter_recorder.recorder import Recorder
recorder = Recorder(5, "m", session_id="s", clock=lambda: datetime(2025, 1, 1))
recorder.reset()
junk = [object() for _ in range(int(sys.argv[1]))]
while not recorder.done and recorder._turns < 50:
    recorder.play_turn([(7 * recorder._turns + i) % 17 for i in range(4)])
print(hashlib.sha256(json.dumps(recorder.trace()).encode()).hexdigest())
"""


def test_an_episode_is_the_same_in_another_process():
    command = [sys.executable, "-c", PLAY]
    digests = {
        subprocess.run(
            [*command, junk],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONPATH": ".", "PYTHONHASHSEED": junk},
        ).stdout
        for junk in ("1", "5000")
    }
    assert len(digests) == 1


def test_a_recorder_refuses_what_the_game_does_not_know():
    recorder = Recorder(1, "m")
    with pytest.raises(RuntimeError, match="call reset"):
        recorder.play_turn(["noop"])
    recorder.reset()
    with pytest.raises(ValueError, match="the game has no action 'fly'"):
        recorder.play_turn(["fly"])
    with pytest.raises(ValueError, match="unknown observations 'all'"):
        Recorder(1, "m", observations="all")


def test_a_turn_stops_where_the_episode_ends_and_an_empty_one_is_not_recorded():
    recorder = Recorder(1, "m", length=3)
    recorder.reset()
    recorder.play_turn([])
    recorder.play_turn(["noop"] * 5)
    assert (recorder.done, recorder.trace()["session_metadata"][1]["data"]["rollout_length"]) == (True, 3)
    assert len(recorder.trace()["event_history"]) == 2


def test_the_samples_are_real_episodes_in_which_hooks_and_game_agree():
    assert len(SAMPLES) == len(samples.EPISODES)
    reached = {}
    for path in SAMPLES:
        content = json.loads(path.read_text())
        config, results = (entry["data"] for entry in content["session_metadata"])
        named = [
            name
            for event in content["event_history"]
            for e in event["event_metadata"]
            for name in e["data"].get("achievements", [])
        ]
        counts = results["achievement_counts"]
        assert sorted(named) == sorted(name for name, n in counts.items() if n > 0)
        assert results["achievements"] == {name: n > 0 for name, n in counts.items()}
        assert evaluate_trace(path)["flags"] == []
        reached.setdefault(config["model_name"], set()).update(evaluate_trace(path)["counts"])
    assert "medium_achievement" in reached["scripted-forager"]
    assert "hard_achievement" in reached["scripted-miner"]
    assert sum(path.stat().st_size for path in SAMPLES) < 600_000


def test_a_sample_can_be_played_again():
    policy, seed, turns, observations = samples.EPISODES[0]
    (path,) = (path for path in SAMPLES if path.stem == f"session_crafter_episode_{seed}_{policy}")
    again = samples.play(policy, seed, turns, observations).trace()
    assert (
        hashlib.sha256(json.dumps(again).encode()).digest()
        == hashlib.sha256(json.dumps(json.loads(path.read_text())).encode()).digest()
    )


def test_invalid_actions_of_the_samples_follow_from_replaying_them():
    policy, seed, turns, _ = samples.EPISODES[-1]
    (path,) = (path for path in SAMPLES if path.stem == f"session_crafter_episode_{seed}_{policy}")
    recorder = Recorder(seed, policy, length=turns * samples.ACTIONS_PER_TURN)
    recorder.reset()
    for event in json.loads(path.read_text())["event_history"]:
        if "actions" not in event:
            continue
        invalid = []
        for index, action in enumerate(event["actions"]):
            before = recorder.observe()
            recorder.play_turn([ACTIONS[action]])
            invalid += [index] if hooks.INVALID(before, action, recorder.observe()) else []
        assert [entry["data"]["action_index"] for entry in event["event_metadata"]] == invalid


def test_every_flag_is_explained():
    assert all(text for text in FLAGS.values())
