"""From numbers to the logs behind them: pages of runs, of two runs side by side, and links to these."""

from importlib import import_module
from typing import Any

_WHERE = {
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

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'evalkit.evidence' has no attribute {name!r}")
    return getattr(import_module(f"evalkit.evidence.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
