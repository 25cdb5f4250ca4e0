"""How step results were kept before: kept here to show, and to measure, what that loses."""

from collections.abc import Mapping
from typing import Any

from evalkit.steps.format import DEFAULTS, Options


def old_nested(
    step: Mapping[str, Any], result: Any, success: bool, error: Any = None, index: int = 0, options: Options = DEFAULTS
) -> dict[str, Any]:
    """Keep a step as shape A did: plots whole, everything else as the first 500 characters of its text.

    A result that counts as false, and so that of a failed step too, became "Success".
    """
    plot = options.is_plot(step.get("function_name")) and isinstance(result, str)
    text = result if plot else str(result)[: options.text_limit] if result else "Success"
    return {"step_index": index, "step": dict(step), "success": success, "result": text, "error": _text(error)}


def old_flat(
    step: Mapping[str, Any],
    result: Any,
    success: bool,
    error: Any = None,
    timestamp: str | None = None,
    options: Options = DEFAULTS,
) -> dict[str, Any]:
    """Keep a step as shape C did, on disk: the first 500 characters of any result, called a summary."""
    return {
        "timestamp": timestamp,
        "function_name": step.get("function_name"),
        "parameters": step.get("parameters", {}),
        "success": success,
        "error": _text(error),
        "result_summary": str(result)[: options.text_limit] if result else None,
    }


def _text(error: Any) -> str | None:
    return None if error is None else str(error)
