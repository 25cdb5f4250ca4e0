"""The names of the kinds of logs, built-in or from other packages. This module imports no kind and no pandas."""

import sys
from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "evalkit.kinds"  # of the entry points, which have the names of their kinds
BUILT_IN = {  # the module that defines each kind, and its line in ``evalkit --help``
    "mindcraft": ("evalkit.mindcraft.kind", "Success rates of Mindcraft task runs."),
    "crafter": ("evalkit.crafter.kind", "Scores of Crafter session traces."),
    "steps": ("evalkit.steps.kind", "Verdicts on the steps of a plan-and-execute analysis agent."),
    "trajectories": ("evalkit.trajectories.kind", "Outcomes of agents: Harbor, inspect_ai, tau2, SWE-agent, tables."),
}
TABLE_KIND = "trajectories"  # the kind of a table with a row for each run
DETECTED_LAST = ("trajectories", "mindcraft")  # logs of other kinds may look like tables, or contain such messages


def kind_names() -> list[str]:
    """List the names of all kinds, the built-in ones first.

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
    """Return the entry points by name; they are looked up again when the path of imports changes."""
    return {point.name: point for point in entry_points(group=GROUP)}
