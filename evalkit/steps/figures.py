"""Pictures of step histories: frames and axes in, axes out; alt texts from the same frames."""

from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from evalkit.display import label, new_axes, nothing_to_draw, percent_axis
from evalkit.display.show import format_interval
from evalkit.steps.analysis import CONFIRMED, REPORTED
from evalkit.steps.format import VERDICTS
from evalkit.steps.trajectory import STATUSES

# colour, marker of points and letter of cells: never colour alone
LOOKS = {
    "success": ("#009E73", "o", "✓"),
    "silent failure": ("#E69F00", "D", "S"),
    "failure": ("#D55E00", "X", "F"),
    "critical failure": ("#7A1F5C", "*", "C"),
    "skipped": ("#8A8F98", "s", "–"),
    "unknown": ("#56B4E9", "P", "?"),
    "not run": ("#EEF0F3", "", "·"),
}
TOGETHER = "all together"
MOST_DRAWN = 60  # categories of a figure
MOST_DESCRIBED = 8  # categories that a text names one by one
_SIZES = {"critical failure": 170, "success": 60}
_METHOD_LOOKS = (("#0072B2", ""), ("#D55E00", "//"), ("#009E73", ".."), ("#CC79A7", "xx"), ("#595959", "--"))


def timeline(steps: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw one history: records from left to right, a line per function, the verdict as colour and marker.

    Parameters
    ----------
    steps : DataFrame
        Rows of `steps_df` of one history.
    ax : Axes, optional
    """
    if steps.empty:
        return nothing_to_draw("steps", ax)
    names = steps["function_name"].fillna("(no function)")
    lanes = list(dict.fromkeys(names))
    ax = ax or new_axes(8, 1.6 + 0.32 * len(lanes))
    y = names.map({name: i for i, name in enumerate(lanes)}).astype("float64")
    x = steps["position"] + 1
    ax.plot(x, y, color="#C9CDD3", lw=1, zorder=1)
    present = [verdict for verdict in VERDICTS if steps["verdict"].eq(verdict).any()]
    for verdict in present:
        colour, marker, _ = LOOKS[verdict]
        at = steps["verdict"].eq(verdict).to_numpy()
        size = _SIZES.get(verdict, 80)
        ax.scatter(x[at], y[at], s=size, c=colour, marker=marker, ec="white", lw=0.6, zorder=3)
    ax.set_yticks(range(len(lanes)), [label(lane, 36) for lane in lanes])
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.set_xlabel("record, in the order of execution")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _legend(ax, [_marker(verdict) for verdict in present])
    return ax


def describe_timeline(steps: pd.DataFrame) -> str:
    """Say in words what `timeline` shows."""
    counts = steps["verdict"].value_counts()
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts)
    first = steps[steps["verdict"].isin(("failure", "critical failure", "silent failure")).to_numpy()].head(1)
    where = "".join(
        f" The first that went wrong is record {row.position + 1}, {row.function_name}, a {row.verdict}."
        for row in first.itertuples()
    )
    return f"Timeline of {len(steps)} records: {parts or 'none'}.{where}"


def rates(
    table: pd.DataFrame, category: str = "history", ax: Axes | None = None, pooled: pd.DataFrame | None = None
) -> Axes:
    """Draw reported and confirmed success rates with their intervals, a line per category, the lowest on top.

    Of more than `MOST_DRAWN` categories the lowest are drawn, and the title says so.

    Parameters
    ----------
    table : DataFrame
        As `success_rates` returns it, with the column `category`.
    category : str
    ax : Axes, optional
    pooled : DataFrame, optional
        As `success_rates` returns it for all together: drawn below the others, where there are several.
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    n = table[category].nunique(dropna=False)
    table, names = _lowest_first(table, category, pooled)
    ax = ax or new_axes(7, 1.5 + (0.42 if len(names) <= 12 else 0.3) * len(names))
    if n > MOST_DRAWN:
        ax.set_title(f"the {MOST_DRAWN} lowest of {n:,}")
    styles = {REPORTED: ("#8A8F98", "o", -0.16), CONFIRMED: ("#0072B2", "s", 0.16)}
    place = {name: i for i, name in enumerate(names)}
    for row in table.to_dict("records"):
        colour, marker, shift = styles[row["success"]]
        y = place[row[category]] + shift
        ax.plot([row["low"], row["high"]], [y, y], color=colour, lw=2.2, solid_capstyle="round")
        ax.plot(row["estimate"], y, marker, color=colour, ms=7, mec="white", mew=0.6)
        if row["success"] == CONFIRMED:
            at = (1.0, place[row[category]])
            ax.annotate(f"n={row['n']}", at, (4, 0), ("axes fraction", "data"), "offset points", va="center", size=8)
    if names[-1] == TOGETHER:
        ax.axhline(len(names) - 1.5, color="#8A8F98", lw=0.8)
    ticks = [label(name, 44) for name in names]
    if len(set(ticks)) < len(names):  # shortened they can't be told apart
        ticks = [label(name, 300) for name in names]
    ax.set_yticks(range(len(names)), ticks)
    ax.set_ylim(len(names) - 0.45, -0.55)
    ax.set_xlabel("share of steps that succeeded, with 95 % interval")
    ax.grid(False, axis="y")
    texts = {REPORTED: "as reported", CONFIRMED: "without silent failures"}
    _legend(ax, [Line2D([], [], color=c, marker=m, label=texts[name]) for name, (c, m, _) in styles.items()])
    return percent_axis(ax)


def _lowest_first(table: pd.DataFrame, category: str, pooled: pd.DataFrame | None) -> tuple[pd.DataFrame, list[str]]:
    """Give the rows and the categories as they are drawn, from top to bottom; all together come last."""
    table = table.fillna({category: "(none)"})
    confirmed = table[table["success"].eq(CONFIRMED)].sort_values(["estimate", "n"], ascending=[True, False])
    names = confirmed[category].tolist()[:MOST_DRAWN]
    table = table[table[category].isin(names)]
    if pooled is None or len(names) < 2:
        return table, names
    return pd.concat([table, pooled.assign(**{category: TOGETHER})]), [*names, TOGETHER]


def describe_rates(table: pd.DataFrame, category: str = "history", pooled: pd.DataFrame | None = None) -> str:
    """Say in words what `rates` shows; of many categories the first, the last and all together."""
    if table.empty:
        return "No steps."
    table, names = _lowest_first(table, category, pooled)
    last = [TOGETHER] if names[-1] == TOGETHER else []
    single = names[: len(names) - len(last)]
    shown = single if len(single) <= MOST_DESCRIBED else [single[0], single[-1]]
    text = "; ".join(_described(table[table[category].eq(name)], name) for name in [*shown, *last])
    return f"{text}." + f" Between these lie {len(single) - 2} more." * (shown != single)


def _described(rows: pd.DataFrame, name: str) -> str:
    by = {row["success"]: row for row in rows.to_dict("records")}
    both = (f"{which} {format_interval(*(by[which][k] for k in ('estimate', 'low', 'high')))}" for which in by)
    return f"{name}: {', '.join(both)}, n = {rows['n'].iloc[0]}"


def survival(table: pd.DataFrame, what: str = "numbers", ax: Axes | None = None) -> Axes:
    """Draw what the old storage keeps of what the new one holds, a bar per result.

    Parameters
    ----------
    table : DataFrame
        As `storage_comparison` returns it, of one history.
    what : str
        ``numbers``, ``items`` or ``characters``.
    ax : Axes, optional
    """
    shown = table[table[f"{what}_new"] > 0]
    if shown.empty:
        return nothing_to_draw("steps", ax)
    ax = ax or new_axes(8, 1.4 + 0.34 * len(shown))
    y = np.arange(len(shown))
    ax.barh(y, shown[f"{what}_new"], color="#EEF0F3", ec="#8A8F98", lw=0.8, hatch="//", height=0.72)
    ax.barh(y, shown[f"{what}_old"], color="#0072B2", height=0.72)
    for i, row in enumerate(shown.to_dict("records")):
        text = f"{row[f'{what}_old']} of {row[f'{what}_new']}"
        ax.annotate(text, (row[f"{what}_new"], i), (4, 0), textcoords="offset points", va="center", size=8.5)
    ax.set_yticks(y, [label(_result_name(row), 44) for row in shown.to_dict("records")])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.margins(x=0.12)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(f"{what} in the result")
    kept, lost = Patch(color="#0072B2", label="kept by the old storage"), Patch(fc="#EEF0F3", ec="#8A8F98", hatch="//")
    lost.set_label("lost by it, kept by the new one")
    _legend(ax, [kept, lost])
    return ax


def describe_survival(table: pd.DataFrame, what: str = "numbers") -> str:
    """Say in words what `survival` shows."""
    new, old = int(table[f"{what}_new"].sum()), int(table[f"{what}_old"].sum())
    return f"Of {new} {what} in {len(table)} results the old storage keeps {old}, the new one all."


def enrichment(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw significant terms per cell type, a bar per method; an unknown count is a question mark.

    Parameters
    ----------
    table : DataFrame
        As `enrichments` returns it, of one history.
    ax : Axes, optional
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    groups = list(dict.fromkeys(zip(table["position"], table["cell_type"].fillna("unknown"), strict=True)))
    methods = list(dict.fromkeys(table["method"]))
    ax = ax or new_axes(7, 1.6 + 0.55 * len(groups))
    width = 0.8 / len(methods)
    palette = dict(zip(methods, cycle(_METHOD_LOOKS), strict=False))
    for row in table.fillna({"cell_type": "unknown"}).to_dict("records"):
        i = groups.index((row["position"], row["cell_type"]))
        y = i + (methods.index(row["method"]) - (len(methods) - 1) / 2) * width
        known = not pd.isna(row["total_significant"])
        n = int(row["total_significant"]) if known else 0
        colour, hatch = palette[row["method"]]
        ax.barh(y, n, width * 0.9, color=colour, hatch=hatch, ec="white")
        ax.annotate(str(n) if known else "?", (n, y), (4, 0), textcoords="offset points", va="center", size=8.5)
    ax.set_yticks(range(len(groups)), [label(f"{cell_type} (record {at + 1})", 40) for at, cell_type in groups])
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.margins(x=0.1)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("significant terms, by method")
    _legend(ax, [Patch(fc=c, hatch=h, ec="white", label=label(m)) for m, (c, h) in palette.items()])
    return ax


def describe_enrichment(table: pd.DataFrame) -> str:
    """Say in words what `enrichment` shows."""
    rows = table.fillna({"cell_type": "unknown"}).to_dict("records")
    shown = (
        f"{row['cell_type']} {row['method']} "
        f"{'unknown' if pd.isna(row['total_significant']) else int(row['total_significant'])}"
        for row in rows
    )
    return "Significant terms: " + (", ".join(shown) or "none") + "."


def coverage(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw cell types against analyses; a cell says by colour and letter how the analysis ended.

    Parameters
    ----------
    table : DataFrame
        As `coverage` of `evalkit.steps.contents` returns it, of one history.
    ax : Axes, optional
    """
    if table.empty:
        return nothing_to_draw("steps", ax)
    types, analyses = (list(dict.fromkeys(table[column])) for column in ("cell_type", "analysis"))
    ax = ax or new_axes(max(5.5, 2.6 + 1.15 * len(analyses)), 1.8 + 0.36 * len(types))
    for row in table.to_dict("records"):
        x, y = analyses.index(row["analysis"]), types.index(row["cell_type"])
        ax.barh(y, 0.94, 0.9, left=x - 0.47, color=LOOKS[row["status"]][0])
        dark = row["status"] in ("failure", "critical failure", "skipped", "success")
        ax.text(x, y, LOOKS[row["status"]][2], ha="center", va="center", color="white" if dark else "#30343b", size=9)
    ax.set_xticks(range(len(analyses)), [label(name, 22) for name in analyses], rotation=20, ha="right")
    ax.set_yticks(range(len(types)), [label(name) for name in types])
    ax.set_xlim(-0.5, len(analyses) - 0.5)
    ax.set_ylim(len(types) - 0.5, -0.5)
    ax.grid(False)
    present = [status for status in STATUSES if table["status"].eq(status).any()]
    _legend(ax, [Patch(fc=LOOKS[s][0], ec="#C9CDD3", label=f"{LOOKS[s][2]} {s}") for s in present])
    return ax


def describe_coverage(table: pd.DataFrame) -> str:
    """Say in words what `coverage` shows."""
    counts = table["status"].value_counts()
    parts = ", ".join(f"{counts[status]} {status}" for status in STATUSES if status in counts)
    size = f"{table['cell_type'].nunique()} cell types by {table['analysis'].nunique()} analyses"
    return f"Coverage of {size}: {parts or 'nothing'}."


def _marker(verdict: str) -> Line2D:
    colour, marker, _ = LOOKS[verdict]
    return Line2D([], [], color=colour, marker=marker, ls="", ms=13 if marker == "*" else 8, mec="white", label=verdict)


def _result_name(row: dict) -> str:
    cell_type = row["cell_type"]
    return row["function_name"] + ("" if pd.isna(cell_type) else f" · {cell_type}")


def _legend(ax: Axes, handles: list) -> None:
    if handles:
        ax.figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(handles), 4), fontsize=9, frameon=False
        )
