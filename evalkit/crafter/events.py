"""Detect events in episodes: invalid actions, repeated noops, low health, and no unlocked achievement."""

from collections.abc import Iterator
from itertools import groupby

from evalkit.kinds import Detector, Found, Seen
from evalkit.kinds.detectors import shortened

LEAST_NOOPS = 3  # minimum number in a row
LOW_HEALTH = 3  # highest health that counts as low; the maximum is 9


def invalid_action(transcript: Seen) -> Iterator[Found]:
    """Find each invalid action that was not judged over a turn of several; the detail is the action and the reason."""
    for number, turn in enumerate(transcript.turns, 1):
        for action in turn.values.get("invalid", ()):
            if not action.suspect:
                yield number, f"{action.action or 'action'}: {action.reason or 'no reason'}", shortened(turn.text)


def repeated_noop(transcript: Seen) -> Iterator[Found]:
    """Find at least three noop actions in a row, in one or several turns; the detail is their number."""
    actions = [
        (number, action) for number, turn in enumerate(transcript.turns, 1) for action in turn.values.get("actions", ())
    ]
    for action, same in groupby(actions, lambda numbered: numbered[1]):
        stretch = list(same)
        if action == "noop" and len(stretch) >= LEAST_NOOPS:
            number = stretch[0][0]
            yield number, str(len(stretch)), shortened(transcript.turns[number - 1].text)


def low_health_end(transcript: Seen) -> Iterator[Found]:
    """Find an episode whose last known health is at most 3 of 9; the detail is the health."""
    for number, turn in reversed(list(enumerate(transcript.turns, 1))):
        health = turn.values.get("inventory", {}).get("health")
        if health is not None:
            if health <= LOW_HEALTH:
                yield number, f"{health:g}", shortened(turn.text)
            return


def no_unlock(transcript: Seen) -> Iterator[Found]:
    """Find an episode with actions that unlocks no achievement."""
    acted = [number for number, turn in enumerate(transcript.turns, 1) if turn.values.get("actions")]
    if acted and not any(turn.values.get("unlocked") for turn in transcript.turns):
        yield acted[-1], "", shortened(transcript.turns[acted[-1] - 1].text)


DETECTORS = (
    Detector("no_unlock", "Is nothing unlocked?", no_unlock, "unlocks nothing", 9),
    Detector("repeated_noop", "Does it do nothing?", repeated_noop, "does nothing", 7),
    Detector("low_health_end", "Does it end with little health?", low_health_end, "ends with little health", 3),
    Detector("invalid_action", "Which actions are invalid, and why?", invalid_action, "acts invalidly", 3),
)
