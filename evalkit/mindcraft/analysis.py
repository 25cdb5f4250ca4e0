"""Estimates, findings and lists of task runs: frames of runs in, frames or findings out.

Every rate has n and an interval. Runs that repeat a task are not independent: tasks have equal weight, and intervals
are for new tasks like these. Runs flagged ``stale_copy`` hold another run's log and are counted nowhere here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import NO_NOTES, Notes, note
from evalkit._text import as_list, counted_noun
from evalkit.io import SourceError
from evalkit.io.sources import is_sample
from evalkit.kinds import (
    Example,
    Finding,
    data_finding,
    examples_of,
    kind_named,
    outcomes,
    rates,
    rates_by_denominator,
    sections,
)
from evalkit.kinds.findings import doubts, flag_counts
from evalkit.kinds.runs import NO_OUTCOME, copied, has_flag, outcome_of
from evalkit.kinds.runs import describe_runs as describe_any
from evalkit.kinds.runs import select as select_models
from evalkit.kinds.success_rates import best_first, sums_by
from evalkit.mindcraft import words
from evalkit.mindcraft.parse import UNKNOWN
from evalkit.mindcraft.table import COUNT_COLUMNS, STATUSES, SUCCEEDED_LATE, CompletionStatus
from evalkit.mindcraft.tasks import TYPE_NAMES, TaskDefinitions
from evalkit.stats import detectable_gap, trend_by

__all__ = [
    "blocked_findings", "construction_scores", "cooking", "cooking_by_item", "cooking_drop", "cooking_table",
    "cooking_trend", "counted", "crafting_groups", "data_findings", "describe_runs", "describe_scale", "drop_findings",
    "event_means", "failed_runs", "findings", "flag_counts", "focus", "headline", "overview", "planned_tasks",
    "progress", "published", "score_by", "select", "stale_copies", "status_counts", "success_by", "with_difficulty",
    "with_endings", "with_total",
]  # fmt: skip
OVERALL, ALL_MODELS = "overall", "all models"
ENDINGS = ("SUCCESS", SUCCEEDED_LATE, *(str(status) for status in CompletionStatus if status != "SUCCESS"))


def is_stale(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether it holds a copy of another run's log."""
    return has_flag(runs, "stale_copy")


def has_succeeded(runs: pd.DataFrame) -> pd.Series:
    """Return for each run whether its score is 1; one that was not measured has not succeeded."""
    return runs["is_successful"].fillna(False).astype(bool)


def counted(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs that count in rates: all but stale copies."""
    return runs[~is_stale(runs)]


def select(runs: pd.DataFrame, models: str | Sequence[str] = (), task_type: str = "") -> pd.DataFrame:
    """Select the runs of models and of a task type (``crafting`` is ``techtree``), or all; SourceError without any."""
    selected = select_models(runs, models)
    return selected[selected["task_type"] == TYPE_NAMES.get(task_type, task_type)] if task_type else selected


def focus(runs: pd.DataFrame, model: str = "", baseline: str = "") -> pd.DataFrame:
    """Select the runs of one model and of another, by default of that with the most runs and of all others together.

    The column `side` is an ordered category, the model first. SourceError as of `select`, and if both are the same.
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
    """Select the cooking runs that have one of `items`, if any, as a target; without (or only) Hell's Kitchen."""
    taken = (runs["task_type"] == "cooking") & (runs["hells_kitchen"] == hells_kitchen)
    if wanted := set(as_list(items)):
        taken &= runs["target_items"].map(lambda targets: not wanted.isdisjoint(targets)).astype(bool)
    return runs[taken]


def with_endings(runs: pd.DataFrame) -> pd.DataFrame:
    """Add how runs ended: their status, or that a run timed out and succeeded, as its score of 1 says."""
    is_late = (runs["status"] == "TIMED_OUT") & has_succeeded(runs)
    return runs.assign(ending=runs["status"].mask(is_late, SUCCEEDED_LATE))


def with_difficulty(runs: pd.DataFrame) -> pd.DataFrame:
    """Make difficulty an ordered category: easy, medium, hard, any others, unknown."""
    values = runs["difficulty"].fillna("unknown").astype("object")
    order = dict.fromkeys(["easy", "medium", "hard", *sorted(set(values) - {"unknown"}), "unknown"])
    return runs.assign(difficulty=pd.Categorical(values, list(order), ordered=True))


def success_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the success rate (score = 1) of groups of runs; one that was not measured counts as a failure.

    `by` names the columns of the groups; an empty list is for all runs together. Columns as of `evalkit.kinds.rates`:
    the rate is `estimate`, in which tasks weigh equally. Stale copies are left out; `warning` says how many.
    """
    return rates(runs, by, "is_successful", kind_named("mindcraft"))


def with_total(runs: pd.DataFrame, by: str, name: str) -> pd.DataFrame:
    """Estimate the success rate of all runs together, as a row of this name, and below it that of each group."""
    groups = success_by(runs, by)
    if len(groups) < 2:
        return groups
    return pd.concat([success_by(runs, []).assign(**{by: name}), groups], ignore_index=True)[list(groups)]


def score_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score, from 0 to 1, of the runs that have one; columns as `evalkit.kinds.rates`."""
    return rates(runs, by, "score", kind_named("mindcraft"))


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by how they ended, without stale copies: one column for each of `ENDINGS`."""
    fresh, endings = ~is_stale(runs), with_endings(runs)["ending"]
    return sums_by(runs, by, pd.DataFrame({name: endings.eq(name) & fresh for name in ENDINGS}, index=runs.index))[0]


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return success rates and counts of statuses of each group, the best first."""
    statuses = status_counts(runs, by).drop(columns=as_list(by))
    return best_first(success_by(runs, by).join(statuses))  # both have one row per group, in the same order


def headline(runs: pd.DataFrame, what: str) -> dict[str, Any]:
    """Return a row of `success_by` for a headline, with a code and `what` the figure is."""
    table = success_by(runs, [])
    if table.empty:
        return {"code": "no_runs", "what": what}
    row: dict[Any, Any] = table.iloc[0].to_dict()
    return {**row, "code": "rate" if row["estimate"] == row["estimate"] else "no_rate", "what": what}


# MineCollab project site, table of results: success rates (cooking, crafting), mean score / 100 (construction)
PUBLISHED = {
    "Claude-3.5-Sonnet": {"cooking": 0.63, "techtree": 0.47, "construction": 0.36},
    "GPT-4o": {"cooking": 0.40, "techtree": 0.17, "construction": 0.31},
    "LLaMa-70B": {"cooking": 0.36, "techtree": 0.16, "construction": 0.19},
    "LLaMa-8B-SFT": {"cooking": 0.21, "techtree": 0.28, "construction": 0.20},
    "LLaMa-8B": {"cooking": 0.02, "techtree": 0.0, "construction": 0.0},
}


def published(task_type: str) -> pd.DataFrame:
    """Return the published MineCollab means of a task type (``crafting`` is ``techtree``): name, mean; or no rows."""
    task_type = TYPE_NAMES.get(task_type, task_type)
    rows = [(model, means[task_type]) for model, means in PUBLISHED.items() if task_type in means]
    return pd.DataFrame(rows, columns=["name", "mean"])


def cooking_by_item(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", items: str | Sequence[str] = ()
) -> pd.DataFrame:
    """Estimate cooking success by target item (of `items`, or of any); a run counts once for each of its items.

    Rows of different items share runs, so they must not be added up. Hell's Kitchen is left out.
    """
    table = cooking(runs).explode("target_items", ignore_index=True).rename(columns={"target_items": "item"})
    table = table[table["item"].isin(as_list(items))] if len(items) else table[table["item"].notna()]
    return success_by(table.astype({"item": "str"}), ["item", *as_list(by)])


def cooking_table(runs: pd.DataFrame, items: str | Sequence[str] = ()) -> pd.DataFrame:
    """Return cooking success by model and number of blocked agents, with an overall row for each model.

    Columns as of `evalkit.kinds.rates_by_denominator`; n_blocked_agents is an ordered category of texts: ``0``, …,
    ``unknown``, ``overall``. Hell's Kitchen is left out.
    """
    runs = cooking(runs, items=items)
    levels = [*map(str, sorted(runs["n_blocked_agents"].dropna().unique())), UNKNOWN, OVERALL]
    texts = runs["n_blocked_agents"].map(str, na_action="ignore").astype("object").fillna(UNKNOWN)
    columns = [pd.Categorical(texts, levels, ordered=True), pd.Categorical([OVERALL] * len(runs), levels, ordered=True)]
    twice = pd.concat([runs.assign(n_blocked_agents=column) for column in columns], ignore_index=True)
    return rates_by_denominator(twice, ["model_name", "n_blocked_agents"], "is_successful", kind_named("mindcraft"))


def cooking_drop(runs: pd.DataFrame) -> pd.DataFrame:
    """Estimate how much cooking success drops from no blocked agents to any; Hell's Kitchen is left out.

    The rows are all models together, if there are several, then each model, the largest drop first. Columns:
    model_name, estimate, low, high (the drop of the success rate; tasks weigh equally), none_estimate, any_estimate
    with low and high (the rates without and with blocked agents), n, n_tasks, none_tasks, any_tasks (tasks),
    warning. The two sides have different tasks, so they count as independent: the interval combines those of the rates
    (square-and-add, Newcombe 1998). NaN where one side has no measured run.
    """
    runs = cooking(runs)
    runs = runs[runs["n_blocked_agents"].notna()]
    if runs["model_name"].nunique() > 1:
        runs = pd.concat([runs.assign(model_name=ALL_MODELS), runs], ignore_index=True)
    side = (runs["n_blocked_agents"] > 0).astype(bool).map({False: "none", True: "any"})
    rated = success_by(runs.assign(side=side), ["side", "model_name"]).set_index("model_name")
    models = pd.Index(runs["model_name"].unique(), name="model_name")
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
    table = table.assign(none_tasks=none["n_tasks"], any_tasks=blocked["n_tasks"])
    warnings = []
    for model in models:
        notes = Notes()
        if pd.isna(none.loc[model, "estimate"]):
            notes += note("one_side", text="no run without blocked agents was measured")
        if pd.isna(blocked.loc[model, "estimate"]):
            notes += note("one_side", text="no run with blocked agents was measured")
        for warning in (none.loc[model, "warning"], blocked.loc[model, "warning"]):
            if isinstance(warning, Notes):
                notes += warning
        warnings.append(notes)
    table["warning"] = pd.Series(warnings, models, dtype="object")
    table = table.reset_index().sort_values("estimate", ascending=False, kind="stable")
    return table.sort_values("model_name", key=lambda names: names != ALL_MODELS, kind="stable", ignore_index=True)


def cooking_trend(runs: pd.DataFrame) -> pd.DataFrame:
    """Test for each model whether cooking success falls with the number of blocked agents; Hell's Kitchen is left out.

    Columns: model_name, then estimate, low, high (odds ratio per blocked agent), p_value, p_holm (corrected for the
    number of models), n, n_tasks, method, direction, warning.
    """
    table = counted(cooking(runs))
    scored = outcomes(table, "is_successful", kind_named("mindcraft")).table
    table = table.assign(_task=scored["task"], _value=scored["value"])[table["n_blocked_agents"].notna()]
    trends = trend_by(table, "model_name", "n_blocked_agents", "_value", "_task")
    unscored = trends["model_name"].isin(table.loc[table["_value"].isna(), "model_name"])
    trends["warning"] = trends["warning"].mask(unscored, NO_OUTCOME)
    return trends


def crafting_groups(runs: pd.DataFrame) -> pd.DataFrame:
    """Estimate crafting success in the groups MineCollab reports, which overlap; groups without runs are left out.

    The base group holds tasks with a full plan, of depth 0, and with no item missing. "Base without plan" is what
    MineCollab's script means by that name: no plan, depth 0, and items missing; so it is not the base group with the
    plan removed. High depth is any above 0; MineCollab's tasks have depths 0 to 2.
    """
    crafting = runs[runs["task_type"] == "techtree"]
    plan, depth = crafting["plan_availability"], crafting["depth"]
    # by the definition, or by the id as MineCollab does
    lacks_items = crafting["missing_items"].map(bool).astype(bool) | crafting["task_id"].str.contains("missing")
    groups = {
        "all": crafting["task_id"].notna(),
        "base (full plan, depth 0)": (plan == "full") & (depth == 0) & ~lacks_items,
        "base without plan (items missing too)": (plan == "none") & (depth == 0) & lacks_items,
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
    """Estimate construction scores: of all runs, of completed ones, and the completion rate.

    The columns are those of `score_by` (all runs with a score, zeros included), then completed_estimate, completed_low,
    completed_high, completed_n (mean score of runs above 0), and completion_estimate, completion_low, completion_high
    (share of runs above 0).
    """
    by = as_list(by)
    building = runs[runs["task_type"] == "construction"]
    out = score_by(building, by)
    is_completed = building["score"] > 0
    completed = is_completed.astype("boolean").where(building["is_successful"].notna())
    share = success_by(building.assign(is_successful=completed), by)
    out = out.join(share[["estimate", "low", "high"]].add_prefix("completion_"))
    done = score_by(building[is_completed], by).set_index(by or "n_not_measured")
    done = done[["estimate", "low", "high", "n"]].add_prefix("completed_").reset_index(drop=not by)
    out = out.merge(done, on=by, how="left") if by else out.join(done)
    return out.assign(completed_n=out["completed_n"].fillna(0).astype("int64"))


def describe_scale(runs: pd.DataFrame) -> str:
    """Describe how construction scores were read and, where that is assumed, what the other reading would give."""
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
    """Describe what one model achieved, compared to what, how its other runs ended, and what is doubtful.

    `sides` is a result of `focus`, `pairs` of `evalkit.compare.pairs` for the two sides, `opposite` of
    `evalkit.compare.examples` for tasks with opposite outcomes, and `planned` of `planned_tasks`.
    """
    model = str(sides["side"].cat.categories[0])
    model_runs = sides[sides["side"] == model]
    against = Finding("no_other", "Success", {"model": model}, template=words.no_other)
    if len(pairs):
        against = Finding("pair", "Success", {"row": pairs.to_dict("records")[0]}, tuple(opposite))
    fresh = counted(model_runs)
    outcome = outcome_of(fresh, kind_named("mindcraft"))
    examples = examples_of(fresh, {"a success": outcome.eq("success"), "a failure": outcome.eq("failure")})
    head = headline(model_runs, f"the success rate of {model}")
    return [
        Finding("rate", "Success", {"headline": head}, examples, words.rate),
        against,
        *doubts(outcomes(sides, "is_successful", kind_named("mindcraft")), planned, [model]),
        *data_findings(model_runs, ledger),
    ]


def data_findings(runs: pd.DataFrame, ledger: pd.DataFrame, endings: str = sections.ENDINGS) -> list[Finding]:
    """Describe how the runs without success ended, below the heading `endings`, and what is doubtful in the data."""
    fresh = counted(runs)
    failed = fresh[~has_succeeded(fresh)]
    counts = failed["status"].value_counts()
    labels = {status: STATUSES[str(status)].label for status in counts.index}
    about = {"endings": {labels[status]: int(n) for status, n in counts.items()}, "n": len(fresh), "noun": "run"}
    examples = examples_of(failed, {label: failed["status"].eq(status) for status, label in labels.items()})
    found = [Finding("endings", endings, about, examples)] if len(fresh) else []
    if pairs := copied(runs, kind_named("mindcraft")):  # whose logs stale copies hold, and whose runs they stand for
        copies = runs[runs["copy_of"].notna()]
        links = tuple(Example("a copy", *ids) for ids in copies[["run_id", "copy_of"]].head(1).itertuples(index=False))
        found.append(Finding("copies", sections.DATA_QUALITY, {"pairs": pairs}, links, words.copies))
    merged = has_flag(fresh, "extra_agent_logs")
    if merged.any():
        examples = examples_of(fresh, {"more logs than agents": merged})
        found.append(Finding("merged", sections.DATA_QUALITY, {"count": int(merged.sum())}, examples, words.MERGED))
    return [*found, data_finding(runs, ledger, "run")]


def drop_findings(runs: pd.DataFrame, drops: pd.DataFrame | None = None) -> list[Finding]:
    """Describe how much cooking success drops with blocked agents, and whether each number has its own tasks.

    `drops` is the result of `cooking_drop` for the same runs, if already computed.
    """
    section = "Success by number of blocked agents"
    drops = cooking_drop(runs) if drops is None else drops
    what = "drop of cooking success from no blocked agents to any"
    if drops.empty:
        return [Finding("drop", section, {"headline": {"code": "no_runs", "what": what}}, template=words.drop)]
    first: dict[Any, Any] = drops.iloc[0].to_dict()
    code = "no_rate" if pd.isna(first["estimate"]) else "rate"
    head = {**first, "code": code, "what": what, "unit": "points"}
    found = [Finding("drop", section, {"headline": head}, template=words.drop)]
    fresh = counted(cooking(runs))
    levels = fresh.groupby("task_id")["n_blocked_agents"].nunique()
    if (levels == 1).any():
        tasks = fresh.groupby("n_blocked_agents")["task_id"].nunique().to_dict()
        found.append(Finding("own_tasks", section, {"tasks": tasks}, template=words.own_tasks))
    return found


def blocked_findings(runs: pd.DataFrame, trend: pd.DataFrame, ledger: pd.DataFrame) -> list[Finding]:
    """Describe how success of cooking runs changes with the number of blocked agents; `trend` as of `cooking_trend`."""
    blocked = drop_findings(runs)
    if len(trend):
        shown = trend["direction"].isin(words.DIRECTIONS)
        each = trend if len(trend) <= 2 else trend[shown]  # of few models each has a sentence
        rest = sorted(trend.loc[~shown, "model_name"]) if len(trend) > 2 else []
        section = "Is there a trend?"
        for row in each.to_dict("records"):
            blocked.append(Finding("trend", section, {"row": row}, template=words.trend))
        if rest:
            blocked.append(Finding("no_trend", section, {"models": rest}, template=words.no_trend))
        fresh = counted(cooking(runs))
        for model in sorted(trend.loc[~shown, "model_name"]):
            tasks = fresh[fresh["model_name"] == model].groupby("n_blocked_agents")["task_id"].nunique()
            if len(tasks) > 1:
                gap = detectable_gap(int(min(tasks.iloc[0], tasks.iloc[-1])))
                values = {"model": model, "tasks": tasks.to_dict(), "gap": gap}
                blocked.append(Finding("reach", section, values, template=words.reach))
                break
    return [*blocked, *data_findings(runs, ledger, "Runs without success")]


def describe_runs(runs: pd.DataFrame, source: str | Sequence[str], chosen: Notes = NO_NOTES) -> str:
    """Describe what runs these are, whether they are made-up samples, and what was `chosen` for them."""
    text = describe_any(runs, source, chosen)
    if is_sample(source):
        text += " They are made up: no model reached these scores."
    if without := int((~runs["has_definition"]).sum()):
        have = "has" if without == 1 else "have"
        text += f" {counted_noun(without, 'run')} {have} no task definition; fields were inferred from task ids."
    return text


_LISTED = ["model_name", "task_id", "repetition", "status"]


def failed_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without full success, broken ones first, without stale copies; see `stale_copies`."""
    runs = counted(runs)
    first = {"LOG_FILE_ERROR": 0, "NO_SCORE_LOGGED": 1, "TIMED_OUT": 2}
    rank = runs["status"].map(first).fillna(len(first))
    failed = runs.assign(_rank=rank)[~has_succeeded(runs)].sort_values(["_rank", "task_id", "repetition"])
    columns = [*_LISTED, "score", "final_system_message", "parsing_errors", "source", "run_id"]
    return failed[columns].reset_index(drop=True)


def stale_copies(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs that hold a copy of another run's log and so count in no rate."""
    return runs.loc[is_stale(runs), [*_LISTED, "source", "run_id"]].reset_index(drop=True)


def event_means(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Return the mean events per run, without stale copies: lower bounds, as logs keep only the last turns."""
    groups = counted(runs).groupby(as_list(by), dropna=False)
    means = groups[["turns", *(column.name for column in COUNT_COLUMNS[1:])]].mean()
    means = means.rename(columns={"turns": COUNT_COLUMNS[0].name})
    means.insert(0, "n", groups.size())
    return means.reset_index()


def planned_tasks(definitions: TaskDefinitions, runs: pd.DataFrame) -> list[str]:
    """List the tasks that were to be run: those of files of which over half were run, and some by each model."""
    files = {task: definitions[task]["definition_file"] for task in definitions}
    table = pd.DataFrame({"task": list(files), "file": list(files.values())})
    is_run = table["task"].isin(runs["task_id"]).groupby(table["file"]).transform("mean") > 0.5
    models_of_file = runs.groupby(runs["task_id"].map(files))["model_name"].nunique()
    is_for_all = table["file"].map(models_of_file) == runs["model_name"].nunique()
    return table.loc[is_run & is_for_all, "task"].tolist()


def progress(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs so far, those expected, and their durations, per model, experiment and task_type.

    tasks_expected is NA without a results file, and durations (in seconds) NaN unless the files' times are original.
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
