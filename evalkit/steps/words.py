"""Sentences of the findings that only step histories have; a `Finding` carries one of these as its template."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit._text import counted_noun
from evalkit.display.words import estimate_text

NO_STEPS = "No step can be judged, so there is no success rate."
CUT = "Of {n:step} that reported success, {cut:,} had results that were cut when stored."
SAME_EXECUTIONS = "{copies:,} of {n:,} histories repeat the executions of another one. They count once."


def steps(n: int, n_histories: int, silent: int, confirmed: Mapping[str, Any], reported: Mapping[str, Any]) -> str:
    """Describe the share of steps that succeeded, and the share that reported success."""
    all_steps, share = counted_noun(n, "step"), estimate_text(confirmed)
    text = f"{share} of the steps of 1 history succeeded ({all_steps})."
    if n_histories > 1:
        text = f"On average over {n_histories:,} histories ({all_steps}), {share} of the steps succeeded."
    if not silent:
        return f"{text} No step failed silently."
    return f"{text} {estimate_text(reported)} reported success; {counted_noun(silent, 'step')} failed silently."


def failures(n: int, ways: int, first: Sequence[tuple[str, int]]) -> str:
    """Describe how many steps failed, and the most frequent ways."""
    counts = "; ".join(f"{kind} ({count})" for kind, count in first)
    return f"{counted_noun(n, 'step')} failed or failed silently, in {counted_noun(ways, 'way')}: {counts}."
