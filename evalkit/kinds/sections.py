"""Headings of the sections of reports that the findings of several kinds name, as the notebooks have them."""

RANKING = "Which model is best?"
PAIRS = "Pairs of models"
PLAN = "What more runs would decide"
ENDINGS = "How runs ended"
DATA_QUALITY = "Data quality"
CHECKS = "What the checks found"
JUDGES = "Rates by judges"
