"""The frame of events: registered detectors search the transcripts of new and changed runs."""

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
from evalkit.io.store import FILES, StoreError, cached_store
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
_OWN: dict[str, Detector] = {}  # detectors of users, by name
_FOUND = WeakKeyDictionary[Logs, "Search"]()  # the last one of logs
_Find = Callable[[Seen], Iterable[Found]]


class Search(NamedTuple):
    """What was found in logs, by which detectors, and the ids of the runs that have turns to search."""

    detectors: Sequence[Detector]
    events: pd.DataFrame
    searched: frozenset[str]


def detector(
    name: str, question: str, *, mode: str = "", severity: int = 1, least: int = 1
) -> Callable[[_Find], _Find]:
    """Register a detector of events for runs of every kind: its events are found, counted and shown as all others.

    Parameters
    ----------
    name : str
        Of its events, such as ``asks_for_help``. A second detector of the name takes the place of the first.
    question : str
        That it answers, in a few words.
    mode : str
        The failure mode of a failed run with its events; by default its name in words.
    severity : int
        Of several modes of a run, the one of the highest severity leads; evalkit's own have 1 to 9.
    least : int
        The fewest events that make the mode.

    Returns
    -------
    callable
        A decorator of a function from a `evalkit.kinds.Transcript` to rows of (turn, detail, evidence). The function
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
        _OWN[name] = Detector(name, question, find, mode or name.replace("_", " "), severity, least)
        return find

    return register


def detectors(kind: LogKind) -> list[Detector]:
    """Return the detectors for logs of a kind: for every kind, for this one, and of users, one for each name."""
    by_name = {known.name: known for known in (*COMMON, *kind.detectors)}
    return list((by_name | _OWN).values())


def events(logs: Logs) -> pd.DataFrame:
    """Find the events of all runs of logs: a row per event, with the columns `EVENTS`.

    Detectors see neither models nor outcomes, and runs do not depend on each other. A detector that raises is named in
    a warning, and the others run. Runs whose files have not changed are taken from the user's cache, if the code of the
    detectors is the same and none is a user's.

    Parameters
    ----------
    logs : Logs
        Of any kind whose runs can be shown turn by turn; of others there are no events.

    Returns
    -------
    DataFrame
        run_id, turn, agent, event, detail, evidence; in the order of runs, turns and detectors.

    Examples
    --------
    >>> failures.events(logs)["event"].value_counts().head(3).to_dict()
    {'failed_call': 47, 'submitted_unchanged': 39, 'ignored_error': 21}
    """
    return search(logs).events


def search(logs: Logs) -> Search:
    """Find the events of all runs of logs, as `events`; once for the same logs and detectors."""
    known = detectors(logs.kind)
    if logs not in _FOUND or _FOUND[logs].detectors != known:
        with storage(logs.storage_options):
            _FOUND[logs] = _search(logs, known)
    return _FOUND[logs]


class _Run(NamedTuple):
    """A run to search, and what detectors learn in addition to its turns."""

    files: RunFiles
    target: str
    ended: str
    state: str  # a digest of its files and their states; empty where these are unknown, as behind a URL


class _Searched(NamedTuple):
    """What was found in some runs, as tables of a store, and what went wrong."""

    tables: dict[str, pa.Table]
    may_be_stored: bool
    raised: list[tuple[str, str]]  # names of detectors, and what they raised
    unread: list[str]


class _Task(NamedTuple):
    """A search: the kind of the logs, the detectors, and the runs by their ids."""

    kind: LogKind
    detectors: Sequence[Detector]
    runs: Mapping[str, _Run]


_TABLES = {"files": FILES, "events": (SOURCE, *EVENTS[1:])}
# a global, which forked processes inherit: a detector may be a local function, which can't be sent to a process
_task: _Task | None = None


def _search(logs: Logs, known: Sequence[Detector]) -> Search:
    global _task
    if logs.kind.transcript is None:
        return Search(known, frame_of({column.name: [] for column in EVENTS}, EVENTS), frozenset())
    runs = _runs_of(logs)
    modules = sorted({str(getattr(one.find, "__module__", None)) for one in known})
    key: list[Any] = []  # no cache, since results of users' detectors may depend on anything
    if not _OWN:
        key = ["events", logs.kind.name, list(map(absolute, logs.sources)), list(map(code_version, modules))]
    raised: dict[str, list[str]] = {}
    unread: list[str] = []
    with cached_store(key, {"events": EVENTS[1:]}) as store:
        try:
            store.read()
        except StoreError:  # damaged
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
        store.arrange(runs)
        store.commit()
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
    """Return all runs of logs by their ids, with their files."""
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
    """Search runs, in any process that has the task."""
    if _task is None:
        raise RuntimeError("this process was not forked from the one that searches")
    rows: dict[str, list[tuple]] = {"files": [], "events": []}
    raised: list[tuple[str, str]] = []
    unread = []
    read = lru_cache(maxsize=1)(read_log)  # runs of one file follow each other
    may_be_stored = True
    for run_id in ids:
        run = _task.runs[run_id]
        try:
            transcript = transcript_of(_task.kind, run.files, read, mask=False)
        except SourceError as error:
            unread.append(str(error))
            continue
        shown = seen(transcript, run.target, run.ended)
        rows["events"] += [(run_id, *row) for row in _find(shown, _task.detectors, raised)]
        has_actors = any(turn.role != "system" for turn in transcript.turns)  # a list of results has none
        rows["files"].append((run_id, 0, 0, 0, run.state, False, "used" if has_actors else "skipped", ""))
        may_be_stored = may_be_stored and bool(run.state)
    tables = {name: arrow_table(list(zip(*rows[name], strict=True)), columns) for name, columns in _TABLES.items()}
    return _Searched(tables, may_be_stored and not raised, raised, unread)


def _find(transcript: Seen, known: Sequence[Detector], raised: list[tuple[str, str]]) -> list[tuple]:
    """Return turn, agent, event, detail and evidence of all events of a run, in the order of turns."""
    rows: list[tuple] = []
    turns = transcript.turns
    for one in known:
        own = []
        try:
            for turn, detail, evidence in one.find(transcript) or ():
                number = int(turn)
                if not 1 <= number <= max(len(turns), 1):
                    raise ValueError(f"there is no turn {number} of {len(turns)}")
                agent = agent_of(turns[number - 1]) if turns else ""
                texts = cut_end(str(detail), LONGEST), cut_end(str(evidence), LONGEST + 1)
                own.append((number, agent, one.name, *texts))
        except Exception as error:  # a user's detector may raise anything, the others go on
            raised.append((one.name, f"{type(error).__name__}: {error}"))
        else:
            rows += own
    return sorted(rows, key=lambda row: row[0])


def _text(value: Any) -> str:
    """Return a cell as text; items of a list, separated by spaces."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return " ".join(map(str, value))
    return ""
