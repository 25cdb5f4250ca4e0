"""A standard output that is full or closed ends every command in one line and a failure."""

import subprocess
import sys

import pytest

COMMANDS = (
    "--help",
    "--version",
    "crafter samples:crafter",
    "detect samples:crafter",
    "show samples:steps/typed.json",
)
FAULTS = {"> /dev/full": "No space left on device", ">&-": "is closed"}


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /dev/full")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_can_not_be_written_ends_in_one_line(command, fault):
    line = f"{sys.executable} -m evalkit {command} {fault}"
    ended = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert FAULTS[fault] in ended.stderr


def test_a_reader_that_leaves_is_no_failure():
    line = f"{sys.executable} -m evalkit crafter samples:crafter --list all | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
