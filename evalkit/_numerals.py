"""Format estimates with their intervals as text, alike everywhere."""

from collections.abc import Mapping
from typing import Any


def number(value: Any) -> float | None:
    """Convert a value to a Python number; None where it is missing."""
    import pandas as pd

    if value is None or pd.isna(value):
        return None
    return int(value) if float(value).is_integer() and not isinstance(value, float) else float(value)


def format_interval(estimate: Any, low: Any, high: Any, *, percent: bool = True, digits: int = 2) -> str:
    """Write an estimate with its interval: ``63 % [52, 73]``, ``1.25 [0.80, 1.70]``, ``–`` where there is none."""
    value, *bounds = numerals(estimate, low, high, percent=percent, digits=digits)
    return f"{value} [{bounds[0]}, {bounds[1]}]" if all(bounds) else value or "–"


def interval_cells(row: Mapping[Any, Any], *, percent: bool = True, digits: int = 2) -> tuple[str, str]:
    """Write an estimate and its interval as two cells: ``63 %`` and ``[52, 73]``, ``–`` where there is none."""
    value, low, high = numerals(row["estimate"], row["low"], row["high"], percent=percent, digits=digits)
    return value or "–", f"[{low}, {high}]" if low and high else "–"


def numerals(estimate: Any, low: Any, high: Any, *, percent: bool, digits: int) -> list[str]:
    """Write an estimate, with its unit, and its bounds to the same number of decimals; empty where they are missing."""
    values = [number(value) for value in (estimate, low, high)]
    if values[0] is None:
        return ["", "", ""]
    scale, digits = (100, 0 if abs(values[0]) >= 0.0995 or values[0] == 0 else 1) if percent else (1, digits)
    texts = ["" if value is None else f"{value * scale:z.{digits}f}" for value in values]
    return [texts[0] + " %" * percent, *texts[1:]]
