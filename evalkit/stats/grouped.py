"""One estimate per group of rows of a frame."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import pandas as pd

from evalkit.stats._inputs import check_choice, check_columns
from evalkit.stats.intervals import Estimate, Target, Weights, mean_interval, rate_interval

Kind = Literal["proportion", "score", "mean"]

_INTERVALS: dict[str, Callable[..., Estimate]] = {
    "proportion": rate_interval,
    "score": partial(mean_interval, bounds=(0.0, 1.0)),
    "mean": mean_interval,
}
_DTYPES = {
    "n": "int64",
    "n_clusters": "int64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "method": "str",
    "target": "str",
    "warning": "str",
}


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
        Columns of the groups; a missing key is a group of its own. An empty list gives one row for all rows.
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
        keys (categories in their order), however the rows of `frame` are ordered. No rows in, none out, with the same
        types.

    Raises
    ------
    ValueError
        For an unknown kind, an unknown column, or a column of `by` named like one of the result.
    """
    by = [by] if isinstance(by, str) else list(by)
    check_choice("kind", kind, _INTERVALS)
    check_columns(frame, *by, value, clusters)
    if taken := [name for name in by if name in _DTYPES]:
        raise ValueError(f"can't group by {', '.join(map(repr, taken))}: the result has a column of that name")
    if by:
        groups = frame.groupby(by, sort=True, dropna=False, observed=True)
        keys = groups.size().reset_index()[by]
        parts = [part for _, part in groups]
    else:
        keys, parts = pd.DataFrame(), [frame] if len(frame) else []
    interval = partial(_INTERVALS[kind], confidence=confidence, target=target, weights=weights)
    rows = [interval(part[value], None if clusters is None else part[clusters]) for part in parts]
    estimates = pd.DataFrame(rows, columns=list(Estimate._fields)).astype(_DTYPES)
    return pd.concat([keys, estimates[list(_DTYPES)]], axis=1)
