"""Pages of the runs that reports lead to: what each report handed over is kept, and pages are made of all of it."""

import json
from pathlib import Path
from typing import Any

from evalkit.io.read import read_json
from evalkit.reports.records import record_path, write_file

RUNS = "runs"  # as evalkit.evidence.site.RUNS, which would import more
_KEPT = f"{RUNS}/.evalkit/reports"
_WRITTEN = f"{RUNS}/.evalkit/pages.json"  # as evalkit.evidence.site.MANIFEST


def keep_evidence(output: Path, work: Path, key: str, given: list[Any]) -> None:
    """Keep what a report handed over; nothing is left of what it handed over before."""
    path = output / _KEPT / f"{key}.json"
    if given:
        write_file(path, json.dumps(given), work)
    else:
        path.unlink(missing_ok=True)


def write_evidence(output: Path) -> int:
    """Write the pages of all runs that the reports of an output folder lead to, each once.

    Returns
    -------
    int
        How many were written; the others had not changed.

    Raises
    ------
    evalkit.io.SourceError
        Where one can't be written.
    """
    kept = sorted((output / _KEPT).glob("*/*.json"))
    if not kept and not (output / _WRITTEN).is_file():
        return 0
    from evalkit.evidence import read_handed_over, write_pages

    runs, pairs, lists = dict[str, Any](), dict[Any, Any](), list[Any]()
    for path in kept:
        key = f"{path.parent.name}/{path.stem}"
        try:
            given = read_json(path)
        except (OSError, ValueError):
            continue
        if not record_path(output, key).is_file() or not isinstance(given, list):
            continue
        own, own_pairs, own_lists = read_handed_over(given, f"../{key}.html")
        runs |= own
        pairs |= {pair.page: pair for pair in own_pairs}
        lists += own_lists
    return write_pages(output / RUNS, runs, list(pairs.values()), lists)


def is_missing(output: Path) -> bool:
    """Tell whether pages that reports lead to were not written, as after a batch that was stopped."""
    return any((output / _KEPT).glob("*/*.json")) and not (output / _WRITTEN).is_file()
