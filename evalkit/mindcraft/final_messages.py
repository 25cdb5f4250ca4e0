"""Recognise the final messages of a log, and combine what they say."""

import math
from functools import lru_cache
from typing import NamedTuple

from evalkit.mindcraft.format import (
    FINAL,
    FINAL_STARTS,
    NEARLY_FINAL,
    NEVER_FIRST,
    NUMBER,
    WORDINGS,
    CompletionStatus,
    holds_any,
)


class Final(NamedTuple):
    """One final message found in a system turn."""

    text: str
    timed_out: bool
    score: float | None
    implied: bool
    not_a_number: bool


def read_final(content: str) -> Final | None:
    """Parse a system message as a final one; None unless its whole text is one of the wordings."""
    text = content.strip()
    return _final_of(text) if text.startswith(FINAL_STARTS) else None


@lru_cache(maxsize=64)  # all logs end with the same few messages
def _final_of(text: str) -> Final | None:
    match = FINAL.fullmatch(text)
    if match is None:
        return None
    wording = next(w for i, w in enumerate(WORDINGS) if match[f"w{i}"] is not None)
    if match["score"] is None:
        return Final(text, wording.timed_out, wording.implied_score, wording.implied_score is not None, False)
    number = float(match["score"]) if NUMBER.fullmatch(match["score"]) else math.nan
    score = number if math.isfinite(number) else None
    return Final(text, False, score, False, score is None)


def quotes_final(text: str) -> bool:
    """Return whether a text holds a final wording; no wording holds a line break, so turns may be joined by them."""
    return holds_any(text, FINAL_STARTS) and FINAL.search(text) is not None


def nearly_final(texts: list[str], joined: str) -> str | None:
    """Return the first system message that holds a final wording among other text; None if there is none.

    `joined` holds the texts, joined by line breaks: it rules out most logs quickly.
    """
    if not holds_any(joined, FINAL_STARTS):
        return None
    rest = [text for text in texts if text[:1] in NEVER_FIRST or read_final(text) is None]
    return next(filter(NEARLY_FINAL.search, rest), None) if holds_any("\n".join(rest), FINAL_STARTS) else None


def judge(finals: list[Final]) -> tuple[float | None, bool, str | None, list[str]]:
    """Return the score, whether the log timed out, the message that decided the status, and the flags.

    The first message with a score gives it; the status is decided by a time-out before a score before any other.
    """
    if not finals:
        return None, False, None, []
    timeouts = [final for final in finals if final.timed_out]
    scored = [final for final in finals if final.score is not None or final.not_a_number]
    score, timed_out = scored[0].score if scored else None, bool(timeouts)
    conflicting = len({final.score for final in scored}) > 1 or (timed_out and any(f.score for f in scored))
    flags = ["score_implied"] * (score is not None and scored[0].implied)
    flags += ["score_not_a_number"] * (bool(scored) and scored[0].not_a_number)
    flags += ["score_out_of_range"] * (score is not None and not 0 <= score <= 100)
    return score, timed_out, (timeouts or scored or finals)[0].text, flags + ["conflicting"] * conflicting


def status_of(score: float | None, timed_out: bool) -> CompletionStatus:
    """Return the status of a score of unknown scale: above 1 it is a percentage."""
    if timed_out:
        return CompletionStatus.TIMED_OUT
    if score is None:
        return CompletionStatus.NO_SCORE_LOGGED
    if score in (1, 100):
        return CompletionStatus.SUCCESS
    return CompletionStatus.FAILED_PARTIAL_SCORE if score > 0 else CompletionStatus.FAILED_SCORE_ZERO
