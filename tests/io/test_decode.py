"""Decoding: strict, with a second try for what real writers emit, and never another exception than its own."""

import codecs
import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalkit import crafter
from evalkit.io import BrokenFileError, WrongShapeError, decode_json
from evalkit.kinds.detection import kind_of_source
from tests.crafter.traces import config, environment, hook, trace


class Thing(msgspec.Struct):
    a: int


ANYTHING = msgspec.json.Decoder()
THING = msgspec.json.Decoder(Thing)


@pytest.mark.parametrize(
    ("data", "value", "recovered"),
    [
        (b' [{"a": 1}]\n', [{"a": 1}], []),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, ["byte_order_mark"]),
        (b"[-Infinity, NaN, 1]", [None, None, 1], ["nan_literal"]),
        (b'"\\ud83dA"', "\ufffdA", ["lone_surrogate"]),
        (b'["\\ude00x", NaN]', ["\ufffdx", None], ["nan_literal", "lone_surrogate"]),
        (b'"\\ud83d\\ude00"', "😀", []),
        ('{"é": "😀"}'.encode(), {"é": "😀"}, []),
        ('{"é": "😀"}'.encode("utf-16"), {"é": "😀"}, ["utf_16"]),
        (codecs.BOM_UTF16_BE + "[NaN]".encode("utf-16-be"), [None], ["utf_16", "nan_literal"]),
        ('["Grüße", "café"]'.encode("latin-1"), ["Grüße", "café"], ["latin_1"]),
    ],
)
def test_what_can_be_read_is_read_and_what_was_mended_is_named(data, value, recovered):
    assert decode_json(data, ANYTHING) == (value, recovered)


PIECES = [
    '"', '"a', 'b"', '""', "\\", "\\\\", '\\"', "\\ud83d", "\\uDE00", "\\udbff", "\\ud8", "\\u0041", "NaN", "-", "N",
    "Infinity", "[", "]", "[1,", ",", "1", "null", "{", "}", ":", " ", "😀", "é", "A",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.sampled_from(PIECES).map('["{}", NaN]'.format))
@example('["\\ud83d", NaN, "NaN\\"", -Infinity, "\\\\ud83d", "\\ud83d\\ud83d\\ude00"]')
@settings(max_examples=400, deadline=None)
def test_what_is_mended_is_what_the_json_of_python_reads(text):
    try:
        expected = json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)
        expected = expected.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except ValueError:
        with pytest.raises(BrokenFileError):
            decode_json(text.encode())
        return
    assert decode_json(text.encode())[0] == json.loads(expected)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b" \n", "JSONDecodeError: the file is empty"),
        (b"\xef\xbb\xbf", "JSONDecodeError: the file is empty"),
        (b'{"a": 1', "JSONDecodeError"),
        (b'{"a": 1} x', "JSONDecodeError"),
        (b"{'a': 1}", "JSONDecodeError"),
        (b'{"a": "\x01"}', "JSONDecodeError"),
        (b'{"a": "\xff"}', "UnicodeDecodeError: not UTF-8 at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "UnicodeDecodeError"),
        ('{"a": 1}'.encode("utf-16") + b"x", "UnicodeDecodeError"),
        ('{"a": "é"'.encode("latin-1"), "JSONDecodeError"),
        ('{"a": "é", "b": "'.encode() + b'\xe9"}', "UnicodeDecodeError"),
        ('{"a": 1}'.encode("utf-16-le"), "JSONDecodeError"),
        (b"\xef\xbb\xbf\xef\xbb\xbf[]", "JSONDecodeError"),
        (b"[" * 100_000 + b"]" * 100_000, "RecursionError"),
        (b'{"a": NaN, "b": ' + b"[" * 100_000, "RecursionError"),
    ],
)
def test_what_is_broken_is_named_as_users_know_it(data, error):
    with pytest.raises(BrokenFileError) as caught:
        decode_json(data, ANYTHING)
    assert str(caught.value).startswith(error)
    assert not isinstance(caught.value, WrongShapeError)


@pytest.mark.parametrize("data", [b"[]", b'{"a": "x"}', b'{"b": 1}', b'{"a": NaN}', b'{"a": 1.5}'])
def test_an_unexpected_shape_is_distinguished_from_broken_bytes(data):
    with pytest.raises(WrongShapeError, match=r"^TypeError"):
        decode_json(data, THING)


@pytest.mark.parametrize("skipped", [b'"\xff"', b'"\\ud83d', b"[1,", b'{"x": tru}'])
def test_parts_the_decoder_skips_are_checked_too(skipped):
    with pytest.raises(BrokenFileError):
        decode_json(b'{"a": 1, "skipped": ' + skipped + b"}", THING)


@given(st.binary(max_size=80))
@example(b"\xff\xfe[\x00]\x00")
@example(b"9" * 5000)
def test_any_bytes_give_a_value_or_its_own_error(data):
    for decoder in (ANYTHING, THING):
        with suppress(BrokenFileError):
            decode_json(data, decoder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(json_values, st.booleans())
def test_whatever_json_writes_is_read_back(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert decode_json(text.encode("utf-8"), ANYTHING)[0] == value


@pytest.mark.parametrize(("encoding", "flag"), [("utf-8", None), ("utf-16", "utf_16"), ("latin-1", "latin_1")])
def test_a_log_in_another_encoding_is_found_read_and_flagged(tmp_path, encoding, flag):
    event = environment(0, [hook("easy_achievement", ["collect_wood"])])
    text = json.dumps(trace(event, metadata=[config(model_name="modèle")]), ensure_ascii=False)
    (tmp_path / "a.json").write_bytes(text.encode(encoding))
    assert kind_of_source(str(tmp_path)).name == "crafter"
    (episode,) = crafter.load(tmp_path).episodes.itertuples()
    assert (episode.model_name, episode.score) == ("modèle", 1)
    assert (flag in episode.run_flags) is (flag is not None)
