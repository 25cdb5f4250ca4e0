"""Select runs to compare, with published results, and test the trend over blocked agents."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evalkit.display.words import reach_text, trend_text
from evalkit.io import SourceError
from evalkit.kinds import outcomes
from evalkit.kinds.runs import NO_OUTCOME
from evalkit.kinds.runs import select as select_models
from evalkit.mindcraft.analysis.rates import counted
from evalkit.mindcraft.analysis.task_types import cooking
from evalkit.mindcraft.kind import KIND
from evalkit.mindcraft.tasks import type_named
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
        of models), n, n_clusters (tasks), method, direction, warning.
    """
    table = counted(cooking(runs))
    scored = outcomes(table, "is_successful", KIND).table
    table = table.assign(_task=scored["task"], _value=scored["value"])[table["n_blocked_agents"].notna()]
    trends = trend_by(table, "model_name", "n_blocked_agents", "_value", "_task")
    unscored = trends["model_name"].isin(table.loc[table["_value"].isna(), "model_name"])
    trends.loc[unscored, "warning"] = NO_OUTCOME
    return trends


def conclude_blocked(runs: pd.DataFrame, trend: pd.DataFrame) -> str:
    """Describe what the cooking runs can and cannot show about blocked agents, one line per model.

    Each task counts once, however often it was run; Hell's Kitchen and stale copies are left out.
    """
    gaps = (reach_text(**gap) for gap in detectable(runs))
    return "\n".join([*map(trend_text, trend.to_dict("records")), *gaps]) or "No runs of this kind."


def detectable(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each model how large a difference between the fewest and the most blocked agents would show.

    Each with model, tasks (their number by blocked agents), and gap (a share; NaN where none would show).
    """
    gaps = []
    for model, group in counted(cooking(runs)).groupby("model_name"):
        tasks = group.groupby("n_blocked_agents")["task_id"].nunique()
        if len(tasks) > 1:
            gap = detectable_gap(int(min(tasks.iloc[0], tasks.iloc[-1])))
            gaps.append({"model": str(model), "tasks": tasks.to_dict(), "gap": gap})
    return gaps
