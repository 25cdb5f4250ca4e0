"""Terminal output of ``evalkit compare``, and whether a build fails on it."""

import pandas as pd

from evalkit._words import format_interval, interval_cells
from evalkit.compare.paired import LEAST, against, pairs_text
from evalkit.compare.ranks import FIRST, headline, leaderboard, ranks_text
from evalkit.display.words import headline_text, sentence, undecided_text
from evalkit.io import distinct_names, plain
from evalkit.kinds import outcomes
from evalkit.kinds.findings import alike, variants
from evalkit.kinds.runs import kind_of
from evalkit.kinds.terminal import NAME_WIDTH, fit_table, unmeasured_lines

ESTIMATE = "95 % interval"


def describe_comparison(runs: pd.DataFrame, value: str = "", margin: float | None = None) -> str:
    """Format models with their rates and ranks, the headline, and the most notable pairs."""
    board = leaderboard(runs, value, margin=margin)
    table, share = board.table, board.outcomes.is_share
    names, rows = distinct_names(table["model_name"], NAME_WIDTH), []
    for row, rank in zip(table.to_dict("records"), ranks_text(table), strict=True):
        cells = {"model": names[row["model_name"]], "rank": rank or "–", "runs": str(row["n"])}
        cells["tasks"] = str(row["n_tasks"])
        cells[board.outcomes.title], cells[ESTIMATE] = interval_cells(row, percent=share)
        cells |= {board.basis: format_interval(row["adjusted"], None, None, percent=share)} if board.is_adjusted else {}
        rows.append(cells)
    answer = headline(board)
    first = plain(f"{headline_text(answer, begins=True)}.{undecided_text(answer)}")
    reasons = zip(table["model_name"], table["warning"], strict=True)
    copies = [f"{names[name]}: {why}." for name, why in reasons if why and "only_copies" in why]
    parts = board.notes.only(*FIRST), board.notes.only("variants"), board.notes.without(*FIRST, "variants")
    before, doubt, after = ([sentence(note) for note in part.notes] for part in parts)
    lines = [*map(plain, before), *[""] * bool(before), fit_table(rows, width=None), ""]
    lines += [first, *map(plain, [*doubt, *copies, *after])]
    lines += unmeasured_lines(runs, ["model_name"], kind_of(runs), value)
    lines += ["", pairs_text(board.pairs)] if len(board.pairs) else []
    return "\n".join([*lines, *(plain(sentence(note)) for note in alike(table["model_name"]).notes)])


def describe_baseline(
    runs: pd.DataFrame, baseline: str, value: str = "", *, margin: float | None = None, strict: bool = False
) -> tuple[str, bool]:
    """Format each model's verdict against a baseline; also return whether a build may pass.

    It may not if a model is a regression or, with `strict`, is not shown to be no worse.
    """
    table = against(runs, baseline, value, margin=margin)
    if table.empty:
        return f"{plain(baseline)} is the only model: there is nothing to compare with it.", not strict
    data = outcomes(runs, value)
    share, unit = data.is_share, "percentage points" if data.is_share else data.unit
    names, rows = distinct_names(table["model"], NAME_WIDTH), []
    for row in table.to_dict("records"):
        means = (format_interval(row[name], None, None, percent=share) for name in ("mean", "mean_baseline"))
        points = {name: row[name] * (100 if share else 1) for name in ("estimate", "low", "high")}
        difference, bounds = interval_cells(points, percent=False, digits=0 if share else 2)
        cells = names[row["model"]], str(row["n_tasks"]), *means, difference, bounds
        p_value = "–" if pd.isna(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}"
        heads = "model", "tasks", "model's", "baseline's", f"difference{', ' * bool(unit)}{unit}", ESTIMATE
        rows.append(dict(zip(heads, cells, strict=True)) | {"p, corrected": p_value, "verdict": row["verdict"]})
    least = LEAST if margin is None and share else margin
    loss = f"a loss of less than {(least or 0) * (100 if share else 1):g} {unit}".rstrip() + " is no regression"
    if least is None:
        loss = f"any loss that is shown is a regression (--margin, in {unit or 'the unit of the score'}, allows some)"
    head = f"Against {plain(baseline)}, {data.title} on the tasks both ran; {loss}:"
    bad = {"regression", "not decided"} if strict else {"regression"}
    doubt = "".join(f"\n\n{plain(sentence(note))}" for note in variants(data).notes)
    return f"{head}\n\n{fit_table(rows, width=None)}{doubt}", not table["verdict"].isin(bad).any()
