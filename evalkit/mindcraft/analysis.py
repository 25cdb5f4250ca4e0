"""Compute estimates, findings and lists from frames of task runs.

Every rate has n and an interval. Runs of the same task are not independent, so tasks have equal weight, and intervals
are for new tasks like these. Runs flagged ``stale_copy`` contain another run's log; estimates exclude them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit._text import as_list, counted_noun
from evalkit.io import SourceError
from evalkit.io.sources import is_sample
from evalkit.kinds import Example, Finding, sections
from evalkit.kinds.findings import data_finding, doubts, examples_of, flag_counts
from evalkit.kinds.runs import NO_OUTCOME, copied, counted, has_flag, kind_of, outcome_of, outcomes
from evalkit.kinds.runs import describe_runs as describe_any
from evalkit.kinds.runs import select as select_models
from evalkit.kinds.success_rates import best_first, rates, rates_by_denominator, sums_by
from evalkit.mindcraft import words
from evalkit.mindcraft.logs import MindcraftLogs
from evalkit.mindcraft.parse import UNKNOWN
from evalkit.mindcraft.table import COUNT_COLUMNS, STATUSES, SUCCEEDED_LATE, CompletionStatus
from evalkit.mindcraft.tasks import TYPE_NAMES
from evalkit.stats import detectable_gap, trend_by
from evalkit.stats.intervals import FEW, FEW_CLUSTERS, bounded, by_family

__all__ = [
    "blocked_findings", "construction_scores", "cooking", "cooking_by_item", "cooking_drop", "cooking_table",
    "cooking_trend", "counted", "crafting_groups", "data_findings", "describe_runs", "describe_scale",
    "event_means", "failed_runs", "findings", "flag_counts", "focus", "headline", "overview", "planned_tasks",
    "progress", "published", "select", "stale_copies", "status_counts", "success_by", "with_difficulty",
    "with_endings", "with_total",
]  # fmt: skip
OVERALL, ALL_MODELS = "overall", "all models"
ENDINGS = ("SUCCESS", SUCCEEDED_LATE, *(str(status) for status in CompletionStatus if status != "SUCCESS"))


def has_succeeded(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether its score is 1; False if the run was not measured."""
    return runs["is_successful"].fillna(False).astype(bool)


def select(runs: pd.DataFrame, models: str | Sequence[str] = (), task_type: str = "") -> pd.DataFrame:
    """Select the runs of the given models and task type.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    models : str or sequence of str
        Names of models; empty for all.
    task_type : str
        A type such as ``cooking``; ``crafting`` is an alias of ``techtree``; empty for all.

    Returns
    -------
    DataFrame
        The selected runs.

    Raises
    ------
    SourceError
        If a model has no runs.

    Examples
    --------
    >>> analysis.select(runs, "alder-large", "cooking")["task_type"].unique().tolist()
    ['cooking']
    """
    selected = select_models(runs, models)
    return selected[selected["task_type"] == TYPE_NAMES.get(task_type, task_type)] if task_type else selected


def focus(runs: pd.DataFrame, model: str = "", baseline: str = "") -> pd.DataFrame:
    """Select the runs of one model and of a baseline.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    model : str
        The model; by default the one with the most runs.
    baseline : str
        Another model; by default all other models together.

    Returns
    -------
    DataFrame
        The selected runs, with side: an ordered category whose first value is the model.

    Raises
    ------
    SourceError
        If a model has no runs, or if `model` and `baseline` are the same.

    Examples
    --------
    >>> analysis.focus(runs, "alder-large")["side"].cat.categories.tolist()
    ['alder-large', 'all others']
    """
    select(runs, [name for name in (model, baseline) if name])
    model = model or str(runs["model_name"].value_counts().index[0])
    if model == baseline:
        raise SourceError(f"model {model!r} can't be its own baseline")
    other = baseline or ("all others" if model != "all others" else "all other models")
    side = runs["model_name"].where(runs["model_name"] == model, other)
    selected = (runs["model_name"] == model) | (runs["model_name"] == baseline if baseline else True)
    return runs.assign(side=pd.Categorical(side, [model, other], ordered=True))[selected]


def cooking(runs: pd.DataFrame, hells_kitchen: bool = False, items: str | Sequence[str] = ()) -> pd.DataFrame:
    """Select the cooking runs outside Hell's Kitchen, or only the runs in it.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    hells_kitchen : bool
        Whether to select the runs in Hell's Kitchen instead of all others.
    items : str or sequence of str
        Only runs with one of these target items; empty for all.

    Returns
    -------
    DataFrame
        The selected runs.

    Examples
    --------
    >>> analysis.cooking(runs)["task_type"].unique().tolist()
    ['cooking']
    """
    taken = (runs["task_type"] == "cooking") & (runs["hells_kitchen"] == hells_kitchen)
    if wanted := set(as_list(items)):
        taken &= runs["target_items"].map(lambda targets: not wanted.isdisjoint(targets)).astype(bool)
    return runs[taken]


def with_endings(runs: pd.DataFrame) -> pd.DataFrame:
    """Add a column with how each run ended: its status, or that it timed out with a score of 1.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        The runs with the column ending.

    Examples
    --------
    >>> "ending" in analysis.with_endings(runs)
    True
    """
    is_late = (runs["status"] == "TIMED_OUT") & has_succeeded(runs)
    return runs.assign(ending=runs["status"].mask(is_late, SUCCEEDED_LATE))


def with_difficulty(runs: pd.DataFrame) -> pd.DataFrame:
    """Make difficulty an ordered category: easy, medium, hard, other values, unknown.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        The runs with this category.

    Examples
    --------
    >>> analysis.with_difficulty(runs)["difficulty"].cat.categories[0]
    'easy'
    """
    values = runs["difficulty"].fillna("unknown").astype("object")
    order = dict.fromkeys(["easy", "medium", "hard", *sorted(set(values) - {"unknown"}), "unknown"])
    return runs.assign(difficulty=pd.Categorical(values, list(order), ordered=True))


def success_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the success rate of groups of runs; a run that was not measured counts as a failure.

    Tasks have equal weight. Stale copies are excluded, and `warning` gives their number.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        The columns of `evalkit.kinds.rates`: `by`, n (runs), n_tasks, estimate, low, high (shares), method, target,
        warning, n_not_measured.

    Examples
    --------
    >>> analysis.success_by(runs, "task_type")["n"].sum() > 0
    np.True_
    """
    return rates(runs, by, "is_successful")


def with_total(runs: pd.DataFrame, by: str, name: str) -> pd.DataFrame:
    """Estimate the success rate of all runs together, and of each group.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str
        Column of the groups.
    name : str
        Label of the row for all runs.

    Returns
    -------
    DataFrame
        The columns of `success_by`. The row for all runs is first; it is left out if there is only one group.

    Examples
    --------
    >>> analysis.with_total(runs, "task_type", "all types")["task_type"].iloc[0]
    'all types'
    """
    groups = success_by(runs, by)
    if len(groups) < 2:
        return groups
    return pd.concat([success_by(runs, []).assign(**{by: name}), groups], ignore_index=True)[list(groups)]


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by how they ended, without stale copies.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, and one column per ending with the number of runs.

    Examples
    --------
    >>> analysis.status_counts(runs).columns[0]
    'model_name'
    """
    fresh = ~has_flag(runs, "stale_copy")
    endings = with_endings(runs)["ending"]
    return sums_by(runs, by, pd.DataFrame({name: endings.eq(name) & fresh for name in ENDINGS}, index=runs.index))[0]


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return the success rate and the number of runs per status of each group, best group first.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        The columns of `success_by`, and one column per status with the number of runs.

    Examples
    --------
    >>> analysis.overview(runs)["model_name"].iloc[0]
    'alder-large'
    """
    statuses = status_counts(runs, by).drop(columns=as_list(by))
    return best_first(success_by(runs, by).join(statuses))  # both have one row per group, in the same order


def headline(runs: pd.DataFrame, what: str) -> dict[str, Any]:
    """Return the success rate of all runs as a headline.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    what : str
        Name of the number, such as ``success rate``.

    Returns
    -------
    dict
        The row of `success_by` for all runs, and code and what.

    Examples
    --------
    >>> analysis.headline(runs, "success rate")["code"]
    'rate'
    """
    return _headline(success_by(runs, []), what)


def _headline(table: pd.DataFrame, what: str, **more: str) -> dict[str, Any]:
    """Return the first row of a table of estimates as a headline."""
    if table.empty:
        return {"code": "no_runs", "what": what}
    row: dict[Any, Any] = table.iloc[0].to_dict()
    return {**row, "code": "no_rate" if pd.isna(row["estimate"]) else "rate", "what": what, **more}


# Source: results table of the MineCollab project site; success rates, and mean score / 100 for construction
PUBLISHED = {
    "Claude-3.5-Sonnet": {"cooking": 0.63, "techtree": 0.47, "construction": 0.36},
    "GPT-4o": {"cooking": 0.40, "techtree": 0.17, "construction": 0.31},
    "LLaMa-70B": {"cooking": 0.36, "techtree": 0.16, "construction": 0.19},
    "LLaMa-8B-SFT": {"cooking": 0.21, "techtree": 0.28, "construction": 0.20},
    "LLaMa-8B": {"cooking": 0.02, "techtree": 0.0, "construction": 0.0},
}


def published(task_type: str) -> pd.DataFrame:
    """Return the published MineCollab means of a task type.

    Parameters
    ----------
    task_type : str
        A type such as ``cooking``; ``crafting`` is an alias of ``techtree``.

    Returns
    -------
    DataFrame
        name, mean (from 0 to 1); no rows for other types.

    Examples
    --------
    >>> analysis.published("cooking")["name"].iloc[0]
    'Claude-3.5-Sonnet'
    """
    task_type = TYPE_NAMES.get(task_type, task_type)
    rows = [(model, means[task_type]) for model, means in PUBLISHED.items() if task_type in means]
    return pd.DataFrame(rows, columns=["name", "mean"])


def cooking_by_item(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", items: str | Sequence[str] = ()
) -> pd.DataFrame:
    """Estimate cooking success by target item, without Hell's Kitchen.

    A run counts once for each of its items, so rows of different items share runs.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.
    items : str or sequence of str
        Only these target items; empty for all.

    Returns
    -------
    DataFrame
        The columns of `success_by`, and item.

    Examples
    --------
    >>> "item" in analysis.cooking_by_item(runs)
    True
    """
    table = cooking(runs).explode("target_items", ignore_index=True).rename(columns={"target_items": "item"})
    table = table[table["item"].isin(as_list(items))] if len(items) else table[table["item"].notna()]
    return success_by(table.astype({"item": "str"}), ["item", *as_list(by)])


def cooking_table(runs: pd.DataFrame, items: str | Sequence[str] = ()) -> pd.DataFrame:
    """Return cooking success by model and number of blocked agents, with an overall row for each model.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    items : str or sequence of str
        Only these target items; empty for all.

    Returns
    -------
    DataFrame
        The columns of `evalkit.kinds.rates_by_denominator`; n_blocked_agents is an ordered category of texts: ``0``, …,
        ``unknown``, ``overall``. Hell's Kitchen is excluded.

    Examples
    --------
    >>> analysis.cooking_table(runs)["n_blocked_agents"].cat.categories[-1]
    'overall'
    """
    runs = cooking(runs, items=items)
    levels = [*map(str, sorted(runs["n_blocked_agents"].dropna().unique())), UNKNOWN, OVERALL]
    texts = runs["n_blocked_agents"].map(str, na_action="ignore").astype("object").fillna(UNKNOWN)
    columns = [pd.Categorical(texts, levels, ordered=True), pd.Categorical([OVERALL] * len(runs), levels, ordered=True)]
    twice = pd.concat([runs.assign(n_blocked_agents=column) for column in columns], ignore_index=True)
    return rates_by_denominator(twice, ["model_name", "n_blocked_agents"], "is_successful")


def cooking_drop(runs: pd.DataFrame) -> pd.DataFrame:
    """Estimate how much cooking success drops with blocked agents, without Hell's Kitchen.

    The two sides have different tasks, so their rates are treated as independent, and the interval of the drop combines
    their intervals (square-and-add, Newcombe 1998). The drop of all models together is the mean of the drops of the
    models that have both sides.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        One row for all models together (if there are several), then one per model, the largest drop first: model_name,
        estimate, low, high (drop of the success rate, from -1 to 1; NaN if one side has no measured run), none_estimate
        and any_estimate with bounds (rates without and with blocked agents), n, n_tasks, none_n_tasks, any_n_tasks,
        method, warning, pooled (only for all models: the drop over all runs together, which differs from the estimate
        if models ran different tasks), measure.

    Examples
    --------
    >>> analysis.cooking_drop(runs)["model_name"].iloc[0]
    'all models'
    """
    runs = _with_sides(runs)
    rated = success_by(runs, ["side", "model_name"])
    models = pd.Index(runs["model_name"].unique(), name="model_name")
    pooled = np.nan
    if len(models) > 1:
        models = models.insert(0, ALL_MODELS)
        rated = pd.concat([rated, _means_over_models(runs, "side")])
        of_sides = success_by(runs, "side").set_index("side")["estimate"].reindex(["none", "any"])
        pooled = of_sides["none"] - of_sides["any"]
    rated = rated.set_index("model_name")
    none, blocked = (
        rated[rated["side"] == name].reindex(models).fillna({"n": 0, "n_tasks": 0}).astype({"n": int, "n_tasks": int})
        for name in ("none", "any")
    )
    drop = none["estimate"] - blocked["estimate"]
    below = np.hypot(none["estimate"] - none["low"], blocked["high"] - blocked["estimate"])
    above = np.hypot(none["high"] - none["estimate"], blocked["estimate"] - blocked["low"])
    table = pd.DataFrame({"estimate": drop, "low": drop - below, "high": drop + above})
    ends = ["estimate", "low", "high"]
    table = table.join([none[ends].add_prefix("none_"), blocked[ends].add_prefix("any_")])
    table = table.join(none[["n", "n_tasks"]] + blocked[["n", "n_tasks"]])
    table = table.assign(none_n_tasks=none["n_tasks"], any_n_tasks=blocked["n_tasks"], method="square-and-add")
    warnings = []
    for model in models:
        notes, doubts_of_sides = Notes(), Notes()
        if model == ALL_MODELS and pd.isna(none.loc[model, "estimate"]):
            notes = note("one_side", text="no model was measured both without and with blocked agents")
        for text, rate in (("without", none.loc[model]), ("with", blocked.loc[model])):
            if pd.isna(rate["estimate"]) and not notes:
                notes += note("one_side", text=f"no run {text} blocked agents was measured")
            if isinstance(rate["warning"], Notes):
                doubts_of_sides += rate["warning"]
        warnings.append(notes or doubts_of_sides)  # doubts about an interval mean nothing without an estimate
    table["warning"] = pd.Series(warnings, models, dtype="object")
    table["pooled"] = np.where(models == ALL_MODELS, pooled, np.nan)
    table["measure"] = "drop of the success rate"
    table = table.reset_index().sort_values("estimate", ascending=False, kind="stable")
    return table.sort_values("model_name", key=lambda names: names != ALL_MODELS, kind="stable", ignore_index=True)


def rates_by_blocked(runs: pd.DataFrame) -> pd.DataFrame:
    """Return cooking success by model and number of blocked agents. All models are averaged as in `cooking_drop`."""
    runs = _with_sides(runs)
    of_models = success_by(runs, ["model_name", "n_blocked_agents"])
    return pd.concat([_means_over_models(runs, "n_blocked_agents"), of_models], ignore_index=True)


def _with_sides(runs: pd.DataFrame) -> pd.DataFrame:
    """Return cooking runs with a known number of blocked agents, and in `side` whether it is none or any."""
    runs = cooking(runs)
    runs = runs[runs["n_blocked_agents"].notna()]
    return runs.assign(side=np.where(runs["n_blocked_agents"] > 0, "any", "none"))


def _means_over_models(runs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return, for each group, the mean rate of the models that have both sides; intervals are over tasks."""
    table = outcomes(runs, "is_successful").table.join(runs[["side", "n_blocked_agents"]]).dropna(subset="value")
    n_sides = table.groupby("model_name")["side"].transform("nunique")
    rows = []
    for group, own in table[n_sides == 2].groupby(by):
        cells = own.groupby(["family", "task", "model_name"])["value"].mean().unstack()
        n, n_tasks = len(cells), cells.count()
        families = cells.index.get_level_values("family")
        mean = cells.mean().mean()
        low = high = np.nan
        if n_tasks.min() > 1 and families.nunique() > 1:
            # each task's contribution to the error of the mean; a task weighs more if its model ran fewer tasks
            errors = (cells - cells.mean()) * np.sqrt(n * (n - 1) / (n_tasks * (n_tasks - 1)))
            values = mean + errors.fillna(0).mean(axis=1)
            units = by_family(values.to_numpy(), cells.count(axis=1).to_numpy(), families.to_numpy())
            fewest = min(units.independent, n_tasks.min())
            low, high = map(float, bounded(units.values, units.sizes, True, units=fewest))
        few = FEW if n_tasks.min() < FEW_CLUSTERS else Notes()
        row = {by: group, "model_name": ALL_MODELS, "estimate": mean, "low": low, "high": high}
        rows.append(row | {"n": len(own), "n_tasks": n, "warning": few})
    columns = [by, "model_name", "estimate", "low", "high", "n", "n_tasks", "warning"]
    made = pd.DataFrame(rows, columns=columns)
    return made.astype(dict.fromkeys(["estimate", "low", "high"], "float64"))


def cooking_trend(runs: pd.DataFrame) -> pd.DataFrame:
    """Test for each model whether cooking success falls with the number of blocked agents.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        model_name, estimate, low, high (odds ratio per blocked agent), p_value, p_holm (corrected for the number of
        models), n, n_tasks, method, direction, warning. Hell's Kitchen is excluded.

    Examples
    --------
    >>> "p_holm" in analysis.cooking_trend(analysis.cooking(runs))
    True
    """
    table = counted(cooking(runs))
    scored = outcomes(table, "is_successful").table
    table = table.assign(_task=scored["task"], _value=scored["value"])[table["n_blocked_agents"].notna()]
    trends = trend_by(table, "model_name", "n_blocked_agents", "_value", "_task")
    unscored = trends["model_name"].isin(table.loc[table["_value"].isna(), "model_name"])
    trends["warning"] = trends["warning"].mask(unscored, NO_OUTCOME)
    return trends


def crafting_groups(runs: pd.DataFrame) -> pd.DataFrame:
    """Estimate crafting success in the groups that MineCollab reports, which overlap.

    The base group has a full plan, depth 0 and no missing items. "Base without plan" follows MineCollab's script: no
    plan, depth 0 and missing items. High depth is any depth above 0.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        The columns of `success_by`, with group; groups without runs are excluded.

    Examples
    --------
    >>> analysis.crafting_groups(runs)["group"].iloc[0]
    'all'
    """
    crafting = runs[runs["task_type"] == "techtree"]
    plan, depth = crafting["plan_availability"], crafting["depth"]
    # according to the definition, or to the task id as in MineCollab's script
    lacks_items = crafting["missing_items"].map(bool).astype(bool) | crafting["task_id"].str.contains("missing")
    groups = {
        "all": crafting["task_id"].notna(),
        "base (full plan, depth 0)": (plan == "full") & (depth == 0) & ~lacks_items,
        "base without plan (items missing)": (plan == "none") & (depth == 0) & lacks_items,
        "missing items": lacks_items,
        "full plan": plan == "full",
        "partial plan": plan == "partial",
        "no plan": plan == "none",
        "depth 0": depth == 0,
        "depth 1": depth == 1,
        "depth 2": depth == 2,
        "high depth (1 or 2)": depth >= 1,
        "needs a crafting table": crafting["requires_crafting_table"],
    }
    members = {group: crafting[belongs.fillna(False).astype(bool)] for group, belongs in groups.items()}
    tables = [success_by(some.assign(group=group), ["group", "model_name"]) for group, some in members.items()]
    return pd.concat(tables, ignore_index=True)


def construction_scores(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate construction scores of all runs and of completed runs, and the completion rate.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        n, n_tasks, estimate, low, high (mean score from 0 to 1 of all runs with a score, including zeros),
        completed_estimate, completed_low, completed_high, completed_n (runs above 0), completion_estimate,
        completion_low, completion_high (share of runs above 0).

    Examples
    --------
    >>> analysis.construction_scores(runs).columns[0]
    'model_name'
    """
    building = runs[runs["task_type"] == "construction"]
    is_completed = building["score"] > 0
    is_successful = is_completed.astype("boolean").where(building["is_successful"].notna())
    share = success_by(building.assign(is_successful=is_successful), by)
    done = rates(building.assign(score=building["score"].where(is_completed)), by, "score")
    # each table has one row per group, in the same order
    out = rates(building, by, "score").join(share[["estimate", "low", "high"]].add_prefix("completion_"))
    return out.join(done[["estimate", "low", "high", "n"]].add_prefix("completed_"))


def describe_scale(runs: pd.DataFrame) -> str:
    """Describe the scale of construction scores and, if it is assumed, the means under the other scale.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    str
        The description.

    Examples
    --------
    >>> analysis.describe_scale(runs.head(0))
    'No construction run logged a score.'
    """
    building = counted(runs[(runs["task_type"] == "construction") & runs["score"].notna()])
    if building.empty:
        return "No construction run logged a score."
    score = building["score"]
    if (building["score_scale"] == "percent").all():
        return f"Construction scores are read as percentages; the highest is {score.max() * 100:.4g}."
    if not has_flag(building, "scale_assumed").any():
        return "Construction scores are read as fractions of the blueprint; 1 is a complete build."
    n_complete, mean = int((score == 1).sum()), score.mean() * 100
    builds = f"{n_complete} of {counted_noun(len(score), 'run')} {'is' if n_complete == 1 else 'are'} complete"
    return (
        "No construction score is above 1, so they are read as fractions of the blueprint; 1 is a complete build. "
        f'The mean is {mean:.3g} %, and {builds}. If they were percentages (scale "percent"), the mean would be '
        f"{mean / 100:.3g} %, and no build complete."
    )


def findings(
    sides: pd.DataFrame,
    pairs: pd.DataFrame,
    ledger: pd.DataFrame,
    opposite: Sequence[Example] = (),
    planned: Sequence[str] = (),
) -> list[Finding]:
    """Report the success of one model, its comparison with the baseline, how its failed runs ended, and doubtful data.

    Parameters
    ----------
    sides : DataFrame
        Result of `focus`.
    pairs : DataFrame
        Result of `evalkit.compare.pairs` for the two sides.
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.
    opposite : sequence of Example
        Result of `evalkit.compare.examples` for tasks on which the sides disagree.
    planned : sequence of str
        Result of `planned_tasks`.

    Returns
    -------
    list of Finding
        The findings.

    Examples
    --------
    >>> sides = analysis.focus(runs)
    >>> pairs = compare.pairs(sides.assign(model_name=sides["side"].astype("str")))
    >>> analysis.findings(sides, pairs, logs.ledger)[0].code
    'rate'
    """
    model = str(sides["side"].cat.categories[0])
    model_runs = sides[sides["side"] == model]
    against = Finding("no_other", sections.SUCCESS, {"model": model}, template=words.no_other)
    if len(pairs):
        against = Finding("pair", sections.SUCCESS, {"row": pairs.to_dict("records")[0]}, tuple(opposite))
    fresh = counted(model_runs)
    outcome = outcome_of(fresh, kind_of(fresh))
    examples = examples_of(fresh, {"a success": outcome.eq("success"), "a failure": outcome.eq("failure")})
    head = headline(model_runs, f"the success rate of {model}")
    return [
        Finding("rate", sections.SUCCESS, {"headline": head}, examples, words.rate),
        against,
        *doubts(outcomes(sides, "is_successful"), planned, [model]),
        *data_findings(model_runs, ledger),
    ]


def data_findings(runs: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Report how the runs without success ended, and doubtful data.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.

    Returns
    -------
    list of Finding
        The findings.

    Examples
    --------
    >>> analysis.data_findings(runs, logs.ledger)[0].code
    'endings'
    """
    fresh = counted(runs)
    failed = fresh[~has_succeeded(fresh)]
    counts = failed["status"].value_counts()
    ended = {str(status): int(n) for status, n in counts.items()}
    labels = {status: STATUSES[status].label for status in ended}
    about = {"endings": ended, "labels": labels, "n": len(fresh), "noun": "run"}
    examples = examples_of(failed, {label: failed["status"].eq(status) for status, label in labels.items()})
    found = [Finding("endings", sections.ENDINGS, about, examples)] if len(fresh) else []
    if pairs := copied(runs, kind_of(runs)):  # (model of the copies, model of the copied logs, number)
        copies = runs[runs["copy_of"].notna()]
        links = tuple(Example("a copy", *ids) for ids in copies[["run_id", "copy_of"]].head(1).itertuples(index=False))
        found.append(Finding("copies", sections.DATA_QUALITY, {"pairs": pairs}, links, words.copies))
    merged = has_flag(fresh, "extra_agent_logs")
    if merged.any():
        examples = examples_of(fresh, {"more logs than agents": merged})
        found.append(Finding("merged", sections.DATA_QUALITY, {"count": int(merged.sum())}, examples, words.MERGED))
    return [*found, data_finding(runs, ledger, "run")]


def drop_findings(runs: pd.DataFrame, drops: pd.DataFrame | None = None) -> list[Finding]:
    """Report how much cooking success drops with blocked agents, and whether each number of them has different tasks.

    `drops` is the result of `cooking_drop` for the same runs, if already computed.
    """
    drops = cooking_drop(runs) if drops is None else drops
    head = _headline(drops, "drop of cooking success with blocked agents", unit="points")
    found = [Finding("drop", "blocked_agents", {"headline": head}, template=words.drop)]
    fresh = counted(cooking(runs))
    levels = fresh.groupby("task_id")["n_blocked_agents"].nunique()
    if head["code"] == "rate" and (levels == 1).any():
        tasks = fresh.groupby("n_blocked_agents")["task_id"].nunique().to_dict()
        found.append(Finding("own_tasks", "blocked_agents", {"tasks": tasks}, template=words.own_tasks))
    return found


def blocked_findings(runs: pd.DataFrame, trend: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Report how the success of cooking runs changes with the number of blocked agents.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    trend : DataFrame
        Result of `cooking_trend`.
    ledger : DataFrame
        One row per input file, such as `logs.ledger`.

    Returns
    -------
    list of Finding
        The findings; the first one states the drop.

    Examples
    --------
    >>> cooking = analysis.cooking(runs)
    >>> analysis.blocked_findings(cooking, analysis.cooking_trend(cooking), logs.ledger)[0].code
    'drop'
    """
    return drop_findings(runs) + trend_findings(runs, trend) + data_findings(runs, ledger)


def trend_findings(runs: pd.DataFrame, trend: pd.DataFrame) -> list[Finding]:
    """Report the trend of each model, and what differences between few and many blocked agents would be detected."""
    found = list[Finding]()
    has_trend = trend["direction"].isin(words.DIRECTIONS)
    is_tested = trend["p_value"].notna()
    without = sorted(trend.loc[~has_trend & is_tested, "model_name"])
    is_few = len(trend) <= 2  # few enough for a sentence each
    for row in trend[has_trend | is_few].to_dict("records"):
        found.append(Finding("trend", "trend", {"row": row}, template=words.trend))
    untested = sorted(trend.loc[~is_tested, "model_name"])
    if without and not is_few:
        found.append(Finding("no_trend", "trend", {"models": without, "is_tested": True}, template=words.no_trend))
    if untested and not is_few:
        found.append(Finding("no_trend", "trend", {"models": untested, "is_tested": False}, template=words.no_trend))
    fresh = counted(cooking(runs))
    for model in without:
        tasks = fresh[fresh["model_name"] == model].groupby("n_blocked_agents")["task_id"].nunique()
        if len(tasks) > 1:
            gap = detectable_gap(int(min(tasks.iloc[0], tasks.iloc[-1])))
            values = {"model": model, "tasks": tasks.to_dict(), "gap": gap}
            found.append(Finding("reach", "trend", values, template=words.reach))
            break
    return found


def describe_runs(runs: pd.DataFrame, source: str | Sequence[str], chosen: Notes = NO_NOTES) -> str:
    """Describe the runs in a sentence, whether they are samples, and the choices that evalkit made for them.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    source : str or sequence of str
        The source of the runs.
    chosen : Notes
        The choices, such as `logs.chosen`.

    Returns
    -------
    str
        The description.

    Examples
    --------
    >>> analysis.describe_runs(runs, "my/runs").split(" from ")[1]
    'my/runs. 1 run has no task definition; fields were inferred'
    """
    text = describe_any(runs, source, chosen)
    if is_sample(source):
        text += " They are made up: no model reached these scores."
    if without := int((~runs["has_definition"]).sum()):
        have = "has" if without == 1 else "have"
        text += f" {counted_noun(without, 'run')} {have} no task definition; fields were inferred from task ids."
    return text


_LISTED = ["model_name", "task_id", "repetition", "status"]


def failed_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without full success, except stale copies. Runs that were not measured come first.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        model_name, task_id, repetition, status, score, final_system_message, parsing_errors, source, run_id.

    Examples
    --------
    >>> analysis.failed_runs(runs)["status"].iloc[0]
    'LOG_FILE_ERROR'
    """
    runs = counted(runs)
    first = {"LOG_FILE_ERROR": 0, "NO_SCORE_LOGGED": 1, "TIMED_OUT": 2}
    rank = runs["status"].map(first).fillna(len(first))
    failed = runs.assign(_rank=rank)[~has_succeeded(runs)].sort_values(["_rank", "task_id", "repetition"])
    columns = [*_LISTED, "score", "final_system_message", "parsing_errors", "source", "run_id"]
    return failed[columns].reset_index(drop=True)


def stale_copies(runs: pd.DataFrame) -> pd.DataFrame:
    """List the stale copies: runs that contain a copy of another run's log. Rates exclude them.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        One row per copy: model_name, task_id, repetition, status, source, run_id.

    Examples
    --------
    >>> len(analysis.stale_copies(runs)) > 0
    True
    """
    return runs.loc[has_flag(runs, "stale_copy"), [*_LISTED, "source", "run_id"]].reset_index(drop=True)


def event_means(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return the mean number of events per run, such as restarts and deaths, without stale copies.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list makes one group of all rows.

    Returns
    -------
    DataFrame
        `by`, n (runs), and the mean of each kind of event. Means are lower bounds, because logs keep only the last
        turns.

    Examples
    --------
    >>> "deaths" in analysis.event_means(runs)
    True
    """
    keys: Any = as_list(by) or (lambda _: 0)
    groups = counted(runs).groupby(keys, dropna=False)
    means = groups[["turns", *(column.name for column in COUNT_COLUMNS[1:])]].mean()
    means = means.rename(columns={"turns": COUNT_COLUMNS[0].name})
    means.insert(0, "n", groups.size())
    return means.reset_index(drop=not as_list(by))


def planned_tasks(logs: MindcraftLogs, runs: pd.DataFrame | None = None) -> list[str]:
    """List the planned tasks: all tasks of each definition file if the models ran more than half of them.

    Every model must have run some tasks of the file. If a filter left out runs of these models, the plan leaves out
    the tasks of those runs. It also leaves out tasks without any run, since no run shows whether the filter selects
    them.

    Parameters
    ----------
    logs : MindcraftLogs
        The logs, with their definitions and the runs before any filter.
    runs : DataFrame, optional
        A part of the runs, such as the runs of some models; by default all.

    Returns
    -------
    list of str
        Task ids.

    Examples
    --------
    >>> len(analysis.planned_tasks(logs, runs)) > 0
    True
    """
    everything, definitions = logs.all_runs, logs.definitions
    is_selected = everything["run_id"].isin((logs.runs if runs is None else runs)["run_id"])
    models = everything.loc[is_selected, "model_name"].unique()
    is_of_models = everything["model_name"].isin(models)
    ran, left_out = everything[is_of_models], everything.loc[is_of_models & ~is_selected, "task_id"]
    files = {task: definitions[task]["definition_file"] for task in definitions}
    table = pd.DataFrame({"task": list(files), "file": list(files.values())})
    is_run = table["task"].isin(ran["task_id"])
    models_of_file = ran.groupby(ran["task_id"].map(files))["model_name"].nunique()
    is_for_all = table["file"].map(models_of_file) == len(models)
    is_planned = is_for_all & is_run.groupby(table["file"]).transform("mean").gt(0.5)
    if len(left_out):
        is_planned &= is_run & ~table["task"].isin(left_out)
    return table.loc[is_planned, "task"].tolist()


def progress(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the runs and tasks so far and the expected tasks, and add the runs' durations.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        One row per model, experiment and task type: runs, tasks, tasks_expected (missing without a results file),
        total_duration and mean_duration (seconds; NaN unless file times are original).

    Examples
    --------
    >>> "tasks_expected" in analysis.progress(runs)
    True
    """
    groups = runs.groupby(["model_name", "experiment", "experiment_folder", "task_type"], dropna=False)
    table = groups.agg(
        runs=("task_id", "size"),
        tasks=("task_id", "nunique"),
        tasks_expected=("experiment_total", "max"),
        total_duration=("duration", lambda d: d.sum(min_count=1)),
        mean_duration=("duration", "mean"),
    )
    return table.reset_index().drop(columns="experiment_folder")
