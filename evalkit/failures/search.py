"""Make the frame of events: registered detectors search the transcripts of new and changed runs."""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._text import counted_noun
from evalkit._version import code_version
from evalkit.failures.rules import COMMON
from evalkit.io import storage
from evalkit.io.frames import SOURCE, Column, arrow_table, frame_of, paused_gc
from evalkit.io.paths import SourceError, absolute, is_url
from evalkit.io.read import in_chunks
from evalkit.io.sources import state_of
from evalkit.io.store import FILES, FileRow, StoreError, cached_store
from evalkit.io.text import cut_end
from evalkit.kinds import Detector, LogKind, Logs, RunFiles, Seen
from evalkit.kinds.detectors import LONGEST, Found, agent_of, seen
from evalkit.kinds.transcript import read_log, rows_of, transcript_of, warn_unread

EVENTS = (
    Column("run_id", "str", "the run; see the table of runs"),
    Column("turn", "int", "number of the turn in its run, from 1, as in the frame of turns and on pages"),
    Column("agent", "str", "who acted"),
    Column("event", "name", "what was found: the name of a detector"),
    Column("detail", "str", "a value that the detector adds: a number of calls, a cause, a name"),
    Column("evidence", "str", "the text that shows it"),
)
OWN_DETECTORS: dict[str, Detector] = {}  # users' detectors by name
_FOUND = WeakKeyDictionary[Logs, "Search"]()  # the last search of each `Logs`
_Find = Callable[[Seen], Iterable[Found]]


class Search(NamedTuple):
    """The result of a search: the detectors, the events, and the ids of the runs with turns to search."""

    detectors: Sequence[Detector]
    events: pd.DataFrame
    searched: frozenset[str]


def detector(
    name: str, question: str, *, mode: str = "", severity: int = 1, least: int = 1
) -> Callable[[_Find], _Find]:
    """Register a detector of events for runs of all kinds; evalkit treats its events like built-in ones.

    Parameters
    ----------
    name : str
        Name of the events, such as ``asks_for_help``. A detector replaces an earlier one of the same name.
    question : str
        The question that the detector answers, in a few words.
    mode : str
        Failure mode of failed runs with these events; by default the name, with spaces for underscores.
    severity : int
        If a run has several modes, the mode with the highest severity leads. Built-in detectors have 1 to 9.
    least : int
        Minimum number of events for the mode.

    Returns
    -------
    callable
        A decorator for a function from an `evalkit.kinds.Transcript` to rows of (turn, detail, evidence). The function
        sees neither the model nor the outcome of the run.

    Examples
    --------
    >>> @failures.detector("asks_for_help", "Does the agent ask the user for help?")
    ... def asks_for_help(transcript):
    ...     for number, turn in enumerate(transcript.turns, 1):
    ...         if turn.role == "assistant" and "help me" in turn.text:
    ...             yield number, "", turn.text
    """

    def register(find: _Find) -> _Find:
        OWN_DETECTORS[name] = Detector(name, question, find, mode or name.replace("_", " "), severity, least)
        return find

    return register


def detectors(kind: LogKind) -> list[Detector]:
    """Return the detectors for a kind: common detectors, the kind's, and users', which replace others of their name."""
    by_name = {known.name: known for known in (*COMMON, *kind.detectors)}
    return list((by_name | OWN_DETECTORS).values())


def events(logs: Logs) -> pd.DataFrame:
    """Find the events of all runs, one row per event, with the columns `EVENTS`.

    Detectors see neither models nor outcomes, and each run is searched independently. If a detector raises an error, a
    warning names it, and the other detectors still run. Events of unchanged files come from the user's cache, unless
    the code of the detectors has changed or a user's detector is registered.

    Parameters
    ----------
    logs : Logs
        Logs of any kind; runs that can't be shown turn by turn have no events.

    Returns
    -------
    DataFrame
        run_id, turn, agent, event, detail, evidence, ordered by run, turn and detector.

    Examples
    --------
    >>> failures.events(logs)["event"].value_counts().head(3).to_dict()
    {'failed_call': 47, 'submitted_unchanged': 39, 'ignored_error': 21}
    """
    return search(logs).events


def search(logs: Logs) -> Search:
    """Find the events of all runs, like `events`, and keep the result for later calls with the same detectors."""
    known = detectors(logs.kind)
    if logs not in _FOUND or _FOUND[logs].detectors != known:
        with storage(logs.storage_options):
            _FOUND[logs] = _search(logs, known)
    return _FOUND[logs]


class _Run(NamedTuple):
    """A run to search, and the values that detectors see in addition to its turns."""

    files: RunFiles
    target: str
    ended: str
    state: str  # digest of its files and their states; empty if these are unknown, as for URLs


class _Searched(NamedTuple):
    """Results for some runs, as tables of a store, and errors."""

    tables: dict[str, pa.Table]
    may_be_stored: bool
    raised: list[tuple[str, str]]  # names of failed detectors, with their errors
    unread: list[str]


class _Task(NamedTuple):
    """A search: the kind of the logs, the detectors, and the runs by id."""

    kind: LogKind
    detectors: Sequence[Detector]
    runs: Mapping[str, _Run]


_TABLES = {"files": FILES, "events": (SOURCE, *EVENTS[1:])}
# a global, because forked processes inherit it: a detector may be a local function, which can't be pickled
_task: _Task | None = None
# Runs of a file are adjacent, also across chunks. Kinds recognise a file that they have just decoded by these bytes.
_read = lru_cache(maxsize=1)(read_log)


def _search(logs: Logs, known: Sequence[Detector]) -> Search:
    global _task
    if logs.kind.transcript is None:
        return Search(known, frame_of({column.name: [] for column in EVENTS}, EVENTS), frozenset())
    runs = _runs_of(logs)
    modules = sorted({str(getattr(one.find, "__module__", None)) for one in known})
    key: list[Any] = []  # an empty key disables the cache, because users' detectors may depend on anything
    if not OWN_DETECTORS:
        key = ["events", logs.kind.name, list(map(absolute, logs.sources)), list(map(code_version, modules))]
    raised: dict[str, list[str]] = {}
    unread: list[str] = []
    with cached_store(key, {"events": EVENTS[1:]}) as store:
        try:
            store.read()
        except StoreError:  # the store is damaged
            store.clear()
        files = store.tables["files"]
        before = dict(zip(files["source"].to_pylist(), files["tag"].to_pylist(), strict=True))
        changed = [run_id for run_id, run in runs.items() if not run.state or before.get(run_id) != run.state]
        _task = _Task(logs.kind, known, runs)
        unstored: list[dict[str, pa.Table]] = []
        try:
            jobs = 1 if any(is_url(path) for run in runs.values() for path in run.files.paths) else None
            for found in in_chunks(_search_chunk, changed, 0, jobs):
                if found.may_be_stored:
                    store.put(found.tables)
                else:
                    unstored.append(found.tables)
                unread += found.unread
                for name, message in found.raised:
                    raised.setdefault(name, []).append(message)
        finally:
            _task = None
            _read.cache_clear()
        store.arrange(runs)
        store.commit()
        if unstored:
            for tables in unstored:
                store.put(tables)
            store.arrange(runs)
        files, table = store.tables["files"], store.tables["events"]
    for name, messages in raised.items():
        n = counted_noun(len(messages), "run")
        warnings.warn(f"detector {name} failed in {n}: {messages[0]}; the others ran", stacklevel=4)
    warn_unread(unread)
    searched = frozenset(files.filter(pc.equal(files["status"], "used"))["source"].to_pylist())
    names_of_columns = [column.name for column in EVENTS]
    return Search(known, frame_of(dict(zip(names_of_columns, table.columns, strict=True)), EVENTS), searched)


@paused_gc()
def _runs_of(logs: Logs) -> dict[str, _Run]:
    """Return all runs of logs by id, with their files."""
    companions = logs.kind.files.companions
    columns = [name for name in ("target_items", "target", "exit_reason") if name in logs.runs]
    digests: dict[str, bytes] = {}
    runs = {}
    for run in rows_of(logs.runs):
        files = logs.kind.run_files(logs, run)
        stated = {name: _text(run[name]) for name in columns}
        states = []
        for path in map(os.fspath, files.paths):
            if path not in digests:
                paths = [path, *(companions(path) if companions else ())]
                own = [None if is_url(each) else state_of(each) for each in paths]
                digests[path] = b"" if own[0] is None else repr((path, own)).encode(errors="replace")
            states.append(digests[path])
        state = ""
        if states and all(states):
            about = repr((files.part, stated)).encode(errors="replace")
            state = hashlib.blake2b(b"\0".join([about, *states]), digest_size=12).hexdigest()
        target = stated.get("target_items") or stated.get("target", "")
        runs[run["run_id"]] = _Run(files, target, stated.get("exit_reason", ""), state)
    return runs


@paused_gc()
def _search_chunk(ids: list[str]) -> _Searched:
    """Search runs, in this process or in one forked from it, which inherits `_task`."""
    if _task is None:
        raise RuntimeError("this process was not forked from the one that searches")
    rows: dict[str, list[tuple]] = {"files": [], "events": []}
    raised: list[tuple[str, str]] = []
    unread = []
    may_be_stored = True
    for run_id in ids:
        run = _task.runs[run_id]
        try:
            transcript = transcript_of(_task.kind, run.files, _read, mask=False)
        except SourceError as error:
            unread.append(str(error))
            continue
        shown = seen(transcript, run.target, run.ended)
        rows["events"] += [(run_id, *row) for row in _find(shown, _task.detectors, raised)]
        has_actors = any(turn.role != "system" for turn in transcript.turns)  # false for mere lists of results
        rows["files"].append(FileRow(run_id, tag=run.state, status="used" if has_actors else "skipped"))
        may_be_stored = may_be_stored and bool(run.state)
    tables = {name: arrow_table(list(zip(*rows[name], strict=True)), columns) for name, columns in _TABLES.items()}
    return _Searched(tables, may_be_stored and not raised, raised, unread)


def _find(transcript: Seen, known: Sequence[Detector], raised: list[tuple[str, str]]) -> list[tuple]:
    """Return turn, agent, event, detail and evidence of each event of a run, in the order of turns."""
    rows: list[tuple] = []
    turns = transcript.turns
    for one in known:
        own = []
        try:
            for turn, detail, evidence in one.find(transcript) or ():
                number = int(turn)
                if number != float(turn) or not 1 <= number <= max(len(turns), 1):
                    raise ValueError(f"there is no turn {turn} of {len(turns)}")
                agent = agent_of(turns[number - 1]) if turns else ""
                texts = cut_end(str(detail), LONGEST), cut_end(str(evidence), LONGEST + 1)
                own.append((number, agent, one.name, *texts))
        except Exception as error:  # a user's detector may raise anything; the others still run
            raised.append((one.name, f"{type(error).__name__}: {error}"))
        else:
            rows += own
    return sorted(rows, key=lambda row: row[0])


def _text(value: Any) -> str:
    """Return a cell as text; items of a list are joined with spaces."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return " ".join(map(str, value))
    return ""
