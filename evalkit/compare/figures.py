"""Figures of comparisons: frames of `evalkit.compare` in, axes out."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from evalkit.compare.ranks import RAW, Leaderboard
from evalkit.display import describe_estimates, plots

__all__ = [
    "describe_differences",
    "describe_estimates",
    "describe_ranking",
    "differences",
    "ranking",
]

MOST_DRAWN = 30  # models in a matrix of pairs


def ranking(board: Leaderboard, ax: Axes | None = None) -> Axes:
    """Draw each model's estimate with its interval, and the adjusted one beside the raw if they differ."""
    return plots.estimates(_long(board), "model_name", _hue(board), **_scale(board), ax=ax)


def describe_ranking(board: Leaderboard) -> str:
    """Describe `ranking` in words, for alt text."""
    percent = board.outcomes.is_share
    words = describe_estimates(_long(board), "model_name", *filter(None, [_hue(board)]), percent=percent)
    return f"{board.outcomes.name.capitalize()} per model. {words}"


def differences(pairs: pd.DataFrame, *, percent: bool = True, ax: Axes | None = None) -> Axes:
    """Draw the matrix of paired differences: row minus column, decided pairs framed; at most the first 30 models."""
    models = list(dict.fromkeys([*pairs["model_a"], *pairs["model_b"]]))[:MOST_DRAWN]
    shown = pairs[pairs["model_a"].isin(models) & pairs["model_b"].isin(models)]
    unit = "percentage points" if percent else "the unit of the score"
    xlabel = f"row minus column, in {unit}; framed and bold: decided"
    style: dict[str, Any] = {"signed": True, "frame": "decided", "percent": percent, "xlabel": xlabel}
    return plots.heatmap(plots.mirrored(shown), "model_a", "model_b", **style, ax=ax)


def describe_differences(pairs: pd.DataFrame) -> str:
    """Describe paired differences in words, for alt text."""
    if pairs.empty:
        return "There is no pair of models to compare."
    decided = int(pairs["decided"].sum())
    sentences = " ".join(pairs["sentence"]) if len(pairs) <= MOST_DRAWN else ""
    return f"{decided} of {len(pairs)} pairs are decided. {sentences}".rstrip()


def _hue(board: Leaderboard) -> str | None:
    return None if board.basis in (RAW, "none") else "which"


def _long(board: Leaderboard) -> pd.DataFrame:
    """Return one row per model, or two if adjusted estimates are drawn beside raw ones."""
    table = board.table
    if _hue(board) is None:
        return table
    adjusted = table.assign(**{name: table[f"adjusted{end}"] for name, end in _BOUNDS.items()}, which=board.basis)
    both = pd.concat([table.assign(which="raw"), adjusted], ignore_index=True)
    return both.assign(which=pd.Categorical(both["which"], ["raw", board.basis], ordered=True))


_BOUNDS = {"estimate": "", "low": "_low", "high": "_high"}


def _scale(board: Leaderboard) -> dict[str, Any]:
    values = board.outcomes
    return {"percent": values.is_share, "xlabel": values.title}


def __dir__() -> list[str]:
    return sorted(__all__)
