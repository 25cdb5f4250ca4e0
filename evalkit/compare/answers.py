"""Make the findings of a leaderboard: the best model, the pair nearest to a decision, plans, and caveats."""

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


def findings(board: Leaderboard, ledger: pd.DataFrame | None = None, *, detect: float = 0.0) -> list[Finding]:
    """Describe the best model, undecided comparisons, how many tasks would decide them, and caveats.

    Findings on differing conditions come first, then the most important finding.

    Parameters
    ----------
    board : Leaderboard
        Result of `leaderboard`.
    ledger : DataFrame, optional
        One row per input file; adds a finding on files.
    detect : float
        Also plan for a difference of this size, in percentage points; 0 to plan only for the observed difference.

    Returns
    -------
    list of Finding
        The findings.

    Examples
    --------
    >>> [finding.code for finding in compare.findings(compare.leaderboard(runs))][:2]
    ['conditions', 'ranking']
    """
    # the first model's pair nearest to a decision: an undecided pair, or else the decided pair with the largest p value
    near = board.pairs_of_first
    undecided = near[~near["decided"] & near["p_adjusted"].notna()]
    nearest = (undecided if len(undecided) else near).sort_values("p_adjusted", ascending=bool(len(undecided))).head(1)
    sides = nearest[["model_a", "model_b"]].itertuples(index=False)
    opposite = tuple(example for pair in sides for example in examples(discordant(board, *pair)))
    first = board.notes.only(*FIRST).notes
    results = [Finding("conditions", sections.RANKING, {"notes": Notes((one,))}) for one in first]
    stated = list[str]()  # codes of notes that other findings include
    best = ranked(board)
    results.append(best)
    if few := board.notes.only("variants"):
        results.append(Finding("variants", sections.DATA_QUALITY, {"notes": few}))
    head = best.values["headline"]
    if head["code"] == "apart":  # no pair can be decided, and the ranking says so
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
    elif board.table["rank_low"].count() == 1:
        results.append(Finding("alone", sections.PAIRS))
    if head.get("absent"):
        stated.append("absent")
    caveats = board.notes.without(*FIRST, "variants", "same_order", *stated)
    if len(board.table) == 1:
        caveats = caveats.only("absent")
    results += [Finding("caveat", sections.RANKING, {"notes": Notes((one,))}) for one in caveats.notes]
    if ledger is not None:
        values = {"files": files_of(ledger), "names": similar_names(board.outcomes.table)}
        results.append(Finding("files", sections.DATA_QUALITY, values))
    return results


def plan_findings(board: Leaderboard, detect: float = 0.0) -> list[Finding]:
    """Plan how many tasks decide between the first model and the next model with which its pair is undecided.

    The plan assumes that the true difference is the observed one and, with `detect`, also plans for a difference of
    `detect` percentage points (or units of the score). There are no findings if the models share no tasks.
    """
    check_number("detect", detect)
    data, near = board.outcomes, board.pairs_of_first
    near = near[~near["decided"] & near["p_adjusted"].notna() & near["estimate"].ne(0)]
    wanted: list[tuple[float, list[str], int | None]] = []
    runs_so_far = 1.0  # runs per model and task
    if len(near):
        place_of = {name: place for place, name in enumerate(board.table["model_name"])}
        places = near[["model_a", "model_b"]].map(place_of.__getitem__)
        row = near.iloc[int(np.argmin(places.max(axis=1)))]
        runs_so_far = max(row["n"] / max(2 * row["n_tasks"], 1), 1.0)
        pair = sorted(row[["model_a", "model_b"]], key=place_of.__getitem__)
        wanted.append((abs(row["estimate"]), pair, int(row["n_tasks"])))
    if detect:
        wanted.append((detect / 100 if data.is_share else detect, [], None))
    cells = leading_cells(board.cells)
    found = []
    for difference, models, shared in wanted:
        table = plan_pairs(cells, difference)
        if table.empty:  # there is at most one model
            if len(cells.models):
                found.append(Finding("alone", sections.PLAN))
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
        # a plan assumes that the observed spread is the true one, so it may ask for fewer runs than there already are
        is_enough_already = bool(models) and any(rows[n] <= n_tasks for n in (1, 3) if n <= runs_so_far)
        if pd.notna(rows[1]) and not is_enough_already:
            found.append(Finding("plan", sections.PLAN, values))
    return found
