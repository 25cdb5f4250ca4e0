"""Parse one file: its session, the verdicts of its hooks, and the records of both."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from evalkit.crafter.format import UNKNOWN, Event, Metadata, OtherShapeError, State, Trace, first_map, peek, read_trace
from evalkit.crafter.scoring import NOTHING, Verdict, derive, observed, read_hooks, read_invalid
from evalkit.io import BrokenFileError, Entry
from evalkit.io.limits import MOST_MATCHED
from evalkit.kinds import Parsed

Tokens = tuple[int | None, ...]  # prompt, completion, total
NO_TOKENS: Tokens = (None, None, None)
_NOTHING = (None, 0, None, None)  # the columns of an event without scored hooks
_TIME = msgspec.json.Decoder(datetime | float | None)
_EPOCH, _EPOCH_UTC, _MILLISECOND = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
_EPISODE = re.compile(r"(?:^|_)episode_\d+_")
_ID_TAIL = re.compile(r"_?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}_\d{6}|\d{9,})$", re.IGNORECASE)
_OPENING = 4  # events in which the first observation stands, if there is any
_DEAREST = 1e9  # US dollars of a call; larger values are no prices
_LATEST = 4e9  # epoch seconds; later times can't be those of a trace


class Session(NamedTuple):
    """What a trace says about its whole session; ``None`` where it says nothing. The first twelve are stored."""

    session_id: str | None
    model_name: str
    model_source: str | None  # where the name was found
    task_id: str | None
    task_source: str | None  # map, seed, instance, map_hash or id: the first of these that the trace has
    task_instance_id: str | None
    experiment: str | None
    difficulty: str
    agent_type: str | None
    seed: str | None
    max_turns: int | None
    max_steps: int | None
    claimed: frozenset[str] | None  # achievements unlocked according to episode_results
    n_claimed: int | None
    error: str | None  # message of an error entry, perhaps empty; None without such an entry


class Judged(NamedTuple):
    """The verdicts of a trace's hooks, event by event; they don't depend on weights or the way of counting."""

    trace: Trace
    session: Session
    events: list[Event]
    verdicts: list[Verdict]
    unlocked: frozenset[str] | None  # None where the trace does not show it
    flags: list[str]  # in the order of `table.FLAGS`, then what was recovered
    foreign: bool  # some hooks are unknown to the original trace_eval

    @property
    def status(self) -> str | None:
        """How the episode ended: aborted (no events), error, or finished (it has results)."""
        if not self.events:
            return "aborted"
        if self.session.error is not None:
            return "error"
        return None if self.session.claimed is None and self.session.n_claimed is None else "finished"


def parse_file(path: str, data: bytes | OSError) -> Parsed:
    """Parse one file into a row of `table.RECORDS` for its episode, and one for each event."""
    entry, judged = open_trace(path, data)
    if judged is None:
        return Parsed(entry.status, entry.reason)
    rows, turns, n_actions, tokens = [], set(), None, NO_TOKENS
    costs = [event.cost for event in judged.events if type(event.cost) in (int, float) and 0 <= event.cost < _DEAREST]
    for position, (event, verdict) in enumerate(zip(judged.events, judged.verdicts, strict=True)):
        kind, turn, total = event.kind, event.turn, None
        if (names := event.action_names) is not None:
            n_actions = (n_actions or 0) + len(names)
        if turn is not None:
            turns.add(turn)
        if kind == "language_model":
            call_tokens = tokens_of(event)
            tokens, total = add_tokens(tokens, call_tokens), call_tokens[2]
        columns = _NOTHING if verdict is NOTHING else _verdict_columns(event, verdict)
        rows.append((position, turn, kind, names, *columns, total))
    about = (*judged.session[:12], *span_of(judged.trace), judged.status)
    counts = (
        len(rows),
        len(turns) or None,
        n_actions,
        judged.unlocked is not None,
        *tokens,
        sum(costs) if costs else None,
    )
    episode = (*about, *counts, judged.flags, judged.foreign)
    return Parsed("used", entry.reason, {"episodes": [episode], "events": rows})


def _verdict_columns(event: Event, verdict: Verdict) -> tuple:
    """Return hooks, suspects, achievements and reasons, the reasons at the positions of their actions."""
    by_action: list[list[str]] = [[] for _ in (event.actions if isinstance(event.actions, list) else ())]
    for _, index, reason, _ in read_invalid(event, verdict) if verdict.invalid else ():
        if index is None:
            by_action.append([reason])
        else:
            by_action[index].append(reason)
    reasons = ["; ".join(texts) if texts else None for texts in by_action]
    return (
        " ".join([f"{name}:{n}:{known}" for name, n, known in verdict.hooks]) or None,
        verdict.suspect,
        " ".join(verdict.achievements) or None,
        reasons if verdict.invalid else None,
    )


def open_trace(path: str, data: bytes | OSError) -> tuple[Entry, Judged | None]:
    """Decode and judge a trace; return its ledger entry and, unless it was skipped or failed, the verdicts."""
    if isinstance(data, OSError):
        return Entry(path, "failed", f"{type(data).__name__}: {data.strerror or data}"), None
    try:
        trace, notes = read_trace(data)
    except OtherShapeError as error:
        return Entry(path, "skipped", str(error)), None
    except BrokenFileError as error:
        return Entry(path, "failed", str(error)), None
    reason = ", ".join(name + f" ({what})" * bool(what) for name, what in notes.items())
    return Entry(path, "used", reason), judge_trace(trace, list(notes), first_map(data))


def judge_trace(trace: Trace, notes: Sequence[str] = (), world: str | None = None) -> Judged:
    """Read all hooks of a trace; if no event has one, achievements are derived from the changes between states."""
    session, events = describe(trace, world), trace.event_history or []
    derived = not any(event.event_metadata or event.hooks_triggered for event in events)
    verdicts = derive(events) if derived else [read_hooks(event) for event in events]
    scored = [verdict for verdict in verdicts if verdict is not NOTHING]
    named = frozenset([name for verdict in scored for name in verdict.achievements])
    flags = {
        "aborted": not events,
        "error_entry": session.error is not None,
        "derived": derived and bool(named),
        "unnamed_achievements": any(verdict.unnamed for verdict in scored),
        "unknown_achievements": any(verdict.unknown for verdict in scored),
        "no_environment_events": bool(events) and not named and all(e.kind != "environment" for e in events),
        "suspect_invalid_actions": any(verdict.suspect for verdict in scored),
        "verdicts_disagree": any(  # what the event itself says, and what the hook does
            event.metadata is not None and event.metadata.invalid_action not in (None, bool(verdict.invalid))
            for event, verdict in zip(events, verdicts, strict=True)
        ),
    }
    can_tell = not any(flags[flag] for flag in ("aborted", "unnamed_achievements", "no_environment_events"))
    told = (session.claimed, session.n_claimed)  # by episode_results
    flags["results_mismatch"] = can_tell and any(
        claimed not in (None, found) for claimed, found in zip(told, (named, len(named)), strict=True)
    )
    raised = [flag for flag, is_so in flags.items() if is_so]
    foreign = any(not known for verdict in scored for *_, known in verdict.hooks)
    return Judged(trace, session, events, verdicts, named if can_tell else None, [*raised, *notes], foreign)


def describe(trace: Trace, world: str | None = None) -> Session:
    """Collect what a trace says about its whole session, wherever it says so; `world` is the digest of its map."""
    entries, config, events = trace.session_metadata or [], _config(trace), trace.event_history or []
    results = _first([m.achievements for m in config if m.achievements is not None])
    errors = [entry.data for entry in entries if entry.metadata_type == "error"]
    where, model = "session_metadata", _first([m.model_name or m.model for m in config])
    if model is None:
        where, model = "event_history", _first(_models(events))
    if model is None:
        where, model = "session_id", _model_in_id(trace.session_id)
    instance, experiment = (
        _first([getattr(m, name) for m in config]) for name in ("task_instance_id", "experiment_id")
    )
    seeds = [m.seed for m in config]
    seeds += [m.task_instance.metadata.seed for m in config if m.task_instance and m.task_instance.metadata]
    number, seed = _first([m.instance_num for m in config]), _first([str(s) for s in seeds if type(s) in (int, str)])
    opening = (event for event in events[:_OPENING] if event.kind != "language_model")
    states = (state for event in opening for state in (event.system_state_before, event.system_state_after))
    seen = _first(map(observed, states))
    known = (  # what identifies a task, the surest first
        ("map", world and f"world-{world}"),
        ("seed", seed and f"seed-{seed}"),
        ("instance", None if number is None or experiment is None else f"{experiment}/instance-{number}"),
        ("map_hash", seen and seen.world_material_map_hash and f"map-{seen.world_material_map_hash}"),
        ("id", instance),
    )
    source, task = next(((name, found) for name, found in known if found), (None, None))
    return Session(
        session_id=trace.session_id,
        model_name=model or UNKNOWN,
        model_source=where if model else None,
        task_id=task,
        task_source=source,
        task_instance_id=instance,
        experiment=experiment,
        difficulty=_first(_difficulties(config, events)) or UNKNOWN,
        agent_type=_first([m.agent_type for m in config]),
        seed=seed,
        max_turns=_first([m.max_turns for m in config]),
        max_steps=seen and seen.max_steps_episode,
        claimed=None if results is None else frozenset([name for name, got in results.items() if got]),
        n_claimed=_first([m.num_achievements for m in config]),
        error=((errors[0] and errors[0].error_message) or "") if errors else None,
    )


def _config(trace: Trace) -> list[Metadata]:
    """Return the session's metadata from all its possible places."""
    entries = [entry.data for entry in trace.session_metadata or () if entry.data]
    return [*entries, trace.metadata] if trace.metadata else entries


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


def _difficulties(config: list[Metadata], events: list[Event]) -> Iterator[str | None]:
    for metadata in chain(config, (event.metadata for event in events)):
        if metadata is not None:
            yield metadata.difficulty
            if metadata.task_instance and metadata.task_instance.metadata:
                yield metadata.task_instance.metadata.difficulty


def _model_in_id(session_id: str | None) -> str | None:
    """Find the model in an id such as ``episode_0_gpt-4.1-nano_1753815116234099_<uuid>``; longer texts are not ids."""
    known = (session_id or "")[:MOST_MATCHED]
    if known != (session_id or "") or not (start := _EPISODE.search(known)):
        return None
    rest = known[start.end() :]
    while tail := _ID_TAIL.search(rest):
        rest = rest[: tail.start()]
    return rest or None


def _first(values: Iterable[Any]) -> Any:
    """Return the first value that is neither None nor empty; 0 counts."""
    for value in values:  # twice as fast as next() over a generator
        if value is not None and value != "":
            return value
    return None
