"""The columns that the first table of every kind has, so that runs of any kind can be compared."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalkit.io.frames import Column, frame_of
from evalkit.kinds.registry import LogKind

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RUN_COLUMNS = (
    Column("run_id", "str", "stable name of the run, made of its kind, source and repetition"),
    Column("kind", "str", "kind of the logs"),
    Column("source", "str", "path of the run's file or folder"),
    Column("model_name", "str", "the model that ran; unknown where nothing tells"),
    Column("model_source", "str", "where the model's name comes from"),
    Column("experiment", "str", "what the run is a part of"),
    Column("task_id", "str", "what was to be done"),
    Column("task_type", "str", "kind of task"),
    Column("repetition", "int?", "number of the repetition, from 0"),
    Column("seed", "str", "seed of the run's randomness"),
    Column("status", "str", "how the run ended"),
    Column("score", "float", "what the run reached"),
    Column("is_successful", "bool?", "the run did what it was to do"),
    Column("started", "time", "when the run began"),
    Column("duration", "float", "how long it took", "seconds"),
    Column("turns", "int?", "turns, messages or steps", "count"),
    Column("tokens_in", "int?", "tokens that models read", "tokens"),
    Column("tokens_out", "int?", "tokens that models wrote", "tokens"),
    Column("cost", "float", "what the run cost", "US dollars"),
    Column("flags", "list", "what is doubtful about the run"),
)
_NAMES = frozenset(column.name for column in RUN_COLUMNS)


def run_columns(*own: Column, score: str = "") -> tuple[Column, ...]:
    """Give the columns of a first table: the common ones, the score's unit named, then a kind's own."""
    common = (column._replace(unit=score) if column.name == "score" else column for column in RUN_COLUMNS)
    return (*common, *own)


def run_ids(kind: str, *keys: Iterable[object]) -> list[str]:
    """Make stable names of runs.

    Parameters
    ----------
    kind : str
        Its first letter begins every name.
    *keys : iterable
        What tells one run from another, such as the absolute paths and repetitions; of one length.

    Returns
    -------
    list of str
        As in ``m-3f9a51c07e21``.
    """
    import hashlib  # here, as it would slow the start of commands that need no frames

    digests = (
        hashlib.blake2b("\0".join(map(str, key)).encode(errors="surrogatepass"), digest_size=6)
        for key in zip(*keys, strict=True)
    )
    return [f"{kind[0]}-{digest.hexdigest()}" for digest in digests]


def as_frame(kind: LogKind, name: str, records: "pa.Table") -> "pd.DataFrame":
    """Make a frame of a table of records; common columns of runs that a kind does not record are filled in."""
    columns: Sequence[Column] = kind.tables[name]
    n = len(records)
    values = {column: records[column] for column in records.column_names}
    if name == kind.runs:
        sources = records["source"].to_pylist()
        numbers: dict[str, int] = {}
        places = [
            numbers[source] for source in sources if numbers.update({source: numbers.get(source, -1) + 1}) is None
        ]
        values |= {"run_id": run_ids(kind.name, sources, places), "kind": [kind.name] * n}
        values.setdefault("model_name", ["unknown"] * n)
        values.setdefault("flags", [[] for _ in range(n)])
        values |= {column: [None] * n for column in _NAMES - values.keys()}
    return frame_of({column.name: values[column.name] for column in columns}, columns)
