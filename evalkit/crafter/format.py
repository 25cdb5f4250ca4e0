"""The game, and its session traces: what they look like on disk, and how they are decoded.

Only fields that are used have a place in the types; the rest is checked, but never built. Every field may be missing or
null. A trace that is written so oddly that the types don't fit is read piece by piece, without what can't be used. What
few traces or few callers need stays `Raw` until `peek` decodes it.
"""

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from evalkit.io import BrokenFileError, WrongShapeError, decode_json

_ACTIONS = """
noop move_left move_right move_up move_down do sleep place_stone place_table place_furnace place_plant
make_wood_pickaxe make_stone_pickaxe make_iron_pickaxe make_wood_sword make_stone_sword make_iron_sword
"""
_TIERS = {
    "easy": "collect_wood collect_stone collect_sapling collect_drink place_stone place_table wake_up eat_plant",
    "medium": "make_wood_pickaxe make_wood_sword place_furnace place_plant collect_coal collect_iron eat_cow",
    "hard": "make_stone_pickaxe make_stone_sword make_iron_pickaxe make_iron_sword collect_diamond defeat_skeleton "
    "defeat_zombie",
}
ACTIONS = tuple(_ACTIONS.split())  # by index
TIERS = {tier: tuple(names.split()) for tier, names in _TIERS.items()}
TIER_OF = {name: tier for tier, names in TIERS.items() for name in names}
ACHIEVEMENTS = tuple(sorted(TIER_OF))
WEIGHTS = {"easy_achievement": 1.0, "medium_achievement": 2.5, "hard_achievement": 5.0, "invalid_action": -0.05}
UNKNOWN = "unknown"
Count = Annotated[int, Meta(ge=-(2**40), le=2**40)]  # what is beyond is no count of anything, and overflows columns

IMAGE = b'observation_image_base64"'  # a long needle is found quicker than the end that all keys of images share
_ANY_IMAGE = b'_base64"'
_NEAR = 256  # bytes between the image and the map of one observation
_FIRST = 1 << 17  # bytes in which the first image is looked for: it stands in the second event, or in no event


def action_name(action: str | int | None) -> str | None:
    """Return the name of an action that is given by name or by index; other values as text, None as None."""
    if isinstance(action, int) and not isinstance(action, bool) and 0 <= action < len(ACTIONS):
        return ACTIONS[action]
    return None if action is None else str(action)


def action_names(actions: Any) -> list[str | None] | None:
    """Return the names of a list of actions, and None for anything else."""
    if not isinstance(actions, list):
        return None
    n = len(ACTIONS)  # what is nearly always there is not worth a call for each
    return [ACTIONS[own] if type(own) is int and 0 <= own < n else action_name(own) for own in actions]


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
    """What the game shows; with images it is most of a trace's bytes."""

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
    """An event; it has no type field, its keys tell what it is."""

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
    """A session trace. ``session_time_steps`` holds the events again, and is not read."""

    session_id: str | UnsetType | None = UNSET
    session_metadata: list[SessionMetadata] | None = None
    metadata: Metadata | None = None
    event_history: list[Event] | UnsetType | None = UNSET
    created_at: Raw | UnsetType = UNSET


_TRACE = msgspec.json.Decoder(Trace)
ANYTHING = msgspec.json.Decoder()
_UNFIT = object()  # a value that is not of the declared type


class OtherShapeError(BrokenFileError):
    """Well-formed JSON that is not a session trace."""


def read_trace(data: bytes) -> tuple[Trace, list[str]]:
    """Decode a session trace without building its images and conversations.

    Structure, literals and UTF-8 are checked in the whole file, but for what stands between the quotes of an image.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    trace : Trace
    notes : list of str
        What was recovered: as of `evalkit.io.decode_json`, and ``malformed_fields`` for values that were left out.

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
        value, notes = decode_json(lean, ANYTHING)
        if not isinstance(value, dict):
            raise OtherShapeError(f"not a session trace: {name_shape(value)}") from error
        trace = fit(value, Trace)
        notes = [*notes, "malformed_fields"]
    if not isinstance(trace.session_id, str) and not isinstance(trace.event_history, list):
        raise OtherShapeError(f"not a session trace: {name_shape(decode_json(lean, ANYTHING)[0])}")
    return trace, notes


def without_images(data: bytes) -> bytes:
    r"""Empty the image strings of a trace: they are most of its bytes, and nothing reads them.

    Sound for well-formed JSON: an unescaped quote after ``_base64`` ends a string, a colon behind it makes that
    string a key, and the value ends at the next quote that no backslash stands before. Anything else stays as it is.
    """
    at = data.find(IMAGE, 0, _FIRST)
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
            at = data.find(IMAGE, start)
    parts.append(view[kept:])
    return b"".join(parts)


def fit(value: Any, kind: Any) -> Any:
    """Convert plain decoded JSON to a Struct (or a list of it), leaving out what is not of the declared type.

    None for a list that is none. Entries of lists of Structs that are no objects become empty Structs, so that lengths
    stay.
    """
    from msgspec.inspect import type_info

    fitted = _fit(value, type_info(kind))
    return None if fitted is _UNFIT else fitted


def _fit(value: Any, kind: Any) -> Any:
    from msgspec import inspect

    if isinstance(kind, inspect.UnionType):
        if value is None:
            return None
        kind = next(k for k in kind.types if not isinstance(k, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        known = [own for own in kind.fields if isinstance(value, dict) and own.encode_name in value]
        fields = {own.name: _fit(value[own.encode_name], own.type) for own in known}
        # a key whose value does not fit stays known, as None: it tells an event's type
        return kind.cls(**{name: None if own is _UNFIT else own for name, own in fields.items()})
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [own for own in (_fit(item, kind.item_type) for item in value) if own is not _UNFIT]
    if isinstance(kind, inspect.RawType):
        return Raw(msgspec.json.encode(value))
    if isinstance(kind, inspect.AnyType) or (isinstance(kind, inspect.DictType) and isinstance(value, dict)):
        return value
    leaf = {inspect.IntType: Count, inspect.StrType: str, inspect.BoolType: bool}.get(type(kind))
    try:
        return _UNFIT if leaf is None else msgspec.convert(value, leaf, strict=False)
    except msgspec.ValidationError:
        return _UNFIT


def peek(raw: Any, kind: Any) -> Any:
    """Decode a `Raw` field, leaving out what is not of the declared type; None where nothing is left."""
    if not isinstance(raw, Raw):
        return None
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError:
        return fit(ANYTHING.decode(raw), kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder:
    return msgspec.json.Decoder(kind | None)


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


def events_of(trace: Trace) -> list[Event]:
    """Return a trace's events: those of ``event_history``, and no others."""
    return trace.event_history if isinstance(trace.event_history, list) else []


def kind_of(event: Event) -> str:
    """Tell an event's type by its keys: ``language_model``, ``runtime``, ``environment`` or ``other``."""
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
