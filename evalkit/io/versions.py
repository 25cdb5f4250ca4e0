"""What results depend on besides the data: the versions of packages, and evalkit's own code."""

import hashlib
import platform
import sys
import uuid
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


def code_version(*modules: str) -> str:
    """Return evalkit's version and a hash of code, which covers changes in a checkout, too.

    Parameters
    ----------
    *modules : str
        Names of modules: their packages' code is hashed, with `evalkit.io`; without any, all of evalkit. Changes of
        code typed in, as into a notebook, can't be detected: each call returns another hash.
    """
    if any(_file_of(module) is None for module in modules):
        return f"{__version__}+{uuid.uuid4().hex[:16]}"
    return _version_of_code(modules)


@cache
def _version_of_code(modules: tuple[str, ...]) -> str:
    root = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=8)
    for place in (Path(__file__).parent, *map(_code_of, modules)) if modules else (root,):
        for path in sorted(p for p in place.rglob("*") if p.suffix in _CODE) if place.is_dir() else [place]:
            digest.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()}"


def _code_of(module: str) -> Path:
    """Return the folder of a module's package, or the file of one that has none."""
    path = _file_of(module)
    assert path is not None
    return path.parent if (path.parent / "__init__.py").exists() else path


def _file_of(module: str) -> Path | None:
    """Return the file of a module; None for code that was typed in."""
    name = getattr(sys.modules[module], "__file__", None)
    return Path(name) if name and Path(name).exists() else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
