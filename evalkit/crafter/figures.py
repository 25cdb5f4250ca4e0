"""Figures of session traces, drawn with `evalkit.display.plots`: frames of `analysis` in, axes out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from evalkit.crafter.format import TIER_OF
from evalkit.crafter.scoring import NO_SCORED_EVENTS
from evalkit.display import Look, nothing_to_draw, plots, set_alt
from evalkit.io import distinct_names

__all__ = [
    "achievements",
    "against_references",
    "breakdown",
    "choose_episodes",
    "estimates",
    "scores",
    "trajectories",
    "unlocks",
]

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


def against_references(
    table: pd.DataFrame, references: pd.DataFrame, *, xlabel: str, small: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw estimates per model (0 to 100) above published results, which are grey, with a line up through the models.

    `references` as `benchmark.reference_scores` returns them; `small` spreads small values, with a scale that is
    logarithmic above 1.
    """
    style: dict[str, Any] = {"references": references, "scale": "symlog" if small else "linear"}
    ax = plots.estimates(table, "model_name", "model_name", percent=False, xlabel=xlabel, ax=ax, **style)
    if len(table):
        ax.set_xlim(0, 100)
    return ax


def breakdown(table: pd.DataFrame) -> Axes:
    """Draw the mean counts per episode of `analysis.breakdown`, a panel with its own scale per kind of hook."""
    names = list(dict.fromkeys(table["model_name"]))

    def draw(panel: pd.DataFrame, ax: Axes) -> None:
        style: dict[str, Any] = {"percent": False, "order": names, "hues": names, "xlabel": xlabel}
        plots.estimates(panel, "model_name", "model_name", **style, ax=ax)

    xlabel, height = "mean count per episode", 0.9 + 0.3 * len(names)
    return plots.facets(table, "hook", draw, sharex=False, height=height, xlabel=xlabel)[0]


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
    set_alt(ax, f"Share of episodes that unlock each achievement. {_describe_achievements(rates)}")
    return ax


def unlocks(curve: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how many achievements are unlocked by the end of each turn, with intervals; `curve` of `unlock_curve`.

    The axis ends with the last turn of models with at least `ENOUGH` episodes, where there are any.
    """
    last = curve.loc[curve["n"] >= ENOUGH, "turn"].max()
    is_cut = bool(curve["turn"].max() > last)
    beyond = f"; of models with fewer than {ENOUGH} episodes, later turns are not shown" * is_cut
    style: dict[str, Any] = {"xlabel": f"turn, from 0{beyond}", "ylabel": "different achievements, mean"}
    ax = plots.curves(curve, "turn", "model_name", percent=False, steps=True, ax=ax, **style)
    if is_cut:
        ax.set_xlim(right=last)
    return ax


def trajectories(episodes: pd.DataFrame, rows: int = 40, ax: Axes | None = None) -> Axes:
    """Draw trajectories: one row per episode, by model and in descending order, one mark per event with a scored hook.

    Of more than `rows` episodes, equally many of each model are drawn, evenly spaced from its best to its worst.
    """
    chosen = choose_episodes(episodes, rows)
    models = chosen["model_name"].map(distinct_names(chosen["model_name"], 26)).astype("str")
    names = models + "  " + chosen["score"].map("{:.2f}".format).astype("str")
    same = names.groupby(names).cumcount()
    names = names.where(same == 0, names + " (" + (same + 1).astype("str") + ")")
    symbols = chosen["trajectory"].fillna("").str.replace(NO_SCORED_EVENTS, "", regex=False).map(list)
    hrefs = chosen.get("href", "")
    events = pd.DataFrame({"episode": names, "symbol": symbols, "href": hrefs}).explode("symbol", ignore_index=True)
    events["event"] = events.groupby("episode", sort=False).cumcount() + 1
    ax = plots.timeline(events, "episode", "event", "symbol", SYMBOLS, xlabel="events with a scored hook", ax=ax)
    set_alt(ax, f"Events that change the score. {_describe_trajectories(chosen)}")
    return ax


def choose_episodes(episodes: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the episodes that `trajectories` draws."""
    ranked = episodes.dropna(subset="score").sort_values(["model_name", "score"], ascending=[True, False])
    if len(ranked) <= rows:
        return ranked
    room = max(1, rows // ranked["model_name"].nunique())
    groups = (group for _, group in ranked.groupby("model_name"))
    chosen = [g.iloc[np.unique(np.linspace(0, len(g) - 1, room).round().astype(int))] for g in groups]
    return pd.concat(chosen).head(rows)


def _describe_achievements(rates: pd.DataFrame) -> str:
    """Describe the success rates in words: which achievements each model unlocks at all."""
    clauses = []
    for name, rows in rates.groupby("model_name", sort=False):
        unlocked = rows[rows["estimate"] > 0].sort_values("estimate", ascending=False)
        pairs = zip(unlocked["achievement"], unlocked["estimate"], strict=True)
        each = ", ".join(f"{achievement} {100 * rate:.0f} %" for achievement, rate in pairs)
        clauses.append(f"{name}: {each or ('none' if rows['n'].any() else rows['warning'].iloc[0])}")
    return _sentence(clauses)


def _describe_trajectories(episodes: pd.DataFrame) -> str:
    """Describe the trajectories in words: how many events gain and lose points, per model."""
    clauses = []
    for name, group in episodes.groupby("model_name"):
        text = "".join(group["trajectory"].str.replace(NO_SCORED_EVENTS, "", regex=False))
        counts = f"{text.count('+')} events gain points, {text.count('-')} lose points"
        clauses.append(f"{name}, {len(group)} episodes: {counts}")
    return _sentence(clauses)


def _sentence(clauses: Sequence[str]) -> str:
    return "; ".join(clauses) + "." if clauses else "Nothing to show."


def __dir__() -> list[str]:
    return sorted(__all__)
