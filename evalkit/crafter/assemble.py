"""Assemble records of traces into frames: verdicts of hooks times weights; the user's options are applied here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.crafter import scoring
from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import Counting
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS, order_difficulties, order_flags
from evalkit.crafter.transcript import actions, turns
from evalkit.io import Entry, SourceError, absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_UNKNOWN = ("task_type", "repetition", "is_successful", "success_rate")  # common columns of runs
_OWN = ("source", "model_name", "task_id", "difficulty")


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements, and those of turns and actions on first access."""
    counting: Counting = options.get("counting", "achievement")
    weights = scoring.check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events, notes = _chosen(records, options.get("models") or (), options.get("difficulty") or "")
    of = np.repeat(np.arange(len(episodes)), episodes["events"].to_numpy())  # the episode of each event
    worth = _Worth(events["hooks"], weights, counting)
    unlocks = _unlocks(episodes, events, of)
    frames = {
        "episodes": _episodes(episodes, events, of, worth, unlocks[0]),
        "events": _events(episodes, events, of, worth),
        "achievements": _achievements(episodes, *unlocks),
    }
    lazy = {name: partial(make, frames["events"], events) for name, make in (("turns", turns), ("actions", actions))}
    return Assembled(frames, notes, {"rules": {"weights": weights, "counting": counting}}, lazy)


def _chosen(records: Records, models: Sequence[str], difficulty: str) -> tuple[pa.Table, pa.Table, list[Entry]]:
    """Select the traces asked for; the ledger names the others."""
    episodes, events = records.tables["episodes"], records.tables["events"]
    selected = np.ones(len(episodes), bool)
    for column, chosen in {"model_name": list(models), "difficulty": [difficulty] if difficulty else []}.items():
        if not chosen:
            continue
        seen = episodes[column].unique().to_pylist()
        if missing := [name for name in chosen if name not in seen]:
            what, there = column.removesuffix("_name"), ", ".join(order_difficulties(seen))
            raise SourceError(f"no trace has the {what} {missing[0]!r}; there are {there}")
        selected &= pc.is_in(episodes[column], pa.array(chosen, pa.large_string())).to_numpy()
    if selected.all():
        return episodes, events, []
    left_out = episodes.filter(pa.array(~selected))
    rows = zip(*(left_out[name].to_pylist() for name in ("source", "model_name", "difficulty")), strict=True)
    notes = [Entry(path, "skipped", f"not asked for: {model}, {level}") for path, model, level in rows]
    events = events.filter(pc.invert(pc.is_in(events["source"], left_out["source"].combine_chunks())))
    return episodes.filter(pa.array(selected)), events, notes


class _Worth:
    """What events' hooks are worth, as arrays over events.

    By counting `counts` (events × `WEIGHTS`) and `scores` (0 without a scored hook); by the one asked for `symbols`
    (empty without a scored hook); `scored` tells which events have a scored hook.
    """

    def __init__(self, hooks: pa.ChunkedArray, weights: Mapping[str, float], counting: Counting) -> None:
        encoded = hooks.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy()  # -1 is the last one, no hook
        texts = ([hook.split(":") for hook in text.split(" ")] for text in encoded.dictionary.to_pylist())
        kinds = [*(tuple((name, int(n), int(known)) for name, n, known in hooks) for hooks in texts), ()]
        self.weights, self.counting, self.scored = weights, counting, codes >= 0
        self.counts, self.scores = {}, {}
        for way in scoring.COUNTINGS:
            counts = [scoring.count_hooks(event, way) for event in kinds]
            self.counts[way] = np.array([[event.get(name, 0) for name in WEIGHTS] for event in counts])[codes]
            self.scores[way] = np.array([scoring.score_event(event, weights, way).score for event in kinds])[codes]
        symbols = [scoring.score_event(event, weights, counting).symbol for event in kinds]
        self.symbols = np.array(symbols, dtype="U1")[codes]

    def totals(self, of: np.ndarray, n: int, way: Counting) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and score of each episode: Σ count × weight or, by hook, the running sum over its events."""
        counts = np.column_stack([_sums(of, column, n) for column in self.counts[way].T])
        if way == "hook":  # in order, as the original sums
            return counts, np.bincount(of, self.scores[way], n)
        rows = list(map(tuple, counts.tolist()))
        named = {row: dict(zip(WEIGHTS, row, strict=True)) for row in set(rows)}
        scores = {row: scoring.score_counts(counted, self.weights).score for row, counted in named.items()}
        return counts, np.array([scores[row] for row in rows], dtype=float)


def _sums(of: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    return np.bincount(of, values, n).astype("int64")


def _unlocks(episodes: pa.Table, events: pa.Table, of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, per episode and achievement, whether it was named, and the turn of the first unlock (NaN: unknown)."""
    named = np.zeros((len(episodes), len(ACHIEVEMENTS)), bool)
    turns = np.full(named.shape, np.nan)
    is_named = pc.is_valid(events["achievements"])
    rows = events.filter(is_named)
    columns = of[is_named.to_numpy()].tolist(), rows["achievements"].to_pylist(), rows["turn"].to_pylist()
    for episode, names, turn in zip(*columns, strict=True):
        for name in names.split(" "):
            place = PLACE.get(name)
            if place is not None and not named[episode, place]:
                named[episode, place] = True
                turns[episode, place] = np.nan if turn is None else turn
    return named, turns


def _episodes(episodes: pa.Table, events: pa.Table, of: np.ndarray, worth: _Worth, named: np.ndarray) -> pd.DataFrame:
    n = len(episodes)
    there = episodes["events"].to_numpy() > 0  # the others were aborted: nothing derived from events is known
    totals = {way: worth.totals(of, n, way) for way in scoring.COUNTINGS}
    counts, points = totals[worth.counting]
    suspects = _sums(of, events["suspect_invalid_actions"].to_numpy(), n)
    lifted = np.round(points - suspects * worth.weights["invalid_action"], scoring.DIGITS)
    points = np.where(there, points, np.nan).tolist()
    bands = {score: scoring.band(score) for score in set(points)}
    can_tell, unlocked = episodes["can_tell"].to_numpy() & there, named.sum(axis=1)
    flags = _flags(episodes, worth.counting)
    values: dict[str, Any] = {name: episodes[name] for name in episodes.column_names}
    values |= dict.fromkeys(_UNKNOWN, [None] * n)
    values |= {
        "run_id": run_ids("crafter", map(absolute, episodes["source"].to_pylist())),
        "kind": ["crafter"] * n,
        "score": points,
        "prompt_tokens": episodes["tokens_in"],
        "completion_tokens": episodes["tokens_out"],
        "run_flags": flags,
        "score_without_suspects": np.where(there, lifted, np.nan),
        "band": [bands[score] for score in points],
        "suspect_invalid_actions": _integers(suspects, there),
        "trajectory": _trajectories(of, worth.symbols, there),
        "unlocked": _integers(unlocked, can_tell),
        "progression": np.where(can_tell, unlocked, np.nan) / len(ACHIEVEMENTS),
        **{f"score_by_{way}": np.where(there, total, np.nan) for way, (_, total) in totals.items()},
        **{f"{name}s": _integers(counts[:, i], there) for i, name in enumerate(WEIGHTS)},
        **{f"flag_{flag}": np.zeros(n, bool) for flag in FLAGS},
    }
    for i, raised in enumerate(flags):
        for flag in raised:
            if flag in FLAGS:
                values[f"flag_{flag}"][i] = True
    return frame_of(values, EPISODES)


def _flags(episodes: pa.Table, counting: Counting) -> list[list[str]]:
    """Return the flags of each episode: its own, and those that other files or the user's options raise."""
    flags, sessions = episodes["flags"].to_pylist(), episodes["session_id"].to_pylist()
    files = Counter(sessions)
    for i, (session, foreign) in enumerate(zip(sessions, episodes["foreign"].to_pylist(), strict=True)):
        raised = ["unknown_to_original"] * (foreign and counting == "hook")
        raised += ["duplicate_session"] * (session is not None and files[session] > 1)
        if raised:
            flags[i] = order_flags([*flags[i], *raised])
    return flags


def _trajectories(of: np.ndarray, symbols: np.ndarray, there: np.ndarray) -> list[str | None]:
    shown = symbols != ""
    text = "".join(symbols[shown].tolist())
    ends = np.cumsum(np.bincount(of[shown], minlength=len(there))).tolist()
    spans = zip([0, *ends[:-1]], ends, there.tolist(), strict=True)
    return [(text[start:end] or scoring.NO_SCORED_EVENTS) if scored else None for start, end, scored in spans]


def _integers(values: np.ndarray, known: np.ndarray) -> pd.Series:
    return pd.Series(pd.arrays.IntegerArray(values.astype("int64"), ~known))


def _events(episodes: pa.Table, events: pa.Table, of: np.ndarray, worth: _Worth) -> pd.DataFrame:
    reasons: list[str | None] = [None] * len(events)
    judged = pc.is_valid(events["reasons"])
    texts = events["reasons"].filter(judged).to_pylist()
    for i, of_actions in zip(np.flatnonzero(judged.to_numpy()).tolist(), texts, strict=True):
        reasons[i] = "; ".join([text for text in of_actions if text is not None]) or None
    values: dict[str, Any] = {name: events[name] for name in events.column_names}
    values |= {name: episodes[name].take(of) for name in _OWN[1:]}
    values |= {
        "actions": pc.list_value_length(events["action_names"]),
        "score": np.where(worth.scored, worth.scores[worth.counting], np.nan),
        "symbol": [text or None for text in worth.symbols.tolist()],
        "reason": reasons,
        **{f"{name}s": worth.counts[worth.counting][:, i] for i, name in enumerate(WEIGHTS)},
    }
    return frame_of(values, EVENTS)


def _achievements(episodes: pa.Table, named: np.ndarray, turns: np.ndarray) -> pd.DataFrame:
    n, k = named.shape
    of, unlocked = np.repeat(np.arange(n), k), named.ravel()
    values: dict[str, Any] = {name: episodes[name].take(of) for name in _OWN}
    values |= {
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [TIER_OF[name] for name in ACHIEVEMENTS] * n,
        "unlocked": pd.Series(pd.array(unlocked, "boolean")).mask(~unlocked & ~episodes["can_tell"].to_numpy()[of]),
        "turn": pd.Series(turns.ravel()).astype("Int64"),
    }
    return frame_of(values, ACHIEVEMENT_ROWS)
