"""Assemble records of traces into frames: what their hooks are worth; the user's options are applied here."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import DIGITS, band, check_rules, score_traces
from evalkit.crafter.table import (
    ACHIEVEMENT_ROWS,
    EPISODES,
    EVENTS,
    FLAGS,
)
from evalkit.io import absolute, frame_of, paused_gc
from evalkit.kinds import Assembled, Records, run_ids

PLACE = {name: place for place, name in enumerate(ACHIEVEMENTS)}
_UNKNOWN = ("task_type", "repetition", "is_successful", "success_rate")  # common columns of runs
_NO_TURN = np.iinfo(np.int64).min


@paused_gc()
def assemble(records: Records, options: Mapping[str, Any]) -> Assembled:
    """Build the frames of episodes, events and achievements."""
    counting = options.get("counting", "achievement")
    weights = check_rules(options.get("weights") or WEIGHTS, counting)
    episodes, events = records.tables["episodes"], records.tables["events"]
    told = {name: episodes[name].to_pylist() for name in ("events", "session_id", "flags")}
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
    return Assembled(frames, attributes={"rules": {"weights": weights, "counting": counting}})


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
    }
    return frame_of(values, EVENTS)
