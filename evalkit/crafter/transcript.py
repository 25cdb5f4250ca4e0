"""Build transcripts of episodes, turn by turn, with images of what the player saw."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from msgspec.structs import replace

from evalkit.crafter.assemble import score_event, turns_of
from evalkit.crafter.format import TIER_OF, WEIGHTS, Event, Observation, peek
from evalkit.crafter.parse import Invalid, Verdict, judge_trace, observed, tokens_of
from evalkit.io import BrokenFileError, SourceError
from evalkit.kinds import Call, Image, Transcript, Turn

VITALS = ("health", "food", "drink", "energy")
_LARGEST = 1024  # maximum number of pixels per side


def transcript(paths: Sequence[str], read: Callable[[str], bytes]) -> Transcript:
    """Return the transcript of a trace: actions, reasoning, invalid actions, achievements and state of each turn."""
    (path,) = paths
    try:
        judged = judge_trace(read(path), images=True)
    except BrokenFileError as error:
        raise SourceError(f"{path}: {error}") from error
    turns, points = [], []
    numbers = turns_of([event.step for event in judged.events])
    for _, group in groupby(zip(numbers, judged.events, judged.verdicts, strict=True), itemgetter(0)):
        steps = [(event, verdict) for _, event, verdict in group]
        turns.append(_turn(steps))
        hooks = tuple(hook for _, verdict in steps for hook in verdict.hooks)
        points.append(score_event(hooks, WEIGHTS, "achievement").score)
    if points:  # mark the turn that raised the score most or, if no turn raised it, lowered it most
        place = points.index(max(points) if max(points) > 0 else min(points))
        turns[place] = replace(turns[place], events=(*turns[place].events, "decision"))
    if judged.error is not None:
        turns.append(Turn("session", "system", f"error: {judged.error or 'no message'}", ("error",), ("error",)))
    facts = [f"difficulty {judged.session['difficulty']}"]
    if not judged.events:
        facts.append("aborted: no events")
    elif judged.unlocked is not None:
        facts.append(f"{len(judged.unlocked)} of {len(TIER_OF)} achievements")
    return Transcript(os.path.basename(path), facts, turns)


def _turn(steps: Sequence[tuple[Event, Verdict]]) -> Turn:
    """Return the turn that shows the events of a step; it names the step of the environment if an event does."""
    events = [event for event, _ in steps]
    step = next((event.step for event in events if event.step is not None), None)
    actions = [str(action) for event in events for action in event.action_names or ()]
    reasonings = [peek(event.metadata.action_reasoning, str) for event in events if event.metadata]
    invalid = [action for _, verdict in steps for action in verdict.invalid]
    unlocked = [f"{name} ({TIER_OF.get(name, 'unknown')})" for _, verdict in steps for name in verdict.achievements]
    lines = [", ".join(actions) or "no action", *filter(None, reasonings), *map(_invalid_line, invalid)]
    if unlocked:
        lines.append(f"unlocked {', '.join(unlocked)}")
    inventory = _inventory(events)
    state = _state(inventory)
    if described := "; ".join(filter(None, [state, _tokens(events)])):
        lines.append(described)
    suspect = [action.suspect for action in invalid]
    marks = {"unlocked": bool(unlocked), "invalid": not all(suspect), "suspect": any(suspect)}
    happened = {"command": bool(actions), "error": bool(invalid), "achievement": bool(unlocked)}
    times = [event.time for event in events if event.time and isinstance(event.time, str)]
    images = [image for event in events if (image := image_of(observed(event.system_state_after)))]
    return Turn(
        "player" if step is None else f"player, step {step}", "action", "\n".join(lines),
        marks=tuple(mark for mark, is_set in marks.items() if is_set),
        events=tuple(event for event, is_set in happened.items() if is_set),
        when=times[0][:40] if times else "",
        same=", ".join([*actions, *unlocked]),  # not reasoning and tokens, which always differ
        images=tuple(images[-1:]),
        agent="player",
        call=_call(events, actions, invalid, "; ".join([state, *unlocked])),
        values={"actions": actions, "invalid": invalid, "unlocked": unlocked, "inventory": inventory},
    )  # fmt: skip


def _invalid_line(action: Invalid) -> str:
    line = f"invalid {action.action or 'action'}: {action.reason or 'no reason'}"
    return f"{line} (judged over the whole turn)" if action.suspect else line


def _inventory(events: Sequence[Event]) -> dict[str, float]:
    """Return vitals and inventory in the last observation that has them; empty if there is none."""
    states = (raw for event in reversed(events) for raw in (event.system_state_after, event.system_state_before))
    inventory = next((shown.inventory for shown in map(observed, states) if shown and shown.inventory), None) or {}
    return {name: n for name, n in inventory.items() if isinstance(n, int | float)}


def _state(counts: Mapping[str, float]) -> str:
    names = [name for name in VITALS if name in counts]
    names += [name for name in counts if name not in VITALS and counts[name]]
    return ", ".join(f"{name} {counts[name]}" for name in names)


def _tokens(events: Sequence[Event]) -> str:
    read, written = tokens_of(events)
    return "" if read is None and written is None else f"{read or 0} + {written or 0} tokens"


def _call(events: Sequence[Event], actions: Sequence[str], invalid: Sequence[Invalid], state: str) -> Call | None:
    """Return a turn's actions as a call; its result has the player's position and state if the position is recorded."""
    if set(actions) <= {"noop"}:
        return None
    states = (observed(event.system_state_after) for event in reversed(events))
    place = next((shown.player_position for shown in states if shown and shown.player_position), None)
    why = "; ".join(map(_invalid_line, invalid))
    result = None if place is None else "; ".join(filter(None, [why, f"at {place}", state]))
    has_failed = bool(invalid) and len(invalid) >= len(actions) and not any(action.suspect for action in invalid)
    return Call(", ".join(actions), "", result or why or None, has_failed, is_in_text=True)


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
