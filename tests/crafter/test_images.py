"""What the player saw: pictures of traces that hold them."""

import base64
import json

import pytest

from evalkit.crafter.transcript import images_of
from evalkit.kinds import Image, RunFiles, kind_named, transcript_of
from tests.crafter.traces import TRACES, environment, needs_traces, runtime, trace, write

PIXELS = bytes(range(12))
GOOD = {"observation_image_base64": base64.b64encode(PIXELS).decode(), "observation_image_shape": [1, 4, 3]}


def seen(observation):
    return environment(0, system_state_after={"public_state": observation})


@pytest.mark.parametrize(
    ("observation", "image"),
    [
        (GOOD, Image(4, 1, PIXELS)),
        ({**GOOD, "observation_image_shape": [4, 4, 3]}, None),
        ({**GOOD, "observation_image_shape": [12, 1]}, None),
        ({**GOOD, "observation_image_shape": [10**9, 10**9, 3]}, None),
        ({**GOOD, "observation_image_shape": [1.0, 4, 3]}, None),
        ({**GOOD, "observation_image_base64": "no base64!"}, None),
        ({**GOOD, "observation_image_base64": None}, None),
        ({"observation_image_shape": [1, 4, 3]}, None),
    ],
)
def test_a_picture_is_read_where_its_size_is_that_of_its_shape(observation, image):
    data = json.dumps(trace(runtime(0), seen(observation), "no event", 7)).encode()
    assert images_of(data) == ({} if image is None else {1: image})


def test_a_turn_shows_the_last_picture_of_its_events(tmp_path):
    path = write(tmp_path, trace(runtime(0), seen(GOOD), runtime(1), environment(1)))
    made = transcript_of(kind_named("crafter"), RunFiles([str(path)]))
    assert [turn.images for turn in made.turns] == [(Image(4, 1, PIXELS),), ()]


@needs_traces
def test_real_traces_have_a_picture_at_every_turn():
    path = TRACES / "session_crafter_episode_1_00000000-0000-0000-0000-000000000004_20250724_183546.json"
    made = transcript_of(kind_named("crafter"), RunFiles([str(path)]))
    assert [len(turn.images) for turn in made.turns] == [1] * 20
