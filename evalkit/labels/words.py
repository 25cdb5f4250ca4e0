"""Write the sentences of findings on judges."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evalkit._text import counted_noun, format_interval, listed


def corrected(judge: str, n: int, raw: float, estimate: float, low: float, high: float, more: int, after: float) -> str:
    """State a judge's rate, the corrected rate, and the width of its interval with more labels."""
    rate, labels = format_interval(estimate, low, high), counted_noun(n, "label")
    if math.isnan(raw):
        text = f"{judge} gives scores; {labels} turn these into a rate of {rate}"
    else:
        verb = "corrects" if n == 1 else "correct"
        text = f"{judge} says {format_interval(raw, None, None)}; {labels} {verb} this to {rate}"
    if after < (high - low) / 2:
        text += f"; {more} more would give ± {100 * after:.0f} points"
    return f"{text}."


def spread(judges: int, lowest: float, highest: float, low: float, high: float) -> str:
    """State the range of judges' rates, before and after the correction."""
    raw = f"{counted_noun(judges, 'judge')} say between {100 * lowest:.0f} and {100 * highest:.0f} %"
    return f"{raw}; corrected, between {100 * low:.0f} and {100 * high:.0f} %."


def no_better(judges: Sequence[str], of: int, constant: str, accuracy: float) -> str:
    """State which judges agree with people no more often than a constant does."""
    if not judges:
        who = "The judge agrees" if of == 1 else "All judges agree"
        return f"{who} with people more often than “{constant}”, which is right in {100 * accuracy:.0f} %."
    named = listed(judges, 3)
    if of > 1:
        named += f" (of {of})"
    verb = "agrees" if len(judges) == 1 else "agree"
    return f"{named} {verb} with people no more often than “{constant}”, right in {100 * accuracy:.0f} %."


def people(number: int, several: int, disagreed: int, ties: int, agreement: Mapping[str, Any]) -> str:
    """State how often people disagree, and their agreement."""
    units = counted_noun(several, "unit")
    text = f"{number} people labelled; they differ on {disagreed} of {units} that several labelled"
    if ties:
        text += f", and {ties} without a majority {'is' if ties == 1 else 'are'} left out"
    if agreement["estimate"] == agreement["estimate"]:
        value = format_interval(agreement["estimate"], agreement["low"], agreement["high"], percent=False)
        text += f"; {agreement['method'].partition(',')[0]} {value}"
    return f"{text}."


def not_used(problems: Sequence[str], unknown: Mapping[str, int], empty: Mapping[str, int], undecided: int) -> str:
    """State how many rows were not used, and why."""
    parts = [f"{counted_noun(count, name[:-1])} of unknown ids" for name, count in unknown.items()]
    parts += [f"{counted_noun(count, 'verdict')} of {judge} without a value" for judge, count in empty.items()][:3]
    if undecided:
        parts.append(f"{counted_noun(undecided, 'unit')} left undecided")
    if problems:
        parts.append(f"{counted_noun(len(problems), 'row')} that can't be used: {'; '.join(problems[:3])}")
    return f"Not used: {listed(parts)}."
