"""Episodes turn by turn: transcripts with what the player saw.

An event that names no turn belongs to that of the next one that does, since a model's call comes before the actions
that it chose; after the last one, to the last.
"""

import base64
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby

import pandas as pd

from evalkit.crafter.format import TIER_OF, WEIGHTS, Event, Observation, peek
from evalkit.crafter.parse import Verdict, judge_trace, observed, tokens_of
from evalkit.crafter.scoring import score_event
from evalkit.io import BrokenFileError, SourceError
from evalkit.kinds import Image, Transcript, Turn

VITALS = ("health", "food", "drink", "energy")
_LARGEST = 1024  # pixels per side


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of a trace: per turn its actions and why, invalid ones, unlocked achievements and state."""
    (path,) = paths
    try:
        judged = judge_trace(read(path), images=True)
    except BrokenFileError as error:
        raise SourceError(f"{path}: {error}") from error
    session = judged.session
    numbers = pd.Series([event.turn for event in judged.events], dtype="Int64").bfill().ffill()
    names = [f"event {i}" if number is pd.NA else f"turn {number}" for i, number in enumerate(numbers)]
    turns, points = [], []
    for name, group in groupby(zip(names, judged.events, judged.verdicts, strict=True), lambda step: step[0]):
        steps = [(event, verdict) for _, event, verdict in group]
        turns.append(_turn(name, steps))
        points.append(_points(verdict for _, verdict in steps))
    if points:  # the turn that raised the score most or, if nothing was unlocked, lowered it most
        place = points.index(max(points) if max(points) > 0 else min(points))
        turns[place] = turns[place]._replace(events=(*turns[place].events, "decision"))
    if judged.error is not None:
        turns.append(Turn("session", "system", f"error: {judged.error or 'no message'}", ("error",), ("error",)))
    facts = [f"difficulty {session['difficulty']}"]
    if judged.events:
        facts += [f"{len(judged.unlocked)} of {len(TIER_OF)} achievements"] if judged.unlocked is not None else []
    else:
        facts.append("aborted: no events")
    return Transcript(os.path.basename(path), facts, turns)


def _points(verdicts: Iterable[Verdict]) -> float:
    hooks = tuple(chain.from_iterable(verdict.hooks for verdict in verdicts))
    return score_event(hooks, WEIGHTS, "achievement").score


def _turn(name: str, steps: Sequence[tuple[Event, Verdict]]) -> Turn:
    events = [event for event, _ in steps]
    actions = [str(action) for event in events for action in event.action_names or ()]
    reasonings = [peek(event.metadata.action_reasoning, str) for event in events if event.metadata]
    invalid = [one for _, verdict in steps for one in verdict.invalid]
    unlocked = [f"{name} ({TIER_OF.get(name, 'unknown')})" for _, verdict in steps for name in verdict.achievements]
    lines = [", ".join(actions) or "no action", *filter(None, reasonings)]
    for one in invalid:
        doubt = " (judged over the whole turn)" if one.suspect else ""
        lines.append(f"invalid {one.action or 'action'}: {one.reason or 'no reason'}{doubt}")
    if unlocked:
        lines.append(f"unlocked {', '.join(unlocked)}")
    after = []  # vitals and inventory, as the last observation shows them, and tokens
    states = (raw for event in reversed(events) for raw in (event.system_state_after, event.system_state_before))
    if inventory := next((shown.inventory for shown in map(observed, states) if shown and shown.inventory), None):
        has = {name: n for name, n in inventory.items() if isinstance(n, int | float)}
        names = [*filter(has.__contains__, VITALS), *(name for name in has if name not in VITALS and has[name])]
        after.append(", ".join(f"{name} {has[name]}" for name in names))
    read, written = tokens_of(events)
    if read is not None or written is not None:
        after.append(f"{read or 0} + {written or 0} tokens")
    if after:
        lines.append("; ".join(after))
    is_marked = {
        "unlocked": unlocked,
        "invalid": any(not one.suspect for one in invalid),
        "suspect": any(one.suspect for one in invalid),
    }
    marks = [mark for mark, applies in is_marked.items() if applies]
    has_event = {"command": actions, "error": invalid, "achievement": unlocked}
    happened = [event for event, applies in has_event.items() if applies]
    times = (event.time for event in events)  # as the trace writes them
    time = next((time[:40] for time in times if time and isinstance(time, str)), "")
    same = ", ".join([*actions, *unlocked])  # reasoning and tokens always differ
    seen = [image for event in events if (image := image_of(observed(event.system_state_after)))]
    return Turn(
        name, "action", "\n".join(lines), tuple(marks), tuple(happened), time, same, tuple(seen[-1:]), agent="player"
    )


def image_of(shown: Observation | None) -> Image | None:
    """Decode the image of an observation; None if it is missing or its size does not match its shape."""
    text = peek(shown.observation_image_base64, str) if shown else None
    shape = shown.observation_image_shape if shown else None
    if text is None or not isinstance(shape, list) or len(shape) != 3:
        return None
    if any(type(side) is not int or not 0 < side <= _LARGEST for side in shape) or shape[2] != 3:
        return None
    try:
        pixels = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    height, width, _ = shape
    return Image(width, height, pixels) if len(pixels) == 3 * width * height else None
