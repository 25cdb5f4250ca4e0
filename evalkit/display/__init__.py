"""Display functions for notebooks: figures with alt text, tables, log text, headlines and provenance."""

from evalkit._lazy import door

_PLACES = {
    "drawing": "alt_of attach set_alt",
    "inputs": "provenance",
    "show": (
        "FIGURE FINDINGS HEADLINE TABLE headline publish show_answer show_details show_figure show_findings "
        "show_table show_text"
    ),
    "style": ("MARKERS PALETTE TONES Look keep_looks looks new_axes new_figure nothing_to_draw percent_axis"),
    "evalkit._words": "format_interval",
    "words": "describe_curves describe_estimates headline_text pair_text text_of",
}

__getattr__, __dir__, __all__ = door(__name__, _PLACES, ["plots"])
