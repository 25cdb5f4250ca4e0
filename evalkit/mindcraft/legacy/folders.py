"""Identify tasks as the original MineCollab scripts do: by folders, their names and their paths."""

import os
import re
from collections import defaultdict

import pandas as pd
import pyarrow.compute as pc

from evalkit.io import absolute, escape_surrogates, frame_of
from evalkit.kinds import Records
from evalkit.mindcraft.analysis.task_types import CRAFTING_GROUPS
from evalkit.mindcraft.original_scripts import file_from_text, read_folder
from evalkit.mindcraft.table import LAZY_TABLES

ALL = "all"
_COOKING = "multiagent_cooking_"
_BLOCKED = re.compile(r"blocked_access_([0-9_]+)$")
_ITEM = re.compile(r"[0-9]+_([a-zA-Z_]+)")


def folders_frame(records: Records, runs: pd.DataFrame) -> pd.DataFrame:
    """Return what the scripts read in each folder of runs, and in those beside them without any run."""
    texts: dict[str, str] = {}
    for table in records.tables.values():
        known = table.filter(pc.not_equal(table["legacy"], ""))
        texts |= zip(known["source"].to_pylist(), known["legacy"].to_pylist(), strict=True)
    of_folder: dict[str, list[str]] = defaultdict(list)
    for path in records.files["source"].filter(pc.invert(records.files["context"])).to_pylist():
        if path.endswith(".json"):
            of_folder[os.path.dirname(path)].append(texts.get(path, ""))
    run_folders = runs[["source", "flat_layout"]].drop_duplicates("source")
    roots = set(_roots(run_folders["source"].map(absolute), run_folders["flat_layout"]))
    others = pd.Series(list(map(escape_surrogates, records.listing.folders)), dtype="str")
    others = others[~others.isin(run_folders["source"]) & others.map(absolute).map(os.path.dirname).isin(roots)]
    sources = [*run_folders["source"], *others]
    rows = [
        (source, absolute(source), place < len(run_folders), *read_folder(list(map(file_from_text, of_folder[source]))))
        for place, source in enumerate(sources)
    ]
    columns = LAZY_TABLES["folders"]
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    return frame_of({column.name: own for column, own in zip(columns, values, strict=True)}, columns)


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
    "base without plan": ("(?=.*no_plan)(?=.*depth_0)(?=.*missing)", "base without plan (items missing too)"),
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
    groups = {}
    for group, (beginning, name) in _CRAFTING.items():
        matches = table["path"].map(re.compile(beginning, re.DOTALL).match).notna()
        groups[group] = CRAFTING_GROUPS[name](table).astype(bool) if ours else matches
    if script == "analyse_results":  # no groups of single depths, and the base group is in no group of plans
        groups = {group: mask for group, mask in groups.items() if not group.startswith("depth")}
        groups["full plan"] &= ~groups["base"]
    return groups
