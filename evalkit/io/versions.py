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
_EVALKIT = Path(__file__).parents[1]


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of evalkit, Python and the packages that decide what a report shows."""
    versions = {"evalkit": __version__, "Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def code_version(*modules: str) -> str:
    """Return evalkit's version and a hash of the code of some modules' packages and `evalkit.io`, or of all of evalkit.

    It covers changes in a checkout, too. Changes of code typed in, as into a notebook, can't be detected: each call
    returns another hash.
    """
    files = [getattr(sys.modules[module], "__file__", None) for module in modules]
    if not all(name and Path(name).exists() for name in files):
        return f"{__version__}+{uuid.uuid4().hex[:16]}"
    return _version_of_code(*map(str, files))


@cache
def _version_of_code(*files: str) -> str:
    packages = [path.parent if (path.parent / "__init__.py").exists() else path for path in map(Path, files)]
    digest = hashlib.blake2b(digest_size=8)
    for place in (_EVALKIT / "io", *packages) if files else (_EVALKIT,):
        for path in sorted(p for p in place.rglob("*") if p.suffix in _CODE) if place.is_dir() else [place]:
            digest.update(path.relative_to(place.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()}"
