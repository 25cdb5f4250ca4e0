"""Convert users' input to clean arrays."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evalkit._notes import Notes, left_out


class Clusters(NamedTuple):
    """The statistics of each cluster: its size, mean, and variance (NaN for a single value)."""

    sizes: np.ndarray
    means: np.ndarray
    variances: np.ndarray


def check_confidence(confidence: float) -> None:
    """Raise ValueError for a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is between 0 and 1, not {confidence}")


def numbers(values: Iterable[Any]) -> np.ndarray:
    """Return floats, in two dimensions for rows of numbers; what is missing is NaN."""
    given: Any = values  # pandas and NumPy accept more than their type stubs name
    if np.ndim(given) == 2:
        return pd.DataFrame(given).to_numpy(dtype="float64", na_value=np.nan)
    series = given if isinstance(given, pd.Series) else pd.Series(given if np.ndim(given) else list(given))
    return series.to_numpy(dtype="float64", na_value=np.nan)


def labels(clusters: Iterable[Any], n: int) -> np.ndarray:
    """Return the codes of n labels, as `coded` does; all missing labels have one code."""
    series = pd.Series(list(clusters), dtype="object")
    if len(series) != n:
        raise ValueError(f"{n} values, but {len(series)} cluster labels")
    return coded(series)[0]


def coded(labels: pd.Series) -> tuple[np.ndarray, list]:
    """Return codes 0, 1, ... of labels in the order of their texts, and the labels in this order.

    Random functions then give the same figures whatever the order of the rows.
    """
    codes, labels_seen = pd.factorize(labels, use_na_sentinel=False)
    order = np.array(sorted(range(len(labels_seen)), key=lambda i: str(labels_seen[i])), dtype=int)
    return np.argsort(order)[codes], [labels_seen[i] for i in order]


def clean(values: Iterable[Any], clusters: Iterable[Any] | None) -> tuple[np.ndarray, np.ndarray, Notes]:
    """Return the finite values (or rows of them), the codes of their clusters and what was left out.

    Without clusters, each value has its own code.
    """
    values = numbers(values)
    finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    codes = np.arange(len(values)) if clusters is None else labels(clusters, len(values))
    codes = np.unique(codes[finite], return_inverse=True)[1]
    return values[finite], codes, left_out(len(values) - int(finite.sum()), "value")


def by_cluster(values: np.ndarray, codes: np.ndarray) -> Clusters:
    """Return sizes, means and variances of the clusters 0, 1, ... of values."""
    sizes = np.bincount(codes)
    means = np.bincount(codes, weights=values) / sizes
    squares = np.bincount(codes, weights=(values - means[codes]) ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Clusters(sizes, means, np.where(sizes > 1, squares / (sizes - 1), np.nan))


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise ValueError for a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}: {' or '.join(map(repr, choices))}")


def check_bounds(values: np.ndarray, bounds: tuple[float, float]) -> None:
    """Raise ValueError for impossible bounds, and for values beyond them."""
    least, most = bounds
    if not least < most:
        raise ValueError(f"bounds are the least and the largest value, not {bounds}")
    if ((values < least) | (values > most)).any():
        raise ValueError(f"values beyond the bounds {bounds}")


_TYPES = {
    "int64": "k n n_clusters n_runs n_tasks rank_high rank_low tested",
    "bool": "behind_first decided equivalent on_front ties_with_first",
    "str": "correction dominated_by measure method model model_a model_b target verdict",
    "object": "warning",
}
_TYPE_OF = {name: kind for kind, names in _TYPES.items() for name in names.split()}


def typed(table: pd.DataFrame, columns: str = "") -> pd.DataFrame:
    """Select the columns named, or all; each gets the type that goes with its name, and the others are of floats."""
    names = columns.split() or [str(name) for name in table]
    return table[names].astype({name: _TYPE_OF.get(name, "float64") for name in names})
