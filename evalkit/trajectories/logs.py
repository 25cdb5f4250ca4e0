"""The logs of trajectories, with the types of their frames."""

import pandas as pd

from evalkit.kinds.logs import Logs


class TrajectoriesLogs(Logs):
    """Logs of trajectories.

    Attributes
    ----------
    scores : DataFrame
        One row per run and score.
    plans : DataFrame
        Numbers of planned trials.
    published : DataFrame
        Scores that the logs state over several runs.
    usage : DataFrame
        Tokens and costs by run and model.
    tools : DataFrame
        Counts of tool calls by run and tool.
    messages, tool_calls : DataFrame
        One row per message, and per call of a tool, read on first access.
    """

    scores: pd.DataFrame
    plans: pd.DataFrame
    published: pd.DataFrame
    usage: pd.DataFrame
    tools: pd.DataFrame
    messages: pd.DataFrame
    tool_calls: pd.DataFrame
