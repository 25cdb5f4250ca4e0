"""Write values as text: numbers with their intervals, counts, lists, hints. Every layer uses it."""

import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from string import Formatter
from typing import Any

_MOST_LISTED = 20  # names in a hint


def as_number(value: Any) -> float | None:
    """Convert a value to a Python number; None where it is missing."""
    try:
        number = float(value)
    except TypeError:  # None, and pandas' missing values
        return None
    if math.isnan(number):
        return None
    return int(value) if number.is_integer() and not isinstance(value, float) else number


def format_interval(
    estimate: Any, low: Any, high: Any, *, percent: bool = True, digits: int = 2, unit: str | None = None
) -> str:
    """Write an estimate with its interval: ``63 % [52, 73]``, ``1.25 [0.80, 1.70]``, ``–`` where there is none.

    Parameters
    ----------
    percent : bool
        Whether values are shares from 0 to 1, written as percentages, small ones with a decimal.
    digits : int
        Decimals of values that are not shares.
    unit : str, optional
        What follows the estimate; ``%`` by default for shares.
    """
    estimate = as_number(estimate)
    low = as_number(low)
    high = as_number(high)
    if estimate is None:
        return "–"
    scale = 1
    if percent:
        scale = 100
        digits = 0 if abs(estimate) >= 0.0995 or estimate == 0 else 1
        unit = "%" if unit is None else unit
    if low is None or high is None:
        return f"{estimate * scale:z.{digits}f} {unit or ''}".rstrip()
    if low < high and round(low * scale, digits) == round(high * scale, digits):
        digits += 1  # no interval is written with a width of 0
    form = f"z.{digits}f"
    value = f"{estimate * scale:{form}} {unit or ''}".rstrip()
    return f"{value} [{low * scale:{form}}, {high * scale:{form}}]"


def format_amount(amount: float) -> str:
    """Write an amount with three significant digits, or from 100 on as a whole number."""
    return f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:.3g}"


def as_list(value: str | Iterable[str]) -> list[str]:
    """Return texts as a list; a text, as papermill passes a single one for a list, is a list of one."""
    if isinstance(value, str):
        return [value] if value else []
    return list(value)


def counted_noun(n: int, noun: str) -> str:
    """Format a count with its noun: ``1 run``, ``1,200 runs``, ``2 histories``."""
    return f"{n:,} {noun if n == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def listed(items: Iterable[Any], most: int | None = None, more: str = "{} more") -> str:
    """Join items: ``a, b and c``; if there are more than `most`, the first ones and a count: ``a, b and 3 more``."""
    texts = list(map(str, items))
    if most is not None and len(texts) > most:
        texts[most:] = [more.format(f"{len(texts) - most:,}")]
    *first, last = texts or [""]
    return f"{', '.join(first)} and {last}" if first else last


def column_in_words(column: str) -> str:
    """Write the name of a column as words: ``model`` for ``model_name``."""
    return column.removesuffix("_name").replace("_", " ")


def columns_in_words(columns: Iterable[str]) -> str:
    """Write the names of columns as words: ``agent and model``."""
    return listed(map(column_in_words, columns))


def sentence(text: object) -> str:
    """Return a text with a capital at its beginning, unless it begins with a name such as a file's, and a full stop."""
    words = str(text)
    if words.partition(" ")[0].rstrip(":,;").isalpha():
        words = f"{words[:1].upper()}{words[1:]}"
    return words if words.endswith((".", "?")) else f"{words}."


def did_you_mean(name: str, known_names: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Return the end of a message about an unknown name: "did you mean 'x'?" or "there are 'x' and 'y'".

    `cutoff` is how similar a name must be, from 0 to 1.
    """
    known = list(map(str, known_names))
    if near := get_close_matches(name, known, 1, cutoff):
        return f"did you mean {near[0]!r}?"
    return f"there {'are' if len(known) > 1 else 'is'} {listed(map(repr, known), _MOST_LISTED) or 'none'}"


def check_columns(table: Iterable[object], *names: str | None) -> None:
    """Raise ValueError for the first column that a frame does not have; None is ignored."""
    columns = list(table)
    for name in names:
        if name is not None and name not in columns:
            raise ValueError(f"no column {name!r}; {did_you_mean(name, columns, cutoff=0.4)}")


def check_number(name: str, value: object, *, is_whole: bool = False) -> None:
    """Raise ValueError for a value that is no number, such as a text that papermill passes."""
    if not isinstance(value, Integral if is_whole else Real):
        raise ValueError(f"{name} must be a {'whole ' if is_whole else ''}number, not {value!r}")


def fill_template(template: str | Callable[..., str], values: Mapping[str, Any]) -> str:
    """Make a text from values, by a function or a template.

    Templates are as for ``str.format``; also, a list is joined, and ``{n:run}`` writes a count with its noun.
    """
    return template(**values) if callable(template) else _Template().vformat(template, (), values)


class _Template(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list | tuple):
            return listed(value)
        if len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted_noun(value, format_spec)
        return str(super().format_field(value, format_spec))
