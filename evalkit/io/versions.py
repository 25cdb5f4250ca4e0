"""What results depend on beside the data: the versions of packages, and evalkit's own code."""

import hashlib
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evalkit._version import __version__

PACKAGES = ("pandas", "numpy", "scipy", "statsmodels", "matplotlib", "seaborn", "msgspec", "papermill", "nbconvert")

_CODE = {".py", ".j2", ".css", ".js"}


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of evalkit, Python and the packages that decide what a report shows."""
    return {"evalkit": __version__, "Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


@cache
def code_version(*modules: str) -> str:
    """Return evalkit's version and a hash of code; a change in a checkout counts too.

    Parameters
    ----------
    *modules : str
        Names of modules: their packages' code counts, with `evalkit.io`; none means all of evalkit.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=8)
    for place in (Path(__file__).parent, *map(_code_of, modules)) if modules else (root,):
        for path in sorted(p for p in place.rglob("*") if p.suffix in _CODE) if place.is_dir() else [place]:
            if not path.exists():  # code that was typed in
                continue
            digest.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()}"


def _code_of(module: str) -> Path:
    """Give the folder of a module's package, or the file of one that has none."""
    path = Path(sys.modules[module].__file__ or "")
    return path.parent if (path.parent / "__init__.py").exists() else path


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
