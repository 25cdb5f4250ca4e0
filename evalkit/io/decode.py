"""Decode JSON: strictly and fast first, then leniently for what real writers emit."""

import codecs
import json
import math
from typing import Any

import msgspec

BOM = "byte_order_mark"
NAN = "nan_literal"
SURROGATE = "lone_surrogate"


class BrokenFileError(ValueError):
    """A file with invalid contents; the text is ``ErrorName: cause`` with a name users know."""


class WrongShapeError(BrokenFileError):
    """Well-formed JSON with a shape other than the decoder's."""


def decode_json(data: bytes, decoder: msgspec.json.Decoder) -> tuple[Any, list[str]]:
    """Decode one JSON file.

    The whole file is checked to be UTF-8 and well-formed, even the parts the decoder skips. A byte order mark, bare
    ``NaN`` / ``Infinity`` (they become null) and lone surrogates (they become ``\ufffd``) are recovered and named.

    Parameters
    ----------
    data : bytes
    decoder : msgspec.json.Decoder

    Returns
    -------
    value : as the decoder's type says
    recovered : list of str
        Any of ``byte_order_mark``, ``nan_literal``, ``lone_surrogate``.

    Raises
    ------
    BrokenFileError
        ``JSONDecodeError: …`` (empty, truncated, malformed), ``UnicodeDecodeError: …`` or ``RecursionError: …``.
    WrongShapeError
        ``TypeError: …``, as soon as the shape is known to be wrong: the rest is not checked.
    """
    recovered = []
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        recovered.append(BOM)
    if not data or data.isspace():
        raise BrokenFileError("JSONDecodeError: the file is empty")
    try:
        if not data.isascii():
            data.decode("utf-8")
        return decoder.decode(data), recovered
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except UnicodeDecodeError as error:
        raise BrokenFileError(f"UnicodeDecodeError: not UTF-8 at byte {error.start}: {error.reason}") from error
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except msgspec.DecodeError as strict_error:
        return _decode_leniently(data, decoder, recovered, strict_error)


def _decode_leniently(
    data: bytes, decoder: Any, recovered: list[str], strict_error: Exception
) -> tuple[Any, list[str]]:
    """Decode what `json` accepts and msgspec rejects, as its clean equivalent."""
    not_finite: list[str] = []

    def finite(text: str) -> float | None:
        number = float(text)
        if math.isfinite(number):
            return number
        not_finite.append(text)
        return None

    try:
        # decoded here, since json would also take UTF-16; append returns None, which becomes null
        value = json.loads(data.decode("utf-8"), parse_constant=not_finite.append, parse_float=finite)
        text = json.dumps(value, ensure_ascii=False)
        if not_finite:
            recovered.append(NAN)
        try:
            clean = text.encode()
        except UnicodeEncodeError:
            clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
            recovered.append(SURROGATE)
        return decoder.decode(clean), recovered
    except RecursionError as error:
        raise BrokenFileError("RecursionError: nested too deep") from error
    except msgspec.ValidationError as error:
        raise WrongShapeError(f"TypeError: {error}") from error
    except (ValueError, msgspec.DecodeError) as error:
        raise BrokenFileError(f"JSONDecodeError: {strict_error}") from error
