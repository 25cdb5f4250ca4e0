"""Is model A better than B? Models paired on the tasks they share."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from evalkit.io import SourceError
from evalkit.mindcraft.analysis.rates import NO_SCORE, counted, scored_models, tasks_of
from evalkit.mindcraft.analysis.task_types import cooking
from evalkit.mindcraft.tasks import type_named
from evalkit.stats import Trend, compare_all, detectable_gap, mean_interval, pass_at_k, trend_test


def select(runs: pd.DataFrame, models: Sequence[str] = (), task_type: str = "") -> pd.DataFrame:
    """Take the runs of some models and of one task type.

    Parameters
    ----------
    runs : DataFrame
    models : sequence of str
        Empty: all.
    task_type : str
        Empty: all; ``crafting`` is another name of ``techtree``.

    Returns
    -------
    DataFrame

    Raises
    ------
    SourceError
        Where there are no runs at all, or none of a model that is named.
    """
    there = sorted(runs["model_name"].unique())
    if not there:
        raise SourceError("no task run was found: see the ledger for what was")
    for name in models:
        if name not in there:
            raise SourceError(f"no runs of model {name!r}; there are runs of {', '.join(map(repr, there))}")
    kept = runs["model_name"].isin(models) if len(models) else runs["model_name"].notna()
    return runs[kept & (runs["task_type"] == type_named(task_type))] if task_type else runs[kept]


def focus(runs: pd.DataFrame, model: str = "", baseline: str = "") -> pd.DataFrame:
    """Set one model against another, or against all others together.

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
        As `select`, and where a model is set against itself.
    """
    select(runs, [name for name in (model, baseline) if name])
    model = model or str(runs["model_name"].value_counts().index[0])
    if model == baseline:
        raise SourceError(f"model {model!r} can't be its own baseline")
    other = baseline or ("all others" if model != "all others" else "all other models")
    side = runs["model_name"].where(runs["model_name"] == model, other)
    kept = (runs["model_name"] == model) | (runs["model_name"] == baseline if baseline else True)
    return runs.assign(side=pd.Categorical(side, [model, other], ordered=True))[kept]


class Published(NamedTuple):
    """A published MineCollab mean: success rate (cooking, crafting) or mean score (construction), from 0 to 1."""

    model_name: str
    task_type: str
    mean: float


# MineCollab project site, table of results; construction is the mean score / 100
PUBLISHED = tuple(
    Published(model, task_type, mean)
    for model, means in {
        "Claude-3.5-Sonnet": (0.63, 0.47, 0.36),
        "GPT-4o": (0.40, 0.17, 0.31),
        "LLaMa-70B": (0.36, 0.16, 0.19),
        "LLaMa-8B-SFT": (0.21, 0.28, 0.20),
        "LLaMa-8B": (0.02, 0.0, 0.0),
    }.items()
    for task_type, mean in zip(("cooking", "techtree", "construction"), means, strict=True)
)


def published(task_type: str) -> pd.DataFrame:
    """Give the published MineCollab means of a task type: model_name, task_type, mean; no rows for other types.

    ``crafting`` is another name of ``techtree``.
    """
    rows = [p for p in PUBLISHED if p.task_type == type_named(task_type)]
    return pd.DataFrame(rows, columns=list(Published._fields))


def compare_models(runs: pd.DataFrame, value: str = "overall_is_successful") -> pd.DataFrame:
    """Compare every pair of models on the tasks both have runs of.

    Runs of one model on one task are averaged first; an id that files define differently stands for several tasks. A
    run without a score counts as a failure for success rates, and is left out for scores. A model of which no run
    logged a score has nothing to compare. Stale copies are left out.

    Parameters
    ----------
    runs : DataFrame
        As `runs_df` returns it.
    value : str
        overall_is_successful, overall_is_completed or overall_score.

    Returns
    -------
    DataFrame
        As `evalkit.stats.compare_all`: one row per pair, with the difference, its interval, p values with Holm's
        correction, whether it is decided, what n can show, and a sentence.
    """
    known = scored_models(runs)
    values = runs[value].astype("float64").where(known)
    table = counted(runs.assign(task_id=tasks_of(runs), **{value: values}))
    pairs = compare_all(table, "model_name", "task_id", value)
    unscored = set(runs.loc[~known, "model_name"])
    for side in ("model_a", "model_b"):
        nothing = pairs[side].isin(unscored)
        pairs.loc[nothing, "warning"] = NO_SCORE
        pairs.loc[nothing, "sentence"] = "Not compared: no run of " + pairs.loc[nothing, side] + " logged a score."
    return pairs


def cooking_trend(runs: pd.DataFrame) -> pd.DataFrame:
    """Test for each model whether cooking success falls with the number of blocked agents; Hell's Kitchen is left out.

    Returns
    -------
    DataFrame
        model_name, then estimate, low, high (odds ratio per blocked agent), p_value, n, n_clusters (tasks), method,
        warning, sentence.
    """
    table = counted(cooking(runs))
    trends = {str(model): _trend(own) for model, own in table[table["n_blocked_agents"].notna()].groupby("model_name")}
    rows = [
        {"model_name": model, **trend._asdict(), "sentence": _trend_sentence(model, trend)}
        for model, trend in trends.items()
    ]
    return pd.DataFrame(rows, columns=["model_name", *Trend._fields, "sentence"])


def _trend(runs: pd.DataFrame) -> Trend:
    """Test the runs of one model."""
    if runs["overall_raw_score"].isna().all():
        return Trend(math.nan, math.nan, math.nan, math.nan, 0, 0, "", NO_SCORE)
    counts = runs.groupby(["n_blocked_agents", "task_id"])["overall_is_successful"].agg(["sum", "size"]).reset_index()
    return trend_test(counts["sum"], counts["size"], counts["n_blocked_agents"].astype(float), counts["task_id"])


def conclude_blocked(runs: pd.DataFrame, trend: pd.DataFrame) -> str:
    """Say what the cooking runs can and cannot show about blocked agents, a line per model.

    Tasks are counted once, however often they were run; Hell's Kitchen and stale copies are left out.
    """
    lines = list(trend["sentence"])
    for model, own in counted(cooking(runs)).groupby("model_name"):
        tasks = own.groupby("n_blocked_agents")["task_id"].nunique()
        if len(tasks) > 1:
            few = min(tasks.iloc[0], tasks.iloc[-1])
            gap = detectable_gap(int(few))
            counts = ", ".join(f"{n} with {level:.0f}" for level, n in tasks.items())
            reach = (
                f"only a difference of about {gap * 100:.0f} points" if gap == gap else "no difference, however large,"
            )
            lines.append(f"{model}: tasks by blocked agents: {counts}. So few show {reach} with 80 % power.")
    return "\n".join(lines) or "No runs of this kind."


def _trend_sentence(model: str, trend: Trend) -> str:
    if trend.p_value != trend.p_value:
        return f"{model}: no trend can be tested ({trend.warning or 'too few runs'})."
    if trend.p_value > 0.05:
        return (
            f"{model}: no trend is shown (p = {trend.p_value:.2g}, n = {trend.n}); that is no proof that there is none."
        )
    way = "falls" if trend.estimate < 1 else "rises"
    return f"{model}: success {way} with every blocked agent (p = {trend.p_value:.2g}, n = {trend.n})."


def pass_at(runs: pd.DataFrame, ks: Sequence[int] = (1, 2)) -> pd.DataFrame:
    """Estimate pass@k per model: the chance that at least one of k repetitions of a task succeeds.

    Parameters
    ----------
    runs : DataFrame
    ks : sequence of int
        pass@1 is the success rate, averaged over tasks. A task with fewer than k repetitions is left out of pass@k, and
        so are stale copies.

    Returns
    -------
    DataFrame
        model_name, k, n (tasks), estimate, low, high, method, warning.
    """
    runs = counted(runs.assign(_task=tasks_of(runs), _known=scored_models(runs)))
    tasks = runs.groupby(["model_name", "_task"])["overall_is_successful"].agg(["size", "sum"])
    rows = []
    for k in ks:
        enough = tasks[tasks["size"] >= k]
        for model, known in runs.groupby("model_name")["_known"].any().items():
            own = enough[enough.index.get_level_values("model_name") == model] if known else enough.iloc[:0]
            found = mean_interval(pass_at_k(own["size"].to_numpy(), own["sum"].to_numpy(), k))
            found = found if known else found._replace(warning=NO_SCORE)
            rows.append({"model_name": model, "k": k, **found._asdict()})
    table = pd.DataFrame(rows, columns=["model_name", "k", "n", "estimate", "low", "high", "method", "warning"])
    return table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))
