"""Read files of JSON lines whose lines are large: of each line, only the values that are needed are decoded."""

import io
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from evalkit._text import counted_noun
from evalkit.io import BrokenFileError, decode_json
from evalkit.io.paths import CELL, CHARACTER, check_size, check_text, count_values, most_bytes
from evalkit.io.read import without_mark

_LINE = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_lines(data: bytes, encoded: Collection[str], left_out: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the object in each line; after the last, name in `left_out` how many lines were broken or no objects.

    The values of the keys in `encoded` stay `msgspec.Raw`, which `decoded` decodes.
    """
    most = most_bytes()
    may_be_large = CELL * len(data) > most  # a smaller file fits even if each byte is a value
    values = 0  # that are decoded, of all lines, which are kept
    broken = others = 0
    for line in filter(bytes.strip, io.BytesIO(without_mark(data)[0])):
        if CHARACTER * len(line) > most:
            check_text(len(line))
        try:
            raw = _LINE.decode(line)
            if may_be_large:
                values += sum(count_values(bytes(value)) for key, value in raw.items() if key not in encoded)
                check_size(CELL * values)
            yield {key: value if key in encoded else msgspec.json.decode(value) for key, value in raw.items()}
            continue
        except (msgspec.DecodeError, UnicodeDecodeError):  # such as NaN, or a line that is still being written
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


def decoded(value: Any) -> Any:
    """Return a value of a line, decoded if it was left encoded; None if it is broken."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def named_counts(counts: Counter[str], noun: str) -> str:
    """Describe how many items of which unknown types there are: ``3 events of unknown types: A (2), B``."""
    if not counts:
        return ""
    names = [f"{name} ({n})" if n > 1 else name for name, n in sorted(counts.items())]
    return f"{counted_noun(counts.total(), noun)} of unknown types: {', '.join(names)}"
