"""Compute estimates, counts and findings from the frames of trajectories."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from evalkit._text import check_number
from evalkit.io import short_paths
from evalkit.kinds import Finding, data_finding, examples_of, flag_counts, outcomes, sections
from evalkit.kinds.runs import counted, has_flag, is_excluded, kind_of, leading, outcome_of
from evalkit.stats import cells_of, estimate_by
from evalkit.stats import reliability as reliability_of
from evalkit.trajectories import words
from evalkit.trajectories.logs import TrajectoriesLogs
from evalkit.trajectories.parse import SESSION_FORMATS
from evalkit.trajectories.records import AGENT_FAILED
from evalkit.trajectories.table import ENDINGS, NAME
from evalkit.trajectories.transcript import messages_of

__all__ = [
    "counted", "endings", "exits", "findings", "flag_counts", "has_outcomes", "has_plan", "missing", "over_planned",
    "reliability", "took", "tool_use", "trials", "with_endings",
]  # fmt: skip

_NO_LIMITS = {"unresolved", "empty_patch", "AgentSafetyRefusalError", "ContentPolicyViolationError", "agent_error"}
_SUMMED = ("turns", "tokens_in", "tokens_cache", "tokens_out")
TAKEN = (*_SUMMED, "tool_calls", "tool_errors")


def has_outcomes(runs: pd.DataFrame) -> bool:
    """Return whether any log records an outcome.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    bool
        True if any does, or if there are no runs.

    Examples
    --------
    >>> analysis.has_outcomes(runs)
    True
    """
    return not (len(runs) and bool(has_flag(runs, "no_outcome").all()))


def _is_running(runs: pd.DataFrame) -> pd.Series:
    return runs["status"].eq("running") & runs["is_successful"].isna()


def with_endings(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the ending of each run, a finer category than its outcome.

    Runs that stopped at a limit, runs with only a score, and runs without a logged outcome have endings of their own.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.

    Returns
    -------
    DataFrame
        The runs with the column ending, one of `table.ENDINGS`.

    Examples
    --------
    >>> "ending" in analysis.with_endings(runs)
    True
    """
    outcome = outcome_of(runs, kind_of(runs))
    by_agent = outcome.eq("failure") & runs["status"].isin(AGENT_FAILED - _NO_LIMITS)
    scored = outcome.eq("not measured") & runs["score"].notna()
    ending = outcome.mask(by_agent, "failure, stopped").mask(scored, "scored")
    ending = ending.mask(outcome.eq("not measured") & has_flag(runs, "no_outcome"), "no outcome")
    return runs.assign(ending=pd.Categorical(ending, list(ENDINGS)))


def endings(runs: pd.DataFrame, by: str = "model_name") -> pd.DataFrame:
    """Count the runs of each group by ending.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str
        Column of the groups.

    Returns
    -------
    DataFrame
        `by`, and one column per ending with the number of runs.

    Examples
    --------
    >>> analysis.endings(analysis.with_endings(runs)).columns[0]
    'model_name'
    """
    rows = with_endings(counted(runs))
    table = pd.crosstab(rows[by], rows["ending"], dropna=False)
    return table.reindex(columns=list(ENDINGS), fill_value=0).reset_index()


def exits(runs: pd.DataFrame) -> pd.DataFrame:
    """Count the logged reasons why runs ended, by model and ending, the most frequent first.

    Parameters
    ----------
    runs : DataFrame
        Result of `with_endings`.

    Returns
    -------
    DataFrame
        reason (the status if none is logged), ending, model_name, runs, error and run_id (of the first run of the row).

    Examples
    --------
    >>> "exit_reason" in analysis.exits(analysis.with_endings(runs))
    False
    """
    rows = with_endings(counted(runs)).astype({"ending": "str"})
    groups = rows.assign(reason=rows["exit_reason"].fillna(rows["status"])).groupby(["reason", "ending", "model_name"])
    table = groups.agg(runs=("run_id", "size"), error=("error", "first"), run_id=("run_id", "first")).reset_index()
    return table.sort_values("runs", ascending=False, kind="stable", ignore_index=True)


def has_plan(plans: pd.DataFrame) -> bool:
    """Return whether any file states the number of planned trials.

    Parameters
    ----------
    plans : DataFrame
        Numbers of planned trials, such as `logs.plans`.

    Returns
    -------
    bool
        True if there is a plan.

    Examples
    --------
    >>> analysis.has_plan(logs.plans)
    True
    """
    return bool(plans["planned"].notna().any())


def trials(runs: pd.DataFrame, plans: pd.DataFrame) -> pd.DataFrame:
    """Count the trials of each plan.

    Parameters
    ----------
    runs, plans : DataFrame
        One row per run, and numbers of planned trials, such as `logs.runs` and `logs.plans`.

    Returns
    -------
    DataFrame
        plan (a shortened path), planned, present (ended), running, repeated, retried, missing.

    Examples
    --------
    >>> "planned" in analysis.trials(runs, logs.plans)
    True
    """
    repeated, running = is_excluded(runs, kind_of(runs)), _is_running(runs)
    counts = {"present": ~repeated & ~running, "running": ~repeated & running, "repeated": repeated}
    counts["retried"] = runs["retries"].fillna(0)
    there = pd.DataFrame(counts).astype("int64").groupby(runs["plan"].fillna("no plan")).sum()
    # use the number for all tasks together if a plan states it, else the sum over its tasks
    stated = plans.groupby(["source", plans["task_id"].ne("")])[["planned", "retried"]].sum(min_count=1)
    stated = stated.groupby("source").first()
    table = there.reindex(there.index.union(stated.index), fill_value=0)
    table.insert(0, "planned", stated["planned"].astype("Int64"))
    table["retried"] += stated["retried"].reindex(table.index).fillna(0).astype("int64")
    table["missing"] = (table["planned"] - table[["present", "running", "repeated"]].sum(axis=1)).clip(lower=0)
    return table.rename(index=short_paths(stated.index)).rename_axis("plan").reset_index()


def missing(runs: pd.DataFrame, plans: pd.DataFrame) -> pd.DataFrame:
    """List the missing trials of plans that name tasks.

    Parameters
    ----------
    runs, plans : DataFrame
        One row per run, and numbers of planned trials, such as `logs.runs` and `logs.plans`.

    Returns
    -------
    DataFrame
        model_name, task_type, task_id, plan, missing (number of trials).

    Examples
    --------
    >>> analysis.missing(runs, logs.plans).columns[0]
    'model_name'
    """
    keys = ["plan", "model_name", "task_type", "task_id"]
    present = runs.groupby(keys, dropna=False).size().rename("n").reset_index()
    table = plans[plans["task_id"].ne("")].rename(columns={"source": "plan"}).merge(present, on=keys, how="left")
    table["missing"] = (table["planned"] - table["n"].fillna(0)).astype("Int64")
    return table.loc[table["missing"] > 0, [*keys[1:], "plan", "missing"]].reset_index(drop=True)


def over_planned(runs: pd.DataFrame, plans: pd.DataFrame) -> pd.DataFrame:
    """Add a row for each planned trial that is missing; missing and unmeasured trials count as failures.

    Parameters
    ----------
    runs, plans : DataFrame
        One row per run, and numbers of planned trials, such as `logs.runs` and `logs.plans`.

    Returns
    -------
    DataFrame
        One row per counted run that is not running, and per missing trial.

    Examples
    --------
    >>> len(analysis.over_planned(runs, logs.plans)) >= len(analysis.counted(runs))
    True
    """
    gone = missing(runs, plans)
    rows = counted(runs[~_is_running(runs)])
    is_broken = rows["score"].isna() & rows["is_successful"].isna() & ~has_flag(rows, "no_outcome")
    counts = bool(is_broken.all() or rows["is_successful"].notna().any())  # if false, scores are amounts
    rows = rows.assign(is_successful=rows["is_successful"].mask(is_broken & counts, False))
    gone = gone.loc[gone.index.repeat(gone["missing"])].reset_index(drop=True)
    added = gone.reindex(columns=list(rows)).assign(kind=NAME, status="missing", score=0.0)
    added["is_successful"] = False if counts else None
    added["run_id"] = [f"missing {number}" for number in added.index]
    added["run_flags"] = [[] for _ in added.index]
    return pd.concat([rows, added.astype(rows.dtypes)], ignore_index=True) if len(added) else rows


def reliability(runs: pd.DataFrame, plans: pd.DataFrame) -> pd.DataFrame:
    """Estimate pass@k, pass^k and agreement per model, over measured and over planned trials.

    Planned trials that are missing or were not measured count as failures. Without a plan, all trials that were not
    measured count as failures. The table contains at most 200 models, the ones with the highest means.

    Parameters
    ----------
    runs, plans : DataFrame
        One row per run, and numbers of planned trials, such as `logs.runs` and `logs.plans`.

    Returns
    -------
    DataFrame
        The table of `evalkit.stats.reliability`, by model_name and trials (measured, planned or all). Empty if no run
        has an outcome.

    Examples
    --------
    >>> "trials" in analysis.reliability(runs, logs.plans)
    True
    """
    tables, whole = [], "planned" if has_plan(plans) else "all"
    for name, rows in (("measured", runs), (whole, over_planned(runs, plans))):
        data = outcomes(rows, "is_successful")
        cells = cells_of(leading(data.table), "model_name", "task", "value")
        table = reliability_of(cells, order="repetition")
        table.insert(1, "trials", name)
        tables.append(data.marked(table))
    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


def took(runs: pd.DataFrame, usage: pd.DataFrame, tools: pd.DataFrame) -> pd.DataFrame:
    """Add up the turns, tokens and tool calls of each model's runs, including runs without an outcome.

    Parameters
    ----------
    runs, usage, tools : DataFrame
        These frames of `evalkit.trajectories.load`.

    Returns
    -------
    DataFrame
        model_name (or logged_model, if the comparison is not between models), n (runs in which the model took part),
        turns, tokens_in (including tokens from a cache), tokens_cache, tokens_out, tool_calls, tool_errors. The model
        with most runs comes first. Values that no log contains are missing. A run with several models counts in the
        row of each, with the usage of that model.

    Examples
    --------
    >>> analysis.took(runs, logs.usage, logs.tools).columns[0]
    'model_name'
    """
    rows = counted(runs)
    usage = usage[usage["run_id"].isin(rows["run_id"])]
    others = rows[~rows["run_id"].isin(usage["run_id"])]
    if "logged_model" in others:  # the comparison is not between models
        others = others.assign(model_name=others["logged_model"])
    table = pd.concat([usage.rename(columns={"calls": "turns"}), others]).astype(dict.fromkeys(_SUMMED, "Int64"))
    groups = table.groupby("model_name")
    made = groups[list(_SUMMED)].sum(min_count=1)
    made.insert(0, "n", groups["run_id"].nunique())
    used = tools[tools["run_id"].isin(rows["run_id"])].groupby("model_name")[["calls", "errors"]].sum()
    used = used.reindex(usage.dropna(subset="calls")["model_name"].unique(), fill_value=0)
    made[["tool_calls", "tool_errors"]] = used.reindex(made.index).astype("Int64")
    return made.sort_values("n", ascending=False, kind="stable").rename_axis(compared_models(runs)).reset_index()


def compared_models(table: pd.DataFrame) -> str:
    """Return the column of models: ``logged_model`` if the comparison is not between models."""
    return "logged_model" if "logged_model" in table else "model_name"


def _logged_tools(chosen: pd.DataFrame, tools: pd.DataFrame) -> pd.DataFrame:
    """Return one row per call counted in the frame of tools, in the form that `tool_use` makes from messages."""
    own = tools[tools["run_id"].isin(chosen["run_id"])]
    rows = own.loc[own.index.repeat(own["calls"]), ["model_name", "tool", "run_id"]]
    number = rows.groupby(level=0).cumcount()
    errors, results = own["errors"].reindex(rows.index), own["results"].reindex(rows.index)
    return rows.assign(is_error=number.lt(errors).astype("float64").where(number.lt(results)))


def tool_use(logs: TrajectoriesLogs, runs: pd.DataFrame, most: int = 200) -> pd.DataFrame:
    """Count tool calls and their errors per model and tool.

    Parameters
    ----------
    logs : TrajectoriesLogs
        The logs of the runs.
    runs : DataFrame
        One row per run, such as `logs.runs`.
    most : int
        Maximum number of runs to read, spread evenly over models and statuses.

    Returns
    -------
    DataFrame
        model_name, tool, read (runs that were read), runs (with a call of the tool), calls, per_run, errors, n (calls
        with a logged result), n_tasks (runs with such a call), estimate, low, high (share of errors, with runs as
        clusters), method, warning.

    Examples
    --------
    >>> analysis.tool_use(logs, runs, most=10)["calls"].min() > 0
    np.True_
    """
    check_number("the number of runs to read", most, is_whole=True)
    rows = counted(runs)
    order = rows.groupby(["model_name", "status"], dropna=False).cumcount().sort_values(kind="stable")
    chosen = rows.loc[order.index[:most]].sort_index()
    model = dict(zip(chosen["run_id"], chosen["model_name"], strict=True))
    is_session = chosen["format"].isin(SESSION_FORMATS)  # the frame of tools counts each of their calls once
    calls = [
        (model[run_id], call.name, run_id, float(call.is_error) if call.result is not None else np.nan)
        for run_id, spoken in messages_of(chosen[~is_session], logs.storage_options)
        for message in spoken
        if message.role != "user"  # simulated users may have tools, too
        for call in message.calls
    ]
    table = pd.DataFrame(calls, columns=["model_name", "tool", "run_id", "is_error"])
    if is_session.any():
        table = pd.concat([table, _logged_tools(chosen[is_session], logs.tools)], ignore_index=True)
    groups = table.groupby(["model_name", "tool"])
    counts = groups.agg(runs=("run_id", "nunique"), calls=("run_id", "size"), errors=("is_error", "sum")).reset_index()
    took_part = pd.concat([chosen[["run_id", "model_name"]], logs.usage[["run_id", "model_name"]]]).drop_duplicates()
    took_part = took_part[took_part["run_id"].isin(chosen["run_id"])]
    read = counts["model_name"].map(took_part["model_name"].value_counts())
    counts.insert(2, "read", read)
    counts.insert(5, "per_run", counts["calls"] / read)
    shares = estimate_by(table, ["model_name", "tool"], "is_error", clusters="run_id", kind="proportion")
    counts = counts.merge(shares.drop(columns="target"), how="left")
    return counts.sort_values(["model_name", "calls"], ascending=[True, False], kind="stable", ignore_index=True)


def findings(
    ranked: Sequence[Finding],
    runs: pd.DataFrame,
    plans: pd.DataFrame,
    ledger: pd.DataFrame,
    took: pd.DataFrame | None = None,
) -> list[Finding]:
    """Describe missing trials, how runs ended, and doubtful data, after the first findings on ranks.

    Parameters
    ----------
    ranked : sequence of Finding
        Result of `evalkit.compare.findings`.
    runs, plans, ledger : DataFrame
        These frames of the logs, or some of their rows.
    took : DataFrame, optional
        Result of `took`. If no log records an outcome, the first finding describes it.

    Returns
    -------
    list of Finding
        The findings.

    Examples
    --------
    >>> ranked = compare.findings(compare.leaderboard(runs))
    >>> analysis.findings(ranked, analysis.with_endings(runs), logs.plans, logs.ledger)[0].code
    'ranking'
    """
    rows = with_endings(counted(runs))
    table = trials(runs, plans)
    codes = ("conditions", "ranking", "nearest_pair", "alone")  # findings that come first
    first = [finding for finding in ranked if finding.code in codes]
    rest = [finding for finding in ranked if finding.code not in codes]
    own = []
    is_silent = not has_outcomes(rows)
    if is_silent and took is not None:
        sums = took[list(TAKEN)].sum(min_count=1)
        values: dict[str, Any] = {str(name): None if pd.isna(value) else int(value) for name, value in sums.items()}
        headlines = (finding.values["headline"] for finding in ranked if "headline" in finding.values)
        values |= {"runs": len(rows), "models": took[compared_models(took)].tolist(), "headline": next(headlines, {})}
        first, rest = [Finding("took", "taken", values, template=words.took)], []
    if table["missing"].sum():
        gone, planned, running = table[["missing", "planned", "running"]].sum().astype("int64")
        values = {"gone": int(gone), "planned": int(planned), "running": int(running), "succeeded": None}
        if rows["is_successful"].notna().any():
            values["succeeded"] = int((rows["is_successful"].fillna(False) & rows["plan"].notna()).sum())
        own.append(Finding("planned", "planned", values, template=words.missing_trials))
    failed = rows[~rows["ending"].isin(["success", "scored", "running", "no outcome"])]
    counts = {str(ending): int(n) for ending, n in failed["ending"].astype("str").value_counts().items()}
    labels = {ending: ENDINGS[ending].text for ending in counts}
    if rows["ending"].ne("scored").any() and not is_silent:
        examples = examples_of(failed, {label: failed["ending"].eq(ending) for ending, label in labels.items()})
        values = {"endings": counts, "labels": labels, "n": int(rows["ending"].ne("no outcome").sum()), "noun": "run"}
        own.append(Finding("endings", sections.ENDINGS, values, examples))
    return [*first, *own, *rest, data_finding(runs, ledger, "run")]
