"""Figures of step histories, drawn by `evalkit.display.plots` from frames of `analysis`."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit._text import counted_noun
from evalkit.display import Look, nothing_to_draw, plots, set_alt
from evalkit.steps.analysis import CONFIRMED, REPORTED
from evalkit.steps.format import VERDICTS, WENT_WRONG

__all__ = ["coverage", "found", "rates", "timeline"]
# colour is never the only difference: points have a marker, cells a sign
LOOKS = {
    "success": Look("#009E73", "o", text="✓"),
    "silent failure": Look("#E69F00", "D", text="S"),
    "failure": Look("#D55E00", "X", text="F"),
    "critical failure": Look("#7A1F5C", "P", text="C"),
    "skipped": Look("#8A8F98", "s", text="–"),
    "unknown": Look("#56B4E9", "^", text="?"),
    "not run": Look("#EEF0F3", "", text="·"),
}
TOGETHER = "all together"
MOST_DRAWN = 60  # maximum number of histories in a figure
WORDS = {REPORTED: "as reported", CONFIRMED: "without silent failures"}


def timeline(steps: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one history: records from left to right, a line per function, verdicts as colours and markers.

    Parameters
    ----------
    steps : DataFrame
        The steps of one history, such as rows of `logs.steps`.
    ax : Axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    Axes
        The axes, with their alt text.

    Examples
    --------
    >>> ax = figures.timeline(logs.steps)
    """
    if steps.empty:
        return nothing_to_draw("steps", ax)
    table = steps.assign(function_name=steps["function_name"].fillna("(no function)"), record=steps["position"] + 1)
    looks = {verdict: LOOKS[verdict]._replace(text=verdict) for verdict in VERDICTS}
    xlabel = "record, in the order of execution"
    ax = plots.timeline(table, "function_name", "record", "verdict", looks, xlabel=xlabel, path=True, ax=ax)
    counts = steps["verdict"].value_counts()
    counted = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts)
    where = ""
    for row in table[table["verdict"].isin(WENT_WRONG).to_numpy()].head(1).to_dict("records"):
        where = f" The first that went wrong is record {row['record']}, {row['function_name']}, a {row['verdict']}."
    set_alt(ax, f"Timeline of {counted_noun(len(steps), 'record')}: {counted}.{where}")
    return ax


def rates(table: pd.DataFrame, ax: Axes | None = None, pooled: pd.DataFrame | None = None) -> Axes:
    """Draw the lowest success rates of histories, and below them `pooled`, the rates of all histories together.

    Parameters
    ----------
    table : DataFrame
        Result of `analysis.success_rates`.
    ax : Axes, optional
        Axes to draw on; by default new ones.
    pooled : DataFrame, optional
        The rates of all histories together.

    Returns
    -------
    Axes
        The axes, with their alt text.

    Examples
    --------
    >>> ax = figures.rates(analysis.success_rates(logs.steps))
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    confirmed = table[table["success"].eq(CONFIRMED)].sort_values(["estimate", "n"], ascending=[True, False])
    names = confirmed["history"].tolist()[:MOST_DRAWN]
    rows = table[table["history"].isin(names)]
    if pooled is not None and len(names) > 1:
        rows, names = pd.concat([rows, pooled.assign(history=TOGETHER)]), [*names, TOGETHER]
    rows = rows.assign(success=rows["success"].map(WORDS)).sort_values("success", kind="stable")
    xlabel = "share of steps that succeeded"
    ax = plots.estimates(rows, "history", "success", xlabel=xlabel, order=names, ax=ax)
    if len(confirmed) > MOST_DRAWN:
        ax.set_title(f"the {MOST_DRAWN} lowest of {len(confirmed):,}")
    return ax


def coverage(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw cell types against analyses of one history; the colour and sign of a cell show how the analysis ended.

    Parameters
    ----------
    table : DataFrame
        Rows of `analysis.coverage` for one history.
    ax : Axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    Axes
        The axes, with their alt text.

    Examples
    --------
    >>> ax = figures.coverage(analysis.coverage(logs.histories))
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    return plots.heatmap(table, "cell_type", "analysis", value="status", kinds=LOOKS, xlabel="", ax=ax)


def found(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """Draw one quantity of `analysis.found` by cell type and method: its median, and the number of histories.

    Parameters
    ----------
    table : DataFrame
        Result of `analysis.found`.
    quantity : str
        Quantity to draw.
    ax : Axes, optional
        Axes to draw on; by default new ones.

    Returns
    -------
    Axes
        The axes, with their alt text.

    Examples
    --------
    >>> ax = figures.found(analysis.found(logs.results), "genes")
    """
    rows = table[table["quantity"].eq(quantity)]
    if rows.empty:
        return nothing_to_draw(quantity, ax)
    rows = rows.assign(about=rows["category"].fillna(rows["cell_type"]), by=rows["method"].fillna(quantity))
    both = rows["cell_type"].str.cat(rows["category"], sep=", ")
    rows["about"] = rows["about"].mask(rows.duplicated(["about", "by"], keep=False) & both.notna(), both)
    labels = [quantity] if rows["method"].notna().any() else []  # otherwise the only column has this name
    if rows["histories"].max() > 1:
        rows = rows.assign(n=rows["histories"])
        labels.append("median (histories)")
    xlabel = ": ".join(labels)
    return plots.heatmap(rows, "about", "by", value="value", percent=False, digits=0, xlabel=xlabel, ax=ax)
