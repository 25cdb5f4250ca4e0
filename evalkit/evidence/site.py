"""Write folders of pages, incrementally: the page of a run is written again only after a change."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from evalkit._text import counted_noun
from evalkit._version import code_version
from evalkit.evidence.pages import list_page, pair_page, places, run_page
from evalkit.evidence.references import PairRef, RunList, RunRef, reference
from evalkit.io import SourceError, masked, masking, read_json, shown_paths, storage, write_bytes
from evalkit.io.paths import is_url
from evalkit.io.sources import NOTES, state_of
from evalkit.io.store import collected_from
from evalkit.kinds import Logs, RunFiles, Transcript, Turn, kind_named, read_log, transcript_of

RUNS = "runs"  # the folder of pages, beside those of reports
MANIFEST = f"{NOTES}/pages.json"  # in this folder: a digest of each page's inputs


def write_pages(
    folder: Path,
    runs: Mapping[str, RunRef],
    pairs: Sequence[PairRef] = (),
    lists: Sequence[RunList] = (),
    *,
    mask: bool = True,
    shown: Callable[[str], str] = str,
    is_complete: bool = True,
) -> int:
    """Write the pages of runs and pairs into a folder, and delete those that are no longer linked; return how many.
    Unless the list `is_complete`, none is deleted.

    `runs` are keyed by the names of their pages, `lists` are the tables that link to them. With `mask`, credentials of
    known forms are masked; `shown` shortens the paths in a text, as `evalkit.io.shown_paths` does.
    """
    before: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        before = {**read_json(folder / MANIFEST)}
    version, states = code_version(), {page: _states(run) for page, run in runs.items()}
    change = (lambda text: masked(shown(text))) if mask else shown
    positions = places([listing._replace(title=change(listing.title)) for listing in lists])
    read = lru_cache(maxsize=1)(read_log)  # runs of one file follow each other
    now, written = {}, 0
    pages: list[tuple[str, Any]] = [*runs.items(), *((pair.page, pair) for pair in pairs)]
    for page, wanted in pages:
        sources = list(wanted) if isinstance(wanted, PairRef) else [wanted]
        inputs, positioned = [states.get(run.page) or _states(run) for run in sources], positions.get(page, [])
        named = []
        for run in sources:
            facts = [(name, change(text)) for name, text in run.facts]
            named.append(run._replace(paths=list(map(change, run.paths)), facts=facts))
        given = json.dumps([version, wanted, named, inputs, positioned, mask], default=str)
        now[page] = hashlib.blake2b(given.encode(), digest_size=12).hexdigest()
        if before.get(page) == now[page] and (folder / page).is_file():
            continue
        found = (_transcript(run.kind, tuple(run.paths), run.part, read, mask) for run in sources)
        transcripts = [transcript.changed(shown) for transcript in found]
        make: Any = pair_page if isinstance(wanted, PairRef) else run_page
        with masking(False):  # all is masked that is to be
            text = make(PairRef(*named) if isinstance(wanted, PairRef) else named[0], *transcripts, positioned)
        write_bytes(text.encode(errors="replace"), str(folder / page))
        written += 1
    if not is_complete:
        now = before | now
    for page in before.keys() - now.keys():
        (folder / Path(page).name).unlink(missing_ok=True)
    if now != before:
        write_bytes(json.dumps(now).encode(), str(folder / MANIFEST))
    _transcript.cache_clear()
    return written


def write_view(logs: Logs, runs: pd.DataFrame, output: Path, title: str = "", *, mask: bool = True) -> Path:
    """Write the pages of runs, which are rows of the first table, into a folder, and one that lists them; return it.

    `title` says what the runs have in common, such as ``failed``.
    """
    references = [reference(logs, run) for run in runs.to_dict("records")]
    shown = shown_paths([*logs.sources, *(origin for place in logs.sources for origin in collected_from(place))])
    named = shown(f"{title} runs of {logs.source}".strip())
    members = RunList(named, "../index.html", [run.page for run in references], "runs")
    with storage(logs.storage_options):
        write_pages(output / RUNS, {run.page: run for run in references}, lists=[members], mask=mask, shown=shown)
    note = f"{len(references)} of {counted_noun(len(logs.runs), 'run')}. Each row links to the page of its run."
    index = output / "index.html"
    with masking(mask):
        page = list_page(masked(named) if mask else named, note, runs, RUNS)
    write_bytes(page.encode(errors="replace"), str(index))
    return index


def _states(run: RunRef) -> list[Any]:
    """Return sizes and times of a run's files, for detecting changes; None for a missing file."""
    companions = kind_named(run.kind).files.companions
    paths = (path for log in run.paths for path in (log, *(companions(log) if companions else ())))
    states = (None if is_url(path) else state_of(path) for path in paths)
    return [state and [state.size, state.modified] for state in states]


@lru_cache(maxsize=64)  # for pairs of the same runs
def _transcript(kind: str, paths: tuple[str, ...], part: str, read: Callable[[str], bytes], mask: bool) -> Transcript:
    """Return a transcript; for a run whose logs can't be read, one that says why."""
    try:
        return transcript_of(kind_named(kind), RunFiles(list(paths), part), read, mask=mask)
    except SourceError as error:
        return Transcript("", [], [Turn("evalkit", "system", str(error), ("can't be read",), ("error", "decision"))])
