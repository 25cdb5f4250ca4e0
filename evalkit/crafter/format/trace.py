"""Session traces: their types, and how they are decoded.

The types declare only fields that are used; the rest is checked, but never built. Every field may be missing or null. A
trace that does not fit the types is decoded value by value, without unusable ones. Fields that few traces or callers
need stay `Raw` until `peek` decodes them.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from evalkit.crafter.format.lenient import ANYTHING, Count, fit
from evalkit.io import BrokenFileError, WrongShapeError, decode_json

IMAGE = b'observation_image_base64"'  # a long needle is found faster than the end that all keys of images share
_ANY_IMAGE = b'_base64"'
_NEAR = 256  # bytes between the image and the map of one observation
_FIRST = 1 << 17  # bytes searched for the first image, which is in the second event, or in none


class HookData(Struct, gc=False):
    """``data`` of a hook: the achievements it names, or the verdict on an action."""

    achievements: list[str] | None = None
    action: str | None = None
    action_index: Any = None  # within the turn
    reason: str | None = None
    suspect: bool | None = None


class Hook(Struct, gc=False):
    """An entry of ``event_metadata``."""

    hook_name: str | None = None
    data: HookData | None = None


class Observation(Struct, gc=False):
    """The game's output; with images it is most of a trace's bytes."""

    achievements_status: dict[str, Any] | None = None
    inventory: dict[str, Any] | None = None


class State(Struct, gc=False):
    """``system_state_before`` or ``system_state_after`` of an event of any type."""

    public_state: Observation | None = None
    observation: Observation | None = None
    request_model: str | None = field(name="gen_ai.request.model", default=None)


class TaskMetadata(Struct, gc=False):
    """``metadata`` of a task instance."""

    difficulty: str | None = None
    seed: Any = None


class TaskInstance(Struct, gc=False):
    """``task_instance`` of a metadata object."""

    metadata: TaskMetadata | None = None


class Metadata(Struct, gc=False):
    """``metadata`` of an event, of a session, or the ``data`` of an entry of ``session_metadata``."""

    turn: Count | None = None
    step: Count | None = None
    model_name: str | None = None
    model: str | None = None
    difficulty: str | None = None
    seed: Any = None
    task_instance: TaskInstance | None = None
    task_instance_id: str | None = None
    agent_type: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    invalid_action: bool | None = None
    action_reasoning: Raw | UnsetType = UNSET  # str
    achievements: dict[str, Any] | None = None
    num_achievements: Count | None = None
    error_message: str | None = None


class SessionMetadata(Struct, gc=False):
    """An entry of ``session_metadata``."""

    metadata_type: str | None = None
    data: Metadata | None = None
    timestamp: Raw | UnsetType = UNSET


class Call(Struct, gc=False):
    """A call of a language model."""

    model: str | None = None


class TimeRecord(Struct, gc=False):
    """``time_record`` of an event; its ``message_time`` is always 0."""

    event_time: Raw | UnsetType = UNSET


class Event(Struct, gc=False):
    """An event; it has no type field, its keys show its type."""

    llm_call_records: Raw | UnsetType = UNSET  # list[Call]
    call_records: Raw | UnsetType = UNSET  # list[Call]
    actions: list[Any] | UnsetType | None = UNSET
    reward: Raw | UnsetType = UNSET
    metadata: Metadata | None = None
    event_metadata: list[Hook] | None = None
    hooks_triggered: list[str] | None = None
    time_record: Raw | UnsetType = UNSET  # TimeRecord
    system_state_before: Raw | UnsetType = UNSET  # State
    system_state_after: Raw | UnsetType = UNSET  # State
    model_name: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None


class Trace(Struct, gc=False):
    """A session trace. ``session_time_steps`` repeats the events and is not read."""

    session_id: str | UnsetType | None = UNSET
    session_metadata: list[SessionMetadata] | None = None
    metadata: Metadata | None = None
    event_history: list[Event] | UnsetType | None = UNSET
    created_at: Raw | UnsetType = UNSET


_TRACE = msgspec.json.Decoder(Trace)


class OtherShapeError(BrokenFileError):
    """Well-formed JSON that is not a session trace."""


def read_trace(data: bytes) -> tuple[Trace, list[str]]:
    """Decode a session trace without building its images and conversations.

    Structure, literals and UTF-8 are checked in the whole file, except within the quotes of an image.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    trace : Trace
    notes : list of str
        What was recovered, as in `evalkit.io.decode_json`, and ``malformed_fields`` for values that were left out.

    Raises
    ------
    OtherShapeError
        For well-formed JSON that is not a session trace; the text describes its shape.
    BrokenFileError
        For anything else, see `evalkit.io.decode_json`.
    """
    lean = without_images(data)
    try:
        trace, notes = decode_json(lean, _TRACE)
    except WrongShapeError as error:
        value, notes = decode_json(lean, ANYTHING)
        if not isinstance(value, dict):
            raise OtherShapeError(f"not a session trace: {name_shape(value)}") from error
        trace = fit(value, Trace)
        notes = [*notes, "malformed_fields"]
    if not isinstance(trace.session_id, str) and not isinstance(trace.event_history, list):
        raise OtherShapeError(f"not a session trace: {name_shape(decode_json(lean, ANYTHING)[0])}")
    return trace, notes


def without_images(data: bytes) -> bytes:
    r"""Empty the image strings of a trace: they are most of its bytes, and are not read.

    Sound for well-formed JSON: an unescaped quote after ``_base64`` ends a string, a colon after it makes that
    string a key, and the value ends at the next quote not preceded by a backslash. Anything else stays as it is.
    """
    at = data.find(IMAGE, 0, _FIRST)
    if at < 0:
        return data
    view, pieces, copied = memoryview(data), [], 0
    while at >= 0:
        start = data.find(b'"', at) + 1  # after the key
        opened = data.startswith(b': "', start) * 3 or data.startswith(b':"', start) * 2
        end = data.find(b'"', start + opened) if opened else -1
        if end > 0 and data[end - 1] != 0x5C:
            pieces.append(view[copied : start + opened])
            copied = start = end
        at = data.find(_ANY_IMAGE, start, start + _NEAR)
        if at < 0:
            at = data.find(IMAGE, start)
    pieces.append(view[copied:])
    return b"".join(pieces)


def name_shape(value: Any) -> str:
    """Describe decoded JSON that is not a session trace."""
    run = value[0] if isinstance(value, list) and value else value
    if not isinstance(run, dict):
        return f"a JSON {'list' if isinstance(value, list) else type(value).__name__}"
    if "progression" in run and "episode_return" in run:
        return "a BALROG run file (evalkit.crafter.benchmark reads it)"
    if any(str(key).startswith("achievement_") for key in run):
        return "a file of benchmark scores (evalkit.crafter.benchmark reads it)"
    return "neither session_id nor event_history is there"


def events_of(trace: Trace) -> list[Event]:
    """Return a trace's events, which are those of ``event_history`` only."""
    return trace.event_history if isinstance(trace.event_history, list) else []


def kind_of(event: Event) -> str:
    """Return an event's type, shown by its keys: ``language_model``, ``runtime``, ``environment`` or ``other``."""
    if event.llm_call_records is not UNSET or event.call_records is not UNSET:
        return "language_model"
    if event.actions is not UNSET:
        return "runtime"
    return "other" if event.reward is UNSET else "environment"


def turn_of(event: Event) -> int | None:
    """Return an event's turn; traces of single steps count steps instead."""
    metadata = event.metadata
    if metadata is None:
        return None
    return metadata.step if metadata.turn is None else metadata.turn
