"""The names of the kinds of log, built-in and from other packages. This module imports no kind and no pandas."""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

GROUP = "evalkit.kinds"  # group of the entry points, each of which has the name of its kind


class BuiltIn(NamedTuple):
    """A built-in kind."""

    module: str  # module that defines it
    summary: str  # its line in ``evalkit --help``, also of its `Command`


BUILT_IN = {
    "mindcraft": BuiltIn("evalkit.mindcraft.kind", "Success rates of Mindcraft task runs."),
    "crafter": BuiltIn("evalkit.crafter.kind", "Scores of Crafter session traces."),
    "steps": BuiltIn("evalkit.steps.kind", "Verdicts on the steps of a plan-and-execute analysis agent."),
    "trajectories": BuiltIn(
        "evalkit.trajectories.kind", "Outcomes of agents: Harbor, inspect_ai, tau2, SWE-agent, tables."
    ),
}
TABLE_KIND = "trajectories"  # kind of a table with one row per run
DETECTED_LAST = ("trajectories", "mindcraft")  # since logs of other kinds may look like tables or Mindcraft messages


def kind_names() -> list[str]:
    """List the names of all kinds, built-in kinds first.

    Returns
    -------
    list of str
        Names.

    Examples
    --------
    >>> kinds.kind_names()[0]
    'mindcraft'
    """
    return [*BUILT_IN, *sorted(added_kinds().keys() - BUILT_IN.keys())]


def added_kinds() -> dict[str, EntryPoint]:
    """Return the entry points of the kinds that other packages add, by name."""
    return _entry_points(*sys.path)


@cache
def _entry_points(*import_path: str) -> dict[str, EntryPoint]:
    """Return the entry points by name. The cache is keyed by ``sys.path``, on which the result depends."""
    return {point.name: point for point in entry_points(group=GROUP)}
