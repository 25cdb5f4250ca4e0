"""The ids within a page that links name: of tables, of the page's own parts, and of headings."""

import re

ALL_RUNS = "all-runs"  # the table of the runs behind a report
ALL_PAIRS = "all-pairs"  # the table of pairs of runs with opposite outcomes
PAGE = ("failed", "show-code", "show-contents", "evalkit-script")  # parts of every report's page
RESERVED = (ALL_RUNS, ALL_PAIRS, *PAGE)  # no heading has these


def heading_anchor(heading: str) -> str:
    """Return the id of a heading on a report's page; a page numbers equal headings."""
    return re.sub(r"[^\w-]+", "-", heading.lower()).strip("-") or "section"
