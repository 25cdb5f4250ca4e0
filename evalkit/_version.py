"""Versions of evalkit, of its code, and of the packages that affect reports."""

import hashlib
import platform
import sys
import uuid
from functools import cache
from importlib.metadata import version
from pathlib import Path

__version__ = "0.3.0"

PACKAGES = ("pandas", "numpy", "scipy", "matplotlib", "seaborn", "msgspec", "papermill", "nbconvert")
_CODE = (".py", ".j2", ".css", ".js")
_EVALKIT = Path(__file__).parent


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of evalkit, Python and the packages that affect reports."""
    return {"evalkit": __version__, "Python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def code_version(module: str = "") -> str:
    """Return evalkit's version with a hash of its code, including changes in a checkout, and of a module's package.

    Changes to code that is in no file, as in a notebook, can't be detected: for it, each call returns a new hash.
    """
    if not module:
        return _version_of_code(_EVALKIT)
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    if not file.is_file():
        return f"{__version__}+{uuid.uuid4().hex[:16]}"
    own = file.parent if (file.parent / "__init__.py").exists() else file
    return _version_of_code(_EVALKIT if _EVALKIT in file.parents else own)


@cache
def _version_of_code(own: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for place in {_EVALKIT: 0, own: 0}:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.suffix in _CODE:
                digest.update(path.name.encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()}"
