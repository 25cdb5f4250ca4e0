"""Estimate success rates and mean scores of groups of runs of any kind, and how unmeasured runs might change them."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

import pandas as pd

from evalkit._notes import Notes, note
from evalkit._text import check_columns
from evalkit.kinds.kind import LogKind
from evalkit.kinds.runs import (
    JUDGED,
    MEASURED,
    NO_OUTCOME,
    NO_RUN,
    NO_SCORE,
    UNKNOWN,
    Outcomes,
    Value,
    counted,
    has_flag,
    kind_of,
    outcomes,
)
from evalkit.stats import Estimate, estimate_by, positive_mean_interval, ratio_interval

Missing = Literal["", "failure", "exclude", "success"]  # how runs that were not measured count
_FILL = {"failure": 0.0, "exclude": float("nan"), "success": 1.0}
_NOTHING = {"n": 0, "n_tasks": 0, "method": "", "target": ""}  # row of a group without counted runs
PER_RUN = " per run"  # suffix of the columns that `with_usage` adds


class Amount(NamedTuple):
    """An amount that a run takes."""

    title: str  # title of the column
    unit: str  # in a sentence


CostUnit = Literal["", "cost", "tokens", "duration"]  # the measure of cost; "" if no run has a cost
AMOUNTS = {  # by column of runs; runs of some kinds may lack the column
    "duration": Amount("duration (seconds)", "seconds"),
    "turns": Amount("turns", "turns"),
    "tokens_in": Amount("tokens in", "input tokens"),
    "tokens_out": Amount("tokens out", "output tokens"),
    "cost": Amount("cost (US dollars)", "US dollars"),
}
_PRICE = ["per_success_estimate", "per_success_low", "per_success_high"]
_WAYS: Sequence[tuple[Missing, str]] = (("exclude", "measured"), ("failure", "lowest"), ("success", "highest"))
_OF_POINTS: Sequence[tuple[Missing, str]] = (("failure", "zero"),)


def rates(
    runs: pd.DataFrame,
    by: str | Sequence[str] = "model_name",
    value: Value = "",
    kind: LogKind | None = None,
    *,
    missing: Missing = "",
    cluster: str = "",
) -> pd.DataFrame:
    """Estimate the success rate or mean score of groups of runs. All tasks have equal weight.

    Runs that are still running are left out, and so are runs that a flag excludes; `warning` gives the number of these.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list for all rows together.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    kind : LogKind, optional
        Kind of the runs; by default the value of their column kind.
    missing : {"", "failure", "exclude", "success"}
        How runs that were not measured count; by default as their kind declares. If scores are not shares, failure
        counts as 0, and success is treated like exclude.
    cluster : str
        Column with the family of a task; by default the one given to `load`.

    Returns
    -------
    DataFrame
        `by`, n, n_tasks, estimate (mean of the tasks' rates), low, high, method, target, warning, n_not_measured and
        measure (what is estimated, such as ``success rate (match)``). A group without a measured run has NaN, with the
        reason in warning.

    Raises
    ------
    ValueError
        If the value of `missing` is unknown.

    Examples
    --------
    >>> kinds.rates(runs, "task_type").columns[0]
    'task_type'
    """
    if missing not in ("", *_FILL):
        raise ValueError(f"missing {missing!r}: one of {', '.join(_FILL)}")
    runs, kind = runs.reset_index(drop=True), kind or kind_of(runs)
    return _rates_of(outcomes(runs, value, kind, cluster=cluster), runs, by, kind, missing)


def _rates_of(
    scored: Outcomes, runs: pd.DataFrame, by: str | Sequence[str], kind: LogKind, missing: Missing = ""
) -> pd.DataFrame:
    """Estimate the rates of groups of runs from their outcomes. `runs` must have a default index."""
    table, is_rate = scored.table[scored.table["outcome"] != "running"], scored.kind == "proportion"
    measured = table["outcome"].isin(MEASURED) if is_rate else table["value"].notna()
    is_scored = table["outcome"].eq("scored") & table["value"].isna()  # neither success nor failure
    counts = pd.DataFrame({"measured": measured, "n_not_measured": ~measured & ~is_scored, "scored": is_scored})
    counts = counts.reindex(runs.index, fill_value=False)
    counts["left_out"] = ~runs.index.isin(scored.table.index)
    counts["judged"] = has_flag(runs, JUDGED) & ~counts["left_out"]
    groups, number = sums_by(runs, by, counts)
    of: Any = runs["copied_model"].dropna().groupby(number).unique() if "copied_model" in runs else {}
    missing = missing or ("failure" if is_rate and kind.rates.denominator == "all" else "exclude")
    fill = _FILL[missing] if scored.is_share or missing == "failure" else float("nan")
    values = table["value"].where(measured, fill).mask(is_scored).dropna()
    rows = pd.DataFrame({"group": number, "value": values, "task": table["task"], "family": table["family"]})
    rows = rows.assign(seed=table["seed"]).loc[values.index]
    out = estimate_by(rows, "group", "value", "task", scored.kind, families="family", seeds="seed").set_index("group")
    if len(out) < len(groups):
        out = out.reindex(range(len(groups))).fillna(_NOTHING)
        out = out.astype({"n": "int64", "n_tasks": "int64", "method": "str", "target": "str"})
    not_measured = groups["measured"] == 0
    if not_measured.any():
        out.loc[not_measured, ["estimate", "low", "high"]] = float("nan")
    warnings = list[Notes]()
    for i, n, n_not_measured, n_scored, copies, judged in groups[list(counts)].itertuples(name=None):
        if copies and not n + n_not_measured + n_scored and i in of:
            warnings.append(note("only_copies", count=copies, models=sorted(of[i])))
            continue
        why = out["warning"][i] if n else NO_RUN
        if n_not_measured + n_scored and not n:
            why = NO_OUTCOME if is_rate else NO_SCORE
        if copies:
            why += note("copies", count=copies)
        if judged:
            why += note(JUDGED, count=judged, is_partly=judged < n + n_not_measured)
        warnings.append(why)
    out["warning"] = pd.Series(warnings, out.index, dtype="object")
    return pd.concat([groups[_list(by)], out, groups["n_not_measured"]], axis=1).assign(measure=scored.title)


def rates_by_denominator(
    runs: pd.DataFrame,
    by: str | Sequence[str] = "model_name",
    value: Value = "",
    kind: LogKind | None = None,
    *,
    cluster: str = "",
) -> pd.DataFrame:
    """Estimate rates over measured runs and over all runs, with both extremes for runs that were not measured.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list for all rows together.
    value : {"", "is_successful", "score"}
        What to compare; by default success if the logs record it, else the score.
    kind : LogKind, optional
        Kind of the runs; by default the value of their column kind.
    cluster : str
        Column with the family of a task; by default the one given to `load`.

    Returns
    -------
    DataFrame
        `by`, n, n_tasks, n_measured, n_not_measured, estimate, low, high (the main rate of the kind), two of
        measured_estimate, lowest_estimate and highest_estimate with bounds (measured runs only; if all others had
        failed; if all others had succeeded), method, warning and measure. Scores that are not shares have zero_estimate
        instead (if all others had scored 0). With a single column in `by`, groups are sorted by estimate, the best
        first.

    Examples
    --------
    >>> kinds.rates_by_denominator(runs)["n_not_measured"].sum() > 0
    np.True_
    """
    runs, kind = runs.reset_index(drop=True), kind or kind_of(runs)
    scored = outcomes(runs, value, kind, cluster=cluster)
    leading = "failure" if kind.rates.denominator == "all" and scored.kind == "proportion" else "exclude"
    first = _rates_of(scored, runs, by, kind)
    ways_differ = first["n_not_measured"].any()

    @cache
    def counted_as(missing: Missing) -> pd.DataFrame:
        return _rates_of(scored, runs, by, kind, missing) if ways_differ and missing != leading else first

    n_measured = counted_as("exclude")["n"]
    out = first[[*_list(by), "n", "n_tasks"]].assign(n_measured=n_measured)
    out = out.join(first[["n_not_measured", "estimate", "low", "high"]])
    for missing, name in _WAYS if scored.is_share else _OF_POINTS:
        if missing != leading:
            out = out.join(counted_as(missing)[["estimate", "low", "high"]].add_prefix(f"{name}_"))
    out = out.join(first[["method", "warning", "measure"]])
    return best_first(out) if len(_list(by)) == 1 else out


def best_first(table: pd.DataFrame, by: str = "estimate") -> pd.DataFrame:
    """Sort groups by descending estimate. Runs whose model is unknown come last."""
    unnamed = table["model_name"].eq(UNKNOWN) if "model_name" in table else False
    order = ["unnamed", by]
    table = table.assign(unnamed=unnamed).sort_values(order, ascending=[True, False], kind="stable", ignore_index=True)
    return table.drop(columns="unnamed")


def usage(runs: pd.DataFrame, by: str | Sequence[str] = "model_name", kind: LogKind | None = None) -> pd.DataFrame:
    """Estimate the mean duration, turns, tokens and cost of runs per group, if they are logged.

    Tasks have equal weight. Intervals are computed on the log scale, so their bounds are never below 0.

    Parameters
    ----------
    runs : DataFrame
        One row per run, such as `logs.runs`.
    by : str or sequence of str
        Columns to group by; an empty list for all rows together.
    kind : LogKind, optional
        Kind of the runs; by default the value of their column kind.

    Returns
    -------
    DataFrame
        `by`, quantity (with its unit), n (runs with the quantity), n_tasks, estimate (mean per run), low, high, median,
        total, per_success_estimate with bounds (mean divided by the success rate, over the runs that the rate counts),
        method, warning.
        A quantity has no rows if it is not logged, or if logs record only a part of it.

    Examples
    --------
    >>> "quantity" in kinds.usage(runs)
    True
    """
    kind = kind or kind_of(runs)
    runs = counted(runs, kind).reset_index(drop=True)
    data = outcomes(runs, "is_successful", kind).table
    rows = runs[_list(by)].assign(task=data["task"], family=data["family"], succeeded=data["value"])
    names = [name for name in AMOUNTS if name in runs and name not in kind.rates.lower_bounds]
    values = runs[names].astype("Float64").astype("float64")
    parts = [rows.assign(quantity=AMOUNTS[name].title, value=values[name]) for name in names]
    long = pd.concat(parts, ignore_index=True).dropna(subset="value")
    long["quantity"] = pd.Categorical(
        long["quantity"], categories=[amount.title for amount in AMOUNTS.values()], ordered=True
    )
    keys = [*_list(by), "quantity"]
    groups = long.groupby(keys, dropna=False, observed=True)
    table = groups.agg(median=("value", "median"), total=("value", "sum"))
    made = []
    for _, own in groups:
        mean = positive_mean_interval(own["value"], own["task"], families=own["family"])
        rated = own.dropna(subset="succeeded")
        price = ratio_interval(rated["value"], rated["succeeded"], rated["task"], rated["family"])
        prices = dict(zip(_PRICE, price[:3], strict=True))
        made.append(mean._asdict() | prices)
    names = ["n", "n_tasks", "estimate", "low", "high", "median", "total", *_PRICE, "method", "warning"]
    table = table.join(pd.DataFrame(made, table.index, Estimate._fields + tuple(_PRICE)))
    table = table.astype({"n": "int64", "n_tasks": "int64", "method": "str"})
    return table[names].reset_index()


def with_usage(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add the mean usage per run to a table of models, as columns such as ``cost per run``, for logged quantities."""
    taken = usage(runs).pivot(index="model_name", columns="quantity", values="estimate")
    return table.join(taken.add_suffix(PER_RUN), on="model_name")


def sums_by(runs: pd.DataFrame, by: str | Sequence[str], counts: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table with the keys of each group and its sums of `counts`, and the number of each run's group."""
    by = _list(by)
    check_columns(runs, *by)
    if not by:
        number = pd.Series(0, runs.index, dtype="int64")
        return counts.astype("int64").groupby(number).sum(), number
    grouped = pd.concat([runs[by], counts.astype("int64")], axis=1).groupby(by, dropna=False, observed=True)
    return grouped[list(counts)].sum().reset_index(), grouped.ngroup()


def _list(by: str | Sequence[str]) -> list[str]:
    return [by] if isinstance(by, str) else list(dict.fromkeys(by))
