"""Raw and adjusted rates of models side by side, and which of them a headline may use."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from evalkit.stats._inputs import check_choice
from evalkit.stats.grouped import Kind, estimate_by
from evalkit.stats.models.mix import coverage_of, standardise
from evalkit.stats.models.task_effects import adjusted
from evalkit.stats.pairs.cells import cells_of

RAW, ADJUSTED, STANDARDISED, NONE = "raw", "adjusted for tasks", "standardised", "none"


class LikeWithLike(NamedTuple):
    """Rates of models with and without adjustment for the tasks they ran.

    Attributes
    ----------
    table : DataFrame
        One row per model; see `like_with_like`.
    headline : str
        Which estimates may stand in a headline: "raw", "adjusted for tasks", "standardised" or "none".
    reason : str
        Why, in a sentence.
    """

    table: pd.DataFrame
    headline: str
    reason: str


def like_with_like(
    frame: pd.DataFrame,
    model: str,
    task: str,
    value: str,
    stratum: str | None = None,
    *,
    kind: Kind = "proportion",
    confidence: float = 0.95,
) -> LikeWithLike:
    """Return each model's raw rate beside its coverage of the tasks and its rate adjusted for them.

    The rule for the headline: where all models ran the same tasks, the raw rates. Else those adjusted for tasks
    (`adjust_for_tasks`) where shared tasks link all models, else those standardised to the pooled mix of strata
    (`standardise`) where all models have all strata, else none. The reason names models that the raw rates and those
    of the headline order differently.

    Parameters
    ----------
    frame : DataFrame
        One row per run.
    model, task, value : str
        Columns of the model, of the task and of the outcome.
    stratum : str, optional
        Column of the type of task.
    kind : {"proportion", "score", "mean"}
        As for `estimate_by`.
    confidence : float

    Returns
    -------
    LikeWithLike
        The table has model, n (runs), n_tasks, coverage, n_common; estimate, low, high, method (raw);
        adjusted, adjusted_low, adjusted_high; standardised, standardised_low, standardised_high; headline,
        headline_low, headline_high (those of the rule; NaN for "none"); warning.
    """
    check_choice("kind", kind, ("proportion", "score", "mean"))
    cells = cells_of(frame, model, task, value)
    known = frame[frame[model].notna() & frame[task].notna()].astype({model: "str"})
    raw = estimate_by(known, model, value, task, kind, confidence).rename(columns={model: "model"})
    by_task = adjusted(cells, confidence)
    table = coverage_of(cells)[["model", "n_tasks", "coverage", "n_common"]]
    table = table.merge(raw[["model", "n", "estimate", "low", "high", "method", "warning"]], on="model", how="left")
    table = _joined(table, by_task, "adjusted")
    if stratum is not None:
        by_stratum = standardise(known, model, stratum, value, task, kind=kind, confidence=confidence)
        table = _joined(table, by_stratum.rename(columns={model: "model"}), STANDARDISED)
    else:
        table[[STANDARDISED, f"{STANDARDISED}_low", f"{STANDARDISED}_high"]] = np.nan
    same = bool((table["coverage"] == 1).all())
    headline, reason = _headline(table, same)
    column = {RAW: "estimate", ADJUSTED: "adjusted", STANDARDISED: STANDARDISED}.get(headline)
    ends = ("low", "high") if headline == RAW else (f"{column}_low", f"{column}_high")
    for name, source in zip(("headline", "headline_low", "headline_high"), (column, *ends), strict=True):
        table[name] = table[source] if column else np.nan
    return LikeWithLike(table, headline, reason)


def _joined(table: pd.DataFrame, other: pd.DataFrame, name: str) -> pd.DataFrame:
    columns = {"estimate": name, "low": f"{name}_low", "high": f"{name}_high"}
    return table.merge(other[["model", *columns]].rename(columns=columns), on="model", how="left")


def _headline(table: pd.DataFrame, same: bool) -> tuple[str, str]:
    if same or len(table) < 2:
        return RAW, "All models ran the same tasks." if len(table) > 1 else "There is one model."
    columns = {ADJUSTED: "adjusted", STANDARDISED: STANDARDISED}
    name = next((name for name, column in columns.items() if table[column].notna().all()), NONE)
    if name == NONE:
        return NONE, "Models ran different tasks, which neither shared tasks nor shared types make comparable."
    swapped = _swapped(table, columns[name])
    if not swapped:
        return name, f"Models ran different tasks; {name}, their order is that of the raw rates."
    one, other = swapped[0]
    more = f" (and so {len(swapped) - 1} more pairs)" if len(swapped) > 1 else ""
    order = f"the raw rates put {one} before {other}{more}, those {name} do not"
    return name, f"Models ran different tasks: {order}."


def _swapped(table: pd.DataFrame, column: str) -> list[tuple[str, str]]:
    """Return the pairs of models, that with the higher raw rate first, which another column orders the other way."""
    swapped = []
    for a, b in combinations(table[["model", "estimate", column]].itertuples(index=False), 2):
        ahead, behind = (a, b) if a[1] >= b[1] else (b, a)
        if ahead[1] - behind[1] > 1e-9 and ahead[2] - behind[2] < 1e-9:
            swapped.append((ahead[0], behind[0]))
    return swapped
