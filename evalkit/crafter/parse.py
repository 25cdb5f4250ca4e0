"""Parse one file: what a trace says of its session, the verdicts of its hooks, and the records of both."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from evalkit.crafter.format import (
    TIER_OF,
    UNKNOWN,
    WEIGHTS,
    Event,
    Hook,
    HookData,
    Metadata,
    Observation,
    OtherShapeError,
    State,
    Trace,
    first_map,
    peek,
    read_trace,
    without_images,
)
from evalkit.crafter.scoring import Hooks
from evalkit.crafter.table import RECORDS
from evalkit.io import BrokenFileError
from evalkit.io.limits import MOST_MATCHED
from evalkit.kinds import Parsed

Tokens = tuple[int | None, ...]  # prompt, completion, total
NO_TOKENS: Tokens = (None, None, None)
_EPISODE_COLUMNS = [column.name for column in RECORDS["episodes"]]
_BY_NAME = "new_achievement"
_TIME = msgspec.json.Decoder(datetime | float | None)
_EPOCH, _EPOCH_UTC, _MILLISECOND = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_EPISODE = re.compile(r"(?:^|_)episode_\d+_")
_ID_TAIL = re.compile(r"_?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}_\d{6}|\d{9,})$", re.IGNORECASE)
_OPENING = 4  # events in which the first observation stands, if there is any
_DEAREST = 1e9  # US dollars of a call; larger values are no prices
_LATEST = 4e9  # epoch seconds; later times can't be those of a trace


class Invalid(NamedTuple):
    """A verdict of invalid action; suspect if one action was compared with the effect of a turn of several."""

    action: str | None
    place: int | None  # among the event's actions; if only the action's name is given, the first of that name
    reason: str
    suspect: bool


class Verdict(NamedTuple):
    """The verdicts of one event's hooks; they don't depend on weights or the way of counting."""

    hooks: Hooks = ()
    achievements: tuple[str, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    has_unnamed: bool = False  # an achievement hook names nothing
    has_unknown: bool = False  # new_achievement names what the game does not have


NOTHING = Verdict()


class Judged(NamedTuple):
    """A trace: what it says of its session (the columns of a record that it tells), and its verdicts by event."""

    session: dict[str, Any]
    events: list[Event]
    verdicts: list[Verdict]
    unlocked: frozenset[str] | None  # None where the trace does not show it
    error: str | None  # message of an error entry, perhaps empty; None without such an entry
    recovered: str  # when the file was read, for the ledger


def parse_file(path: str, data: bytes | OSError) -> Parsed:
    """Parse one file into a row of `table.RECORDS` for its episode, and one for each event."""
    if isinstance(data, OSError):
        return Parsed("failed", f"{type(data).__name__}: {data.strerror or data}")
    try:
        judged = judge_trace(data)
    except OtherShapeError as error:
        return Parsed("skipped", str(error))
    except BrokenFileError as error:
        return Parsed("failed", str(error))
    rows, turns, n_actions, tokens, cost = [], set(), None, NO_TOKENS, None
    for position, (event, verdict) in enumerate(zip(judged.events, judged.verdicts, strict=True)):
        kind, turn, names, total = event.kind, event.turn, event.action_names, None
        if names is not None:
            n_actions = (n_actions or 0) + len(names)
        if turn is not None:
            turns.add(turn)
        if kind == "language_model":
            call_tokens = tokens_of(event)
            tokens, total = add_tokens(tokens, call_tokens), call_tokens[2]
        if type(event.cost) in (int, float) and 0 <= event.cost < _DEAREST:
            cost = (cost or 0) + event.cost
        rows.append((position, turn, kind, names, *_verdict_columns(verdict, names or ()), total))
    episode = {
        **judged.session,
        "events": len(rows),
        "turns": len(turns) or None,
        "actions": n_actions,
        "can_tell": judged.unlocked is not None,
        "tokens_in": tokens[0],
        "tokens_out": tokens[1],
        "total_tokens": tokens[2],
        "cost": cost,
    }
    return Parsed("used", judged.recovered, {"episodes": [tuple(map(episode.get, _EPISODE_COLUMNS))], "events": rows})


def _verdict_columns(verdict: Verdict, actions: Sequence) -> tuple:
    """Return hooks, suspects, achievements and reasons, the reasons at the places of their actions."""
    if verdict is NOTHING:
        return None, 0, None, None
    reasons: list[str | None] = [None] * len(actions)
    for _, place, reason, _ in verdict.invalid:
        if place is None:
            reasons.append(reason)
        else:
            before = reasons[place]
            reasons[place] = reason if before is None else f"{before}; {reason}"
    return (
        " ".join([f"{name}:{n}:{known}" for name, n, known in verdict.hooks]) or None,
        sum([one.suspect for one in verdict.invalid]),
        " ".join(verdict.achievements) or None,
        reasons if verdict.invalid else None,
    )


def judge_trace(data: bytes, *, images: bool = False) -> Judged:
    """Read a trace and all its hooks; if no event has one, achievements are derived from the changes between states.

    Without `images`, those of its states are empty. Raises as `read_trace`.
    """
    try:
        trace, notes = read_trace(data if images else without_images(data))
    except BrokenFileError:  # as a whole, so that the reason names the right place
        trace, notes = read_trace(data)
    events, entries = trace.event_history or [], trace.session_metadata or []
    config = [entry.data for entry in entries if entry.data] + ([trace.metadata] if trace.metadata else [])
    session = read_session(trace, config, first_map(data))
    derived = not any(event.event_metadata or event.hooks_triggered for event in events)
    verdicts = derive(events) if derived else [read_hooks(event) for event in events]
    scored = [verdict for verdict in verdicts if verdict is not NOTHING]
    named = frozenset([name for verdict in scored for name in verdict.achievements])
    errors = [entry.data for entry in entries if entry.metadata_type == "error"]
    error = ((errors[0] and errors[0].error_message) or "") if errors else None
    claimed = _first([m.achievements for m in config if m.achievements is not None])  # by episode_results
    n_claimed = _first([m.num_achievements for m in config])
    flags = {
        "aborted": not events,
        "error_entry": error is not None,
        "derived": derived and bool(named),
        "unnamed_achievements": any(verdict.has_unnamed for verdict in scored),
        "unknown_achievements": any(verdict.has_unknown for verdict in scored),
        "no_environment_events": bool(events) and not named and all(e.kind != "environment" for e in events),
        "suspect_invalid_actions": any(one.suspect for verdict in scored for one in verdict.invalid),
        "verdicts_disagree": any(  # what the event itself says, and what the hook does
            event.metadata is not None and event.metadata.invalid_action not in (None, bool(verdict.invalid))
            for event, verdict in zip(events, verdicts, strict=True)
        ),
    }
    can_tell = not any(flags[flag] for flag in ("aborted", "unnamed_achievements", "no_environment_events"))
    differs = claimed is not None and {name for name, got in claimed.items() if got} != named
    flags["results_mismatch"] = can_tell and (differs or n_claimed not in (None, len(named)))
    finished = None if claimed is None and n_claimed is None else "finished"
    session |= {
        "status": "aborted" if not events else "error" if error is not None else finished,
        "flags": [*(flag for flag, is_so in flags.items() if is_so), *notes],
        "foreign": any(not known for verdict in scored for *_, known in verdict.hooks),
    }
    recovered = ", ".join([name + f" ({what})" * bool(what) for name, what in notes.items()])
    return Judged(session, events, verdicts, named if can_tell else None, error, recovered)


def read_hooks(event: Event) -> Verdict:
    """Read the scored hooks of an event; ``hooks_triggered`` is read where ``event_metadata`` is missing.

    Names of ``new_achievement``, which has no difficulty, count by their own, unless hooks of the event have one.
    """
    if not event.event_metadata and not event.hooks_triggered:
        return NOTHING
    entries = event.event_metadata or [Hook(hook_name=name) for name in event.hooks_triggered or []]
    named = [(_singular(hook.hook_name), hook) for hook in entries if hook.hook_name]
    by_difficulty = any(name in WEIGHTS and name != "invalid_action" for name, _ in named)
    hooks, achievements, invalid = list[tuple[str, int, int]](), list[str](), list[Invalid]()
    has_unnamed = has_unknown = False
    for name, hook in named:
        data, known = hook.data or HookData(), int(bool(event.event_metadata) and hook.hook_name in WEIGHTS)
        names = data.achievements or []
        if name == "invalid_action":
            hooks.append((name, 1, known))
            invalid.append(_read_invalid(data, event.action_names or []))
        elif name in WEIGHTS:
            hooks.append((name, max(len(names), 1), known))
            achievements += names
            has_unnamed |= not names
        elif name == _BY_NAME and not by_difficulty:
            of_game = [n for n in names if n in TIER_OF]
            hooks += hooks_of_names(of_game)
            achievements += of_game
            has_unknown |= len(of_game) < len(names)
            has_unnamed |= not names
    return Verdict(tuple(hooks), tuple(achievements), tuple(invalid), has_unnamed, has_unknown)


def _singular(name: str) -> str:
    """Return a hook's name as in `WEIGHTS`: newer writers use the plural."""
    return name if name in WEIGHTS else name.strip().lower().replace("-", "_").removesuffix("s")


def _read_invalid(data: HookData, actions: Sequence[str | None]) -> Invalid:
    """Read a verdict of invalid action: which of the turn's actions it is about, and whether it is suspect."""
    place = data.action_index
    if type(place) is not int or not 0 <= place < len(actions):
        place = actions.index(data.action) if data.action in actions else 0 if actions else None
    suspect = len(actions) > 1 if data.suspect is None else data.suspect
    return Invalid(data.action, place, data.reason or "", suspect)


def hooks_of_names(names: Iterable[str]) -> Hooks:
    """Return the hooks that achievements would have had: one per difficulty, with the number of its names."""
    counts = Counter([f"{TIER_OF[name]}_achievement" for name in names])
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


def read_session(trace: Trace, config: list[Metadata], world: str | None) -> dict[str, Any]:
    """Collect what a trace says about its whole session, wherever it says so.

    `config` is the session's metadata from all its possible places, and `world` the digest of its map.
    """
    events = trace.event_history or []
    where, model = "session_metadata", _first([m.model_name or m.model for m in config])
    if model is None:
        where, model = "event_history", _first(_models(events))
    if model is None:
        where, model = "session_id", _model_in_id(trace.session_id)
    instance, experiment = _first([m.task_instance_id for m in config]), _first([m.experiment_id for m in config])
    seeds = [m.seed for m in config] + [m.of_task.seed for m in config]
    number, seed = _first([m.instance_num for m in config]), _first([str(s) for s in seeds if type(s) in (int, str)])
    told = chain(config, (event.metadata for event in events if event.metadata))
    opening = [event for event in events[:_OPENING] if event.kind != "language_model"]
    seen = _first(observed(raw) for event in opening for raw in (event.system_state_before, event.system_state_after))
    known = {  # what identifies a task, the surest first
        "map": world and f"world-{world}",
        "seed": seed and f"seed-{seed}",
        "instance": None if number is None or experiment is None else f"{experiment}/instance-{number}",
        "map_hash": seen and seen.world_material_map_hash and f"map-{seen.world_material_map_hash}",
        "id": instance,
    }
    task_source, task = next(((source, task) for source, task in known.items() if task), (None, None))
    started, duration = span_of(trace)
    return {
        "session_id": trace.session_id,
        "model_name": model or UNKNOWN,
        "model_source": where if model else None,
        "task_id": task,
        "task_source": task_source,
        "task_instance_id": instance,
        "experiment": experiment,
        "difficulty": _first(level for m in told for level in (m.difficulty, m.of_task.difficulty)) or UNKNOWN,
        "agent_type": _first([m.agent_type for m in config]),
        "seed": seed,
        "max_turns": _first([m.max_turns for m in config]),
        "max_steps": seen and seen.max_steps_episode,
        "started": started,
        "duration": duration,
    }


def span_of(trace: Trace) -> tuple[int | None, float | None]:
    """Return when a session began (epoch milliseconds), and how long it lasted (seconds).

    It begins when it was created, else at the first time in it, and ends at the last one; without a zone, in UTC.
    """
    entries, events = trace.session_metadata or [], trace.event_history or []
    stamps = [trace.created_at, *[entry.timestamp for entry in (*entries[:1], *entries[-1:])]]
    stamps += [event.time for event in (*events[:1], *events[-1:])]
    times = [time for time in map(_time, stamps) if time is not None]
    started, ended = times[0] if times else None, max(times[1:], default=None)
    return started, None if started is None or ended is None or ended < started else (ended - started) / 1000


def _time(raw: Any) -> int | None:
    """Parse a time, given as text or in epoch seconds; None for anything else."""
    try:
        time = _TIME.decode(raw) if isinstance(raw, msgspec.Raw) else None
    except msgspec.ValidationError:
        return None
    if isinstance(time, datetime):
        return (time - (_EPOCH if time.tzinfo is None else _EPOCH_UTC)) // _MILLISECOND
    return round(time * 1000) if time is not None and 0 < time < _LATEST else None


def tokens_of(event: Event) -> Tokens:
    """Return the tokens of a call of a language model: prompt, completion, total."""
    inner = event.metadata or event  # the names are the same
    return (
        _first((inner.prompt_tokens, event.prompt_tokens, event.input_tokens)),
        _first((inner.completion_tokens, event.completion_tokens, event.output_tokens)),
        _first((inner.total_tokens, event.total_tokens)),
    )


def add_tokens(a: Tokens, b: Tokens) -> Tokens:
    """Add tokens; None where both are missing."""
    return tuple([y if x is None else x if y is None else x + y for x, y in zip(a, b, strict=True)])


def _models(events: list[Event]) -> Iterator[str | None]:
    for event in events:
        if event.metadata:
            yield event.metadata.model_name or event.metadata.model
        yield event.model_name
        for records in (event.llm_call_records, event.call_records):
            for call in peek(records, list[Metadata]) or []:
                yield call.model
        if (state := peek(event.system_state_before, State)) is not None:
            yield state.request_model


def _model_in_id(session_id: str | None) -> str | None:
    """Find the model in an id such as ``episode_0_gpt-4.1-nano_1753815116234099_<uuid>``."""
    if not session_id or len(session_id) > MOST_MATCHED or not (start := _EPISODE.search(session_id)):
        return None
    rest = session_id[start.end() :]
    while tail := _ID_TAIL.search(rest):
        rest = rest[: tail.start()]
    return rest or None


def _first(values: Iterable[Any]) -> Any:
    """Return the first value that is neither None nor empty; 0 counts."""
    for value in values:  # twice as fast as next() over a generator
        if value is not None and value != "":
            return value
    return None
