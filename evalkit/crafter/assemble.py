"""From records of traces to frames: what hooks say, weighed; the user's options are applied here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evalkit.crafter.game import ACHIEVEMENTS, TIER_OF
from evalkit.crafter.scoring import (
    COUNTINGS,
    NO_SCORED_EVENTS,
    WEIGHTS,
    Counting,
    Hooks,
    band,
    check_rules,
    count_hooks,
    score_counts,
    score_event,
)
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS, order_difficulties, order_flags
from evalkit.io import Entry, SourceError, absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Make the frames of episodes, events and achievements.

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
    scores = _event_scores(events["hooks"], weights, counting)
    unlocks = _unlocks(episodes, events, of)
    frames = {
        "episodes": _episodes(episodes, events, of, scores, unlocks, counting),
        "events": _events(episodes, events, of, scores),
        "achievements": _achievements(episodes, *unlocks),
    }
    return Assembled(frames, notes, {"rules": {"weights": weights, "counting": counting}})


def _chosen(records: Records, models: Sequence[str], difficulty: str) -> "tuple[pa.Table, pa.Table, list[Entry]]":
    """Leave out the traces that were not asked for; the ledger names them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    episodes, events = records.tables["episodes"], records.tables["events"]
    if not (models or difficulty):
        return episodes, events, []
    kept = np.ones(len(episodes), bool)
    for column, chosen in (("model_name", list(models)), ("difficulty", [difficulty] if difficulty else [])):
        _check_choice(column.removesuffix("_name"), chosen, episodes[column].to_pylist())
        if chosen:
            kept &= pc.is_in(episodes[column], pa.array(chosen, pa.large_string())).to_numpy()
    left_out = episodes.filter(pa.array(~kept))
    rows = zip(*(left_out[name].to_pylist() for name in ("source", "model_name", "difficulty")), strict=True)
    notes = [Entry(source, "skipped", f"not asked for: {model}, {level}") for source, model, level in rows]
    events = events.filter(pc.invert(pc.is_in(events["source"], left_out["source"].combine_chunks())))
    return episodes.filter(pa.array(kept)), events, notes


def _check_choice(what: str, chosen: Sequence[str], seen: Sequence[str]) -> None:
    if missing := [name for name in chosen if name not in seen]:
        raise SourceError(f"no trace has the {what} {missing[0]!r}; there are {', '.join(order_difficulties(seen))}")


class _Scores:
    """What the hooks of events are worth; arrays over events, those without a scored hook among them."""

    def __init__(self, codes: np.ndarray, kinds: list[Hooks], weights: Mapping[str, float], counting: Counting) -> None:
        self.scored = codes >= 0
        self._codes = codes[self.scored]  # of the scored ones
        self._kinds, self.weights, self.counting = kinds, weights, counting

    def counts(self, counting: Counting) -> np.ndarray:
        """Give the counts of the scored events, a column per name of `WEIGHTS`."""
        rows = [[count_hooks(hooks, counting).get(name, 0) for name in WEIGHTS] for hooks in self._kinds]
        return np.array(rows, dtype="int64").reshape(-1, len(WEIGHTS))[self._codes]

    def scores(self, counting: Counting) -> np.ndarray:
        """Give the scores of the scored events."""
        return np.array([score_event(hooks, self.weights, counting).score for hooks in self._kinds])[self._codes]

    def symbols(self) -> np.ndarray:
        """Give the symbols of the scored events."""
        kinds = [score_event(hooks, self.weights, self.counting).symbol for hooks in self._kinds]
        return np.array(kinds, dtype="U1")[self._codes]


def _event_scores(hooks: "pa.ChunkedArray", weights: Mapping[str, float], counting: Counting) -> _Scores:
    encoded = hooks.combine_chunks().dictionary_encode()
    kinds = [_read_hooks(text) for text in encoded.dictionary.to_pylist()]
    return _Scores(encoded.indices.fill_null(-1).to_numpy(), kinds, weights, counting)


def _read_hooks(text: str) -> Hooks:
    pairs = (hook.rpartition(":")[::2] for hook in text.split(" "))
    return tuple((name, int(n)) for name, n in pairs)


def _unlocks(episodes: "pa.Table", events: "pa.Table", of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give of each episode and achievement whether it was named, and the turn of the first unlock (NaN: unknown)."""
    import pyarrow.compute as pc

    named = np.zeros((len(episodes), len(ACHIEVEMENTS)), bool)
    turns = np.full(named.shape, np.nan)
    telling = pc.is_valid(events["achievements"]).to_numpy()
    rows = events.filter(pc.is_valid(events["achievements"]))
    columns = of[telling].tolist(), rows["achievements"].to_pylist(), rows["turn"].to_pylist()
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
    scores: _Scores,
    unlocks: tuple[np.ndarray, np.ndarray],
    counting: Counting,
) -> "pd.DataFrame":
    n = len(episodes)
    flags = _flags(episodes, counting)
    there = episodes["events"].to_numpy() > 0  # the others were aborted: nothing that follows from events is known
    own = of[scores.scored]
    counts = _sums(own, scores.counts(counting), n)
    totals = {way: _totals(own, scores, way, n) for way in COUNTINGS}
    named, _ = unlocks
    can_tell = episodes["can_tell"].to_numpy() & there
    unlocked = [int(k) if known else None for k, known in zip(named.sum(axis=1), can_tell, strict=True)]
    points = np.where(there, totals[counting], np.nan)
    suspect = _sums(of, events["suspect_invalid_actions"].to_numpy()[:, None], n)[:, 0]
    values: dict[str, Any] = {name: episodes[name] for name in episodes.column_names}
    values |= dict.fromkeys(("model_source", "experiment", "task_type", "repetition", "seed", "status"), [None] * n)
    values |= dict.fromkeys(("is_successful", "started", "duration", "cost"), [None] * n)
    values |= {
        "run_id": run_ids("crafter", map(absolute, episodes["source"].to_pylist())),
        "kind": ["crafter"] * n,
        "score": points,
        "tokens_in": episodes["prompt_tokens"],
        "tokens_out": episodes["completion_tokens"],
        "flags": flags,
        "band": [band(score) for score in points.tolist()],
        "suspect_invalid_actions": _where(there, suspect),
        "trajectory": _where(there, _trajectories(own, scores.symbols(), n)),
        "unlocked": unlocked,
        "progression": [np.nan if k is None else k / len(ACHIEVEMENTS) for k in unlocked],
        **{f"score_by_{way}": np.where(there, total, np.nan) for way, total in totals.items()},
        **{f"{name}s": _where(there, counts[:, i]) for i, name in enumerate(WEIGHTS)},
        **{f"flag_{flag}": [flag in own for own in flags] for flag in FLAGS},
    }
    return frame_of({column.name: values[column.name] for column in EPISODES}, EPISODES)


def _flags(episodes: "pa.Table", counting: Counting) -> list[list[str]]:
    """Give the flags of each episode, in their order."""
    sessions = episodes["session_id"].to_pylist()
    files = Counter(sessions)
    rows = []
    columns = episodes["flags"].to_pylist(), episodes["foreign"].to_pylist(), sessions
    for own, foreign, session in zip(*columns, strict=True):
        raised = list(own)
        if foreign and counting == "hook":
            raised.append("unknown_to_original")
        if session is not None and files[session] > 1:
            raised.append("duplicate_session")
        rows.append(order_flags(raised))
    return rows


def _sums(of: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    out = np.zeros((n, values.shape[1]), dtype="int64")
    np.add.at(out, of, values)
    return out


def _totals(of: np.ndarray, scores: _Scores, counting: Counting, n: int) -> np.ndarray:
    """Give the score of each episode: Σ count × weight, or per hook the running sum over its events."""
    if counting == "achievement":
        counts = _sums(of, scores.counts(counting), n).tolist()
        return np.array([score_counts(dict(zip(WEIGHTS, own, strict=True)), scores.weights).score for own in counts])
    out = np.zeros(n)
    np.add.at(out, of, scores.scores(counting))  # one after the other, as the original adds
    return out


def _trajectories(of: np.ndarray, symbols: np.ndarray, n: int) -> list[str]:
    shown = symbols != ""
    text = "".join(symbols[shown].tolist())
    ends = np.cumsum(np.bincount(of[shown], minlength=n)).tolist()
    return [text[start:end] or NO_SCORED_EVENTS for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _where(there: np.ndarray, values: Sequence[Any]) -> list[Any]:
    items = values.tolist() if isinstance(values, np.ndarray) else values
    return [value if is_so else None for value, is_so in zip(items, there.tolist(), strict=True)]


def _events(episodes: "pa.Table", events: "pa.Table", of: np.ndarray, scores: _Scores) -> "pd.DataFrame":
    values: dict[str, Any] = {name: events[name] for name in events.column_names}
    values |= {name: episodes[name].take(of) for name in ("model_name", "task_id", "difficulty")}
    score = np.full(len(events), np.nan)
    score[scores.scored] = scores.scores(scores.counting)
    symbol = np.full(len(events), "", dtype="U1")
    symbol[scores.scored] = scores.symbols()
    counts = np.zeros((len(events), len(WEIGHTS)), dtype="int64")
    counts[scores.scored] = scores.counts(scores.counting)
    values |= {"score": score, "symbol": [text or None for text in symbol.tolist()]}
    values |= {f"{name}s": counts[:, i] for i, name in enumerate(WEIGHTS)}
    return frame_of({column.name: values[column.name] for column in EVENTS}, EVENTS)


def _achievements(episodes: "pa.Table", named: np.ndarray, turns: np.ndarray) -> "pd.DataFrame":
    import pandas as pd

    n, k = named.shape
    of = np.repeat(np.arange(n), k)
    can_tell = episodes["can_tell"].to_numpy()[of]
    values: dict[str, Any] = {
        name: episodes[name].take(of) for name in ("source", "model_name", "task_id", "difficulty")
    }
    values |= {
        "achievement": list(ACHIEVEMENTS) * n,
        "tier": [TIER_OF[name] for name in ACHIEVEMENTS] * n,
        "unlocked": pd.Series(pd.array(named.ravel(), "boolean")).mask(~named.ravel() & ~can_tell),
        "turn": pd.Series(turns.ravel()).astype("Int64"),
    }
    return frame_of({column.name: values[column.name] for column in ACHIEVEMENT_ROWS}, ACHIEVEMENT_ROWS)
