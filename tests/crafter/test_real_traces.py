"""The real traces, counted by hand and once more by a plain reading of their hooks."""

from pathlib import Path

import pytest

from evalkit.crafter import WEIGHTS, evaluate_all_traces, evaluate_trace, load
from evalkit.kinds import has_flag
from tests.crafter.traces import TRACES, needs_traces

pytestmark = needs_traces

# start of the file name: score, easy, medium, hard, invalid, suspect, events, trajectory, model, difficulty, flags;
# read off the hooks of each file
BY_HAND = {
    "session_crafter_episode_11_551ee370": (-0.15, 0, 0, 0, 3, 3, 10, "---", "gpt-4.1-mini", "easy"),
    "session_crafter_episode_12_2218b7cc": (-0.15, 0, 0, 0, 3, 3, 10, "---", "gpt-4.1-mini", "easy"),
    "session_crafter_episode_12_77219cd7": (
        *(4.35, 2, 1, 0, 3, 3, 25, "---+++"),
        *("ft:gpt-4.1-nano-2025-04-14:synth:crafter-mini-v1:Bx6fmVhG", "easy"),
    ),
    "session_crafter_episode_19_ef9602b2": (0.9, 1, 0, 0, 2, 2, 10, "--+", "gpt-4.1-mini", "easy"),
    "session_crafter_episode_1_00000000": (1.6, 2, 0, 0, 8, 8, 60, "--+-+-----", "gpt-4o-mini", "hard"),
    "session_crafter_episode_1_058233aa": (-0.1, 0, 0, 0, 2, 1, 15, "--", "gpt-4.1-nano", "easy"),
    "session_crafter_episode_1_2d1037f1": (4.5, 2, 1, 0, 0, 0, 30, "+++", "gpt-4o", "easy"),
    "session_crafter_episode_2_35efe35f": (5.15, 1, 0, 1, 17, 14, 60, "--------------+-+--", "gpt-4.1-nano", "easy"),
    "session_crafter_episode_4_2bb84475": (-0.2, 0, 0, 0, 4, 2, 30, "----", "gpt-4.1-nano", "easy"),
    "session_episode_0_6827cd9f": (0.0, 0, 0, 0, 0, 0, 0, "(no scored events)", "unknown", "unknown"),
    "session_episode_0_gpt-4.1-nano": (-3.3, 0, 0, 0, 66, 0, 132, "-" * 66, "gpt-4.1-nano", "unknown"),
}

FLAGS = {
    "session_crafter_episode_1_2d1037f1": [],
    "session_crafter_episode_4_2bb84475": ["error_entry", "suspect_invalid_actions"],
    "session_episode_0_6827cd9f": ["aborted"],
    "session_episode_0_gpt-4.1-nano": ["no_environment_events", "verdicts_disagree"],
}


def one(start):
    (path,) = TRACES.glob(f"{start}*.json")
    return path


@pytest.mark.parametrize("start", BY_HAND)
def test_score_counts_and_trajectory_equal_a_count_by_hand(start):
    score, *counts, suspect, events, trajectory, model, difficulty = BY_HAND[start]
    result = evaluate_trace(one(start))
    assert result["total_score"] == pytest.approx(score, abs=1e-12)
    assert [result["counts"].get(name, 0) for name in WEIGHTS] == counts
    assert (result["trajectory"], result["num_events"]) == (trajectory, events)
    assert (result["model_name"], result["difficulty"]) == (model, difficulty)
    assert result["suspect_invalid_actions"] == suspect
    assert result["flags"] == FLAGS.get(start, ["suspect_invalid_actions"])


def test_all_twelve_files_are_accounted_for():
    results = evaluate_all_traces(TRACES)
    scores = sorted((numbers[0] for numbers in BY_HAND.values()), reverse=True)
    assert [result["total_score"] for result in results] == pytest.approx(scores)
    entries = {entry.source: entry[1:] for entry in results.ledger.entries}
    assert entries.pop(str(one("session_test_session"))) == ("failed", "JSONDecodeError: the file is empty")
    assert entries == {str(one(start)): ("used", "") for start in BY_HAND}


def test_all_twelve_files_are_in_the_tables_and_share_worlds():
    logs = load(TRACES)
    assert (len(logs.episodes), len(logs.ledger), len(logs.achievements)) == (11, 12, 11 * 22)
    assert len(logs.events) == sum(numbers[6] for numbers in BY_HAND.values())
    aborted = logs.episodes[has_flag(logs.episodes, "aborted")].iloc[0]
    assert aborted[["score", "band", "trajectory", "unlocked", "progression"]].isna().all()
    unlocks = logs.achievements.dropna(subset="turn").set_index(["source", "achievement"])["turn"]
    assert unlocks[str(one("session_crafter_episode_2"))].to_dict() == {"collect_drink": 18, "defeat_skeleton": 17}
    first = {"collect_wood": 4, "make_wood_pickaxe": 10, "place_table": 9}
    assert unlocks[str(one("session_crafter_episode_1_2d1037f1"))].to_dict() == first
    worlds = logs.episodes.set_index(
        logs.episodes["source"].map(lambda path: Path(path).name.split("_episode_")[1][:4])
    )
    assert worlds["task_source"].value_counts().to_dict() == {"map": 8, "map_hash": 1}
    for pair in ("12_2", "12_7"), ("1_05", "1_2d"):  # played by different models, or at different budgets
        assert worlds.loc[list(pair), "task_id"].nunique() == 1
    assert worlds["task_id"].nunique() == 7
