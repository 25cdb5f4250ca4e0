"""The registry of kinds of log. It imports a kind when its name is requested."""

import copyreg
from contextlib import suppress
from importlib import import_module

from evalkit._text import did_you_mean
from evalkit.io.paths import SourceError
from evalkit.kinds.kind import LogKind
from evalkit.kinds.names import BUILT_IN, added_kinds, kind_names

_USED: dict[str, LogKind] = {}  # by name: kinds whose logs this process has loaded, since they may not be installed


def remember(kind: LogKind) -> None:
    """Make `kind_named` find a kind in this process, even if it is not installed."""
    _USED[kind.name] = kind


def kind_named(name: str) -> LogKind:
    """Return the kind with a name.

    Parameters
    ----------
    name : str
        Name of the kind, such as ``mindcraft``.

    Returns
    -------
    LogKind
        The kind.

    Raises
    ------
    SourceError
        If there is no such kind, or its package can't be imported. A kind that is not installed is known only in
        processes that have loaded its logs.

    Examples
    --------
    >>> kinds.kind_named("crafter").title
    'Crafter session trace'
    """
    if name in BUILT_IN:
        return import_module(BUILT_IN[name].module).KIND
    added = added_kinds()
    if name not in added:
        if name in _USED:
            return _USED[name]
        hint = did_you_mean(name, kind_names())
        uninstalled = "a kind that is not installed is known once its logs are loaded with its `LogKind`"
        raise SourceError(f"no kind of log is named {name!r}; {hint} ({uninstalled})")
    try:
        kind = added[name].load()
        if kind.name != name:
            raise ValueError(f"it calls itself {kind.name!r}")
    except Exception as error:  # raised by another package
        raise SourceError(f"kind {name}: {added[name].value}: {type(error).__name__}: {error}") from error
    return kind


def all_kinds() -> list[LogKind]:
    """Return all kinds, except kinds of other packages that can't be imported."""
    kinds = []
    for name in kind_names():
        with suppress(SourceError):
            kinds.append(kind_named(name))
    return kinds


def all_labels() -> dict[str, str]:
    """Return the labels of the statuses, flags and columns of all kinds."""
    return {name: label for kind in all_kinds() for name, label in kind.labels.items()}


# pickle a kind as its name, because its functions may be lambdas
copyreg.pickle(LogKind, lambda kind: (kind_named, (kind.name,)))
