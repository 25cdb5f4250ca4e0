"""The frame of events: registered detectors search the transcripts of runs, of which only changed ones again."""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from evalkit._text import counted_noun
from evalkit._version import code_version
from evalkit.failures.detectors import COMMON
from evalkit.io import storage
from evalkit.io.frames import Column, arrow_table, frame_of
from evalkit.io.paths import absolute, is_url
from evalkit.io.sources import state_of
from evalkit.io.store import FILES, RecordStore, StoreError, cached_store
from evalkit.kinds import Detector, LogKind, Logs, RunFiles, Transcript
from evalkit.kinds.detectors import LONGEST, Found, agent_of, seen
from evalkit.kinds.transcript import transcripts

EVENTS = (
    Column("run_id", "str", "the run; see the table of runs"),
    Column("turn", "int", "number of the turn in its run, from 1, as in the frame of turns and on pages"),
    Column("agent", "str", "who acted"),
    Column("event", "name", "what was found: the name of a detector"),
    Column("detail", "str", "a value that the detector adds: a number of calls, a cause, a name"),
    Column("evidence", "str", "the text that shows it"),
)
COMMIT_EVERY = 5_000  # runs
_OWN: dict[str, Detector] = {}  # those of users, by name
_FOUND = WeakKeyDictionary[Logs, "Search"]()  # the last one of logs
_Find = Callable[[Transcript], Iterable[Found]]


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
        Of several modes of a run, that of the highest severity leads; those of evalkit have 1 to 9.
    least : int
        The number of events from which on the mode holds.

    Returns
    -------
    callable
        A decorator of a function from a `evalkit.kinds.Transcript` to rows of (turn, detail, evidence). The function
        sees neither the model nor the outcome of the run.

    Examples
    --------
    >>> @evalkit.failures.detector("asks_for_help", "Does the agent ask the user for help?")
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
    """Return the detectors for logs of a kind: those of every kind, of this one, and of users, one for each name."""
    by_name = {known.name: known for known in (*COMMON, *kind.detectors)}
    return list((by_name | _OWN).values())


def events(logs: Logs) -> pd.DataFrame:
    """Find the events of all runs of logs: a row per event, with the columns `EVENTS`.

    Detectors see neither models nor outcomes, and runs do not depend on each other. A detector that raises is named in
    a warning, and the others run. Runs whose files have not changed are taken from the user's cache, if the code of the
    detectors is the same.

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
    >>> found = evalkit.failures.events(evalkit.load("runs"))
    >>> found["event"].value_counts()
    """
    return search(logs).events


def search(logs: Logs) -> Search:
    """Find the events of all runs of logs, as `events`; once for the same logs and detectors."""
    known = detectors(logs.kind)
    if logs not in _FOUND or _FOUND[logs].detectors != known:
        with storage(logs.storage_options):
            _FOUND[logs] = _search(logs, known)
    return _FOUND[logs]


def _search(logs: Logs, known: Sequence[Detector]) -> Search:
    order = logs.runs["run_id"].tolist()
    if logs.kind.transcript is None:
        return Search(known, frame_of({column.name: [] for column in EVENTS}, EVENTS), frozenset())
    states = dict(zip(order, _states(logs), strict=True))
    modules = sorted({one.find.__module__ for one in known})
    names = [[one.name, one.find.__qualname__] for one in known]
    key = ["events", logs.kind.name, list(map(absolute, logs.sources)), names, list(map(code_version, modules))]
    with cached_store(key, {"events": EVENTS[1:]}) as store:
        try:
            store.read()
        except StoreError:  # damaged
            store.clear()
        files = store.tables["files"]
        before = dict(zip(files["source"].to_pylist(), files["tag"].to_pylist(), strict=True))
        changed = [not state or before.get(run_id) != state for run_id, state in states.items()]
        others = _search_runs(logs, logs.runs[changed], known, states, store)
        store.arrange(order)
        store.commit()
        tables = {name: pa.concat_tables([store.tables[name], others[name]]) for name in others}
    files, table = tables["files"], tables["events"]
    searched = frozenset(files.filter(pc.equal(files["status"], "used"))["source"].to_pylist())
    values = {("run_id" if name == "source" else name): table[name] for name in table.column_names}
    found = frame_of(values, EVENTS)
    place = {run_id: number for number, run_id in enumerate(order)}
    found = found.iloc[found["run_id"].map(place).argsort(kind="stable")].reset_index(drop=True)
    return Search(known, found, searched)


def _search_runs(
    logs: Logs, runs: pd.DataFrame, known: Sequence[Detector], states: dict[str, str], store: RecordStore
) -> dict[str, pa.Table]:
    """Search runs, and put their rows of events and files into the store; return those of runs that can't be stored."""
    by_id = runs.set_index("run_id")
    targets = by_id["target_items" if "target_items" in by_id else "target"] if _has_target(by_id) else None
    ended = by_id.get("exit_reason")
    raised: dict[str, list[str]] = {}
    stored, others = _Rows(), _Rows()
    for run_id, transcript in transcripts(logs, runs):
        n_raised = sum(map(len, raised.values()))
        target = "" if targets is None else _text(targets[run_id])
        shown = seen(transcript, target, "" if ended is None else _text(ended[run_id]))
        rows = [(run_id, *row) for row in _find(shown, known, raised)]
        can_be_stored = states[run_id] and n_raised == sum(map(len, raised.values()))
        into = stored if can_be_stored else others
        into.events += rows
        into.files.append((run_id, 0, 0, 0, states[run_id], False, "used" if transcript.turns else "skipped", ""))
        if len(stored.files) >= COMMIT_EVERY:
            store.put(stored.tables())
            stored = _Rows()
    store.put(stored.tables())
    for name, messages in raised.items():
        warnings.warn(
            f"detector {name} failed in {counted_noun(len(messages), 'run')}: {messages[0]}; the others ran",
            stacklevel=4,
        )
    return others.tables()


class _Rows:
    """Rows of events and files of runs that were searched."""

    def __init__(self) -> None:
        self.events: list[tuple] = []
        self.files: list[tuple] = []

    def tables(self) -> dict[str, pa.Table]:
        columns = {"files": FILES, "events": (Column("source", "str", ""), *EVENTS[1:])}
        rows = {"files": self.files, "events": self.events}
        made = {}
        for name, own in rows.items():
            made[name] = arrow_table(list(zip(*own, strict=True)) if own else [()] * len(columns[name]), columns[name])
        return made


def _find(transcript: Transcript, known: Sequence[Detector], raised: dict[str, list[str]]) -> Iterator[tuple]:
    """Yield turn, agent, event, detail and evidence of all events of a run, in the order of turns."""
    rows = []
    last = max(len(transcript.turns), 1)
    for one in known:
        try:
            for turn, detail, evidence in one.find(transcript):
                number = min(max(int(turn), 1), last)
                rows.append((number, one.name, str(detail)[:LONGEST], str(evidence)[: LONGEST + 1]))
        except Exception as error:  # a user's detector may raise anything, the others go on
            raised.setdefault(one.name, []).append(f"{type(error).__name__}: {error}")
    rows.sort(key=lambda row: row[0])
    for number, name, detail, evidence in rows:
        agent = agent_of(transcript.turns[number - 1]) if transcript.turns else ""
        yield number, agent, name, detail, evidence


def _has_target(runs: pd.DataFrame) -> bool:
    return "target_items" in runs or "target" in runs


def _text(value: Any) -> str:
    """Return a cell as text; items of a list, separated by spaces."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return " ".join(map(str, value))
    return ""


def _states(logs: Logs) -> Iterator[str]:
    """Yield a digest of the files of each run and their states; empty where these are unknown, as behind a URL."""
    companions = logs.kind.files.companions
    digests: dict[str, bytes] = {}

    def digest(path: str) -> bytes:
        paths = [path, *(companions(path) if companions else ())]
        states = [None if is_url(each) else state_of(each) for each in paths]
        return b"" if states[0] is None else repr((path, states)).encode(errors="replace")

    for run in logs.runs.to_dict("records"):
        files: RunFiles = logs.kind.run_files(logs, run)
        told = [_text(run.get(name)) for name in ("target_items", "target", "exit_reason")]
        states = []
        for path in files.paths:
            if path not in digests:
                digests[path] = digest(os.fspath(path))
            states.append(digests[path])
        if not files.paths or not all(states):
            yield ""
        else:
            own = repr((files.part, told)).encode(errors="replace")
            yield hashlib.blake2b(b"\0".join([own, *states]), digest_size=12).hexdigest()
