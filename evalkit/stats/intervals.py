"""Intervals for one proportion, mean or smooth statistic, plain or robust to clusters such as runs of a task; by group.

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
from evalkit.stats import formulas
from evalkit.stats.formulas import CONFIDENCE
from evalkit.stats.inputs import by_cluster, check_choice, clean, numbers, typed

Target = Literal["new tasks", "these tasks"]
Kind = Literal["proportion", "score", "mean"]

NEW_VALUES = "new values"  # the target where values are independent

# where an interval may hold the truth less often than it says, and warns (docs/coverage.md has the figures)
FEW_VALUES, RARE = 15, 3  # values of a proportion; its successes, or failures
FEW_CLUSTERS, FEW_SCORES, FEW_LEFT_OUT = 5, 12, 50  # of rates and means, of scores from 0 to 1, of the jackknife
FEW = note("few", fewest=FEW_CLUSTERS, what="independent values")


class Estimate(NamedTuple):
    """An estimate with its interval, in the unit of the values (a share for proportions); NaN where there is none."""

    estimate: float
    low: float
    high: float
    n: int  # values used
    n_clusters: int  # independent units: clusters, or `n` where the values are taken as independent
    method: str
    target: str = NEW_VALUES  # what is estimated: "new tasks" like these, "these tasks" run again, or "new values"
    warning: Notes = Notes()  # what is doubtful about the interval, false where nothing is; ``str(warning)`` says it


def proportion_interval(successes: int, n: int) -> Estimate:
    """Estimate a proportion from counts of independent trials; `rate_interval` does from 0/1 values, with clusters.

    By Wilson's score interval (1927). Of no trials all is NaN.
    """
    if not (float(n).is_integer() and float(successes).is_integer() and 0 <= successes <= n):
        raise ValueError(f"{successes} successes of {n} can't be: need whole numbers, 0 <= successes <= n")
    n, successes = int(n), int(successes)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0, 0, "wilson", warning=note("no_values"))
    warning = Notes()
    if n < FEW_VALUES:
        warning = note("few", fewest=FEW_VALUES, what="values")
    elif 0 < min(successes, n - successes) <= RARE:
        warning = note("rare", most=RARE)
    low, high = map(float, formulas.wilson(successes / n, n))
    return Estimate(successes / n, low, high, n, n, "wilson", warning=warning)


def rate_interval(
    values: Iterable[Any], clusters: Iterable[Any] | None = None, *, target: Target = "new tasks"
) -> Estimate:
    """Estimate a proportion from 0/1 values, which may repeat within clusters such as tasks.

    Wilson's interval; with clusters on the effective n, the number of independent trials with the same variance
    (docs/statistics.md). With one value per cluster both are the same. `clusters` has one label per value; values
    without a label are one cluster. The `target` says whether the interval holds the rate on new clusters like these,
    or on these very clusters if each were run again, which needs clusters with several values and is narrower. No
    bounds for new tasks from a single cluster, nor for these tasks where none has several values.
    """
    return _interval(values, clusters, target, is_rate=True, is_bounded=True)


def mean_interval(
    values: Iterable[Any],
    clusters: Iterable[Any] | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    target: Target = "new tasks",
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Estimate a mean of values, which may repeat within clusters such as tasks; arguments as for `rate_interval`.

    Values without bounds: Student's t over values, or over the means of clusters, from 5 on with Hall's correction for
    skewness; no interval for a single value or cluster, nor where nothing varies. With `bounds`, the least and the
    largest possible value: Wilson's interval on the effective n, as for rates, which has bounds even where all values
    are equal.
    """
    if bounds is None:
        return _interval(values, clusters, target, is_rate=False, is_bounded=False, confidence=confidence)
    least, width = bounds[0], bounds[1] - bounds[0]
    scaled = (numbers(values) - least) / width
    if ((scaled < 0) | (scaled > 1))[np.isfinite(scaled)].any():
        raise ValueError(f"values beyond the bounds {bounds}")
    found = _interval(scaled, clusters, target, is_rate=False, is_bounded=True, confidence=confidence)
    estimate, low, high = (float(least + width * end) for end in found[:3])
    return found._replace(estimate=estimate, low=low, high=high)


def _interval(
    values: Any, clusters: Any, target: str, *, is_rate: bool, is_bounded: bool, confidence: float = CONFIDENCE
) -> Estimate:
    """Estimate a rate, or the mean of values, which lie from 0 to 1 if they are bounded."""
    check_choice("target", target, get_args(Target))
    is_clustered, within = clusters is not None, target == "these tasks"
    if within and not is_clustered:
        raise ValueError("an estimate for these tasks needs to know them: give clusters")
    known, codes, lost = clean(values, clusters)
    n, count = len(known), int(codes.max(initial=-1)) + 1
    if is_rate and not np.isin(known, (0.0, 1.0)).all():
        raise ValueError("a rate needs 0/1 values; use mean_interval for others")
    if is_rate and (not is_clustered or (not within and 1 < n == count)):
        plain = proportion_interval(int(known.sum()), n)
        return plain._replace(warning=plain.warning + lost, target=target if is_clustered else NEW_VALUES)
    family = "wilson" if is_bounded else "t"
    hall = ", Hall's correction" if not is_bounded and count >= formulas.HALL_FROM else ""
    if within:
        method = f"{family} within tasks"
    elif is_clustered:
        method = f"cluster {family}{hall}"
    else:
        method = "wilson, effective n" if is_bounded else f"t{hall}"
    result = Estimate(math.nan, math.nan, math.nan, n, count, method, target if is_clustered else NEW_VALUES)
    if n == 0:
        return result._replace(warning=note("no_values") + lost)
    sizes, means, variances = by_cluster(known, codes)
    mean = means.mean()
    result = result._replace(estimate=float(mean))
    reason, repeated = too_few(n, count, is_clustered), int((sizes > 1).sum())
    if within and repeated < 2:
        never = note("never_repeated", why=": nothing tells how its runs vary")
        reason = never if not repeated else note("one_repeated") if count > 1 else Notes()
    elif within:
        reason = Notes()
    if reason:
        return result._replace(warning=reason + lost)
    binary = bool(np.isin(known, (0.0, 1.0)).all())
    if within:
        warning = of_repetitions(sizes)
        if is_bounded:
            low, high = formulas.bounded_within(means, variances, sizes, confidence)
        else:
            low, high = formulas.by_t(mean, *formulas.within_tasks(variances, sizes, 0.0), confidence)
    else:
        warning = Notes()
        if is_bounded and not binary and count < FEW_SCORES:
            warning = note("few_scores", fewest=FEW_SCORES)
        elif count < FEW_CLUSTERS:
            warning = FEW
        elif is_bounded and binary:
            warning = note("unmixed", most=formulas.RARE_CLUSTERS) if formulas.unmixed(means) else warning
        elif formulas.skewed(means):
            warning = note("skewed")
        if is_bounded:
            low, high = formulas.bounded(means, sizes, binary, confidence)
        else:
            low, high = formulas.corrected_t(means, confidence)
    noise = 1e-9 * np.abs(known).max()
    if not is_bounded and high - low <= noise:
        reason = note("clusters_equal" if np.ptp(known) > noise and not within else "all_equal")
        return result._replace(warning=reason + lost)
    if is_bounded and not binary and not within and np.ptp(means) <= noise:
        warning = note("cautious", what="values")
    return result._replace(low=float(low), high=float(high), warning=warning + lost)


def too_few(n: int, count: int, clustered: bool = False) -> Notes:
    """Return why n values in `count` independent units have no interval; empty where they have one."""
    if n and count > 1:
        return Notes()
    return note("no_values" if not n else "one_cluster" if clustered or n > 1 else "one_value")


def of_repetitions(sizes: np.ndarray) -> Notes:
    """Return the warnings about an estimate for repetitions of the same tasks."""
    repeated = int((sizes > 1).sum())
    if repeated == len(sizes):
        return Notes()
    few = note("few", fewest=FEW_CLUSTERS, what="tasks were run more than once")
    return few if repeated < FEW_CLUSTERS else note("singles")


def jackknife_interval(
    values: Iterable[Any],
    statistic: Callable[[np.ndarray], float],
    clusters: Iterable[Any] | None = None,
) -> Estimate:
    """Estimate a smooth statistic by leaving out one value, or one cluster, at a time (Tukey 1958).

    `values` are numbers, or rows of k numbers; those with a missing one are left out. The `statistic` takes an array
    like `values`, with fewer rows, and returns a number; it is called C + 1 times. The interval is Student's t of the
    pseudo-values, with C − 1 degrees of freedom: around the statistic corrected for its bias, so that it need not be
    centred on the estimate. If there is a scale, such as a logarithm, on which the statistic is about linear in means,
    pass it on that scale and transform the result. No bounds for a single cluster, nor where leaving out changes
    nothing.
    """
    values, codes, lost = clean(values, clusters)
    n, count = len(values), int(codes.max(initial=-1)) + 1
    estimate = float(statistic(values)) if n else math.nan
    method, target = ("jackknife t", NEW_VALUES) if clusters is None else ("cluster jackknife t", "new tasks")
    result = Estimate(estimate, math.nan, math.nan, n, count, method, target, too_few(n, count) + lost)
    if math.isnan(estimate) or count < 2:
        return result
    without = np.array([float(statistic(values[codes != i])) for i in range(count)])
    pseudo = count * estimate - (count - 1) * without
    low, high = map(float, formulas.by_t(pseudo.mean(), formulas.variance_of_mean(pseudo), count - 1))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return result._replace(warning=note("degenerate") + lost)
    few = note("few_for", what="jackknife", fewest=FEW_LEFT_OUT) if count < FEW_LEFT_OUT else Notes()
    return result._replace(low=low, high=high, warning=few + lost)


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
    *,
    target: Target = "new tasks",
) -> pd.DataFrame:
    """Estimate a proportion or a mean for each group of rows.

    `by` are the columns of the groups (a missing key is a group of its own; an empty list gives a single row for all),
    `value` the column of 0/1 values or numbers, `clusters` that of what repeats, such as the task. `kind` is
    "proportion" (`rate_interval`), "score" (`mean_interval` of values from 0 to 1) or "mean".

    The table has the columns of `by`, then n, n_clusters, estimate, low, high, method, target, warning. Rows are sorted
    by the keys (categories in their order), whatever the order in `frame`, which may have none.
    """
    by = [by] if isinstance(by, str) else list(by)
    check_choice("kind", kind, _INTERVALS)
    check_columns(frame, *by, value, clusters)
    if taken := set(by).intersection(_COLUMNS.split()):
        raise ValueError(f"can't group by {', '.join(map(repr, sorted(taken)))}: the result has a column of that name")
    if by:
        groups = frame.groupby(by, sort=True, dropna=False, observed=True)
        keys, number = groups.size().reset_index()[by], groups.ngroup().to_numpy()
    else:
        keys, number = pd.DataFrame(), np.zeros(len(frame), dtype=int)
    interval = partial(_INTERVALS[kind], target=target)
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
