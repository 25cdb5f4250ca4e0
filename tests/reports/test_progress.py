import pytest

from evalkit.reports.batch import SIZE_BUDGET, Progress

RECORD = {
    "key": "one/a",
    "status": "made",
    "headline": {"text": "60 %", "label": "success\x1b[31m"},
    "seconds": 1.24,
    "page_bytes": 123_456,
    "why": "new",
    "error": "",
}


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
