"""Summarise what the original MineCollab scripts report for the same folders, group by group, beside our figures.

`original_scripts` describes what the scripts read in a file; here are their groups, sums and rates. A script is given
a list of task folders, or the folder that holds them (`folder`), and then counts everything in it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pandas as pd

from evalkit.mindcraft.analysis.rates import is_stale
from evalkit.mindcraft.legacy.causes import differences
from evalkit.mindcraft.legacy.folders import (
    ALL,
    blocked_of,
    crafting_groups_of,
    items_of,
    stops_of,
    task_folders,
    their_successes,
)
from evalkit.mindcraft.table import LAZY_TABLES

COLUMNS = ["script", "folder", "model_name", "group", "unit", "their_n", "their_successes", "their_rate"]
COLUMNS += ["our_n", "our_successes", "our_rate", "note"]
_KEYS = ["script", "folder", "model_name", "rank", "group", "unit"]
_SUMMED = [*_KEYS[1:], "value", "counts"]
_OF_RUNS = ["source", "model_name", "task_id", "task_type", "repetition", "flat_layout", "overall_is_successful"]
_OF_RUNS += ["overall_score", "overall_raw_score", "score_scale", "n_blocked_agents", "target_items", "hells_kitchen"]
_OF_RUNS += ["plan_availability", "depth", "missing_items", "materials", "rooms", "flag_stale_copy"]
_OF_RUNS += ["flag_score_implied", "flag_near_final", "flag_conflicting"]
_BY_BOTH = 20_000  # rank of the groups of generate_item_blocked_data
_LEVELS = re.compile(r"materials_(\d+)_rooms_(\d+)")
Sides = tuple[pd.DataFrame, pd.DataFrame]  # rows to be summed, theirs and ours: some of `_SUMMED`


class LegacySummary(NamedTuple):
    """What the scripts report beside our figures, and every single difference with its cause.

    Attributes
    ----------
    totals : DataFrame
        script; folder (that the script is given; empty: all task folders of its types); model_name; group; unit;
        their_n, their_successes, their_rate; our_n, our_successes, our_rate; note (the exception by which a script
        ends). The unit is ``rate`` (successes of n, from 0 to 1), ``score`` (sum and mean of scores as logged) or
        ``count``.
    differences : DataFrame
        script, cause, task_id, repetition, theirs, ours, source: one row per run that is counted differently.
    """

    totals: pd.DataFrame
    differences: pd.DataFrame


def legacy_summary(runs: pd.DataFrame, folders: pd.DataFrame) -> LegacySummary:
    """Summarise what the original scripts (kolbytn/mindcraft at `original_scripts.COMMIT`) report for folders of runs.

    Parameters
    ----------
    runs, folders : DataFrame
        As `load` returns them. `runs` may be a selection; folders beside those of runs are counted too.

    Returns
    -------
    LegacySummary
        Rates are as the scripts give them: 0 for a group without runs. Where a script ends with an exception, or finds
        no task folder (the flat layout), it reports nothing: NaN, and `note`.
    """
    folders = task_folders(runs, folders[folders["source"].isin(runs["source"]) | ~folders["has_runs"]])
    read = [column.name for column in LAZY_TABLES["folders"]][3:]
    placed = runs[_OF_RUNS].merge(
        folders[["source", "path", "root", "name", "models", "stopped", *read]], on="source", validate="many_to_one"
    )
    sides = {
        "evaluation": _evaluation(folders, placed),
        "crafting": _crafting(folders, placed, "crafting"),
        "analyse_results": _crafting(folders, placed, "analyse_results"),
        "cooking": _cooking(folders, placed),
        "construction": _construction(folders, placed),
    }
    totals = pd.concat([_summed(script, *both) for script, both in sides.items()], ignore_index=True)
    return LegacySummary(_as_printed(totals, folders)[COLUMNS], differences(folders, placed))


def _counted(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs that count in our rates; a success is 1."""
    return runs.assign(value=runs["overall_is_successful"].astype("float64"), unit="rate")[~is_stale(runs)]


def _scored(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the construction runs that count in our means; scores are in the unit they were logged in."""
    scale = runs["score_scale"].map({"percent": 100.0}).fillna(1.0).astype("float64")
    table = runs.assign(value=runs["overall_score"] * scale, unit="score")
    return table[(table["task_type"] == "construction") & table["value"].notna() & ~is_stale(runs)]


def _of_type(table: pd.DataFrame, task_type: str) -> pd.DataFrame:
    """Return the rows of each folder that holds a task of this type, then those of this type together."""
    of_type = table[table["task_type"] == task_type]
    return pd.concat([_by_folder(table[table["root"].isin(of_type["root"])]), _together(of_type)], ignore_index=True)


def _by_folder(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each folder that a script may be given."""
    return table.assign(folder=table["root"], model_name=table["models"])


def _together(table: pd.DataFrame) -> pd.DataFrame:
    """Return task folders as a single list; in the flat layout there are none."""
    return table[~table["flat_layout"]].assign(folder="", model_name="")


def _grouped(table: pd.DataFrame, masks: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Return each row once per group it belongs to."""
    return _joined(table[mask].assign(group=name, rank=rank) for rank, (name, mask) in enumerate(masks.items()))


def _joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate rows that are to be summed."""
    return pd.concat([table[table.columns.intersection(_SUMMED)] for table in tables])


def _evaluation(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
    """evaluation_script.py: `check_folder_results` of each folder, `aggregate_results` of all of a task type."""
    beside = folders["flat_layout"] & folders["root"].isin(folders.loc[~folders["flat_layout"], "root"])
    read = folders["files"] > 0
    theirs = folders.assign(value=their_successes(folders, "evaluation").where(read, 0.0), counts=read, unit="rate")
    theirs = theirs[~beside]  # of a folder with subfolders, only these are read
    has_other = runs["root"].isin(runs.loc[runs["task_type"] != "construction", "root"])
    theirs["unit"] = theirs["unit"].where(theirs["root"].isin(runs.loc[has_other, "root"]), "score")
    ours = pd.concat([_counted(runs[has_other]), _scored(runs[~has_other])])
    return _evaluation_groups(theirs, theirs), _evaluation_groups(ours, _scored(runs))


def _evaluation_groups(table: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    rated = _together(table[table["task_type"].isin(("cooking", "techtree"))])
    built = _together(scored[scored["task_type"] == "construction"])
    return _joined([
        rated.assign(group="cooking and crafting", rank=0, unit="rate"),
        built.assign(group="construction", rank=1, unit="score"),
        _by_folder(table).assign(group=ALL, rank=2),
    ])  # fmt: skip


def _crafting(folders: pd.DataFrame, runs: pd.DataFrame, script: str) -> Sides:
    """analyze_crafting_tasks.py and analyse_results.py: `aggregate_results`."""
    table = folders.assign(value=their_successes(folders, script), unit="rate")
    theirs = _of_type(table[table["value"].notna()], "techtree")
    wrong = theirs["files"] != 2 if script == "analyse_results" else theirs["files"] == 0
    masks = crafting_groups_of(theirs, script, ours=False)
    masks = {group: mask & (~wrong | (group == ALL)) for group, mask in masks.items()}  # an error: tried, in no group
    ours = _of_type(_counted(runs[runs["task_type"] == "techtree"]), "techtree")
    return _grouped(theirs, masks), _grouped(ours, crafting_groups_of(ours, script, ours=True))


def _cooking(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
    """analyze_cooking_tasks.py: `analyze_experiments`, and `generate_item_blocked_data`, which no exception ends."""
    table = folders.assign(blocked=folders["name"].map(blocked_of), item=folders["name"].map(items_of), unit="rate")
    per_folder = _of_type(table.assign(value=their_successes(folders, "cooking")), "cooking")
    never_ends = their_successes(folders.assign(stopped=False), "cooking")
    by_both = _of_type(table.assign(value=never_ends), "cooking")
    counted = _counted(runs[runs["task_type"] == "cooking"])
    ours = _of_type(counted.assign(blocked=counted["n_blocked_agents"], item=counted["target_items"]), "cooking")
    plain = ours[~ours["hells_kitchen"]]
    return _cooking_groups(per_folder, per_folder, by_both), _cooking_groups(ours, plain, plain)


def _cooking_groups(per_folder: pd.DataFrame, grouped: pd.DataFrame, by_both: pd.DataFrame) -> pd.DataFrame:
    """Return each row once for all, its number of blocked agents, each of its items, and each item with that number."""
    blocked = grouped.dropna(subset=["blocked"]).astype({"blocked": "int64"})
    items = grouped.explode("item").dropna(subset=["item"])
    both = by_both.explode("item").dropna(subset=["item", "blocked"]).astype({"blocked": "int64"})
    number, of_both = (table["blocked"].astype("str") + " blocked" for table in (blocked, both))
    tables = [
        per_folder.assign(group=ALL, rank=0),
        blocked.assign(group=number, rank=1 + blocked["blocked"]),
        items.assign(group="item " + items["item"].astype("str"), rank=10_000),
        both.assign(group="item " + both["item"].astype("str") + ", " + of_both, rank=_BY_BOTH),
    ]
    return _joined(tables).dropna(subset=["value"])


def _construction(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
    """analyze_construction_tasks.py: `extract_success_scores` of each model's folders, whatever they hold."""
    builds = runs[runs["task_type"] == "construction"]
    of_models = builds.loc[~builds["flat_layout"], ["root", "model_name"]].drop_duplicates()
    nested = folders[~folders["flat_layout"]].drop(columns="model_name").merge(of_models, on="root")
    has_score = nested["construction"].map(lambda score: score is not None).astype(bool)
    scored = nested[has_score].assign(value=nested["construction"].astype("float64"))
    last = scored.drop_duplicates(["model_name", "name"], keep="last")  # a task in several folders has its last score
    skipped = nested[~has_score & (nested["files"] > 0)]
    levels = last["name"].str.extract(_LEVELS).map(lambda digits: str(int(digits)), na_action="ignore")
    theirs = _score_groups(scored, last.assign(materials=levels[0], rooms=levels[1], task=last["name"]), skipped)
    ours, unscored = _scored(runs).assign(task=runs["task_id"]), builds["overall_score"].isna() & ~is_stale(builds)
    return theirs, _score_groups(ours, ours, builds[unscored], zeros=True)


def _score_groups(
    scored: pd.DataFrame, tasks: pd.DataFrame, skipped: pd.DataFrame, *, zeros: bool = False
) -> pd.DataFrame:
    """Return each score once per average it counts in; with `zeros`, scores of 0 also count by material and room."""
    above = scored[scored["value"] > 0]
    built = (tasks if zeros else tasks[tasks["value"] > 0]).dropna(subset=["materials", "rooms"])
    material, room = ("material " + built["materials"].astype("str"), "room " + built["rooms"].astype("str"))
    tables = [
        scored.assign(group="average score, all tasks", rank=0, unit="score"),
        above.assign(group="average score, completed tasks", rank=1, unit="score"),
        tasks.assign(group="completion rate", rank=2, unit="rate", value=(tasks["value"] > 0).astype("float64")),
        skipped.assign(group="skipped tasks", rank=3, unit="count", value=1.0),
        scored[scored["value"] == 0].assign(group="tasks with score 0", rank=4, unit="count", value=1.0),
        built.assign(group=material, rank=5, unit="score"),
        built.assign(group=room, rank=6, unit="score"),
        built.assign(group=material + ", " + room, rank=7, unit="score"),
        tasks.assign(group="task " + tasks["task"], rank=8, unit="score"),
    ]
    return _joined(tables).assign(folder="")


def _summed(script: str, theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Sum `value` by folder, model and group, on both sides; a row whose `counts` is False is not counted in n."""
    sums = []
    for table, who in ((theirs, "their"), (ours, "our")):
        groups = table.assign(script=script, counts=table.get("counts", True)).groupby(_KEYS)
        values = {f"{who}_n": groups["counts"].sum(), f"{who}_successes": groups["value"].sum(skipna=False)}
        sums.append(pd.DataFrame(values))
    out = sums[0].join(sums[1], how="outer").sort_index().reset_index().fillna({"their_n": 0, "our_n": 0})
    for who in ("their", "our"):
        out[f"{who}_successes"] = out[f"{who}_successes"].mask(out[f"{who}_n"] == 0, 0.0)
        out[f"{who}_rate"] = out[f"{who}_successes"] / out[f"{who}_n"]
    return out.astype({"their_n": "int64", "our_n": "int64"})


def _as_printed(totals: pd.DataFrame, folders: pd.DataFrame) -> pd.DataFrame:
    """Return sums and rates as the scripts print them, with a note where they print nothing."""
    name, evaluation = totals["folder"].map(os.path.basename), totals["script"] == "evaluation"
    flat = set(folders.loc[folders["flat_layout"], "root"]) - set(folders.loc[~folders["flat_layout"], "root"])
    of_list = totals["folder"].map(lambda root: os.path.basename(os.path.dirname(root)) if root in flat else "")
    name = name.where(of_list == "", of_list)  # for a folder without subfolders, the one above names the type
    mean = evaluation & name.str.contains("construction") & ~name.str.contains("cooking|techtree")
    successes, counts = totals["their_successes"].mask(mean, totals["their_rate"]), totals["unit"] == "count"
    rate = (successes / totals["their_n"]).mask(evaluation & totals["folder"].str.contains("construction"), successes)
    rate = rate.mask(totals["their_n"] == 0, 0.0).mask(counts)
    stops = totals["folder"].map(stops_of(folders)).astype("str")
    ended = (totals["script"] == "cooking") & stops.notna() & (totals["rank"] < _BY_BOTH)
    note = pd.Series("", totals.index, dtype="str").mask(
        mean & (totals["their_n"] == 0), "stops with ZeroDivisionError"
    )
    note = note.mask(~evaluation & totals["folder"].isin(flat), "no task folder in it: nothing is said")
    note = note.mask(ended, "stops with " + stops)
    our_rate = totals["our_rate"].mask(counts)
    return totals.assign(their_successes=successes, their_rate=rate.mask(note != ""), our_rate=our_rate, note=note)
