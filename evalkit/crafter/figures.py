"""Draw figures of session traces with `evalkit.display.plots`, from the frames of `analysis`."""

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
ENOUGH = 5  # minimum number of a model's episodes; the axis ends at the last turn with so many


def scores(episodes: pd.DataFrame, means: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the score of every episode, and the mean of each model with its interval.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    means : DataFrame
        Result of `analysis.mean_scores`, in the order of the rows.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.scores(episodes, analysis.mean_scores(episodes))
    """
    return plots.strips(episodes, "model_name", "score", means=means, ax=ax)


def estimates(
    table: pd.DataFrame, category: str, hue: str | None = None, *, xlabel: str, ax: Axes | None = None
) -> Axes:
    """Draw means with intervals, one row per category.

    Parameters
    ----------
    table : DataFrame
        `category`, `hue`, estimate, low, high and n.
    category : str
        Column with the category of each row.
    hue : str, optional
        Column of the groups that have different colours.
    xlabel : str
        Label of the axis of estimates.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.estimates(analysis.mean_scores(episodes), "model_name", xlabel="score")
    """
    return plots.estimates(table, category, hue, xlabel=xlabel, percent=False, ax=ax)


def against_references(table: pd.DataFrame, references: pd.DataFrame, *, xlabel: str, ax: Axes | None = None) -> Axes:
    """Draw estimates per model above published results.

    Parameters
    ----------
    table : DataFrame
        model_name, n, estimate, low, high (0 to 100).
    references : DataFrame
        Result of `benchmark.reference_scores`.
    xlabel : str
        Label of the axis of estimates.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> official = analysis.official_scores(achievements)
    >>> axes = figures.against_references(official, benchmark.reference_scores("score"), xlabel="score")
    """
    ax = plots.estimates(table, "model_name", percent=False, xlabel=xlabel, references=references, ax=ax)
    if len(table):
        ax.set_xlim(0, 100)
    return ax


def breakdown(table: pd.DataFrame) -> Axes:
    """Draw the mean points per episode, with one panel per kind of hook and the same scale in all panels.

    Parameters
    ----------
    table : DataFrame
        Result of `analysis.points`.

    Returns
    -------
    Axes
        The axes of the first panel.

    Examples
    --------
    >>> axes = figures.breakdown(analysis.points(episodes))
    """
    names = list(dict.fromkeys(table["model_name"]))

    def draw(panel: pd.DataFrame, ax: Axes) -> None:
        plots.estimates(panel, "model_name", percent=False, order=names, xlabel=xlabel, ax=ax)

    xlabel = "mean points per episode"
    return plots.facets(table, "hook", draw, height=0.9 + 0.3 * len(names), xlabel=xlabel)[0]


def achievements(rates: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the success rate of each achievement per model as shaded cells.

    Parameters
    ----------
    rates : DataFrame
        Result of `analysis.achievement_rates`.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.achievements(analysis.achievement_rates(achievements))
    """
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
    """Draw the number of achievements unlocked by the end of each turn, with intervals.

    Parameters
    ----------
    curve : DataFrame
        Result of `analysis.unlock_curve`.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.unlocks(analysis.unlock_curve(achievements, episodes))
    """
    last = curve.loc[curve["n"] >= ENOUGH, "turn"].max()
    is_cut = bool(curve["turn"].max() > last)
    xlabel = "turn"
    if is_cut:
        xlabel += f"; of models with fewer than {ENOUGH} episodes, later turns are not shown"
    ylabel = "different achievements, mean"
    ax = plots.curves(curve, "turn", "model_name", xlabel=xlabel, ylabel=ylabel, percent=False, steps=True, ax=ax)
    if is_cut:
        ax.set_xlim(right=last)
    return ax


def trajectories(episodes: pd.DataFrame, rows: int = 40, ax: Axes | None = None) -> Axes:
    """Draw one row per episode, by model and score, with one mark per event with a scored hook.

    If there are more than `rows` episodes, draw the same number for each model, evenly spaced from its best to its
    worst.

    Parameters
    ----------
    episodes : DataFrame
        One row per episode, such as `logs.episodes`.
    rows : int
        Maximum number of episodes.
    ax : Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> axes = figures.trajectories(episodes, rows=10)
    """
    ranked = episodes.dropna(subset="score").sort_values(["model_name", "score"], ascending=[True, False])
    room = max(1, rows // max(ranked["model_name"].nunique(), 1)) if len(ranked) > rows else len(ranked)
    groups = ranked.groupby("model_name")["score"]
    place, size = groups.cumcount(), groups.transform("size")
    # of each model's episodes, as many evenly spaced ones as there is room for
    is_chosen = place * room // size != (place - 1) * room // size
    chosen = ranked[is_chosen].head(rows)
    models = chosen["model_name"].map(distinct_names(chosen["model_name"], 26)).astype("str")
    names = models + "  " + chosen["score"].map("{:.2f}".format).astype("str")
    same = names.groupby(names).cumcount()
    names = names.where(same == 0, names + " (" + (same + 1).astype("str") + ")")
    symbols = chosen["trajectory"].fillna("").str.replace(NO_SCORED_EVENTS, "", regex=False).map(list)
    hrefs = chosen.get("href", "")
    events = pd.DataFrame({"episode": names, "symbol": symbols, "href": hrefs}).explode("symbol", ignore_index=True)
    events["event"] = events.groupby("episode", sort=False).cumcount() + 1
    return plots.timeline(events, "episode", "event", "symbol", SYMBOLS, xlabel="events with a scored hook", ax=ax)
