"""Estimate rates over given units from hand labels of a random sample of them and a judge's verdicts on all of them.

The judge may err in any way: the labels show how, and the interval includes the remaining uncertainty. Units must be
sampled at random, or the correction is invalid (docs/judges.md shows what happens then).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from evalkit._notes import Notes, note
from evalkit.stats import intervals
from evalkit.stats.intervals import Estimate, Values

THESE_UNITS = "these units"  # target of the estimate: the rate if all units were labelled
FEW_LABELS = 20  # number of labels below which the interval has a warning (docs/judges.md)
SLOPE_COUNT, SHARE_COUNT = 0.5, 1.0  # pseudo-labels for each pair of a label (0, 1) and an extreme verdict
EXACT = 0.2  # weight of the Clopper-Pearson bounds, which are too wide; the rest are Wilson's, which may be too narrow
METHOD = "PPI++, Wilson on the effective n"


class _Fit(NamedTuple):
    """The corrected rate, and what its interval depends on."""

    rate: float
    seen: int  # number of labels that are 1
    n: int  # number of labels
    units: int  # number of units, N
    explained: float  # share of the variance of labels that verdicts explain: the squared correlation
    design: float  # design effect: the factor by which clusters increase the variance
    n_tasks: int  # number of clusters with labels; without clusters, number of labels
    notes: Notes

    def bounds(self, n: int) -> tuple[float, float]:
        """Return the bounds of the rate for `n` labels, with all other values unchanged."""
        unlabelled = 1 - n / self.units
        if unlabelled <= 0:
            return self.rate, self.rate
        effective = n / (1 - self.explained) / unlabelled / self.design
        low, high = intervals.wilson(self.rate, effective)
        exact_low, exact_high = intervals.clopper_pearson(self.rate, effective)
        step = 1 / self.units  # a rate over N units is a multiple of 1 / N
        exact = 1 - (1 - EXACT) / self.design  # whole clusters are few, and those with a rare label fewer
        low = (1 - exact) * low + exact * exact_low - step
        high = (1 - exact) * high + exact * exact_high + step
        return max(float(low), 0.0), min(float(high), 1.0)

    def half_width(self, more: int) -> float:
        """Return half the width of the interval after `more` additional labels."""
        if self.n == 0:
            return math.nan
        low, high = self.bounds(min(self.n + more, self.units))
        return (high - low) / 2


def corrected_rate(
    labels: Values, judged: Values, judged_rest: Values, clusters: Iterable[Any] | None = None
) -> Estimate:
    """Estimate the rate over these units from hand labels of a random sample and a judge's verdicts on all units.

    Power-tuned prediction-powered inference: the estimate is the mean label, plus λ times the difference between the
    mean verdict on all units and the mean verdict on labelled units. λ is the slope of the regression of labels on
    verdicts, so verdicts that are unrelated to labels change nothing. The interval is Wilson's interval for the
    effective n, which is n / (1 − r²) for the correlation r of labels and verdicts, divided by 1 − n / N, since the
    target is the rate over these N units, and by the design effect of clusters. Wilson's interval misses rare failures
    too often. Therefore each bound is moved outwards by one unit, 1 / N, and by a fifth of the way to the
    Clopper-Pearson bound, or farther if clusters enlarge the variance. Pseudo-labels keep λ and r from being too large
    if few labels show an error: half a label for each pair of a label and an extreme verdict for λ, a whole label for
    r.

    Parameters
    ----------
    labels : sequence of 0/1, shape (n,)
        The hand labels. A unit whose label is missing counts as unlabelled.
    judged : sequence of numbers, shape (n,)
        The judge's verdicts on the labelled units: 0/1, or scores on any scale. A unit without a verdict gets the
        judge's mean verdict.
    judged_rest : sequence of numbers, shape (N - n,)
        The judge's verdicts on all other units.
    clusters : sequence, shape (N,), optional
        Cluster of each unit, such as its task, labelled units first. The interval is wider if whole clusters were
        labelled and units of a cluster are similar. The rate is still the rate over units.

    Returns
    -------
    Estimate
        The rate. `n` is the number of labels, `n_tasks` the number of clusters with labels, and the target is
        "these units".

    Raises
    ------
    ValueError
        For labels other than 0 and 1, and for lengths that do not match.

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic (2023), PPI++: efficient prediction-powered inference.
    arXiv:2311.01453. L. Kish (1965), *Survey Sampling*, for the effect of clusters.

    Examples
    --------
    >>> found = stats.corrected_rate([1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 40)
    >>> print(f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}], {found.n} labels")
    0.50 [0.38, 0.62], 40 labels
    """
    fit = _fit(labels, judged, judged_rest, clusters)
    if fit.n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, METHOD, THESE_UNITS, fit.notes)
    low, high = fit.bounds(fit.n)
    low = max(low, fit.seen / fit.units)  # the labelled units are known
    high = min(high, 1 - (fit.n - fit.seen) / fit.units)
    estimate = min(max(fit.rate, low), high)
    return Estimate(estimate, low, high, fit.n, fit.n_tasks, METHOD, THESE_UNITS, fit.notes)


def half_width_after(
    more: int,
    labels: Values,
    judged: Values,
    judged_rest: Values,
    clusters: Iterable[Any] | None = None,
) -> float:
    """Return the expected half width of the interval of `corrected_rate` after `more` additional random labels.

    Parameters
    ----------
    more : int
        Number of additional labels.
    labels, judged : sequences, shape (n,)
        The labels so far, 0/1, and the judge's verdicts on the same units.
    judged_rest : sequence of numbers, shape (N - n,)
        The judge's verdicts on all other units.
    clusters : sequence, shape (N,), optional
        Cluster of each unit, such as its task, labelled units first.

    Returns
    -------
    float
        Half of the interval's width, as a share from 0 to 1; NaN if there are no labels so far.

    Raises
    ------
    ValueError
        If `more` is negative, and for the same reasons as in `corrected_rate`.

    Examples
    --------
    >>> half = stats.half_width_after(60, [1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 40)
    >>> print(f"{half:.2f}")
    0.06
    """
    if not more >= 0:
        raise ValueError(f"more must be 0 or larger (got {more})")
    return _fit(labels, judged, judged_rest, clusters).half_width(more)


def labels_for(
    half_width: float,
    labels: Values,
    judged: Values,
    judged_rest: Values,
    clusters: Iterable[Any] | None = None,
) -> float:
    """Return how many more random labels are needed so that half the interval's width is at most `half_width`.

    Parameters
    ----------
    half_width : float
        Half of the interval's width to reach, a share above 0.
    labels, judged : sequences, shape (n,)
        The labels so far, 0/1, and the judge's verdicts on the same units.
    judged_rest : sequence of numbers, shape (N - n,)
        The judge's verdicts on all other units.
    clusters : sequence, shape (N,), optional
        Cluster of each unit, such as its task, labelled units first.

    Returns
    -------
    float
        A whole number, at most N − n; NaN if there are no labels so far.

    Raises
    ------
    ValueError
        If `half_width` is not positive, and for the same reasons as in `corrected_rate`.

    Examples
    --------
    >>> stats.labels_for(0.05, [1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 40)
    88.0
    """
    if not half_width > 0:
        raise ValueError(f"half_width must be positive (got {half_width})")
    fit = _fit(labels, judged, judged_rest, clusters)
    if fit.n == 0:
        return math.nan
    return float(bisect_left(range(fit.units - fit.n), -half_width, key=lambda more: -fit.half_width(more)))


def combined(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """Estimate a weighted sum of rates that were estimated from separate labels, such as the rates of several models.

    Each rate has a separate correction, so the judge may err differently on each. The interval uses MOVER, which adds
    the squared distances between estimates and bounds (Newcombe 1998; Zou and Donner 2008).

    Parameters
    ----------
    estimates : sequence of Estimate
        Results of `corrected_rate`.
    weights : sequence of float
        One weight per estimate: its share of the units for the rate over all units, or 1 and −1 for a difference.

    Returns
    -------
    Estimate
        The weighted sum. `n` is the total number of labels.

    Raises
    ------
    ValueError
        If there are no estimates, or their number differs from the number of weights.

    Examples
    --------
    >>> a = stats.corrected_rate([1, 1, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 40)
    >>> print(f"{stats.combined([a, a], [0.5, 0.5]).low:.2f}")
    0.41
    """
    if len(estimates) != len(weights) or not len(estimates):
        raise ValueError(f"{len(estimates)} estimates, but {len(weights)} weights")
    total = below = above = 0.0
    notes = Notes()
    for estimate, weight in zip(estimates, weights, strict=True):
        part = weight * estimate.estimate
        low, high = sorted((weight * estimate.low, weight * estimate.high))
        total += part
        below += (part - low) ** 2
        above += (high - part) ** 2
        notes += estimate.warning
    if not all("all_labelled" in estimate.warning for estimate in estimates):
        notes = notes.without("all_labelled")
    n = sum(estimate.n for estimate in estimates)
    n_tasks = sum(estimate.n_tasks for estimate in estimates)
    low, high = total - math.sqrt(below), total + math.sqrt(above)
    return Estimate(total, low, high, n, n_tasks, f"{estimates[0].method}, MOVER", estimates[0].target, notes)


def corrected_difference(a: Estimate, b: Estimate) -> Estimate:
    """Estimate the difference a − b between the corrected rates of two models, each corrected with separate labels.

    The judge may err differently on each model. Labels of one model do not improve the rate of the other.

    Parameters
    ----------
    a, b : Estimate
        Results of `corrected_rate`, each for the units of one model.

    Returns
    -------
    Estimate
        The difference, from −1 to 1.

    Examples
    --------
    >>> a = stats.corrected_rate([1, 1, 1, 0] * 10, [1, 1, 0, 0] * 10, [1, 0, 0, 0] * 40)
    >>> b = stats.corrected_rate([1, 0, 0, 0] * 10, [1, 0, 0, 0] * 10, [1, 0, 0, 0] * 40)
    >>> found = stats.corrected_difference(a, b)
    >>> print(f"{found.estimate:.2f} [{found.low:.2f}, {found.high:.2f}]")
    0.40 [0.26, 0.53]
    """
    return combined([a, b], [1, -1])


def _fit(labels: Any, judged: Any, judged_rest: Any, clusters: Any) -> _Fit:
    """Estimate the rate, and how well verdicts explain labels."""
    label = intervals.numbers(labels)
    verdict = intervals.numbers(judged)
    if len(label) != len(verdict):
        raise ValueError(f"{len(label)} labels, but {len(verdict)} verdicts on the same units")
    every = np.concatenate([verdict, intervals.numbers(judged_rest)])
    units = len(every)
    codes = None if clusters is None else intervals.coded(clusters, units)[0]
    known = np.isfinite(label)
    if not np.isin(label[known], (0.0, 1.0)).all():
        raise ValueError("labels are 0 or 1")
    notes = Notes()
    is_missing = ~np.isfinite(every)
    if is_missing.any():
        notes += note("no_verdict", count=int(is_missing.sum()))
        every[is_missing] = 0.0 if is_missing.all() else every[~is_missing].mean()
    label = label[known]
    n, seen = len(label), int(label.sum())
    if n == 0:
        return _Fit(math.nan, 0, 0, units, 0.0, 1.0, 0, note("no_labels") + notes)
    if n == units:
        notes = note("all_labelled") + notes
    elif n < FEW_LABELS:
        notes = note("few", fewest=FEW_LABELS, what="labels") + notes
    least, most = every.min(), every.max()
    if most - least <= 1e-12 * max(abs(least), abs(most)):
        most = least + 1
        notes += note("constant_judge")
    every = (every - least) / (most - least)
    verdict = every[: len(known)][known]
    design, n_tasks = 1.0, n
    if codes is not None and n < units:
        slope = _moments(label, verdict, SLOPE_COUNT)[0]
        residuals = label - label.mean() - slope * (verdict - verdict.mean())
        design, n_tasks = _design_effect(label, residuals, codes[: len(known)][known], codes)
        if design > 1 and n_tasks < intervals.FEW_CLUSTERS:
            notes = note("few", fewest=intervals.FEW_CLUSTERS, what="clusters with labels") + notes
    slope = _moments(label, verdict, SLOPE_COUNT * design)[0]
    explained = _moments(label, verdict, SHARE_COUNT * design)[1]
    rate = float(label.mean() + slope * (every.mean() - verdict.mean()))
    return _Fit(min(max(rate, 0.0), 1.0), seen, n, units, explained, design, n_tasks, notes)


def _moments(label: np.ndarray, verdict: np.ndarray, pseudo: float) -> tuple[float, float]:
    """Return the slope of labels on verdicts (from 0 to 1) and their squared correlation, both with pseudo-labels."""
    total = len(label) + 4 * pseudo
    p = (label.sum() + 2 * pseudo) / total
    mean = (verdict.sum() + 2 * pseudo) / total
    variance = ((verdict**2).sum() + 2 * pseudo) / total - mean**2
    covariance = ((label * verdict).sum() + pseudo) / total - p * mean
    return float(covariance / variance), float(covariance**2 / variance / (p * (1 - p)))


def _design_effect(
    label: np.ndarray, residuals: np.ndarray, labelled: np.ndarray, codes: np.ndarray
) -> tuple[float, int]:
    """Return the design effect of clusters on the mean residual (Kish 1965), and the number of clusters with labels.

    The design effect is 1 + r (B / A − 1), where r is the correlation of residuals within clusters. A is the variance
    of the mean if units were independent, and B if whole clusters were. If labels are spread over clusters in the same
    way as units, B is at most A.
    """
    n, units = len(labelled), len(codes)
    counts = np.bincount(labelled, minlength=codes.max() + 1)
    sizes = np.bincount(codes)
    of_units = 1 / n - 1 / units
    of_clusters = ((counts / n - sizes / units) ** 2).sum()
    has_labels = int((counts > 0).sum())
    excess = float(of_clusters / of_units) - 1
    if excess <= 0:
        return 1.0, has_labels
    squares = float((residuals**2).sum())
    sums = np.bincount(labelled, weights=residuals, minlength=len(counts))[counts > 0]
    pairs = float((counts * (counts - 1)).sum())
    mixed = min(len(np.unique(labelled[label == value])) for value in (0, 1))
    correlation = 1.0
    if mixed > intervals.RARE_CLUSTERS and pairs:
        between = float((sums**2).sum()) * has_labels / max(has_labels - 2, 1)
        estimated = (between - squares) / pairs / (squares / n)
        estimated *= 1 + intervals.SKEW_OF_RATES * float(intervals.skewness(sums)) ** 2 / has_labels
        correlation = min(max(estimated, (intervals.RARE_CLUSTERS / mixed) ** 2), 1.0)
    factor = (intervals.quantile(freedom=max(has_labels - 1, 1)) / intervals.quantile()) ** 2
    return 1 + correlation * excess * factor, has_labels
