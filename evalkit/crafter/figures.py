"""Figures of session traces, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit.crafter.assemble import NO_SCORED_EVENTS
from evalkit.crafter.format import TIER_OF
from evalkit.display import Look, nothing_to_draw, plots
from evalkit.io import distinct_names

__all__ = ["achievements", "against_references", "breakdown", "estimates", "scores", "trajectories", "unlocks"]

SYMBOLS = {
    "+": Look("#009E73", "P", text="gains points"),
    "-": Look("#D55E00", "X", text="loses points"),
    "0": Look("#8a8f98", "s", text="cancels to zero"),
}
ENOUGH = 5  # episodes of a model whose turns an axis spans


def scores(episodes: pd.DataFrame, means: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw every episode's score, and each model's mean with its interval, in the order of `means`."""
    return plots.strips(episodes, "model_name", "score", means=means, ax=ax)


def estimates(
    table: pd.DataFrame, category: str, hue: str | None = None, *, xlabel: str, ax: Axes | None = None
) -> Axes:
    """Draw means with intervals; parameters as for `evalkit.display.plots.estimates`."""
    return plots.estimates(table, category, hue, xlabel=xlabel, percent=False, ax=ax)


def against_references(table: pd.DataFrame, references: pd.DataFrame, *, xlabel: str, ax: Axes | None = None) -> Axes:
    """Draw estimates per model (0 to 100) above published results, as `benchmark.reference_scores` returns them."""
    ax = plots.estimates(table, "model_name", percent=False, xlabel=xlabel, references=references, ax=ax)
    if len(table):
        ax.set_xlim(0, 100)
    return ax


def breakdown(table: pd.DataFrame) -> Axes:
    """Draw the mean points per episode of `analysis.points`, a panel per kind of hook, on one scale."""
    names = list(dict.fromkeys(table["model_name"]))

    def draw(panel: pd.DataFrame, ax: Axes) -> None:
        plots.estimates(panel, "model_name", percent=False, order=names, xlabel=xlabel, ax=ax)

    xlabel = "mean points per episode"
    return plots.facets(table, "hook", draw, height=0.9 + 0.3 * len(names), xlabel=xlabel)[0]


def achievements(rates: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the success rate of each achievement per model as shaded cells with the percentages in them."""
    if rates.empty:
        return nothing_to_draw("episodes", ax)
    tiers = {name: f"{name.replace('_', ' ')} ({tier})" for name, tier in TIER_OF.items()}
    table = rates.assign(achievement=rates["achievement"].astype("str").map(tiers))
    xlabel = "episodes that unlock it, in percent (n)"
    ax = plots.heatmap(table, "achievement", "model_name", rows=list(tiers.values()), xlabel=xlabel, ax=ax)
    order = list(TIER_OF.values())
    for y in (y for y in range(1, len(order)) if order[y] != order[y - 1]):
        ax.axhline(y, color=SYMBOLS["0"].colour, lw=1.2)
    return ax


def unlocks(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many achievements are unlocked by the end of each turn, with intervals; `curve` of `unlock_curve`."""
    last = curve.loc[curve["n"] >= ENOUGH, "turn"].max()
    is_cut = bool(curve["turn"].max() > last)
    xlabel = "turn, from 0"
    if is_cut:
        xlabel += f"; of models with fewer than {ENOUGH} episodes, later turns are not shown"
    ylabel = "different achievements, mean"
    ax = plots.curves(curve, "turn", "model_name", xlabel=xlabel, ylabel=ylabel, percent=False, steps=True, ax=ax)
    if is_cut:
        ax.set_xlim(right=last)
    return ax


def trajectories(episodes: pd.DataFrame, rows: int = 40, ax: Axes | None = None) -> Axes:
    """Draw trajectories: one row per episode, by model and in descending order, one mark per event with a scored hook.

    Of more than `rows` episodes, equally many of each model are drawn, evenly spaced from its best to its worst.
    """
    ranked = episodes.dropna(subset="score").sort_values(["model_name", "score"], ascending=[True, False])
    room = max(1, rows // max(ranked["model_name"].nunique(), 1)) if len(ranked) > rows else len(ranked)
    groups = ranked.groupby("model_name")["score"]
    place, size = groups.cumcount(), groups.transform("size")
    chosen = ranked[place * room // size != (place - 1) * room // size].head(rows)
    models = chosen["model_name"].map(distinct_names(chosen["model_name"], 26)).astype("str")
    names = models + "  " + chosen["score"].map("{:.2f}".format).astype("str")
    same = names.groupby(names).cumcount()
    names = names.where(same == 0, names + " (" + (same + 1).astype("str") + ")")
    symbols = chosen["trajectory"].fillna("").str.replace(NO_SCORED_EVENTS, "", regex=False).map(list)
    hrefs = chosen.get("href", "")
    events = pd.DataFrame({"episode": names, "symbol": symbols, "href": hrefs}).explode("symbol", ignore_index=True)
    events["event"] = events.groupby("episode", sort=False).cumcount() + 1
    return plots.timeline(events, "episode", "event", "symbol", SYMBOLS, xlabel="events with a scored hook", ax=ax)
