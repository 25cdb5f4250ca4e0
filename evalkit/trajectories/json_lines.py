"""Read JSON lines files with large lines, and decode only the necessary values of each line."""

import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from evalkit._text import counted_noun
from evalkit.io import BrokenFileError, decode_json
from evalkit.io.paths import CELL, CHARACTER, check_size, check_text, count_values, most_bytes
from evalkit.io.read import without_mark

_LINE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DECODED_LINE = msgspec.json.Decoder(dict[str, Any])
# errors of a fast decoder; `decode_json` then repairs the value, or says what is wrong with it
_UNDECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_lines(data: bytes, encoded: Collection[str], left_out: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the object in each line. At the end, append the numbers of broken lines and other values to `left_out`.

    The values of the keys in `encoded` stay `msgspec.Raw`; `decoded` decodes them.
    """
    most = most_bytes()
    may_be_large = CELL * len(data) > most  # smaller files fit in memory even if each byte is a value
    values = 0  # number of decoded values in all lines, since the caller keeps all lines
    broken = others = 0
    for line in filter(bytes.strip, io.BytesIO(without_mark(data)[0])):
        if CHARACTER * len(line) > most:
            check_text(len(line))
        try:
            if not encoded and not may_be_large:
                yield _DECODED_LINE.decode(line)
                continue
            raw = _LINE.decode(line)
            if may_be_large:
                values += sum(count_values(bytes(value)) for key, value in raw.items() if key not in encoded)
                check_size(CELL * values)
            yield {key: value if key in encoded else msgspec.json.decode(value) for key, value in raw.items()}
            continue
        except _UNDECODED:  # such as NaN or an incomplete last line
            pass
        if may_be_large:
            values += count_values(line)
            check_size(CELL * values)
        try:
            value = decode_json(line)[0]
        except BrokenFileError:
            broken += 1
            continue
        if isinstance(value, dict):
            yield value
        else:
            others += 1
    if broken:
        left_out.append(f"{counted_noun(broken, 'broken line')} left out")
    if others:
        left_out.append(f"{counted_noun(others, 'line')} without an object left out")


class Lines(Sequence[dict[str, Any]]):
    """The objects in the lines of a file, as `read_lines` yields them. Each access decodes a line; none is kept."""

    def __init__(self, data: bytes) -> None:
        self._data = without_mark(data)[0]
        self._places: list[slice] = []  # the lines with an object
        most = most_bytes()
        start = 0
        for line in io.BytesIO(self._data):
            end = start + len(line)
            if _has_object(line, most):
                self._places.append(slice(start, end))
            start = end

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[at] for at in range(len(self))[place]]
        return decode_checked(self._data[self._places[place]])


def _has_object(line: bytes, most: int) -> bool:
    """Return whether `read_lines` yields an object for a line; `most` is the maximum size of a file in bytes."""
    if CELL * len(line) <= most:  # fits in memory even if each byte is a value
        with suppress(*_UNDECODED):
            _DECODED_LINE.decode(line)
            return True
    return next(read_lines(line, (), []), None) is not None


def decode_checked(data: bytes | msgspec.Raw) -> Any:
    """Decode JSON of a file that was read before, so it is known to fit in memory."""
    try:
        return msgspec.json.decode(data)
    except _UNDECODED:  # such as NaN
        return decode_json(bytes(data))[0]


def decoded(value: Any) -> Any:
    """Return a value from `read_lines`, decoded if necessary, or None if it is broken."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except _UNDECODED:
        return None


def named_counts(counts: Counter[str], noun: str) -> str:
    """Describe the numbers of items with unknown types: ``3 events of unknown types: A (2), B``."""
    if not counts:
        return ""
    names = [f"{name} ({n})" if n > 1 else name for name, n in sorted(counts.items())]
    return f"{counted_noun(counts.total(), noun)} of unknown types: {', '.join(names)}"
