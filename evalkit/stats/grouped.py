"""One estimate per group of rows of a frame."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
import pandas as pd

from evalkit._names import check_columns
from evalkit.stats._inputs import check_choice, numbers, typed
from evalkit.stats.intervals import Estimate, Target, Weights, mean_interval, rate_interval

Kind = Literal["proportion", "score", "mean"]

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
    confidence : float
    target, weights
        As for `rate_interval`.

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters, estimate, low, high, method, target, warning. Rows are sorted by the
        keys (categories in their order), however the rows of `frame` are ordered. A frame without rows gives a table
        without rows, with the same types.

    Raises
    ------
    ValueError
        For an unknown kind, an unknown column, or a column of `by` named like one of the result.
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
