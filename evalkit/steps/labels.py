"""Names that tell histories apart: the shortest path, and the thread of a checkpoint."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from evalkit.io.frames import whole
from evalkit.steps.jsonable import unique_key

_SEPARATOR = re.compile(f"[{re.escape(os.sep)}/]+")


def unique_labels(histories: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Name histories that are shown together, each differently.

    Parameters
    ----------
    histories : iterable of (source, thread)
        What a history is known by: the path of its file, and its thread in a checkpoint (else empty).

    Returns
    -------
    dict
        Maps each pair to the shortest end of its path that no other file has, and its thread: ``h.json``,
        ``run_07/h.json``, ``c.sqlite · thread-1``. What is not UTF-8 in it is written out.
    """
    pairs = list(dict.fromkeys(histories))
    paths = shortest_paths(source for source, _ in pairs)
    taken: dict[str, tuple[str, str]] = {}
    for source, thread in pairs:
        label = whole(f"{paths[source]} · {thread}" if thread else paths[source])
        taken[unique_key(taken, label)] = (source, thread)
    return {pair: label for label, pair in taken.items()}


def shortest_paths(paths: Iterable[str]) -> dict[str, str]:
    """Map each path to its shortest end, in whole parts, that no other of these paths has."""
    ends: dict[str, Iterator[str]] = {path: _ends(path) for path in paths}
    found: dict[str, str] = {}
    while ends:
        tried = {path: next(rest) for path, rest in ends.items()}
        counts = Counter(tried.values())
        for path, end in tried.items():
            if counts[end] == 1 or end == path:
                found[path] = end
                del ends[path]
    return found


def _ends(path: str) -> Iterator[str]:
    """Give the last part of a path, the last two, and so on up to all of it."""
    starts = [match.end() for match in _SEPARATOR.finditer(path) if 0 < match.end() < len(path)]
    yield from (path[start:] for start in reversed(starts))
    yield path
