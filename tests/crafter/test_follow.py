"""Traces while an experiment writes: each counts once its file is whole."""

import json
import os

from evalkit.crafter.kind import KIND
from evalkit.kinds.follow import Following
from tests.crafter.traces import config, environment, hook, trace


def test_an_experiment_from_its_first_trace_to_its_last(tmp_path):
    now = 2_000_000_000.0
    following = Following(KIND, tmp_path, {"by_difficulty": True}, clock=lambda: now, expected=2)

    def write(name, model, size=None):
        event = environment(0, [hook("easy_achievement", ["collect_wood"])])
        content = json.dumps(trace(event, metadata=[config(model_name=model, difficulty="easy")]))
        (tmp_path / name).write_text(content[:size])
        os.utime(tmp_path / name, (now, now))

    assert following.look().text.startswith("no Crafter session trace yet")
    write("a.json", "alder", size=100)
    view = following.look()
    assert view.text.startswith("no Crafter session trace yet")
    assert view.status == "1 of 1 files new, 1 being written"
    now += 1
    write("a.json", "alder")
    view = following.look()
    assert view.text.splitlines()[2].split()[:6] == ["alder", "1", "of", "2", "1", "1.00"]
    assert "total: 1 of 2 traces, mean score 1.00" in view.text
    assert "\ndifficulty  n" in view.text
    assert not view.done
    now += 1
    write("b.json", "alder")
    write("c.json", "birch", size=1)
    assert not following.look().done  # while another trace is being written
    now += 10
    view = following.look()  # and no more once it has stayed broken
    assert view.done
    assert "failed: c.json: JSONDecodeError" in view.text
    write("c.json", "birch")
    view = following.look()
    assert "total: 3 of 4 traces" in view.text
    assert not view.done
