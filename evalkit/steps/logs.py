"""The logs of execution histories, with the types of their frames and attributes."""

import pandas as pd

from evalkit.kinds.logs import Logs
from evalkit.steps.judge import History


class StepsLogs(Logs):
    """Logs of execution histories.

    Attributes
    ----------
    steps : DataFrame
        One row per step.
    checks : DataFrame
        One row per step and check.
    results : DataFrame
        One row per number or name in the results of steps.
    histories : list of History
        The histories, with their records and evaluations.
    """

    steps: pd.DataFrame
    checks: pd.DataFrame
    results: pd.DataFrame
    histories: list[History]
