"""Untrusted text becomes plain text: nothing of it steers a terminal, a figure or a page."""

import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import plain, warnings_as_lines
from evalkit.io.text import is_local_link


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (3.5, "3.5"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x9b31m", "\ufffd31m"),
        ("abc\u202egpj.exe", "abc\ufffdgpj.exe"),
        ("a\u2066b\u2069", "a\ufffdb\ufffd"),
        ("progress\rdone", "progress done"),
        ("one\ntwo\tthree", "one two three"),
        ("one\u2028two\u2029three", "one two three"),
        ("half \ud83d", "half \ufffd"),
        ("👩‍🚀 é 漢字", "👩‍🚀 é 漢字"),
        ("$x$ <script>", "$x$ <script>"),
    ],
)
def test_steering_characters_are_replaced(text, expected):
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo\tthree", "one\ntwo\tthree"),
        ("one\r\ntwo", "one\ntwo"),
        ("a\u2028b", "a\nb"),
        ("\x1b[2J", "\ufffd[2J"),
    ],
)
def test_lines_can_be_kept(text, expected):
    assert plain(text, keep_lines=True) == expected


@pytest.mark.parametrize(("width", "expected"), [(5, "abcde"), (4, "abc…"), (1, "…"), (None, "abcde")])
def test_long_texts_end_in_an_ellipsis(width, expected):
    assert plain("abcde", width) == expected


@given(st.text(st.characters()), st.booleans())
def test_no_control_character_is_left(text, keep_lines):
    out = plain(text, keep_lines=keep_lines)
    allowed = "\n\t" if keep_lines else ""
    assert all(c in allowed or c == "\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in out)
    assert keep_lines or len(out.splitlines()) <= 1
    out.encode("utf-8")


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("runs/one.html", True),
        ("../runs/one.html?a=b:c#turn-3", True),
        ("#turn-3", True),
        ("a%20b.html", True),
        ("./a:b.html", True),
        ("javascript:alert(1)", False),
        ("JavaScript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("\x01javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("https://example.org", False),
        ("//example.org", False),
        ("/etc/passwd", False),
        ("\\\\example.org", False),
        (" x", False),
        ("", False),
        (None, False),
        (float("nan"), False),
    ],
)
def test_local_links_stay_beside_their_page(address, local):
    assert is_local_link(address) is local


def test_a_warning_is_one_line_of_plain_text_and_comes_once(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        with warnings_as_lines():
            for text in ("a\n\x1b[31mb", "a\n\x1b[31mb", "c"):
                warnings.warn(text, stacklevel=1)
        assert warnings.showwarning is before
    assert capsys.readouterr().err.splitlines() == ["evalkit: warning: a \ufffd[31mb", "evalkit: warning: c"]
