"""Define the format on disk: the game's names, the types of session traces, and how to decode them.

The types declare only the fields that evalkit uses. Each may be missing or null; msgspec checks all other fields
without building them. A trace that does not fit the types is decoded value by value, without its unusable values.
Rarely used fields stay `Raw` until `peek` decodes them.
"""

import re
from functools import cache
from hashlib import blake2b
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from evalkit.io import BrokenFileError, WrongShapeError, decode_json

_ACTIONS = """
noop move_left move_right move_up move_down do sleep place_stone place_table place_furnace place_plant
make_wood_pickaxe make_stone_pickaxe make_iron_pickaxe make_wood_sword make_stone_sword make_iron_sword
"""


class Scored(NamedTuple):
    """A hook that changes the score."""

    points: float  # for each achievement that it names, or for one invalid action
    code: str
    priority: int
    tier: str = ""  # difficulty of its achievements
    achievements: tuple[str, ...] = ()


HOOKS = {
    "easy_achievement": Scored(
        points=1.0,
        code="E",
        priority=3,
        tier="easy",
        achievements=(
            "collect_wood",
            "collect_stone",
            "collect_sapling",
            "collect_drink",
            "place_stone",
            "place_table",
            "wake_up",
            "eat_plant",
        ),
    ),
    "medium_achievement": Scored(
        points=2.5,
        code="M",
        priority=4,
        tier="medium",
        achievements=(
            "make_wood_pickaxe",
            "make_wood_sword",
            "place_furnace",
            "place_plant",
            "collect_coal",
            "collect_iron",
            "eat_cow",
        ),
    ),
    "hard_achievement": Scored(
        points=5.0,
        code="H",
        priority=5,
        tier="hard",
        achievements=(
            "make_stone_pickaxe",
            "make_stone_sword",
            "make_iron_pickaxe",
            "make_iron_sword",
            "collect_diamond",
            "defeat_skeleton",
            "defeat_zombie",
        ),
    ),
    "invalid_action": Scored(points=-0.05, code="X", priority=2),
}
ACTIONS = tuple(_ACTIONS.split())  # in the order of their indices
TIERS = {hook.tier: hook.achievements for hook in HOOKS.values() if hook.tier}
TIER_OF = {name: tier for tier, names in TIERS.items() for name in names}
ACHIEVEMENTS = tuple(sorted(TIER_OF))
WEIGHTS = {name: hook.points for name, hook in HOOKS.items()}
UNKNOWN = "unknown"

_IMAGE = b'observation_image_base64"'  # a long text, found faster than the short end that keys of images share
_MAP_END = b'map_base64"'
_OPENING = b': "'  # what most programs write between a key and its text
_NEAR = 256  # maximum number of bytes between the image and the map of one observation
_APART = 1_400  # minimum number of bytes between two observations; a closer image is not emptied
_FIRST = 1 << 17  # number of bytes searched for the first image; traces with images have one in the second event
_MAP = b'"world_material_map_base64"'
_MAP_VALUE = re.compile(rb'\s*:\s*"([A-Za-z0-9+/]{64,}={0,2})"')

Count = Annotated[int, Meta(ge=-(2**40), le=2**40)]  # larger values are not counts, and overflow columns
_decoder = cache(lambda kind: msgspec.json.Decoder(kind | None))


class HookData(Struct, gc=False):
    """``data`` of a hook: the achievements it names, or the verdict on an action."""

    achievements: list[str] | None = None
    action: str | None = None
    reason: str | None = None
    suspect: bool | None = None


class Hook(Struct, gc=False):
    """An entry of ``event_metadata``."""

    hook_name: str | None = None
    data: HookData | None = None


class Observation(Struct, gc=False):
    """The game's output. If it contains images, they are most of a trace's bytes."""

    achievements_status: Any = None
    inventory: dict[str, Any] | None = None
    player_position: Any = None
    world_material_map_hash: Any = None
    observation_image_base64: Raw | UnsetType = UNSET  # str
    observation_image_shape: Any = None


class State(Struct, gc=False):
    """``system_state_before`` or ``system_state_after`` of an event of any type."""

    public_state: Observation | None = None
    observation: Observation | None = None
    request_model: str | None = field(name="gen_ai.request.model", default=None)


class TaskInstance(Struct, gc=False):
    """``task_instance`` of a metadata object; evalkit reads difficulty and seed from its ``metadata``."""

    metadata: "Metadata | None" = None


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
    instance_num: Count | None = None
    experiment_id: str | None = None
    max_turns: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    invalid_action: bool | None = None
    action_reasoning: Raw | UnsetType = UNSET  # str
    achievements: dict[str, Any] | None = None
    num_achievements: Count | None = None
    error_message: str | None = None


class SessionMetadata(Struct, gc=False):
    """An entry of ``session_metadata``."""

    metadata_type: str | None = None
    data: Metadata | None = None
    timestamp: Any = None


class Event(Struct, gc=False):
    """An event. It has no field for its type; its keys show the type."""

    llm_call_records: Raw | UnsetType = UNSET  # list[Metadata]; only the model is read
    call_records: Raw | UnsetType = UNSET  # the same
    actions: list[Any] | UnsetType | None = UNSET
    reward: Raw | UnsetType = UNSET
    metadata: Metadata | None = None
    event_metadata: list[Hook] | None = None
    hooks_triggered: list[str] | None = None
    time_record: Raw | UnsetType = UNSET  # dict; only event_time is read, because message_time is always 0
    system_state_before: Raw | UnsetType = UNSET  # State
    system_state_after: Raw | UnsetType = UNSET  # State
    model_name: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cost: Any = None  # US dollars
    input_tokens: Count | None = None
    output_tokens: Count | None = None

    @property
    def action_names(self) -> list[str | None] | None:
        """Names of the event's actions; None if it has no list of actions."""
        return list(map(action_name, self.actions)) if isinstance(self.actions, list) else None

    @property
    def kind(self) -> str:
        """Type of the event, from its keys: ``language_model``, ``runtime``, ``environment`` or ``other``."""
        if self.llm_call_records is not UNSET or self.call_records is not UNSET:
            return "language_model"
        if self.actions is not UNSET:
            return "runtime"
        return "other" if self.reward is UNSET else "environment"

    @property
    def step(self) -> int | None:
        """Step of the environment, which traces of several actions per step call a turn."""
        own = self.metadata
        if own is None:
            return None
        return own.step if own.turn is None else own.turn

    @property
    def time(self) -> Any:
        """Time of the event; None if it has none."""
        return (peek(self.time_record, dict[str, Any]) or {}).get("event_time")


class Trace(Struct, gc=False):
    """A session trace. ``session_time_steps`` repeats the events, so it is not read."""

    session_id: str | None = None
    session_metadata: list[SessionMetadata] | None = None
    metadata: Metadata | None = None
    event_history: list[Event] | None = None
    created_at: Any = None


TRACE_KEYS = {*Trace.__struct_fields__, "session_time_steps", "message_history"}
_TRACE = msgspec.json.Decoder(Trace)


class OtherShapeError(BrokenFileError):
    """Well-formed JSON that is not a session trace."""


def read_trace(data: bytes) -> tuple[Trace, dict[str, str]]:
    """Decode a session trace; notes and errors as from `evalkit.io.decode_json`, and the note ``malformed_fields``."""
    try:
        trace, recovered = decode_json(data, _TRACE)
        notes = dict.fromkeys(recovered, "")
    except WrongShapeError as error:
        value, recovered = decode_json(data)
        trace, notes = fit(value, Trace), dict.fromkeys(recovered, "")
        notes["malformed_fields"] = str(error.__cause__)
    if trace.event_history is None and (trace.session_id is None or trace.session_metadata is None):
        value, _ = decode_json(data)
        if trace.session_id is None or not value.keys() <= TRACE_KEYS:  # other programs have sessions, too
            raise OtherShapeError("not a session trace: it has no event_history")
    return trace, notes


def without_images(data: bytes) -> bytes:
    """Empty the images and maps of a trace, which are most of its bytes and which few callers need.

    This is safe for well-formed JSON: an unescaped quote after ``_base64`` and before a colon ends a key, and a text
    ends at the next quote unless a backslash precedes that quote. All other bytes stay. Removed bytes are not checked.
    """
    view = memoryview(data)
    pieces: list[memoryview] = []
    copied = 0  # number of bytes copied so far
    key = _IMAGE
    at = data.find(key, 0, _FIRST)
    while at >= 0:
        rest = at + len(key)
        start = rest + len(_OPENING)
        if data[rest:start] == _OPENING:
            end = data.find(b'"', start)
            if end > 0 and data[end - 1 : end] != b"\\":
                pieces.append(view[copied:start])
                copied = rest = end
        near = data.find(_MAP_END, rest, rest + _NEAR) if key is _IMAGE else -1
        at, key = (near, _MAP_END) if near >= 0 else (data.find(_IMAGE, rest + _APART), _IMAGE)
    return b"".join([*pieces, view[copied:]]) if pieces else data


def first_map(data: bytes) -> str | None:
    """Return a digest of the first map of the world in a trace's text; later maps may show changes by the agent."""
    at = data.find(_MAP)
    found = _MAP_VALUE.match(data, at + len(_MAP)) if at >= 0 else None
    if found is None or found[1][4:-4] == found[1][:-8]:  # a map of one material identifies no world
        return None
    return blake2b(found[1], digest_size=6).hexdigest()


def peek(raw: Any, kind: Any) -> Any:
    """Decode a `Raw` field without values that do not have the declared type; None if nothing is left."""
    if not isinstance(raw, Raw):
        return None
    try:
        return _decoder(kind).decode(raw)
    except msgspec.ValidationError:
        return fit(msgspec.json.decode(raw), kind)


def fit(value: Any, kind: Any) -> Any:
    """Convert decoded JSON to a type without values that do not fit; in lists of Structs, they become empty Structs."""
    if get_origin(kind) in (Union, UnionType):
        if value is None:
            return None
        kind = next(member for member in get_args(kind) if member not in (NoneType, UnsetType))
    if isinstance(kind, type) and issubclass(kind, Struct):
        own = value if isinstance(value, dict) else {}
        known = [field for field in msgspec.structs.fields(kind) if field.encode_name in own]
        # keep a key whose value does not fit, with None: keys show an event's type
        return kind(**{field.name: fit(own[field.encode_name], field.type) for field in known})
    if kind is Raw:
        return Raw(msgspec.json.encode(value))
    if get_origin(kind) is list and isinstance(value, list) and get_args(kind) != (Any,):
        return [item for item in (fit(entry, *get_args(kind)) for entry in value) if item is not None]
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        return None


def action_name(action: str | int | None) -> str | None:
    """Return the name of an action given by name or index; other values as text, None as None."""
    if isinstance(action, int) and not isinstance(action, bool) and 0 <= action < len(ACTIONS):
        return ACTIONS[action]
    return None if action is None else str(action)
