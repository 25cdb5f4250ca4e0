"""Assemble records of traces into frames: verdicts of hooks times weights; the user's options are applied here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import (
    COUNTINGS,
    NO_SCORED_EVENTS,
    Counting,
    band,
    check_rules,
    count_hooks,
    score_counts,
    score_event,
)
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS, order_difficulties, order_flags
from evalkit.crafter.turns import actions, turns
from evalkit.io import Entry, SourceError, absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_NOT_TOLD = ("experiment", "task_type", "repetition", "is_successful", "cost")  # the common columns of runs
_IDS = ("source", "model_name", "task_id", "difficulty")


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements, and those of turns and actions on first access.

    Parameters
    ----------
    records : Records
    options : mapping
        models, difficulty, weights, counting, as for `load`.
    """
    weights = check_rules(options.get("weights") or WEIGHTS, options.get("counting", "achievement"))
    counting: Counting = options.get("counting", "achievement")
    episodes, events, notes = _chosen(records, options.get("models") or (), options.get("difficulty") or "")
    of = np.repeat(np.arange(len(episodes)), episodes["events"].to_numpy())  # the episode of each event
    worth = _Worth(events["hooks"], weights, counting)
    unlocks = _unlocks(episodes, events, of)
    frames = {
        "episodes": _episodes(episodes, events, of, worth, unlocks),
        "events": _events(episodes, events, of, worth),
        "achievements": _achievements(episodes, *unlocks),
    }
    lazy = {name: partial(make, frames["events"], events) for name, make in (("turns", turns), ("actions", actions))}
    return Assembled(frames, notes, {"rules": {"weights": weights, "counting": counting}}, lazy)


def _chosen(records: Records, models: Sequence[str], difficulty: str) -> "tuple[pa.Table, pa.Table, list[Entry]]":
    """Select the traces asked for; the ledger names the others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    episodes, events = records.tables["episodes"], records.tables["events"]
    selected = np.ones(len(episodes), bool)
    for column, chosen in {"model_name": list(models), "difficulty": [difficulty] if difficulty else []}.items():
        if chosen:
            _check_choice(column.removesuffix("_name"), chosen, episodes[column].unique().to_pylist())
            selected &= pc.is_in(episodes[column], pa.array(chosen, pa.large_string())).to_numpy()
    if selected.all():
        return episodes, events, []
    left_out = episodes.filter(pa.array(~selected))
    rows = zip(*(left_out[name].to_pylist() for name in ("source", "model_name", "difficulty")), strict=True)
    notes = [Entry(path, "skipped", f"not asked for: {model}, {level}") for path, model, level in rows]
    events = events.filter(pc.invert(pc.is_in(events["source"], left_out["source"].combine_chunks())))
    return episodes.filter(pa.array(selected)), events, notes


def _check_choice(what: str, chosen: Sequence[str], seen: Sequence[str]) -> None:
    if missing := [name for name in chosen if name not in seen]:
        raise SourceError(f"no trace has the {what} {missing[0]!r}; there are {', '.join(order_difficulties(seen))}")


class _Worth:
    """The scores of events' hooks, as arrays over events.

    Attributes
    ----------
    counts : dict of Counting to array of events × `WEIGHTS`
    scores : dict of Counting to array of float
        0 for an event without a scored hook.
    symbols : array of str
        By the counting asked for; empty for an event without a scored hook.
    scored : array of bool
        Events with a scored hook.
    """

    def __init__(self, hooks: "pa.ChunkedArray", weights: Mapping[str, float], counting: Counting) -> None:
        encoded = hooks.combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy()  # -1 is the last one, no hook
        kinds = [tuple(map(_read_hook, text.split(" "))) for text in encoded.dictionary.to_pylist()] + [()]
        self.weights, self.counting, self.scored = weights, counting, codes >= 0
        self.counts, self.scores = {}, {}
        for way in COUNTINGS:
            counts = [count_hooks(event, way) for event in kinds]
            self.counts[way] = np.array([[event.get(name, 0) for name in WEIGHTS] for event in counts])[codes]
            self.scores[way] = np.array([score_event(event, weights, way).score for event in kinds])[codes]
        self.symbols = np.array([score_event(event, weights, counting).symbol for event in kinds], dtype="U1")[codes]

    def totals(self, of: np.ndarray, n: int, way: Counting) -> tuple[np.ndarray, np.ndarray]:
        """Return counts and score of each episode: Σ count × weight or, by hook, the running sum over its events."""
        counts = np.column_stack([_sums(of, column, n) for column in self.counts[way].T])
        if way == "hook":  # in order, as the original sums
            return counts, np.bincount(of, self.scores[way], n)
        rows = list(map(tuple, counts.tolist()))
        score = {row: score_counts(dict(zip(WEIGHTS, row, strict=True)), self.weights).score for row in set(rows)}
        return counts, np.array([score[row] for row in rows], dtype=float)


def _read_hook(text: str) -> tuple[str, int]:
    name, _, n = text.rpartition(":")
    return name, int(n)


def _sums(of: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    return np.bincount(of, values, n).astype("int64")


def _unlocks(episodes: "pa.Table", events: "pa.Table", of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, per episode and achievement, whether it was named, and the turn of the first unlock (NaN: unknown)."""
    import pyarrow.compute as pc

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


def _episodes(
    episodes: "pa.Table",
    events: "pa.Table",
    of: np.ndarray,
    worth: _Worth,
    unlocks: tuple[np.ndarray, np.ndarray],
) -> "pd.DataFrame":
    n = len(episodes)
    there = episodes["events"].to_numpy() > 0  # the others were aborted: nothing derived from events is known
    totals = {way: worth.totals(of, n, way) for way in COUNTINGS}
    counts, points = totals[worth.counting]
    points = np.where(there, points, np.nan).tolist()
    bands = {score: band(score) for score in set(points)}
    can_tell = episodes["can_tell"].to_numpy() & there
    unlocked = np.where(can_tell, unlocks[0].sum(axis=1), np.nan)
    flags = _flags(episodes, worth.counting)
    values: dict[str, Any] = {name: episodes[name] for name in episodes.column_names}
    values |= dict.fromkeys(_NOT_TOLD, [None] * n)
    values |= {
        "run_id": run_ids("crafter", map(absolute, episodes["source"].to_pylist())),
        "kind": ["crafter"] * n,
        "score": points,
        "prompt_tokens": episodes["tokens_in"],
        "completion_tokens": episodes["tokens_out"],
        "flags": flags,
        "band": [bands[score] for score in points],
        "suspect_invalid_actions": _integers(_sums(of, events["suspect_invalid_actions"].to_numpy(), n), there),
        "trajectory": [
            text if scored else None for text, scored in zip(_trajectories(of, worth.symbols, n), there, strict=True)
        ],
        "unlocked": _integers(unlocks[0].sum(axis=1), can_tell),
        "progression": unlocked / len(ACHIEVEMENTS),
        **{f"score_by_{way}": np.where(there, total, np.nan) for way, (_, total) in totals.items()},
        **{f"{name}s": _integers(counts[:, i], there) for i, name in enumerate(WEIGHTS)},
        **_flag_columns(flags),
    }
    return frame_of(values, EPISODES)


def _flags(episodes: "pa.Table", counting: Counting) -> list[list[str]]:
    """Return the flags of each episode: its own, and those that other files or the user's options raise."""
    flags, sessions = episodes["flags"].to_pylist(), episodes["session_id"].to_pylist()
    files = Counter(sessions)
    for i, (session, foreign) in enumerate(zip(sessions, episodes["foreign"].to_pylist(), strict=True)):
        raised = ["unknown_to_original"] * (foreign and counting == "hook")
        raised += ["duplicate_session"] * (session is not None and files[session] > 1)
        if raised:
            flags[i] = order_flags([*flags[i], *raised])
    return flags


def _flag_columns(flags: list[list[str]]) -> dict[str, np.ndarray]:
    columns = {f"flag_{flag}": np.zeros(len(flags), bool) for flag in FLAGS}
    for i, raised in enumerate(flags):
        for flag in raised:
            if flag in FLAGS:
                columns[f"flag_{flag}"][i] = True
    return columns


def _trajectories(of: np.ndarray, symbols: np.ndarray, n: int) -> list[str]:
    shown = symbols != ""
    text = "".join(symbols[shown].tolist())
    ends = np.cumsum(np.bincount(of[shown], minlength=n)).tolist()
    return [text[start:end] or NO_SCORED_EVENTS for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _integers(values: np.ndarray, known: np.ndarray) -> "pd.Series":
    import pandas as pd

    return pd.Series(pd.arrays.IntegerArray(values.astype("int64"), ~known))


def _events(episodes: "pa.Table", events: "pa.Table", of: np.ndarray, worth: _Worth) -> "pd.DataFrame":
    import pyarrow.compute as pc

    values: dict[str, Any] = {name: events[name] for name in events.column_names}
    values |= {name: episodes[name].take(of) for name in _IDS[1:]}
    values |= {
        "actions": pc.list_value_length(events["action_names"]),
        "score": np.where(worth.scored, worth.scores[worth.counting], np.nan),
        "symbol": [text or None for text in worth.symbols.tolist()],
        "reason": _joined(events["reasons"], "; "),
        **{f"{name}s": worth.counts[worth.counting][:, i] for i, name in enumerate(WEIGHTS)},
    }
    return frame_of(values, EVENTS)


def _joined(lists: "pa.ChunkedArray", separator: str) -> list[str | None]:
    """Join lists of texts, some of which may be missing; None where nothing is left."""
    import pyarrow.compute as pc

    out: list[str | None] = [None] * len(lists)
    there = pc.is_valid(lists)
    for i, texts in zip(np.flatnonzero(there.to_numpy()).tolist(), lists.filter(there).to_pylist(), strict=True):
        out[i] = separator.join([text for text in texts if text is not None]) or None
    return out


def _achievements(episodes: "pa.Table", named: np.ndarray, turns: np.ndarray) -> "pd.DataFrame":
    import pandas as pd

    n, k = named.shape
    of = np.repeat(np.arange(n), k)
    can_tell = episodes["can_tell"].to_numpy()[of]
    values: dict[str, Any] = {name: episodes[name].take(of) for name in _IDS}
    values |= {
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [TIER_OF[name] for name in ACHIEVEMENTS] * n,
        "unlocked": pd.Series(pd.array(named.ravel(), "boolean")).mask(~named.ravel() & ~can_tell),
        "turn": pd.Series(turns.ravel()).astype("Int64"),
    }
    return frame_of(values, ACHIEVEMENT_ROWS)
