"""The site builds without a warning, its links hold, and it asks no other host for anything."""

import importlib
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from evalkit.kinds import RUN_COLUMNS, kind_named

ROOT = Path(__file__).parents[2]
pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src"}
HOOKS = runpy.run_path(str(ROOT / "docs/hooks.py"))
# mkdocs in a process without ruff, which would be started for each of 200 signatures to break it into lines
MKDOCS = """
import sys

sys.modules["ruff"] = None
from mkdocs.__main__ import cli

cli(prog_name="mkdocs")
"""
RELATIONS = {"stylesheet", "preload", "preconnect", "icon", "modulepreload", "dns-prefetch"}


class Loaded(HTMLParser):
    """Lists the addresses that a page loads."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        relations = set((given.get("rel") or "").split())
        if tag in LOADED and (tag != "link" or relations & RELATIONS):
            self.addresses.append(given.get(LOADED[tag]) or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site without the pages of its gallery, which are the sample reports, and with each signature in one line."""
    folder = tmp_path_factory.mktemp("site")
    path = os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "EVALKIT_GALLERY": "off", "PYTHONPATH": path}
    command = [sys.executable, "-c", MKDOCS, "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=250)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert loaded.addresses, page
        for address in loaded.addresses:
            assert not re.match(r"(https?:)?//", address), (page, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import\s+['\"]?|url\(\s*['\"]?)(https?:)?//", sheet.read_text("utf-8")), sheet


@pytest.mark.slow
def test_the_reference_names_every_public_function_and_every_column(site):
    for package in HOOKS["PACKAGES"]:
        module = importlib.import_module(f"evalkit.{package}".rstrip("."))
        api = (site / f"reference/api/{module.__name__}.html").read_text("utf-8")
        for name in HOOKS["public_names"](module.__name__):
            assert re.search(rf"\b{name}\b", api), (package, name)
    columns = (site / "reference/columns.html").read_text("utf-8")
    for column in (*RUN_COLUMNS, *(c for rows in kind_named("crafter").tables.values() for c in rows)):
        assert f"<code>{column.name}</code>" in columns


def test_the_gallery_links_to_the_reports_and_runs_that_are_made_for_it(monkeypatch, tmp_path):
    report, view = Mock(**{"return_value.failed": []}), Mock()
    monkeypatch.setattr("evalkit.reports.run", report)
    monkeypatch.setattr("evalkit.evidence.write_view", view)
    HOOKS["on_post_build"]({"site_dir": tmp_path})
    made = {report.call_args.kwargs["output"] / f"{one.key}.html" for one in report.call_args.args[0]}
    made |= {call.args[2] / "index.html" for call in view.call_args_list}
    links = re.findall('href="(gallery-[^"]+)"', HOOKS["gallery"]())
    assert {tmp_path / link for link in links} == made | {tmp_path / "gallery-reports/index.html"}


def test_the_readme_links_to_every_page_of_the_navigation_under_the_same_heading():
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    sections = {name: pages for entry in config["nav"] for name, pages in entry.items() if isinstance(pages, list)}
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("Tutorials", "How-to guides", "Reference", "Explanation"):
        item = re.search(rf"(?ms)^- \*\*{name}\*\*(.*?)(?=^- \*\*|^\S|\Z)", readme)
        assert item, name
        written = [page for page in sections[name] if (ROOT / "docs" / page).exists()]
        assert re.findall(r"\]\(docs/([\w/-]+\.md)\)", item[1]) == written, name
