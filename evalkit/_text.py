"""Write values as text: numbers with their intervals, counts, lists, hints. Every layer uses it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

_MOST_LISTED = 20  # names in a hint


def as_number(value: Any) -> float | None:
    """Convert a value to a Python number; None where it is missing."""
    try:
        as_float = float(value)
    except TypeError:  # None, and what stands for a missing value in pandas
        return None
    if math.isnan(as_float):
        return None
    return as_float if isinstance(value, float) or not as_float.is_integer() else int(value)


def format_interval(
    estimate: Any, low: Any, high: Any, *, percent: bool = True, digits: int = 2, unit: str | None = None
) -> str:
    """Write an estimate with its interval: ``63 % [52, 73]``, ``1.25 [0.80, 1.70]``, ``–`` where there is none.

    Shares from 0 to 1 are written as percentages if `percent`, small ones with a decimal; others with so many `digits`.
    The `unit` stands behind the estimate, by default ``%`` for percentages.
    """
    estimate, low, high = as_number(estimate), as_number(low), as_number(high)
    if estimate is None:
        return "–"
    scale, digits = (100, 0 if abs(estimate) >= 0.0995 or estimate == 0 else 1) if percent else (1, digits)
    if low is not None and high is not None and low < high:
        digits += round(low * scale, digits) == round(high * scale, digits)  # no interval has a width of 0
    form = f"z.{digits}f"
    text = f"{estimate * scale:{form}} {'%' * percent if unit is None else unit}".rstrip()
    return text if low is None or high is None else f"{text} [{low * scale:{form}}, {high * scale:{form}}]"


def as_list(value: str | Iterable[str]) -> list[str]:
    """Return texts as a list; a text, as papermill passes a single one for a list, is a list of one."""
    return ([value] if value else []) if isinstance(value, str) else list(value)


def counted_noun(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 run``, ``1,200 runs``, ``2 histories``."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return f"{noun[:-1]}ies" if noun.endswith(("ry", "py")) else f"{noun}s"


def sentence(text: object) -> str:
    """Return a text with a capital at its beginning, unless it begins with a name such as a file's, and a full stop."""
    words = str(text)
    if words.partition(" ")[0].rstrip(":,;").isalpha():
        words = f"{words[:1].upper()}{words[1:]}"
    return words if words.endswith(".") else f"{words}."


def join_first(texts: Sequence[str], most: int, rest: str, between: str = ", ") -> str:
    """Join the first texts; `rest` is the template for the number of the others."""
    return between.join(texts[:most]) + (rest.format(len(texts) - most) if len(texts) > most else "")


def did_you_mean(name: str, there: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Return the end of a message on an unknown name: "did you mean 'x'?" or "there are 'x', 'y'".

    `cutoff` is how similar a name must be, from 0 to 1.
    """
    known = list(map(str, there))
    if near := get_close_matches(name, known, 1, cutoff):
        return f"did you mean {near[0]!r}?"
    more = f" and {len(known) - _MOST_LISTED} more" * (len(known) > _MOST_LISTED)
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(map(repr, known[:_MOST_LISTED])) or 'none'}{more}"


def check_columns(table: Iterable[object], *names: str | None) -> None:
    """Raise ValueError for the first column that a frame does not have; None is ignored."""
    there = list(table)
    for name in names:
        if name is not None and name not in there:
            raise ValueError(f"no column {name!r}; {did_you_mean(name, there, cutoff=0.4)}")


def fill_template(template: str | Callable[..., str], values: Mapping[str, Any]) -> str:
    """Make a text from a template, as for ``str.format``, or by a function of values."""
    return template.format(**values) if isinstance(template, str) else template(**values)
