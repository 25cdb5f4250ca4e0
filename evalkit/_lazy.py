"""Doors of packages: names that are imported when they are first used, so that importing a package stays quick."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def door(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its name.
    names : mapping of str to str
        The module of the package in which each name stands, or one of another package (``evalkit.io``); with
        ``:other`` behind it where it has another name there.
    modules : iterable of str, or mapping of str to str
        Modules that are public themselves, and where they stand if not under their own name.
    """
    places = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    public = [*names, *places]

    def find(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, _, own_name = (places.get(name) or names[name]).partition(":")
        module = import_module(place if place.startswith("evalkit.") else f"{package}.{place}")
        return module if name in places else getattr(module, own_name or name)

    return find, lambda: sorted(public), public
