"""The registry of kinds of logs, those of evalkit and those that other packages add, and the options that all have.

A package adds a kind by an entry point of the group ``evalkit.kinds``, whose name is that of the kind.
"""

import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit._words import did_you_mean
from evalkit.io.paths import SourceError

if TYPE_CHECKING:  # a kind is pickled by its name
    from evalkit.kinds.kind import LogKind

GROUP = "evalkit.kinds"
BUILT_IN = {  # where each is defined, and its line in ``evalkit --help``, which imports none of them
    "mindcraft": ("evalkit.mindcraft.kind", "Success rates of Mindcraft task runs."),
    "crafter": ("evalkit.crafter.kind", "Scores of Crafter session traces."),
    "steps": ("evalkit.steps.kind", "Verdicts on the steps of a plan-and-execute analysis agent."),
    "trajectories": ("evalkit.trajectories.kind", "Outcomes of agents: Harbor, inspect_ai, tau2, SWE-agent, tables."),
}


class Option(NamedTuple):
    """An option; its name is that of the argument."""

    name: str
    type: type | tuple[str, ...]  # of the value, or all values there are
    default: Any
    help: str
    metavar: str = ""
    many: bool = False  # several values; the default is ()
    short: str = ""  # a letter, or another word, for the command line
    followed: bool = True  # of a view: whether it also applies with --follow
    regroups: bool = False  # of a view: whether it asks for other groups than models, of which none is said to be best


_WHERE = "Only runs with this value, also >=, <=, <, >, !=; may be repeated."
COMMON = (
    Option("rename", str, (), "Read model OLD as NEW; may be repeated.", "OLD=NEW", many=True),
    Option("model", str, "", "The model of runs whose logs name none.", "NAME"),
    Option("where", str, (), _WHERE, "COLUMN=VALUE", many=True),
    Option("cluster", str, "", "Column of the families of tasks, where tasks are variants of few.", "COLUMN"),
)


def kind_names() -> list[str]:
    """List the names of all kinds: those of evalkit, then those of other packages."""
    return [*BUILT_IN, *sorted(_entry_points(*sys.path).keys() - BUILT_IN.keys())]


def kind_named(name: str) -> "LogKind":
    """Return a kind by its name; SourceError if there is none, or its package can't be imported."""
    if name in BUILT_IN:
        return import_module(BUILT_IN[name][0]).KIND
    points = _entry_points(*sys.path)
    if name not in points:
        raise SourceError(f"no kind of logs is called {name!r}; {did_you_mean(name, kind_names())}")
    try:
        kind = points[name].load()
        if kind.name != name:
            raise ValueError(f"it calls itself {kind.name!r}")
    except Exception as error:  # of another package
        raise SourceError(f"kind {name}: {points[name].value}: {type(error).__name__}: {error}") from error
    return kind


def all_kinds() -> list["LogKind"]:
    """Return all kinds, but those of other packages that can't be imported."""
    kinds = []
    for name in kind_names():
        with suppress(SourceError):
            kinds.append(kind_named(name))
    return kinds


def all_labels() -> dict[str, str]:
    """Return what statuses, flags and columns of all kinds are called."""
    return {name: label for kind in all_kinds() for name, label in kind.labels.items()}


@cache
def _entry_points(*folders: str) -> dict[str, EntryPoint]:
    """Return the entry points of other packages by name; `folders`, the path of imports, decides what there is."""
    return {point.name: point for point in entry_points(group=GROUP)}
