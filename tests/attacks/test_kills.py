"""Commands that are killed leave nothing behind and lose nothing; `python -m tools.kills` does it more often."""

import random
import sys

import pytest

from tools import kills

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are told in /proc"),
]


@pytest.mark.parametrize("name", kills.COMMANDS)
def test_a_command_that_is_killed_loses_nothing_and_leaves_nobody(name, tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    monkeypatch.setattr(kills, "LOGS", 30)
    took = kills.prepare(name, tmp_path, 1)
    moment = random.Random(name).uniform(0.3, 1.0) * took
    assert kills.one(name, tmp_path, 1, moment)[1] == []


def test_a_process_that_stays_and_a_file_that_is_not_whole_are_noticed(tmp_path):
    command = kills.COMMANDS["view"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "index.html").write_text("<html>")
    (tmp_path / "errors").write_text("Traceback")
    process = kills.start(kills.COMMANDS["follow"], tmp_path, "stays")
    wrong = []
    kills.PATIENCE, before = 0.5, kills.PATIENCE
    try:
        wrong = list(kills.after_kill(command, tmp_path, process, "SIGKILL", "stays"))
    finally:
        kills.PATIENCE = before
        process.kill()
        process.wait()
    assert [line.partition(":")[0] for line in wrong] == ["it did not end", "1 processes were left", "not whole"]
