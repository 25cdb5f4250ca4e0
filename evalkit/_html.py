"""Render HTML from evalkit's templates. All text is escaped, and a page runs only its own script."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from evalkit.io.text import plain

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Any:
    """Return the Jinja2 environment of all templates."""
    from jinja2 import Environment, FileSystemLoader  # takes 0.1 s to import, and most commands print only text

    created = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    created.filters.update(link=quote, plain=plain)
    return created


def render(template: str, **values: Any) -> str:
    """Render a template; all values are escaped, except those marked as safe."""
    return environment().get_template(template).render(values)


def render_macro(template: str, macro: str, *values: Any) -> str:
    """Render one macro of a template; its values are escaped as in `render`."""
    return str(getattr(environment().get_template(template).module, macro)(*values))


def render_page(template: str, script: str, style: str, **values: Any) -> str:
    """Render a page with its script and style sheet, and a policy that allows no other script."""
    policy = policy_of(script)
    return render(template, script=Markup(script), style=Markup(asset(style)), policy=policy, **values)


@cache
def asset(name: str) -> str:
    """Return the text of a script or style sheet in the folder of templates."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


def policy_of(script: str) -> str:
    """Return a content security policy that blocks all requests and allows only this script, by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    others = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
    return f"{others}; script-src 'sha256-{digest}'"
