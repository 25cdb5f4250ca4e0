"""A release: one version, one citation, a typed package."""

import re
from datetime import date
from pathlib import Path

import yaml

from evalkit import __version__

ROOT = Path(__file__).parents[1]


def test_the_version_is_semantic_and_stands_in_one_place():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in text
    assert not re.search(r"^version\s*=", text, re.MULTILINE)


def test_the_citation_and_the_changelog_are_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__
    assert isinstance(citation["date-released"], date)
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
