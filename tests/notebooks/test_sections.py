"""Findings lead to sections that their notebooks have."""

import re
from pathlib import Path

import pytest

from evalkit.reports.notebooks import read_notebook

ROOT = Path(__file__).parents[2]
ABSENT = {"trajectories": {"What more runs would decide"}}  # its findings have no link
PAGES = sorted(path for path in (ROOT / "tests/golden/expected/pages").rglob("*") if path.is_file())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.parent.name)
def test_the_section_of_each_finding_is_a_heading_of_its_notebook(page):
    answer = page.read_text("utf-8").partition("## show_answer\n")[2].partition("\ncaption: ")[0]
    sections = set(re.findall(r" \[([^\[\]]+)\]$", answer, re.MULTILINE))
    prose = [cell["source"] for cell in read_notebook(ROOT / f"notebooks/{page.parent.name}.ipynb").cells]
    headings = re.findall(r"^#{2,3} (.+)$", "\n".join(prose), re.MULTILINE)
    assert sections
    assert sections - set(headings) == ABSENT.get(page.parent.name, set())
