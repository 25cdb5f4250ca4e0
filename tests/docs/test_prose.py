"""The prose of pages, notebooks and docstrings stays below the limits of tools/prose.json."""

import pytest

from tools import prose


def test_no_file_uses_hard_words_more_often_than_its_limit_allows(capsys):
    assert prose.main([]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A folder that holds logs", {"holds": 1}),
        ("The kind is told by\ntheir content.", {"told": 1, "by its": 1}),
        ("`samples:crafter` stands for the samples", {}),
        ("It stands in a ledger", {"stands": 1}),
        ("``holds`` and `told` are code, as is\n\n```sh\nevalkit holds\n```\n", {}),
        (">>> holds = 1\nbeside", {"beside": 1}),
        ("[a page](doors.md#told)", {}),
    ],
)
def test_words_are_counted_in_prose_and_not_in_code(text, words):
    assert prose.count(text) == words


def test_limits_never_rise(tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "LIMITS", tmp_path / "prose.json")
    monkeypatch.setattr(prose, "texts", lambda: iter([("a.md", "holds holds told"), ("b.md", "told")]))
    prose.LIMITS.write_text('{"a.md": {"holds": 5}}')
    assert prose.main([]) == 1
    prose.main(["--lower"])
    assert prose.LIMITS.read_text() == '{\n"a.md": {"holds": 2}\n}\n'
