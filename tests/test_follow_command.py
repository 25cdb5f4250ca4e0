"""`--follow` as a user runs it: in a terminal, through a pipe, stopped by Ctrl-C or by the end of the experiment."""

import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from tests.mindcraft.builders import SCORE, log, write
from tests.terminal import screen

PATIENCE = 120.0  # seconds for what takes two at most on a quiet machine


class Command:
    """The real command, its output collected as it comes."""

    def __init__(self, *arguments, terminal):
        self.fd, end = pty.openpty() if terminal else os.pipe()
        if terminal:
            import fcntl

            fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-m", "evalkit", *map(str, arguments), "--follow", "--interval", "0.5"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=end, stderr=subprocess.PIPE)
        os.close(end)
        self.out = ""

    def read_until(self, text):
        """Read on until a text stands in the output, or the output ends."""
        end = time.monotonic() + PATIENCE
        while text not in self.out:
            assert time.monotonic() < end, f"{text!r} never came; there is {self.out!r}"
            if select.select([self.fd], [], [], 1)[0] and not self._read():
                break
        assert text in self.out

    def _read(self):
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # how a terminal ends
            data = b""
        self.out += data.decode().replace("\r\n", "\n")
        return data

    def end(self):
        """Read to the end: exit code and stderr."""
        while self._read():
            pass
        os.close(self.fd)
        return self.process.wait(PATIENCE), self.process.communicate()[1].decode()

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.end()


@pytest.fixture
def command():
    started = []

    def start(*arguments, terminal=False):
        started.append(Command(*arguments, terminal=terminal))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()


def run_log(score=None):
    return log(*([] if score is None else [f"{SCORE}{score}"]))


def test_in_a_terminal_the_table_is_redrawn_and_its_last_state_stays(tmp_path, command):
    runs = tmp_path / "runs"
    following = command("mindcraft", runs, "--expected", 2, terminal=True)
    following.read_until("waiting for")
    write(runs / "m/cook/Andy_0_0.json", '{"turns": [')
    following.read_until("0 of 2")
    write(runs / "m/cook/Andy_0_0.json", run_log(1))
    following.read_until("1 of 2")
    following.read_until("1 file: 1 used, 0 skipped, 0 failed")  # the last line: the table is drawn as a whole
    assert following.interrupt() == (0, "")
    assert following.out.count("updated ") >= 4
    left = screen(following.out)
    assert "total: 1 of 2 tasks done, 0 runs running" in left
    assert following.out.endswith("\n")  # the cursor stands below
    assert following.out.rfind("\x1b[?25l") < following.out.rfind("\x1b[?25h")


def test_in_a_pipe_a_table_comes_only_when_it_has_changed(tmp_path, command):
    runs = tmp_path / "runs"
    write(runs / "m/cook/Andy_0_0.json", run_log(1))
    following = command("mindcraft", runs)
    following.read_until("1 of ?")
    time.sleep(1.5)  # a few looks that find nothing new
    write(runs / "m/bake/Andy_0_0.json", run_log(0))
    following.read_until("2 of ?")
    assert following.interrupt() == (0, "")
    assert "\x1b" not in following.out
    assert following.out.count("updated ") == following.out.count("total: ") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mindcraft", ".", "--follow", "--output", "x.csv"], "--output does nothing with --follow"),
        (["steps", ".", "--follow", "--checks"], "--checks does nothing with --follow"),
        (["mindcraft", ".", "--follow", "--interval", "0.1"], "--interval 0.1: at least 0.5 seconds"),
        (["mindcraft", ".", "--follow", "--tasks", "gone.json"], "gone.json: no such file"),
        (["mindcraft", ".", "--idle", "5"], "--idle does nothing without --follow"),
    ],
)
def test_what_goes_together_is_told_at_once(arguments, message):
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
