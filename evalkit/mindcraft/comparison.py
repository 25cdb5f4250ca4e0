"""Is model A better than B? Models paired on the tasks they share."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from evalkit.io import SourceError
from evalkit.mindcraft.by_task import cooking
from evalkit.mindcraft.rates import tasks_of
from evalkit.stats import Trend, compare_all, detectable_gap, mean_interval, pass_at_k, trend_test


def select(runs: pd.DataFrame, models: Sequence[str] = (), task_type: str = "") -> pd.DataFrame:
    """Take the runs of some models and of one task type.

    Parameters
    ----------
    runs : DataFrame
    models : sequence of str
        Empty: all.
    task_type : str
        Empty: all.

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
    return runs[kept & (runs["task_type"] == task_type)] if task_type else runs[kept]


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
        As `select`.
    """
    select(runs, [name for name in (model, baseline) if name])
    model = model or str(runs["model_name"].value_counts().index[0])
    other = baseline or "all others"
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
    """Give the published MineCollab means of a task type: model_name, task_type, mean; no rows for other types."""
    return pd.DataFrame([p for p in PUBLISHED if p.task_type == task_type], columns=list(Published._fields))


def compare_models(runs: pd.DataFrame, value: str = "overall_is_successful") -> pd.DataFrame:
    """Compare every pair of models on the tasks both have runs of.

    Runs of one model on one task are averaged first; an id that files define differently stands for several tasks. A
    run without a score counts as a failure for success rates, and is left out for scores.

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
    return compare_all(runs.assign(task_id=tasks_of(runs)), "model_name", "task_id", value)


def cooking_trend(runs: pd.DataFrame) -> pd.DataFrame:
    """Test for each model whether cooking success falls with the number of blocked agents; Hell's Kitchen is left out.

    Returns
    -------
    DataFrame
        model_name, then estimate, low, high (odds ratio per blocked agent), p_value, n, n_clusters (tasks), method,
        warning, sentence.
    """
    table = cooking(runs)
    table = table[table["n_blocked_agents"].notna()]
    rows = []
    for model, own in table.groupby("model_name"):
        counts = (
            own.groupby(["n_blocked_agents", "task_id"])["overall_is_successful"].agg(["sum", "size"]).reset_index()
        )
        trend = trend_test(counts["sum"], counts["size"], counts["n_blocked_agents"].astype(float), counts["task_id"])
        rows.append({"model_name": model, **trend._asdict(), "sentence": _trend_sentence(str(model), trend)})
    return pd.DataFrame(rows, columns=["model_name", *Trend._fields, "sentence"])


def conclude_blocked(runs: pd.DataFrame, trend: pd.DataFrame) -> str:
    """Say what the cooking runs can and cannot show about blocked agents, a line per model."""
    lines = list(trend["sentence"])
    for model, own in runs.groupby("model_name"):
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
        pass@1 is the success rate, averaged over tasks. A task with fewer than k repetitions is left out of pass@k.

    Returns
    -------
    DataFrame
        model_name, k, n (tasks), estimate, low, high, method, warning.
    """
    tasks = runs.groupby(["model_name", tasks_of(runs)])["overall_is_successful"].agg(["size", "sum"])
    rows = []
    for k in ks:
        enough = tasks[tasks["size"] >= k]
        for model in runs["model_name"].drop_duplicates().sort_values():
            own = enough[enough.index.get_level_values("model_name") == model]
            values = pass_at_k(own["size"].to_numpy(), own["sum"].to_numpy(), k)
            rows.append({"model_name": model, "k": k, **mean_interval(values)._asdict()})
    table = pd.DataFrame(rows, columns=["model_name", "k", "n", "estimate", "low", "high", "method", "warning"])
    return table.assign(low=table["low"].clip(lower=0), high=table["high"].clip(upper=1))
