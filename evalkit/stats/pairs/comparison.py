"""Compare two conditions on the same units, such as two models on the tasks they share."""

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from evalkit._notes import Notes, left_out, note
from evalkit.stats import _formulas as formulas
from evalkit.stats import _warnings as warnings
from evalkit.stats._inputs import Clusters, by_cluster, check_confidence, labels, numbers
from evalkit.stats.intervals import NEW_VALUES, Estimate, too_few

MOST_ENUMERATED = 24  # differences whose sign flips are enumerated; beyond that, a normal approximation


class PairedTest(NamedTuple):
    """A test that two conditions do equally well on the same units.

    Attributes
    ----------
    p_value : float
        Two-sided; NaN without pairs.
    better, worse : int
        Pairs where the first condition has the higher, and the lower value.
    n : int
        Pairs used, ties included.
    method : str
    warning : Notes
    """

    p_value: float
    better: int
    worse: int
    n: int
    method: str
    warning: Notes = Notes()


class Compared(NamedTuple):
    """An interval of a mean difference and the p value of the same test; `method` names both.

    The interval is `centre` ± `error` times the quantile of Student's t with `freedom` degrees, but for moved bounds.
    """

    low: float
    high: float
    p_value: float
    method: str
    warning: Notes = Notes()
    centre: float = math.nan
    error: float = math.nan
    freedom: float = math.nan


def paired_difference(
    a: Iterable[Any], b: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95
) -> Estimate:
    """Estimate the mean of a − b over pairs, or with clusters the mean of their means.

    0/1 outcomes without clusters: the interval of Agresti and Min. Others: t over pairs, or over the means of clusters.
    The interval excludes 0 exactly where `mcnemar_exact` or `sign_flip_test` rejects it: where the exact test does not,
    it is extended to 0. Values between 0 and 1 are taken as shares: their interval ends at −1 and 1, and where t has no
    width because all differences are equal, it is Agresti and Min's for as many 0/1 pairs, which is a cautious one.

    Parameters
    ----------
    a, b : array-like of float or bool, of one length
        Element i of both belongs to the same unit. Pairs with a missing value are left out.
    clusters : array-like, optional
        One label per pair.
    confidence : float

    Returns
    -------
    Estimate
        n is the number of pairs. Without bounds for a single pair or cluster.

    Raises
    ------
    ValueError
        For lengths that differ or an impossible confidence.
    """
    check_confidence(confidence)
    a, b, codes, lost = _pairs(a, b, clusters)
    differences, both = a - b, np.concatenate([a, b])
    units = differences if codes is None else by_cluster(differences, np.unique(codes, return_inverse=True)[1]).means
    n, target = len(differences), NEW_VALUES if clusters is None else "new tasks"
    method = "paired t" if clusters is None else "paired cluster t"
    mean = float(units.mean()) if n else math.nan
    described = Estimate(mean, math.nan, math.nan, n, len(units), method, target, too_few(n, len(units)) + lost)
    if len(units) < 2:
        return described
    shares = bool(((both >= 0) & (both <= 1)).all())
    binary = codes is None and bool(np.isin(both, (0.0, 1.0)).all())
    compared = compare_units(units, shares, binary, confidence)
    method = compared.method.split(";")[0].replace("paired t", method)
    return described._replace(low=compared.low, high=compared.high, method=method, warning=compared.warning + lost)


def mcnemar_exact(a: Iterable[Any], b: Iterable[Any]) -> PairedTest:
    """Test paired 0/1 outcomes: McNemar's test (1947) with the exact binomial probability, two-sided.

    Parameters
    ----------
    a, b
        As for `paired_difference`, of 0/1 or bool.

    Returns
    -------
    PairedTest

    Raises
    ------
    ValueError
        For lengths that differ or values other than 0 and 1.
    """
    return _tested(a, b, binary=True)


def sign_flip_test(a: Iterable[Any], b: Iterable[Any]) -> PairedTest:
    """Test paired values by flipping the signs of their differences (Fisher 1935, Pitman 1937), two-sided.

    If both conditions do equally well, a − b is as likely as b − a. The p value is the share of all flips whose sum is
    at least as far from 0 as the one observed; exact for up to 24 pairs that differ, beyond that by the normal
    distribution with the variance of the flips. For 0/1 outcomes it is McNemar's test.

    Parameters
    ----------
    a, b
        As for `paired_difference`, with an error for lengths that differ.

    Returns
    -------
    PairedTest
    """
    return _tested(a, b, binary=False)


def compare_units(differences: np.ndarray, shares: bool, binary: bool, confidence: float) -> Compared:
    """Compare on at least two units; `shares` are of values from 0 to 1, `binary` of 0/1 values."""
    mean, count = float(differences.mean()), len(differences)
    centre, error = mean, math.sqrt(formulas.variance_of_mean(differences))
    method, freedom, doubt = "paired t", float(count - 1), warnings.of_clusters(differences)
    equal = error <= 1e-9 * np.abs(differences).max()
    if binary or (equal and shares):
        centre, error = map(float, formulas.agresti_min_moments(differences))
        method, freedom = "Agresti-Min", math.inf
        doubt = warnings.FEW if count < warnings.FEW_CLUSTERS else Notes()
        doubt = doubt if binary else note("cautious", what="differences")
    elif equal:
        centre, error, doubt = math.nan, math.nan, note("all_equal")
    p_value, test = (_mcnemar if binary else _sign_flips)(differences)
    low, high = _bounds(centre, error, freedom, shares, confidence)
    low, high = formulas.agreeing(low, high, mean, p_value, 1 - confidence)
    return Compared(low, high, p_value, f"{method}; {test}", doubt, centre, error, freedom)


def compare_runs(a: Clusters, b: Clusters, shares: bool, confidence: float) -> Compared | None:
    """Compare two models for repetitions of the same tasks, by Welch's t stratified by task.

    The variance is that within tasks only; for shares two runs of a task that disagree are added to those of each
    model. None where one of the models has no task with several runs.
    """
    if not ((a.sizes > 1).any() and (b.sizes > 1).any()):
        return None
    pseudo = formulas.PSEUDO_PAIR if shares else 0.0
    (first, freedom_a), (second, freedom_b) = (formulas.within_tasks(x.variances, x.sizes, pseudo) for x in (a, b))
    freedom = min(freedom_a, freedom_b)
    if freedom < 1:
        return None
    if all((x.sizes > 1).all() for x in (a, b)):
        freedom = (first + second) ** 2 / (first**2 / freedom_a + second**2 / freedom_b) if first + second else freedom
    difference, error = float((a.means - b.means).mean()), math.sqrt(first + second)
    method = "t within tasks; t within tasks"
    if error == 0:
        return Compared(math.nan, math.nan, math.nan, method, note("all_equal"))
    low, high = _bounds(difference, error, freedom, shares, confidence)
    p_value = 2 * float(special.stdtr(freedom, -abs(difference) / error))
    doubt = warnings.within_tasks(a.sizes) + warnings.within_tasks(b.sizes)
    return Compared(low, high, p_value, method, doubt, difference, error, freedom)


def _bounds(centre: float, error: float, freedom: float, shares: bool, confidence: float) -> tuple[float, float]:
    half = formulas.student(confidence, freedom) * error
    return (max(centre - half, -1.0), min(centre + half, 1.0)) if shares else (centre - half, centre + half)


def _pairs(
    a: Iterable[Any], b: Iterable[Any], clusters: Iterable[Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Notes]:
    """Return the complete pairs of a and b, the codes of their clusters and a note on those left out."""
    a, b = numbers(a), numbers(b)
    if len(a) != len(b):
        raise ValueError(f"pairs need one length, not {len(a)} and {len(b)}")
    complete = np.isfinite(a) & np.isfinite(b)
    codes = None if clusters is None else labels(clusters, len(a))[complete]
    return a[complete], b[complete], codes, left_out(int((~complete).sum()), "pair")


def _tested(a: Iterable[Any], b: Iterable[Any], binary: bool) -> PairedTest:
    a, b, _, lost = _pairs(a, b)
    if binary and not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise ValueError("McNemar's test needs 0/1 outcomes; sign_flip_test takes others")
    p_value, method = (_mcnemar if binary else _sign_flips)(a - b)
    better, worse, n = int((a > b).sum()), int((a < b).sum()), len(a)
    reason = Notes() if better + worse else note("never_differ" if n else "no_pairs")
    return PairedTest(p_value if n else math.nan, better, worse, n, method, reason + lost)


def _mcnemar(differences: np.ndarray) -> tuple[float, str]:
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return min(1.0, 2 * float(special.bdtr(min(better, worse), better + worse, 0.5))), "McNemar exact"


def _sign_flips(differences: np.ndarray) -> tuple[float, str]:
    moved = np.abs(differences[differences != 0])
    seen = abs(differences.sum())
    if not len(moved):
        return 1.0, "sign flips, exact"
    if len(moved) > MOST_ENUMERATED:
        return 2 * float(special.ndtr(-seen / math.sqrt(moved @ moved))), "sign flips, normal"
    # sums of all signs are sums of those of two halves; the signs of all flipped mirror them
    first, second = _signed_sums(moved[::2]), np.sort(_signed_sums(moved[1::2]))
    least = seen - 1e-9 * moved.sum()
    beyond = len(second) - np.searchsorted(second, least - first, side="left")
    below = np.searchsorted(second, -least - first, side="right")
    both = beyond + below if least > 0 else np.full(len(first), len(second))
    return float(both.sum() / (len(first) * len(second))), "sign flips, exact"


def _signed_sums(sizes: np.ndarray) -> np.ndarray:
    return reduce(lambda sums, size: np.concatenate([sums + size, sums - size]), sizes, np.zeros(1))
