import io

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


def test_the_bar_is_drawn_in_a_terminal_below_the_lines_and_goes():
    terminal = Terminal()
    progress = Progress(2, lambda line: terminal.write(line + "\n"), terminal)
    progress.bar(["one/a", "one/\x1bb"])
    progress.finished(RECORD)
    progress.bar(["one/b"])
    progress.clear()
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert drawn[1] == "░" * 24 + " 0/2  one/a, one/\ufffdb"
    assert drawn[2].startswith("[1/2] made")
    assert drawn[3] == "█" * 12 + "░" * 12 + " 1/2  one/b"
    assert drawn[4] == ""


def test_no_bar_is_drawn_elsewhere():
    file = io.StringIO()
    progress = Progress(1, lambda line: None, file)
    progress.bar(["one/a"])
    progress.clear()
    assert file.getvalue() == ""
