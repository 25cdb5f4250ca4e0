"""Episodes turn by turn: transcripts with what the player saw, and the frames of turns and actions.

An event that names no turn belongs to that of the next one that does, since a model's call comes before the actions
that it chose; after the last one, to the last.
"""

import base64
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evalkit.crafter.format import ANYTHING, IMAGE, TIER_OF, WEIGHTS, Event, peek
from evalkit.crafter.parse import NO_TOKENS, Judged, add_tokens, open_trace, tokens_of
from evalkit.crafter.scoring import DIGITS, Verdict, observed, read_invalid, score_verdicts
from evalkit.crafter.table import ACTION_ROWS, TURNS
from evalkit.io import SourceError, decode_json, frame_of
from evalkit.kinds import Image, Transcript, Turn

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

VITALS = ("health", "food", "drink", "energy")
_LARGEST = 1024  # pixels per side


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of a trace: per turn its actions and why, invalid ones, unlocked achievements and state."""
    (path,) = paths
    data = read(path)
    entry, judged = open_trace(path, data)
    if judged is None:
        raise SourceError(f"{path}: {entry.reason}")
    numbers = _fill([event.turn for event in judged.events])
    steps = enumerate(zip(numbers, judged.events, judged.verdicts, strict=True))
    groups = groupby(steps, lambda step: f"event {step[0]}" if step[1][0] is None else f"turn {step[1][0]}")
    images, turns, points = images_of(data), [], []
    for name, group in groups:
        members = list(group)
        turn = _turn(name, [(event, verdict) for _, (_, event, verdict) in members])
        seen = [images[place] for place, _ in members if place in images][-1:]
        turns.append(turn._replace(images=tuple(seen)))
        points.append(_points(verdict for _, (_, _, verdict) in members))
    if points:  # the turn that raised the score most or, if nothing was unlocked, lowered it most
        place = points.index(max(points) if max(points) > 0 else min(points))
        turns[place] = turns[place]._replace(events=(*turns[place].events, "decision"))
    if judged.session.error is not None:
        text = f"error: {judged.session.error or 'no message'}"
        turns.append(Turn("session", "system", text, ("error",), ("error",)))
    return Transcript(os.path.basename(path), _facts(judged), turns)


def _facts(judged: Judged) -> list[str]:
    session = judged.session
    facts = [session.model_name, f"difficulty {session.difficulty}"]
    facts += [f"task {session.task_id}"] * (session.task_id is not None)
    if not judged.events:
        return [*facts, "aborted: no events"]
    facts.append(f"score {_points(judged.verdicts):.2f}")
    if judged.unlocked is not None:
        facts.append(f"{len(judged.unlocked)} of {len(TIER_OF)} achievements")
    return facts + [flag.replace("_", " ") for flag in judged.flags]


def _points(verdicts: Iterable[Verdict]) -> float:
    return score_verdicts(verdicts, WEIGHTS, "achievement").by_counting["achievement"]


def _fill(turns: list[int | None]) -> list[int | None]:
    """Fill missing turns of events with that of the next one, else of the last one."""
    for there, order in ((1, reversed(range(len(turns) - 1))), (-1, range(1, len(turns)))):
        for i in order:
            turns[i] = turns[i + there] if turns[i] is None else turns[i]
    return turns


def _turn(name: str, steps: list[tuple[Event, Verdict]]) -> Turn:
    events = [event for event, _ in steps]
    actions = [str(action) for event in events for action in event.action_names or ()]
    reasonings = [peek(event.metadata.action_reasoning, str) for event in events if event.metadata]
    invalid = [one for event, verdict in steps for one in read_invalid(event, verdict)]
    unlocked = [f"{name} ({TIER_OF.get(name, 'unknown')})" for _, verdict in steps for name in verdict.achievements]
    lines = [", ".join(actions) or "no action", *filter(None, reasonings)]
    for one in invalid:
        doubt = " (judged over the whole turn)" if one.suspect else ""
        lines.append(f"invalid {one.action or 'action'}: {one.reason or 'no reason'}{doubt}")
    lines += [f"unlocked {', '.join(unlocked)}"] * bool(unlocked)
    lines += filter(None, ["; ".join(filter(None, (_state(events), _tokens(events))))])
    marks = ["unlocked"] * bool(unlocked)
    marks += ["invalid"] * any(not one.suspect for one in invalid) + ["suspect"] * any(one.suspect for one in invalid)
    happened = ["command"] * bool(actions) + ["error"] * bool(invalid) + ["achievement"] * bool(unlocked)
    times = (peek(event.time, str) for event in events)  # as the trace writes them
    time = next((time[:40] for time in times if time), "")
    same = ", ".join([*actions, *unlocked])  # reasoning and tokens always differ
    return Turn(name, "action", "\n".join(lines), tuple(marks), tuple(happened), time, same)


def _state(events: list[Event]) -> str:
    """Format the vitals after a turn, and the inventory, as far as an observation shows them."""
    states = (raw for event in reversed(events) for raw in (event.system_state_after, event.system_state_before))
    for shown in map(observed, states):
        if shown and shown.inventory:
            has = {name: n for name, n in shown.inventory.items() if isinstance(n, int | float)}
            names = [*filter(has.__contains__, VITALS), *(name for name in has if name not in VITALS and has[name])]
            return ", ".join(f"{name} {has[name]}" for name in names)
    return ""


def _tokens(events: list[Event]) -> str:
    calls = (tokens_of(event) for event in events if event.kind == "language_model")
    prompt, completion, total = reduce(add_tokens, calls, NO_TOKENS)
    if prompt is None and completion is None:
        return "" if total is None else f"{total} tokens"
    return f"{prompt or 0} + {completion or 0} tokens"


def images_of(data: bytes) -> dict[int, Image]:
    """Read the image that the game showed after each event of a trace, by position; broken ones are left out."""
    if IMAGE not in data:
        return {}
    trace, _ = decode_json(data, ANYTHING)
    events = trace.get("event_history") if isinstance(trace, dict) else None
    images = {}
    for place, event in enumerate(events if isinstance(events, list) else ()):
        state = event.get("system_state_after") if isinstance(event, Mapping) else None
        shown = map(state.get, ("public_state", "observation")) if isinstance(state, Mapping) else ()
        if image := next(filter(None, map(_image, shown)), None):
            images[place] = image
    return images


def _image(observation: Any) -> Image | None:
    """Decode the image of an observation; None if it is missing or its size does not match its shape."""
    if not isinstance(observation, Mapping):
        return None
    text, shape = observation.get("observation_image_base64"), observation.get("observation_image_shape")
    if not isinstance(text, str) or not isinstance(shape, list) or len(shape) != 3:
        return None
    if any(type(side) is not int or not 0 < side <= _LARGEST for side in shape) or shape[2] != 3:
        return None
    try:
        pixels = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    height, width, _ = shape
    return Image(width, height, pixels) if len(pixels) == 3 * width * height else None


def turns(events: "pd.DataFrame", records: "pa.Table") -> "pd.DataFrame":
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


def actions(events: "pd.DataFrame", records: "pa.Table") -> "pd.DataFrame":
    """Build the frame of actions from that of events and its records."""
    import numpy as np
    import pyarrow.compute as pc

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


def _turns_of(events: "pd.DataFrame") -> "pd.Series":
    """Fill missing turns of events with that of the next one of their trace, else of the last one."""
    filled = events.groupby("source", sort=False)["turn"].bfill()
    return filled.groupby(events["source"], sort=False).ffill()
