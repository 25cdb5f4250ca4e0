"""The values of logs that runs combine, as arrays over all logs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evalkit.mindcraft.agent_log import AgentOutcome
from evalkit.mindcraft.format import EVENTS, CompletionStatus

STATUSES = tuple(CompletionStatus)
COUNTS = ("message_count", "command_count", *EVENTS)
Array = np.ndarray


class LogArrays(NamedTuple):
    """The values of logs that runs combine, one per log."""

    sources: Sequence[str]
    raw_score: Array  # NaN for none
    status: Array  # position in `STATUSES`
    has_message: Array
    processed: Array
    timed_out: Array
    start: Array  # epoch milliseconds; NaN for none
    digest: Array  # equal numbers for copies; -1 for none
    flags: Mapping[str, Array]  # those that any log carries
    counts: Mapping[str, Array]  # of `COUNTS`
    modified: Array  # epoch seconds; NaN where the files' times are not those of the experiment


def arrays_of_outcomes(outcomes: Sequence[AgentOutcome]) -> LogArrays:
    """Return the arrays of a few outcomes."""
    digests: dict[str, int] = {"": -1}
    flags = dict.fromkeys(flag for log in outcomes for flag in log["flags"])
    return LogArrays(
        [log["source"] for log in outcomes],
        np.array([log["raw_score"] for log in outcomes], float),
        np.array([STATUSES.index(CompletionStatus(log["completion_status"])) for log in outcomes], int),
        np.array([log["final_system_message"] is not None for log in outcomes], bool),
        np.array([log["agent_log_processed"] for log in outcomes], bool),
        np.array([log["timed_out"] for log in outcomes], bool),
        np.array([log["task_start"] for log in outcomes], float),
        np.array([digests.setdefault(log["digest"], len(digests)) for log in outcomes], int),
        {flag: np.array([flag in log["flags"] for log in outcomes], bool) for flag in flags},
        {name: np.array([log.get(name, log["events"].get(name, 0)) for log in outcomes], int) for name in COUNTS},
        np.full(len(outcomes), np.nan),
    )


class Segments:
    """The logs of runs, sorted by run; some runs have none."""

    def __init__(self, sizes: Array) -> None:
        self._size = len(sizes)
        self._filled = np.flatnonzero(sizes)
        self._starts = (np.cumsum(sizes) - sizes)[self._filled]

    def reduce(self, function: np.ufunc, values: Array, empty: Any) -> Array:
        """Reduce the values of each run's logs to one; `empty` for a run without any."""
        out = np.full(self._size, empty, values.dtype)
        if len(self._filled):
            out[self._filled] = function.reduceat(values, self._starts)
        return out

    def any(self, values: Array) -> Array:
        """Return for each run whether a condition holds for any of its logs."""
        return self.reduce(np.logical_or, values, empty=False)

    def first(self, holds: Array) -> Array:
        """Return the position of each run's first log for which a condition holds; -1 for none."""
        places = np.where(holds, np.arange(len(holds)), len(holds))
        firsts = self.reduce(np.minimum, places, len(holds))
        return np.where(firsts < len(holds), firsts, -1)
