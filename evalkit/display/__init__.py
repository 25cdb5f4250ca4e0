"""What notebooks show: figures with alt text, tables, texts from logs, headlines and provenance."""

from evalkit.display.show import (
    HEADLINE,
    TABLE,
    headline,
    publish,
    show_details,
    show_figure,
    show_sandboxed,
    show_table,
    show_text,
)
from evalkit.display.sources import provenance
from evalkit.display.style import MARKERS, PALETTE, colours, label, new_axes, new_figure, nothing_to_draw, percent_axis

__all__ = [
    "HEADLINE",
    "MARKERS",
    "PALETTE",
    "TABLE",
    "colours",
    "headline",
    "label",
    "new_axes",
    "new_figure",
    "nothing_to_draw",
    "percent_axis",
    "provenance",
    "publish",
    "show_details",
    "show_figure",
    "show_sandboxed",
    "show_table",
    "show_text",
]
