"""Make batches of reports: papermill over a folder of parameter files, offline HTML pages, and their index."""

from evalkit._lazy import door

_PLACES = {"batch": "Summary run", "planning": "PlanError plan", "report": "Report"}

__getattr__, __dir__, __all__ = door(__name__, _PLACES)
