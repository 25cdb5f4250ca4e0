"""Assemble records of traces into frames: what their hooks are worth; the user's options are applied here."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from evalkit.crafter.format import ACHIEVEMENTS, TIER_OF, WEIGHTS
from evalkit.crafter.scoring import DIGITS, band, check_rules, score_traces
from evalkit.crafter.table import ACHIEVEMENT_ROWS, EPISODES, EVENTS, FLAGS
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
    return Assembled(frames, attributes={"rules": {"weights": weights, "counting": counting}})
