"""Pictures of session traces: frames and axes in, axes out."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from evalkit.crafter.analysis import HOOKS
from evalkit.crafter.game import TIER_OF
from evalkit.crafter.scoring import NO_SCORED_EVENTS
from evalkit.display import colours, new_axes, nothing_to_draw
from evalkit.io import plain
from evalkit.io.names import labels

SYMBOLS = {"+": ("#009E73", "gains points"), "-": ("#D55E00", "loses points"), "0": ("#8a8f98", "cancels to zero")}
_GREY = "#5b616b"


def scores(episodes: pd.DataFrame, means: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw every episode's score, and the mean with its interval per model.

    Parameters
    ----------
    episodes : DataFrame
        With model_name and score.
    means : DataFrame
        As `analysis.mean_scores` gives it; one line per row, in its order.
    """
    if means.empty:
        return nothing_to_draw("episodes", ax)
    ax = ax or new_axes(7, 1.3 + 0.6 * len(means))
    styles = colours(means["model_name"])
    for y, row in enumerate(means.to_dict("records")):
        values = np.sort(episodes.loc[episodes["model_name"] == row["model_name"], "score"].dropna())
        spread = 0.18 + 0.16 * np.resize([-1, 0, 1], len(values)) / 1.5
        colour = styles[row["model_name"]][0]
        ax.scatter(values, y + spread, s=16, color=colour, alpha=0.5, linewidths=0)
        _estimate(ax, row, y - 0.2, colour, styles[row["model_name"]][1])
    _lines(ax, means["model_name"], means["n"])
    ax.axvline(0, color=_GREY, lw=0.8)
    ax.set_xlabel("score; large: mean with 95 % interval, small: episodes")
    return ax


def estimates(
    table: pd.DataFrame, category: str, hue: str | None = None, *, xlabel: str, ax: Axes | None = None
) -> Axes:
    """Draw estimates with intervals, one line per category, a colour and a marker per hue.

    Parameters
    ----------
    table : DataFrame
        With `category`, estimate, low, high, n, warning.
    category, hue : str
        Columns of the lines and of the colours.
    xlabel : str
    """
    if table.empty:
        return nothing_to_draw("episodes", ax)
    names = [str(name) for name in dict.fromkeys(table[category])]
    hues = [str(name) for name in dict.fromkeys(table[hue])] if hue else [""]
    ax = ax or new_axes(7, 1.3 + (0.25 + 0.2 * len(hues)) * len(names))
    styles = colours(hues)
    for row in table.to_dict("records"):
        own = str(row[hue]) if hue else ""
        offset = (hues.index(own) - (len(hues) - 1) / 2) * 0.7 / len(hues)
        _estimate(ax, row, names.index(str(row[category])) + offset, *styles[own], note=f"n={row['n']}")
    _lines(ax, names)
    ax.set_xlabel(f"{xlabel} with 95 % interval")
    if hue:
        _legend(ax, [_handle(name, styles) for name in hues])
    return ax


def against_references(
    table: pd.DataFrame, references: pd.DataFrame, *, xlabel: str, small: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw estimates per model above published results, which are grey, with a line up through the models.

    Parameters
    ----------
    table : DataFrame
        With model_name, estimate, low, high, n, warning; from 0 to 100.
    references : DataFrame
        As `benchmark.reference_scores` gives it: name, mean, spread.
    xlabel : str
    small : bool
        Spread small values: a scale that is logarithmic above 1.
    """
    if table.empty:
        return nothing_to_draw("episodes", ax)
    ax = ax or new_axes(7, 1.3 + 0.42 * len(table) + 0.26 * len(references))
    styles = colours(table["model_name"])
    for y, row in enumerate(table.to_dict("records")):
        _estimate(ax, row, y, *styles[row["model_name"]], note=f"n={row['n']}")
    names, below = list(table["model_name"]), len(table)
    for y, row in enumerate(references.to_dict("records"), start=below):
        names.append(row["name"])
        ax.plot([row["mean"]] * 2, [-0.55, y], color=_GREY, lw=0.7, ls=(0, (4, 3)), alpha=0.6, zorder=0)
        ax.errorbar(row["mean"], y, xerr=row["spread"], fmt="|", color=_GREY, ms=9, lw=1.6)
    _lines(ax, names)
    ax.axhspan(below - 0.5, len(names), color="#f3f4f6", zorder=-1)
    if small:
        ax.set_xscale("symlog", linthresh=1, linscale=0.5)
        ax.set_xticks([0, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
        ax.minorticks_off()
    ax.set_xlim(0, 100)
    ax.set_xlabel(xlabel)
    return ax


def breakdown(table: pd.DataFrame, ax: Sequence[Axes] | None = None) -> Axes:
    """Draw the mean counts per episode, a panel per kind of hook with a scale of its own.

    Parameters
    ----------
    table : DataFrame
        As `analysis.breakdown` gives it.
    ax : sequence of Axes, optional
        One per kind of hook.

    Returns
    -------
    Axes
        The first panel.
    """
    if table.empty:
        return nothing_to_draw("episodes", None if ax is None else ax[0])
    names = list(dict.fromkeys(table["model_name"]))
    axes = new_axes(8, 1.5 + 0.4 * len(names), ncols=len(HOOKS), sharey=True) if ax is None else ax
    styles = colours(names)
    for panel, hook in zip(axes, HOOKS.values(), strict=True):
        for row in table[table["hook"] == hook].to_dict("records"):
            row["warning"] = row["warning"] if panel is axes[0] else ""  # there is room for it once
            _estimate(panel, row, names.index(row["model_name"]), *styles[row["model_name"]])
        panel.set_title(hook, size=10.5)
        panel.set_xlabel("per episode")
        panel.set_xlim(left=min(0, panel.get_xlim()[0]))
        panel.grid(False, axis="y")
    sizes = table.groupby("model_name")["n"].max().reindex(names)
    _lines(axes[0], names, sizes)
    return axes[0]


def achievements(rates: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the success rate of each achievement per model as a table of shaded cells with the percentages in them."""
    if rates.empty:
        return nothing_to_draw("episodes", ax)
    names = list(dict.fromkeys(rates["model_name"]))
    table = rates.assign(achievement=rates["achievement"].astype("str")).pivot(
        index="achievement", columns="model_name", values="estimate"
    )
    table = table.reindex(index=list(TIER_OF), columns=names)
    ax = ax or new_axes(max(4.5, 2.6 + 1.1 * len(names)), 7.2)
    ax.imshow(table.to_numpy(dtype=float), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (y, x), share in np.ndenumerate(table.to_numpy(dtype=float)):
        text = "–" if np.isnan(share) else f"{100 * share:.0f}"
        ax.text(x, y, text, ha="center", va="center", size=8.5, color="white" if share > 0.6 else "#30343b")
    sizes = rates.groupby("model_name")["n"].max().reindex(names)
    titles = [f"{name}\nn={n}" for name, n in zip(labels(names, 24).values(), sizes, strict=True)]
    turned = {"rotation": 35, "ha": "left", "rotation_mode": "anchor"} if len(names) > 3 else {}
    ax.set_xticks(range(len(names)), titles, size=9, **turned)
    ax.set_yticks(range(len(table)), [f"{name.replace('_', ' ')} ({TIER_OF[name]})" for name in table.index], size=9)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.grid(False)
    tiers = [TIER_OF[name] for name in table.index]
    for y in (y for y in range(1, len(tiers)) if tiers[y] != tiers[y - 1]):
        ax.axhline(y - 0.5, color=_GREY, lw=1.2)
    ax.set_xlabel("episodes that unlock it, in percent")
    return ax


def unlocks(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many achievements are unlocked by the end of each turn, with intervals; `curve` as `unlock_curve`."""
    if curve.empty:
        return nothing_to_draw("episodes", ax)
    ax = ax or new_axes(7, 4.2)
    styles = colours(curve["model_name"])
    for name, rows in curve.groupby("model_name", sort=False):
        colour, marker = styles[name]
        steps = {"color": colour, "alpha": 0.15, "step": "post", "linewidth": 0}
        ax.fill_between(rows["turn"], rows["low"].clip(lower=0), rows["high"], **steps)
        ax.step(rows["turn"], rows["estimate"], where="post", color=colour, lw=1.8)
        ax.plot(rows["turn"].iloc[-1], rows["estimate"].iloc[-1], marker, color=colour, ms=7, mec="white")
    sizes = curve.groupby("model_name", sort=False)["n"].max()
    _legend(ax, [_handle(name, styles, f" (n={sizes[name]})") for name in styles])
    ax.set_xlabel("turn, from 0")
    ax.set_ylabel("different achievements, mean")
    ax.set_ylim(bottom=0)
    return ax


def trajectories(episodes: pd.DataFrame, rows: int = 40, ax: Axes | None = None) -> Axes:
    """Draw trajectories as strips, one episode per line, one cell per event with a scored hook.

    Parameters
    ----------
    episodes : DataFrame
        With model_name, score and trajectory. Drawn are those with a score, by model, then from high to low.
    rows : int
        At most so many; of more, as many of each model as there is room for, evenly from its best to its worst.
    """
    chosen = choose_strips(episodes, rows)
    if chosen.empty:
        return nothing_to_draw("episodes", ax)
    ax = ax or new_axes(8, 1.3 + 0.26 * len(chosen))
    strips = [strip.replace(NO_SCORED_EVENTS, "") for strip in chosen["trajectory"].fillna("")]
    longest = max(map(len, strips), default=0)
    for y, strip in enumerate(strips):
        for symbol, (colour, _) in SYMBOLS.items():
            cells = [(x, 0.9) for x, own in enumerate(strip) if own == symbol]
            ax.broken_barh(cells, (y - 0.4, 0.8), color=colour, linewidth=0)
        if longest <= 50:
            for x, symbol in enumerate(strip):
                ax.text(x + 0.45, y, symbol, ha="center", va="center_baseline", size=7, color="white", weight="bold")
    shown = labels(chosen["model_name"], 26)
    titles = [f"{shown[m]}  {s:.2f}" for m, s in zip(chosen["model_name"], chosen["score"], strict=True)]
    ax.set_yticks(range(len(chosen)), titles, size=8.5)
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    ax.set_xlim(0, max(longest, 1))
    ax.set_xlabel("events with a scored hook, in order")
    ax.grid(False)
    drawn = {symbol for strip in strips for symbol in strip}
    handles = [
        Line2D([], [], color=c, marker="s", ls="", ms=9, label=f"{s} {meaning}")
        for s, (c, meaning) in SYMBOLS.items()
        if s in drawn
    ]
    _legend(ax, handles)
    return ax


def choose_strips(episodes: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Choose the episodes that `trajectories` draws."""
    ranked = episodes.dropna(subset="score").sort_values(["model_name", "score"], ascending=[True, False])
    if len(ranked) <= rows:
        return ranked
    room = max(1, rows // ranked["model_name"].nunique())
    parts = [
        g.iloc[np.unique(np.linspace(0, len(g) - 1, room).round().astype(int))] for _, g in ranked.groupby("model_name")
    ]
    return pd.concat(parts).head(rows)


def describe_estimates(table: pd.DataFrame, *by: str, percent: bool = False) -> str:
    """Put estimates into words, for alt text."""
    if table.empty:
        return "Nothing to show."
    scale, unit, digits = (100, " %", 0) if percent else (1, "", 2)
    parts = []
    for row in table.to_dict("records"):
        name = ", ".join(str(row[column]) for column in by)
        value = f" {scale * row['estimate']:.{digits}f}{unit} (n={row['n']})"
        parts.append(name + (f": {row['warning']}" if pd.isna(row["estimate"]) else value))
    return "; ".join(parts) + "."


def describe_achievements(rates: pd.DataFrame) -> str:
    """Put the success rates into words: per model, what is unlocked at all."""
    parts = []
    for name, rows in rates.groupby("model_name", sort=False):
        found = rows[rows["estimate"] > 0].sort_values("estimate", ascending=False)
        each = ", ".join(f"{r.achievement} {100 * r.estimate:.0f} %" for r in found.itertuples())
        parts.append(f"{name}: {each or ('none' if rows['n'].any() else rows['warning'].iloc[0])}")
    return "; ".join(parts) + "." if parts else "Nothing to show."


def describe_trajectories(episodes: pd.DataFrame, rows: int = 40) -> str:
    """Put the strips into words: per model, how many events gain and lose points."""
    chosen = choose_strips(episodes, rows)
    parts = []
    for name, group in chosen.groupby("model_name"):
        text = "".join(group["trajectory"].str.replace(NO_SCORED_EVENTS, "", regex=False))
        parts.append(
            f"{name}, {len(group)} episodes: {text.count('+')} events gain points, {text.count('-')} lose points"
        )
    return "; ".join(parts) + "." if parts else "Nothing to show."


def _estimate(ax: Axes, row: dict, y: float, colour: str, marker: str, note: str = "") -> None:
    """Draw an estimate with its interval, and a note behind the line; where there is no estimate, why."""
    ax.plot([row["low"], row["high"]], [y, y], color=colour, lw=2.4, solid_capstyle="round")
    ax.plot(row["estimate"], y, marker, color=colour, ms=7, mec="white", mew=0.6)
    reason = plain(row["warning"]).split(";")[0] if pd.isna(row["estimate"]) else ""
    for text, x in ((text, x) for text, x in ((note, 1.0), (reason, 0.0)) if text):
        place = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(text, (x, y), xycoords=("axes fraction", "data"), size=8, color=_GREY, **place)


def _lines(ax: Axes, names: Sequence[str], sizes: Sequence[int] | None = None) -> None:
    """Name the lines of an axes, from top to bottom."""
    titles = list(map(labels(names, 30).get, names))
    if sizes is not None:
        titles = [f"{title} (n={n})" for title, n in zip(titles, sizes, strict=True)]
    ax.set_yticks(range(len(titles)), titles)
    ax.set_ylim(len(titles) - 0.45, -0.55)
    ax.grid(False, axis="y")


def _handle(name: str, styles: dict[str, tuple[str, str]], more: str = "") -> Line2D:
    colour, marker = styles[name]
    return Line2D([], [], color=colour, marker=marker, label=labels(styles)[name] + more)


def _legend(ax: Axes, handles: list[Line2D]) -> None:
    if handles:
        ax.figure.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)), fontsize=9)
