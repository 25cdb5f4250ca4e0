"""What a page of a run is made from, as plain data that a notebook can hand over to its report."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io import absolute, is_url, plain
from evalkit.kinds import LogKind, in_words, kind_named

if TYPE_CHECKING:
    from evalkit.kinds import Logs

MODES = ("linked", "all", "none")  # which runs get a page
_FACTS = {
    "model_name": "model",
    "task_id": "task",
    "task_type": "type of task",
    "repetition": "repetition",
    "experiment": "experiment",
    "status": "status",
    "score": "score",
    "is_successful": "success",
    "started": "started",
    "duration": "duration",
    "flags": "flags",
}


class RunRef(NamedTuple):
    """A run that gets a page.

    Attributes
    ----------
    run_id : str
    kind : str
    paths : list of str
        Its logs, absolute.
    part : str
        See `evalkit.kinds.RunFiles`.
    facts : list of (name, value)
        What is known of the run, in words.
    """

    run_id: str
    kind: str
    paths: list[str]
    part: str
    facts: list[tuple[str, str]]

    @property
    def page(self) -> str:
        """Name of its page."""
        return page_name(self.run_id)

    def fact(self, name: str) -> str:
        """Give one of the facts; empty where it is not known."""
        return dict(self.facts).get(name, "")


class PairRef(NamedTuple):
    """Two runs of one task that get a page side by side."""

    a: RunRef
    b: RunRef

    @property
    def page(self) -> str:
        """Name of the page."""
        return page_name(f"{self.a.run_id}--{self.b.run_id}")


class RunList(NamedTuple):
    """A table whose rows lead to pages.

    Attributes
    ----------
    title : str
    page : str
        Where the table stands, as seen from the pages of runs.
    members : list of str
        Names of pages, in the order of the rows.
    key : str
        What tells the list from others in an address.
    """

    title: str
    page: str
    members: list[str]
    key: str


def page_name(name: str) -> str:
    """Make a file's name of a run's id, whatever it holds."""
    if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,100}", name, re.ASCII):
        name = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{name}.html"


def reference(logs: "Logs", run: Mapping[str, Any]) -> RunRef:
    """Make the reference of a run, which is a row of the first table of `logs`."""
    files = logs.kind.run_files(logs, run)
    paths = [path if is_url(path) else absolute(path) for path in files.paths]
    return RunRef(str(run["run_id"]), logs.kind.name, paths, files.part, facts_of(logs.kind, run))


def facts_of(kind: LogKind, run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Put what is known of a run into words; what is missing is left out."""
    facts = [("run", plain(run["run_id"])), ("kind", kind.name)]
    for column, name in _FACTS.items():
        if text := in_words(run.get(column)):
            facts.append((name, f"{text} s" if column == "duration" else text))
    return facts


def as_data(runs: Sequence[RunRef]) -> list[list[Any]]:
    """Give references as JSON holds them."""
    return [list(run) for run in runs]


def read_reference(value: Any) -> RunRef | None:
    """Read a reference of JSON; None where it is none, since anyone may write a notebook's output."""
    if not isinstance(value, list) or len(value) != len(RunRef._fields):
        return None
    run_id, kind, paths, part, facts = value
    texts = [run_id, kind, part]
    if not all(isinstance(text, str) for text in texts) or not isinstance(paths, list) or not isinstance(facts, list):
        return None
    pairs = [tuple(map(str, fact)) for fact in facts if isinstance(fact, (list, tuple)) and len(fact) == 2]
    return RunRef(run_id, kind, [path for path in paths if isinstance(path, str)], part, pairs)


def state_of(run: RunRef) -> list[Any]:
    """Give sizes and times of a run's files, by which a change is known; None for one that is not there."""
    companions = kind_named(run.kind).companions
    states: list[Any] = []
    for path in (name for own in run.paths for name in (own, *companions(own))):
        try:
            status = os.stat(path)
            states.append([status.st_size, status.st_mtime_ns])
        except (OSError, ValueError):
            states.append(None)
    return states
