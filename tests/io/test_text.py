"""Untrusted text becomes plain text, names stay distinct, and messages are grouped by what they say."""

import unicodedata
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import message_pattern, plain, warnings_as_lines
from evalkit.io.text import distinct_names, is_local_link, short_paths

NAMES = st.lists(st.text(alphabet="ab…\x1b\x07 (2)", max_size=12), unique=True, max_size=8)
PATHS = st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join), unique=True, max_size=8)


@pytest.mark.parametrize(
    ("text", "expected", "with_lines"),
    [
        (3.5, "3.5", "3.5"),
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x9b31m", "\ufffd31m", "\ufffd31m"),
        ("abc\u202egpj.exe", "abc\ufffdgpj.exe", "abc\ufffdgpj.exe"),
        ("progress\r\ndone", "progress  done", "progress\ndone"),
        ("one\ntwo\tthree", "one two three", "one\ntwo\tthree"),
        ("one\u2028two\u2029three", "one two three", "one\ntwo\nthree"),
        ("half \ud83d", "half \ufffd", "half \ufffd"),
        ("👩‍🚀 é 漢字 $x$ <script>", "👩‍🚀 é 漢字 $x$ <script>", "👩‍🚀 é 漢字 $x$ <script>"),
    ],
)
def test_steering_characters_are_replaced(text, expected, with_lines):
    assert (plain(text), plain(text, keep_lines=True)) == (expected, with_lines)


def test_long_texts_end_in_an_ellipsis():
    assert [plain("abcde", width) for width in (5, 4, 1, None)] == ["abcde", "abc…", "…", "abcde"]


@given(st.text(st.characters()), st.booleans())
def test_no_control_character_is_left(text, keep_lines):
    out = plain(text, keep_lines=keep_lines)
    allowed = "\n\t" if keep_lines else ""
    assert all(c in allowed or c == "\u200d" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in out)
    assert keep_lines or len(out.splitlines()) <= 1
    out.encode("utf-8")


LOCAL = ["runs/one.html", "../runs/one.html?a=b:c#turn-3", "#turn-3", "a%20b.html", "./a:b.html"]
ELSEWHERE = ["javascript:alert(1)", "JavaScript:alert(1)", "java\nscript:alert(1)", "\x01javascript:alert(1)",
             "data:text/html,x", "https://example.org", "//example.org", "/etc/passwd", "\\\\example.org", " x", "",
             None, float("nan")]  # fmt: skip


def test_local_links_stay_beside_their_page():
    assert [address for address in [*LOCAL, *ELSEWHERE] if is_local_link(address)] == LOCAL


def test_a_warning_is_one_line_of_plain_text_and_comes_once(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        before = warnings.showwarning
        with warnings_as_lines():
            for text in ("a\n\x1b[31mb", "a\n\x1b[31mb", "c"):
                warnings.warn(text, stacklevel=1)
        assert warnings.showwarning is before
    assert capsys.readouterr().err.splitlines() == ["evalkit: warning: a \ufffd[31mb", "evalkit: warning: c"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/x/run_1/h.json", "/x/run_2/h.json"], ["run_1/h.json", "run_2/h.json"]),
        (["/a/x/h.json", "/b/x/h.json", "/b/y/h.json", "/k.json"], ["a/x/h.json", "b/x/h.json", "y/h.json", "k.json"]),
        (["h.json", "a/h.json"], ["h.json", "a/h.json"]),
        (["", "a/"], ["", "a/"]),
    ],
)
def test_a_file_is_named_by_the_shortest_path_that_tells_it_apart(paths, names):
    assert short_paths(paths) == dict(zip(paths, names, strict=True))


@given(PATHS)
def test_different_files_never_have_the_same_name(paths):
    names = short_paths(paths)
    assert len(set(names.values())) == len(paths)
    assert all(f"/{path}".endswith(f"/{name}") for path, name in names.items())


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["alder", "birch"], ["alder", "birch"]),
        (["a" * 12 + "1"], ["aaaa…aa1"]),
        (["x" * 8 + "1" + "y" * 8, "x" * 8 + "2" + "y" * 8], ["…xx1…yyy", "…xx2…yyy"]),
        (["abcdefxghijklmn", "abcdefxghijzlmn"], ["…ijklmn", "…ijzlmn"]),  # one cut is enough
        (["abcd.fghijk"], ["abcd…ijk"]),  # three dots, not four
        (["a\x1b", "a\x07", "b"], ["a\ufffd", "a\ufffd (2)", "b"]),
    ],
)
def test_names_are_plain_short_and_distinct(names, shown):
    assert distinct_names(names, 8) == dict(zip(names, shown, strict=True))


@given(NAMES)
def test_different_names_never_look_the_same(names):
    shown = distinct_names(names, 5)
    assert len(set(shown.values())) == len(names)
    assert all(text == plain(text) for text in shown.values())


PATTERNS = {
    "No cells of type 'T cell' in data/run8.h5ad": "No cells of type '…' in …",
    "'leiden'": "'leiden'",
    "'No cells of type B were found in 12 rows'": "'No cells of type B were found in # rows'",
    "\"No cells of type 'Mega' found in 12 rows\"": "\"No cells of type '…' found in # rows\"",
    "Expected [1, 0], got [2, 0]": "Expected [#, #], got [#, #]",
    "[Errno 2] No such file or directory: 'a/b.tsv'": "[Errno 2] No such file or directory: '…'",
    "can't find 3 of 'a b' and don't know": "can't find # of '…' and don't know",
    "Object at 0x7f33ab12 is 3.5e-4 bad (12%)": "Object at … is # bad (#)",
    "it said 'the file was not there' at once": "it said 'the file was not there' at once",
    "http://host:80/a/b?x=1 failed": "… failed",
    "id 551ee370-a2d4-43e5-9ace-3efdffeaf626 unknown": "id … unknown",
    "12": "12",
    "": "",
    "/data/run7.h5ad": "/data/run7.h5ad",
}


def test_what_varies_in_a_message_is_replaced_and_what_it_says_is_kept():
    assert {message: message_pattern(message) for message in PATTERNS} == PATTERNS


@given(st.text(alphabet=st.sampled_from("ab1 '\"/.-`x\n")))
def test_a_message_never_vanishes(message):
    assert bool(message_pattern(message).strip()) == bool(message.strip())
