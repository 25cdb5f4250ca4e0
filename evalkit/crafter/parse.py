"""From the bytes of a session trace to its typed form, and to what the whole session says of itself."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from evalkit.crafter.format import Call, Count, Event, Metadata, State, Trace
from evalkit.io import BrokenFileError, Entry, WrongShapeError, decode_json

UNKNOWN = "unknown"
MALFORMED = "malformed_fields"
SERIAL_BELOW = 500  # traces; with images two processes are 1.3 times as quick for so many

_TRACE = msgspec.json.Decoder(Trace)
_ANY = msgspec.json.Decoder()
_NO_METADATA = Metadata()
_IMAGE = b'observation_image_base64"'  # a long needle is found quicker than the end that all keys of images share
_ANY_IMAGE = b'_base64"'
_NEAR = 256  # bytes between the image and the map of one observation
_FIRST = 1 << 17  # bytes in which the first image is looked for: it stands in the second event, or in no event
_EPISODE = re.compile(r"(?:^|_)episode_\d+_")
_ID_TAIL = re.compile(r"_?(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{8}_\d{6}|\d{9,})$", re.IGNORECASE)


class OtherShapeError(BrokenFileError):
    """Well-formed JSON that is not a session trace."""


class Session(NamedTuple):
    """What a trace says of its whole session; ``None`` where it says nothing."""

    session_id: str | None
    model_name: str
    difficulty: str
    task_id: str | None
    agent_type: str | None
    max_turns: int | None
    rollout_length: int | None
    claimed: frozenset[str] | None  # achievements that episode_results says were unlocked
    n_claimed: int | None
    error: str | None  # message of an error entry, perhaps empty; None where there is no such entry


def read_trace(data: bytes) -> tuple[Trace, list[str]]:
    """Decode a session trace without building its images and conversations.

    Structure, literals and UTF-8 are checked in the whole file; what stands between the quotes of an image is not
    looked at.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    trace : Trace
    notes : list of str
        What was recovered: those of `evalkit.io.decode_json`, and ``malformed_fields`` where values of unexpected
        types were left out.

    Raises
    ------
    OtherShapeError
        Well-formed, but no session trace; the text says what it looks like.
    BrokenFileError
        Anything else, see `evalkit.io.decode_json`.
    """
    lean = without_images(data)
    try:
        trace, notes = decode_json(lean, _TRACE)
    except WrongShapeError as error:
        value, notes = decode_json(lean, _ANY)
        if not isinstance(value, dict):
            raise OtherShapeError(f"not a session trace: {name_shape(value)}") from error
        trace = fit(value, Trace)
        notes = [*notes, MALFORMED]
    if not isinstance(trace.session_id, str) and not isinstance(trace.event_history, list):
        raise OtherShapeError(f"not a session trace: {name_shape(decode_json(lean, _ANY)[0])}")
    return trace, notes


def open_trace(path: str, data: bytes | OSError) -> tuple[Entry, tuple[Trace, list[str]] | None]:
    """Decode a trace: the file's entry for the ledger and, where there is anything to score, the trace and notes."""
    if isinstance(data, OSError):
        return Entry(path, "failed", f"{type(data).__name__}: {data.strerror or data}"), None
    try:
        trace, notes = read_trace(data)
    except OtherShapeError as error:
        return Entry(path, "skipped", str(error)), None
    except BrokenFileError as error:
        return Entry(path, "failed", str(error)), None
    return Entry(path, "used", ", ".join(notes)), (trace, notes)


def without_images(data: bytes) -> bytes:
    r"""Empty the image strings of a trace: they are most of its bytes, and nothing reads them.

    Sound for well-formed JSON: an unescaped quote after ``_base64`` ends a string, a colon behind it makes that
    string a key, and the value ends at the next quote that no backslash stands before. Anything else stays as it is.
    """
    at = data.find(_IMAGE, 0, _FIRST)
    if at < 0:
        return data
    view, parts, kept = memoryview(data), [], 0
    while at >= 0:
        start = data.find(b'"', at) + 1  # behind the key
        opened = data.startswith(b': "', start) * 3 or data.startswith(b':"', start) * 2
        end = data.find(b'"', start + opened) if opened else -1
        if end > 0 and data[end - 1] != 0x5C:
            parts.append(view[kept : start + opened])
            kept = start = end
        at = data.find(_ANY_IMAGE, start, start + _NEAR)
        if at < 0:
            at = data.find(_IMAGE, start)
    parts.append(view[kept:])
    return b"".join(parts)


def fit(value: Any, kind: Any) -> Any:
    """Convert plain decoded JSON to a Struct, leaving out what is not of the declared type.

    Parameters
    ----------
    value : dict or list
    kind : type
        A Struct of `evalkit.crafter.format`, or a list of it.

    Returns
    -------
    An instance of `kind`, or None for a list that is none. Entries of lists of Structs that are no objects become empty
    Structs, so that lengths stay.
    """
    from msgspec.inspect import type_info

    try:
        return _fit(value, type_info(kind))
    except _UnfitError:
        return None


def peek(raw: Any, kind: Any) -> Any:
    """Decode a `Raw` field, leaving out what is not of the declared type; None where nothing is left."""
    if not isinstance(raw, msgspec.Raw):
        return None
    try:
        return msgspec.json.decode(raw, type=kind | None)
    except msgspec.ValidationError:
        return fit(msgspec.json.decode(raw), kind)


class _UnfitError(Exception):
    """A value that is not of the declared type."""


def _fit(value: Any, kind: Any) -> Any:
    from msgspec import inspect

    if isinstance(kind, inspect.UnionType):
        if value is None:
            return None
        kind = next(k for k in kind.types if not isinstance(k, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        found = value if isinstance(value, dict) else {}
        return kind.cls(**dict(_fit_fields(found, kind)))
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return list(_fit_items(value, kind.item_type))
    if isinstance(kind, inspect.RawType):
        return msgspec.Raw(msgspec.json.encode(value))
    if isinstance(kind, inspect.AnyType) or (isinstance(kind, inspect.DictType) and isinstance(value, dict)):
        return value
    leaf = {inspect.IntType: Count, inspect.StrType: str, inspect.BoolType: bool}.get(type(kind))
    try:
        if leaf is not None:
            return msgspec.convert(value, leaf, strict=False)
    except msgspec.ValidationError:
        pass
    raise _UnfitError


def _fit_fields(found: dict, kind: Any) -> Iterator[tuple[str, Any]]:
    for field in kind.fields:
        if field.encode_name in found:
            try:
                yield field.name, _fit(found[field.encode_name], field.type)
            except _UnfitError:
                yield field.name, None  # the key stays known: it tells an event's type


def _fit_items(values: list, kind: Any) -> Iterator[Any]:
    for value in values:
        try:
            yield _fit(value, kind)
        except _UnfitError:
            continue


def name_shape(value: Any) -> str:
    """Say what decoded JSON that is no session trace looks like."""
    run = value[0] if isinstance(value, list) and value else value
    if not isinstance(run, dict):
        return f"a JSON {'list' if isinstance(value, list) else type(value).__name__}"
    if "progression" in run and "episode_return" in run:
        return "a BALROG run file (evalkit.crafter.benchmark reads it)"
    if any(str(key).startswith("achievement_") for key in run):
        return "a file of benchmark scores (evalkit.crafter.benchmark reads it)"
    return "neither session_id nor event_history is there"


def describe(trace: Trace) -> Session:
    """Collect what a trace says of its whole session, from wherever it is."""
    entries = trace.session_metadata or []
    config = [entry.data for entry in entries if entry.data] + ([trace.metadata] if trace.metadata else [])
    events = events_of(trace)
    session_id = trace.session_id if isinstance(trace.session_id, str) else None
    results = next((m.achievements for m in config if m.achievements is not None), None)
    errors = (entry.data.error_message if entry.data else None for entry in entries if entry.metadata_type == "error")
    return Session(
        session_id=session_id,
        model_name=_first(_models(config, events)) or _model_in_id(session_id) or UNKNOWN,
        difficulty=_first(_difficulties(config, events)) or UNKNOWN,
        task_id=_first(m.task_instance_id for m in config),
        agent_type=_first(m.agent_type for m in config),
        max_turns=_first(m.max_turns for m in config),
        rollout_length=_first(m.rollout_length for m in config),
        claimed=None if results is None else frozenset(name for name, got in results.items() if got),
        n_claimed=next((m.num_achievements for m in config if m.num_achievements is not None), None),
        error=next((message or "" for message in errors), None),
    )


def events_of(trace: Trace) -> list[Event]:
    """Return a trace's events: those of ``event_history``, and no others."""
    return trace.event_history if isinstance(trace.event_history, list) else []


def kind_of(event: Event) -> str:
    """Tell an event's type by its keys: ``language_model``, ``runtime``, ``environment`` or ``other``."""
    if event.llm_call_records is not msgspec.UNSET or event.call_records is not msgspec.UNSET:
        return "language_model"
    if event.actions is not msgspec.UNSET:
        return "runtime"
    return "other" if event.reward is msgspec.UNSET else "environment"


def turn_of(event: Event) -> int | None:
    """Return an event's turn; traces of single steps count steps instead."""
    metadata = event.metadata
    if metadata is None:
        return None
    return metadata.step if metadata.turn is None else metadata.turn


def tokens_of(event: Event) -> tuple[int | None, int | None, int | None]:
    """Return the tokens of a call of a language model: prompt, completion, total."""
    inner = event.metadata or _NO_METADATA
    return (
        _first((inner.prompt_tokens, event.prompt_tokens, event.input_tokens)),
        _first((inner.completion_tokens, event.completion_tokens, event.output_tokens)),
        _first((inner.total_tokens, event.total_tokens)),
    )


def sum_tokens(events: list[Event]) -> tuple[int | None, ...]:
    """Add up the tokens of all calls: prompt, completion, total; None where no call tells."""
    found = [tokens_of(event) for event in events if kind_of(event) == "language_model"]
    columns = ([n for n in column if n is not None] for column in zip(*found, strict=True))
    return tuple(sum(column) if column else None for column in columns) or (None, None, None)


def _models(config: list[Metadata], events: list[Event]) -> Iterator[str | None]:
    for metadata in config:
        yield metadata.model_name or metadata.model
    for event in events:
        if event.metadata:
            yield event.metadata.model_name or event.metadata.model
        yield event.model_name
        for records in (event.llm_call_records, event.call_records):
            for call in peek(records, list[Call]) or []:
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
    """Find the model in ids such as ``episode_0_gpt-4.1-nano_1753815116234099_<uuid>``."""
    if not session_id or not (start := _EPISODE.search(session_id)):
        return None
    rest = session_id[start.end() :]
    while tail := _ID_TAIL.search(rest):
        rest = rest[: tail.start()]
    return rest or None


def _first(values: Iterable[Any]) -> Any:
    """Return the first value that is there: not None and not empty; 0 counts."""
    return next((value for value in values if value is not None and value != ""), None)
