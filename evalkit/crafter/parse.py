"""Parse one file into records of its session and its hooks' verdicts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

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
from evalkit.crafter.table import RECORDS
from evalkit.io import BrokenFileError
from evalkit.io.frames import cut_texts
from evalkit.io.text import MOST_MATCHED
from evalkit.kinds import Parsed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_WORD_END = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s-]+")
_NEW = ("new_achievement", "achievement_unlocked", "unlocked_achievement", "achievement")  # hooks without a difficulty
_EPISODE = re.compile(r"(?:^|_)episode_\d+_")
_ID_TAIL = re.compile(r"_?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}_\d{6}|\d{9,})$", re.IGNORECASE)
_OPENING = 4  # number of first events to search for an observation
_DEAREST = 1e9  # US dollars per call; larger values are not prices
_LATEST = 4e9  # epoch seconds; larger values are not times of a trace


class Invalid(NamedTuple):
    """The verdict that an action is invalid; suspect if it was judged by the effect of a turn of several actions."""

    action: str | None
    reason: str
    suspect: bool


class Verdict(NamedTuple):
    """The verdicts of one event's hooks, which do not depend on weights or on the way of counting."""

    hooks: tuple[str, ...] = ()  # names in `WEIGHTS`, one for each achievement of a hook (at least one)
    original_hooks: tuple[str, ...] = ()  # names of the hooks that the original trace_eval counts
    achievements: tuple[str, ...] = ()
    invalid: tuple[Invalid, ...] = ()
    has_unnamed: bool = False  # whether a hook or state lacks the name of an achievement of the game


class Judged(NamedTuple):
    """A trace: its session, as columns of a record, and the verdicts on each event."""

    session: dict[str, Any]
    events: list[Event]
    verdicts: list[Verdict]
    unlocked: frozenset[str] | None  # None if the trace does not show them
    error: str | None  # message of an error entry, perhaps empty; None without such an entry
    recovered: str  # what was repaired when the file was read, for the ledger


class EventRow(NamedTuple):
    """A row of the table of events."""

    event: int
    step: int | None
    kind: str
    actions: int | None = None
    hooks: Sequence[str] = ()
    original_hooks: Sequence[str] = ()
    suspect_invalid_actions: int = 0
    achievements: Sequence[str] = ()
    invalid: Sequence[str | None] = ()
    reasons: Sequence[str] = ()


def parse_file(path: str, data: bytes) -> Parsed:
    """Parse one file into rows of `table.RECORDS`: one for its episode, and one for each event."""
    try:
        judged = judge_trace(data)
    except BrokenFileError as error:
        several = data.count(b'"event_history"')
        hint = f"; {several} traces in one file: give each its own" if several > 1 else ""
        return Parsed("skipped" if isinstance(error, OtherShapeError) else "failed", f"{error}{hint}")
    return Parsed("used", judged.recovered, rows_of(judged))


def rows_of(judged: Judged) -> dict[str, Sequence[tuple]]:
    """Return the rows of a trace for each table of `table.RECORDS`."""
    rows = list[EventRow]()
    steps = set[int]()
    actions = list[int]()
    costs = list[float]()
    for position, (event, verdict) in enumerate(zip(judged.events, judged.verdicts, strict=True)):
        row = EventRow(position, event.step, event.kind)
        if row.step is not None:
            steps.add(row.step)
        if isinstance(event.actions, list):
            row = row._replace(actions=len(event.actions))
            actions.append(len(event.actions))
        if type(event.cost) in (int, float) and 0 <= event.cost < _DEAREST:
            costs.append(event.cost)
        if any(verdict):  # few events have hooks, achievements or invalid actions
            row = row._replace(
                hooks=verdict.hooks,
                original_hooks=verdict.original_hooks,
                suspect_invalid_actions=sum([action.suspect for action in verdict.invalid]),
                achievements=verdict.achievements,
                invalid=[action.action for action in verdict.invalid],
                reasons=[action.reason for action in verdict.invalid],
            )
        rows.append(row)
    tokens_in, tokens_out = tokens_of(judged.events)
    episode = {
        **judged.session,
        "events": len(rows),
        "turns": len(steps) or None,
        "actions": sum(actions) if actions else None,
        "can_tell": judged.unlocked is not None,
        "tokens_in": tokens_in,
        "tokens_out": tokens_out,
        "cost": sum(costs) if costs else None,
    }
    return {"episodes": [tuple([episode[column.name] for column in RECORDS["episodes"]])], "events": rows}


def columns_of(traces: Mapping[str, Mapping[str, Sequence[tuple]]]) -> dict[str, dict[str, list]]:
    """Return the rows of traces as lists, by table and column of `RECORDS`; Arrow is slower for few traces."""
    tables = {}
    for name, columns in RECORDS.items():
        rows = [row for trace in traces.values() for row in trace.get(name, ())]
        values = zip(*rows, strict=True) if rows else [()] * len(columns)
        tables[name] = {column.name: cut_texts(own, column.dtype) for column, own in zip(columns, values, strict=True)}
    tables["episodes"]["source"] = [path for path, trace in traces.items() if trace]
    return tables


def judge_trace(data: bytes, *, images: bool = False) -> Judged:
    """Read a trace and its hooks; without hooks, derive achievements from states. Raise the errors of `read_trace`."""
    try:
        trace, notes = read_trace(data if images else without_images(data))
    except BrokenFileError:  # read the whole file, so that the error has the right position
        trace, notes = read_trace(data)
    events, entries = trace.event_history or [], trace.session_metadata or []
    config = [entry.data for entry in entries if entry.data] + ([trace.metadata] if trace.metadata else [])
    derived = not any(event.event_metadata or event.hooks_triggered for event in events)
    verdicts = derive(events) if derived else [read_hooks(event) for event in events]
    named, kinds = set[str](), set[str]()
    has_unnamed = has_suspects = disagree = False
    for event, verdict in zip(events, verdicts, strict=True):
        kinds.add(event.kind)
        named.update(verdict.achievements)
        has_unnamed |= verdict.has_unnamed
        for action in verdict.invalid:
            has_suspects |= action.suspect
        claim = event.metadata.invalid_action if event.metadata else None
        disagree |= claim not in (None, bool(verdict.invalid))
    if not named and not derived:  # hooks with other names may contain achievements
        hooks = [hook.data for event in events for hook in event.event_metadata or ()]
        has_unnamed |= any(data and data.achievements for data in hooks)
    errors = [entry.data for entry in entries if entry.metadata_type == "error"]
    error = ((errors[0] and errors[0].error_message) or "") if errors else None
    claimed = _first([m.achievements for m in config])  # by episode_results
    n_claimed = _first([m.num_achievements for m in config])
    shows_nothing = bool(events) and not named and "environment" not in kinds
    can_tell = bool(events) and not has_unnamed and not shows_nothing
    differs = claimed is not None and names_in(claimed) != named
    flags = {
        "aborted": not events,
        "error_entry": error is not None,
        "derived": derived and bool(named),
        "unnamed_achievements": has_unnamed,
        "no_environment_events": shows_nothing,
        "suspect_invalid_actions": has_suspects,
        "verdicts_disagree": disagree,
        "results_mismatch": can_tell and (differs or n_claimed not in (None, len(named))),
    }
    status = None
    if not events:
        status = "aborted"
    elif error is not None:
        status = "error"
    elif claimed is not None or n_claimed is not None:
        status = "finished"
    session = {
        **read_session(trace, config, first_map(data)),
        "status": status,
        "flags": [*(flag for flag, is_raised in flags.items() if is_raised), *notes],
    }
    recovered = ", ".join([f"{name} ({value})" if value else name for name, value in notes.items()])
    return Judged(session, events, verdicts, frozenset(named) if can_tell else None, error, recovered)


def read_hooks(event: Event) -> Verdict:
    """Read the scored hooks of an event, from ``hooks_triggered`` if ``event_metadata`` is missing.

    Hooks without a difficulty (`_NEW`) are read last. They add only the achievements that no hook before them names,
    and none if a hook before them has no names or a name unknown to the game. An invalid action is suspect if its turn
    has several actions, unless the hook says otherwise.
    """
    if not event.event_metadata and not event.hooks_triggered:
        return Verdict()
    entries = event.event_metadata or [Hook(hook_name=name) for name in event.hooks_triggered or ()]
    # newer traces use plural names
    named = [(snake_case(hook.hook_name).removesuffix("s"), hook) for hook in entries if hook.hook_name]
    named.sort(key=lambda own: own[0] in _NEW)
    hooks: list[str] = []
    originals: list[str] = []
    achievements: list[str] = []
    invalid: list[Invalid] = []
    has_unnamed = False
    for name, hook in named:
        data = hook.data or HookData()
        if event.event_metadata and hook.hook_name in WEIGHTS:
            originals.append(name)
        names = [snake_case(one).removeprefix("achievement_") for one in data.achievements or ()]
        of_game = [one for one in names if one in TIER_OF]
        if name == "invalid_action":
            hooks.append(name)
            actions = event.action_names or [None]
            suspect = len(actions) > 1 if data.suspect is None else data.suspect
            invalid.append(Invalid(data.action or actions[0], data.reason or "", suspect))
        elif name in WEIGHTS:
            hooks += [name] * max(len(names), 1)
            achievements += of_game
            has_unnamed |= len(of_game) < max(len(names), 1)
        elif name in _NEW and not has_unnamed:
            others = [one for one in of_game if one not in achievements]
            hooks += map(_hook_of, others)
            achievements += others
            has_unnamed |= len(of_game) < len(names) or not (names or achievements)
    return Verdict(tuple(hooks), tuple(originals), tuple(achievements), tuple(invalid), has_unnamed)


def _hook_of(achievement: str) -> str:
    """Return the name of the hook that an achievement would have triggered."""
    return f"{TIER_OF[achievement]}_achievement"


def snake_case(name: str) -> str:
    """Return a name as the game spells it: ``eat_cow`` for ``Eat Cow``, ``EatCow`` or ``EAT-COW``."""
    return _WORD_END.sub("_", name.strip()).lower()


def names_in(status: Any) -> set[str]:
    """Return the unlocked achievements of a status: true keys of a mapping (values may be text), or a list's items."""
    names = set[str]()
    for name in status:
        got = status[name] if isinstance(status, Mapping) else True
        if got and str(got).lower() not in ("false", "no", "none", "0"):
            names.add(snake_case(str(name)).removeprefix("achievement_"))
    return names


def derive(events: list[Event]) -> list[Verdict]:
    """Find achievements in the states of events without hooks: one is unlocked if a state has it and none before."""
    seen: set[str] | None = None
    verdicts = []
    for event in events:
        new: list[str] = []
        has_unnamed = False
        for raw in (event.system_state_before, event.system_state_after):
            shown = observed(raw)
            status = shown.achievements_status if shown else None
            if status is None:
                continue
            now = names_in(status if isinstance(status, Mapping | list) else [status])
            has_unnamed |= not now <= TIER_OF.keys()
            now &= TIER_OF.keys()
            new += sorted(now - seen) if seen is not None else []
            seen = now | (seen or set())
        verdicts.append(Verdict(tuple(map(_hook_of, new)), (), tuple(new), (), has_unnamed))
    return verdicts


def observed(raw: Any) -> Observation | None:
    """Decode the observation in a state of an event."""
    state = peek(raw, State)
    return (state.public_state or state.observation) if state else None


def read_session(trace: Trace, config: list[Metadata], world: str | None) -> dict[str, Any]:
    """Collect the columns of a trace's session from metadata in all possible places and from the digest of its map."""
    events, entries = trace.event_history or [], trace.session_metadata or []
    where, model = "session_metadata", _first([m.model_name or m.model for m in config])
    if model is None:
        where, model = "event_history", _first(_models(events))
    session_id = trace.session_id or ""
    if model is None and len(session_id) <= MOST_MATCHED and (start := _EPISODE.search(session_id)):
        where, model = "session_id", session_id[start.end() :]  # gpt-4.1_1753815116234099_97a85950-3090-43bd-…
        while tail := _ID_TAIL.search(model):
            model = model[: tail.start()]
    tasks = [m.task_instance.metadata for m in config if m.task_instance and m.task_instance.metadata]
    difficulty = _first([m.difficulty for m in (*config, *tasks)])
    if difficulty is None:
        difficulty = _first(event.metadata.difficulty for event in events if event.metadata)

    # possible identities of the task, the most reliable first
    seed = _first([str(m.seed) for m in (*config, *tasks) if type(m.seed) in (int, str)])
    number, experiment = _first([m.instance_num for m in config]), _first([m.experiment_id for m in config])
    opening = [event for event in events[:_OPENING] if event.kind != "language_model"]
    states = [raw for event in opening for raw in (event.system_state_before, event.system_state_after)]
    seen = _first(map(observed, states))
    known = {
        "map": world and f"world-{world}",
        "seed": seed and f"seed-{seed}",
        "instance": None if number is None or experiment is None else f"{experiment}/instance-{number}",
        "map_hash": seen and seen.world_material_map_hash and f"map-{seen.world_material_map_hash}",
        "id": _first([m.task_instance_id for m in config]),
    }
    task_source, task = next(((source, task) for source, task in known.items() if task), (None, None))

    # a session starts when it was created, else at the first time in it; it ends at the last time in it
    stamps = [trace.created_at, *[entry.timestamp for entry in (*entries[:1], *entries[-1:])]]
    times = list[int]()
    for stamp in (*stamps, *[event.time for event in (*events[:1], *events[-1:])]):
        if isinstance(stamp, str):
            with suppress(ValueError):
                time = datetime.fromisoformat(stamp)
                times.append(((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND)
        elif type(stamp) in (int, float) and 0 < stamp < _LATEST:
            times.append(round(stamp * 1000))
    duration = None
    if len(times) > 1 and max(times[1:]) >= times[0]:
        duration = (max(times[1:]) - times[0]) / 1000
    return {
        "session_id": trace.session_id,
        "model_name": model or UNKNOWN,
        "model_source": where if model else None,
        "task_id": task,
        "task_source": task_source,
        "experiment": experiment,
        "difficulty": difficulty or UNKNOWN,
        "seed": seed,
        "max_turns": _first([m.max_turns for m in config]),
        "started": times[0] if times else None,
        "duration": duration,
    }


def tokens_of(events: Iterable[Event]) -> tuple[int | None, int | None]:
    """Sum the tokens that calls of language models read and wrote; None if no call records them."""
    totals: list[int | None] = [None, None]
    for event in events:
        if event.kind == "language_model":
            inner = event.metadata or event  # both use the same names
            read = _first((inner.prompt_tokens, event.prompt_tokens, event.input_tokens))
            written = _first((inner.completion_tokens, event.completion_tokens, event.output_tokens))
            for place, n in enumerate((read, written)):
                if n is not None:
                    totals[place] = (totals[place] or 0) + n
    return totals[0], totals[1]


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


def _first(values: Iterable[Any]) -> Any:
    """Return the first value that is neither None nor empty; 0 counts."""
    for value in values:  # twice as fast as next() over a generator
        if value is not None and value != "":
            return value
    return None
