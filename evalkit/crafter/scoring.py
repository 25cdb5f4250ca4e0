"""The rules of scoring: integer counts of hooks times weights, symbols of trajectories, and bands."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from evalkit.crafter.format import WEIGHTS

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
Hooks = tuple[
    tuple[str, int, int], ...
]  # name as in `WEIGHTS`, achievements named (none: 1), whether the original counts it

BANDS = (  # name, lowest score, what it means; the first that fits
    ("Excellent", 2.0, "multiple achievements"),
    ("Good", 1.0, "some achievements"),
    ("Limited", 0.0, "few achievements"),
    ("Poor", float("-inf"), "dominated by invalid actions"),
)
NO_SCORED_EVENTS = "(no scored events)"
DIGITS = 10  # decimals of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights with those of `WEIGHTS`; raise ValueError for an unknown name or counting."""
    if unknown := [name for name in weights if name not in WEIGHTS]:
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in COUNTINGS:
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}


def count_hooks(hooks: Iterable[tuple[str, int, int]], counting: Counting) -> dict[str, int]:
    """Count every achievement that hooks name, or every hook that the original trace_eval knows once."""
    counts: dict[str, int] = {}
    for name, n, known in hooks:
        counts[name] = counts.get(name, 0) + (n if counting == "achievement" else known)
    return counts


def score_counts(counts: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """Return Σ count × weight."""
    score = 0.0
    for name, n in counts.items():
        score += n * weights[name]
    return round(score, DIGITS) + 0.0


def score_event(hooks: Hooks, weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event; by achievement, the symbol is the sign of the score.

    By hook, both are those of the original trace_eval: a running sum, and the sign of the last hook with a nonzero
    weight; no symbol if the sum is 0.
    """
    if counting == "achievement":
        score = score_counts(count_hooks(hooks, counting), weights)
        return EventScore(score, ("+" if score > 0 else "-" if score < 0 else "0") if hooks else "")
    score, symbol = 0.0, ""
    for name in [name for name, _, known in hooks if known]:
        score += weights[name]
        symbol = "+" if weights[name] > 0 else "-" if weights[name] < 0 else symbol
    return EventScore(score, symbol if score else "")


def band(score: float) -> str | None:
    """Return the band of a score: above 2.0 Excellent, [1.0, 2.0] Good, [0, 1.0) Limited, below 0 Poor."""
    if score != score:
        return None
    score = round(score, DIGITS)
    return next(name for name, low, _ in BANDS if score > low or (score == low and low != BANDS[0][1]))
