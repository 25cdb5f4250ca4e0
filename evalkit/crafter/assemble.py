"""Assemble records of traces into frames: what their hooks are worth; the user's options are applied here."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import DIGITS, band, check_rules, score_traces
from evalkit.crafter.table import (
    ACHIEVEMENT_ROWS,
    ACTION_ROWS,
    EPISODES,
    EVENTS,
    FLAGS,
    TURNS,
    order_difficulties,
)
from evalkit.io import Entry, SourceError, absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_UNKNOWN = ("task_type", "repetition", "is_successful", "success_rate")  # common columns of runs
_NO_TURN = np.iinfo(np.int64).min


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements, and those of turns and actions on first access."""
    counting = options.get("counting", "achievement")
    weights = check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events, notes = _chosen(records, options.get("models") or (), options.get("difficulty") or "")
    told = {name: episodes[name].to_pylist() for name in ("events", "session_id", "flags", "foreign")}
    hooks = {name: events[name].to_pylist() for name in ("hooks", "suspect_invalid_actions")}
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
    frames = {
        "episodes": _episodes(episodes, scored.episodes, unlocked.sum(axis=1), weights),
        "events": _events(events, scored.events, episodes.take(of)),
        "achievements": frame_of(achievements, ACHIEVEMENT_ROWS),
    }
    lazy = {name: partial(make, frames["events"], events) for name, make in (("turns", _turns), ("actions", _actions))}
    rules = {"weights": weights, "counting": counting}
    all_models = records.tables["episodes"]["model_name"].unique().to_pylist()
    return Assembled(frames, notes, {"rules": rules, "all_models": all_models}, lazy)


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


def _episodes(
    records: pa.Table, scored: Mapping[str, Any], unlocked: np.ndarray, weights: Mapping[str, float]
) -> pd.DataFrame:
    points, suspects = np.array([scored["score"], scored["suspect_invalid_actions"]], dtype=float)
    can_tell = records["can_tell"].to_numpy() & (records["events"].to_numpy() > 0)
    values = {
        **dict(zip(records.column_names, records.columns, strict=True)),
        **scored,
        **dict.fromkeys(_UNKNOWN, [None] * len(records)),
        "run_id": run_ids("crafter", map(absolute, records["source"].to_pylist())),
        "kind": ["crafter"] * len(records),
        "prompt_tokens": records["tokens_in"],
        "completion_tokens": records["tokens_out"],
        "score_without_suspects": np.round(points - suspects * weights["invalid_action"], DIGITS),
        "band": list(map(band, points.tolist())),
        "unlocked": pa.array(unlocked, mask=~can_tell),
        "progression": np.where(can_tell, unlocked, np.nan) / len(ACHIEVEMENTS),
        **{f"flag_{flag}": [flag in raised for raised in scored["run_flags"]] for flag in FLAGS},
    }
    return frame_of(values, EPISODES)


def _events(records: pa.Table, scored: Mapping[str, Any], of_episodes: pa.Table) -> pd.DataFrame:
    values = {
        **dict(zip(records.column_names, records.columns, strict=True)),
        **scored,
        **{name: of_episodes[name] for name in ("model_name", "task_id", "difficulty")},
        "actions": pc.list_value_length(records["action_names"]),
        "reason": ["; ".join(filter(None, row or ())) or None for row in records["reasons"].to_pylist()],
    }
    return frame_of(values, EVENTS)


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
