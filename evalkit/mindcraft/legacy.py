"""What the original MineCollab scripts would have said of the same runs, and why it differs.

The scripts are described, not copied: which runs each one counts, how it reads a score, and what it takes from ids.
"""

from typing import NamedTuple

import pandas as pd

from evalkit.mindcraft.facts import task_facts


class Script(NamedTuple):
    """One original script: what it looks at and which of its habits change the numbers."""

    name: str
    task_types: tuple[str, ...]
    first_digit: bool = True  # the score is read by the digit it begins with
    drops_missing: bool = False  # a folder without a score is left out; else it is a failure
    needs_definition: bool = False
    needs_two_logs: bool = False
    drops_zeros: bool = False
    by_blocked: bool = False
    is_mean: bool = False  # reports a mean score; else a success rate


SCRIPTS = (
    Script("cooking", ("cooking",), drops_missing=True, by_blocked=True),
    Script("crafting", ("techtree",)),
    Script("construction", ("construction",), first_digit=False, drops_missing=True, drops_zeros=True, is_mean=True),
    Script("evaluation", ("cooking", "techtree"), first_digit=False, needs_definition=True, needs_two_logs=True),
)


class LegacySummary(NamedTuple):
    """The scripts' totals beside ours, and every single difference with its cause.

    Attributes
    ----------
    totals : DataFrame
        script, group, their_n, their_rate, our_n, our_rate (mean scores for construction).
    differences : DataFrame
        script, cause, task_id, repetition, theirs, ours, source: one row per run (or folder) that is counted otherwise.
    """

    totals: pd.DataFrame
    differences: pd.DataFrame


def legacy_summary(runs: pd.DataFrame) -> LegacySummary:
    """Recount runs as the original scripts did.

    Parameters
    ----------
    runs : DataFrame
        As `runs_df` returns it.

    Returns
    -------
    LegacySummary
        A script that finds no run of its kind has n = 0 and a rate of NaN.
    """
    totals, differences = [], []
    for script in SCRIPTS:
        own = runs[runs["task_type"].isin(script.task_types)]
        rows = [_recount(script, folder) for _, folder in own.groupby(["source", "task_id"], sort=True)]
        theirs = pd.DataFrame([row for row, _ in rows], columns=["score", "blocked"])
        differences += [difference for _, found in rows for difference in found]
        ours = own["overall_score"] if script.is_mean else own["overall_is_successful"].astype(float)
        if not script.is_mean:
            theirs["score"] = (theirs["score"] == 1).astype(float).where(theirs["score"].notna())
        totals.append(_total(script, "all", theirs["score"].dropna(), ours.dropna()))
        if script.by_blocked:
            for count in sorted({*theirs["blocked"].dropna(), *own["n_blocked_agents"].dropna()}):
                mine = ours[(own["n_blocked_agents"] == count).fillna(False)]
                score = theirs["score"][theirs["blocked"] == count].dropna()
                totals.append(_total(script, f"{count:.0f} blocked", score, mine))
    columns = ["script", "cause", "task_id", "repetition", "theirs", "ours", "source"]
    return LegacySummary(pd.DataFrame(totals), pd.DataFrame(differences, columns=columns))


def _total(script: Script, group: str, theirs: pd.Series, ours: pd.Series) -> dict:
    return {
        "script": script.name,
        "group": group,
        "their_n": len(theirs),
        "their_rate": theirs.mean(),
        "our_n": len(ours),
        "our_rate": ours.mean(),
    }


def _recount(script: Script, folder: pd.DataFrame) -> tuple[tuple[float, float], list[tuple]]:
    """Recount one task folder: the script's score and blocked count, and the differences to ours."""
    first = folder.iloc[0]
    found: list[tuple] = []

    def note(cause: str, run: pd.Series, theirs: object, ours: object) -> None:
        found.append((script.name, cause, run["task_id"], run["repetition"], theirs, ours, run["source"]))

    blocked = task_facts(first["task_id"], None)["n_blocked_agents"] or 0
    logs = int(folder["total_agent_logs_found"].sum())
    if script.needs_definition and not first["has_definition"]:
        note("no definition: dropped", first, "left out", "counted")
        return (float("nan"), blocked), found
    if script.needs_two_logs and logs != 2:
        note("exactly two logs required", first, f"left out ({logs} logs)", "counted")
        return (float("nan"), blocked), found
    scores = []
    for _, run in folder.iterrows():
        score, ours = _read(script, run), run["overall_score"]
        scores.append(score)
        if run["flag_score_implied"]:
            note("old wording not known", run, "no score", f"{ours:g}")
        elif pd.isna(run["overall_raw_score"]):
            if script.drops_missing and not script.is_mean:
                note("no score: dropped", run, "left out", "failure")
        elif score != ours:
            note("score read by its first digit", run, f"{score:g}", f"{run['overall_raw_score']:g}")
    if len(folder) > 1:
        note(f"best of {len(folder)} repetitions", first, "1 run", f"{len(folder)} runs")
    if script.by_blocked and first["n_blocked_agents"] is not pd.NA and blocked != first["n_blocked_agents"]:
        note("blocked agents read from the id", first, f"{blocked} blocked", f"{first['n_blocked_agents']} blocked")
    best = max((s for s in scores if not pd.isna(s)), default=float("nan") if script.drops_missing else 0.0)
    if script.drops_zeros and best == 0:
        note("zeros left out of averages", first, "left out", "0")
        best = float("nan")
    return (best, blocked), found


def _read(script: Script, run: pd.Series) -> float:
    """Read a run's score as the script does; NaN where it finds none."""
    raw = run["overall_raw_score"]
    if pd.isna(raw) or run["flag_score_implied"]:
        return float("nan")
    if not script.first_digit:
        return run["overall_score"]
    digit = _first_character(float(raw))
    return float(digit) if digit in "01" else float("nan")


def _first_character(score: float) -> str:
    """Give what a score begins with in a log, as JavaScript writes it.

    Both JavaScript and `repr` write the shortest digits that give the number back. But JavaScript writes 0.00001 where
    `repr` writes 1e-05, it turns to exponents (1e-7) below 0.000001 only, and its -0 is 0.
    """
    return "0" if score == 0 or 1e-6 <= score < 1 else repr(score)[0]
