"""The values of logs that runs combine, as arrays over all logs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evalkit.io import unescaped
from evalkit.mindcraft.format import EVENTS, CompletionStatus

if TYPE_CHECKING:
    import pyarrow as pa

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


def log_arrays(logs: "pa.Table", files: "pa.Table | None" = None) -> LogArrays:
    """Return the arrays of records of logs, with the files' times if these are the experiment's own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def numbers(name: str) -> Array:
        return logs[name].to_numpy()

    digest = logs["digest"].combine_chunks().dictionary_encode()
    copies = np.array([-1 if text == "" else code for code, text in enumerate(digest.dictionary.to_pylist())], int)
    statuses = pc.index_in(logs["completion_status"], pa.array(STATUSES, pa.large_string()))
    modified = np.full(len(logs), np.nan)
    if files is not None:
        modified = files["modified"].take(pc.index_in(logs["source"], files["source"])).to_numpy() / 1e9
    return LogArrays(
        unescaped(logs["source"]),
        numbers("raw_score"),
        statuses.to_numpy(),
        pc.is_valid(logs["final_system_message"]).to_numpy(),
        numbers("agent_log_processed"),
        numbers("timed_out"),
        numbers("task_start"),
        copies[digest.indices.to_numpy()] if len(logs) else np.zeros(0, int),
        flag_arrays(logs["flags"]),
        {name: numbers(name) for name in COUNTS},
        modified,
    )


def flag_arrays(flags: "pa.ChunkedArray") -> dict[str, Array]:
    """Return, for each flag that any log carries, which logs carry it."""
    import pyarrow.compute as pc

    carried, carriers = pc.list_flatten(flags), pc.list_parent_indices(flags)
    arrays = {}
    for flag in carried.unique().to_pylist():
        arrays[flag] = np.zeros(len(flags), bool)
        arrays[flag][carriers.filter(pc.equal(carried, flag)).to_numpy()] = True
    return arrays


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
