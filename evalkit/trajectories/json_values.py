"""Read parts, texts, numbers and times from JSON of any shape. Values of the wrong type are treated as missing."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

MOST_COUNTED = 2**53  # floats cannot represent all larger integers


def part_of(value: Any, *keys: str) -> Any:
    """Return the value at a path of keys in JSON, or None if the path does not exist."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def objects(value: Any, *keys: str) -> list[dict[str, Any]]:
    """Return the objects in the list at a path of keys; an empty list if there is no list."""
    items = part_of(value, *keys) if keys else value
    if not isinstance(items, list):
        return []
    return [item for item in items if isinstance(item, dict)]


def text_of(value: Any) -> str:
    """Return text unchanged, an empty string for None, and any other value as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def number_of(value: Any) -> float | None:
    """Return a finite number or a Boolean as float; None for anything else."""
    is_number = isinstance(value, (bool, int, float))
    return float(value) if is_number and abs(value) <= sys.float_info.max else None


def count_of(value: Any) -> int | None:
    """Return a number in [0, 2**53) as integer; None for anything else."""
    return int(value) if isinstance(value, (bool, int, float)) and 0 <= value < MOST_COUNTED else None


def total(values: Iterable[Any]) -> float | None:
    """Return the sum of the values that are numbers, or None if there are none."""
    known = [number for value in values if (number := number_of(value)) is not None]
    return sum(known) if known else None


def error_text(error: Any) -> str:
    """Return the message of an error, or the whole error as text."""
    return text_of(part_of(error, "message") or error)


def time_of(value: Any) -> datetime | None:
    """Return the time given as ISO text or seconds since 1970. A time without a zone is treated as UTC."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def seconds_between(start: Any, end: Any) -> float | None:
    """Return the seconds from start to end, or None if either is missing or the end is before the start."""
    begun, ended = time_of(start), time_of(end)
    seconds = (ended - begun).total_seconds() if begun and ended else None
    return seconds if seconds is not None and seconds >= 0 else None
