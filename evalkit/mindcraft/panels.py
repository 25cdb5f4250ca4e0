"""Pictures of many estimates at once: small multiples, heatmaps, the matrix of paired differences."""

import math

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evalkit.display import PALETTE, new_axes, nothing_to_draw, percent_axis
from evalkit.mindcraft.labels import key_of, names_of

COLUMNS = 4  # panels side by side
NO_SCORE = "no score"  # stands where a point would, if any run had logged one
GREY = "#5b616b"


def by_blocked(table: pd.DataFrame) -> Figure:
    """Draw success against the number of blocked agents, a panel per model, the other models pale behind it.

    Parameters
    ----------
    table : DataFrame
        As `cooking_by_blocked` gives it; rows with an unknown number are left out.
    """
    table = table[table["n_blocked_agents"].notna()].astype({"n_blocked_agents": float})
    if table.empty:
        return nothing_to_draw().figure
    models = names_of(table["model_name"], 24)
    rows = math.ceil(len(models) / COLUMNS)
    columns = min(len(models), COLUMNS)
    grid = {"nrows": rows, "ncols": columns, "squeeze": False, "sharex": True, "sharey": True}
    panels = new_axes(max(2.3 * columns, 3.5), 0.7 + 2.1 * rows, **grid).ravel()
    for panel in panels[len(models) :]:
        panel.set_visible(False)
    for panel, model in zip(panels, models, strict=False):
        for other in models:
            behind = table[table["model_name"] == other]
            panel.plot(behind["n_blocked_agents"], behind["estimate"], color="#c9ced6", lw=1, zorder=1)
        own = table[table["model_name"] == model]
        panel.plot(own["n_blocked_agents"], own["estimate"], "-o", color=PALETTE[0], ms=6, mec="white", zorder=3)
        panel.vlines(own["n_blocked_agents"], own["low"], own["high"], color=PALETTE[0], lw=2, alpha=0.75, zorder=2)
        for row in own.itertuples():
            above = {"xytext": (0, 2), "xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
            panel.annotate(f"n={row.n}", (row.n_blocked_agents, 1.0), ha="center", size=7.5, color=GREY, **above)
            if row.estimate != row.estimate:
                look = {"ha": "center", "va": "bottom", "rotation": 90, "style": "italic", "color": GREY, "size": 7.5}
                panel.text(row.n_blocked_agents, 0.03, NO_SCORE, **look)
        panel.set_title(models[model], size=10, pad=14)
        panel.set_xticks(sorted(table["n_blocked_agents"].unique()))
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.margins(x=0.15)
        percent_axis(panel, "y")
    figure = panels[0].figure
    figure.supxlabel("agents without access to the recipe", size=10)
    figure.supylabel("success rate, 95 % interval", size=10)
    return figure


def heatmap(table: pd.DataFrame, row: str, column: str, ax: Axes | None = None) -> Axes:
    """Draw a rate or mean score in each cell, with n; a cell without runs stays empty, one without a score says so.

    Parameters
    ----------
    table : DataFrame
        With estimate, n and the columns named, one row per cell; n_without_score where n counts scored runs only.
    row, column : str
        Columns of the rows and the columns; both stand in the order of the table.
    ax : Axes, optional
    """
    if table.empty:
        return nothing_to_draw(ax=ax)
    rows, columns = names_of(table[row], 48), names_of(table[column], 18)
    left = 0.6 + 0.08 * max(map(len, rows.values()))  # what the names of the rows take
    ax = ax or new_axes(left + 0.85 * max(len(columns), 3), 1.6 + 0.3 * max(len(rows), 2))
    colours = mpl.colormaps["cividis"]
    for record in table.to_dict("records"):
        x, y = list(columns).index(key_of(record[column])), list(rows).index(key_of(record[row]))
        rate = record["estimate"]
        if rate != rate:
            n = max(record["n"], record.get("n_without_score", 0))
            ax.text(x, y, f"{NO_SCORE} ({n})" * bool(n), ha="center", va="center", size=7, style="italic", color=GREY)
            continue
        ax.add_patch(mpl.patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colours(rate), edgecolor="white", lw=1))
        ink = "white" if rate < 0.55 else "black"
        ax.text(x, y, f"{rate * 100:.0f} % ({record['n']})", ha="center", va="center", size=8, color=ink)
    ax.set_xticks(range(len(columns)), list(columns.values()), rotation=35, ha="right")
    ax.set_yticks(range(len(rows)), list(rows.values()))
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(column.replace("_", " "))
    ax.grid(False)
    return ax


def item_by_blocked(table: pd.DataFrame) -> Figure:
    """Draw item × number of blocked agents for each model; `table` as `cooking_item_by_blocked` gives it."""
    table = table[table["n_blocked_agents"].notna()]
    if table.empty:
        return nothing_to_draw().figure
    models = names_of(table["model_name"], 22)
    items = sorted(table["item"].unique())
    rows = math.ceil(len(models) / COLUMNS)
    columns = min(len(models), COLUMNS)
    counts = sorted(table["n_blocked_agents"].unique())
    height = 0.9 + rows * (0.6 + 0.26 * max(len(items), 2))
    grid = {"nrows": rows, "ncols": columns, "squeeze": False, "sharey": True}
    panels = new_axes(2.0 + 0.75 * len(counts) * columns, height, **grid).ravel()
    whole = pd.MultiIndex.from_product([items, counts], names=["item", "n_blocked_agents"])
    for panel in panels[len(models) :]:
        panel.set_visible(False)
    for panel, model in zip(panels, models, strict=False):
        own = table[table["model_name"] == model].set_index(["item", "n_blocked_agents"])
        heatmap(own[["estimate", "n"]].reindex(whole).fillna({"n": 0}).astype({"n": int}).reset_index(),
                "item", "n_blocked_agents", panel)  # fmt: skip
        panel.set_title(models[model], size=9.5)
        panel.set_xlabel("")
        panel.tick_params(axis="x", rotation=0)
    figure = panels[0].figure
    figure.supxlabel("agents without access to the recipe; cells: success rate (n)", size=10)
    return figure


def differences(pairs: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the matrix of paired differences: row minus column in percentage points, decided pairs framed.

    Parameters
    ----------
    pairs : DataFrame
        As `compare_models` gives it.
    ax : Axes, optional
    """
    if pairs.empty:
        return nothing_to_draw("pairs", ax)
    means: dict[str, list[float]] = {}
    for pair in pairs.to_dict("records"):
        means.setdefault(pair["model_a"], []).append(pair["mean_a"])
        means.setdefault(pair["model_b"], []).append(pair["mean_b"])
    average = pd.Series({name: pd.Series(values, dtype="float64").mean() for name, values in means.items()})
    models = list(average.fillna(0).sort_values(ascending=False, kind="stable").index)
    ax = ax or new_axes(2.6 + 0.68 * max(len(models), 3), 1.7 + 0.48 * max(len(models), 3))
    colours = mpl.colormaps["PuOr"]
    for pair in pairs.to_dict("records"):
        for first, second, sign in (("model_a", "model_b", 1), ("model_b", "model_a", -1)):
            y, x = models.index(pair[first]), models.index(pair[second])
            value = sign * pair["estimate"]
            if value != value:
                ax.text(x, y, "–", ha="center", va="center", size=9)
                continue
            edge = (
                {"edgecolor": "black", "lw": 2.0, "zorder": 3} if pair["decided"] else {"edgecolor": "white", "lw": 1}
            )
            shade = colours(0.5 - value / 2 * 0.9)
            ax.add_patch(mpl.patches.Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, facecolor=shade, **edge))
            ink = "white" if abs(value) > 0.62 else "black"
            weight = "bold" if pair["decided"] else "normal"
            points = round(value * 100)  # a whole number: no zero has a sign
            text = f"{points:+d}" if points else "0"
            ax.text(x, y, text, ha="center", va="center", size=9, color=ink, weight=weight, zorder=4)
    ax.set_xticks(range(len(models)), list(names_of(models, 18).values()), rotation=35, ha="right")
    ax.set_yticks(range(len(models)), list(names_of(models, 26).values()))
    ax.set_xlim(-0.5, len(models) - 0.5)
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.set_xlabel("row minus column, in percentage points\nframed and bold: decided")
    ax.grid(False)
    return ax


def describe_differences(pairs: pd.DataFrame) -> str:
    """Put paired differences into words, for alt text."""
    return " ".join(pairs["sentence"]) or "There is no pair of models to compare."
