"""Figures of step histories, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import Look, nothing_to_draw, plots, set_alt
from evalkit.steps.analysis import CONFIRMED, REPORTED
from evalkit.steps.format import STATUSES, VERDICTS, WENT_WRONG

# never colour alone: a marker for points, a sign for cells
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
MOST_DRAWN = 60  # categories of a figure
WORDS = {REPORTED: "as reported", CONFIRMED: "without silent failures"}


def timeline(steps: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one history: records from left to right, a line per function, verdicts as colours and markers."""
    if steps.empty:
        return nothing_to_draw("steps", ax)
    table = steps.assign(function_name=steps["function_name"].fillna("(no function)"), record=steps["position"] + 1)
    looks = {verdict: LOOKS[verdict]._replace(text=verdict) for verdict in VERDICTS}
    xlabel = "record, in the order of execution"
    ax = plots.timeline(table, "function_name", "record", "verdict", looks, xlabel=xlabel, path=True, ax=ax)
    counts = steps["verdict"].value_counts()
    counted = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts)
    where = "".join(
        f" The first that went wrong is record {row['record']}, {row['function_name']}, a {row['verdict']}."
        for row in table[table["verdict"].isin(WENT_WRONG).to_numpy()].head(1).to_dict("records")
    )
    set_alt(ax, f"Timeline of {len(steps)} records: {counted}.{where}")
    return ax


def rates(
    table: pd.DataFrame, category: str = "history", ax: Axes | None = None, pooled: pd.DataFrame | None = None
) -> Axes:
    """Draw reported and confirmed success rates with their intervals, one row per category, the lowest on top.

    Of more than `MOST_DRAWN` categories the lowest are drawn, and the title says so. `table` is what `success_rates`
    returns by `category`; `pooled`, that of all together, is drawn below if there are several.
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    rows, names = _lowest_first(table, category, pooled)
    rows, hues = rows.assign(success=rows["success"].map(WORDS)), list(WORDS.values())
    xlabel = "share of steps that succeeded"
    ax = plots.estimates(rows, category, "success", xlabel=xlabel, order=names, hues=hues, ax=ax)
    if (n := table[category].nunique(dropna=False)) > MOST_DRAWN:
        ax.set_title(f"the {MOST_DRAWN} lowest of {n:,}")
    return ax


def _lowest_first(table: pd.DataFrame, category: str, pooled: pd.DataFrame | None) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows and the categories in drawing order, from top to bottom; the pooled one comes last."""
    table = table.fillna({category: "(none)"})
    confirmed = table[table["success"].eq(CONFIRMED)].sort_values(["estimate", "n"], ascending=[True, False])
    names = confirmed[category].tolist()[:MOST_DRAWN]
    table = table[table[category].isin(names)]
    if pooled is None or len(names) < 2:
        return table, names
    return pd.concat([table, pooled.assign(**{category: TOGETHER})]), [*names, TOGETHER]


def survival(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many numbers of each result the old storage keeps; `table` is what `storage_comparison` returns."""
    shown = table[table["numbers_new"] > 0]
    if shown.empty:
        return nothing_to_draw("steps", ax)
    names = shown["function_name"] + (" · " + shown["cell_type"].astype("str")).fillna("")
    number = " (" + (names.groupby(names).cumcount() + 1).astype("str") + ")"
    shown = shown.assign(
        result=names.where(~names.duplicated(keep=False), names + number),
        kept=shown["numbers_old"],
        lost=shown["numbers_new"] - shown["numbers_old"],
    )
    looks = {
        "kept": Look("#0072B2", text="kept by the old storage"),
        "lost": Look("#B8BDC6", hatch="//", text="lost by it, kept by the new one"),
    }
    return plots.shares(shown, "result", looks, share=False, xlabel="numbers in the result", ax=ax)


def enrichment(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the number of significant terms per cell type and method of one history, with a dash where unknown."""
    if table.empty:
        return nothing_to_draw("steps", ax)
    record = " (record " + (table["position"] + 1).astype("str") + ")"
    groups = table.assign(cell_type=table["cell_type"].fillna("unknown") + record)
    xlabel = "significant terms, by method"
    return plots.heatmap(
        groups, "cell_type", "method", value="total_significant", percent=False, digits=0, xlabel=xlabel, ax=ax
    )


def coverage(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw cell types against analyses of one history; the colour and sign of a cell show how the analysis ended."""
    if table.empty:
        return nothing_to_draw("steps", ax)
    looks = {status: LOOKS[status] for status in STATUSES}
    return plots.heatmap(table, "cell_type", "analysis", value="status", kinds=looks, xlabel="", ax=ax)
