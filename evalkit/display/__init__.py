"""Display functions for notebooks: figures with alt text, tables, log text, headlines and provenance."""

from evalkit._lazy import door

_PLACES = {
    "drawing": (
        "MARKERS PALETTE TONES Look alt_of attach keep_looks looks new_axes nothing_to_draw percent_axis set_alt "
        "with_zero"
    ),
    "inputs": "provenance",
    "show": (
        "FIGURE FINDINGS HEADLINE TABLE headline publish show_answer show_details show_figure show_findings "
        "show_table show_text"
    ),
    "evalkit._words": "format_interval",
    "plots": "describe_curves describe_estimates",
    "words": "headline_text pair_text finding_text",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["plots"])
