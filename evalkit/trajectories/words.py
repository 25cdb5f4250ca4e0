"""Sentences for the findings that only trajectories have. A `Finding` has one of these functions as its template."""

from collections.abc import Sequence
from typing import Any

from evalkit._text import counted_noun, listed
from evalkit.display.words import model_names


def missing_trials(gone: int, planned: int, running: int, succeeded: int | None) -> str:
    """Describe how many planned trials are missing, and how many succeeded unless that is unknown."""
    text = f"{gone:,} of {counted_noun(planned, 'planned trial')} missing"
    if running:
        text += f", {running:,} still running"
    text += "; rates include the measured trials"
    return f"{text}." if succeeded is None else f"{text}, and {succeeded:,} of all planned succeeded."


def took(
    runs: int,
    models: Sequence[str],
    turns: int | None,
    tokens_in: int | None,
    tokens_cache: int | None,
    tokens_out: int | None,
    tool_calls: int | None,
    tool_errors: int | None,
    **_: Any,
) -> str:
    """Describe the total turns, tokens and tool calls of runs without outcomes."""
    parts = []
    if turns is not None:
        parts.append(counted_noun(turns, "turn"))
    if tokens_in is not None:
        cached = "" if tokens_cache is None else f" ({tokens_cache:,} from a cache)"
        parts.append(f"{counted_noun(tokens_in, 'token')} read{cached}")
    if tokens_out is not None:
        parts.append(f"{counted_noun(tokens_out, 'token')} written")
    if tool_calls is not None:
        parts.append(f"{counted_noun(tool_calls, 'call')} of tools, of which {tool_errors or 0:,} failed")
    what = f": {listed(parts)}" if parts else ""
    return f"{counted_noun(runs, 'run')} of {model_names(models)} without an outcome in the logs{what}."
