"""Scores, and the frames that show them: counts of hooks times weights, symbols of trajectories, and bands.

The user's options are applied here, to records of what the hooks of traces say.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS
from evalkit.io import absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
# of an event: name as in `WEIGHTS`, achievements named (none: 1), and whether the original trace_eval counts it
Hooks = tuple[tuple[str, int, int], ...]
Columns = Mapping[str, Sequence[Any]]

BANDS = {"Excellent": 2.0, "Good": 1.0, "Limited": 0.0, "Poor": float("-inf")}  # lowest scores; the first that fits
NO_SCORED_EVENTS = "(no scored events)"
DIGITS = 10  # decimals of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0
PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_UNKNOWN = ("task_type", "repetition", "is_successful", "success_rate")  # common columns of runs
_NO_TURN = np.iinfo(np.int64).min


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
    marks, ends = [worth[code].symbol for code in codes.tolist()], np.cumsum([0, *sizes]).tolist()
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
    pairs, raised = list(zip(episodes["flags"], episodes["session_id"], strict=True)), []
    sessions = Counter(session for own, session in pairs if "duplicate" not in own)
    for own, session in pairs:
        flags = list(own)
        if session is not None and sessions[session] > 1 and "duplicate" not in own:
            flags.append("duplicate_session")
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


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements."""
    counting = options.get("counting", "achievement")
    weights = check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events = records.tables["episodes"], records.tables["events"]
    told = {name: episodes[name].to_pylist() for name in ("events", "session_id", "flags")}
    hooks = {name: events[name].to_pylist() for name in ("hooks", "suspect_invalid_actions")}
    # a trace with all that an earlier one of its session says is a copy of it
    sessions, seen, copied, end = Counter(told["session_id"]), set[str](), set[str](), 0
    for at, (session, n_events) in enumerate(zip(told["session_id"], told["events"], strict=True)):
        end += n_events
        if session is not None and sessions[session] > 1:
            parts = (episodes.slice(at, 1), events.slice(end - n_events, n_events))
            content = str([part.drop_columns("source").to_pylist() for part in parts])
            if content in seen:
                told["flags"][at] = [*told["flags"][at], "duplicate"]
                copied.add(episodes["source"][at].as_py())
            seen.add(content)
    scored = score_traces(told, hooks, weights, counting)
    n, of = len(episodes), np.repeat(np.arange(len(episodes)), told["events"])  # the episode of each event

    # per episode and achievement, whether a hook names it, and the turn of the first one that does
    unlocked = np.zeros((n, len(ACHIEVEMENTS)), bool)
    turns = np.full(unlocked.shape, _NO_TURN)
    columns = of.tolist(), events["achievements"].to_pylist(), events["turn"].to_pylist()
    for episode, names, turn in zip(*columns, strict=True):
        for name in names.split(" ") if names else ():
            place = PLACE.get(name)
            if place is not None and not unlocked[episode, place]:
                unlocked[episode, place] = True
                turns[episode, place] = _NO_TURN if turn is None else turn
    can_tell, each = episodes["can_tell"].to_numpy(), np.repeat(np.arange(n), len(ACHIEVEMENTS))
    achievements = {
        **{name: episodes[name].take(each) for name in ("source", "model_name", "task_id", "difficulty")},
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [*map(TIER_OF.get, ACHIEVEMENTS)] * n,
        "unlocked": pa.array(unlocked.ravel(), mask=~unlocked.ravel() & ~can_tell[each]),
        "turn": pa.array(turns.ravel(), mask=turns.ravel() == _NO_TURN),
    }
    score, suspects = np.array([scored.episodes[name] for name in ("score", "suspect_invalid_actions")], dtype=float)
    shown, found = can_tell & (np.array(told["events"], dtype=int) > 0), unlocked.sum(axis=1)
    rows = {
        **dict(zip(episodes.column_names, episodes.columns, strict=True)),
        **scored.episodes,
        **dict.fromkeys(_UNKNOWN, [None] * n),
        "run_id": run_ids("crafter", map(absolute, episodes["source"].to_pylist())),
        "kind": ["crafter"] * n,
        "score_without_suspects": np.round(score - suspects * weights["invalid_action"], DIGITS),
        "band": list(map(band, score.tolist())),
        "unlocked": pa.array(found, mask=~shown),
        "progression": np.where(shown, found, np.nan) / len(ACHIEVEMENTS),
        **{f"flag_{flag}": [flag in raised for raised in scored.episodes["run_flags"]] for flag in FLAGS},
    }
    of_events = {
        **dict(zip(events.column_names, events.columns, strict=True)),
        **scored.events,
        **{name: episodes[name].take(of) for name in ("model_name", "task_id", "difficulty")},
    }
    frames = {
        "episodes": frame_of(rows, EPISODES),
        "events": frame_of(of_events, EVENTS),
        "achievements": frame_of(achievements, ACHIEVEMENT_ROWS),
    }
    for name in ("events", "achievements") if copied else ():
        frames[name] = frames[name][~frames[name]["source"].isin(copied)].reset_index(drop=True)
    return Assembled(frames, attributes={"rules": {"weights": weights, "counting": counting}})
