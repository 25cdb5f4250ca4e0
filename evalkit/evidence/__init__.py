"""Evidence for numbers: pages of runs, pages of two runs side by side, and links to them."""

from evalkit._lazy import door

_PLACES = {
    "links": "EVIDENCE LIMIT VARIABLE read_handed_over show_pairs show_runs",
    "leads": "Evidence",
    "references": "MODES PairRef RunList RunRef page_name reference",
    "alignment": "align first_difference",
    "site": "write_pages write_view",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
