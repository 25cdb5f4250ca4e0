"""Explain why the original scripts count a run differently: the first cause of one table that holds."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from evalkit.mindcraft.analysis.rates import is_stale
from evalkit.mindcraft.legacy.folders import (
    ALL,
    blocked_of,
    crafting_groups_of,
    is_named_cooking,
    items_of,
    their_successes,
)

COLUMNS = ["script", "cause", "task_id", "repetition", "theirs", "ours", "source"]
Rule = Callable[[pd.DataFrame], pd.Series]

# cause: where it holds, for runs with `theirs` (NaN: left out) and `ours`; None: any script
CAUSES: tuple[tuple[str, str | None, Rule], ...] = (
    ("a stale copy, which counts in no rate of ours", None, lambda r: is_stale(r)),
    ("a task of another type, which lies in the folder", "construction", lambda r: r["task_type"] != "construction"),
    ("flat layout: not in a task folder", None, lambda r: r["flat_layout"]),
    ("several repetitions in the folder: one run to it", None, lambda r: r["repetitions"] > 1),
    ("no JSON file in the folder", None, lambda r: r["files"] == 0),
    ("not exactly two JSON files: tried, but an error", "analyse_results", lambda r: r["files"] != 2),
    ("the folder's name does not begin with multiagent_cooking_", "cooking", lambda r: ~is_named_cooking(r)),
    ("the script ends with an exception in this folder", "cooking", lambda r: r["stopped"]),
    ("no score: left out", None, lambda r: r["overall_raw_score"].isna() & r["theirs"].isna()),
    ("a wording that the script does not know", None, lambda r: r["flag_score_implied"]),
    ("a wording among other text", None, lambda r: r["flag_near_final"]),
    ("several final messages: another one decides", None, lambda r: r["flag_conflicting"]),
    ("a zero is left out of averages by material and room", "construction", lambda r: r["theirs"] == 0),
    ("a file of a shape or encoding that the script can't read", None, lambda r: _finds_nothing(r)),
    ("a score is read by its first digit", None, lambda r: ~r["overall_raw_score"].isin((0.0, 1.0))),
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
        ours = of_types["overall_is_successful"].astype("float64").mask(is_stale(of_types))
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
    counts = (selected["task_type"] == "construction") & ~is_stale(selected) & selected["overall_score"].notna()
    return selected.assign(theirs=theirs, ours=selected["overall_raw_score"].where(counts))


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
    unscored = runs["overall_raw_score"].isna() & (runs["ours"] == 0) & (not building)
    ours = [text + " (no score)" * bare for text, bare in zip(ours, unscored.tolist(), strict=True)]
    return runs.assign(script=script, cause=causes, theirs=theirs, ours=ours)[COLUMNS]


def _finds_nothing(runs: pd.DataFrame) -> pd.Series:
    """Return where no file of the folder holds anything that a script takes for a score or a success."""
    silent = runs["evaluation"].fillna(0).eq(0) & ~runs["crafting"].fillna(False).astype(bool)
    return silent & runs["cooking"].eq("") & runs["construction"].isna()


def _regrouped(script: str, runs: pd.DataFrame) -> pd.DataFrame:
    """List the runs that a script puts in other groups, since their folder's name contradicts the definition."""
    runs = runs[~is_stale(runs) & ~runs["flat_layout"]]
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
    table = pd.concat(tables).assign(script=script)[COLUMNS]
    return table[table["theirs"] != table["ours"]]


def _names(groups: dict[str, pd.Series], n: int) -> list[str]:
    """Return the names of each row's groups."""
    columns = [(name, mask.to_numpy(bool)) for name, mask in groups.items() if name != ALL]
    return [", ".join(name for name, mask in columns if mask[i]) or "none" for i in range(n)]
