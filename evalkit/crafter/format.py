"""What session traces look like on disk: only the fields that are used; the rest is checked, but never built.

Every field may be missing or null. Where a trace is written so oddly that these types don't fit, `parse` reads it
piece by piece and leaves out what can't be used. What few traces need stays `Raw` until `parse.peek` decodes it.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

Count = Annotated[int, Meta(ge=-(2**40), le=2**40)]  # what is beyond is no count of anything, and overflows columns


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
    """What the game shows; with images it is most of a trace's bytes."""

    achievements_status: dict[str, Any] | None = None
    num_steps_taken: Count | None = None


class State(Struct, gc=False):
    """``system_state_before`` or ``system_state_after`` of an event of any type."""

    public_state: Observation | None = None
    observation: Observation | None = None
    request_model: str | None = field(name="gen_ai.request.model", default=None)


class TaskMetadata(Struct, gc=False):
    """``metadata`` of a task instance."""

    difficulty: str | None = None


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
    task_instance: TaskInstance | None = None
    task_instance_id: str | None = None
    agent_type: str | None = None
    max_turns: Count | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    invalid_action: bool | None = None
    achievements: dict[str, Any] | None = None
    num_achievements: Count | None = None
    rollout_length: Count | None = None
    error_message: str | None = None


class SessionMetadata(Struct, gc=False):
    """An entry of ``session_metadata``."""

    metadata_type: str | None = None
    data: Metadata | None = None


class Call(Struct, gc=False):
    """A call of a language model."""

    model: str | None = None


class Event(Struct, gc=False):
    """An event; it has no type field, its keys tell what it is."""

    llm_call_records: Raw | UnsetType = UNSET  # list[Call]
    call_records: Raw | UnsetType = UNSET  # list[Call]
    actions: list[Any] | UnsetType | None = UNSET
    reward: Raw | UnsetType = UNSET
    metadata: Metadata | None = None
    event_metadata: list[Hook] | None = None
    hooks_triggered: list[str] | None = None
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
