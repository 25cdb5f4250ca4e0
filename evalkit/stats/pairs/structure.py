"""Find which models share tasks, and whether the verdicts on their pairs fit one order."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from evalkit._notes import Notes, note


class Structure(NamedTuple):
    """The structure of a table of pairs.

    Attributes
    ----------
    groups : tuple of tuple of str
        Models that share tasks, directly or through others; models of different groups can't be compared.
    unshared : tuple of tuple of str
        Pairs of one group that share no task.
    cycles : tuple of tuple of str
        Models of which each is better than the next, and the last better than the first.
    warning : Notes
        Why there is no order of all models; false where there is one.
    """

    groups: tuple[tuple[str, ...], ...]
    unshared: tuple[tuple[str, str], ...]
    cycles: tuple[tuple[str, ...], ...]
    warning: Notes


def pair_structure(pairs: pd.DataFrame) -> Structure:
    """Find disjoint groups of models and cycles among the decided pairs.

    A cycle can only come from pairs that were compared on different tasks, or from models that suit different tasks:
    no order of its models is right.

    Parameters
    ----------
    pairs : DataFrame
        As `compare_all` returns it.

    Returns
    -------
    Structure
        One shortest cycle for each set of models that are in cycles with each other.
    """
    models = list(dict.fromkeys([*pairs["model_a"], *pairs["model_b"]]))
    number = {name: i for i, name in enumerate(models)}
    a, b = (pairs[column].map(number).to_numpy(dtype=int) for column in ("model_a", "model_b"))
    shared = (pairs["n_tasks"] > 0).to_numpy()
    group_of = components(a[shared], b[shared], len(models))
    groups = tuple(tuple(models[i] for i in np.flatnonzero(group_of == g)) for g in range(group_of.max(initial=-1) + 1))
    apart = np.flatnonzero(~shared & (group_of[a] == group_of[b]))
    unshared = tuple((models[a[i]], models[b[i]]) for i in apart)
    decided = pairs["decided"].to_numpy(bool)
    ahead = (pairs["estimate"] > 0).to_numpy()
    better, worse = np.where(ahead, a, b)[decided], np.where(ahead, b, a)[decided]
    cycles = tuple(tuple(models[i] for i in cycle) for cycle in _cycles(better, worse, len(models)))
    notes = sum((note("cycle", models=[*cycle, cycle[0]]) for cycle in cycles), Notes())
    notes += note("sets", sets=groups) if len(groups) > 1 else Notes()
    notes += note("unshared", pairs=unshared) if unshared else Notes()
    return Structure(groups, unshared, cycles, notes)


def components(start: np.ndarray, end: np.ndarray, count: int, directed: bool = False) -> np.ndarray:
    """Return the number of the (strongly) connected component of each of `count` nodes, given edges."""
    if not count:
        return np.empty(0, dtype=int)
    graph = csr_array((np.ones(len(start)), (start, end)), shape=(count, count))
    return connected_components(graph, directed=directed, connection="strong")[1]


def _cycles(better: np.ndarray, worse: np.ndarray, count: int) -> list[list[int]]:
    """Return a shortest cycle of each strongly connected component of more than one model."""
    component = components(better, worse, count, directed=True)
    within = component[better] == component[worse]
    if not within.any():
        return []
    graph = csr_array((np.ones(len(better)), (better, worse)), shape=(count, count))
    steps, before = shortest_path(graph, "D", unweighted=True, return_predecessors=True)
    better, worse, cycles = better[within], worse[within], []
    for number in np.unique(component[better]):
        edges = component[better] == number
        # each edge from better to worse closes a cycle with the shortest way back
        ways = zip(steps[worse[edges], better[edges]], better[edges], worse[edges], strict=True)
        _, end, start = min(ways)
        cycle = [int(end)]
        while cycle[0] != start:
            cycle.insert(0, int(before[start, cycle[0]]))
        first = cycle.index(min(cycle))
        cycles.append(cycle[first:] + cycle[:first])
    return sorted(cycles)
