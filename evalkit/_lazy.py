"""Lazy imports of packages: public names are imported on first use, so that importing a package is fast."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def door(
    package: str, places: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    `places` names what each module of the package makes public, separated by spaces (``name=other`` for one that has
    another name there), `modules` those that are public themselves.
    """
    entries = [(place, *entry.partition("=")[::2]) for place, names in places.items() for entry in names.split()]
    public = {name: (place, other or name) for place, name, other in entries}
    public |= {name: (name, "") for name in modules}

    def find(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, attribute = public[name]
        module = import_module(place if place.startswith("evalkit.") else f"{package}.{place}")
        return getattr(module, attribute) if attribute else module

    return find, lambda: sorted(public), list(public)
