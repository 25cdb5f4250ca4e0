"""The three kinds of tasks: cooking with blocked agents, crafting with plans, construction scores."""

from collections.abc import Sequence

import pandas as pd

from evalkit.mindcraft.rates import Missing, completion_by, score_by, success_by


def cooking(runs: pd.DataFrame, hells_kitchen: bool = False, items: Sequence[str] = ()) -> pd.DataFrame:
    """Take the cooking runs, without (or only) Hell's Kitchen, where each agent holds the other's recipe.

    With `items`, only runs that have one of them as a target.
    """
    taken = (runs["task_type"] == "cooking") & (runs["hells_kitchen"] == hells_kitchen)
    if len(items):
        taken &= runs["target_items"].map(lambda targets: bool(set(targets) & set(items))).astype(bool)
    return runs[taken]


def cooking_by_blocked(
    runs: pd.DataFrame, by: str | Sequence[str] = ("model_name", "n_blocked_agents"), missing: Missing = "failure"
) -> pd.DataFrame:
    """Estimate cooking success by number of agents without recipe access; Hell's Kitchen is left out.

    Runs whose number is unknown (no definition, no suffix in the id) make a group of their own, NA.
    """
    return success_by(cooking(runs), by, missing)


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
        completed_estimate, completed_low, completed_high, completed_n (mean score of runs above 0), and
        completion_estimate, completion_low, completion_high (share of runs above 0).
    """
    by = [by] if isinstance(by, str) else list(by)
    building = runs[runs["task_type"] == "construction"]
    out = score_by(building, by)
    done = score_by(building[building["overall_is_completed"]], by)
    rate = completion_by(building, by)[["estimate", "low", "high"]]
    done = done[[*by, "estimate", "low", "high", "n"]].rename(
        columns={c: f"completed_{c}" for c in ("estimate", "low", "high", "n")}
    )
    rate.columns = ["completion_estimate", "completion_low", "completion_high"]
    out = pd.concat([out, rate], axis=1)
    out = out.merge(done, on=by, how="left") if by else pd.concat([out, done], axis=1)
    return out.assign(completed_n=out["completed_n"].fillna(0).astype("int64"))
