"""References to runs: the data for their pages, which a notebook passes to its report as JSON."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from evalkit.io import absolute, is_url, plain
from evalkit.kinds import Logs, Transcript
from evalkit.kinds.transcript import run_facts

RUNS = "runs"  # the folder of the pages of runs, next to the folders of reports


class RunRef(NamedTuple):
    """A run that gets a page, with facts that describe it."""

    run_id: str
    kind: str
    paths: list[str]  # absolute paths or URLs of its logs
    part: str  # as in `evalkit.kinds.RunFiles`
    facts: list[tuple[str, str]]  # name and value of each fact, as text
    marks: Sequence[tuple[int, str]] = ()  # marks to add to turns, with the number of the turn

    @property
    def page(self) -> str:
        """File name of the run's page."""
        return page_name(self.run_id)

    def fact(self, name: str) -> str:
        """Return the value of a fact; "" if it is unknown."""
        return dict(self.facts).get(name, "")

    def changed(self, change: Callable[[str], str]) -> "RunRef":
        """Return the reference with paths, values of facts, and marks changed, such as masked for a page."""
        facts = [(name, change(text)) for name, text in self.facts]
        marks = [(turn, change(mark)) for turn, mark in self.marks]
        return self._replace(paths=list(map(change, self.paths)), facts=facts, marks=marks)

    def merged(self, other: "RunRef | None") -> "RunRef":
        """Return the reference with the marks from another report's reference to the same run added."""
        if other is None:
            return self
        marks = dict.fromkeys((turn, mark) for ref in (other, self) for turn, mark in ref.marks)
        return self._replace(marks=list(marks))

    def on(self, transcript: Transcript) -> Transcript:
        """Return the transcript of the run with the marks added."""
        turns = list(transcript.turns)
        for turn, mark in self.marks:
            if 0 < turn <= len(turns):
                turns[turn - 1] = replace(turns[turn - 1], marks=(*turns[turn - 1].marks, mark))
        return transcript._replace(turns=turns)


class RunList(NamedTuple):
    """A table whose rows link to pages."""

    title: str
    page: str  # address of the page with the table, relative to the pages of runs
    members: list[str]  # file names of pages, in the order of the rows
    key: str  # identifies the list in addresses


def page_name(*run_ids: str) -> str:
    """Return a safe file name for the page of one run, or of two runs side by side."""
    name = "--".join(run_ids)
    if not re.fullmatch(r"[A-Za-z0-9][\w-]{0,100}", name, re.ASCII):
        name = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{name}.html"


def reference(logs: Logs, run: Mapping[Any, Any]) -> RunRef:
    """Create the reference to a run, given as a row of the first table of `logs`."""
    files = logs.kind.run_files(logs, run)
    facts = [("run", plain(run["run_id"])), ("kind", logs.kind.name), *run_facts(logs.kind, run, files)]
    paths = [path if is_url(path) else absolute(path) for path in files.paths]
    return RunRef(str(run["run_id"]), logs.kind.name, paths, files.part, facts)


def read_references(passed_on: Iterable[Mapping[str, Any]], page: str) -> tuple[dict[str, list[RunRef]], list[RunList]]:
    """Read what a report's notebook passed on: the one or two runs of each page, and the tables on `page`."""
    runs: dict[str, RunRef] = {}
    pages: dict[str, list[RunRef]] = {}
    lists = []
    for data in passed_on:
        for values in data["runs"]:
            run = RunRef(*values)
            runs[run.run_id] = run
            pages[run.page] = [run]
        pages |= {page_name(a, b): [runs[a], runs[b]] for a, b in data["pairs"]}
        if data["members"]:
            lists.append(RunList(data["title"], page, data["members"], data["key"]))
    return pages, lists
