"""Assemble frames from the records of traces, and score their hooks with the user's weights and way of counting."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS, RECORDS
from evalkit.io import frame_of
from evalkit.kinds import RUN_COLUMNS, Assembled, Records, run_ids

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
# hooks of an event: name in `WEIGHTS`, number of achievements (at least 1), 1 if the original trace_eval counts it
Hooks = tuple[tuple[str, int, int], ...]
Columns = Mapping[str, Sequence[Any]]

BANDS = {"Excellent": 2.0, "Good": 1.0, "Limited": 0.0, "Poor": float("-inf")}  # lowest scores, best band first
NO_SCORED_EVENTS = "(no scored events)"
PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
DIGITS = 10  # decimals of a sum, so that 3 × 0.1 − 0.3 is 0
_NO_TURN = np.iinfo(np.int64).min
_OF_SESSION = ("session_id", "model_name", "task_id", "difficulty", "experiment", "seed", "max_turns", "started")


class Rules(TypedDict):
    """How episodes are scored: points per hook, and whether to count achievements or hooks."""

    weights: dict[str, float]
    counting: Counting


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights with the defaults of `WEIGHTS`; raise ValueError for an unknown name or counting."""
    if unknown := sorted(weights.keys() - WEIGHTS.keys()):
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in COUNTINGS:
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}


def count_hooks(hooks: Iterable[tuple[str, int, int]], counting: Counting) -> dict[str, int]:
    """Count every achievement that hooks name or, by hook, every hook that the original trace_eval knows."""
    counts = dict.fromkeys(WEIGHTS, 0)
    for name, n, known in hooks:
        counts[name] += n if counting == "achievement" else known
    return counts


def _sign(points: float) -> str:
    """Return the symbol of points in a trajectory; empty for 0."""
    if points > 0:
        return "+"
    return "-" if points < 0 else ""


def score_event(hooks: Hooks, weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event; `evalkit.crafter.evaluate_event` describes how."""
    score, symbol = 0.0, ""
    if hooks and counting == "achievement":
        counts = count_hooks(hooks, counting)
        score = round(sum(n * weights[name] for name, n in counts.items()), DIGITS) + 0.0
        return EventScore(score, _sign(score) or "0")
    for name, _, known in hooks:
        if known:
            score += weights[name]
            symbol = _sign(weights[name]) or symbol
    return EventScore(score, symbol if score else "")


def score_traces(
    episodes: Columns, events: Columns, weights: Mapping[str, float], counting: Counting
) -> tuple[dict[str, list], dict[str, Any]]:
    """Score the records of traces (lists by column). Return columns of episodes (None without events) and of events."""
    sizes = np.array(episodes["events"], dtype="int64")
    n = len(sizes)
    episode_of = np.repeat(np.arange(n), sizes)  # episode of each event

    # score each distinct text of hooks only once
    places: dict[str | None, int] = {None: 0}
    codes = np.array([places.setdefault(text, len(places)) for text in events["hooks"]], dtype="int64")
    scored: list[EventScore] = []
    counted: list[list[int]] = []
    for text in places:
        parts = [hook.split(":") for hook in text.split(" ")] if text else []
        hooks = tuple([(name, int(count), int(is_known)) for name, count, is_known in parts])
        scored.append(score_event(hooks, weights, counting))
        counted.append(list(count_hooks(hooks, counting).values()))
    scores = np.array([event.score for event in scored])[codes]
    event_counts = dict(zip((f"{name}s" for name in WEIGHTS), np.array(counted)[codes].T, strict=True))
    summed = {**event_counts, "suspect_invalid_actions": events["suspect_invalid_actions"]}
    sums = {name: np.bincount(episode_of, column, n).astype("int64") for name, column in summed.items()}
    totals: np.ndarray = np.bincount(episode_of, scores, n)  # added up in order, as in the original
    if counting == "achievement":
        totals = np.round(sum(sums[f"{name}s"] * weights[name] for name in WEIGHTS), DIGITS) + 0.0
    symbols = [scored[code].symbol for code in codes.tolist()]
    ends = np.cumsum([0, *sizes]).tolist()
    columns = {
        "score": totals.tolist(),
        "trajectory": ["".join(symbols[start:end]) or NO_SCORED_EVENTS for start, end in pairwise(ends)],
        **{name: count.tolist() for name, count in sums.items()},
    }
    for name, values in columns.items():
        columns[name] = [value if size else None for value, size in zip(values, episodes["events"], strict=True)]
    columns["run_flags"] = list(map(list, episodes["flags"]))
    sessions, copies = episodes["session_id"], find_copies(episodes, events)
    n_of_session = Counter(session for place, session in enumerate(sessions) if place not in copies)
    n_of_session[None] = 0
    order = {flag: place for place, flag in enumerate(FLAGS)}
    for place, flags in enumerate(columns["run_flags"]):
        if place in copies:
            flags.append("duplicate")
        elif n_of_session[sessions[place]] > 1:
            flags.append("duplicate_session")
        flags.sort(key=lambda flag: order.get(flag, len(order)))
    return columns, {"score": np.where(codes > 0, scores, np.nan), **event_counts}


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
    return None  # for a missing score


def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements."""
    counting = options.get("counting", "achievement")
    weights = check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events = records.tables["episodes"], records.tables["events"]
    columns = {name: episodes[name].to_pylist() for name in ("events", "flags", *_OF_SESSION)}
    listed = events.to_pydict()
    scores, event_scores = score_traces(columns, listed, weights, counting)
    n, sizes = len(episodes), episodes["events"].to_numpy()
    episode_of = np.repeat(np.arange(n), sizes)  # episode of each event
    # for each episode and achievement: whether it was unlocked, and the turn of the first hook that names it
    unlocked = np.zeros((n, len(PLACE)), bool)
    turns = np.full(unlocked.shape, _NO_TURN)
    for episode, names, turn in zip(episode_of.tolist(), listed["achievements"], listed["game_turn"], strict=True):
        for place in map(PLACE.get, names.split(" ") if names else ()):
            if place is not None and not unlocked[episode, place]:
                unlocked[episode, place] = True
                turns[episode, place] = _NO_TURN if turn is None else turn
    can_tell = episodes["can_tell"].to_numpy()
    each = np.repeat(np.arange(n), len(ACHIEVEMENTS))
    achievements = {
        **{name: episodes[name].take(each) for name in ("source", "model_name", "task_id", "difficulty")},
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [*map(TIER_OF.get, ACHIEVEMENTS)] * n,
        "unlocked": pa.array(unlocked.ravel(), mask=~unlocked.ravel() & ~can_tell[each]),
        "game_turn": pa.array(turns.ravel(), mask=turns.ravel() == _NO_TURN),
    }
    score, suspects = np.array([scores[name] for name in ("score", "suspect_invalid_actions")], dtype=float)
    is_known = can_tell & (sizes > 0)
    n_unlocked = unlocked.sum(axis=1)
    rows = {
        **dict.fromkeys((column.name for column in RUN_COLUMNS), [None] * n),  # missing unless set below
        **dict(zip(episodes.column_names, episodes.columns, strict=True)),
        **scores,
        "run_id": run_ids("crafter", episodes["source"].to_pylist(), records=records),
        "kind": ["crafter"] * n,
        "score_without_suspects": np.round(score - suspects * weights["invalid_action"], DIGITS),
        "band": list(map(band, score.tolist())),
        "unlocked": pa.array(n_unlocked, mask=~is_known),
        "progression": np.where(is_known, n_unlocked, np.nan) / len(ACHIEVEMENTS),
    }
    event_rows = {
        **dict(zip(events.column_names, events.columns, strict=True)),
        **event_scores,
        **{name: episodes[name].take(episode_of) for name in ("model_name", "task_id", "difficulty")},
    }
    frames = {
        "episodes": frame_of(rows, EPISODES),
        "events": frame_of(event_rows, EVENTS),
        "achievements": frame_of(achievements, ACHIEVEMENT_ROWS),
    }
    flagged = zip(rows["source"].to_pylist(), scores["run_flags"], strict=True)
    if copies := [source for source, flags in flagged if "duplicate" in flags]:
        for name in ("events", "achievements"):
            frames[name] = frames[name][~frames[name]["source"].isin(copies)].reset_index(drop=True)
    return Assembled(frames, attributes={"rules": Rules(weights=weights, counting=counting)})


def find_copies(episodes: Columns, events: Columns) -> set[int]:
    """Return the positions of traces that repeat an earlier trace of their session or the beginning of a longer one."""
    sessions = list(zip(*[episodes[name] for name in _OF_SESSION], strict=True))
    sizes, n_of_session = episodes["events"], Counter(sessions)
    ends = list(accumulate(sizes))
    seen = set[int]()  # hashes of traces and of their beginnings
    copies = set[int]()
    for place in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):  # the longest first
        session = sessions[place]
        if session[0] is None or n_of_session[session] == 1:
            continue
        beginning = hash(session)
        beginnings = []
        own = [events[column.name][ends[place] - sizes[place] : ends[place]] for column in RECORDS["events"]]
        for event in zip(*own, strict=True):
            beginning = hash((beginning, repr(event)))
            beginnings.append(beginning)
        if beginning in seen:
            copies.add(place)
        seen.update(beginnings or [beginning])
    return copies
