"""Comparing two conditions on the same units, such as two models on the tasks they share."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from evalkit.stats import _formulas as formulas
from evalkit.stats._inputs import check_confidence, join, labels, left_out, numbers
from evalkit.stats.intervals import Estimate, mean_interval

MOST_ENUMERATED = 20  # differences whose 2**20 signs are counted out; beyond, a normal approximation
NO_PAIRS = "no pairs"
NEVER_DIFFER = "no pair differs"
CAUTIOUS = "all differences are equal: a cautious interval"


class PairedTest(NamedTuple):
    """A test that two conditions do equally well on the same units.

    Attributes
    ----------
    p_value : float
        Two-sided; NaN without pairs.
    better, worse : int
        Pairs where the first condition has the higher, and the lower value.
    n : int
        Pairs used, ties among them.
    method : str
    warning : str
    """

    p_value: float
    better: int
    worse: int
    n: int
    method: str
    warning: str = ""


def paired_difference(
    a: Iterable[Any], b: Iterable[Any], clusters: Iterable[Any] | None = None, confidence: float = 0.95
) -> Estimate:
    """Estimate the mean of a − b over pairs.

    0/1 outcomes without clusters: the interval of Bonett and Price. Others: t over pairs, or over clusters with C − 1
    degrees of freedom. Values between 0 and 1 are taken as shares: their interval ends at −1 and 1, and where t has no
    width because all differences are equal, it is Bonett and Price's for as many 0/1 pairs, which is a cautious one.

    Parameters
    ----------
    a, b : array-like of float or bool, of one length
        Element i of both belongs to the same unit. Pairs with a missing value are left out.
    clusters : array-like, optional
        One label per pair.
    confidence : float
        Between 0 and 1, both excluded.

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
    plain = mean_interval(a - b, codes, confidence)
    plain = plain._replace(method=f"paired {plain.method}", warning=join(plain.warning, lost))
    both = np.concatenate([a, b])
    if plain.n_clusters < 2 or not ((both >= 0) & (both <= 1)).all():
        return plain
    if codes is None and np.isin(both, (0.0, 1.0)).all():
        units, note = a - b, ""
    elif math.isnan(plain.low):
        units, note = np.full(plain.n_clusters, plain.estimate), CAUTIOUS
    else:
        return plain._replace(low=max(plain.low, -1.0), high=min(plain.high, 1.0))
    low, high = formulas.bonett_price(units, confidence)
    return plain._replace(low=float(low), high=float(high), method="Bonett-Price", warning=join(note, lost))


def mcnemar_exact(a: Iterable[Any], b: Iterable[Any]) -> PairedTest:
    """Test paired 0/1 outcomes: McNemar's test (1947) with the exact binomial probability, two-sided.

    Parameters
    ----------
    a, b : array-like of 0/1 or bool, of one length
        Element i of both belongs to the same unit. Pairs with a missing value are left out.

    Returns
    -------
    PairedTest

    Raises
    ------
    ValueError
        For lengths that differ or values other than 0 and 1.
    """
    a, b, _, lost = _pairs(a, b)
    if not np.isin(np.concatenate([a, b]), (0.0, 1.0)).all():
        raise ValueError("McNemar's test needs 0/1 outcomes; sign_flip_test takes others")
    better, worse = int((a > b).sum()), int((a < b).sum())
    p_value = min(1.0, 2 * float(special.bdtr(min(better, worse), better + worse, 0.5)))
    return _tested(p_value, a - b, "McNemar exact", lost)


def sign_flip_test(a: Iterable[Any], b: Iterable[Any]) -> PairedTest:
    """Test paired values by flipping the signs of their differences (Fisher 1935, Pitman 1937), two-sided.

    If both conditions do equally well, a − b is as likely as b − a. The p value is the share of all flips whose sum is
    at least as far from 0 as the one seen; exact for up to 20 pairs that differ, beyond that by the normal distribution
    with the variance of the flips. For 0/1 outcomes it is McNemar's test.

    Parameters
    ----------
    a, b : array-like of float, of one length
        Element i of both belongs to the same unit. Pairs with a missing value are left out.

    Returns
    -------
    PairedTest

    Raises
    ------
    ValueError
        For lengths that differ.
    """
    a, b, _, lost = _pairs(a, b)
    differences = a - b
    moved = np.abs(differences[differences != 0])
    exact = len(moved) <= MOST_ENUMERATED
    seen = abs(differences.sum())
    if not len(moved):
        p_value = 1.0
    elif exact:
        p_value = float((np.abs(_signed_sums(moved)) >= seen - 1e-9 * moved.sum()).mean())
    else:
        p_value = 2 * float(special.ndtr(-seen / math.sqrt(moved @ moved)))
    return _tested(p_value, differences, "sign flips, exact" if exact else "sign flips, normal", lost)


def holm(p_values: Iterable[Any]) -> np.ndarray:
    """Adjust p values for their number (Holm 1979); NaN stays NaN and is not counted.

    Parameters
    ----------
    p_values : array-like of float

    Returns
    -------
    numpy.ndarray
        In the order given, each at least as large as before and at most 1.

    Raises
    ------
    ValueError
        For values that are no probabilities.
    """
    p_values = numbers(p_values)
    kept = np.flatnonzero(~np.isnan(p_values))
    if ((p_values[kept] < 0) | (p_values[kept] > 1)).any():
        raise ValueError("p values are between 0 and 1")
    order = kept[np.argsort(p_values[kept], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(p_values), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _pairs(
    a: Iterable[Any], b: Iterable[Any], clusters: Iterable[Any] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, str]:
    """Return what is known of both a and b, the codes of their clusters and what was left out."""
    a, b = numbers(a), numbers(b)
    if len(a) != len(b):
        raise ValueError(f"pairs need one length, not {len(a)} and {len(b)}")
    kept = np.isfinite(a) & np.isfinite(b)
    codes = None if clusters is None else labels(clusters, len(a))[kept]
    return a[kept], b[kept], codes, left_out(int((~kept).sum()), "pair")


def _signed_sums(sizes: np.ndarray) -> np.ndarray:
    """Return the sums for all signs; the first keeps its sign, since the rest mirrors it."""
    sums = sizes[:1]
    for size in sizes[1:]:
        sums = np.concatenate([sums + size, sums - size])
    return sums


def _tested(p_value: float, differences: np.ndarray, method: str, lost: str) -> PairedTest:
    better, worse, n = int((differences > 0).sum()), int((differences < 0).sum()), len(differences)
    reason = "" if better + worse else NEVER_DIFFER if n else NO_PAIRS
    return PairedTest(p_value if n else math.nan, better, worse, n, method, join(reason, lost))
