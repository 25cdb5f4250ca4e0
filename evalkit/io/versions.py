"""What results depend on beside the data: the versions of packages, and evalkit's own code."""

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evalkit._version import __version__

PACKAGES = ("pandas", "numpy", "scipy", "statsmodels", "matplotlib", "seaborn", "msgspec", "papermill", "nbconvert")

_CODE = {".py", ".j2", ".css"}


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of evalkit, Python and the packages that decide what a report shows."""
    return {"evalkit": __version__, "Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


@cache
def code_version(*rooms: str) -> str:
    """Return evalkit's version and a hash of its code, or that of some rooms; a change in a checkout counts too."""
    root = Path(__file__).parents[1]
    digest = hashlib.blake2b(digest_size=8)
    folders = [root / room for room in rooms] or [root]
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in _CODE):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
