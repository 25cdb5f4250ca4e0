"""Display functions for notebooks: figures with alt text, tables, log text, headlines and provenance."""

from evalkit.display import plots
from evalkit.display.marks import attach
from evalkit.display.provenance import provenance
from evalkit.display.show import (
    FIGURE,
    FINDINGS,
    HEADLINE,
    TABLE,
    headline,
    publish,
    show_details,
    show_figure,
    show_findings,
    show_sandboxed,
    show_table,
    show_text,
)
from evalkit.display.style import (
    MARKERS,
    PALETTE,
    TONES,
    Look,
    colours,
    label,
    labels,
    looks,
    new_axes,
    new_figure,
    nothing_to_draw,
    percent_axis,
)
from evalkit.display.words import (
    describe_curves,
    describe_estimates,
    describe_heatmap,
    describe_shares,
    describe_strips,
    describe_timeline,
    describe_value,
    format_interval,
)

__all__ = [
    "FIGURE", "FINDINGS", "HEADLINE", "MARKERS", "PALETTE", "TABLE", "TONES", "Look", "attach", "colours",
    "describe_curves", "describe_estimates", "describe_heatmap", "describe_shares", "describe_strips",
    "describe_timeline", "describe_value", "format_interval", "headline", "label", "labels", "looks", "new_axes",
    "new_figure", "nothing_to_draw", "percent_axis", "plots", "provenance", "publish", "show_details",
    "show_figure", "show_findings", "show_sandboxed", "show_table", "show_text",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
