"""The content security policy of pages: no requests, and no script but their own."""

import base64
import hashlib
from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"

# No request to any host and no other script, whatever text from a log, or a library's HTML, attempts
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"


@cache
def script(name: str) -> str:
    """Return one of the package's own scripts, as embedded in a page."""
    return (TEMPLATES / "evalkit" / name).read_text(encoding="utf-8")


def policy_of(code: str) -> str:
    """Return the content security policy of a page that runs one script, known by its hash, and no other."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"{_POLICY}; script-src 'sha256-{digest}'"
