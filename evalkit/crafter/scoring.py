"""Read the verdicts of hooks on events, and score them: integer counts times weights."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple

from evalkit.crafter.format import TIER_OF, WEIGHTS, Event, Hook, HookData, Observation, State, peek

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")
Hooks = tuple[tuple[str, int, int], ...]

BANDS = (  # name, lowest score, what it means; the first that fits
    ("Excellent", 2.0, "multiple achievements"),
    ("Good", 1.0, "some achievements"),
    ("Limited", 0.0, "few achievements"),
    ("Poor", float("-inf"), "dominated by invalid actions"),
)

NO_SCORED_EVENTS = "(no scored events)"

DIGITS = 10  # decimals of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0
_BY_NAME = "new_achievement"


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


class Invalid(NamedTuple):
    """A verdict of invalid action: its position in the turn, and why; suspect if it was judged over the whole turn."""

    action: str | None
    index: int | None  # type: ignore[assignment]  # among the event's actions; if only its name is given, the first of that name
    reason: str
    suspect: bool


class Verdict(NamedTuple):
    """The verdicts of one event's hooks."""

    hooks: Hooks = ()  # scored: name as in `WEIGHTS`, achievements named (none: 1), whether the original counts it
    achievements: tuple[str, ...] = ()
    suspect: int = 0  # invalid actions that were judged over a whole turn of several actions
    invalid: tuple[HookData, ...] = ()  # see `read_invalid`
    unnamed: int = 0  # achievement hooks that name nothing
    unknown: tuple[str, ...] = ()  # achievements of new_achievement that the game does not have


NOTHING = Verdict()
_NO_DATA = HookData()


class Scored(NamedTuple):
    """The scores of a trace's verdicts; counts and trajectory by the counting asked for."""

    counts: dict[str, int]
    by_counting: dict[Counting, float]
    trajectory: str


def score_verdicts(verdicts: Iterable[Verdict], weights: Mapping[str, float], counting: Counting) -> Scored:
    """Score the verdicts of a trace: Σ count × weight or, by hook, the running sum, as in the original trace_eval."""
    scored, counts = [verdict.hooks for verdict in verdicts if verdict is not NOTHING], {}
    for way in COUNTINGS:
        summed = count_hooks(chain.from_iterable(scored), way)
        counts[way] = {name: summed[name] for name in WEIGHTS if summed.get(name)}
    totals: dict[Counting, float] = {"achievement": score_counts(counts["achievement"], weights).score, "hook": 0.0}
    for hooks in scored:  # no sum(): newer Pythons round it differently
        totals["hook"] += score_event(hooks, weights, "hook").score
    trajectory = "".join([score_event(hooks, weights, counting).symbol for hooks in scored]) or NO_SCORED_EVENTS
    return Scored(counts[counting], totals, trajectory)


def band(score: float) -> str | None:
    """Return the band of a score: above 2.0 Excellent, [1.0, 2.0] Good, [0, 1.0) Limited, below 0 Poor."""
    if score != score:
        return None
    score = round(score, DIGITS)
    return next(name for name, low, _ in BANDS if score > low or (score == low and low != BANDS[0][1]))


def read_hooks(event: Event) -> Verdict:
    """Read the scored hooks of an event; ``hooks_triggered`` is read where ``event_metadata`` is missing.

    Names of ``new_achievement``, which has no difficulty, count by their own, unless hooks of the event have one.
    """
    if not event.event_metadata and not event.hooks_triggered:
        return NOTHING
    entries = event.event_metadata or [Hook(hook_name=name) for name in event.hooks_triggered or []]
    named = [(_singular(hook.hook_name), hook) for hook in entries if hook.hook_name]
    by_difficulty = any(name in WEIGHTS and name != "invalid_action" for name, _ in named)
    hooks, achievements, invalid, unknown = list[tuple[str, int, int]](), list[str](), list[HookData](), list[str]()
    suspect, unnamed = 0, 0
    for name, hook in named:
        data, known = hook.data or _NO_DATA, int(bool(event.event_metadata) and hook.hook_name in WEIGHTS)
        names = data.achievements or []
        if name == "invalid_action":
            hooks.append((name, 1, known))
            invalid.append(data)
            suspect += _is_suspect(data, event)
        elif name in WEIGHTS:
            hooks.append((name, max(len(names), 1), known))
            achievements += names
            unnamed += not names
        elif name == _BY_NAME and not by_difficulty:
            hooks += hooks_of_names(names)
            achievements += [n for n in names if n in TIER_OF]
            unknown += [n for n in names if n not in TIER_OF]
            unnamed += not names
    return Verdict(tuple(hooks), tuple(achievements), suspect, tuple(invalid), unnamed, tuple(unknown))


def _is_suspect(data: HookData, event: Event) -> bool:
    """Return whether a verdict compares one action with the effect of a whole turn of several actions."""
    if data.suspect is not None:
        return data.suspect
    return isinstance(event.actions, list) and len(event.actions) > 1


def read_invalid(event: Event, verdict: Verdict) -> list[Invalid]:
    """Read the verdicts of invalid action of an event, each with the action it is about."""
    names, verdicts = event.action_names or [], []
    first = {name: i for i, name in reversed(list(enumerate(names)))}
    for data in verdict.invalid:
        index = data.action_index
        if type(index) is not int or not 0 <= index < len(names):
            index = first.get(data.action, 0 if names else None)
        verdicts.append(Invalid(data.action, index, data.reason or "", _is_suspect(data, event)))
    return verdicts


def hooks_of_names(names: Iterable[str]) -> Hooks:
    """Return the hooks that achievements would have had: one per difficulty, with the number of its names."""
    counts = Counter(f"{TIER_OF[name]}_achievement" for name in names if name in TIER_OF)
    return tuple((name, n, 0) for name, n in counts.items())


def derive(events: list[Event]) -> list[Verdict]:
    """Find achievements in the states of events without hooks.

    Each counts once, at the first event whose state has it when no state before did. The first state is the start.
    """
    seen: set[str] | None = None
    verdicts = []
    for event in events:
        new: list[str] = []
        for raw in (event.system_state_before, event.system_state_after):
            shown = observed(raw)
            if shown is None or shown.achievements_status is None:
                continue
            now = {name for name, got in shown.achievements_status.items() if got and name in TIER_OF}
            new += sorted(now - seen) if seen is not None else []
            seen = now | (seen or set())
        verdicts.append(Verdict(hooks_of_names(new), tuple(new)))
    return verdicts


def observed(raw: Any) -> Observation | None:
    """Decode what a state of an event shows."""
    state = peek(raw, State)
    return (state.public_state or state.observation) if state else None


def _singular(name: str) -> str:
    """Return a hook's name as in `WEIGHTS`: newer writers use the plural."""
    return name if name in WEIGHTS else name.strip().lower().replace("-", "_").removesuffix("s")


def count_hooks(hooks: Iterable[tuple[str, int, int]], counting: Counting) -> dict[str, int]:
    """Count every achievement that hooks name, or every hook that the original trace_eval knows once."""
    counts: dict[str, int] = {}
    for name, n, known in hooks:
        counts[name] = counts.get(name, 0) + (n if counting == "achievement" else known)
    return counts


def score_event(hooks: Hooks, weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event; by achievement, the symbol is the sign of the score.

    By hook, both are those of the original trace_eval: a running sum, and the sign of the last hook with a nonzero
    weight; no symbol if the sum is 0.
    """
    if counting == "achievement":
        return score_counts(count_hooks(hooks, counting), weights)
    score, symbol = 0.0, ""
    for name in [name for name, _, known in hooks if known]:
        score += weights[name]
        symbol = "+" if weights[name] > 0 else "-" if weights[name] < 0 else symbol
    return EventScore(score, symbol if score else "")


def score_counts(counts: Mapping[str, int], weights: Mapping[str, float]) -> EventScore:
    """Return Σ count × weight, and its symbol; ``counts`` is empty where nothing is scored."""
    score = 0.0
    for name, n in counts.items():
        score += n * weights[name]
    score = round(score, DIGITS) + 0.0
    return EventScore(score, ("+" if score > 0 else "-" if score < 0 else "0") if counts else "")


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights with those of `WEIGHTS`; raise ValueError for an unknown name or counting."""
    if unknown := [name for name in weights if name not in WEIGHTS]:
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in COUNTINGS:
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}
