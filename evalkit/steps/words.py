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
    histories, all_steps = counted_noun(n_histories, "history"), counted_noun(n, "step")
    share = estimate_text(confirmed)
    text = f"{share} of {all_steps} in {histories} succeeded."
    if n_histories > 1:
        text = f"{share} of a history's steps succeeded, on average over {histories} ({all_steps})."
    return f"{text} {estimate_text(reported)} report success, including {counted_noun(silent, 'silent failure')}."


def failures(n: int, ways: int, first: Sequence[tuple[str, int]]) -> str:
    """Describe how many steps failed, and the most frequent ways."""
    counts = "; ".join(f"{kind} ({count})" for kind, count in first)
    return f"{counted_noun(n, 'step')} failed or failed silently, in {counted_noun(ways, 'way')}: {counts}."
