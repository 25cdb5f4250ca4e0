"""`LogKind`: a kind of log as data and pure functions.

Everything else (loading, collecting, following, showing, comparing, reports, commands) is written once for all kinds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa

from evalkit._notes import Notes
from evalkit.io.frames import SOURCE, Column, Entry, Status
from evalkit.io.read import Excerpt
from evalkit.io.sources import Listing
from evalkit.kinds.options import COMMON, Option

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

Outcome = Literal["success", "failure", "not measured", "running"]  # what became of a run


def run_columns(*own: Column, score: str = "") -> tuple[Column, ...]:
    """Return the columns of the first table of a kind: the common ones, then its own.

    Parameters
    ----------
    *own : Column
        Columns of the kind.
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


class Parsed(NamedTuple):
    """The parsed contents of one file."""

    status: Status  # a log of this kind is used, something else skipped, a log that can't be read has failed
    reason: str = ""  # why it was skipped or failed; for a used file, what was recovered
    rows: Mapping[str, Sequence[tuple]] = {}  # of tables of records, in the order of the columns, without `source`


def failed(path: str, reason: str) -> Parsed:
    """Return a file without rows that has failed."""
    return Parsed("failed", reason)


class Records(NamedTuple):
    """The parsed contents of all files of a source."""

    tables: dict[str, pa.Table]  # as `LogKind.records` names them, with `source`, in the order of the files
    files: pa.Table  # one row per file; see `evalkit.io.store.FILES`
    listing: Listing  # where the files are


class Assembled(NamedTuple):
    """The frames assembled from records."""

    frames: dict[str, pd.DataFrame]  # as `LogKind.tables` names them
    notes: Sequence[Entry] = ()  # ledger entries that replace the files' own status and reason
    attributes: Mapping[str, Any] = {}  # further ones of `Logs`
    lazy: Mapping[str, Callable[[], pd.DataFrame]] = {}  # build frames on first access, with the storage options
    chosen: Notes = Notes()  # what was chosen where logs leave it open: columns, scorers, conditions


class RunFiles(NamedTuple):
    """The files of a run's transcript."""

    paths: Sequence[str]
    part: str = ""  # which of several runs in one file, such as the thread of a checkpoint
    facts: Sequence[tuple[str, str]] = ()  # further ones from the frames, with their names: what was expected, scorer


def own_file(logs: Any, run: Mapping[str, Any]) -> RunFiles:
    """Return the file of a run that has its own: its `source`."""
    return RunFiles([run["source"]])


@dataclass(frozen=True, kw_only=True)
class FileRules:
    """Which files of a source are read."""

    pattern: str = "*"  # glob for their names
    accepts: Callable[[str], str] | None = None  # why a file need not be read, by its name; empty if it must be
    context: Callable[[Sequence[str]], Iterable[str]] | None = None  # files above the source that describe it
    companions: Callable[[str], Sequence[str]] | None = None  # files whose change is one of this, as a database's log
    excerpt: Excerpt | None = None  # takes what `parse` needs of a large file, in bytes that parse like the whole
    excerpted: tuple[str, ...] = ()  # endings of the names of files of which only that is read


@dataclass(frozen=True, kw_only=True)
class RateRules:
    """How runs count in rates."""

    # what a status means for a run whose `is_successful` is missing: a time-out is a failure of the agent, a crashed
    # server or an unreadable log is not measured, which is the default
    outcome_of: Mapping[str, Outcome] = field(default_factory=dict)
    # the runs that the leading rate counts: those measured, or all, where one not measured is no success
    denominator: Literal["measured", "all"] = "measured"
    conditions: Sequence[str] = ()  # columns that, with the task, make runs comparable, such as a budget of turns
    conditions_of: Literal["run", "task"] = "run"  # whether a run may choose its conditions, or its task states them
    # columns of settings, such as a temperature: where models differ in one, the leaderboard has a warning
    reported_settings: Sequence[str] = ()
    task_of: Callable[[pd.DataFrame], pd.Series] = lambda runs: runs["task_id"]  # so that repetitions are known
    # what runs of several tasks share, such as a trained checkpoint; NA where a seed is no property of the model
    seed_of: Callable[[pd.DataFrame], pd.Series] = lambda runs: runs["seed"]
    excluding_flags: Sequence[str] = ()  # of runs that count in no rate, such as a copy of another run
    lower_bounds: Sequence[str] = ()  # columns of what a run takes, such as turns, of which logs keep only the last


@dataclass(frozen=True, kw_only=True)
class Command:
    """The command ``evalkit NAME``; what is not given is as for any kind."""

    summary: str = ""  # one line for ``evalkit --help``; by default the title
    help: str = ""  # for ``evalkit NAME --help``
    views: Sequence[Option] = ()  # options of the text
    describe: Callable[..., Any] | None = None  # of (Logs, views): the parts of the text
    # of (Snapshot, options and views): the text with --follow, and whether all is done
    progress: Callable[..., tuple[str, bool]] | None = None


@dataclass(frozen=True, kw_only=True)
class LogKind:
    """One kind of logs: the contents of its files, how they become frames, and how these are counted and shown."""

    name: str  # as in ``evalkit NAME``; letters and digits
    title: str  # of one file, such as ``Crafter session trace``
    records: Mapping[str, Sequence[Column]]  # the stored columns of a file, by table; `source` is added
    # of (path, bytes): parses one file, and depends on nothing else; if it raises an exception, the file has failed
    parse: Callable[[str, bytes], Parsed]
    # of the first bytes of a file: the title of a log, or of another file of this kind, alone or with the name of its
    # format; empty for any other file
    recognises: Callable[[bytes], str | tuple[str, str]]
    # of (path, reason): the rows of a file that can't be read or parsed, if its name shows that it is a log
    unreadable: Callable[[str, str], Parsed] = failed
    # the tables of records that logs have rows in, by default the first; a file without rows in any only describes logs
    log_records: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)  # what reads files that are no logs, by their title
    files: FileRules = FileRules()
    # the frames that `assemble` builds; the first has one row per run, with the columns of `RUN_COLUMNS`. By default
    # one for each table of records, to which the first adds the common columns
    tables: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    runs: str = field(init=False)  # the name of the first of them
    lazy_tables: Mapping[str, Sequence[Column]] = field(default_factory=dict)  # frames that are built on first access
    options: Sequence[Option] = ()  # of `assemble`
    settings: Sequence[str] = ()  # further ones, which only programs can give
    defaults: Mapping[str, Any] = field(init=False)  # of these options and the options of every kind
    # checks options, and loads the files they name, before any log is read
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    # builds the frames; by default rows of records become rows of the frame of the same name
    assemble: Callable[[Records, Mapping[str, Any]], Assembled] | None = None
    rates: RateRules = RateRules()
    planned: Callable[[Any], Sequence[str]] = lambda logs: ()  # the tasks that each model was to run, if logs state it
    # of (Logs, runs): these runs and the planned ones that are absent, which have failed, with the status ``missing``
    over_planned: Callable[[Any, pd.DataFrame], pd.DataFrame] | None = None
    flags: Mapping[str, str] = field(default_factory=dict)  # of runs, and what each means, for tables that count them
    labels: Mapping[str, str] = field(default_factory=dict)  # what statuses, flags and columns are called in tables
    # of (paths, read, part): builds the transcript of a run from its files; `read` returns the bytes of one. A `part`
    # is given only if `run_files` names one. A ValueError, KeyError, TypeError or IndexError counts as a broken file
    transcript: Callable[..., Any] | None = None
    run_files: Callable[..., RunFiles] = own_file  # of (Logs, run): the files of a row of the first table
    # the detectors of events of this kind alone (`evalkit.kinds.Detector`), after the detectors of every kind
    detectors: Sequence[Any] = ()
    # events that make a run a failure, where logs of this kind never state success
    failure_events: Sequence[str] = ()
    command: Command = Command()

    def __post_init__(self) -> None:
        """Derive what follows from other fields: by default, the columns of the frames from columns of the records."""
        if not self.tables:
            (runs, first), *others = self.records.items()
            common = {column.name for column in RUN_COLUMNS}
            own = [column for column in first if column.name not in common]
            unit = next((column.unit for column in first if column.name == "score"), "")
            tables = {runs: run_columns(*own, score=unit)}
            tables |= {name: (SOURCE, *columns) for name, columns in others}
            object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "log_records", self.log_records or tuple(self.records)[:1])
        object.__setattr__(self, "runs", next(iter(self.tables)))
        object.__setattr__(self, "defaults", {option.name: option.default for option in (*self.options, *COMMON)})

    @property
    def summary(self) -> str:
        """One line for ``evalkit --help``."""
        return self.command.summary or self.title
