"""Agreement beyond chance of people or judges who labelled the same units."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evalkit._notes import NO_NOTES, left_out, note
from evalkit.stats.intervals import Estimate, jackknife_interval, quantile

KAPPA, ALPHA = "Cohen's kappa", "Krippendorff's alpha, jackknife t"
PSEUDO = 0.5  # pseudo-units per pair of labels, so that the variance is never 0
MOST_BLOCKS = 200  # maximum number of blocks of units that the jackknife leaves out in turn
FEW_UNITS = 20  # with fewer units, kappa gets a warning
EXTRA = "the package krippendorff: pip install 'evalkit-agents[labels]'"


def agreement(a: Iterable[Any], b: Iterable[Any], *others: Iterable[Any]) -> Estimate:
    """Estimate how much people or judges agree beyond chance: 1 is perfect agreement, 0 is chance.

    For two raters this is Cohen's kappa (1960) over the units that both labelled. Its interval is the large-sample one
    of Fleiss, Cohen and Everitt (1969), with half a pseudo-unit for each pair of labels, so that no interval has width
    0. For more raters it is Krippendorff's alpha for nominal labels (2011), over the units that at least two of them
    labelled, from the package krippendorff, with a jackknife interval.

    Parameters
    ----------
    a, b, *others : sequences of labels, shape (n,)
        One label per unit, in the same order for all raters; None or NaN if a rater gave none.

    Returns
    -------
    Estimate
        Between −1 and 1. NaN, with the reason in `warning`, if all labels are the same.

    Raises
    ------
    ValueError
        If the lengths differ.
    ImportError
        For more than two raters, without the extra `labels`.

    Examples
    --------
    >>> found = stats.agreement([1, 1, 0, 0, 1, 0] * 10, [1, 1, 0, 0, 0, 0] * 10)
    >>> print(f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}], {found.method} of {found.n} units")
    0.67 [0.47, 0.85], Cohen's kappa of 60 units
    """
    raters = [pd.Series(list(labels), dtype="object") for labels in (a, b, *others)]
    if len({len(labels) for labels in raters}) > 1:
        raise ValueError(f"lengths differ: {', '.join(str(len(labels)) for labels in raters)} labels")
    codes = pd.factorize(pd.concat(raters))[0].reshape(len(raters), -1)
    used = (codes >= 0).sum(axis=0) >= 2
    codes = codes[:, used]
    n = codes.shape[1]
    method = ALPHA if others else KAPPA
    lost = left_out(int((~used).sum()), "unit")
    nothing = Estimate(math.nan, math.nan, math.nan, n, n, method)
    if n == 0:
        return nothing._replace(warning=note("no_values") + lost)
    given = np.unique(codes[codes >= 0])
    if len(given) == 1:
        return nothing._replace(warning=note("one_label") + lost)
    if others:
        try:
            from krippendorff import alpha
        except ImportError as error:
            raise ImportError(f"agreement of several people needs {EXTRA}") from error

        def statistic(rows: np.ndarray) -> float:
            values = np.where(rows >= 0, rows, math.nan).T
            if len(np.unique(rows[rows >= 0])) < 2:
                return math.nan
            return float(alpha(reliability_data=values, level_of_measurement="nominal"))

        found = jackknife_interval(codes.T, statistic, np.arange(n) % MOST_BLOCKS)
        low, high = max(found.low, -1.0), min(found.high, 1.0)
        return nothing._replace(estimate=found.estimate, low=low, high=high, warning=found.warning + lost)
    table = np.zeros((len(given), len(given)))
    np.add.at(table, tuple(np.searchsorted(given, codes)), 1)
    kappa, _ = _kappa(table)
    smoothed, standard_error = _kappa(table + PSEUDO)
    half = quantile() * standard_error
    few = note("few", fewest=FEW_UNITS, what="units") if n < FEW_UNITS else NO_NOTES
    return nothing._replace(
        estimate=kappa,
        low=float(max(min(kappa, smoothed) - half, -1.0)),
        high=float(min(max(kappa, smoothed) + half, 1.0)),
        warning=few + lost,
    )


def _kappa(table: np.ndarray) -> tuple[float, float]:
    """Return Cohen's kappa of a square table of counts, and its large-sample standard error."""
    shares = table / table.sum()
    by_row, by_column = shares.sum(axis=1), shares.sum(axis=0)
    agreed = np.diag(shares)
    by_chance = float(by_row @ by_column)
    kappa = (agreed.sum() - by_chance) / (1 - by_chance)
    on_diagonal = agreed @ (1 - (by_row + by_column) * (1 - kappa)) ** 2
    squares = shares * np.add.outer(by_column, by_row) ** 2
    off_diagonal = (1 - kappa) ** 2 * (squares.sum() - np.diag(squares).sum())
    variance = (on_diagonal + off_diagonal - (kappa - by_chance * (1 - kappa)) ** 2) / (1 - by_chance) ** 2
    return float(kappa), math.sqrt(max(variance, 0.0) / table.sum())
