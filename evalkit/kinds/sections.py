"""Headings of report sections that findings of several kinds refer to. They equal the headings in the notebooks."""

RANKING = "Which model is best?"
PAIRS = "Pairs of models"
PLAN = "What more runs would decide"
ENDINGS = "How runs ended"
DATA_QUALITY = "Data quality"
CHECKS = "What the checks found"
JUDGES = "Rates by judges"
