"""Intervals for one proportion or one mean, plain or robust to clusters such as the runs of a task; also by group.

What the data can't show is NaN, and `Estimate.warning` says why. Missing values are left out and counted there.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit._words import Notes, note
from evalkit.stats import _formulas as formulas
from evalkit.stats import _warnings as warnings
from evalkit.stats._inputs import (
    Clusters,
    by_cluster,
    check_bounds,
    check_choice,
    check_confidence,
    clean,
    numbers,
    typed,
)

ProportionMethod = Literal["wilson", "exact"]
Target = Literal["new tasks", "these tasks"]
Weights = Literal["tasks", "runs"]

Kind = Literal["proportion", "score", "mean"]

NEW_VALUES = "new values"  # the target where values are independent


class Estimate(NamedTuple):
    """An estimate with its interval.

    Attributes
    ----------
    estimate, low, high : float
        In the unit of the values (a share for proportions); NaN where it can't be computed.
    n : int
        Values used.
    n_clusters : int
        Independent units: clusters, or `n` where the values are taken as independent.
    method : str
        How the interval was computed.
    target : str
        What is estimated: "new tasks" like these, "these tasks" run again, or "new values" like these where the
        values are independent.
    warning : Notes
        What is wrong or doubtful about the interval, false where nothing is; ``str(warning)`` says it.
    """

    estimate: float
    low: float
    high: float
    n: int
    n_clusters: int
    method: str
    target: str = NEW_VALUES
    warning: Notes = Notes()


def proportion_interval(
    successes: int, n: int, method: ProportionMethod = "wilson", confidence: float = 0.95
) -> Estimate:
    """Estimate a proportion from counts of independent trials; `rate_interval` does from 0/1 values, with clusters.

    Parameters
    ----------
    successes, n : int
        With ``0 <= successes <= n``; n = 0 gives NaN.
    method : {"wilson", "exact"}
        Wilson's score interval (1927), or Clopper and Pearson's (1934), whose coverage is never below `confidence`.
    confidence : float
    """
    check_confidence(confidence)
    if not (float(n).is_integer() and float(successes).is_integer() and 0 <= successes <= n):
        raise ValueError(f"{successes} successes of {n} can't be: need whole numbers, 0 <= successes <= n")
    check_choice("method", method, get_args(ProportionMethod))
    n, successes = int(n), int(successes)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, method, warning=note("no_values"))
    if method == "exact":
        from statsmodels.stats.proportion import proportion_confint

        low, high = proportion_confint(successes, n, 1 - confidence, "beta")
        warning = Notes()
    else:
        low, high = formulas.wilson(successes / n, n, confidence)
        warning = warnings.of_wilson(successes, n)
    return Estimate(successes / n, float(low), float(high), n, n, method, warning=warning)


def rate_interval(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
    *,
    target: Target = "new tasks",
    weights: Weights = "tasks",
) -> Estimate:
    """Estimate a proportion from 0/1 values, which may repeat within clusters such as tasks.

    Without clusters this is Wilson's interval. With clusters it is Wilson's interval on the effective n, the number of
    independent trials with the same variance (docs/statistics.md). With one value per cluster both are the same.

    Parameters
    ----------
    values : array-like of 0/1, bool or missing
        Missing values are left out.
    clusters : array-like, optional
        One label per value; values without a label are taken as one cluster.
    confidence : float
        Between 0 and 1, both excluded.
    target : {"new tasks", "these tasks"}
        Whether the interval holds the rate on new clusters like these, or on these very clusters if each were run
        again. The second needs clusters with several values, and is narrower.
    weights : {"tasks", "runs"}
        Whether each cluster has the same weight (the mean of the rates of clusters), or each value has.

    Returns
    -------
    Estimate
        Without bounds for new tasks from a single cluster, and for these tasks where none has several values.
    """
    known, codes, lost = _checked(values, clusters, confidence, target, weights)
    if not np.isin(known, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    if clusters is None or (target == "new tasks" and 1 < len(known) == codes.max(initial=-1) + 1):
        plain = proportion_interval(int(known.sum()), len(known), confidence=confidence)
        plain = plain._replace(warning=plain.warning + lost)
        return plain if clusters is None else plain._replace(target=target)
    return _estimate(known, codes, lost, _Design(True, True, target, weights, confidence))


def mean_interval(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    confidence: float = 0.95,
    *,
    bounds: tuple[float, float] | None = None,
    target: Target = "new tasks",
    weights: Weights = "tasks",
) -> Estimate:
    """Estimate a mean of values, which may repeat within clusters such as tasks.

    Values without bounds: Student's t over values, or over the means of clusters, from 5 on with Hall's correction for
    skewness. Values with bounds: Wilson's interval on the effective n, as for rates, which has bounds even where all
    values are equal (docs/statistics.md).

    Parameters
    ----------
    values : array-like of float
        Missing and infinite values are left out.
    clusters, confidence, target, weights
        As for `rate_interval`.
    bounds : (float, float), optional
        The least and the largest possible value, such as (0, 1) for scores that are shares.

    Returns
    -------
    Estimate
        Without interval for a single value or cluster; without bounds also where nothing varies.
    """
    known, codes, lost = _checked(values, clusters, confidence, target, weights)
    weights = weights if clusters is not None else "tasks"  # alike where each value is a task of its own
    design = _Design(bounds is not None, clusters is not None, target, weights, confidence)
    if bounds is None:
        return _estimate(known, codes, lost, design)
    check_bounds(known, bounds)
    least, width = bounds[0], bounds[1] - bounds[0]
    scaled = _estimate((known - least) / width, codes, lost, design)
    estimate, low, high = (least + width * number for number in scaled[:3])
    return scaled._replace(estimate=estimate, low=low, high=high)


def _checked(values: Any, clusters: Any, confidence: float, target: str, weights: str) -> tuple:
    check_confidence(confidence)
    check_choice("target", target, get_args(Target))
    check_choice("weights", weights, get_args(Weights))
    if target == "these tasks" and clusters is None:
        raise ValueError("an estimate for these tasks needs to know them: give clusters")
    if target == "these tasks" and weights == "runs":
        raise ValueError("for these tasks each task has the same weight")
    return clean(values, clusters)


class _Design(NamedTuple):
    bounded: bool
    clustered: bool
    target: str
    weights: str
    confidence: float

    def method(self, count: int) -> str:
        family = "wilson" if self.bounded else "t"
        hall = "" if self.bounded or count < formulas.HALL_FROM else ", Hall's correction"
        if self.target == "these tasks":
            return f"{family} within tasks"
        if self.clustered:
            return f"cluster {family}{', runs weigh' if self.weights == 'runs' else hall}"
        return "wilson, effective n" if self.bounded else f"t{hall}"

    def interval(self, groups: Clusters, binary: bool) -> tuple[Any, Any, Notes]:
        """Return the bounds and the warning."""
        sizes, means, variances = groups
        if self.target == "these tasks":
            warning = warnings.within_tasks(sizes)
            if self.bounded:
                return *formulas.bounded_within(means, variances, sizes, self.confidence), warning
            return *formulas.by_t(means.mean(), *formulas.within_tasks(variances, sizes, 0.0), self.confidence), warning
        mean, variance, count = formulas.moments(means, sizes, self.weights)
        warning = warnings.of_clusters(means, count, rate=self.bounded and binary, bounded=self.bounded)
        if self.bounded:
            return *formulas.bounded(means, sizes, self.confidence, binary, self.weights), warning
        if self.weights == "runs":
            return *formulas.by_t(mean, variance, max(count - 1, 1), self.confidence), warning
        return *formulas.corrected_t(means, self.confidence), warning


def _estimate(values: np.ndarray, codes: np.ndarray, lost: Notes, design: _Design) -> Estimate:
    """Estimate a mean of clean values; bounded ones lie from 0 to 1."""
    n, count, within = len(values), int(codes.max(initial=-1)) + 1, design.target == "these tasks"
    target = design.target if design.clustered else NEW_VALUES
    described = Estimate(math.nan, math.nan, math.nan, n, count, design.method(count), target)
    if n == 0:
        return described._replace(warning=note("no_values") + lost)
    groups = by_cluster(values, codes)
    described = described._replace(estimate=float(values.mean() if design.weights == "runs" else groups.means.mean()))
    if reason := _unrepeated(groups.sizes) if within else too_few(n, count, design.clustered):
        return described._replace(warning=reason + lost)
    binary = bool(np.isin(values, (0.0, 1.0)).all())
    low, high, warning = design.interval(groups, binary)
    noise = 1e-9 * np.abs(values).max()
    if not design.bounded and high - low <= noise:
        reason = note("clusters_equal" if np.ptp(values) > noise and not within else "all_equal")
        return described._replace(warning=reason + lost)
    cautious = design.bounded and not binary and not within and np.ptp(groups.means) <= noise
    warning = note("cautious", what="values") if cautious else warning
    return described._replace(low=float(low), high=float(high), warning=warning + lost)


def too_few(n: int, count: int, clustered: bool = False) -> Notes:
    """Return why n values in `count` independent units have no interval; empty where they have one."""
    if n and count > 1:
        return Notes()
    return note("no_values" if not n else "one_cluster" if clustered or n > 1 else "one_value")


def _unrepeated(sizes: np.ndarray) -> Notes:
    repeated = int((sizes > 1).sum())
    if not repeated:
        return note("never_repeated", why=": nothing tells how its runs vary")
    return note("one_repeated") if repeated == 1 < len(sizes) else Notes()


_INTERVALS: dict[str, Callable[..., Estimate]] = {
    "proportion": rate_interval,
    "score": partial(mean_interval, bounds=(0.0, 1.0)),
    "mean": mean_interval,
}
_COLUMNS = "n n_clusters estimate low high method target warning"


def estimate_by(
    frame: pd.DataFrame,
    by: str | Sequence[str],
    value: str,
    clusters: str | None = None,
    kind: Kind = "proportion",
    confidence: float = 0.95,
    *,
    target: Target = "new tasks",
    weights: Weights = "tasks",
) -> pd.DataFrame:
    """Estimate a proportion or a mean for each group of rows.

    Parameters
    ----------
    frame : DataFrame
    by : str or list of str
        Columns of the groups; a missing key is a group of its own. An empty list gives a single row for all rows.
    value : str
        Column of 0/1 values (proportion) or numbers; missing values are left out and counted in `warning`.
    clusters : str, optional
        Column of what repeats, such as the task.
    kind : {"proportion", "score", "mean"}
        `rate_interval`, `mean_interval` of values from 0 to 1, or `mean_interval` of any values.
    confidence, target, weights
        As for `rate_interval`.

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters, estimate, low, high, method, target, warning. Rows are sorted by the
        keys (categories in their order), however the rows of `frame` are ordered. A frame without rows gives a table
        without rows, with the same types.
    """
    by = [by] if isinstance(by, str) else list(by)
    check_choice("kind", kind, _INTERVALS)
    check_columns(frame, *by, value, clusters)
    if taken := [name for name in by if name in _COLUMNS.split()]:
        raise ValueError(f"can't group by {', '.join(map(repr, taken))}: the result has a column of that name")
    if by:
        groups = frame.groupby(by, sort=True, dropna=False, observed=True)
        keys, number = groups.size().reset_index()[by], groups.ngroup().to_numpy()
    else:
        keys, number = pd.DataFrame(), np.zeros(len(frame), dtype=int)
    interval = partial(_INTERVALS[kind], confidence=confidence, target=target, weights=weights)
    values, labels = numbers(frame[value]), None if clusters is None else pd.factorize(frame[clusters])[0]
    order = np.argsort(number, kind="stable")
    ends = np.flatnonzero(np.diff(number[order], append=-1)) + 1
    seen: dict[tuple[bytes, bytes], Estimate] = {}  # thousands of groups of a run or two have the same values
    estimates = []
    for start, end in pairwise([0, *ends.tolist()]):
        members = order[start:end]
        codes = None if labels is None else np.unique(labels[members], return_inverse=True)[1]  # within the group
        key = values[members].tobytes(), b"" if codes is None else codes.tobytes()
        if key not in seen:
            seen[key] = interval(values[members], codes)
        estimates.append(seen[key])
    table = pd.DataFrame(estimates, columns=list(Estimate._fields))
    return pd.concat([keys, typed(table, _COLUMNS)], axis=1)
