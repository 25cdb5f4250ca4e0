"""Kinds of logs: what one has to tell about its files, and the registry that finds it by name.

A kind is one `LogKind`: data and pure functions. Everything else (loading, collecting, following, showing, comparing,
reports, commands) is written once for all of them. A package adds a kind by an entry point of the group
``evalkit.kinds``, whose name is that of the kind.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit._names import nearest
from evalkit.io.frames import Column
from evalkit.io.ledger import Entry, Status
from evalkit.io.paths import SourceError
from evalkit.io.sources import Listing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from evalkit.kinds.follow import Look
    from evalkit.kinds.logs import Logs
    from evalkit.kinds.transcript import Transcript

GROUP = "evalkit.kinds"
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
BUILT_IN = {  # where each stands, and its line in ``evalkit --help``, which imports none of them
    "mindcraft": ("evalkit.mindcraft.kind", "Success rates of Mindcraft task runs."),
    "crafter": ("evalkit.crafter.kind", "Scores of Crafter session traces."),
    "steps": ("evalkit.steps.kind", "Verdicts on the steps of a plan-and-execute analysis agent."),
}


def no_companions(path: str) -> Sequence[str]:
    """Name no companions: files of most kinds stand alone."""
    return ()


class Parsed(NamedTuple):
    """What one file says.

    Attributes
    ----------
    status : {"used", "skipped", "failed"}
        Whether it is a log of this kind, something else, or a log that can't be read.
    reason : str
        Why it was skipped or failed; for a used file, what was recovered.
    rows : mapping of str to sequence of tuple
        The rows of tables of records, their values in the order of the columns (without `source`).
    """

    status: Status
    reason: str = ""
    rows: Mapping[str, Sequence[tuple]] = {}


class Records(NamedTuple):
    """What all files of a source say.

    Attributes
    ----------
    tables : dict of str to pyarrow.Table
        As `LogKind.records` names them, each with the column `source`, in the order of the files.
    files : pyarrow.Table
        A row per file; see `evalkit.io.records.FILES`.
    listing : Listing
        Where they lie; `states` tells size and time of each.
    options : mapping
        Of the kind, as they were stated when a dataset was collected.
    """

    tables: "dict[str, pa.Table]"
    files: "pa.Table"
    listing: Listing
    options: Mapping[str, Any] = {}


class Assembled(NamedTuple):
    """The frames that records make.

    Attributes
    ----------
    frames : dict of str to DataFrame
        As `LogKind.tables` names them.
    notes : sequence of Entry
        Where the ledger is to say something else than the files' own status and reason.
    more : dict
        What else `Logs` has as attributes.
    lazy : mapping of str to function
        Frames that are made when they are first asked for, by name; as `LogKind.lazy_tables` names them. A function may
        read the logs again: it is called with the storage options of `load`.
    """

    frames: "dict[str, pd.DataFrame]"
    notes: Sequence[Entry] = ()
    more: Mapping[str, Any] = {}
    lazy: Mapping[str, "Callable[[], pd.DataFrame]"] = {}


class RunFiles(NamedTuple):
    """The files that a run's transcript is made of.

    Attributes
    ----------
    paths : sequence of str
    part : str
        Which of several runs in one file, such as the thread of a checkpoint; empty where the file holds one.
    """

    paths: Sequence[str]
    part: str = ""


def own_file(logs: "Logs", run: Mapping[str, Any]) -> RunFiles:
    """Name the file of a run that has one of its own: its `source`."""
    return RunFiles([run["source"]])


class Option(NamedTuple):
    """An option of loading, for functions, commands and notebooks alike; its name is that of the argument."""

    name: str
    type: type | tuple[str, ...]  # of the value, or all values there are
    default: Any
    help: str
    metavar: str = ""
    many: bool = False  # several values: the default is ()
    short: str = ""  # a letter for the command line
    followed: bool = True  # of a view: it has a meaning with --follow too


@dataclass(frozen=True, kw_only=True)
class LogKind:
    """One kind of logs: what it is called, what its files say, and how that is shown.

    What follows `parallel_from` has a default that does for every kind; see `evalkit.kinds.terminal`. Functions that
    need pandas import it themselves, so that commands start quickly.

    Attributes
    ----------
    name : str
        As in ``evalkit NAME``; letters and digits.
    title : str
        What one file is called, such as ``Crafter session trace``.
    records : mapping of str to sequence of Column
        What is kept of a file, by table; `source` is added. The first table has a row for every log, so a source in
        which no used file has one holds no log.
    tables : mapping of str to sequence of Column
        The frames that `assemble` makes; the first has one row per run, with the columns of `RUN_COLUMNS`.
    parse : function of (path, bytes or OSError)
        Says what one file says; never raises for what a file holds, and depends on nothing else.
    recognises : function of bytes
        Says what a file is called, by its first bytes, if it is of this kind: `title`, or another of its files.
    summary, help : str
        One line for ``evalkit --help``, and what ``evalkit NAME --help`` says.
    accepts : function of path
        Says why a file is not worth reading, by its name; an empty text where it is.
    assemble : function of (Records, options)
        Makes the frames; by default rows of records become rows of the frame of the same name.
    lazy_tables : mapping of str to sequence of Column
        The frames that `assemble` leaves to be made when they are first asked for.
    options, views : sequence of Option
        What `assemble` may be told, and what the text in a terminal may be told.
    prepare : function of options
        Checks options, and loads what they name, before any log is read.
    context_files : function of paths
        Names files above the source that tell something of it; those that are not there are left out.
    companions : function of path
        Names files whose change is a change of this one, such as a database's write-ahead log.
    pattern : str
        Glob for the names of files.
    uncounted : sequence of str
        Flags of runs that count in no rate, such as those of a copy of another run.
    task_of : function of runs
        Gives what tells the task of each run, so that repetitions are known; by default `task_id`.
    chunk, parallel_from : int
        Files that are read before their rows are stored, and from how many on several processes read.
    describe : function of (Logs, views)
        Writes the answer as text for a terminal.
    glance : function of (path, options, views)
        Writes the answer of one local file, quicker than `describe` could; empty where it can't.
    progress : function of (Look, options and views)
        Writes how far a growing source is, and tells whether all that is expected is done.
    tells_expected : bool
        `progress` knows how many runs are expected also where the user does not say so.
    transcript : function of (paths, read, part)
        Makes the transcript of a run from its files; `read` gives the bytes of one. A `part` is given only where
        `run_files` names one. A ValueError, KeyError, TypeError or IndexError counts as a broken file.
    run_files : function of (Logs, run)
        Names the files of a run, which is a row of the first table; by default its `source`.
    write, suffixes, output_help
        Writes ``--output``: a function of (Logs, views, path), the endings it takes, and its line of help.
    """

    name: str
    title: str
    records: Mapping[str, Sequence[Column]]
    tables: Mapping[str, Sequence[Column]]
    parse: Callable[[str, bytes | OSError], Parsed]
    recognises: Callable[[bytes], str]
    summary: str = ""
    help: str = ""
    accepts: Callable[[str], str] = lambda path: ""
    assemble: "Callable[[Records, Mapping[str, Any]], Assembled] | None" = None
    lazy_tables: Mapping[str, Sequence[Column]] = field(default_factory=dict)
    options: Sequence[Option] = ()
    views: Sequence[Option] = ()
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda options: options
    context_files: Callable[[Sequence[str]], Iterable[str]] = lambda files: ()
    companions: Callable[[str], Sequence[str]] = no_companions
    pattern: str = "*"
    uncounted: Sequence[str] = ()
    task_of: "Callable[[pd.DataFrame], pd.Series]" = lambda runs: runs["task_id"]
    chunk: int = 10_000
    parallel_from: int = 2_000
    describe: "Callable[[Logs, Mapping[str, Any]], str] | None" = None
    glance: Callable[[str, Mapping[str, Any], Mapping[str, Any]], str] | None = None
    progress: "Callable[[Look, Mapping[str, Any]], tuple[str, bool]] | None" = None
    tells_expected: bool = False
    transcript: "Callable[..., Transcript] | None" = None
    run_files: "Callable[[Logs, Mapping[str, Any]], RunFiles]" = own_file
    write: "Callable[[Logs, Mapping[str, Any], str], None] | None" = None
    suffixes: tuple[str, ...] = (".csv", ".json", ".parquet")
    output_help: str = "Write the runs to FILE.csv, FILE.json or FILE.parquet."

    @property
    def runs(self) -> str:
        """The name of the first table, which has one row per run."""
        return next(iter(self.tables))


def kind_names() -> list[str]:
    """List the names of all kinds: those of evalkit, then those of other packages."""
    return [*BUILT_IN, *sorted(_entry_points().keys() - BUILT_IN.keys())]


def kind_named(name: str) -> LogKind:
    """Give a kind by its name.

    Raises
    ------
    SourceError
        Where there is none of that name, or its package can't be imported.
    """
    if name in BUILT_IN:
        return import_module(BUILT_IN[name][0]).KIND
    points = _entry_points()
    if name not in points:
        raise SourceError(f"no kind of logs is called {name!r}; {nearest(name, kind_names())}")
    try:
        kind = points[name].load()
    except Exception as error:  # of a package that is not ours
        raise SourceError(f"kind {name}: {points[name].value}: {type(error).__name__}: {error}") from error
    if not isinstance(kind, LogKind):
        raise SourceError(f"kind {name}: {points[name].value} is a {type(kind).__name__}, not a LogKind")
    if kind.name != name:
        raise SourceError(f"kind {name}: {points[name].value} calls itself {kind.name!r}")
    return kind


def read_options(kind: LogKind, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Read options of a kind that are given as text.

    Parameters
    ----------
    kind : LogKind
    texts : sequence of (name, value)
        An option that takes several values may stand there several times.

    Raises
    ------
    SourceError
        For an unknown name, or a value of another type.
    """
    options, values = {option.name: option for option in kind.options}, {}
    for name, text in texts:
        if name not in options:
            raise SourceError(f"{kind.name} logs have no option {name!r}; {nearest(name, options)}")
        option = options[name]
        try:
            value = _BOOLEANS[text.lower()] if option.type is bool else text
            value = option.type(value) if option.type in (int, float) else value
        except (ValueError, KeyError):
            raise SourceError(f"option {name}: {text!r} is no {option.type.__name__}") from None
        values[name] = (*values.get(name, ()), value) if option.many else value
    return values


def _entry_points() -> dict[str, Any]:
    """Give the entry points of other packages by name."""
    return _entry_points_in(tuple(sys.path))


@cache
def _entry_points_in(folders: tuple[str, ...]) -> dict[str, Any]:
    """Look for entry points; where no package has any, nothing is imported to tell so."""
    if not any(map(_declares_kinds, folders)):
        return {}
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def _declares_kinds(folder: str) -> bool:
    """Tell whether a distribution in a folder has entry points of the group: 5 ms instead of 35 for `entry_points`."""
    try:
        with os.scandir(folder or ".") as entries:
            places = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for place in places:
        try:
            with open(os.path.join(place, "entry_points.txt"), encoding="utf-8") as file:
                if f"[{GROUP}]" in file.read():
                    return True
        except (OSError, ValueError):
            continue
    return False
