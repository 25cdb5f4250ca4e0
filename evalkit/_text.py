"""Format values as text: numbers with intervals, counts, lists, hints. All layers use it."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from string import Formatter
from typing import Any, NamedTuple, TypeVar

_MOST_LISTED = 20  # maximum number of names in a hint
T = TypeVar("T")


class Part(NamedTuple):
    """A part of a text, and the key of what it links to; None if it links to nothing."""

    text: str
    key: Hashable = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Parts:
    """A text in parts, some of which link to something; `fill` and `listed_parts` make it."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def fill(template: str, *values: object) -> Parts:
    """Replace each ``{}`` of a template by a value. A `Part`, and the parts of `Parts`, keep their links.

    Values are not read: text in them that looks like a part of the template stays text.
    """
    first, *others = template.split("{}")
    parts = [Part(first)]
    for value, text in zip(values, others, strict=True):
        if isinstance(value, Parts):
            parts += value.parts
        else:
            parts.append(value if isinstance(value, Part) else Part(str(value)))
        parts.append(Part(text))
    return Parts(tuple(part for part in parts if part.text))


def as_number(value: Any) -> float | None:
    """Convert a value to a Python number; None if it is missing."""
    try:
        number = float(value)
    except TypeError:  # None or one of pandas' missing values
        return None
    if math.isnan(number):
        return None
    return int(value) if number.is_integer() and not isinstance(value, float) else number


def format_interval(
    estimate: Any, low: Any, high: Any, *, percent: bool = True, digits: int = 2, unit: str | None = None
) -> str:
    """Format an estimate with its interval: ``63 % [52, 73]``, ``1.25 [0.80, 1.70]``, or ``–`` if it is missing.

    Parameters
    ----------
    percent : bool
        Whether values are shares from 0 to 1, written as percentages; estimates below 10 % get a decimal place.
    digits : int
        Decimal places of values that are not shares.
    unit : str, optional
        Unit after the estimate; by default ``%`` for shares.
    """
    scale = 100 if percent else 1
    # means of the same values in another order, such as 0.375 and 0.37499999999999994, must have the same text
    estimate, low, high = (
        None if number is None else round(number * scale, 10) for number in map(as_number, (estimate, low, high))
    )
    if estimate is None:
        return "–"
    if percent:
        digits = 0 if abs(estimate) >= 9.95 or estimate == 0 else 1
        unit = "%" if unit is None else unit
    if low is None or high is None:
        return f"{estimate:z.{digits}f} {unit or ''}".rstrip()
    if low < high and round(low, digits) == round(high, digits):
        digits += 1  # don't round both bounds to the same number
    value = f"{estimate:z.{digits}f} {unit or ''}".rstrip()
    return f"{value} [{low:z.{digits}f}, {high:z.{digits}f}]"


def format_amount(amount: float) -> str:
    """Format an amount with three significant digits, or as a whole number if it is at least 100."""
    return f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:.3g}"


def as_list(value: str | Iterable[str]) -> list[str]:
    """Return texts as a list. A single text, which papermill may pass instead of a list, becomes a list of one."""
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
    return str(listed_parts(items, most, more))


def listed_parts(items: Iterable[Any], most: int | None = None, more: str = "{} more") -> Parts:
    """Join items as `listed` does. Items that are a `Part` keep their links."""
    shown = list(items)
    if most is not None and len(shown) > most:
        shown[most:] = [more.format(f"{len(shown) - most:,}")]
    template = ", ".join(["{}"] * len(shown))
    if len(shown) > 1:
        template = ", ".join(["{}"] * (len(shown) - 1)) + " and {}"
    return fill(template, *shown)


def column_in_words(column: str) -> str:
    """Write the name of a column as words: ``model`` for ``model_name``."""
    return column.removesuffix("_name").replace("_", " ")


def columns_in_words(columns: Iterable[str]) -> str:
    """Write the names of columns as words: ``agent and model``."""
    return listed(map(column_in_words, columns))


def sentence(text: object) -> str:
    """Capitalise the first letter of a text, unless the first word looks like a file name, and add a full stop."""
    words = str(text)
    if words.partition(" ")[0].rstrip(":,;").isalpha():
        words = f"{words[:1].upper()}{words[1:]}"
    return words if words.endswith((".", "?")) else f"{words}."


def did_you_mean(name: str, known_names: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Return the end of a message about an unknown name: "did you mean 'x'?" or "there are 'x' and 'y'".

    `cutoff` is the minimum similarity of a known name, from 0 to 1.
    """
    known = list(map(str, known_names))
    if near := get_close_matches(name, known, 1, cutoff):
        return f"did you mean {near[0]!r}?"
    return f"there {'are' if len(known) > 1 else 'is'} {listed(map(repr, known), _MOST_LISTED) or 'none'}"


def check_columns(table: Iterable[object], *names: str | None) -> None:
    """Raise ValueError if a frame lacks one of these columns; None is ignored."""
    columns = list(table)
    for name in names:
        if name is not None and name not in columns:
            raise ValueError(f"no column {name!r}; {did_you_mean(name, columns, cutoff=0.4)}")


def check_number(name: str, value: object, *, is_whole: bool = False) -> None:
    """Raise ValueError if a value is not a number, such as text that papermill passes."""
    if not isinstance(value, Integral if is_whole else Real):
        raise ValueError(f"{name} must be a {'whole ' if is_whole else ''}number, not {value!r}")


def fill_template(template: str | Callable[..., T], values: Mapping[str, Any]) -> str | T:
    """Write a text from values with a function, whose result may be `Parts`, or with a template.

    Templates have the syntax of ``str.format``. In addition, ``{n:run}`` writes a count with its noun, and the items of
    a list are joined.
    """
    return template(**values) if callable(template) else _Template().vformat(template, (), values)


class _Template(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, list | tuple):
            return listed(value)
        if len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted_noun(value, format_spec)
        return str(super().format_field(value, format_spec))
