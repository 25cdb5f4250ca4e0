"""One estimate per group of rows of a frame."""

from collections.abc import Sequence
from typing import Literal

import pandas as pd

from evalkit.stats.intervals import Estimate, mean_interval, rate_interval

Kind = Literal["proportion", "mean"]

_INTERVALS = {"proportion": rate_interval, "mean": mean_interval}
_DTYPES = {
    "n": "int64",
    "n_clusters": "int64",
    "estimate": "float64",
    "low": "float64",
    "high": "float64",
    "method": "str",
    "warning": "str",
}


def estimate_by(
    frame: pd.DataFrame,
    by: str | Sequence[str],
    value: str,
    clusters: str | None = None,
    kind: Kind = "proportion",
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Estimate a proportion or a mean for each group of rows.

    Parameters
    ----------
    frame : DataFrame
    by : str or list of str
        Columns of the groups; a missing key is a group of its own. An empty list gives one row for all rows.
    value : str
        Column of 0/1 values (proportion) or numbers (mean); missing values are left out and named in `warning`.
    clusters : str, optional
        Column of what repeats, such as the task.
    kind : {"proportion", "mean"}
        `rate_interval` or `mean_interval`.
    confidence : float

    Returns
    -------
    DataFrame
        The columns of `by`, then n, n_clusters, estimate, low, high, method, warning. Rows are sorted by the keys
        (categories in their order), however the rows of `frame` are ordered. No rows in, none out, with the same types.

    Raises
    ------
    ValueError
        For an unknown kind, an unknown column, or a column of `by` named like one of the result.
    """
    by = [by] if isinstance(by, str) else list(by)
    _check(frame, by, value, clusters, kind)
    interval = _INTERVALS[kind]
    if by:
        groups = frame.groupby(by, sort=True, dropna=False, observed=True)
        keys = groups.size().reset_index()[by]
        parts = [part for _, part in groups]
    else:
        keys, parts = pd.DataFrame(), [frame] if len(frame) else []
    rows = [interval(part[value], None if clusters is None else part[clusters], confidence) for part in parts]
    estimates = pd.DataFrame(rows, columns=list(Estimate._fields)).astype(_DTYPES)
    return pd.concat([keys, estimates[list(_DTYPES)]], axis=1)


def _check(frame: pd.DataFrame, by: list[str], value: str, clusters: str | None, kind: str) -> None:
    if kind not in _INTERVALS:
        raise ValueError(f"unknown kind {kind!r}: {' or '.join(map(repr, _INTERVALS))}")
    wanted = [*by, value, *([clusters] if clusters is not None else [])]
    if missing := [name for name in wanted if name not in frame]:
        raise ValueError(f"no column {', '.join(map(repr, missing))} in a frame with {', '.join(map(repr, frame))}")
    if taken := [name for name in by if name in _DTYPES]:
        raise ValueError(f"can't group by {', '.join(map(repr, taken))}: the result has a column of that name")
