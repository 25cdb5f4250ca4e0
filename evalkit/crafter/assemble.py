"""Assemble frames from the records of traces, and score their hooks with the user's weights and way of counting."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS, RECORDS
from evalkit.io import frame_of
from evalkit.kinds import RUN_COLUMNS, Assembled, Records, run_ids

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
Columns = Mapping[str, Sequence[Any]]

BANDS = {"Excellent": 2.0, "Good": 1.0, "Limited": 0.0, "Poor": float("-inf")}  # lowest scores, best band first
NO_SCORED_EVENTS = "(no scored events)"
PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
DIGITS = 10  # decimals of a sum, so that 3 × 0.1 − 0.3 is 0
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


def turns_of(steps: Sequence[int | None]) -> list[int]:
    """Return the number, from 1, of the transcript's turn that shows each event, given the step that each event names.

    A turn shows consecutive events of one step. An event without a step belongs to the next event's step, because a
    model's call comes before the actions that it chose; at the end, to the last step. If no event names a step, each
    event has its own turn.
    """
    turns = list[int]()
    turn = waiting = 0  # `waiting` counts events without a step
    current: int | None = None
    for step in steps:
        waiting += 1
        if step is None:
            continue
        if step != current:
            turn += 1
            current = step
        turns += [turn] * waiting
        waiting = 0
    return turns + [turn] * waiting if turns else list(range(1, waiting + 1))


def _sign(points: float) -> str:
    """Return the symbol of points in a trajectory; empty for 0."""
    if points > 0:
        return "+"
    return "-" if points < 0 else ""


def counted_hooks(counting: Counting) -> Literal["hooks", "original_hooks"]:
    """Return the name of the hooks to count: one per achievement or, by hook, those of the original trace_eval."""
    return "hooks" if counting == "achievement" else "original_hooks"


def score_event(hooks: Sequence[str], weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event by its `counted_hooks`; `evalkit.crafter.evaluate_event` describes how."""
    score, symbol = 0.0, ""
    if hooks and counting == "achievement":
        score = round(sum(n * weights[name] for name, n in Counter(hooks).items()), DIGITS) + 0.0
        return EventScore(score, _sign(score) or "0")
    for name in hooks:
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

    # score events with the same hooks only once
    places: dict[tuple[str, ...], int] = {(): 0}
    hooks_of_events = map(tuple, events[counted_hooks(counting)])
    codes = np.array([places.setdefault(hooks, len(places)) for hooks in hooks_of_events], dtype="int64")
    scored = [score_event(hooks, weights, counting) for hooks in places]
    counted = [[hooks.count(name) for name in WEIGHTS] for hooks in places]
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
    return columns, {"score": np.where(list(map(bool, events["hooks"])), scores, np.nan), **event_counts}


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
    listed = {name: _listed(events[name]) for name in events.column_names}
    scores, event_scores = score_traces(columns, listed, weights, counting)
    n, sizes = len(episodes), episodes["events"].to_numpy()
    episode_of = np.repeat(np.arange(n), sizes)  # episode of each event
    turns = list[int]()
    for start, end in pairwise([0, *np.cumsum(sizes).tolist()]):
        turns += turns_of(listed["step"][start:end])
    # for each episode and achievement: the turn of the first hook that names it, 0 if none does
    first_turns = np.zeros((n, len(PLACE)), "int64")
    for episode, names, turn in zip(episode_of.tolist(), listed["achievements"], turns, strict=True):
        for name in names:
            place = PLACE.get(name)
            if place is not None and not first_turns[episode, place]:
                first_turns[episode, place] = turn
    unlocked = first_turns > 0
    can_tell = episodes["can_tell"].to_numpy()
    each = np.repeat(np.arange(n), len(ACHIEVEMENTS))
    ids = run_ids("crafter", episodes["source"].to_pylist(), records=records)
    id_of_episode = pa.array(ids, pa.large_string())
    achievements = {
        "run_id": id_of_episode.take(pa.array(each)),
        **{name: episodes[name].take(each) for name in ("source", "model_name", "task_id", "difficulty")},
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [*map(TIER_OF.get, ACHIEVEMENTS)] * n,
        "unlocked": pa.array(unlocked.ravel(), mask=~unlocked.ravel() & ~can_tell[each]),
        "turn": pa.array(first_turns.ravel(), mask=~unlocked.ravel()),
    }
    score, suspects = np.array([scores[name] for name in ("score", "suspect_invalid_actions")], dtype=float)
    is_known = can_tell & (sizes > 0)
    n_unlocked = unlocked.sum(axis=1)
    rows = {
        **dict.fromkeys((column.name for column in RUN_COLUMNS), [None] * n),  # missing unless set below
        **dict(zip(episodes.column_names, episodes.columns, strict=True)),
        **scores,
        "run_id": ids,
        "score_without_suspects": np.round(score - suspects * weights["invalid_action"], DIGITS),
        "band": list(map(band, score.tolist())),
        "unlocked": pa.array(n_unlocked, mask=~is_known),
        "progression": np.where(is_known, n_unlocked, np.nan) / len(ACHIEVEMENTS),
    }
    event_rows = {
        **dict(zip(events.column_names, events.columns, strict=True)),
        **{column.name: map(list, listed[column.name]) for column in RECORDS["events"] if column.dtype == "list"},
        **event_scores,
        "run_id": id_of_episode.take(pa.array(episode_of)),
        "turn": turns,
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


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column. Most of the lists in it are empty, so only the others are converted one by one."""
    if not pa.types.is_list(column.type):
        return column.to_pylist()
    lists: list[Sequence[str]] = [()] * len(column)
    places = np.flatnonzero(pc.list_value_length(column).to_numpy())
    for place, values in zip(places.tolist(), column.take(pa.array(places)).to_pylist(), strict=True):
        lists[place] = values
    return lists


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
