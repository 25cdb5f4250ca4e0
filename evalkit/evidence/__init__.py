"""Evidence for numbers: pages of runs, pages of two runs side by side, and links to them."""

from evalkit._lazy import door

_NAMES = {
    "EVIDENCE": "links",
    "Evidence": "leads",
    "LIMIT": "links",
    "MODES": "references",
    "PairRef": "references",
    "RunList": "references",
    "RunRef": "references",
    "align": "alignment",
    "first_difference": "alignment",
    "VARIABLE": "links",
    "page_name": "references",
    "read_handed_over": "links",
    "reference": "references",
    "show_pairs": "links",
    "show_runs": "links",
    "write_pages": "site",
    "write_view": "site",
}

__getattr__, __dir__, __all__ = door(__name__, _NAMES)
