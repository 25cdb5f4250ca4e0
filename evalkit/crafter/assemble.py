"""Assemble records of traces into frames: verdicts of hooks times weights; the user's options are applied here."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import (
    COUNTINGS,
    DIGITS,
    NO_SCORED_EVENTS,
    Counting,
    Hooks,
    band,
    check_rules,
    count_hooks,
    score_event,
)
from evalkit.crafter.table import (
    ACHIEVEMENT_ROWS,
    ACTION_ROWS,
    EPISODES,
    EVENTS,
    FLAGS,
    TURNS,
    order_difficulties,
    order_flags,
)
from evalkit.io import Entry, SourceError, absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_UNKNOWN = ("task_type", "repetition", "is_successful", "success_rate")  # common columns of runs
_NO_TURN = np.iinfo(np.int64).min
Columns = Mapping[str, Any]  # of equal length, by name


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements, and those of turns and actions on first access."""
    counting: Counting = options.get("counting", "achievement")
    weights = check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events, notes = _chosen(records, options.get("models") or (), options.get("difficulty") or "")
    traces = ScoredTraces(columns_of(episodes), columns_of(events), weights, counting)
    frames = {
        "episodes": frame_of(traces.of_episodes(), EPISODES),
        "events": frame_of(traces.of_events(), EVENTS),
        "achievements": frame_of(traces.of_achievements(), ACHIEVEMENT_ROWS),
    }
    lazy = {name: partial(make, frames["events"], events) for name, make in (("turns", _turns), ("actions", _actions))}
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


def columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table by name."""
    return dict(zip(table.column_names, table.columns, strict=True))


def as_list(column: Any) -> list:
    """Return the values of a column of pandas, of Arrow or plain ones; missing ones are None."""
    if isinstance(column, pd.Series):
        column = pa.array(column, from_pandas=True)
    return column.to_pylist() if isinstance(column, pa.Array | pa.ChunkedArray) else list(column)


class _Worth(NamedTuple):
    """What events' hooks are worth by one way of counting."""

    counts: np.ndarray  # events × WEIGHTS
    scores: np.ndarray  # 0 without a scored hook
    symbols: np.ndarray  # empty without a scored hook


class ScoredTraces:
    """Records of traces with what their hooks are worth, from which the columns of results and frames are made.

    `episodes` and `events` are columns of records, of Arrow or, for results only, plain sequences.
    """

    def __init__(self, episodes: Columns, events: Columns, weights: Mapping[str, float], counting: Counting) -> None:
        self.episodes, self.events, self.weights, self.counting = episodes, events, weights, counting
        self.sizes = np.array(as_list(episodes["events"]), dtype="int64")
        self.of = np.repeat(np.arange(len(self.sizes)), self.sizes)  # the episode of each event
        distinct: dict[str | None, int] = {None: 0}  # texts of hooks, each of which is scored once
        codes = np.array([distinct.setdefault(text, len(distinct)) for text in as_list(events["hooks"])], dtype="int64")
        texts = [[hook.split(":") for hook in text.split(" ")] if text else [] for text in distinct]
        hooks = [tuple((name, int(n), int(known)) for name, n, known in named) for named in texts]
        self.worth = {way: self._worth(hooks, codes, way) for way in COUNTINGS}

    def _worth(self, hooks: Sequence[Hooks], codes: np.ndarray, counting: Counting) -> _Worth:
        counts = [count_hooks(event, counting) for event in hooks]
        scores, symbols = zip(*(score_event(event, self.weights, counting) for event in hooks), strict=True)
        table = np.array([[count.get(name, 0) for name in WEIGHTS] for count in counts])
        return _Worth(table[codes], np.array(scores)[codes], np.array(symbols, dtype="U1")[codes])

    @cached_property
    def unlocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Per episode and achievement, whether a hook names it, and the turn of the first one that does."""
        named = np.zeros((len(self.sizes), len(ACHIEVEMENTS)), bool)
        turns = np.full(named.shape, _NO_TURN)
        columns = self.of.tolist(), as_list(self.events["achievements"]), as_list(self.events["turn"])
        for episode, names, turn in zip(*columns, strict=True):
            for name in names.split(" ") if names else ():
                place = PLACE.get(name)
                if place is not None and not named[episode, place]:
                    named[episode, place] = True
                    turns[episode, place] = _NO_TURN if turn is None else turn
        return named, turns

    def of_results(self) -> dict[str, Any]:
        """Return the columns of results, without an order; what is derived from events is None for an aborted trace."""
        n, there = len(self.sizes), (self.sizes > 0).tolist()
        counts = {way: [self._sums(column) for column in worth.counts.T] for way, worth in self.worth.items()}
        of_hooks = zip(counts["achievement"], map(self.weights.__getitem__, WEIGHTS), strict=True)
        totals = {
            "achievement": np.round(sum(count * weight for count, weight in of_hooks), DIGITS) + 0.0,
            "hook": np.bincount(self.of, self.worth["hook"].scores, n),  # a running sum in order, as in the original
        }
        symbols = self.worth[self.counting].symbols
        ends, text = np.cumsum(self._sums(symbols != "")).tolist(), "".join(symbols.tolist())
        derived = {
            "score": totals[self.counting].tolist(),
            "suspect_invalid_actions": self._sums(as_list(self.events["suspect_invalid_actions"])).tolist(),
            "trajectory": [text[start:end] or NO_SCORED_EVENTS for start, end in pairwise([0, *ends])],
            **{f"score_by_{way}": total.tolist() for way, total in totals.items()},
            **{f"{name}s": counts[self.counting][i].tolist() for i, name in enumerate(WEIGHTS)},
        }
        for name, values in derived.items():
            derived[name] = [value if known else None for value, known in zip(values, there, strict=True)]
        flags, sessions = as_list(self.episodes["flags"]), as_list(self.episodes["session_id"])
        files = Counter(sessions)
        for i, (session, foreign) in enumerate(zip(sessions, as_list(self.episodes["foreign"]), strict=True)):
            raised = ["unknown_to_original"] * (foreign and self.counting == "hook")
            raised += ["duplicate_session"] * (session is not None and files[session] > 1)
            if raised:
                flags[i] = order_flags([*flags[i], *raised])
        return {**self.episodes, **derived, "run_flags": flags}

    def of_episodes(self) -> dict[str, Any]:
        """Return the columns of the frame of episodes."""
        episodes, n = self.of_results(), len(self.sizes)
        flags, points = episodes["run_flags"], np.array(episodes["score"], dtype=float)
        suspects = np.array(episodes["suspect_invalid_actions"], dtype=float)
        can_tell, unlocked = episodes["can_tell"].to_numpy() & (self.sizes > 0), self.unlocks[0].sum(axis=1)
        return {
            **episodes,
            **dict.fromkeys(_UNKNOWN, [None] * n),
            "run_id": run_ids("crafter", map(absolute, episodes["source"].to_pylist())),
            "kind": ["crafter"] * n,
            "prompt_tokens": episodes["tokens_in"],
            "completion_tokens": episodes["tokens_out"],
            "score_without_suspects": np.round(points - suspects * self.weights["invalid_action"], DIGITS),
            "band": list(map(band, points.tolist())),
            "unlocked": pa.array(unlocked, mask=~can_tell),
            "progression": np.where(can_tell, unlocked, np.nan) / len(ACHIEVEMENTS),
            **{f"flag_{flag}": [flag in raised for raised in flags] for flag in FLAGS},
        }

    def _sums(self, values: Any) -> np.ndarray:
        """Sum whole numbers of events per episode."""
        return np.bincount(self.of, values, len(self.sizes)).astype("int64")

    def of_events(self) -> dict[str, Any]:
        """Return the columns of the frame of events."""
        events, worth = self.events, self.worth[self.counting]
        of_actions = [[reason for reason in row or () if reason is not None] for row in events["reasons"].to_pylist()]
        return {
            **events,
            **{name: self.episodes[name].take(self.of) for name in ("model_name", "task_id", "difficulty")},
            "actions": pc.list_value_length(events["action_names"]),
            "score": np.where(events["hooks"].is_valid().to_numpy(), worth.scores, np.nan),
            "symbol": [text or None for text in worth.symbols.tolist()],
            "reason": ["; ".join(reasons) or None for reasons in of_actions],
            **{f"{name}s": worth.counts[:, i] for i, name in enumerate(WEIGHTS)},
        }

    def of_achievements(self) -> dict[str, Any]:
        """Return the columns of the frame of achievements."""
        named, turns = self.unlocks
        n, k = named.shape
        of, unlocked, turns = np.repeat(np.arange(n), k), named.ravel(), turns.ravel()
        return {
            **{name: self.episodes[name].take(of) for name in ("source", "model_name", "task_id", "difficulty")},
            "achievement": list(ACHIEVEMENTS) * n,
            "tier": [TIER_OF[name] for name in ACHIEVEMENTS] * n,
            "unlocked": pa.array(unlocked, mask=~unlocked & ~self.episodes["can_tell"].to_numpy()[of]),
            "turn": pa.array(turns, mask=turns == _NO_TURN),
        }


def _turns(events: pd.DataFrame, records: pa.Table) -> pd.DataFrame:
    """Build the frame of turns from that of events and its records; traces whose events name no turn have none."""
    names: Any = [None if row is None else " ".join(map(str, row)) for row in records["action_names"].to_pylist()]
    rows = events.assign(turn=_turns_of(events), action_names=names, events=1).dropna(subset="turn")
    groups = rows.groupby(["source", "turn"], sort=False)
    counts = ["events", *(f"{name}s" for name in WEIGHTS), "suspect_invalid_actions"]
    made: Any = groups[["model_name", "task_id", "difficulty"]].first().join(groups[counts].sum())
    made = made.join(groups[["actions", "score", "total_tokens"]].sum(min_count=1))
    made["score"] = made["score"].round(DIGITS) + 0.0
    for name, separator in {"action_names": " ", "achievements": " ", "reason": "; "}.items():
        made[name] = rows.dropna(subset=name).groupby(["source", "turn"], sort=False)[name].agg(separator.join)
    return frame_of(made.reset_index(), TURNS)


def _actions(events: pd.DataFrame, records: pa.Table) -> pd.DataFrame:
    """Build the frame of actions from that of events and its records."""
    names = records["action_names"].combine_chunks()
    lengths = pc.list_value_length(names).fill_null(0).to_numpy()
    of = np.repeat(np.arange(len(lengths)), lengths)  # the event of each action
    judged = pc.is_valid(records["reasons"]).to_numpy() & (lengths > 0)
    reasons = np.full(len(of), None, dtype=object)
    reasons[judged[of]] = pc.list_flatten(records["reasons"].filter(judged)).to_pylist()
    rows = events.assign(turn=_turns_of(events)).iloc[of]
    suspect = rows["suspect_invalid_actions"]
    verdicts = np.select([suspect == 0, suspect == rows["invalid_actions"]], ["invalid", "suspect"], default="")
    told = zip(reasons, verdicts.tolist(), strict=True)
    made = {
        **{name: rows[name] for name in ("source", "model_name", "task_id", "difficulty", "turn", "event")},
        "action": rows.groupby(["source", "turn"], sort=False, dropna=False).cumcount(),
        "name": pc.list_flatten(names),
        "verdict": [None if reason is None else verdict or None for reason, verdict in told],
        "reason": reasons.tolist(),
    }
    return frame_of(made, ACTION_ROWS)


def _turns_of(events: pd.DataFrame) -> pd.Series:
    """Fill missing turns of events with that of the next one of their trace, else of the last one.

    A model's call comes before the actions that it chose.
    """
    filled = events.groupby("source", sort=False)["turn"].bfill()
    return filled.groupby(events["source"], sort=False).ffill()
