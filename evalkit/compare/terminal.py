"""Terminal output of ``evalkit compare``, and whether a build fails on it."""

import pandas as pd

from evalkit.compare.paired import against, in_words
from evalkit.compare.ranks import headline, leaderboard, ranks_text
from evalkit.display.words import headline_text, sentence
from evalkit.io import plain
from evalkit.kinds.models import alike
from evalkit.kinds.terminal import fit_table, interval, names_of, number

ESTIMATE = "95 % interval"


def describe_comparison(runs: pd.DataFrame, value: str = "", margin: float | None = None) -> str:
    """Format models with their rates and ranks, the headline, and the most notable pairs."""
    board = leaderboard(runs, value, margin=margin)
    table, kind = board.table, "proportion" if board.outcomes.is_share else "mean"
    names, rows = names_of(table["model_name"]), []
    for row, rank in zip(table.to_dict("records"), ranks_text(table), strict=True):
        cells = {"model": names[row["model_name"]], "rank": rank or "–", "runs": str(row["n"])}
        cells |= {"tasks": str(row["n_tasks"]), board.outcomes.name: number(row["estimate"], kind)}
        cells |= {ESTIMATE: interval(row, kind)}
        cells |= {board.basis: number(row["adjusted"], kind)} if board.is_adjusted else {}
        rows.append(cells)
    first = plain(f"{headline_text(headline(board), begins=True)}.")
    lines = [fit_table(rows, width=None), "", first, *(plain(sentence(note)) for note in board.notes.notes)]
    lines += ["", in_words(board.pairs)] if len(board.pairs) else []
    return "\n".join([*lines, *(plain(sentence(note)) for note in alike(table["model_name"]).notes)])


def describe_baseline(
    runs: pd.DataFrame, baseline: str, value: str = "", *, margin: float = 0.05, strict: bool = False
) -> tuple[str, bool]:
    """Format each model's verdict against a baseline; also return whether a build may pass.

    It may not if a model is a regression or, with `strict`, is not shown to be no worse.
    """
    table = against(runs, baseline, value, margin=margin)
    if table.empty:
        return f"{plain(baseline)} is the only model: there is nothing to compare with it.", not strict
    share = pd.concat([table["mean"], table["mean_baseline"]]).dropna().between(0, 1).all()
    kind, unit, loss = ("proportion", ", points", f"{margin * 100:g} points") if share else ("mean", "", f"{margin:g}")
    names = names_of(table["model"])
    rows = [
        {
            "model": names[row["model"]],
            "tasks": str(row["n_tasks"]),
            "model's": number(row["mean"], kind),
            "baseline's": number(row["mean_baseline"], kind),
            f"difference{unit}": number(row["estimate"], kind).removesuffix(" %"),
            ESTIMATE: interval(row, kind),
            "p, corrected": "–" if pd.isna(row["p_adjusted"]) else f"{row['p_adjusted']:.2g}",
            "verdict": row["verdict"],
        }
        for row in table.to_dict("records")
    ]
    head = f"Against {plain(baseline)}, on the tasks both ran; a loss of less than {loss} is no regression:"
    bad = {"regression", "not decided"} if strict else {"regression"}
    return f"{head}\n\n{fit_table(rows, width=None)}", not table["verdict"].isin(bad).any()
