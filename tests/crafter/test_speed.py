import json

from benchmarks.crafter import generate, plain_way
from evalkit.crafter import evaluate_all_traces


def test_the_ways_that_are_timed_give_the_same_scores(tmp_path):
    generate(tmp_path, count=2, turns=6)
    plain, own = plain_way(tmp_path), evaluate_all_traces(tmp_path)
    assert [result["counts"] for result in own] == [result["counts"] for result in plain]
    assert [result["trajectory"] for result in own] == [result["trajectory"] for result in plain]
    assert all(result["counts"]["invalid_action"] == 3 and "+" in result["trajectory"] for result in own)


def test_generated_traces_are_mostly_images(tmp_path):
    generate(tmp_path, count=1, turns=2)
    (path,) = tmp_path.glob("*.json")
    text = path.read_text()
    event = json.loads(text)["event_history"][1]
    assert len(event["system_state_before"]["observation"]["observation_image_base64"]) == 16384
    assert text.count('_base64"') * 10_000 > 0.75 * len(text)
