"""Scores of session traces: what hooks say, as integer counts, times weights."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from evalkit.crafter.format import Event, Hook, State, Trace
from evalkit.crafter.game import TIER_OF
from evalkit.crafter.parse import Session, describe, events_of, kind_of, peek

Counting = Literal["achievement", "hook"]

WEIGHTS = {"easy_achievement": 1.0, "medium_achievement": 2.5, "hard_achievement": 5.0, "invalid_action": -0.05}

BANDS = (  # name, lowest score, what it means; the first that fits
    ("Excellent", 2.0, "multiple achievements"),
    ("Good", 1.0, "some achievements"),
    ("Limited", 0.0, "few achievements"),
    ("Poor", float("-inf"), "dominated by invalid actions"),
)

NO_SCORED_EVENTS = "(no scored events)"

_DIGITS = 10  # decimals kept of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0
_BY_NAME = "new_achievement"


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


class Verdict(NamedTuple):
    """What the hooks of one event say."""

    counts: dict[str, int]
    achievements: tuple[str, ...]
    suspect: int  # invalid actions judged over a whole turn of several actions
    reasons: tuple[str, ...]  # of the invalid actions
    unnamed: int = 0  # achievement hooks that name nothing
    unknown: tuple[str, ...] = ()  # achievements of new_achievement that the game does not have


_NOTHING = Verdict({}, (), 0, ())


class Scored(NamedTuple):
    """A scored trace, event by event."""

    session: Session
    verdicts: list[Verdict]
    counts: dict[str, int]
    score: float
    trajectory: str
    unlocked: frozenset[str] | None  # None where the trace can't tell
    suspect: int
    flags: list[str]


def score_trace(trace: Trace, weights: Mapping[str, float] = WEIGHTS, counting: Counting = "achievement") -> Scored:
    """Score a decoded trace.

    Where no event has a hook, achievements come from the changes of ``achievements_status`` between states, and the
    flag ``derived`` says so.
    """
    weights = check_rules(weights, counting)
    session, events = describe(trace), events_of(trace)
    derived = not any(event.event_metadata or event.hooks_triggered for event in events)
    verdicts = derive(events, counting) if derived else [read_hooks(event, counting) for event in events]
    told = [verdict for verdict in verdicts if verdict is not _NOTHING]
    counts = {name: n for name in WEIGHTS if (n := sum([v.counts.get(name, 0) for v in told]))}
    trajectory = "".join([score_counts(v.counts, weights).symbol for v in told]) or NO_SCORED_EVENTS
    named = frozenset(name for v in told for name in v.achievements)
    suspect = sum([v.suspect for v in told])
    found = {
        "aborted": not events,
        "error_entry": session.error is not None,
        "derived": derived and bool(named),
        "unnamed_achievements": any(v.unnamed for v in told),
        "unknown_achievements": any(v.unknown for v in told),
        "no_environment_events": bool(events) and not named and all(kind_of(e) != "environment" for e in events),
        "suspect_invalid_actions": suspect > 0,
        "verdicts_disagree": any(_disagrees(e, v) for e, v in zip(events, verdicts, strict=True)),
    }
    can_tell = not any(found[flag] for flag in ("aborted", "unnamed_achievements", "no_environment_events"))
    found["results_mismatch"] = _mismatch(session, named) if can_tell else False
    return Scored(
        session=session,
        verdicts=verdicts,
        counts=counts,
        score=score_counts(counts, weights).score,
        trajectory=trajectory,
        unlocked=named if can_tell else None,
        suspect=suspect,
        flags=[flag for flag, is_so in found.items() if is_so],
    )


def band(score: float) -> str | None:
    """Return the band of a score: above 2.0 Excellent, [1.0, 2.0] Good, [0, 1.0) Limited, below 0 Poor."""
    if score != score:
        return None
    return next(name for name, low, _ in BANDS if score > low or (score == low and low != BANDS[0][1]))


def read_hooks(event: Event, counting: Counting = "achievement") -> Verdict:
    """Count the scored hooks of an event.

    ``new_achievement`` says no difficulty: each name it has counts by its own, and not at all where hooks with a
    difficulty stand on the same event. ``hooks_triggered`` is read where ``event_metadata`` is missing.
    """
    if not event.event_metadata and not event.hooks_triggered:
        return _NOTHING
    hooks = event.event_metadata or [Hook(hook_name=name) for name in event.hooks_triggered or []]
    named = [(_singular(hook.hook_name), hook) for hook in hooks if hook.hook_name]
    tiered = any(name in WEIGHTS and name != "invalid_action" for name, _ in named)
    counts, achievements, reasons, unknown, suspect, unnamed = {}, [], [], [], 0, 0
    for name, hook in named:
        names = (hook.data.achievements if hook.data else None) or []
        if name == "invalid_action":
            counts[name] = counts.get(name, 0) + 1
            reasons.append((hook.data.reason if hook.data else None) or "")
            suspect += _is_suspect(hook, event)
        elif name in WEIGHTS:
            counts[name] = counts.get(name, 0) + (len(names) if names and counting == "achievement" else 1)
            achievements += names
            unnamed += not names
        elif name == _BY_NAME and not tiered:
            for key, n in count_by_name(names, counting).items():
                counts[key] = counts.get(key, 0) + n
            achievements += [n for n in names if n in TIER_OF]
            unknown += [n for n in names if n not in TIER_OF]
            unnamed += not names
    return Verdict(counts, tuple(achievements), suspect, tuple(reasons), unnamed, tuple(unknown))


def count_by_name(names: Iterable[str], counting: Counting = "achievement") -> dict[str, int]:
    """Count achievements by the difficulty of their names; ``"hook"`` counts each difficulty once."""
    counts: dict[str, int] = {}
    for name in names:
        if name in TIER_OF:
            key = f"{TIER_OF[name]}_achievement"
            counts[key] = counts.get(key, 0) + 1 if counting == "achievement" else 1
    return counts


def derive(events: list[Event], counting: Counting = "achievement") -> list[Verdict]:
    """Find achievements in the states of events without hooks.

    An achievement counts once, at the first event whose state has it and no state before had. The first state of a
    trace is the start: what it has is not counted.
    """
    seen: set[str] | None = None
    verdicts = []
    for event in events:
        new: list[str] = []
        for raw in (event.system_state_before, event.system_state_after):
            state = peek(raw, State)
            shown = (state.public_state or state.observation) if state else None
            if shown is None or shown.achievements_status is None:
                continue
            now = {name for name, got in shown.achievements_status.items() if got and name in TIER_OF}
            new += sorted(now - seen) if seen is not None else []
            seen = now | (seen or set())
        verdicts.append(Verdict(count_by_name(new, counting), tuple(new), 0, ()))
    return verdicts


def _singular(name: str) -> str:
    """Return a hook's name as in `WEIGHTS`: newer writers use the plural."""
    return name if name in WEIGHTS else name.strip().lower().replace("-", "_").removesuffix("s")


def _is_suspect(hook: Hook, event: Event) -> bool:
    """Tell whether a verdict compares one action with what a whole turn of several actions did."""
    if hook.data is not None and hook.data.suspect is not None:
        return hook.data.suspect
    return isinstance(event.actions, list) and len(event.actions) > 1


def _disagrees(event: Event, verdict: Verdict) -> bool:
    """Tell whether the event's own ``metadata.invalid_action`` says other than the hook."""
    says = event.metadata.invalid_action if event.metadata else None
    return says is not None and says != ("invalid_action" in verdict.counts)


def _mismatch(session: Session, unlocked: frozenset[str]) -> bool:
    """Tell whether episode_results names other achievements than the events, or another number of them."""
    named = session.claimed is not None and session.claimed != unlocked
    return named or (session.n_claimed is not None and session.n_claimed != len(unlocked))


def score_counts(counts: Mapping[str, int], weights: Mapping[str, float]) -> EventScore:
    """Return Σ count × weight, and its symbol; ``counts`` is empty where nothing is scored."""
    score = 0.0
    for name, n in counts.items():
        score += n * weights[name]
    score = round(score, _DIGITS) + 0.0
    return EventScore(score, ("+" if score > 0 else "-" if score < 0 else "0") if counts else "")


def check_rules(weights: Mapping[str, float], counting: Counting) -> dict[str, float]:
    """Complete the weights by those of `WEIGHTS`; ValueError for a name or a counting that is not known."""
    if unknown := [name for name in weights if name not in WEIGHTS]:
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in ("achievement", "hook"):
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}
