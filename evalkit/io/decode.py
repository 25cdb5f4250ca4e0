"""Decode JSON: strictly and fast first, then leniently for what real writers emit."""

import codecs
import json
import re
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

_MARKS = {  # encoding, and what recovering it is called
    codecs.BOM_UTF8: ("utf-8-sig", "byte_order_mark"),
    codecs.BOM_UTF16_LE: ("utf-16", "utf_16"),
    codecs.BOM_UTF16_BE: ("utf-16", "utf_16"),
}
_LATIN = re.compile(rb"[\x00-\x7f\xa0-\xfe]*")  # no control characters, and no byte that damage is likely to leave
_UTF_8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_MOST_TOKENS = 2_000  # of the beginning of a file
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)  # a string, or a single mark


class BrokenFileError(ValueError):
    """A file with invalid contents; the text is ``ErrorName: cause`` with a name users know."""


class WrongShapeError(BrokenFileError):
    """Well-formed JSON with a shape other than the decoder's."""


def decode_json(data: bytes, decoder: msgspec.json.Decoder) -> tuple[Any, list[str]]:
    """Decode one JSON file; also return what was recovered.

    The whole file is checked to be UTF-8 and well-formed, even the parts the decoder skips. A byte order mark, UTF-16
    with one, Latin-1, bare ``NaN`` / ``Infinity`` (they become null) and lone surrogates (they become ``\ufffd``) are
    recovered and named: ``byte_order_mark``, ``utf_16``, ``latin_1``, ``nan_literal``, ``lone_surrogate``.

    BrokenFileError for an empty, truncated or malformed file, WrongShapeError once the shape is known to be wrong.
    """
    data, recovered = without_mark(data)
    if not data or data.isspace():
        raise BrokenFileError("JSONDecodeError: the file is empty")
    try:
        if not data.isascii():
            try:
                data.decode("utf-8")
            except UnicodeDecodeError:
                if not _LATIN.fullmatch(data) or _UTF_8.search(data):
                    raise
                data = data.decode("latin-1").encode()
                recovered.append("latin_1")
        return decoder.decode(data), recovered
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(f"UnicodeDecodeError: not UTF-8 at byte {error.start}: {error.reason}") from error
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except msgspec.DecodeError as strict_error:
        return _decode_leniently(data, decoder, recovered, strict_error)


def without_mark(data: bytes) -> tuple[bytes, list[str]]:
    """Return a text file that begins with a byte order mark as UTF-8 without it, and what that was; any other as is."""
    for mark, (encoding, name) in _MARKS.items():
        if data.startswith(mark):
            try:
                return data.decode(encoding).encode(), [name]
            except UnicodeDecodeError:  # damaged: decoding says where
                return (data[len(mark) :], [name]) if encoding != "utf-16" else (data, [])
    return data, []


def beginning(data: bytes) -> bytes:
    """Return the first bytes of a file, whose last character may be cut, as UTF-8."""
    encoding = next((encoding for mark, (encoding, _) in _MARKS.items() if data.startswith(mark)), "")
    return data.decode(encoding, "ignore").encode() if encoding == "utf-16" else data


def _decode_leniently(
    data: bytes, decoder: Any, recovered: list[str], strict_error: Exception
) -> tuple[Any, list[str]]:
    """Decode what `json` accepts and msgspec rejects, as its clean equivalent."""
    constants: list[str] = []
    try:
        # decoded here, since json would also take UTF-16; append returns None, which becomes null
        value = json.loads(data.decode("utf-8"), parse_constant=constants.append)
        text = json.dumps(value, ensure_ascii=False)
        if constants:
            recovered.append("nan_literal")
        try:
            clean = text.encode()
        except UnicodeEncodeError:
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            recovered.append("lone_surrogate")
        return decoder.decode(clean), recovered
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except (ValueError, msgspec.DecodeError) as error:
        raise BrokenFileError(f"JSONDecodeError: {strict_error}") from error


@lru_cache(maxsize=1)  # each kind asks for the same one; nobody changes it
def decode_start(head: bytes) -> Any:
    """Decode what the first bytes of a JSON file hold of its first value; None for anything but a list or an object.

    What is cut off in the middle is left out, so that ``{"a": [1, 2], "b": "c`` gives ``{"a": [1, 2]}``.
    """
    text = head.decode("utf-8-sig", "replace")
    closing, cut = list[str](), 0
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        mark = token[0]
        if mark == '"' or (mark in "]}" and (not closing or closing.pop() != mark)):
            break  # a string without an end, or no JSON
        if mark in "[{":
            closing.append("]" if mark == "[" else "}")
        if mark in "[{]}":
            cut = token.end()
        elif mark == ",":
            cut = token.start()
        if cut and not closing:
            break
    try:
        return json.loads(text[:cut] + "".join(reversed(closing)), strict=False) if cut else None
    except (ValueError, RecursionError):
        return None
