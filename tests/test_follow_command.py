"""`--follow` as a user runs it: in a terminal, through a pipe, stopped by Ctrl-C or by the end of the experiment."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from itertools import pairwise

import pytest

from tests.mindcraft.builders import SCORE, log, write
from tests.terminal import screen

PATIENCE = 120.0  # seconds for what takes two at most on a quiet machine


class Command:
    """The real command, its output collected as it comes."""

    def __init__(self, *arguments, terminal):
        self.fd, end = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = [sys.executable, "-m", "evalkit", *map(str, arguments), "--follow", "--interval", "0.5"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=end, stderr=subprocess.PIPE)
        os.close(end)
        self.out = ""

    def read_until(self, text):
        """Read on until a text stands in the output, or the output ends."""
        end = time.monotonic() + PATIENCE
        while text not in self.out and (not select.select([self.fd], [], [], 1)[0] or self.read()):
            assert time.monotonic() < end, f"{text!r} never came; there is {self.out!r}"
        assert text in self.out

    def read(self):
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # how a terminal ends
            data = b""
        self.out += data.decode().replace("\r\n", "\n")
        return data

    def interrupt(self):
        """Press Ctrl-C, and read to the end: exit code and stderr."""
        self.process.send_signal(signal.SIGINT)
        while self.read():
            pass
        os.close(self.fd)
        return self.process.wait(PATIENCE), self.process.communicate()[1].decode()


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_a_table_follows_what_is_written(tmp_path, terminal):
    runs = tmp_path / "runs"
    following = Command("mindcraft", runs, "--expected", 2, terminal=terminal)
    try:
        following.read_until("waiting for")
        write(runs / "m/cook/Andy_0_0.json", '{"turns": [')
        following.read_until("0 of 2")
        write(runs / "m/cook/Andy_0_0.json", log(f"{SCORE}1"))
        following.read_until("1 of 2")
        following.read_until("1 file: 1 used, 0 skipped, 0 failed")  # the last line: the table is drawn as a whole
        assert following.interrupt() == (0, "")
    finally:
        following.process.kill()
    out = following.out
    assert out.endswith("\n")  # the cursor stands below
    if terminal:
        assert "total: 1 of 2 tasks done, 0 runs running" in screen(out)
        assert out.rfind("\x1b[?25l") < out.rfind("\x1b[?25h")
    else:
        assert "\x1b" not in out
        tables = [view.partition("\n")[2] for view in out.split("updated ")[1:]]
        assert all(old != new for old, new in pairwise(tables))
