"""Ids of elements on a report's page that links refer to: tables, fixed parts of the page, and headings."""

import re

ALL_RUNS = "all-runs"  # the table of all runs in a report
ALL_PAIRS = "all-pairs"  # the table of pairs of runs with opposite outcomes
PAGE = ("failed", "show-code", "show-contents", "evalkit-script")  # fixed parts of every report's page
RESERVED = (ALL_RUNS, ALL_PAIRS, *PAGE)  # ids that no heading may have


def heading_anchor(heading: str) -> str:
    """Return the id of a heading on a report's page. The page appends a number if headings are equal."""
    return re.sub(r"[^\w-]+", "-", heading.lower()).strip("-") or "section"
