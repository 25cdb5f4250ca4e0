"""`LogKind` describes a kind of log as data and pure functions.

All kinds share the code for everything else: loading, collecting, following, showing, comparing, reports, commands.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import pandas as pd
import pyarrow as pa

from evalkit._notes import Notes
from evalkit._text import did_you_mean
from evalkit.io.frames import FRAME_DTYPES, RECORD_DTYPES, SOURCE, Column, Entry, Status
from evalkit.io.read import Excerpt
from evalkit.io.sources import Listing
from evalkit.kinds.detectors import Detector
from evalkit.kinds.options import COMMON, Option
from evalkit.kinds.turns import Transcript

if TYPE_CHECKING:
    from evalkit.kinds.logs import Logs

OwnLogs = Any  # the logs of the kind, as `Logs` or as the class `LogKind.logs`

RUN_COLUMNS = (
    Column("run_id", "str", "stable id of the run, from its kind, source and repetition"),
    Column("kind", "category", "kind of log"),
    Column("source", "str", "path of the run's file or folder"),
    Column("model_name", "name", "the model that ran, or unknown"),
    Column("model_source", "str", "where the model name comes from"),
    Column("experiment", "name", "experiment that the run belongs to"),
    Column("task_id", "name", "task of the run"),
    Column("task_type", "name", "type of task"),
    Column("repetition", "int?", "number of the repetition, from 0"),
    Column("seed", "name", "random seed of the run"),
    Column("status", "name", "how the run ended"),
    Column("score", "float", "score of the run"),
    Column("is_successful", "bool?", "whether the run succeeded"),
    Column("success_rate", "float", "is_successful as a number; its mean is a rate over runs"),
    Column("started", "time", "start of the run"),
    Column("duration", "float", "duration of the run", "seconds"),
    Column("turns", "int?", "turns, messages or steps", "count"),
    Column("tokens_in", "int?", "input tokens of all model calls", "tokens"),
    Column("tokens_out", "int?", "output tokens of all model calls", "tokens"),
    Column("cost", "float", "cost of the run", "US dollars"),
    Column("run_flags", "list", "flags of the run"),
)

Outcome = Literal["success", "failure", "not measured", "running"]  # result of a run


def run_columns(*own: Column, score: str = "") -> tuple[Column, ...]:
    """Return the columns of the first table of a kind: the common columns, then the columns of the kind.

    Parameters
    ----------
    *own : Column
        Columns that only this kind has.
    score : str
        Unit of the score.

    Returns
    -------
    tuple of Column
        The columns.

    Examples
    --------
    >>> kinds.run_columns(score="points")[0].name
    'run_id'
    """
    common = (column._replace(unit=score) if column.name == "score" else column for column in RUN_COLUMNS)
    return (*common, *own)


def _check(name: object, allowed: Collection[str], what: str) -> None:
    """Raise ValueError if a name is not one of the allowed names."""
    if name not in allowed:
        raise ValueError(f"{what} {name!r}; {did_you_mean(str(name), allowed, cutoff=0.4)}")


class Parsed(NamedTuple):
    """The parsed contents of one file."""

    status: Status  # used: a log of this kind; skipped: another file; failed: a log that can't be read
    reason: str = ""  # why the file was skipped or failed; for a damaged file that is used, what was recovered
    rows: Mapping[str, Sequence[tuple]] = {}  # by table of records: rows in the order of its columns, without `source`


def failed(path: str, reason: str) -> Parsed:
    """Return the parsed contents of a file that failed: no rows."""
    return Parsed("failed", reason)


class Records(NamedTuple):
    """The parsed contents of all files of a source."""

    tables: dict[str, pa.Table]  # by name in `LogKind.records`, with the column `source`, in the order of the files
    files: pa.Table  # one row per file; see `evalkit.io.store.FILES`
    listing: Listing  # paths of the files


class Assembled(NamedTuple):
    """The frames assembled from records."""

    frames: dict[str, pd.DataFrame]  # by name in `LogKind.tables`
    notes: Sequence[Entry] = ()  # ledger entries that replace the status and reason of their files
    attributes: Mapping[str, Any] = {}  # additional attributes of `Logs`
    lazy: Mapping[str, Callable[[], pd.DataFrame]] = {}  # functions that build frames on first access
    chosen: Notes = Notes()  # choices that evalkit made because logs do not: columns, scorers, conditions


class RunFiles(NamedTuple):
    """The files of a run's transcript."""

    paths: Sequence[str]
    part: str = ""  # identifies one of several runs in a file, such as the thread of a checkpoint
    facts: Sequence[tuple[str, str]] = ()  # additional facts from the frames: name and text, such as the scorer


def own_file(logs: "Logs", run: Mapping[str, Any]) -> RunFiles:
    """Return the file of a run, for kinds with one file per run: its `source`."""
    return RunFiles([run["source"]])


@dataclass(frozen=True, kw_only=True)
class FileRules:
    """Which files of a source are read."""

    pattern: str = "*"  # glob for the names of files
    accepts: Callable[[str], str] | None = None  # (path): why the file need not be read; "" if it must be read
    context: Callable[[Sequence[str]], Iterable[str]] | None = None  # (paths): files above the source that describe it
    companions: Callable[[str], Sequence[str]] | None = None  # (path): files that change with it, as a database's log
    excerpt: Excerpt | None = None  # extracts what `parse` needs from a large file; it parses like the whole file
    excerpted: tuple[str, ...] = ()  # endings of the names of files from which only the excerpt is read


@dataclass(frozen=True, kw_only=True)
class RateRules:
    """How runs count in rates."""

    # outcome of each status, for runs whose `is_successful` is missing: a time-out is a failure of the agent. Other
    # statuses, such as a crashed server or an unreadable log, mean that the run was not measured
    outcome_of: Mapping[str, Outcome] = field(default_factory=dict)
    # runs in the denominator of the main rate: measured runs, or all runs, so that unmeasured runs count as failures
    denominator: Literal["measured", "all"] = "measured"
    conditions: Sequence[str] = ()  # columns that must be equal for runs of a task to be comparable, as a turn limit
    task_conditions: Sequence[str] = ()  # the conditions that the task defines, so that a run can't choose them
    # columns of settings, such as the temperature; the leaderboard warns if models differ in one
    reported_settings: Sequence[str] = ()
    task_of: Callable[[pd.DataFrame], pd.Series] = lambda runs: runs["task_id"]  # equal for repetitions of a task
    # what runs on several tasks share, such as a trained checkpoint; NA if the seed is not a property of the model
    seed_of: Callable[[pd.DataFrame], pd.Series] = lambda runs: runs["seed"]
    excluding_flags: Sequence[str] = ()  # flags that exclude runs from all rates, such as a copy of another run
    lower_bounds: Sequence[str] = ()  # columns, such as turns, that undercount because logs keep only the last part

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown outcome or denominator."""
        for status, outcome in self.outcome_of.items():
            _check(outcome, get_args(Outcome), f"outcome_of: status {status!r} has no outcome")
        _check(self.denominator, ("measured", "all"), "denominator: there is no denominator")
        for name in self.task_conditions:
            _check(name, self.conditions, "task_conditions: the conditions do not include")


@dataclass(frozen=True, kw_only=True)
class Command:
    """The command ``evalkit NAME``. Fields that are not given have a default that works for any kind."""

    summary: str = ""  # one line for ``evalkit --help``; by default the title
    help: str = ""  # text for ``evalkit NAME --help``
    views: Sequence[Option] = ()  # options that change only what the command prints
    describe: Callable[[OwnLogs, Mapping[str, Any]], Iterable[Any]] | None = None  # (Logs, views): parts of the text
    # (Snapshot, options and views): the text with --follow, and whether there is nothing left to wait for
    progress: Callable[[Any, Mapping[str, Any]], tuple[str, bool]] | None = None


@dataclass(frozen=True, kw_only=True)
class LogKind:
    """One kind of log: the contents of its files, how they become frames, and how runs are counted and shown.

    Raises ValueError if it names a type, a table, a column or a flag that does not exist.
    """

    name: str  # name in ``evalkit NAME``; letters and digits
    title: str  # name of one log file, such as ``Crafter session trace``
    records: Mapping[str, Sequence[Column]]  # stored columns of a file, by table; evalkit adds `source`
    # (path, bytes): parses one file, and depends on nothing else; a file for which it raises an exception has failed
    parse: Callable[[str, bytes], Parsed]
    # (first bytes of a file): the title if it is a log, the title of another file of this kind, either of these with
    # the name of the format, or "" for any other file
    recognises: Callable[[bytes], str | tuple[str, str]]
    # (path, reason): contents of a file that failed, with rows if its name shows that it is a log; called only if
    # `parse` returned no rows
    unreadable: Callable[[str, str], Parsed] = failed
    # tables of records in which logs have rows, by default the first; a file without rows in them only describes logs
    log_records: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)  # by title of files that are not logs: what reads them
    files: FileRules = FileRules()
    # columns of the frames that `assemble` builds; by default, there is a frame for each table of records. The first
    # frame has one row per run, and also has the common columns `RUN_COLUMNS`
    tables: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    runs: str = field(init=False)  # name of the first of `tables`
    lazy_tables: Mapping[str, Sequence[Column]] = field(default_factory=dict)  # frames that are built on first access
    logs: "type[Logs] | None" = None  # subclass that declares the types of frames and attributes; by default `Logs`
    options: Sequence[Option] = ()  # options of `assemble`
    settings: Sequence[str] = ()  # additional options that only Python code can pass
    defaults: Mapping[str, Any] = field(init=False)  # defaults of these options and the options of every kind
    # checks options and loads the files that they name, before any log is read
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    # builds the frames; by default, each table of records becomes the frame of the same name
    assemble: Callable[[Records, Mapping[str, Any]], Assembled] | None = None
    rates: RateRules = RateRules()
    planned: Callable[[OwnLogs], Sequence[str]] = lambda logs: ()  # tasks that each model should run, if logs list them
    # (Logs, runs): these runs, and the planned runs that are absent, as failures with the status ``missing``
    over_planned: Callable[[OwnLogs, pd.DataFrame], pd.DataFrame] | None = None
    flags: Mapping[str, str] = field(default_factory=dict)  # flags of runs and their meanings, for tables of counts
    labels: Mapping[str, str] = field(default_factory=dict)  # names of statuses, flags and columns in tables
    # (paths, read, part): builds the transcript of a run from its files, which `read` returns as bytes. `part` is only
    # passed if `run_files` sets it. An AttributeError, IndexError, KeyError, TypeError or ValueError means that a file
    # is broken
    transcript: Callable[..., Transcript] | None = None
    # (Logs, run): the files of a row of the first table
    run_files: Callable[[OwnLogs, Mapping[str, Any]], RunFiles] = own_file
    scorer: str = ""  # what the scores are, for logs that do not name a scorer
    # detectors of events for this kind only; they follow the detectors for every kind
    detectors: Sequence[Detector] = ()
    # events that make a run a failure, for kinds whose logs never record success
    failure_events: Sequence[str] = ()
    command: Command = Command()

    def __post_init__(self) -> None:
        """Derive fields from others: by default, the columns of frames follow from the columns of records."""
        tables = dict(self.tables)
        if not tables:
            (runs, first), *others = self.records.items()
            tables = {runs: first, **{name: (SOURCE, *columns) for name, columns in others}}
        runs, first = next(iter(tables.items()))
        common = {column.name for column in RUN_COLUMNS}
        unit = next((column.unit for column in first if column.name == "score"), "")
        tables[runs] = run_columns(*(column for column in first if column.name not in common), score=unit)
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "log_records", self.log_records or tuple(self.records)[:1])
        object.__setattr__(self, "runs", runs)
        object.__setattr__(self, "defaults", {option.name: option.default for option in (*self.options, *COMMON)})
        self._check_names()

    def _check_names(self) -> None:
        """Raise ValueError for a name that does not exist: a rate would otherwise leave out runs silently."""
        typed = [(table, columns, RECORD_DTYPES) for table, columns in self.records.items()]
        typed += [
            (table, columns, FRAME_DTYPES) for table, columns in (*self.tables.items(), *self.lazy_tables.items())
        ]
        for table, columns, dtypes in typed:
            for column in columns:
                what = f"kind {self.name}: column {column.name!r} of {table!r}: there is no type"
                _check(column.dtype, dtypes, what)
        for name, reserved in (("files", self.records), ("ledger", self.tables)):
            if name in reserved:
                raise ValueError(f"kind {self.name}: evalkit has a table {name!r} of its own; give yours another name")
        for option in self.options:
            if option.name in {common.name for common in COMMON}:
                raise ValueError(f"kind {self.name}: every kind has an option {option.name!r}; give yours another name")
        for name in self.log_records:
            _check(name, self.records, f"kind {self.name}: log_records: there is no table")
        if self.assemble is None:  # then each frame is a table of records
            for table, columns in self.tables.items():
                _check(table, self.records, f"kind {self.name}: tables: without `assemble`, there is no frame")
                known = [SOURCE.name, *(column.name for column in self.records[table])]
                if table == self.runs:
                    known += [column.name for column in RUN_COLUMNS]
                for column in columns:
                    what = f"kind {self.name}: tables: without `assemble`, {table!r} has no column"
                    _check(column.name, known, what)
        of_runs = [column.name for column in self.tables[self.runs]]
        for field_name in ("conditions", "reported_settings", "lower_bounds"):
            for name in getattr(self.rates, field_name):
                _check(name, of_runs, f"kind {self.name}: {field_name}: runs have no column")
        if self.flags:
            for name in self.rates.excluding_flags:
                _check(name, self.flags, f"kind {self.name}: excluding_flags: runs have no flag")

    @property
    def summary(self) -> str:
        """One line for ``evalkit --help``."""
        return self.command.summary or self.title
