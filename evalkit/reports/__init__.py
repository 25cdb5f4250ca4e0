"""Make batches of reports: papermill over a folder of parameter files, offline HTML pages, and their index."""

from evalkit.reports.batch import Summary, run
from evalkit.reports.job import Report
from evalkit.reports.planning.plan import PlanError, plan

__all__ = ["PlanError", "Report", "Summary", "plan", "run"]


def __dir__() -> list[str]:
    return sorted(__all__)
