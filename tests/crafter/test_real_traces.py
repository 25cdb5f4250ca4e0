"""The real traces, counted by hand and once more by a plain reading of their hooks."""

from pathlib import Path
from typing import NamedTuple

import pytest

from evalkit.crafter import WEIGHTS, evaluate_all_traces, evaluate_trace, load
from evalkit.kinds import has_flag
from tests.crafter.traces import TRACES, needs_traces

pytestmark = needs_traces


class Counted(NamedTuple):
    """What a trace contains, read off the hooks of its file."""

    score: float
    invalid: int  # invalid actions
    suspect: int  # of these, those that may be valid
    events: int
    trajectory: str
    model: str
    difficulty: str = "unknown"
    easy: int = 0
    medium: int = 0
    hard: int = 0


BY_HAND = {  # by start of the file name
    "session_crafter_episode_11_551ee370": Counted(
        score=-0.15, invalid=3, suspect=3, events=10, trajectory="---", model="gpt-4.1-mini", difficulty="easy"
    ),
    "session_crafter_episode_12_2218b7cc": Counted(
        score=-0.15, invalid=3, suspect=3, events=10, trajectory="---", model="gpt-4.1-mini", difficulty="easy"
    ),
    "session_crafter_episode_12_77219cd7": Counted(
        score=4.35,
        easy=2,
        medium=1,
        invalid=3,
        suspect=3,
        events=25,
        trajectory="---+++",
        model="ft:gpt-4.1-nano-2025-04-14:synth:crafter-mini-v1:Bx6fmVhG",
        difficulty="easy",
    ),
    "session_crafter_episode_19_ef9602b2": Counted(
        score=0.9, easy=1, invalid=2, suspect=2, events=10, trajectory="--+", model="gpt-4.1-mini", difficulty="easy"
    ),
    "session_crafter_episode_1_00000000": Counted(
        score=1.6,
        easy=2,
        invalid=8,
        suspect=8,
        events=60,
        trajectory="--+-+-----",
        model="gpt-4o-mini",
        difficulty="hard",
    ),
    "session_crafter_episode_1_058233aa": Counted(
        score=-0.1, invalid=2, suspect=1, events=15, trajectory="--", model="gpt-4.1-nano", difficulty="easy"
    ),
    "session_crafter_episode_1_2d1037f1": Counted(
        score=4.5,
        easy=2,
        medium=1,
        invalid=0,
        suspect=0,
        events=30,
        trajectory="+++",
        model="gpt-4o",
        difficulty="easy",
    ),
    "session_crafter_episode_2_35efe35f": Counted(
        score=5.15,
        easy=1,
        hard=1,
        invalid=17,
        suspect=14,
        events=60,
        trajectory="--------------+-+--",
        model="gpt-4.1-nano",
        difficulty="easy",
    ),
    "session_crafter_episode_4_2bb84475": Counted(
        score=-0.2, invalid=4, suspect=2, events=30, trajectory="----", model="gpt-4.1-nano", difficulty="easy"
    ),
    "session_episode_0_6827cd9f": Counted(
        score=0.0, invalid=0, suspect=0, events=0, trajectory="(no scored events)", model="unknown"
    ),
    "session_episode_0_gpt-4.1-nano": Counted(
        score=-3.3, invalid=66, suspect=0, events=132, trajectory="-" * 66, model="gpt-4.1-nano"
    ),
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
    expected, result = BY_HAND[start], evaluate_trace(one(start))
    assert result["total_score"] == pytest.approx(expected.score, abs=1e-12)
    counts = [expected.easy, expected.medium, expected.hard, expected.invalid]
    assert [result["counts"].get(name, 0) for name in WEIGHTS] == counts
    assert (result["trajectory"], result["num_events"]) == (expected.trajectory, expected.events)
    assert (result["model_name"], result["difficulty"]) == (expected.model, expected.difficulty)
    assert result["suspect_invalid_actions"] == expected.suspect
    assert result["flags"] == FLAGS.get(start, ["suspect_invalid_actions"])


def test_all_twelve_files_are_accounted_for():
    results = evaluate_all_traces(TRACES)
    scores = sorted((counted.score for counted in BY_HAND.values()), reverse=True)
    assert [result["total_score"] for result in results] == pytest.approx(scores)
    entries = {entry.source: entry[1:] for entry in results.ledger.entries}
    assert entries.pop(str(one("session_test_session"))) == ("failed", "JSONDecodeError: the file is empty")
    assert entries == {str(one(start)): ("used", "") for start in BY_HAND}


def test_all_twelve_files_are_in_the_tables_and_share_worlds():
    logs = load(TRACES)
    assert (len(logs.episodes), len(logs.ledger), len(logs.achievements)) == (11, 12, 11 * 22)
    assert len(logs.events) == sum(counted.events for counted in BY_HAND.values())
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
