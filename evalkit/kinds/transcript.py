"""Build the transcripts of runs from their files, and the frame of all turns."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from evalkit._text import counted_noun
from evalkit.io.frames import Column, frame_of
from evalkit.io.paths import SourceError
from evalkit.io.read import read_file, reason_of
from evalkit.io.secrets import masked
from evalkit.io.text import plain
from evalkit.kinds.kind import LogKind, RunFiles
from evalkit.kinds.turns import Transcript

TURNS = (
    Column("run_id", "str", "the run; see the table of runs"),
    Column("turn", "int", "number of the turn in its run, from 1, as in pages, links, findings and `evalkit show`"),
    Column("agent", "str", "who acted: an agent by name, the user, a tool"),
    Column("role", "str", "system, assistant, user, action, result, …"),
    Column("text", "str", "its text, then its call if the text does not show it"),
    Column("marks", "list", "marks that flags and findings refer to, such as `final message`"),
    Column("events", "list", "event for the viewer: command, error, achievement, decision"),
    Column("when", "str", "time of the turn, as logged; empty if not logged"),
)

_FACTS = {
    "model_name": "model",
    "logged_model": "model as logged",
    "task_id": "task",
    "task_type": "type of task",
    "repetition": "repetition",
    "experiment": "experiment",
    "status": "status",
    "score": "score",
    "is_successful": "success",
    "started": "started",
    "duration": "duration",
    "run_flags": "flags",
}
_ALWAYS = ("target", "score", "scorer", "model", "repetition")  # facts shown for every run, even if not recorded


_MISSING_TEXTS = ("<NA>", "NaT")  # missing values of pandas, as text


def cell_text(value: Any) -> str:
    """Format a cell of a frame; empty if it is missing."""
    if isinstance(value, str):  # most cells
        return "" if value in _MISSING_TEXTS else plain(value)
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        items = value if isinstance(value, (list, tuple)) else value.tolist()
        if isinstance(items, (list, tuple)):
            return ", ".join(plain(item).replace("_", " ") for item in items)
        value = items
    if value is None or str(value) in _MISSING_TEXTS or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if hasattr(value, "isoformat"):
        return value.strftime("%Y-%m-%d %H:%M:%S %Z").strip()
    return plain(f"{value:.4g}" if isinstance(value, float) else value)


def run_facts(kind: LogKind, run: Mapping[Any, Any], files: RunFiles) -> list[tuple[str, str]]:
    """Return the facts about a run (a row of the first frame) as pairs of name and text: `_ALWAYS` and known ones."""
    facts = []
    for column, name in _FACTS.items():
        value = kind.labels.get(run[column], run[column]) if column == "status" else run.get(column)
        if text := cell_text(value):
            facts.append((name, f"{text} s" if column == "duration" else text))
    facts += [(name, plain(text)) for name, text in (*files.facts, ("scorer", kind.scorer)) if text]
    known = {name for name, _ in facts}
    return facts + [(name, "not recorded") for name in _ALWAYS if name not in known]


def read_log(path: str) -> bytes:
    """Read one file. Raise SourceError if that fails."""
    try:
        return read_file(path)
    except OSError as error:
        raise SourceError(f"{path}: {reason_of(error)}") from error


def transcript_of(
    kind: LogKind, files: RunFiles, read: Callable[[str], bytes] = read_log, *, mask: bool = True
) -> Transcript:
    """Build the transcript of a run from its files, with known forms of credentials masked.

    Raises SourceError if a file is missing or broken, or if logs of this kind have no transcripts.
    """
    where = files.paths[0] if files.paths else "the run"
    if kind.transcript is None:
        raise SourceError(f"{where}: {kind.name} logs can't be shown turn by turn")
    try:
        made = kind.transcript(files.paths, read, *([files.part] if files.part else []))
        if not isinstance(made, Transcript):
            raise TypeError(f"transcript of kind {kind.name} returned {type(made).__name__}, not Transcript")
        return made.changed(masked) if mask else made
    except SourceError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{where}: {reason_of(error)}") from error


class Row(Mapping[str, Any]):
    """A row of a frame as a mapping. Only the columns that are accessed are converted to Python values."""

    def __init__(self, frame: pd.DataFrame, columns: dict[str, list[Any]], place: int) -> None:
        self._frame = frame
        self._columns = columns  # columns as lists, converted on first access and shared by all rows
        self._place = place

    def __getitem__(self, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = self._frame[name].tolist()
        return self._columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return iter(map(str, self._frame))

    def __len__(self) -> int:
        return self._frame.shape[1]


def rows_of(frame: pd.DataFrame) -> Iterator[Row]:
    """Yield the rows of a frame as mappings. Callers use few of many columns, and `to_dict` would convert all."""
    columns: dict[str, list[Any]] = {}
    return (Row(frame, columns, place) for place in range(len(frame)))


def warn_unread(errors: Sequence[str]) -> None:
    """Warn if the transcripts of runs could not be built."""
    if errors:
        more = f"; and {counted_noun(len(errors) - 1, 'other run')}" if len(errors) > 1 else ""
        warnings.warn(f"no turns of {counted_noun(len(errors), 'run')}: {errors[0]}{more}", stacklevel=5)


def transcripts(logs: Any, runs: pd.DataFrame | None = None) -> Iterator[tuple[str, Transcript]]:
    """Yield the id and the transcript of each run of `logs`. Warn about runs whose files can't be read.

    `runs` are rows of the first table, by default all of them. A file of several consecutive rows is read once.
    """
    read = lru_cache(maxsize=1)(read_log)
    errors = []
    for run in rows_of(logs.runs if runs is None else runs):
        try:
            transcript = transcript_of(logs.kind, logs.kind.run_files(logs, run), read, mask=False)
        except SourceError as error:
            errors.append(str(error))
        else:
            yield run["run_id"], transcript
    warn_unread(errors)


def turns_frame(logs: Any) -> pd.DataFrame:
    """Build the frame of all turns of the runs of `logs`, with the columns `TURNS`."""
    values: dict[str, list[Any]] = {column.name: [] for column in TURNS}
    for run_id, transcript in transcripts(logs):
        for number, turn in enumerate(transcript.turns, 1):
            values["run_id"].append(run_id)
            values["turn"].append(number)
            values["agent"].append(turn.agent or turn.actor)
            values["role"].append(turn.role)
            values["text"].append(turn.shown)
            values["marks"].append(list(turn.marks))
            values["events"].append(list(turn.events))
            values["when"].append(turn.when)
    return frame_of(values, TURNS)
