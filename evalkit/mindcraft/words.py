"""Write the sentences of findings that only Mindcraft logs have; they are the templates of `Finding`."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit._notes import note
from evalkit._text import counted_noun, format_interval, listed, sentence
from evalkit.display.words import estimate_text, headline_text, model_names
from evalkit.stats.intervals import LEVEL

FEW_TASKS = 10  # with fewer tasks, a sentence warns that the rate is uncertain
MERGED = (
    "{count:run} with more logs than agents, counted once by the best score: "
    "logs of several runs need a last number in their names, as in Andy_0_0.json and Andy_0_1.json."
)
DIRECTIONS = {
    "falls": "success falls with every blocked agent",
    "falls overall": "success falls overall, but not every step is decided",
    "falls, not steadily": "success falls overall, but not steadily",
    "rises": "success rises with every blocked agent",
    "rises overall": "success rises overall, but not every step is decided",
    "rises, not steadily": "success rises overall, but not steadily",
}


def rate(headline: Mapping[str, Any]) -> str:
    """Describe a success rate, and say how many of its runs were not measured."""
    if headline["code"] != "rate":
        return sentence(headline_text(headline))
    size = f"{counted_noun(int(headline['n']), 'run')} of {counted_noun(int(headline['n_tasks']), 'task')}"
    if unmeasured := int(headline["n_not_measured"]):
        size += f", {unmeasured} of them not measured and counted as {'a failure' if unmeasured == 1 else 'failures'}"
    text = sentence(f"{headline['what']} is {estimate_text(headline)} ({size})")
    return (
        f"{text} With so few tasks, the rate on other tasks is uncertain." if headline["n_tasks"] < FEW_TASKS else text
    )


def no_other(model: str) -> str:
    """State that there is nothing to compare a model with."""
    return f"There is no other model to compare {model} with."


def copies(pairs: Sequence[tuple[str, str, int]]) -> str:
    """Describe which models' folders contain copies of other models' logs."""
    return sentence(note("copied", pairs=pairs))


def drop(headline: Mapping[str, Any]) -> str:
    """Describe how much success drops with blocked agents."""
    if headline["code"] == "no_rate":
        return f"The drop of cooking success with blocked agents is unknown: {headline['warning']}."
    if headline["code"] != "rate":
        return sentence(headline_text(headline))
    none, some = (
        f"{format_interval(headline[f'{side}_estimate'], None, None)} on "
        f"{counted_noun(headline[f'{side}_n_tasks'], 'task')}"
        for side in ("none", "any")
    )
    ends = f"from {none} without blocked agents to {some} with any"
    size = headline["estimate"]
    low, high = headline["low"], headline["high"]
    if high < 0:
        return f"Cooking success rises by {format_interval(-size, -high, -low, unit='points')}, {ends}."
    points = format_interval(size, low, high, unit="points")
    if low > 0:
        text = f"Cooking success drops by {points}, {ends}."
    elif math.isnan(low):
        text = f"The drop of cooking success with blocked agents is {points} (no interval: too few tasks), {ends}."
    else:
        text = f"No drop of cooking success with blocked agents was detected: {points}, {ends}."
    pooled = headline.get("pooled", math.nan)
    if abs(pooled - size) >= 0.005:
        pooled_points = format_interval(pooled, None, None, unit="points")
        text += f" This is the mean over models; with the runs of all models pooled, it is {pooled_points}."
    return text


def own_tasks(tasks: Mapping[float, int]) -> str:
    """State that runs with different numbers of blocked agents belong to different tasks."""
    counts = ", ".join(f"{level:.0f}: {counted_noun(n, 'task')}" for level, n in tasks.items())
    return f"Each number of blocked agents has its own tasks ({counts}), so a drop may also come from harder tasks."


def trend(row: Mapping[Hashable, Any]) -> str:
    """Describe a row of `evalkit.mindcraft.analysis.cooking_trend`."""
    model = row["model_name"]
    if pd.isna(row["p_value"]):
        return f"{model}: no trend can be tested ({row['warning'] or 'too few runs'})."
    corrected = " by Holm" if row["p_holm"] > row["p_value"] else ""
    size = f"{counted_noun(row['n'], 'run')} of {counted_noun(row['n_tasks'], 'task')}"
    result = f"p = {row['p_holm']:.2g}{corrected}, {size}"
    if row["direction"] in DIRECTIONS:
        return f"{model}: {DIRECTIONS[row['direction']]} ({result})."
    if row["p_holm"] <= LEVEL:
        return f"{model}: no trend is claimed ({result}), because {row['warning'].only('uneven', 'unlike')}."
    return f"{model}: no trend was detected ({result}); one cannot be ruled out."


def no_trend(models: Sequence[str], is_tested: bool) -> str:
    """Name the models without a trend, or without a test of it."""
    result = "was detected; one cannot be ruled out" if is_tested else "can be tested (too few levels, or too few runs)"
    return f"{model_names(models, 3)}: no trend with blocked agents {result}."


def reach(model: str, tasks: Mapping[float, int], gap: float) -> str:
    """Describe how large a difference between the fewest and the most blocked agents must be to be detected."""
    levels = listed(f"{level:.0f}" for level in tasks)
    sizes = "1 task each" if set(tasks.values()) == {1} else f"{listed(tasks.values())} tasks"
    size = "no gap, however large," if math.isnan(gap) else f"only a gap of at least about {gap * 100:.0f} points"
    return f"{model}: with {sizes} at {levels} blocked agents, {size} would be detected (80 % power)."
