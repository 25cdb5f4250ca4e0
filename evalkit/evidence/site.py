"""Write folders of pages of runs; a page is written again only after a change."""

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
from evalkit.evidence.references import RUNS, RunList, RunRef, reference
from evalkit.io import SourceError, masked, masking, read_json, shown_paths, storage, write_bytes
from evalkit.io.paths import is_url
from evalkit.io.sources import NOTES, state_of
from evalkit.io.store import collected_from
from evalkit.io.write import check_no_links
from evalkit.kinds import Logs, RunFiles, Transcript, Turn, kind_named, read_log, transcript_of

MANIFEST = f"{NOTES}/pages.json"  # in this folder: a digest of each page's inputs
# patterns of what is written into an output folder, and its folders
WRITTEN = ("index.html", RUNS, f"{RUNS}/*.html", f"{RUNS}/{NOTES}", f"{RUNS}/{NOTES}/*")


def write_pages(
    folder: Path,
    pages: Mapping[str, Sequence[RunRef]],
    lists: Sequence[RunList] = (),
    *,
    mask: bool = True,
    shown: Callable[[str], str] = str,
    is_complete: bool = True,
) -> int:
    """Write the pages of runs, and of two runs side by side, that changed into a folder; return how many.

    `pages` are the runs of each page by its name, `lists` the tables that link to them. If these are all pages that are
    linked (`is_complete`), others are deleted. `shown` shortens paths in a text, as `evalkit.io.shown_paths` does.
    """
    previous: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, TypeError):
        kept = {**read_json(folder / MANIFEST)}
        # names of pages only: the folder, whose other pages are deleted, may come from somebody else
        previous = {page: digest for page, digest in kept.items() if Path(page).suffix and Path(page).name == page}
    states = {run.page: _states(run) for runs in pages.values() for run in runs}
    change = (lambda text: masked(shown(text))) if mask else shown
    positions = places([listing._replace(title=change(listing.title)) for listing in lists])
    read = lru_cache(maxsize=1)(read_log)  # runs of one file follow each other
    digests: dict[str, str] = {}
    written = 0
    for page, runs in pages.items():
        named = [run.changed(change) for run in runs]
        inputs = [code_version(), runs, named, [states[run.page] for run in runs], positions.get(page), mask]
        digests[page] = hashlib.blake2b(json.dumps(inputs, default=str).encode(), digest_size=12).hexdigest()
        if previous.get(page) == digests[page] and (folder / page).is_file():
            continue
        made = [_transcript(run.kind, tuple(run.paths), run.part, read, mask, change).changed(shown) for run in runs]
        transcripts = [run.on(transcript) for run, transcript in zip(named, made, strict=True)]
        lists_of_page = positions.get(page, [])
        with masking(False):  # all texts are masked already
            if len(named) == 1:
                text = run_page(named[0], transcripts[0], lists_of_page)
            else:
                text = pair_page(named, transcripts[0], transcripts[1], lists_of_page)
        write_bytes(text.encode(errors="replace"), str(folder / page))
        written += 1
    if not is_complete:
        digests = previous | digests
    for page in previous.keys() - digests.keys():
        (folder / Path(page).name).unlink(missing_ok=True)
    if digests != previous:
        write_bytes(json.dumps(digests).encode(), str(folder / MANIFEST))
    _transcript.cache_clear()
    return written


def write_view(logs: Logs, runs: pd.DataFrame, output: Path, title: str = "", *, mask: bool = True) -> Path:
    """Write the pages of runs into a folder, and a page that lists them.

    Parameters
    ----------
    logs : Logs
        The logs of the runs.
    runs : DataFrame
        Rows of the first table of `logs`.
    output : path
        The folder.
    title : str
        Title of the list; by default from the kind.
    mask : bool
        Whether to mask credentials.

    Returns
    -------
    path
        The page with the list.

    Examples
    --------
    >>> evidence.write_view(logs, runs, Path("view"))  # doctest: +SKIP
    """
    check_no_links(output, WRITTEN)
    references = [reference(logs, run) for run in runs.to_dict("records")]
    shown = shown_paths([*logs.sources, *(origin for place in logs.sources for origin in collected_from(place))])
    heading = shown(f"{title} runs of {logs.source}".strip())
    members = RunList(heading, "../index.html", [run.page for run in references], "runs")
    with storage(logs.storage_options):
        write_pages(output / RUNS, {run.page: [run] for run in references}, [members], mask=mask, shown=shown)
    note = f"{len(references)} of {counted_noun(len(logs.runs), 'run')}. Each row links to the page of its run."
    with masking(mask):
        page = list_page(masked(heading) if mask else heading, note, runs, RUNS)
    write_bytes(page.encode(errors="replace"), str(output / "index.html"))
    return output / "index.html"


def _states(run: RunRef) -> list[Any]:
    """Return sizes and times of a run's files, for detecting changes; None for a missing file."""
    companions = kind_named(run.kind).files.companions
    paths = (path for log in run.paths for path in (log, *(companions(log) if companions else ())))
    states = (None if is_url(path) else state_of(path) for path in paths)
    return [state and [state.size, state.modified] for state in states]


@lru_cache(maxsize=64)  # for pairs of the same runs
def _transcript(
    kind: str, paths: tuple[str, ...], part: str, read: Callable[[str], bytes], mask: bool, change: Callable[[str], str]
) -> Transcript:
    """Return a transcript; for a run whose logs can't be read, one with the reason, changed by `change`."""
    try:
        return transcript_of(kind_named(kind), RunFiles(list(paths), part), read, mask=mask)
    except SourceError as error:
        reason = change(str(error))
        return Transcript("", [], [Turn("evalkit", "system", reason, ("can't be read",), ("error", "decision"))])
