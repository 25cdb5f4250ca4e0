"""Draw figures of failures from the frames of `evalkit.failures`."""

import pandas as pd
from matplotlib.axes import Axes

from evalkit._text import format_interval
from evalkit.display import nothing_to_draw, plots, set_alt

__all__ = ["by_model", "modes"]

MOST_MODELS = 12  # maximum number of columns of a figure, for the models with the most failed runs


def modes(shares: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of failed runs with each mode.

    Parameters
    ----------
    shares : DataFrame
        Result of `mode_shares` without groups.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One row per mode, with 95 % intervals.

    Examples
    --------
    >>> ax = figures.modes(failures.mode_shares(failures.modes(logs), []))
    """
    return plots.estimates(shares, "mode", xlabel="share of failed runs", ax=ax)


def by_model(shares: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the share of each model's failed runs with each mode.

    Parameters
    ----------
    shares : DataFrame
        Result of `mode_shares` by model.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One row per mode and one column per model, for the 12 models with the most failed runs. For a single model, a
        message that there is nothing to draw.

    Examples
    --------
    >>> ax = figures.by_model(failures.mode_shares(failures.modes(logs)))
    """
    if shares["model_name"].nunique() < 2:  # the figure of `modes` shows the same
        return nothing_to_draw(ax=ax)
    sizes = shares.groupby("model_name", observed=True)["n"].max().nlargest(MOST_MODELS)
    shown = shares[shares["model_name"].isin(sizes.index)]
    ax = plots.heatmap(shown, "mode", "model_name", xlabel="share of failed runs (their number)", ax=ax)
    cells = shown[["model_name", "mode", "estimate", "low", "high"]].itertuples(index=False, name=None)
    texts = [f"{model}, {mode}: {format_interval(*values)}" for model, mode, *values in cells]
    set_alt(ax, f"Failure modes by model, as shares of failed runs. {'; '.join(texts[:40])}.")
    return ax
