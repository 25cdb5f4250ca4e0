"""Batches of reports: papermill over a folder of parameter files, to pages that work offline, and their index."""

from evalkit.reports.plan import PlanError, Report, plan
from evalkit.reports.runner import Summary, run

__all__ = ["PlanError", "Report", "Summary", "plan", "run"]
