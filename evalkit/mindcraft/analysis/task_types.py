"""Analyse the three task types: cooking with blocked agents, crafting with plans, construction scores."""

from collections.abc import Sequence

import pandas as pd

from evalkit.kinds import denominators
from evalkit.kinds.estimates import Missing
from evalkit.mindcraft.analysis.rates import completion_by, counted, score_by, success_by
from evalkit.mindcraft.format import UNKNOWN
from evalkit.mindcraft.kind import KIND


def cooking(runs: pd.DataFrame, hells_kitchen: bool = False, items: Sequence[str] = ()) -> pd.DataFrame:
    """Select the cooking runs, without (or only) Hell's Kitchen, where each agent holds the other's recipe.

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

    Runs whose number is unknown (no definition, no suffix in the id) form a group of their own, NA.
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


OVERALL = "overall"


def cooking_table(runs: pd.DataFrame, items: Sequence[str] = ()) -> pd.DataFrame:
    """Return cooking success by model and number of blocked agents, with an overall row for each model.

    Returns
    -------
    DataFrame
        As `evalkit.kinds.denominators`; n_blocked_agents is an ordered category of texts: ``0``, ``1``, …,
        ``unknown``, ``overall``.
    """
    by = ["model_name", "n_blocked_agents"]
    return denominators(_with_overall(cooking(runs, items=items)), by, "is_successful", KIND)


def cooking_item_table(runs: pd.DataFrame, missing: Missing = "failure", items: Sequence[str] = ()) -> pd.DataFrame:
    """Return cooking success by item, number of blocked agents and model, with overall rows; see `cooking_table`."""
    return cooking_item_by_blocked(_with_overall(cooking(runs)), missing, items)


def _with_overall(runs: pd.DataFrame) -> pd.DataFrame:
    """Return every run twice: with its number of blocked agents as text, and in the overall group."""
    numbers = sorted(runs["n_blocked_agents"].dropna().unique())
    levels = [*map(str, numbers), UNKNOWN, OVERALL]
    texts = runs["n_blocked_agents"].map(str, na_action="ignore").astype("object").fillna(UNKNOWN)
    columns = [pd.Categorical(texts, levels, ordered=True), pd.Categorical([OVERALL] * len(runs), levels, ordered=True)]
    return pd.concat([runs.assign(n_blocked_agents=column) for column in columns], ignore_index=True)


def _missing(runs: pd.DataFrame) -> pd.Series:
    """Return which crafting tasks are about missing items, by their definition, or by their id as MineCollab does."""
    return runs["missing_items"].map(bool).astype(bool) | runs["task_id"].str.contains("missing", regex=False)


def _depth_0(runs: pd.DataFrame) -> pd.Series:
    return (runs["depth"] == 0).fillna(False)


# as analyze_crafting_tasks.py of MineCollab has them, but from the definitions; the last one is ours
CRAFTING_GROUPS = {
    "all": lambda r: r["task_id"].notna(),
    "base (full plan, depth 0)": lambda r: (r["plan_availability"] == "full") & _depth_0(r) & ~_missing(r),
    "base without plan (items missing too)": lambda r: (r["plan_availability"] == "none") & _depth_0(r) & _missing(r),
    "missing items": _missing,
    "full plan": lambda r: r["plan_availability"] == "full",
    "partial plan": lambda r: r["plan_availability"] == "partial",
    "no plan": lambda r: r["plan_availability"] == "none",
    "depth 0": _depth_0,
    "depth 1": lambda r: (r["depth"] == 1).fillna(False),
    "depth 2": lambda r: (r["depth"] == 2).fillna(False),
    "high depth (1 or 2)": lambda r: (r["depth"] >= 1).fillna(False),
    "needs a crafting table": lambda r: r["requires_crafting_table"].fillna(False),
}


def crafting_groups(runs: pd.DataFrame, missing: Missing = "failure") -> pd.DataFrame:
    """Estimate crafting success in the groups MineCollab reports, which overlap; groups without runs are left out.

    The base group holds tasks with a full plan, of depth 0, and with no item missing. "Base without plan" is what
    MineCollab's script means by that name: no plan, depth 0, and items missing; so it is not the base group with the
    plan removed. High depth is any above 0; MineCollab's tasks have depths 0 to 2.
    """
    crafting = runs[runs["task_type"] == "techtree"]
    members = {group: crafting[belongs(crafting).astype(bool)] for group, belongs in CRAFTING_GROUPS.items()}
    tables = [success_by(r.assign(group=group), ["group", "model_name"], missing) for group, r in members.items()]
    return pd.concat(tables, ignore_index=True)


def construction_by_task(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean construction score of each task and model, from 0 to 1: a row per task, a column per model.

    A value is missing where no run of the model on that task logged a score.
    """
    building = counted(runs[runs["task_type"] == "construction"])
    scores = building.groupby(["task_id", "model_name"])["overall_score"].mean().unstack()
    return scores.rename_axis(columns=None).reset_index()


def describe_scale(runs: pd.DataFrame) -> str:
    """Describe how construction scores were read and, where that is assumed, what the other reading would give."""
    building = counted(runs[(runs["task_type"] == "construction") & runs["overall_score"].notna()])
    if building.empty:
        return "No construction run logged a score."
    raw, score = building["overall_raw_score"], building["overall_score"]
    if (building["score_scale"] == "percent").all():
        return f"Construction scores are read as percentages; the highest is {raw.max():.4g}."
    if not building["flag_scale_assumed"].any():
        return "Construction scores are read as fractions of the blueprint, where 1 is a whole build."
    n_complete, mean = int((score == 1).sum()), score.mean() * 100
    builds = f"{n_complete} of {len(score)} runs {'is' if n_complete == 1 else 'are'} a whole build"
    return (
        "No construction score exceeds 1, so they are taken for fractions of the blueprint, where 1 is a whole build: "
        f'the mean is {mean:.3g} %, and {builds}. Were they percentages (scale "percent"), the mean would be '
        f"{mean / 100:.3g} %, and no run a whole build."
    )


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
    out = out.join(completion_by(building, by)[["estimate", "low", "high"]].add_prefix("completion_"))
    done = score_by(building[building["overall_is_completed"]], by).set_index(by or "n_not_measured")
    done = done[["estimate", "low", "high", "n"]].add_prefix("completed_").reset_index(drop=not by)
    out = out.merge(done, on=by, how="left") if by else out.join(done)
    return out.assign(completed_n=out["completed_n"].fillna(0).astype("int64"))
