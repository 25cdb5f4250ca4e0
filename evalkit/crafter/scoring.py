"""Scores of session traces: what hooks say, as integer counts, times weights."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from evalkit.crafter.format import Event, Hook, State, Trace
from evalkit.crafter.game import TIER_OF
from evalkit.crafter.parse import Session, describe, events_of, kind_of, peek

Counting = Literal["achievement", "hook"]
COUNTINGS: tuple[Counting, ...] = ("achievement", "hook")

WEIGHTS = {"easy_achievement": 1.0, "medium_achievement": 2.5, "hard_achievement": 5.0, "invalid_action": -0.05}

BANDS = (  # name, lowest score, what it means; the first that fits
    ("Excellent", 2.0, "multiple achievements"),
    ("Good", 1.0, "some achievements"),
    ("Limited", 0.0, "few achievements"),
    ("Poor", float("-inf"), "dominated by invalid actions"),
)

NO_SCORED_EVENTS = "(no scored events)"

DIGITS = 10  # decimals kept of a sum: 3 × 0.1 − 0.3 is 0, and −0.0 is 0
_BY_NAME = "new_achievement"


class EventScore(NamedTuple):
    """Score of one event, and its symbol in the trajectory: ``+``, ``-``, ``0`` or nothing."""

    score: float
    symbol: str


class Verdict(NamedTuple):
    """What the hooks of one event say.

    `hooks` are the scored ones in their order: the name as in `WEIGHTS`, and the number of achievements it names (1
    for a hook without names). `foreign` are those that the original trace_eval does not know.
    """

    hooks: tuple[tuple[str, int], ...]
    achievements: tuple[str, ...]
    suspect: int  # invalid actions judged over a whole turn of several actions
    reasons: tuple[str, ...]  # of the invalid actions
    unnamed: int = 0  # achievement hooks that name nothing
    unknown: tuple[str, ...] = ()  # achievements of new_achievement that the game does not have
    foreign: bool = False

    def counts(self, counting: Counting) -> dict[str, int]:
        """Count every achievement a hook names, or every hook once."""
        counts: dict[str, int] = {}
        for name, n in self.hooks:
            counts[name] = counts.get(name, 0) + (n if counting == "achievement" else 1)
        return counts


_NOTHING = Verdict((), (), 0, ())


class Scored(NamedTuple):
    """A scored trace, event by event; `score` is that of `by_counting` which was asked for."""

    session: Session
    verdicts: list[Verdict]
    counts: dict[str, int]
    counting: Counting
    score: float
    by_counting: dict[Counting, float]
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
    verdicts = derive(events) if derived else [read_hooks(event) for event in events]
    said = [verdict for verdict in verdicts if verdict is not _NOTHING]
    trajectory = "".join([score_event(v, weights, counting).symbol for v in said]) or NO_SCORED_EVENTS
    named = frozenset(name for v in said for name in v.achievements)
    suspect = sum([v.suspect for v in said])
    flags = {
        "aborted": not events,
        "error_entry": session.error is not None,
        "derived": derived and bool(named),
        "unnamed_achievements": any(v.unnamed for v in said),
        "unknown_achievements": any(v.unknown for v in said),
        "unknown_to_original": counting == "hook" and any(v.foreign for v in said),
        "no_environment_events": bool(events) and not named and all(kind_of(e) != "environment" for e in events),
        "suspect_invalid_actions": suspect > 0,
        "verdicts_disagree": any(_disagrees(e, v) for e, v in zip(events, verdicts, strict=True)),
    }
    can_tell = not any(flags[flag] for flag in ("aborted", "unnamed_achievements", "no_environment_events"))
    flags["results_mismatch"] = _mismatch(session, named) if can_tell else False
    totals: dict[Counting, float] = {way: _total(said, weights, way) for way in COUNTINGS}
    return Scored(
        session=session,
        verdicts=verdicts,
        counts=_sum_counts(said, counting),
        counting=counting,
        score=totals[counting],
        by_counting=totals,
        trajectory=trajectory,
        unlocked=named if can_tell else None,
        suspect=suspect,
        flags=[flag for flag, is_so in flags.items() if is_so],
    )


def _sum_counts(verdicts: Iterable[Verdict], counting: Counting) -> dict[str, int]:
    counts = dict.fromkeys(WEIGHTS, 0)
    for verdict in verdicts:
        for name, n in verdict.hooks:
            counts[name] += n if counting == "achievement" else 1
    return {name: n for name, n in counts.items() if n}


def _total(verdicts: Iterable[Verdict], weights: Mapping[str, float], counting: Counting) -> float:
    """Return Σ count × weight; per hook the running sum over events, as the original trace_eval has it."""
    if counting == "achievement":
        return score_counts(_sum_counts(verdicts, counting), weights).score
    total = 0.0
    for verdict in verdicts:  # no sum(): newer Pythons round it otherwise
        total += score_event(verdict, weights, counting).score
    return total


def band(score: float) -> str | None:
    """Return the band of a score: above 2.0 Excellent, [1.0, 2.0] Good, [0, 1.0) Limited, below 0 Poor."""
    if score != score:
        return None
    score = round(score, DIGITS)
    return next(name for name, low, _ in BANDS if score > low or (score == low and low != BANDS[0][1]))


def read_hooks(event: Event) -> Verdict:
    """Read the scored hooks of an event.

    ``new_achievement`` says no difficulty: each name it has counts by its own, and not at all where hooks with a
    difficulty stand on the same event. ``hooks_triggered`` is read where ``event_metadata`` is missing.
    """
    if not event.event_metadata and not event.hooks_triggered:
        return _NOTHING
    entries = event.event_metadata or [Hook(hook_name=name) for name in event.hooks_triggered or []]
    named = [(_singular(hook.hook_name), hook) for hook in entries if hook.hook_name]
    tiered = any(name in WEIGHTS and name != "invalid_action" for name, _ in named)
    hooks, achievements, reasons, unknown, suspect, unnamed = [], [], [], [], 0, 0
    foreign = False
    for name, hook in named:
        before = len(hooks)
        names = (hook.data.achievements if hook.data else None) or []
        if name == "invalid_action":
            hooks.append((name, 1))
            reasons.append((hook.data.reason if hook.data else None) or "")
            suspect += _is_suspect(hook, event)
        elif name in WEIGHTS:
            hooks.append((name, max(len(names), 1)))
            achievements += names
            unnamed += not names
        elif name == _BY_NAME and not tiered:
            hooks += hooks_of_names(names)
            achievements += [n for n in names if n in TIER_OF]
            unknown += [n for n in names if n not in TIER_OF]
            unnamed += not names
        foreign |= len(hooks) > before and (hook.hook_name not in WEIGHTS or not event.event_metadata)
    return Verdict(tuple(hooks), tuple(achievements), suspect, tuple(reasons), unnamed, tuple(unknown), foreign)


def hooks_of_names(names: Iterable[str]) -> list[tuple[str, int]]:
    """Make the hooks that achievements would have had: one per difficulty, with the number of its names."""
    return list(Counter(f"{TIER_OF[name]}_achievement" for name in names if name in TIER_OF).items())


def derive(events: list[Event]) -> list[Verdict]:
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
        verdicts.append(Verdict(tuple(hooks_of_names(new)), tuple(new), 0, (), foreign=bool(new)))
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
    return says is not None and says != any(name == "invalid_action" for name, _ in verdict.hooks)


def _mismatch(session: Session, unlocked: frozenset[str]) -> bool:
    """Tell whether episode_results names other achievements than the events, or another number of them."""
    named = session.claimed is not None and session.claimed != unlocked
    return named or (session.n_claimed is not None and session.n_claimed != len(unlocked))


def score_event(verdict: Verdict, weights: Mapping[str, float], counting: Counting) -> EventScore:
    """Score one event, and give its symbol.

    Per achievement the symbol is the sign of the score. Per hook both are those of the original trace_eval: a running
    sum, and the sign of the last hook that weighs anything; no symbol where the sum is 0.
    """
    if counting == "achievement":
        return score_counts(verdict.counts(counting), weights)
    score, symbol = 0.0, ""
    for name, _ in verdict.hooks:
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
    """Complete the weights by those of `WEIGHTS`; ValueError for a name or a counting that is not known."""
    if unknown := [name for name in weights if name not in WEIGHTS]:
        raise ValueError(f"no hook is called {unknown[0]!r}; weights have the names {', '.join(WEIGHTS)}")
    if counting not in COUNTINGS:
        raise ValueError(f"unknown counting {counting!r}: 'achievement' or 'hook'")
    return {**WEIGHTS, **weights}
