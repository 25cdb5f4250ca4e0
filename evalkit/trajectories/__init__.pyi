from . import analysis as analysis
from . import figures as figures
from .kind import KIND as KIND
from .kind import collect as collect
from .kind import load as load
from .kind import runs_df as runs_df
from .logs import TrajectoriesLogs as TrajectoriesLogs
