"""What links on a page refer to: tables, fixed parts of the page, headings, and the sections of a notebook."""

import re
from collections.abc import Mapping
from typing import Any

ALL_RUNS = "all-runs"  # the table of all runs in a report
ALL_PAIRS = "all-pairs"  # the table of pairs of runs with opposite outcomes
PAGE = ("failed", "show-code", "show-contents", "evalkit-script")  # fixed parts of every report's page
RESERVED = (ALL_RUNS, ALL_PAIRS, *PAGE)  # ids that no heading may have
_SECTION = "section:"  # prefix of the tags that contain keys of sections


def heading_anchor(heading: str) -> str:
    """Return the id of a heading on a report's page. The page appends a number if headings are equal."""
    return re.sub(r"[^\w-]+", "-", heading.lower()).strip("-") or "section"


def section_keys(cell: Mapping[str, Any]) -> list[str]:
    """Return the keys of the section whose heading is in a cell of a notebook: those of its tags ``section:KEY``."""
    if cell.get("cell_type") != "markdown":
        return []
    tags = cell.get("metadata", {}).get("tags")
    texts = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return [tag.removeprefix(_SECTION) for tag in texts if tag.startswith(_SECTION)]
