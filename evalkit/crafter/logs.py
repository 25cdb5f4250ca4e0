"""The logs of session traces, with the types of their frames and attributes."""

import pandas as pd

from evalkit.crafter.assemble import Rules
from evalkit.kinds.logs import Logs


class CrafterLogs(Logs):
    """Logs of session traces.

    Attributes
    ----------
    episodes : DataFrame
        One row per trace, also as `runs`.
    events : DataFrame
        One row per event of the traces.
    achievements : DataFrame
        One row per trace and achievement.
    rules : Rules
        The weights and the way of counting that the scores follow.
    """

    episodes: pd.DataFrame
    events: pd.DataFrame
    achievements: pd.DataFrame
    rules: Rules
