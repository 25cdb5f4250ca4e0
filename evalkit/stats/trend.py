"""Does success rise or fall along an ordered factor, such as the number of blocked agents?"""

import math
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, join, labels, left_out, numbers

SEPARATED = "the levels separate successes from failures: the odds ratio has no bounds"
SMALL = 5  # expected successes or failures below which the normal approximation is doubtful


class Trend(NamedTuple):
    """A trend of success over an ordered factor.

    Attributes
    ----------
    estimate, low, high : float
        Odds ratio per step of the score: below 1 where success falls. Where the levels separate successes from failures
        it is 0 or infinite, without bounds; NaN where it can't be computed.
    p_value : float
        Two-sided; 1 means no trend at all.
    n, n_clusters : int
        Trials, and their clusters (`n` where they are taken as independent).
    method : str
    warning : str
    """

    estimate: float
    low: float
    high: float
    p_value: float
    n: int
    n_clusters: int
    method: str
    warning: str = ""


class _Rows(NamedTuple):
    """Counts by row, without those that are missing or have no trials."""

    successes: np.ndarray
    n: np.ndarray
    scores: np.ndarray
    codes: np.ndarray | None


def trend_test(
    successes: Iterable[Any],
    n: Iterable[Any],
    scores: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
) -> Trend:
    """Test for a trend of success rates over an ordered factor.

    The p value is that of Cochran (1954) and Armitage (1955), the odds ratio that of a logistic fit. With clusters the
    variance of both is multiplied by the design effect of the trend, as Rao and Scott (1992) do for group rates, taken
    from the totals of clusters around the rates of their levels (docs/statistics.md).

    Parameters
    ----------
    successes, n : array-like of int
        Counts, one per level, or with `clusters` one per level and cluster. Rows with a missing value are left out.
    scores : array-like of float
        The level of each row, such as 0, 1, 2.
    clusters : array-like, optional
        One label per row, such as the task.
    confidence : float
        Of the odds ratio's interval.

    Returns
    -------
    Trend
        NaN with a single level, with equal outcomes only, or with no more clusters than levels.

    Raises
    ------
    ValueError
        For lengths that differ, counts that can't be, or an impossible confidence.
    """
    check_confidence(confidence)
    rows, lost = _rows(successes, n, scores, clusters)
    total = int(rows.n.sum())
    count = total if rows.codes is None else len(np.unique(rows.codes))
    method = "Cochran-Armitage" if clusters is None else "Cochran-Armitage, design effect"
    freedom = _freedom(rows)
    if reason := _hopeless(rows, freedom):
        return Trend(math.nan, math.nan, math.nan, math.nan, total, count, method, join(reason, lost))
    effect = 1.0 if rows.codes is None else _design_effect(rows, freedom)
    method += "" if rows.codes is None else f" {effect:.2f}"
    rate, centred = rows.successes.sum() / total, _centred(rows)
    z = centred @ rows.successes / math.sqrt(rate * (1 - rate) * (centred**2 @ rows.n) * effect)
    odds, low, high, separated = _odds_ratio(rows, effect, confidence)
    few = min(rate, 1 - rate) * total / effect < SMALL
    doubt = f"fewer than {SMALL} effective successes or failures: the p value is approximate" if few else ""
    p_value = 2 * float(special.ndtr(-abs(z)))
    return Trend(odds, low, high, p_value, total, count, method, join(separated, doubt, lost))


def _rows(successes: Any, n: Any, scores: Any, clusters: Any) -> tuple[_Rows, str]:
    successes, n, scores = numbers(successes), numbers(n), numbers(scores)
    if not len(successes) == len(n) == len(scores):
        raise ValueError(f"{len(successes)} successes, {len(n)} n and {len(scores)} scores: need as many of each")
    codes = None if clusters is None else labels(clusters, len(n))
    known = np.isfinite(successes) & np.isfinite(n) & np.isfinite(scores)
    x, of = successes[known], n[known]
    if ((x < 0) | (x > of) | (x % 1 > 0) | (of % 1 > 0)).any():
        raise ValueError("successes and n are whole numbers with 0 <= successes <= n")
    kept = known & (n > 0)
    rows = _Rows(successes[kept], n[kept], scores[kept], None if codes is None else codes[kept])
    return rows, left_out(int((~known).sum()), "row")


def _freedom(rows: _Rows) -> int:
    """Return the degrees of freedom of the variance between clusters: what is left after the rates of the levels."""
    if rows.codes is None:
        return 1
    cells = len(np.unique(np.column_stack([rows.codes, rows.scores]), axis=0))
    clusters, levels = len(np.unique(rows.codes)), len(np.unique(rows.scores))
    return clusters - (levels if cells == clusters else 1)


def _hopeless(rows: _Rows, freedom: int) -> str:
    if not len(rows.n):
        return "no trials"
    if np.ptp(rows.scores) == 0:
        return "a single level has no trend"
    if rows.successes.sum() in (0, rows.n.sum()):
        return "all outcomes are equal"
    return "too few clusters: need more than one per level" if freedom < 1 else ""


def _centred(rows: _Rows) -> np.ndarray:
    return rows.scores - rows.scores @ rows.n / rows.n.sum()


def _design_effect(rows: _Rows, freedom: int) -> float:
    """Return how many times the clusters multiply the variance of the trend: at least 1, at most as if they were one.

    Its own uncertainty, from few clusters, is allowed for by (t / z)², as in `formulas.cluster_wilson`.
    """
    centred, codes = _centred(rows), np.unique(rows.codes, return_inverse=True)[1]
    levels = np.unique(rows.scores, return_inverse=True)[1]
    rates = (np.bincount(levels, rows.successes) / np.bincount(levels, rows.n))[levels]
    count = codes.max() + 1
    independent = centred**2 @ (rows.n * rates * (1 - rates))
    totals = np.bincount(codes, centred * (rows.successes - rates * rows.n))
    whole = np.bincount(codes, centred * rows.n)
    most = max(1.0, whole @ whole / (centred**2 @ rows.n))
    if independent == 0:
        return most
    doubt = (formulas.student(0.95, freedom) / formulas.normal(0.95)) ** 2
    return float(np.clip(totals @ totals * count / freedom / independent * doubt, 1.0, most))


def _odds_ratio(rows: _Rows, effect: float, confidence: float) -> tuple[float, float, float, str]:
    passed, failed = rows.scores[rows.successes > 0], rows.scores[rows.successes < rows.n]
    if passed.min() >= failed.max() or passed.max() <= failed.min():
        return (math.inf if passed.max() > failed.min() else 0.0), math.nan, math.nan, SEPARATED
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    counts = np.column_stack([rows.successes, rows.n - rows.successes])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", PerfectSeparationWarning)  # also said of rates that lie on the curve exactly
        fit = GLM(counts, np.column_stack([np.ones(len(rows.n)), _centred(rows)]), family=Binomial()).fit()
    slope, half = fit.params[1], formulas.normal(confidence) * fit.bse[1] * math.sqrt(effect)
    with np.errstate(over="ignore"):
        return float(np.exp(slope)), float(np.exp(slope - half)), float(np.exp(slope + half)), ""
