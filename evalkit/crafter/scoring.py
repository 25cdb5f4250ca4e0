"""Scores: integer counts of hooks times weights, symbols of trajectories, and bands."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from evalkit.crafter.format import WEIGHTS
from evalkit.crafter.table import FLAGS

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
# of an event: name as in `WEIGHTS`, achievements named (none: 1), and whether the original trace_eval counts it
Hooks = tuple[tuple[str, int, int], ...]
Columns = Mapping[str, Sequence[Any]]

BANDS = {"Excellent": 2.0, "Good": 1.0, "Limited": 0.0, "Poor": float("-inf")}  # lowest scores; the first that fits
NO_SCORED_EVENTS = "(no scored events)"
DIGITS = 10  # decimals of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


class Scored(NamedTuple):
    """What the hooks of traces are worth, as columns of episodes (None for those without events) and of events."""

    episodes: dict[str, list]
    events: dict[str, Any]


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights with those of `WEIGHTS`; raise ValueError for an unknown name or counting."""
    if unknown := sorted(weights.keys() - WEIGHTS.keys()):
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in COUNTINGS:
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}


def count_hooks(hooks: Iterable[tuple[str, int, int]], counting: Counting) -> dict[str, int]:
    """Count every achievement that hooks name, or every hook that the original trace_eval knows once."""
    counts = dict.fromkeys(WEIGHTS, 0)
    for name, n, known in hooks:
        counts[name] += n if counting == "achievement" else known
    return counts


def score_event(hooks: Hooks, weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event; by achievement, the symbol is the sign of the score.

    By hook, both are those of the original trace_eval: a running sum, and the sign of the last hook with a nonzero
    weight; no symbol if the sum is 0.
    """
    score, symbol = 0.0, ""
    if counting == "achievement":
        for name, n in count_hooks(hooks, counting).items():
            score += n * weights[name]
        score = round(score, DIGITS) + 0.0
        return EventScore(score, ("+" if score > 0 else "-" if score < 0 else "0") if hooks else "")
    for name, _, known in hooks:
        if known:
            score += weights[name]
            symbol = "+" if weights[name] > 0 else "-" if weights[name] < 0 else symbol
    return EventScore(score, symbol if score else "")


def score_traces(episodes: Columns, events: Columns, weights: Mapping[str, float], counting: Counting) -> Scored:
    """Score the records of traces, given as lists of values by column."""
    sizes, n = np.array(episodes["events"], dtype="int64"), len(episodes["events"])
    of = np.repeat(np.arange(n), sizes)  # the episode of each event

    # each distinct text of hooks is scored once
    places: dict[str | None, int] = {None: 0}
    codes = np.array([places.setdefault(text, len(places)) for text in events["hooks"]], dtype="int64")
    hooks: list[Hooks] = []
    for text in places:
        named = [hook.split(":") for hook in text.split(" ")] if text else []
        hooks.append(tuple([(name, int(count), int(is_known)) for name, count, is_known in named]))
    worth = [score_event(event, weights, counting) for event in hooks]
    counts = np.array([list(count_hooks(event, counting).values()) for event in hooks])[codes]
    scores = np.array([one.score for one in worth])[codes]
    marks, ends = [worth[code].symbol for code in codes], np.cumsum([0, *sizes]).tolist()
    sums = [np.bincount(of, column, n).astype("int64") for column in counts.T]
    points = sum(count * weights[name] for name, count in zip(WEIGHTS, sums, strict=True))
    # by hook a running sum in order, as in the original
    totals = np.bincount(of, scores, n) if counting == "hook" else np.round(points, DIGITS) + 0.0
    columns = {
        "score": totals.tolist(),
        "suspect_invalid_actions": np.bincount(of, events["suspect_invalid_actions"], n).astype("int64").tolist(),
        "trajectory": ["".join(marks[start:end]) or NO_SCORED_EVENTS for start, end in pairwise(ends)],
        **{f"{name}s": count.tolist() for name, count in zip(WEIGHTS, sums, strict=True)},
    }
    for name, values in columns.items():
        columns[name] = [value if size else None for value, size in zip(values, episodes["events"], strict=True)]

    # what is doubtful about these traces together
    sessions, raised = Counter(episodes["session_id"]), []
    for own, session in zip(episodes["flags"], episodes["session_id"], strict=True):
        flags = [*own, *["duplicate_session"] * (session is not None and sessions[session] > 1)]
        raised.append([*filter(flags.__contains__, FLAGS), *(flag for flag in flags if flag not in FLAGS)])
    of_events = {
        "score": np.where(codes > 0, scores, np.nan),
        **{f"{name}s": column for name, column in zip(WEIGHTS, counts.T, strict=True)},
    }
    return Scored({**columns, "run_flags": raised}, of_events)


def band(score: float) -> str | None:
    """Return the band of a score: above 2.0 Excellent, [1.0, 2.0] Good, [0, 1.0) Limited, below 0 Poor."""
    for name, low in BANDS.items():
        if round(score, DIGITS) > low or (round(score, DIGITS) == low and name != "Excellent"):
            return name
    return None  # of no score
