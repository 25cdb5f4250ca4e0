"""Builders of small traces in the layout of real ones."""

import json
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "crafter"
TRACES = SHARED / "traces"
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not here")

LOCKED = ("collect_wood", "collect_drink", "place_table", "eat_cow", "make_stone_pickaxe")


def hook(name, achievements=None, **data):
    if achievements is not None:
        data["achievements"] = achievements
    return {"hook_name": name, "description": "", "data": data, "timestamp": "2025-01-01T00:00:00"}


def runtime(turn=0, hooks=(), actions=(1,), **more):
    metadata = {"turn": turn, "action_names": ["move_left"] * len(actions)}
    return {"actions": list(actions), "metadata": metadata, "event_metadata": list(hooks)} | more


def environment(turn=0, hooks=(), status=None, before=None, **more):
    states = {"system_state_after": status, "system_state_before": before}
    shown = {when: {"public_state": {"achievements_status": own}} for when, own in states.items() if own is not None}
    event = {"reward": 0.0, "terminated": False, "metadata": {"turn": turn}, "event_metadata": list(hooks)}
    return event | shown | more


def language_model(turn=0, **metadata):
    return {"llm_call_records": [], "metadata": {"turn": turn, **metadata}, "event_metadata": []}


def config(**data):
    return {"metadata_type": "episode_config", "data": data, "timestamp": ""}


def results(*unlocked):
    data = {"achievements": {name: name in unlocked for name in LOCKED}, "num_achievements": len(unlocked)}
    return {"metadata_type": "episode_results", "data": data, "timestamp": ""}


def trace(*events, metadata=(), session_id="crafter_episode_1_x", **more):
    session = {"session_id": session_id, "session_metadata": list(metadata), "message_history": []}
    return {**session, "event_history": list(events), "created_at": "2025-01-01T00:00:00", **more}


def write(folder, content, name="session_a.json"):
    path = Path(folder) / name
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path
