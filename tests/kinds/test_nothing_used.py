"""The error of a source in which nothing could be used says what its files are, also those not asked for."""

import json

import pytest

from evalkit.io import SourceError
from evalkit.kinds import load
from tests.kinds.toy import TOY

MINDCRAFT = json.dumps({"memory": "", "turns": [{"role": "user", "content": ""}]})
TRACE = json.dumps({"session_id": "a", "event_history": []})


@pytest.mark.parametrize(
    ("files", "pattern", "message"),
    [
        ({}, "", "no toy game in it: there is no file"),
        ({"a.txt": "x"}, "*.json", "no file matches *.json (1 other file)"),
        (
            {"a.txt": MINDCRAFT, "b.txt": MINDCRAFT},
            "*.json",
            "no file matches *.json (2 other files; 2 look like Mindcraft agent logs); `evalkit mindcraft` reads those",
        ),
        (
            {"a.txt": MINDCRAFT, "b.txt": TRACE, "c.txt": ""},
            "*.json",
            "no file matches *.json (3 other files; 1 looks like a Crafter session trace, 1 looks like a Mindcraft "
            "agent log); `evalkit crafter` and `evalkit mindcraft` read those",
        ),
        (
            {"a.json": TRACE},
            "",
            "no toy game could be read in it (1 file; 1 looks like a Crafter session trace); `evalkit crafter` reads "
            "those: not a game",
        ),
        ({"a.json": "{"}, "", "(1 file, broken or of no kind that evalkit knows): JSONDecodeError"),
    ],
)
def test_it_names_what_is_there_and_what_reads_it(tmp_path, files, pattern, message):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SourceError) as raised:
        load(TOY, tmp_path, {}, pattern=pattern)
    assert message in str(raised.value)
