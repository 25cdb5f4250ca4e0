"""Lazy imports of packages: public names are imported on first use, so that importing a package is fast."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def door(
    package: str, names: Mapping[str, str], modules: Mapping[str, str] | Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    names : mapping of str to str
        The module of the package that defines each name, or one of another package (``evalkit.io``); followed by
        ``:other`` if it has another name there.
    modules : iterable of str, or mapping of str to str
        Modules that are public themselves, with their place if it differs from their name.
    """
    places = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    public = [*names, *places]

    def find(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, _, attribute = (places.get(name) or names[name]).partition(":")
        module = import_module(place if place.startswith("evalkit.") else f"{package}.{place}")
        return module if name in places else getattr(module, attribute or name)

    return find, lambda: sorted(public), public


def later(place: str) -> Callable[..., Any]:
    """Return a function that is imported on its first call, such as ``evalkit.crafter.terminal:describe``."""
    module, _, name = place.partition(":")
    return lambda *arguments: getattr(import_module(module), name)(*arguments)
