"""Frames of runs in, frames of estimates out; every rate with n and an interval.

Runs that repeat a task are not independent: intervals are robust to clusters of one task.
"""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from evalkit.io import SourceError
from evalkit.mindcraft.definitions import TaskDefinitions
from evalkit.mindcraft.format import CompletionStatus
from evalkit.mindcraft.table import COUNT_COLUMNS, FLAGS
from evalkit.stats import estimate_by

Missing = Literal["failure", "exclude"]
ESTIMATES = ["n", "n_clusters", "estimate", "low", "high", "method", "warning"]


def has_score(runs: pd.DataFrame) -> pd.Series:
    """Tell for each run whether a score was logged."""
    return runs["overall_raw_score"].notna()


def success_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the success rate (score = 1) of groups of runs.

    Parameters
    ----------
    runs : DataFrame
        As `runs_df` returns it.
    by : str or list of str
        Columns of the groups; an empty list for all runs together.
    missing : {"failure", "exclude"}
        What a run without a score counts as.

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters (tasks), estimate, low, high, method, warning, and
        n_without_score: runs of the group without a score, whether counted or left out.
    """
    return _with_missing(runs, by, "overall_is_successful", "proportion", missing)


def completion_by(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate the completion rate (score > 0); columns as `success_by`."""
    return _with_missing(runs, by, "overall_is_completed", "proportion", missing)


def score_by(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate the mean score, from 0 to 1, of the runs that have one; columns as `success_by`.

    Scores are shares, so bounds beyond 0 and 1 are cut.
    """
    out = _with_missing(runs, by, "overall_score", "mean", "exclude")
    return out.assign(low=out["low"].clip(lower=0), high=out["high"].clip(upper=1))


def _with_missing(
    runs: pd.DataFrame, by: str | Sequence[str], value: str, kind: Literal["proportion", "mean"], missing: Missing
) -> pd.DataFrame:
    if missing not in ("failure", "exclude"):
        raise ValueError(f"missing {missing!r}: failure or exclude")
    by = [by] if isinstance(by, str) else list(by)
    table = runs[[*by, value, "task_id"]].rename(columns={"task_id": "_task"})
    counted = has_score(runs) if missing == "exclude" else pd.Series(True, index=runs.index)
    table = table.assign(**{value: table[value].astype("float64").where(counted)})
    out = estimate_by(table, by, value, clusters="_task", kind=kind)
    lost = estimate_by(table.assign(**{value: (~has_score(runs)).astype(float)}), by, value)
    return out.assign(n_without_score=(lost["estimate"] * lost["n"]).round().astype("int64"))


def status_counts(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Count the runs of each group by completion status: one column per status, also where it is 0."""
    by = [by] if isinstance(by, str) else list(by)
    is_status = {str(s): runs["overall_completion_status"] == str(s) for s in CompletionStatus}
    table = pd.DataFrame(is_status, index=runs.index).astype("int64")
    if not by:
        return table.sum().to_frame().T
    return pd.concat([runs[by], table], axis=1).groupby(by, dropna=False, observed=True).sum().reset_index()


def overview(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give success rates and counts of statuses of each group, the best first."""
    by = [by] if isinstance(by, str) else list(by)
    success, statuses = success_by(runs, by), status_counts(runs, by)
    table = success.merge(statuses, on=by) if by else pd.concat([success, statuses], axis=1)
    return table.sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


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
        Where there are no runs, or none of a model that is named.
    """
    counts = runs["model_name"].value_counts()
    if counts.empty:
        raise SourceError("no task run was found: see the ledger for what was")
    for name in filter(None, (model, baseline)):
        if name not in counts:
            raise SourceError(
                f"no runs of model {name!r}; there are runs of {', '.join(map(repr, sorted(counts.index)))}"
            )
    model = model or str(counts.index[0])
    other = baseline or "all others"
    side = runs["model_name"].where(runs["model_name"] == model, other)
    kept = (runs["model_name"] == model) | (runs["model_name"] == baseline if baseline else True)
    return runs.assign(side=pd.Categorical(side, [model, other], ordered=True))[kept]


def both_ways(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give success rates with runs without a score as failures (estimate) and left out (scored_…), side by side."""
    out = success_by(runs, by).drop(columns=["method"])
    scored = success_by(runs, by, missing="exclude")
    columns = {f"scored_{name}": scored[name] for name in ("n", "estimate", "low", "high")}
    return out.assign(**columns).sort_values("estimate", ascending=False, kind="stable", ignore_index=True)


def with_difficulty(runs: pd.DataFrame) -> pd.DataFrame:
    """Make difficulty an ordered category: easy, medium, hard, any others, unknown."""
    values = runs["difficulty"].fillna("unknown").astype("object")
    order = dict.fromkeys(["easy", "medium", "hard", *sorted(set(values) - {"unknown"}), "unknown"])
    return runs.assign(difficulty=pd.Categorical(values, list(order), ordered=True))


def describe_runs(runs: pd.DataFrame, source: str) -> str:
    """Say in a sentence or two what runs these are, and whether they are the made samples."""
    models, tasks = runs["model_name"].unique(), runs["task_id"].nunique()
    types = ", ".join(f"{n} {kind}" for kind, n in runs["task_type"].value_counts().items())
    text = f"{len(runs)} runs of {', '.join(models)} on {tasks} tasks ({types})."
    made = " These are made-up sample data: no model reached these scores."
    return text + made * source.startswith("samples:")


def ambiguous_definitions(definitions: TaskDefinitions) -> pd.DataFrame:
    """List the task ids with differing definitions, and their files."""
    rows = [(task_id, len(files), files) for task_id, files in definitions.ambiguous.items()]
    return pd.DataFrame(rows, columns=["task_id", "definitions", "files"])


def unused_files(ledger: pd.DataFrame) -> pd.DataFrame:
    """List the files of a ledger that were skipped or failed."""
    return ledger[ledger["status"] != "used"].sort_values(["status", "source"], ignore_index=True)


def failed_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs without full success, broken ones first: what they were, how they ended, where they lie."""
    order = [CompletionStatus.LOG_FILE_ERROR, CompletionStatus.NO_SCORE_LOGGED, CompletionStatus.TIMED_OUT]
    rank = runs["overall_completion_status"].map({str(status): i for i, status in enumerate(order)}).fillna(len(order))
    columns = ["model_name", "task_id", "repetition", "overall_completion_status", "overall_score"]
    columns += ["final_system_message", "parsing_errors", "source"]
    failed = runs.assign(_rank=rank)[~runs["overall_is_successful"]]
    return failed.sort_values(["_rank", "task_id", "repetition"], ignore_index=True)[columns]


def flag_counts(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the runs that carry each flag, with what it means; flags no run carries are left out."""
    counts = {name: int(runs[f"flag_{name}"].sum()) for name in FLAGS}
    rows = [(name, n, FLAGS[name]) for name, n in counts.items() if n]
    return pd.DataFrame(rows, columns=["flag", "runs", "meaning"])


def event_means(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Give messages, commands, deaths and other events per run; logs keep only the last turns: lower bounds."""
    by = [by] if isinstance(by, str) else list(by)
    names = [column.name for column in COUNT_COLUMNS]
    means = runs.groupby(by, dropna=False)[names].mean()
    return means.assign(n=runs.groupby(by, dropna=False).size()).reset_index()[[*by, "n", *names]]


def cooking_by_blocked(
    runs: pd.DataFrame, by: str | Sequence[str] = ("model_name", "n_blocked_agents"), missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate cooking success by number of agents without recipe access; Hell's Kitchen is left out.

    Runs whose number is unknown (no definition, no suffix in the id) make a group of their own, NA.
    """
    return success_by(cooking(runs), by, missing)


def cooking(runs: pd.DataFrame, hells_kitchen: bool = False) -> pd.DataFrame:
    """Take the cooking runs, without (or only) Hell's Kitchen, where each agent holds the other's recipe."""
    return runs[(runs["task_type"] == "cooking") & (runs["hells_kitchen"] == hells_kitchen)]


def cooking_by_item(
    runs: pd.DataFrame, by: str | Sequence[str] = "model_name", missing: Missing = "failure", items: Sequence[str] = ()
) -> pd.DataFrame:
    """Estimate cooking success by target item; a run counts once for each of its items.

    Rows of different items share runs, so they must not be added up.

    Parameters
    ----------
    runs, by, missing
        As for `success_by`.
    items : sequence of str
        Only these; empty for all.
    """
    by = [by] if isinstance(by, str) else list(by)
    table = cooking(runs).explode("target_items", ignore_index=True).rename(columns={"target_items": "item"})
    table = table[table["item"].isin(items)] if len(items) else table[table["item"].notna()]
    return success_by(table.astype({"item": "str"}), ["item", *by], missing)


def cooking_item_by_blocked(
    runs: pd.DataFrame, missing: Missing = "failure", items: Sequence[str] = ()
) -> pd.DataFrame:
    """Estimate cooking success by item, number of blocked agents and model; see `cooking_by_item`."""
    return cooking_by_item(runs, ["n_blocked_agents", "model_name"], missing, items)


def crafting_by_plan(
    runs: pd.DataFrame, by: str | Sequence[str] = ("model_name", "plan_availability"), missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate crafting success by plan availability, or by any columns such as depth or crafting table."""
    return success_by(runs[runs["task_type"] == "techtree"], by, missing)


CRAFTING_GROUPS = {
    "all": lambda r: r["task_id"].notna(),
    "base (full plan, depth 0)": lambda r: (r["plan_availability"] == "full") & (r["depth"] == 0).fillna(False),
    "base without plan": lambda r: (r["plan_availability"] == "none") & (r["depth"] == 0).fillna(False),
    "missing items": lambda r: r["missing_items"].map(lambda items: bool(items)),
    "full plan": lambda r: r["plan_availability"] == "full",
    "partial plan": lambda r: r["plan_availability"] == "partial",
    "no plan": lambda r: r["plan_availability"] == "none",
    "depth 0": lambda r: (r["depth"] == 0).fillna(False),
    "depth 1": lambda r: (r["depth"] == 1).fillna(False),
    "depth 2": lambda r: (r["depth"] == 2).fillna(False),
    "high depth (above 1)": lambda r: (r["depth"] > 1).fillna(False),
    "needs a crafting table": lambda r: r["requires_crafting_table"].fillna(False),
}


def crafting_groups(runs: pd.DataFrame, missing: Missing = "failure") -> pd.DataFrame:
    """Estimate crafting success in the groups MineCollab reports, which overlap; groups without runs are left out."""
    crafting = runs[runs["task_type"] == "techtree"]
    parts = []
    for group, belongs in CRAFTING_GROUPS.items():
        members = crafting[belongs(crafting).astype(bool)] if len(crafting) else crafting
        parts.append(success_by(members.assign(group=group), ["group", "model_name"], missing))
    return pd.concat(parts, ignore_index=True)


def construction_scores(runs: pd.DataFrame, by: str | Sequence[str] = "model_name") -> pd.DataFrame:
    """Estimate construction scores: of all runs, of completed ones, and the completion rate.

    Returns
    -------
    DataFrame
        The columns of `by`, the columns of `score_by` (all runs with a score, zeros included), then
        estimate_completed, low_completed, high_completed, n_completed (mean score of runs above 0), and
        completion_rate, completion_low, completion_high.
    """
    by = [by] if isinstance(by, str) else list(by)
    building = runs[runs["task_type"] == "construction"]
    out = score_by(building, by)
    done = score_by(building[building["overall_is_completed"]], by)
    rate = completion_by(building, by)[["estimate", "low", "high"]]
    done = done[[*by, "estimate", "low", "high", "n"]].rename(columns={c: f"{c}_completed" for c in ESTIMATES})
    rate.columns = ["completion_rate", "completion_low", "completion_high"]
    out = pd.concat([out, rate], axis=1)
    out = out.merge(done, on=by, how="left") if by else pd.concat([out, done], axis=1)
    return out.assign(n_completed=out["n_completed"].fillna(0).astype("int64"))
