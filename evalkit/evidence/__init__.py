"""Evidence for numbers: pages of runs, pages of two runs side by side, and links to them."""

from evalkit._lazy import door

_PLACES = {
    "links": "EVIDENCE Evidence show_pairs show_runs",
    "references": "PairRef RunList RunRef page_name read_references reference",
    "site": "write_pages write_view",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
