import io
import re

import pytest

from evalkit.reports.progress import SIZE_BUDGET, Progress

RECORD = {
    "key": "one/a",
    "status": "made",
    "headline": {"text": "60 %", "label": "success\x1b[31m"},
    "seconds": 1.24,
    "page_bytes": 123_456,
    "why": "new",
    "error": "",
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "[1/2] made      one/a  60 % success\ufffd[31m  (1.2 s, 0.12 MB, new)"),
        ({"headline": None}, "[1/2] made      one/a  (1.2 s, 0.12 MB, new)"),
        (
            {"headline": None, "page_bytes": SIZE_BUDGET + 1},
            "[1/2] made      one/a  (1.2 s, 1.50 MB, more than 1.5, new)",
        ),
        ({"status": "failed", "error": "E: \x1b[31mx\nmore"}, "[1/2] FAILED    one/a  E: \ufffd[31mx  (1.2 s)"),
        ({"status": "failed", "error": ""}, "[1/2] FAILED    one/a  (1.2 s)"),
    ],
)
def test_one_plain_line_per_report(fields, line):
    lines = []
    Progress(2, lines.append).finished(RECORD | fields)
    assert lines == [line]


def test_the_bar_is_drawn_in_a_terminal_below_the_lines_and_goes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    progress = Progress(2, pytest.fail, terminal)
    progress.running(["one/a", "one/\x1bb", "x" * 200])
    progress.finished(RECORD)
    progress.running(["one/[b]c[/b]"])
    progress.bar.close()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", terminal.getvalue()).splitlines()
    drawn = [line.rstrip() for line in lines if line.strip("\n ━╸╺")]
    assert any("one/a, one/\ufffdb, xx" in line for line in drawn)
    assert "0/2" in drawn[0]
    assert any(line.startswith("[1/2] made      one/a  60 % success") for line in drawn)
    assert drawn[-1].endswith("one/[b]c[/b]")
