"""Figures of step histories, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import Look, format_interval, nothing_to_draw, plots
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
MOST_DESCRIBED = 8  # categories that a text lists one by one
WORDS = {REPORTED: "as reported", CONFIRMED: "without silent failures"}
_BOUNDS = ("estimate", "low", "high")


def timeline(steps: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one history: records from left to right, a line per function, verdicts as colours and markers."""
    if steps.empty:
        return nothing_to_draw("steps", ax)
    table = steps.assign(function_name=steps["function_name"].fillna("(no function)"), record=steps["position"] + 1)
    looks = {verdict: LOOKS[verdict]._replace(text=verdict) for verdict in VERDICTS}
    xlabel = "record, in the order of execution"
    return plots.timeline(table, "function_name", "record", "verdict", looks, xlabel=xlabel, path=True, ax=ax)


def describe_timeline(steps: pd.DataFrame) -> str:
    """Describe `timeline` in words."""
    first = steps[steps["verdict"].isin(WENT_WRONG).to_numpy()].head(1)
    where = "".join(
        f" The first that went wrong is record {row['position'] + 1}, {row['function_name']}, a {row['verdict']}."
        for row in first.to_dict("records")
    )
    return f"Timeline of {len(steps)} records: {_counted(steps['verdict'], VERDICTS) or 'none'}.{where}"


def _counted(column: pd.Series, values: tuple[str, ...]) -> str:
    """List how often each of some values is in a column, in their order."""
    counts = column.value_counts()
    return ", ".join(f"{counts[value]} {value}" for value in values if value in counts)


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


def describe_rates(table: pd.DataFrame, category: str = "history", pooled: pd.DataFrame | None = None) -> str:
    """Describe `rates` in words; of many categories the first, the last and the pooled one."""
    if table.empty:
        return "No steps."
    table, names = _lowest_first(table, category, pooled)
    single = [name for name in names if name != TOGETHER]
    shown = single if len(single) <= MOST_DESCRIBED else [single[0], single[-1]]
    texts = []
    for name in [*shown, *names[len(single) :]]:
        rows = table[table[category].eq(name)]
        both = (f"{row['success']} {format_interval(*map(row.get, _BOUNDS))}" for row in rows.to_dict("records"))
        texts.append(f"{name}: {', '.join(both)}, n = {rows['n'].iloc[0]}")
    return f"{'; '.join(texts)}." + f" Between these lie {len(single) - 2} more." * (shown != single)


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


def describe_survival(table: pd.DataFrame) -> str:
    """Describe `survival` in words."""
    new, old = int(table["numbers_new"].sum()), int(table["numbers_old"].sum())
    return f"Of {new} numbers in {len(table)} results the old storage keeps {old}, the new one all."


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


def describe_enrichment(table: pd.DataFrame) -> str:
    """Describe `enrichment` in words."""
    rows = table.fillna({"cell_type": "unknown"}).to_dict("records")
    shown = (
        f"{row['cell_type']} {row['method']} "
        f"{'unknown' if pd.isna(row['total_significant']) else int(row['total_significant'])}"
        for row in rows
    )
    return "Significant terms: " + (", ".join(shown) or "none") + "."


def coverage(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw cell types against analyses of one history; the colour and sign of a cell show how the analysis ended."""
    if table.empty:
        return nothing_to_draw("steps", ax)
    looks = {status: LOOKS[status] for status in STATUSES}
    return plots.heatmap(table, "cell_type", "analysis", value="status", kinds=looks, xlabel="", ax=ax)


def describe_coverage(table: pd.DataFrame) -> str:
    """Describe `coverage` in words."""
    size = f"{table['cell_type'].nunique()} cell types by {table['analysis'].nunique()} analyses"
    return f"Coverage of {size}: {_counted(table['status'], STATUSES) or 'nothing'}."
