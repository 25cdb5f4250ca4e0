"""Select runs to compare, with published results, and test the trend over blocked agents."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from evalkit.io import SourceError
from evalkit.kinds import outcomes
from evalkit.kinds.runs import NO_OUTCOME
from evalkit.kinds.runs import select as select_models
from evalkit.mindcraft.analysis.rates import counted
from evalkit.mindcraft.analysis.task_types import cooking
from evalkit.mindcraft.kind import KIND
from evalkit.mindcraft.tasks.facts import type_named
from evalkit.stats import detectable_gap, trend_by


def select(runs: pd.DataFrame, models: Sequence[str] = (), task_type: str = "") -> pd.DataFrame:
    """Select the runs of some models and of one task type, or all; ``crafting`` is another name of ``techtree``.

    Raises
    ------
    SourceError
        If there are no runs at all, or none of a named model.
    """
    selected = select_models(runs, models)
    return selected[selected["task_type"] == type_named(task_type)] if task_type else selected


def focus(runs: pd.DataFrame, model: str = "", baseline: str = "") -> pd.DataFrame:
    """Select the runs of one model and of another, or of all others together.

    Parameters
    ----------
    runs : DataFrame
    model : str
        Empty: the model with the most runs.
    baseline : str
        Empty: all other models together.

    Returns
    -------
    DataFrame
        The runs of both sides with the column `side`, an ordered category: the model first.

    Raises
    ------
    SourceError
        As `select`, and if a model is compared with itself.
    """
    select(runs, [name for name in (model, baseline) if name])
    model = model or str(runs["model_name"].value_counts().index[0])
    if model == baseline:
        raise SourceError(f"model {model!r} can't be its own baseline")
    other = baseline or ("all others" if model != "all others" else "all other models")
    side = runs["model_name"].where(runs["model_name"] == model, other)
    selected = (runs["model_name"] == model) | (runs["model_name"] == baseline if baseline else True)
    return runs.assign(side=pd.Categorical(side, [model, other], ordered=True))[selected]


# MineCollab project site, table of results: success rates (cooking, crafting), mean score / 100 (construction)
PUBLISHED = {
    "Claude-3.5-Sonnet": {"cooking": 0.63, "techtree": 0.47, "construction": 0.36},
    "GPT-4o": {"cooking": 0.40, "techtree": 0.17, "construction": 0.31},
    "LLaMa-70B": {"cooking": 0.36, "techtree": 0.16, "construction": 0.19},
    "LLaMa-8B-SFT": {"cooking": 0.21, "techtree": 0.28, "construction": 0.20},
    "LLaMa-8B": {"cooking": 0.02, "techtree": 0.0, "construction": 0.0},
}


def published(task_type: str) -> pd.DataFrame:
    """Return the published MineCollab means of a task type: model_name, task_type, mean; no rows for other types.

    ``crafting`` is another name of ``techtree``.
    """
    name = type_named(task_type)
    rows = [(model, name, means[name]) for model, means in PUBLISHED.items() if name in means]
    return pd.DataFrame(rows, columns=["model_name", "task_type", "mean"])


def cooking_trend(runs: pd.DataFrame) -> pd.DataFrame:
    """Test for each model whether cooking success falls with the number of blocked agents; Hell's Kitchen is left out.

    Returns
    -------
    DataFrame
        model_name, then estimate, low, high (odds ratio per blocked agent), p_value, p_holm (corrected for the number
        of models), n, n_clusters (tasks), method, direction, warning, sentence.
    """
    table = counted(cooking(runs))
    scored = outcomes(table, "is_successful", KIND).table
    table = table.assign(_task=scored["task"], _value=scored["value"])[table["n_blocked_agents"].notna()]
    trends = trend_by(table, "model_name", "n_blocked_agents", "_value", "_task")
    unscored = trends["model_name"].isin(table.loc[table["_value"].isna(), "model_name"])
    trends.loc[unscored, "warning"] = NO_OUTCOME
    sentences = [_trend_sentence(row) for row in trends.to_dict("records")]
    return trends.assign(sentence=pd.Series(sentences, trends.index, dtype="str"))


DIRECTIONS = {
    "falls": "success falls with every blocked agent",
    "falls overall": "success falls with the number of blocked agents, though not shown for each step",
    "falls, not steadily": "success falls with the number of blocked agents overall, but not steadily",
    "rises": "success rises with every blocked agent",
    "rises overall": "success rises with the number of blocked agents, though not shown for each step",
    "rises, not steadily": "success rises with the number of blocked agents overall, but not steadily",
}


def _trend_sentence(row: Mapping[str, Any]) -> str:
    model, family = row["model_name"], " after Holm correction over models" if row["p_holm"] > row["p_value"] else ""
    if pd.isna(row["p_value"]):
        return f"{model}: no trend can be tested ({row['warning'] or 'too few runs'})."
    result = f"p = {row['p_holm']:.2g}{family}, {row['n']} runs of {row['n_clusters']} tasks"
    if row["direction"] in DIRECTIONS:
        return f"{model}: {DIRECTIONS[row['direction']]} ({result})."
    return f"{model}: no trend is shown ({result}); that is no proof that there is none."


def conclude_blocked(runs: pd.DataFrame, trend: pd.DataFrame) -> str:
    """Describe what the cooking runs can and cannot show about blocked agents, one line per model.

    Each task counts once, however often it was run; Hell's Kitchen and stale copies are left out.
    """
    return "\n".join([*trend["sentence"], *detectable(runs).values()]) or "No runs of this kind."


def detectable(runs: pd.DataFrame) -> dict[str, str]:
    """Describe for each model how large a difference between the fewest and the most blocked agents would show."""
    lines = {}
    for model, group in counted(cooking(runs)).groupby("model_name"):
        tasks = group.groupby("n_blocked_agents")["task_id"].nunique()
        if len(tasks) > 1:
            fewest_tasks = min(tasks.iloc[0], tasks.iloc[-1])
            gap = detectable_gap(int(fewest_tasks))
            counts = ", ".join(f"{n} with {level:.0f}" for level, n in tasks.items())
            reach = (
                f"only a difference of about {gap * 100:.0f} points" if gap == gap else "no difference, however large,"
            )
            lines[str(model)] = f"{model}: tasks by blocked agents: {counts}. So few show {reach} with 80 % power."
    return lines
