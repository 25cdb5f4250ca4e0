"""What the original MineCollab scripts report for folders of runs, group by group, beside evalkit's figures.

    python examples/minecollab-audit/minecollab_audit.py RUNS... [--tasks PATH] [--output FOLDER]

The scripts are those of kolbytn/mindcraft, ``tasks/`` at commit 00127506; they are described here, not copied. Each
reads every ``*.json`` of a task's folder, looks at turns of the role ``system``, and accepts a wording anywhere in a
turn. An exception within a file has a different effect in each of them. A script is given a list of task folders, or
the folder that holds them (`folder`), and then counts everything in it.

What the scripts make of a folder is read here, from the files; "ours" comes from `evalkit.mindcraft`, and weighs tasks
equally, as `evalkit mindcraft` and `evalkit compare` do.
"""

import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from tabulate import tabulate

from evalkit import mindcraft
from evalkit.io import SourceError, absolute, plain, resolve, short_paths
from evalkit.kinds import has_flag

COMMIT = "00127506"
SCRIPTS = {  # and what each is given for its first table
    "evaluation": "evaluation_script.py, given all task folders of these types",
    "crafting": "analyze_crafting_tasks.py, given all crafting folders",
    "analyse_results": "analyse_results.py, given all crafting folders",
    "cooking": "analyze_cooking_tasks.py, the sums of all folders with cooking tasks",
    "construction": "analyze_construction_tasks.py, "
    "given the folders with construction tasks of each model, with all that lies in them",
}
_SCORE = "Task ended with score : "
_WORDINGS = ("Task successful ended with code : 2", "Task ended with score : 1", "Task ended in score: 1")
READ = ("files", "evaluation", "crafting", "analyse", "cooking", "stops", "construction")  # of a folder
ALL = "all"
_COOKING = "multiagent_cooking_"
_BLOCKED = re.compile(r"blocked_access_([0-9_]+)$")
_ITEM = re.compile(r"[0-9]+_([a-zA-Z_]+)")


class Reading(NamedTuple):
    """What the scripts read in one JSON file."""

    evaluation: float | None = None  # of the first turn with a score: 1 or 0 by its first digit, else the number
    crafting: bool = False  # a success, from the first turn on
    analyse: bool = False  # a success, from the last turn back
    cooking: str = ""  # success, failure (a score, none of them a success), or empty
    stops: str = ""  # name of the exception by which the file ends analyze_cooking_tasks.py, or empty
    construction: float | None = None  # the number after the last colon of the last turn with a score


NOTHING = Reading()


def read_file(path: str) -> Reading:
    """Read a file of any shape, as the scripts decode it."""
    try:
        with open(path, "rb") as file:
            return _read(json.loads(file.read().decode()))
    except OSError:
        return NOTHING
    except json.JSONDecodeError:
        return NOTHING
    except (ValueError, RecursionError) as error:  # not UTF-8, nested too deep, or a number of too many digits
        return Reading(stops=type(error).__name__)


def read_folder(files: list[Reading]) -> tuple:
    """Combine what is read in the files of a task folder: the values of `READ`.

    The scripts read files in the order of the file system, which decides between constructions; here they are sorted by
    name.
    """
    score = 0.0
    cooking, stops = "", ""
    for file in files:
        if file.evaluation is not None:
            score = max(file.evaluation, score)  # in this order, which matters if one is not a number
        if cooking != "success":  # once a success is found, no other file is opened
            cooking, stops = file.cooking or cooking, stops or file.stops
    return (
        len(files),
        score if files else None,
        any(file.crafting for file in files) if files else None,
        any(file.analyse for file in files) if len(files) == 2 else None,
        cooking,
        stops,
        next((file.construction for file in files if file.construction is not None), None),
    )


def _read(value: Any) -> Reading:
    read: dict[str, Any] = {}
    for name, script in _SCRIPTS.items():
        with suppress(Exception):  # whatever is missing or goes wrong, these scripts go on with the next file
            read[name] = script(value)
    cooking, stops = _cooking(value)
    return Reading(**read, cooking=cooking, stops=stops)


def _messages(turns: Iterable[Any]) -> Iterator[str]:
    for turn in turns:
        content = turn.get("content")
        if turn.get("role") == "system" and isinstance(content, str):
            yield content


def _evaluation(value: Any) -> float:
    first = next(text for text in _messages(value["turns"]) if _SCORE in text)
    digit = next((number for number in (1.0, 0.0) if f"{_SCORE}{number:.0f}" in first), None)
    return _behind_colon(first) if digit is None else digit


def _crafting(value: Any, step: int = 1) -> bool:
    return any(wording in text for text in _messages(value["turns"][::step]) for wording in _WORDINGS)


def _cooking(value: Any) -> tuple[str, str]:
    outcome = ""
    try:
        for text in _messages(value["turns"]) if "turns" in value else ():
            if f"{_SCORE}1" in text:
                return "success", ""
            if _SCORE in text:
                outcome = "failure"
    except Exception as error:
        return outcome, type(error).__name__
    return outcome, ""


def _construction(value: Mapping[str, Any]) -> float | None:
    for turn in reversed(value.get("turns", [])):
        if turn["role"] == "system" and "Task ended with score" in turn["content"]:
            return _behind_colon(turn["content"])
    return None


def _behind_colon(text: str) -> float:
    return float(text.split(":")[-1].strip())


_SCRIPTS: dict[str, Callable[[Any], Any]] = {
    "evaluation": _evaluation,
    "crafting": _crafting,
    "analyse": partial(_crafting, step=-1),
    "construction": _construction,
}


def read_folders(runs: pd.DataFrame, sources: Iterable[str]) -> pd.DataFrame:
    """Read the folders of runs as the scripts do, and those beside them without any run that lie in `sources`.

    Returns
    -------
    DataFrame
        source, path (the same, absolute), has_runs, and `READ`: files (JSON files in it), evaluation (the highest
        score, at least 0), crafting and analyse (a success), cooking (success, failure, or empty), stops (the
        exception that ends analyze_cooking_tasks.py), construction (a score, perhaps not a number, or None).
    """
    run_folders = runs[["source", "flat_layout"]].drop_duplicates("source")
    paths = run_folders["source"].map(absolute)
    given = [absolute(resolve(source)) for source in sources]
    inside = [folder for folder in given if os.path.isdir(folder)]
    roots = set(_roots(paths, run_folders["flat_layout"]))
    beside = {
        entry.path
        for root in roots
        if os.path.isdir(root)
        for entry in os.scandir(root)
        if entry.is_dir() and any(os.path.commonpath([entry.path, folder]) == folder for folder in inside)
    }
    others = sorted(beside - set(paths))
    rows = [
        (source, absolute(source), place < len(run_folders), *read_folder(list(map(read_file, _files_of(source)))))
        for place, source in enumerate([*run_folders["source"], *others])
    ]
    dtypes = dict.fromkeys(("source", "path", "cooking", "stops"), "str") | {"has_runs": "bool", "files": "int64"}
    dtypes |= {"evaluation": "float64", "crafting": "boolean", "analyse": "boolean"}
    table = pd.DataFrame(rows, columns=["source", "path", "has_runs", *READ], dtype="object")
    return table.astype(dtypes)


def _files_of(folder: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*.json")))


def _roots(paths: pd.Series, flat: pd.Series) -> pd.Series:
    """Return the folders that hold task folders, so that a script may be given them."""
    return paths.where(flat.astype(bool), paths.map(os.path.dirname))


def task_folders(runs: pd.DataFrame, folders: pd.DataFrame) -> pd.DataFrame:
    """Return one row per folder: where it is, what the scripts read in it, and the models beside it.

    `stopped` is whether analyze_cooking_tasks.py ends with an exception when it is given the folder above.
    """
    columns = ["source", "model_name", "task_type", "flat_layout"]
    run_folders = runs[columns].drop_duplicates("source")
    table = folders.merge(run_folders, on="source", how="left", validate="one_to_one")
    table = table.fillna({"task_type": "", "flat_layout": False}).astype({"flat_layout": "bool"})
    root = _roots(table["path"], table["flat_layout"])
    table = table.assign(root=root, name=table["path"].map(os.path.basename).astype("str"))
    table = table[root.isin(root[table["task_type"] != ""].unique())].sort_values("path", ignore_index=True)
    models = table.groupby("root")["model_name"].agg(lambda names: ", ".join(sorted(names.dropna().unique())))
    stopped = table["root"].isin(stops_of(table))
    return table.assign(models=table["root"].map(models).astype("str"), stopped=stopped)


def their_successes(folders: pd.DataFrame, script: str) -> pd.Series:
    """Return a script's result for each folder (or run, with its folder's columns); NaN where it is left out.

    `script` is ``evaluation``, ``crafting``, ``analyse_results`` or ``cooking``.
    """
    if script == "evaluation":
        return folders["evaluation"].astype("float64")
    if script == "cooking":
        outcomes = folders["cooking"].map({"success": 1.0, "failure": 0.0}).astype("float64")
        return outcomes.where(is_named_cooking(folders) & ~folders["stopped"])
    outcomes = folders["crafting" if script == "crafting" else "analyse"].fillna(False)
    return outcomes.astype("float64").mask(folders["flat_layout"])


def is_named_cooking(folders: pd.DataFrame) -> pd.Series:
    """Return which folders analyze_cooking_tasks.py reads."""
    return folders["name"].str.startswith(_COOKING) & ~folders["flat_layout"]


def stops_of(folders: pd.DataFrame) -> dict[str, str]:
    """Return the folders of task folders at which analyze_cooking_tasks.py ends, with its exception."""
    stopped = folders[is_named_cooking(folders) & (folders["stops"] != "")]
    firsts = stopped.groupby("root")["stops"].first()
    return dict(zip(firsts.index, firsts, strict=True))


def blocked_of(name: str) -> int:
    """Count the blocked agents as analyze_cooking_tasks.py does: by the end of the folder's name."""
    match = _BLOCKED.search(name)
    return len(match[1].split("_")) if match else 0


def items_of(name: str) -> list[str]:
    """Return the items to cook as analyze_cooking_tasks.py does: by the folder's name."""
    bare = re.sub(r"_blocked_access_[0-9_]+$", "", name.removeprefix(_COOKING))
    return [item.rstrip("_") for item in _ITEM.findall(bare)]


# group: what the folder's path begins with, as in analyze_crafting_tasks.py, and the name of ours
_CRAFTING = {
    ALL: ("", "all"),
    "base": ("(?=.*full_plan)(?=.*depth_0)(?!.*missing)", "base (full plan, depth 0)"),
    "base without plan": ("(?=.*no_plan)(?=.*depth_0)(?=.*missing)", "base without plan (items missing)"),
    "missing": (".*missing", "missing items"),
    "full plan": (".*full_plan", "full plan"),
    "partial plan": (".*partial_plan", "partial plan"),
    "no plan": (".*no_plan", "no plan"),
    "high depth": (".*depth_[12]", "high depth (1 or 2)"),
    "depth 0": (".*depth_0", "depth 0"),
    "depth 1": ("(?=.*depth_1)(?!.*depth_0)", "depth 1"),
    "depth 2": ("(?=.*depth_2)(?!.*depth_[01])", "depth 2"),
}


def crafting_groups_of(table: pd.DataFrame, script: str, *, ours: bool) -> dict[str, pd.Series]:
    """Return which groups of a crafting script each row belongs to, by its definition, or by its folder's path."""
    members = our_crafting_groups(table) if ours else {}
    groups = {}
    for group, (beginning, name) in _CRAFTING.items():
        matches = table["path"].map(re.compile(beginning, re.DOTALL).match).notna()
        groups[group] = members.get(name, pd.Series(False, table.index)) if ours else matches
    if script == "analyse_results":  # no groups of single depths, and the base group is in no group of plans
        groups = {group: mask for group, mask in groups.items() if not group.startswith("depth")}
        groups["full plan"] &= ~groups["base"]
    return groups


def our_crafting_groups(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """Return which groups of `analysis.crafting_groups` each run counts in: that of it alone tells."""
    number = pd.Series([str(n) for n in range(len(runs))], runs.index)
    no_flags: Any = [[] for _ in number]
    alone = runs.assign(model_name=number, task_type="techtree", run_flags=no_flags)
    found = mindcraft.analysis.crafting_groups(alone)[["group", "model_name"]]
    return {group: number.isin(own["model_name"]) for group, own in found.groupby("group")}


TOTALS = ["script", "folder", "model_name", "group", "unit", "their_n", "their_successes", "their_rate"]
TOTALS += ["our_n", "our_successes", "our_rate", "note"]
_KEYS = ["script", "folder", "model_name", "rank", "group", "unit"]
_SUMMED = [*_KEYS[1:], "value", "counts", "task"]
_OF_RUNS = ["kind", "source", "model_name", "task_id", "task_type", "repetition", "flat_layout", "succeeded"]
_OF_RUNS += ["raw_score", "score_scale", "n_blocked_agents", "target_items", "hells_kitchen"]
_OF_RUNS += ["plan_availability", "depth", "missing_items", "materials", "rooms", "flag_stale_copy"]
_OF_RUNS += ["flag_score_implied", "flag_near_final", "flag_conflicting", "task", "requires_crafting_table"]
_OF_RUNS += [
    "run_id",
    "started",
    "duration",
    "cost",
    "tokens_in",
    "tokens_out",
    "is_successful",
    "score",
    "status",
    "run_flags",
]
_BY_BOTH = 20_000  # rank of the groups of generate_item_blocked_data
_LEVELS = re.compile(r"materials_(\d+)_rooms_(\d+)")
Sides = tuple[pd.DataFrame, pd.DataFrame]  # rows to be summed, theirs and ours: some of `_SUMMED`


class Audit(NamedTuple):
    """What the scripts report beside our figures, and every single difference with its cause.

    Attributes
    ----------
    totals : DataFrame
        script; folder (that the script is given; empty: all task folders of its types); model_name; group; unit;
        their_n, their_successes, their_rate; our_n, our_successes, our_rate (tasks weigh equally: not
        our_successes / our_n where tasks have several runs); note (the exception by which a script ends). The unit
        is ``rate`` (successes of n, from 0 to 1), ``score`` (sum and mean of scores as logged) or ``count``.
    differences : DataFrame
        script, cause, task_id, repetition, theirs, ours, source: one row per run that is counted differently.
    """

    totals: pd.DataFrame
    differences: pd.DataFrame


def audit(runs: pd.DataFrame, folders: pd.DataFrame) -> Audit:
    """Summarise what the original scripts report for folders of runs.

    Parameters
    ----------
    runs : DataFrame
        As `evalkit.mindcraft.load` returns them, or a selection of them.
    folders : DataFrame
        As `read_folders` returns them; those beside folders of runs are counted too.

    Returns
    -------
    Audit
        Rates are as the scripts give them: 0 for a group without runs. Where a script ends with an exception, or finds
        no task folder (the flat layout), it reports nothing: NaN, and `note`.
    """
    folders = task_folders(runs, folders[folders["source"].isin(runs["source"]) | ~folders["has_runs"]])
    flags = {name: has_flag(runs, name.removeprefix("flag_")) for name in _OF_RUNS if name.startswith("flag_")}
    succeeded = runs["is_successful"].fillna(False).astype(bool)  # a run that was not measured has not
    placed = runs.assign(task=mindcraft.KIND.rates.task_of(runs), succeeded=succeeded, **flags)[_OF_RUNS].merge(
        folders[["source", "path", "root", "name", "models", "stopped", *READ]], on="source", validate="many_to_one"
    )
    sides = {
        "evaluation": _evaluation_sides(folders, placed),
        "crafting": _crafting_sides(folders, placed, "crafting"),
        "analyse_results": _crafting_sides(folders, placed, "analyse_results"),
        "cooking": _cooking_sides(folders, placed),
        "construction": _construction_sides(folders, placed),
    }
    totals = pd.concat([_summed(script, *both) for script, both in sides.items()], ignore_index=True)
    return Audit(_as_printed(totals, folders)[TOTALS], differences(folders, placed))


def _counted(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the runs that count in our rates; a success is 1."""
    return runs.assign(value=runs["succeeded"].astype("float64"), unit="rate")[~runs["flag_stale_copy"]]


def _scored(runs: pd.DataFrame) -> pd.DataFrame:
    """Select the construction runs that count in our means; scores are in the unit they were logged in."""
    scale = runs["score_scale"].map({"percent": 100.0}).fillna(1.0).astype("float64")
    table = runs.assign(value=runs["score"] * scale, unit="score")
    return table[(table["task_type"] == "construction") & table["value"].notna() & ~runs["flag_stale_copy"]]


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


def _evaluation_sides(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
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


def _crafting_sides(folders: pd.DataFrame, runs: pd.DataFrame, script: str) -> Sides:
    """analyze_crafting_tasks.py and analyse_results.py: `aggregate_results`."""
    table = folders.assign(value=their_successes(folders, script), unit="rate")
    theirs = _of_type(table[table["value"].notna()], "techtree")
    wrong = theirs["files"] != 2 if script == "analyse_results" else theirs["files"] == 0
    masks = crafting_groups_of(theirs, script, ours=False)
    masks = {group: mask & (~wrong | (group == ALL)) for group, mask in masks.items()}  # an error: tried, in no group
    ours = _of_type(_counted(runs[runs["task_type"] == "techtree"]), "techtree")
    return _grouped(theirs, masks), _grouped(ours, crafting_groups_of(ours, script, ours=True))


def _cooking_sides(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
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


def _construction_sides(folders: pd.DataFrame, runs: pd.DataFrame) -> Sides:
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
    ours, unscored = (
        _scored(runs).assign(task=runs["task_id"]),
        builds["score"].isna() & ~builds["flag_stale_copy"],
    )
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
    """Sum `value` by folder, model and group, on both sides; a row whose `counts` is False is not counted in n.

    Their rate is the sum over n; in ours tasks weigh equally.
    """
    sums = []
    for table, who in ((theirs, "their"), (ours, "our")):
        groups = table.assign(script=script, counts=table.get("counts", True)).groupby(_KEYS)
        values = {f"{who}_n": groups["counts"].sum(), f"{who}_successes": groups["value"].sum(skipna=False)}
        sums.append(pd.DataFrame(values))
    out = sums[0].join(sums[1], how="outer").sort_index().reset_index().fillna({"their_n": 0, "our_n": 0})
    for who in ("their", "our"):
        out[f"{who}_successes"] = out[f"{who}_successes"].mask(out[f"{who}_n"] == 0, 0.0)
    of_tasks = ours.assign(script=script).groupby([*_KEYS, "task"])["value"].mean()
    out = out.join(of_tasks.groupby(_KEYS).mean().rename("our_rate"), on=_KEYS)
    out["their_rate"] = out["their_successes"] / out["their_n"]
    return out.astype({"their_n": "int64", "our_n": "int64"})


def _as_printed(totals: pd.DataFrame, folders: pd.DataFrame) -> pd.DataFrame:
    """Return sums and rates as the scripts print them, with a note where they print nothing."""
    name, evaluation = totals["folder"].map(os.path.basename), totals["script"] == "evaluation"
    flat = set(folders.loc[folders["flat_layout"], "root"]) - set(folders.loc[~folders["flat_layout"], "root"])
    # for a folder without subfolders, the one above names the type
    above = totals["folder"].map(os.path.dirname).map(os.path.basename)
    name = name.mask(totals["folder"].isin(flat) & (above != ""), above)
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


DIFFERENCES = ["script", "cause", "task_id", "repetition", "theirs", "ours", "source"]
Rule = Callable[[pd.DataFrame], pd.Series]

# cause: where it holds, for runs with `theirs` (NaN: left out) and `ours`; None: any script
CAUSES: tuple[tuple[str, str | None, Rule], ...] = (
    ("a stale copy, which counts in no rate of ours", None, lambda r: r["flag_stale_copy"]),
    ("a task of another type, which lies in the folder", "construction", lambda r: r["task_type"] != "construction"),
    ("flat layout: not in a task folder", None, lambda r: r["flat_layout"]),
    ("several repetitions in the folder: one run to it", None, lambda r: r["repetitions"] > 1),
    ("no JSON file in the folder", None, lambda r: r["files"] == 0),
    ("not exactly two JSON files: tried, but an error", "analyse_results", lambda r: r["files"] != 2),
    ("the folder's name does not begin with multiagent_cooking_", "cooking", lambda r: ~is_named_cooking(r)),
    ("the script ends with an exception in this folder", "cooking", lambda r: r["stopped"]),
    ("no score: left out", None, lambda r: r["raw_score"].isna() & r["theirs"].isna()),
    ("a wording that the script does not know", None, lambda r: r["flag_score_implied"]),
    ("a wording among other text", None, lambda r: r["flag_near_final"]),
    ("several final messages: another one decides", None, lambda r: r["flag_conflicting"]),
    ("a zero is left out of averages by material and room", "construction", lambda r: r["theirs"] == 0),
    ("a file of a shape or encoding that the script can't read", None, lambda r: _finds_nothing(r)),
    ("a score is read by its first digit", None, lambda r: ~r["raw_score"].isin((0.0, 1.0))),
    ("read otherwise", None, lambda r: pd.Series(True, r.index)),
)


def differences(folders: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs, with the columns of their folders, that a script counts differently, with the cause."""
    runs = runs.assign(repetitions=runs.groupby(["source", "task_id"])["task_id"].transform("size"))
    tables = []
    for script, types in (
        ("evaluation", ("cooking", "techtree")),
        ("crafting", ("techtree",)),
        ("analyse_results", ("techtree",)),
        ("cooking", ("cooking",)),
    ):
        of_types = runs[runs["task_type"].isin(types)]
        ours = of_types["succeeded"].astype("float64").mask(of_types["flag_stale_copy"])
        tables.append(_explained(script, of_types.assign(theirs=their_successes(of_types, script), ours=ours)))
        tables.append(_regrouped(script, of_types))
    tables.append(_explained("construction", _in_construction(folders, runs)))
    table = pd.concat([rows for rows in tables if len(rows)] or tables[:1], ignore_index=True)
    return table.astype({"script": "str", "cause": "str", "theirs": "str", "ours": "str"})


def _in_construction(folders: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of runs as analyze_construction_tasks.py and as we read them."""
    roots = folders.loc[folders["task_type"] == "construction", "root"].unique()
    selected = runs[runs["root"].isin(roots)]
    theirs = selected["construction"].astype("float64").mask(selected["flat_layout"])
    counts = (selected["task_type"] == "construction") & ~selected["flag_stale_copy"] & selected["score"].notna()
    return selected.assign(theirs=theirs, ours=selected["raw_score"].where(counts))


def _explained(script: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the cause of each difference: the first of `CAUSES` that holds."""
    building = script == "construction"
    same = (runs["theirs"] == runs["ours"]) | (runs["theirs"].isna() & runs["ours"].isna())
    runs = runs[~same | (runs["repetitions"] > 1) | ((runs["theirs"] == 0) & building)]
    rules = [(cause, rule) for cause, only, rule in CAUSES if only in (None, script)]
    holds = [rule(runs).fillna(False).to_numpy(bool) for _, rule in rules]
    causes = np.select(holds, [cause for cause, _ in rules], "").tolist() if len(runs) else []
    words = {} if building else {0.0: "failure", 1.0: "success"}
    theirs, ours = (
        [words.get(value, f"{value:.6g}") if value == value else "left out" for value in runs[who]]
        for who in ("theirs", "ours")
    )
    unscored = runs["raw_score"].isna() & (runs["ours"] == 0) & (not building)
    ours = [text + " (no score)" * bare for text, bare in zip(ours, unscored.tolist(), strict=True)]
    return runs.assign(script=script, cause=causes, theirs=theirs, ours=ours)[DIFFERENCES]


def _finds_nothing(runs: pd.DataFrame) -> pd.Series:
    """Return where no file of the folder holds anything that a script takes for a score or a success."""
    silent = runs["evaluation"].fillna(0).eq(0) & ~runs["crafting"].fillna(False).astype(bool)
    return silent & runs["cooking"].eq("") & runs["construction"].isna()


def _regrouped(script: str, runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs that a script puts in other groups, since their folder's name contradicts the definition."""
    runs = runs[~runs["flag_stale_copy"] & ~runs["flat_layout"]]
    tables = [runs[:0].assign(cause="", theirs="", ours="")]
    if script == "cooking":
        runs = runs[is_named_cooking(runs)]
        apart = runs["hells_kitchen"].tolist()
        theirs = [f"{blocked_of(name)} blocked" for name in runs["name"]]
        ours = ["unknown" if n is pd.NA else f"{n} blocked" for n in runs["n_blocked_agents"]]
        ours = ["Hell's Kitchen" if is_apart else n for is_apart, n in zip(apart, ours, strict=True)]
        cause = "blocked agents are read from the folder's name"
        tables.append(runs.assign(cause=cause, theirs=theirs, ours=ours))
        theirs = [", ".join(sorted(items_of(name))) for name in runs["name"]]
        ours = ["" if is_apart else ", ".join(i) for is_apart, i in zip(apart, runs["target_items"], strict=True)]
        tables.append(runs.assign(cause="items are read from the folder's name", theirs=theirs, ours=ours))
    elif script in ("crafting", "analyse_results"):
        theirs, ours = (_names(crafting_groups_of(runs, script, ours=own), len(runs)) for own in (False, True))
        tables.append(runs.assign(cause="groups are read from the folder's path", theirs=theirs, ours=ours))
    table = pd.concat(tables).assign(script=script)[DIFFERENCES]
    return table[table["theirs"] != table["ours"]]


def _names(groups: dict[str, pd.Series], n: int) -> list[str]:
    """Return the names of each row's groups."""
    columns = [(name, mask.to_numpy(bool)) for name, mask in groups.items() if name != ALL]
    return [", ".join(name for name, mask in columns if mask[i]) or "none" for i in range(n)]


def describe(totals: pd.DataFrame, differences: pd.DataFrame, limit: int = 60) -> str:
    """Format what the original scripts report for the same folders beside our figures, and a line for each difference.

    Of folders, and of differences of one cause and script, at most `limit` are shown; a line says how many more.
    """
    lines = [f"What the original scripts (kolbytn/mindcraft, tasks/ at commit {COMMIT}) say, and ours,"]
    lines += ["in which tasks weigh equally:"]
    for script, of_script in totals.groupby("script", sort=False):
        is_pooled = of_script["folder"] == ""
        pooled, each = of_script[is_pooled], of_script[~is_pooled & (of_script["group"] == ALL)]
        alike = pooled["group"].str.startswith("task ") & (pooled["their_rate"] - pooled["our_rate"]).abs().lt(0.005)
        first = ["model_name", "group"] if script == "construction" else ["group"]
        lines += ["", f"{SCRIPTS[str(script)]}:", *_table(pooled[~alike], first)]
        if alike.any():
            lines.append(f"… tasks with the same score on both sides: {alike.sum()}")
        if len(each):
            shown = each.head(limit).assign(folder=each["folder"].map(short_paths(each["folder"].unique())))
            lines += ["", "  given each folder, with all that lies in it:", *_table(shown, ["folder"])]
        if len(each) > limit:
            lines.append(f"… {len(each) - limit} more")
    for (name, cause), differing in differences.groupby(["script", "cause"], sort=False):
        lines.append(f"\n{name}: {cause}: {len(differing)}")
        shown = differing.head(limit)
        lines += [f"  {plain(d.source)}: {plain(d.theirs)}, ours {plain(d.ours)}" for d in shown.itertuples()]
        if len(differing) > limit:
            lines.append(f"  … {len(differing) - limit} more")
    return "\n".join(lines)


def _table(totals: pd.DataFrame, first: Sequence[str]) -> list[str]:
    """Format rows of the summary below an empty line; nothing if there is none."""
    rows = []
    for row in totals.to_dict("records"):
        cells = {name: plain(row[name]) for name in first}
        for who in ("their", "our"):
            n, successes, rate = (row[f"{who}_{name}"] for name in ("n", "successes", "rate"))
            cells[f"{who} n"] = str(n)
            cells[f"{who} successes"] = f"{successes:.6g}" if row["unit"] == "rate" else ""
            cells[f"{who} rate"] = _rate(rate, row["unit"])
        rows.append({**cells, "": plain(row["note"])} if row["note"] else cells)
    if not rows:
        return []
    headers = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[row.get(name, "") for name in headers] for row in rows]
    align = ["left" if name in ("", *first) else "right" for name in headers]
    return ["", *tabulate(cells, headers, "simple", colalign=align, disable_numparse=True).splitlines()]


def _rate(rate: float, unit: str) -> str:
    if unit == "count":
        return ""
    return "–" if rate != rate else f"{rate:.1%}".replace("%", " %") if unit == "rate" else f"{rate:.2f}"


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="RUNS...")
@click.option("--tasks", multiple=True, metavar="PATH", help="Task definition file, folder or glob; may be repeated.")
@click.option("--output", metavar="FOLDER", help="Also write totals.csv and differences.csv there.")
def main(sources: tuple[str, ...], tasks: tuple[str, ...], output: str | None) -> None:
    """Print what the original MineCollab scripts say of local folders of runs, beside evalkit's figures."""
    try:
        runs = mindcraft.load(sources, tasks).runs
    except SourceError as error:
        raise click.ClickException(plain(str(error))) from None
    totals, differences = audit(runs, read_folders(runs, sources))
    click.echo(describe(totals, differences))
    if output:
        for name, table in (("totals", totals), ("differences", differences)):
            Path(output).mkdir(parents=True, exist_ok=True)
            table.to_csv(Path(output) / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
