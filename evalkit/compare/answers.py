"""Findings of a leaderboard: the best model, the pair nearest to a decision, what would decide it, and caveats."""

import numpy as np
import pandas as pd

from evalkit._notes import Notes
from evalkit._text import check_number
from evalkit.compare.comparison import MOST_SHOWN, leading_cells
from evalkit.compare.pairwise import discordant, examples
from evalkit.compare.ranking import FIRST, Leaderboard, ranked
from evalkit.kinds import Finding, sections
from evalkit.kinds.findings import files_of, similar_names
from evalkit.stats import plan as plan_pairs
from evalkit.stats.pairwise import MOST_PAIRED


def findings(
    board: Leaderboard, ledger: pd.DataFrame | None = None, *, ranking: str = sections.RANKING, detect: float = 0.0
) -> list[Finding]:
    """Describe the best model, undecided comparisons, what would decide them, and caveats.

    The most important finding comes first, after differing conditions.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.
    ledger : DataFrame, optional
        One row per input file; adds a finding on files.
    ranking : str
        Heading of the section of the ranking.
    detect : float
        Also plan for a difference of this size, in points; 0 for the observed difference only.

    Returns
    -------
    list of Finding
        The findings.

    Examples
    --------
    >>> [finding.code for finding in compare.findings(compare.leaderboard(runs))][:2]
    ['conditions', 'ranking']
    """
    # the pair of the first model that is nearest to a decision: an open one, if there is any
    near = board.pairs_of_first
    undecided = near[~near["decided"] & near["p_adjusted"].notna()]
    nearest = (undecided if len(undecided) else near).sort_values("p_adjusted", ascending=bool(len(undecided))).head(1)
    sides = nearest[["model_a", "model_b"]].itertuples(index=False)
    opposite = tuple(example for pair in sides for example in examples(discordant(board, *pair)))
    results = [Finding("conditions", ranking, {"notes": Notes((one,))}) for one in board.notes.only(*FIRST).notes]
    stated = list[str]()  # codes of notes that other findings state
    results.append(best := ranked(board, ranking))
    if few := board.notes.only("variants"):
        results.append(Finding("variants", sections.DATA_QUALITY, {"notes": few}))
    head = best.values["headline"]
    if head["code"] == "apart":  # no pair can be decided, as the ranking states
        if head["n_sets"] == len(head["models"]):
            stated.append("sets")
    elif len(board.pairs):
        counts = {"decided": int(board.pairs["decided"].sum()), "pairs": len(board.pairs)}
        if len(board.table) > MOST_PAIRED:
            counts["first"] = MOST_SHOWN
        row = nearest.to_dict("records")
        results.append(Finding("nearest_pair", sections.PAIRS, {**counts, "row": next(iter(row), None)}, opposite))
        results += plan_findings(board, detect)
        if undecided := head.get("undecided", 0):
            results.append(Finding("undecided", sections.PAIRS, {"count": undecided}))
    elif len(board.table) == 1:
        results.append(Finding("alone", sections.PAIRS))
    if head.get("absent"):
        stated.append("absent")
    caveats = board.notes.without(*FIRST, "variants", "same_order", *stated)
    if len(board.table) == 1:
        caveats = caveats.only("absent")
    results += [Finding("caveat", ranking, {"notes": Notes((one,))}) for one in caveats.notes]
    if ledger is not None:
        names = similar_names(board.table["model_name"])
        results.append(Finding("files", sections.DATA_QUALITY, {"files": files_of(ledger), "names": names}))
    return results


def plan_findings(board: Leaderboard, detect: float = 0.0) -> list[Finding]:
    """Plan how many tasks decide between the first model and the next one against which it is not decided.

    The true difference is taken to be the observed one; with `detect` also one of so many percentage points (of scores
    that are no shares: of so many of their unit). No findings where the models share no tasks.
    """
    check_number("detect", detect)
    data, near = board.outcomes, board.pairs_of_first
    near = near[~near["decided"] & near["p_adjusted"].notna() & near["estimate"].ne(0)]
    wanted: list[tuple[float, list[str], int | None]] = []
    runs_so_far = 1.0  # of a model on a task
    if len(near):
        place_of = {name: place for place, name in enumerate(board.table["model_name"])}
        places = near[["model_a", "model_b"]].map(place_of.__getitem__)
        row = near.iloc[int(np.argmin(places.max(axis=1)))]
        runs_so_far = max(row["n_runs"] / max(2 * row["n_tasks"], 1), 1.0)
        pair = sorted(row[["model_a", "model_b"]], key=place_of.__getitem__)
        wanted.append((abs(row["estimate"]), pair, int(row["n_tasks"])))
    if detect:
        wanted.append((detect / 100 if data.is_share else detect, [], None))
    cells = leading_cells(board.cells)
    found = []
    for difference, models, shared in wanted:
        table = plan_pairs(cells, difference)
        if table.empty:  # one model
            continue
        if reasons := table["warning"].iloc[0].only("no_plan"):
            found.append(Finding("caveat", sections.PLAN, {"notes": reasons}))
            break
        rows = table[table["target"] == "new tasks"].set_index("repeats")["tasks"]
        n_tasks = int(table["n_tasks"].iloc[0]) if shared is None else shared
        values = {
            "difference": difference,
            "models": models,
            "tasks": {repeats: rows[repeats] for repeats in (1, 3)},
            "n_tasks": n_tasks,
            "is_share": data.is_share,
            "unit": data.unit,
        }
        # a plan takes the spread so far for the true one: the runs that it asks for may exist and not have decided
        is_enough_already = bool(models) and any(rows[n] <= n_tasks for n in (1, 3) if n <= runs_so_far)
        if pd.notna(rows[1]) and not is_enough_already:
            found.append(Finding("plan", sections.PLAN, values))
    return found
