from .batch import Summary as Summary
from .batch import run as run
from .planning import PlanError as PlanError
from .planning import plan as plan
from .report import Report as Report
