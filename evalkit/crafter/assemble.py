"""Assemble frames from the records of traces, and score their hooks by the user's weights and way of counting."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS
from evalkit.io import frame_of, paused_gc
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
    """The scores of traces, as columns of episodes (None for those without events) and of events."""

    episodes: dict[str, list]
    events: dict[str, Any]


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights with the defaults of `WEIGHTS`; raise ValueError for an unknown name or counting."""
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
    """Score one event, as `evalkit.crafter.evaluate_event` describes."""
    score, symbol = 0.0, ""
    if not hooks:
        return EventScore(score, symbol)
    if counting == "achievement":
        for name, n in count_hooks(hooks, counting).items():
            score += n * weights[name]
        score = round(score, DIGITS) + 0.0
        return EventScore(score, "+" if score > 0 else "-" if score < 0 else "0")
    for name, _, known in hooks:
        if known:
            score += weights[name]
            symbol = "+" if weights[name] > 0 else "-" if weights[name] < 0 else symbol
    return EventScore(score, symbol if score else "")


def score_traces(episodes: Columns, events: Columns, weights: Mapping[str, float], counting: Counting) -> Scored:
    """Score the records of traces, given as lists of values by column."""
    sizes = np.array(episodes["events"], dtype="int64")
    n = len(sizes)
    episode_of = np.repeat(np.arange(n), sizes)  # of each event

    # each distinct text of hooks is scored once
    places: dict[str | None, int] = {None: 0}
    codes = np.array([places.setdefault(text, len(places)) for text in events["hooks"]], dtype="int64")
    hooks = [_parse_hooks(text) for text in places]
    scored = [score_event(event, weights, counting) for event in hooks]
    counts = np.array([list(count_hooks(event, counting).values()) for event in hooks])[codes].T
    scores = np.array([event.score for event in scored])[codes]
    event_counts = {f"{name}s": column for name, column in zip(WEIGHTS, counts, strict=True)}
    sums = {name: np.bincount(episode_of, column, n).astype("int64") for name, column in event_counts.items()}
    totals: np.ndarray = np.bincount(episode_of, scores, n)  # a running sum in order, as in the original
    if counting == "achievement":
        totals = np.round(sum(sums[f"{name}s"] * weights[name] for name in WEIGHTS), DIGITS) + 0.0
    suspects = np.bincount(episode_of, events["suspect_invalid_actions"], n).astype("int64")
    symbols = [scored[code].symbol for code in codes.tolist()]
    ends = np.cumsum([0, *sizes]).tolist()
    columns = {
        "score": totals.tolist(),
        "suspect_invalid_actions": suspects.tolist(),
        "trajectory": ["".join(symbols[start:end]) or NO_SCORED_EVENTS for start, end in pairwise(ends)],
        **{name: count.tolist() for name, count in sums.items()},
    }
    for name, values in columns.items():
        columns[name] = [value if size else None for value, size in zip(values, episodes["events"], strict=True)]
    columns["run_flags"] = _flags_of(episodes["flags"], episodes["session_id"])
    return Scored(columns, {"score": np.where(codes > 0, scores, np.nan), **event_counts})


def _parse_hooks(text: str | None) -> Hooks:
    parts = [hook.split(":") for hook in text.split(" ")] if text else []
    return tuple([(name, int(count), int(is_known)) for name, count, is_known in parts])


def _flags_of(flags: Sequence[Sequence[str]], sessions: Sequence[str | None]) -> list[list[str]]:
    """Return the flags of traces in the order of `FLAGS`, with ``duplicate_session`` where several have one session."""
    pairs = list(zip(flags, sessions, strict=True))
    n_of_session = Counter(session for own, session in pairs if "duplicate" not in own)
    raised = []
    for own, session in pairs:
        known = set(own)
        if session is not None and n_of_session[session] > 1 and "duplicate" not in own:
            known.add("duplicate_session")
        raised.append([*(flag for flag in FLAGS if flag in known), *(flag for flag in own if flag not in FLAGS)])
    return raised


def band(score: float) -> str | None:
    """Return the band of a score: Excellent above 2, Good from 1, Limited from 0, Poor below 0.

    Parameters
    ----------
    score : float
        Score in points.

    Returns
    -------
    str or None
        The band; None for a missing score.

    Examples
    --------
    >>> crafter.band(1.5)
    'Good'
    """
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
    columns = {name: episodes[name].to_pylist() for name in ("events", "session_id", "flags")}
    copies = _copies(episodes, events, columns)
    for place in copies:
        columns["flags"][place] = [*columns["flags"][place], "duplicate"]
    hooks = {name: events[name].to_pylist() for name in ("hooks", "suspect_invalid_actions")}
    scored = score_traces(columns, hooks, weights, counting)
    n = len(episodes)
    episode_of = np.repeat(np.arange(n), columns["events"])  # of each event
    unlocked, turns = _unlocks(n, episode_of, events)
    can_tell = episodes["can_tell"].to_numpy()
    each = np.repeat(np.arange(n), len(ACHIEVEMENTS))
    achievements = {
        **{name: episodes[name].take(each) for name in ("source", "model_name", "task_id", "difficulty")},
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [*map(TIER_OF.get, ACHIEVEMENTS)] * n,
        "unlocked": pa.array(unlocked.ravel(), mask=~unlocked.ravel() & ~can_tell[each]),
        "turn": pa.array(turns.ravel(), mask=turns.ravel() == _NO_TURN),
    }
    score, suspects = np.array([scored.episodes[name] for name in ("score", "suspect_invalid_actions")], dtype=float)
    is_known = can_tell & (np.array(columns["events"], dtype=int) > 0)
    n_unlocked = unlocked.sum(axis=1)
    rows = {
        **dict(zip(episodes.column_names, episodes.columns, strict=True)),
        **scored.episodes,
        **dict.fromkeys(_UNKNOWN, [None] * n),
        "run_id": run_ids("crafter", episodes["source"].to_pylist(), records=records),
        "kind": ["crafter"] * n,
        "score_without_suspects": np.round(score - suspects * weights["invalid_action"], DIGITS),
        "band": list(map(band, score.tolist())),
        "unlocked": pa.array(n_unlocked, mask=~is_known),
        "progression": np.where(is_known, n_unlocked, np.nan) / len(ACHIEVEMENTS),
    }
    event_rows = {
        **dict(zip(events.column_names, events.columns, strict=True)),
        **scored.events,
        **{name: episodes[name].take(episode_of) for name in ("model_name", "task_id", "difficulty")},
    }
    frames = {
        "episodes": frame_of(rows, EPISODES),
        "events": frame_of(event_rows, EVENTS),
        "achievements": frame_of(achievements, ACHIEVEMENT_ROWS),
    }
    if copies:
        sources = episodes["source"].take(copies).to_pylist()
        for name in ("events", "achievements"):
            frames[name] = frames[name][~frames[name]["source"].isin(sources)].reset_index(drop=True)
    return Assembled(frames, attributes={"rules": {"weights": weights, "counting": counting}})


def _copies(episodes: pa.Table, events: pa.Table, columns: Columns) -> list[int]:
    """Return the places of traces that repeat an earlier one of their session in everything."""
    n_of_session = Counter(columns["session_id"])
    seen = set[str]()
    copies = []
    end = 0
    for place, (session, n_events) in enumerate(zip(columns["session_id"], columns["events"], strict=True)):
        end += n_events
        if session is None or n_of_session[session] == 1:
            continue
        parts = (episodes.slice(place, 1), events.slice(end - n_events, n_events))
        content = str([part.drop_columns("source").to_pylist() for part in parts])
        if content in seen:
            copies.append(place)
        seen.add(content)
    return copies


def _unlocks(n: int, episode_of: np.ndarray, events: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return, per episode and achievement, whether a hook names it, and the turn of the first one that does."""
    unlocked = np.zeros((n, len(ACHIEVEMENTS)), bool)
    turns = np.full(unlocked.shape, _NO_TURN)
    columns = episode_of.tolist(), events["achievements"].to_pylist(), events["turn"].to_pylist()
    for episode, names, turn in zip(*columns, strict=True):
        for name in names.split(" ") if names else ():
            place = PLACE.get(name)
            if place is not None and not unlocked[episode, place]:
                unlocked[episode, place] = True
                turns[episode, place] = _NO_TURN if turn is None else turn
    return unlocked, turns
