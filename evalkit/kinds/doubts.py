"""What is doubtful about which runs there are: failures that were run again, and runs that are missing or too many."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from evalkit.kinds.findings import Example, Finding, examples_of
from evalkit.kinds.models import UNKNOWN
from evalkit.kinds.runs import Outcomes

if TYPE_CHECKING:
    import pandas as pd

SECTION = "Data quality"


def doubts(scored: Outcomes, planned: Iterable[str] = (), models: Iterable[str] = ()) -> list[Finding]:
    """Find models whose failed runs look repeated until one succeeded, and runs that are missing or too many.

    `planned` are tasks that were to be run, besides those that other models ran; only findings on `models`, if any.
    """
    chosen = set(models) or set(scored.table["model_name"])
    tested = retries(scored)
    tested = tested[tested["retried"] & tested["model_name"].isin(chosen)]
    cells = presence(scored.table, planned)
    cells = cells[(cells["n"] != cells["planned"]) & cells["model_name"].isin(chosen)]
    found = []
    if len(tested):
        rows = scored.table[scored.table["model_name"].isin(tested["model_name"])]
        again = rows[rows.groupby(["model_name", "task"])["run_id"].transform("size") > 1]
        runs = tuple(Example("a run of a task that was run again", run) for run in again["run_id"].head(1))
        found.append(Finding("retries", SECTION, {"models": tested.to_dict("records")}, runs))
    if len(cells):
        gap = cells["planned"] - cells["n"]
        counts = cells.assign(missing=gap.clip(lower=0), surplus=(-gap).clip(lower=0), short=gap > 0, long=gap < 0)
        by_model = counts.groupby("model_name")[["missing", "short", "surplus", "long"]].sum().reset_index()
        by_model = by_model.sort_values(["missing", "surplus"], ascending=False, kind="stable")
        surplus = scored.table.merge(cells[gap < 0], on=["model_name", "task", "condition"])
        runs = examples_of(surplus, {"a surplus run": surplus["run_id"].notna()})
        found.append(Finding("presence", SECTION, {"models": by_model.to_dict("records")}, runs))
    return found


def retries(scored: Outcomes) -> "pd.DataFrame":
    """Test for each model whether the last run of a task succeeds more often; p values are corrected for all models."""
    import pandas as pd

    from evalkit.stats import repeats_test

    rows = []
    table = scored.table[scored.table["value"].notna()] if scored.kind == "proportion" else scored.table.iloc[:0]
    for model, own in table.groupby("model_name"):
        order = own["started"].rank(method="dense") if own["started"].notna().all() else own["repetition"]
        if order.isna().any():
            continue
        test = repeats_test(own["value"], own["task"], order)
        last = (
            own.assign(order=order).sort_values("order", kind="stable").groupby("task")["value"].agg(["last", "mean"])
        )
        more = last["last"].sum() > last["mean"].sum()
        rows.append((model, test.n_tasks, test.p_value, more))
    tested = pd.DataFrame(rows, columns=["model_name", "n_tasks", "p_value", "retried"])
    tested["p_value"] = (tested["p_value"] * tested["p_value"].notna().sum()).clip(upper=1)
    return tested.assign(retried=tested["retried"].astype(bool) & (tested["p_value"] <= 0.01))


def presence(table: "pd.DataFrame", planned: Iterable[str] = ()) -> "pd.DataFrame":
    """Count the runs of each model on each task beside those that were planned, as far as the runs tell.

    Planned are as many runs of a task as over half of the models' tasks have, else at least one. A task is planned for
    a model that ran over half of all tasks; so models of different task sets lack nothing.
    """
    import pandas as pd

    columns = ["model_name", "task", "condition"]
    known = table[(table["model_name"] != UNKNOWN) & (table["task"] != table["run_id"])]
    cells = known.groupby(columns).size()
    usual = cells.mode().iloc[0] if len(cells) else 1
    is_usual = bool(len(cells)) and (cells == usual).mean() > 0.5
    tasks = pd.MultiIndex.from_frame(known[columns[1:]].drop_duplicates())
    extra = [(task, "") for task in dict.fromkeys(planned) if task not in set(known["task"])]
    tasks = tasks.append(pd.MultiIndex.from_tuples(extra, names=columns[1:])) if extra else tasks
    ran = cells.groupby("model_name").size()
    whole = [model for model, n in ran.items() if 2 * n > len(tasks)]
    expected = pd.MultiIndex.from_tuples([(m, *task) for m in whole for task in tasks], names=columns)
    out = cells.reindex(cells.index.union(expected)).fillna(0).astype("int64").rename("n").reset_index()
    return out.assign(planned=usual if is_usual else out["n"].clip(lower=1))
