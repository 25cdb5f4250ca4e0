"""Sentences of the findings that only trajectories have; a `Finding` carries one of these as its template."""

from evalkit._text import counted_noun


def missing_trials(gone: int, planned: int, running: int, succeeded: int | None) -> str:
    """Describe how many planned trials are missing, and how many of all succeeded, if any can."""
    text = f"{gone:,} of {counted_noun(planned, 'planned trial')} missing"
    if running:
        text += f", {running:,} still running"
    text += "; rates include the measured trials"
    return f"{text}." if succeeded is None else f"{text}, and {succeeded:,} of all planned succeeded."
