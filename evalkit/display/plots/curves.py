"""Curves with their intervals."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.display import style
from evalkit.display.plots.points import draw_points, with_codes
from evalkit.display.plots.prepare import Keys, keys, link_of
from evalkit.display.style import Look
from evalkit.display.words import describe_value, key_of, name_of, names_of

WIDTH, HEIGHT = 7.0, 3.4  # of a figure, in inches
FEW = 12  # positions with a marker and an interval each; more get a band and sparse markers
_DRAWN = {True: "steps-post", False: "default"}


@style.themed
def curves(
    table: pd.DataFrame,
    x: str,
    hue: str,
    *,
    highlight: Hashable = None,
    xlabel: str = "",
    ylabel: str = "success rate",
    percent: bool = True,
    steps: bool = False,
    hues: Keys = (),
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves with their intervals: as bars at up to 12 positions, as bands at more.

    Parameters
    ----------
    table : DataFrame
        With x, hue, estimate, low, high, n and, optionally, tip and href; rows without x or estimate are left out.
    x, hue : str
        Columns of the positions (numbers) and of the curves.
    highlight : optional
        The curve that is drawn with its intervals and n; the others are drawn pale behind it.
    xlabel, ylabel : str
    percent : bool
        Whether estimates are shares from 0 to 1.
    steps : bool
        Whether values hold until the next position.
    hues : sequence
        Curves that are assigned a look first: for panels that share it.
    legend : bool
    ax : Axes, optional
    """
    drawn = table[table[x].notna() & table["estimate"].notna()].sort_values(x, kind="stable")
    if drawn.empty:
        return style.nothing_to_draw(ax=ax)
    names = keys(drawn[hue], hues)
    owns_figure, is_sparse, styles = ax is None, drawn[x].nunique() <= FEW, style.looks(names)
    rows = _places(drawn, x, hue, names, percent=percent, dodge=is_sparse and highlight is None)
    shown = names if legend and highlight is None else []
    handles = style.series_handles(_titles(rows, shown), [styles[name] for name in shown], 40)
    ax = ax or style.new_axes(WIDTH, HEIGHT + style.legend_height(handles, WIDTH))
    strong = rows[rows["series"].eq(key_of(highlight)) | (highlight is None)]
    for _, other in rows.drop(strong.index).groupby("series", sort=False, dropna=False):
        ax.plot(other["x"], other["y"], color=style.PALE, lw=1, zorder=1, drawstyle=_DRAWN[steps])
    _draw_curves(ax, strong, styles, sparse=is_sparse, steps=steps)
    if highlight is not None and is_sparse:
        above: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "center"}
        for place, n in strong[["x", "n"]].dropna(subset="n").itertuples(index=False):
            ax.annotate(f"n={n:.0f}", (place, 1.0), (0, 2), size=7.5, color=style.QUIET, **above)
    if is_sparse:
        ax.set_xticks(sorted(drawn[x].astype(float).unique()))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.margins(x=0.12)
    ax.set_xlabel(xlabel or x.replace("_", " "))
    ax.set_ylabel(f"{ylabel}, 95 % interval" if rows["low"].notna().any() else ylabel)
    if percent:
        style.percent_axis(ax, "y").set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(bottom=min(0, rows[["y", "low"]].min().min()))
    style.fit_labels(ax, WIDTH - 1.0, HEIGHT - 0.4)
    style.legend_below(ax, handles, owns_figure=owns_figure)
    return ax


def _places(table: pd.DataFrame, x: str, hue: str, names: Keys, *, percent: bool, dodge: bool) -> pd.DataFrame:
    """Position the points of curves; with `dodge`, those at the same x lie side by side, so that none is hidden."""
    places = table[x].astype(float)
    gaps = np.diff(np.sort(places.unique()))
    apart = 0.3 * (float(gaps.min()) if len(gaps) else 1.0) / len(names) if dodge else 0.0
    series = [key_of(name) for name in table[hue]]
    records = table.to_dict("records")
    tips = [
        row.get("tip") or f"{name_of(row[hue])}, {name_of(row[x])}: {describe_value(row, percent=percent)}"
        for row in records
    ]
    shift = [(names.index(name) - (len(names) - 1) / 2) * apart for name in series]
    bounds = {name: table[name].astype(float) if name in table else np.nan for name in ("low", "high", "n")}
    marks = {"x": places + shift, "y": table["estimate"].astype(float), **bounds, "tip": tips}
    frame = pd.DataFrame({**marks, "href": list(map(link_of, records))}, index=table.index)
    return frame.assign(series=pd.Series(series, index=table.index, dtype="object")).reset_index(drop=True)


def _titles(rows: pd.DataFrame, names: Keys) -> list[str]:
    sizes = {key_of(name): n for name, n in rows.groupby("series", dropna=False)["n"].max().items()}
    texts = style.labels(names_of(names))
    known = [sizes.get(name, np.nan) for name in names]
    return [text if n != n else f"{text} (n={n:.0f})" for text, n in zip(texts, known, strict=True)]


def _draw_curves(ax: Axes, rows: pd.DataFrame, styles: Mapping[Hashable, Look], *, sparse: bool, steps: bool) -> None:
    import seaborn as sns

    if rows.empty:
        return
    coded, looks = with_codes(rows, styles)
    palette = {code: look.colour for code, look in looks.items()}
    dashes = {code: look.dashes or "" for code, look in looks.items()}
    line = {"estimator": None, "errorbar": None, "lw": 1.8, "drawstyle": _DRAWN[steps], "legend": False, "zorder": 3}
    sns.lineplot(coded, x="x", y="y", hue="code", style="code", palette=palette, dashes=dashes, **line, ax=ax)
    marked = []
    for series, curve in rows.groupby("series", sort=False, dropna=False):
        bounded, colour = curve.dropna(subset=["low", "high"]), styles[key_of(series)].colour
        if sparse:
            ax.vlines(bounded["x"], bounded["low"], bounded["high"], color=colour, lw=2, alpha=0.7, zorder=2)
        elif len(bounded):
            band: dict[str, Any] = {"color": colour, "alpha": 0.15, "linewidth": 0, "step": "post" if steps else None}
            ax.fill_between(bounded["x"], bounded["low"], bounded["high"], **band)
        spaced = np.unique(np.linspace(0, len(curve) - 1, 7).round().astype(int))[1:]
        marked.append(curve if sparse or len(curve) < 2 else curve.iloc[spaced])
    draw_points(ax, pd.concat(marked), styles, size=48)
