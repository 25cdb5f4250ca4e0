"""Every final wording in every shape of log: what it means for score and status."""

import math

import pytest

from evalkit.mindcraft import analyze_agent_log
from tests.mindcraft.builders import SCORE, SHAPES, log, said, turn, write

# wording, score, status
ENDINGS = [
    ("Task ended in score : 0.5", 0.5, "FAILED_PARTIAL_SCORE"),
    ("Task ended in score: 0", 0.0, "FAILED_SCORE_ZERO"),
    ("Task completed", 1.0, "SUCCESS"),
    ("Task completed, exiting", 1.0, "SUCCESS"),
    ("Task unsuccessful: Timeout reached", None, "TIMED_OUT"),
    ("Task unsuccessful: Agent ended goal", None, "NO_SCORE_LOGGED"),
    ("Task unsuccessful: Agent ended conversation", None, "NO_SCORE_LOGGED"),
    ("Task successful", 1.0, "SUCCESS"),
    ("Task timeout reached", None, "TIMED_OUT"),
    ("Agent ended goal", None, "NO_SCORE_LOGGED"),
    ("Agent ended conversation", None, "NO_SCORE_LOGGED"),
    ("Task successful ended with code : 2", 1.0, "SUCCESS"),
    ("Task successful ended with code : undefined", 1.0, "SUCCESS"),
    ("Task timeout reached ended with code : 4", None, "TIMED_OUT"),
    ("Task timeout reached ended with code : undefined", None, "TIMED_OUT"),
    ("Agent ended goal ended with code : 3", None, "NO_SCORE_LOGGED"),
    ("No other agents found ended with code : 3", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}0", 0.0, "FAILED_SCORE_ZERO"),
    (f"{SCORE}1", 1.0, "SUCCESS"),
    (f"{SCORE}0.85", 0.85, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}10.5", 10.5, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}100", 100.0, "SUCCESS"),
    (f"{SCORE}1e-7", 1e-7, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}65.38461538461539", 65.38461538461539, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}28.999999999999996", 28.999999999999996, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}99.99999999999999", 99.99999999999999, "FAILED_PARTIAL_SCORE"),
    (f"{SCORE}0.0", 0.0, "FAILED_SCORE_ZERO"),
    (f"{SCORE}NaN", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}undefined", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}Infinity", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}null", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}٣", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}1_0", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}0x1", None, "NO_SCORE_LOGGED"),
    (f"{SCORE}1.", None, "NO_SCORE_LOGGED"),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("ending", "score", "status"), ENDINGS, ids=[ending for ending, *_ in ENDINGS])
def test_every_wording_in_every_shape(tmp_path, shape, ending, score, status):
    outcome = analyze_agent_log(write(tmp_path / "Andy_0_0.json", SHAPES[shape](said(ending))))
    assert outcome["raw_score"] == score
    assert outcome["completion_status"] == status
    assert outcome["final_system_message"] == ending
    assert outcome["timed_out"] is (status == "TIMED_OUT")
    assert outcome["agent_log_processed"] is True
    assert outcome["parsing_errors"] == []
    assert ("score_implied" in outcome["flags"]) is (score == 1 and SCORE not in ending)
    assert ("score_not_a_number" in outcome["flags"]) is (SCORE in ending and score is None)
    assert outcome["near_final_message"] is None


@pytest.mark.parametrize("ending", ["Task ended in score : 1", "Task ended in score: 1"])
def test_a_score_in_other_words_is_a_score(tmp_path, ending):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", log(ending)))
    assert (outcome["raw_score"], outcome["completion_status"], outcome["flags"]) == (1, "SUCCESS", [])


@pytest.mark.parametrize("role", ["user", "assistant", "System", None, 3])
@pytest.mark.parametrize("ending", [ending for ending, *_ in ENDINGS[:20:3]])
def test_only_system_turns_decide(tmp_path, ending, role):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {"turns": said(ending, role=role)}))
    assert (outcome["completion_status"], outcome["raw_score"]) == ("NO_SCORE_LOGGED", None)
    assert outcome["final_system_message"] is None
    assert outcome["flags"] == ["quoted_only"]


@pytest.mark.parametrize(
    ("content", "nearly"),
    [
        ("Task ended with score : 1 and more", True),
        ("Task ended with score : ", True),
        ("Task ended with score", True),
        ("task ended with score : 1", False),
        ("Well: Task ended with score : 1", True),
        ("Task completed!", True),
        ("Task completed by Andy", True),
        ("Task successful ended with code : two", True),
        ("Your goal: Task timeout reached", True),
        ("Code output:\nTask ended with score : 1", True),
        ("Agent ended", False),
        ("No task was ended", False),
    ],
)
def test_a_message_counts_only_as_a_whole_and_is_flagged_where_it_nearly_is_one(tmp_path, content, nearly):
    talk = [turn("system", "Good."), turn("system", content)]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {"turns": talk}))
    assert (outcome["completion_status"], outcome["raw_score"]) == ("NO_SCORE_LOGGED", None)
    assert outcome["final_system_message"] is None
    assert outcome["flags"] == ["near_final"] * nearly
    assert outcome["near_final_message"] == (content if nearly else None)


def test_a_nearly_final_message_is_flagged_beside_a_final_one_too(tmp_path):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", log(f"{SCORE}0", f"So: {SCORE}1")))
    assert (outcome["raw_score"], outcome["flags"]) == (0, ["near_final"])


def test_space_around_the_message_does_not_matter(tmp_path):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {"turns": [turn("system", f"\n {SCORE}1 \n")]}))
    assert outcome["completion_status"] == "SUCCESS"


def test_memory_never_counts(tmp_path):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", {**log(), "memory": f"{SCORE}1"}))
    assert outcome["completion_status"] == "NO_SCORE_LOGGED"
    assert outcome["flags"] == []


@pytest.mark.parametrize(
    ("endings", "score", "status", "message", "conflicting"),
    [
        (["0", "0"], 0, "FAILED_SCORE_ZERO", "0", False),
        (["1", "0"], 1, "SUCCESS", "1", True),
        (["0", "1"], 0, "FAILED_SCORE_ZERO", "0", True),
        (["0", "1", "1"], 0, "FAILED_SCORE_ZERO", "0", True),
        (["NaN", "1"], None, "NO_SCORE_LOGGED", "NaN", True),
        (["1", "NaN"], 1, "SUCCESS", "1", True),
        (["NaN", "NaN"], None, "NO_SCORE_LOGGED", "NaN", False),
        (["Task successful", "1"], 1, "SUCCESS", "Task successful", False),
        (["Task successful", "0"], 1, "SUCCESS", "Task successful", True),
        (["Agent ended goal", "1"], 1, "SUCCESS", "1", False),
        (["Task timeout reached", "0"], 0, "TIMED_OUT", "Task timeout reached", False),
        (["Task timeout reached", "1"], 1, "TIMED_OUT", "Task timeout reached", True),
        (["1", "Task timeout reached"], 1, "TIMED_OUT", "Task timeout reached", True),
        (["Agent ended goal", "Agent ended conversation"], None, "NO_SCORE_LOGGED", "Agent ended goal", False),
    ],
)
def test_the_first_score_decides_and_a_time_out_overrides(tmp_path, endings, score, status, message, conflicting):
    def full(text: str) -> str:
        return text if " " in text else f"{SCORE}{text}"

    outcome = analyze_agent_log(write(tmp_path / "a_0.json", log(*map(full, endings))))
    assert (outcome["raw_score"], outcome["completion_status"]) == (score, status)
    assert outcome["final_system_message"] == full(message)
    assert ("conflicting" in outcome["flags"]) is conflicting


@pytest.mark.parametrize(("score", "flagged"), [("-1", True), ("100.5", True), ("150", True), ("100", False)])
def test_a_score_out_of_any_range_is_flagged_and_no_success(tmp_path, score, flagged):
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", log(f"{SCORE}{score}")))
    assert math.isclose(outcome["raw_score"], float(score))
    assert ("score_out_of_range" in outcome["flags"]) is flagged
    assert (outcome["completion_status"] == "SUCCESS") is not flagged


def test_a_quote_beside_a_real_final_message_is_no_flag(tmp_path):
    turns = [turn("user", f"It says {SCORE}1"), turn("system", f"{SCORE}0")]
    outcome = analyze_agent_log(write(tmp_path / "a_0.json", turns))
    assert (outcome["raw_score"], outcome["flags"]) == (0, [])
