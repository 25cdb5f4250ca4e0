"""The logs of task runs, with the types of their frames and attributes."""

import pandas as pd

from evalkit.kinds.logs import Logs
from evalkit.mindcraft.tasks import TaskDefinitions


class MindcraftLogs(Logs):
    """Logs of task runs.

    Attributes
    ----------
    agents : DataFrame
        One row per agent log.
    messages, commands : DataFrame
        One row per message of the agents, and per command in these messages, read on first access.
    definitions : TaskDefinitions
        Definitions of the tasks.
    all_runs : DataFrame
        The columns run_id, model_name and task_id of the runs before `where`.
    """

    agents: pd.DataFrame
    messages: pd.DataFrame
    commands: pd.DataFrame
    definitions: TaskDefinitions
    all_runs: pd.DataFrame
