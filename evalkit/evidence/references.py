"""References to runs: the data of their pages, which a notebook passes to its report as JSON."""

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from evalkit.io import absolute, is_url, plain
from evalkit.io.sources import state_of as file_state
from evalkit.kinds import LogKind, cell_text, kind_named

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
    "run_flags": "flags",
}


class RunRef(NamedTuple):
    """A run that gets a page, with facts that describe it; for `part` see `evalkit.kinds.RunFiles`."""

    run_id: str
    kind: str
    paths: list[str]  # absolute, of its logs
    part: str
    facts: list[tuple[str, str]]  # name and value, as text

    @property
    def page(self) -> str:
        """File name of its page."""
        return page_name(self.run_id)

    def fact(self, name: str) -> str:
        """Return one of the facts; empty if it is unknown."""
        return dict(self.facts).get(name, "")


class PairRef(NamedTuple):
    """Two runs of one task that get a page side by side."""

    a: RunRef
    b: RunRef

    @property
    def page(self) -> str:
        """File name of the page."""
        return page_name(f"{self.a.run_id}--{self.b.run_id}")


class RunList(NamedTuple):
    """A table whose rows link to pages."""

    title: str
    page: str  # with the table, relative to the pages of runs
    members: list[str]  # file names of pages, in the order of the rows
    key: str  # of the list in an address


def page_name(name: str) -> str:
    """Return a safe file name for the page of a run's id."""
    if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,100}", name, re.ASCII):
        name = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{name}.html"


def reference(logs: "Logs", run: Mapping[Any, Any]) -> RunRef:
    """Create the reference of a run, which is a row of the first table of `logs`."""
    files = logs.kind.run_files(logs, run)
    paths = [path if is_url(path) else absolute(path) for path in files.paths]
    return RunRef(str(run["run_id"]), logs.kind.name, paths, files.part, facts_of(logs.kind, run))


def facts_of(kind: LogKind, run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the known facts of a run as text."""
    facts = [("run", plain(run["run_id"])), ("kind", kind.name)]
    for column, name in _FACTS.items():
        if text := cell_text(kind.labels.get(run[column], run[column]) if column == "status" else run.get(column)):
            facts.append((name, f"{text} s" if column == "duration" else text))
    return facts


def read_reference(value: Any) -> RunRef | None:
    """Convert a JSON value to a reference; None if malformed, since anyone may write a notebook's output."""
    types = [str, str, list, str, list]
    if not isinstance(value, list) or list(map(type, value)) != types:
        return None
    run_id, kind, paths, part, facts = value
    pairs = [(str(fact[0]), str(fact[1])) for fact in facts if isinstance(fact, (list, tuple)) and len(fact) == 2]
    return RunRef(run_id, kind, [path for path in paths if isinstance(path, str)], part, pairs)


def state_of(run: RunRef) -> list[Any]:
    """Return sizes and times of a run's files, for detecting changes; None for a missing file."""
    companions = kind_named(run.kind).files.companions
    paths = (path for log in run.paths for path in (log, *companions(log)))
    states = (None if is_url(path) else file_state(path) for path in paths)
    return [state and [state.size, state.modified] for state in states]
