"""Terminal output of ``evalkit compare``, and whether a build fails on it."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from evalkit.compare.paired import against, in_words
from evalkit.compare.ranks import Leaderboard, headline, leaderboard, ranks_text
from evalkit.io import plain
from evalkit.kinds.terminal import fit_table, interval, names_of, number

ESTIMATE = "95 % interval"


def describe_comparison(runs: pd.DataFrame, value: str = "", margin: float | None = None) -> str:
    """Format models with their rates and ranks, the headline, and the most notable pairs."""
    board = leaderboard(runs, value, margin=margin)
    first = plain(headline(board)["label"])
    lines = [_ranks(board), "", f"{first[0].upper()}{first[1:]}.", *map(plain, board.notes)]
    lines += ["", in_words(board.pairs)] if len(board.pairs) else []
    return "\n".join(lines)


def describe_baseline(
    runs: pd.DataFrame, baseline: str, value: str = "", *, margin: float = 0.05, strict: bool = False
) -> tuple[str, bool]:
    """Format each model's verdict against a baseline; also return whether a build may pass.

    Returns
    -------
    str
    bool
        False if a model is a regression or, with `strict`, is not shown to be no worse.
    """
    table = against(runs, baseline, value, margin=margin)
    means = pd.concat([table["mean"], table["mean_baseline"]]).dropna()
    kind = "proportion" if means.between(0, 1).all() else "mean"
    names = names_of(table["model"])
    rows = [_against(row, names, kind) for row in table.to_dict("records")]
    if not rows:
        return f"{plain(baseline)} is the only model: there is nothing to compare with it.", not strict
    share = f"{margin * 100:g} points" if kind == "proportion" else f"{margin:g}"
    head = f"Against {plain(baseline)}, on the tasks both ran; a loss of less than {share} is no regression:"
    bad = {"regression", "not decided"} if strict else {"regression"}
    return f"{head}\n\n{fit_table(rows, width=None)}", not table["verdict"].isin(bad).any()


def _ranks(board: Leaderboard) -> str:
    table, kind = board.table, "proportion" if board.outcomes.is_share else "mean"
    names = names_of(table["model_name"])
    rows = []
    for row, rank in zip(table.to_dict("records"), ranks_text(table), strict=True):
        cells = {
            "model": names[row["model_name"]],
            "rank": rank or "–",
            "runs": str(row["n"]),
            "tasks": str(row["n_tasks"]),
        }
        cells |= {board.outcomes.name: number(row["estimate"], kind), ESTIMATE: interval(row, kind)}
        cells |= {board.basis: number(row["adjusted"], kind)} if board.is_adjusted else {}
        rows.append(cells)
    return fit_table(rows, width=None)


def _against(row: Mapping[Any, Any], names: dict[Any, str], kind: str) -> dict[str, str]:
    p_value = row["p_adjusted"]
    return {
        "model": names[row["model"]],
        "tasks": str(row["n_tasks"]),
        "model's": number(row["mean"], kind),
        "baseline's": number(row["mean_baseline"], kind),
        "difference, points" if kind == "proportion" else "difference": number(row["estimate"], kind).removesuffix(
            " %"
        ),
        ESTIMATE: interval(row, kind),
        "p, corrected": "–" if pd.isna(p_value) else f"{p_value:.2g}",
        "verdict": row["verdict"],
    }
