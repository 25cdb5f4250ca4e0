"""Sentences of the findings and warnings that only Crafter traces have; a `Finding` carries one as its template."""

from collections.abc import Mapping

from evalkit._text import counted_noun

# warnings about scores, and about unlocked achievements, by code
SCORES = {"no_values": "no trace has a score", "left_out": "left out: {count} aborted"}
UNLOCKS = {
    "no_values": "no trace records unlocked achievements",
    "left_out": "left out: {count} without a record of unlocked achievements",
}


def points(n: int, bands: Mapping[str, int], earned: float, lost: float) -> str:
    """Describe the bands of scores, and the points behind them."""
    counts = ", ".join(f"{count} {name}" for name, count in bands.items())
    return f"{counted_noun(n, 'episode')}: {counts}; {earned:.2f} points earned, {lost:.2f} lost to invalid actions."
