"""Each finding names a section by its key, and its notebook has a heading with this key."""

import re
from pathlib import Path

import pytest

from evalkit.display.anchors import section_keys
from evalkit.reports.notebooks import read_notebook

ROOT = Path(__file__).parents[2]
ABSENT = {"trajectories": {"plan"}}  # its findings have no link
PAGES = sorted(path for path in (ROOT / "tests/golden/expected/pages").rglob("*") if path.is_file())


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.parent.name)
def test_the_section_of_each_finding_has_a_heading_in_its_notebook(page):
    answer = page.read_text("utf-8").partition("## show_answer\n")[2].partition("\ncaption: ")[0]
    sections = set(re.findall(r" \[([^\[\]]+)\]$", answer, re.MULTILINE))
    cells = read_notebook(ROOT / f"notebooks/{page.parent.name}.ipynb").cells
    assert sections
    keys = [key for cell in cells if re.match("##+ ", cell["source"]) for key in section_keys(cell)]
    missing = sections.difference(keys)
    assert missing == ABSENT.get(page.parent.name, set()), f"no heading has the tag section:KEY for {missing}"
    assert len(keys) == len(set(keys)), "a key has one heading"
