"""Names of groups for people: groups are told apart by their whole value, and shortened only where they are shown."""

from collections.abc import Callable, Iterable
from typing import Any

from evalkit.io.names import labels

UNKNOWN = "unknown"


def key_of(value: Any) -> Any:
    """Give what a group is told apart by: the value itself, None for any that is missing."""
    import pandas as pd

    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def text_of(value: Any) -> str:
    """Write a group in words; a whole number has no decimals."""
    key = key_of(value)
    if key is None:
        return UNKNOWN
    return f"{key:.0f}" if isinstance(key, float) and key.is_integer() else str(key)


def names_of(values: Iterable[Any], width: int = 32, write: Callable[[Any], str] = text_of) -> dict[Any, str]:
    """Name groups for a figure or a terminal: each value has one name, and no two values share one.

    Parameters
    ----------
    values : iterable
    width : int
        Characters; a longer name is cut in its middle.
    write : function of a value
        Gives its whole text; not called for missing ones.

    Returns
    -------
    dict
        By `key_of` the value, in their order: plain text of one line.
    """
    keys = list(dict.fromkeys(map(key_of, values)))
    texts = {key: UNKNOWN if key is None else write(key) for key in keys}
    if list(texts.values()).count(texts.get(None)) > 1:
        texts[None] = f"{UNKNOWN} (missing)"
    shown = labels(texts.values(), width)
    return {key: shown[text] for key, text in texts.items()}
