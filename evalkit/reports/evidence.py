"""Store the evidence that each report passes on, and write the pages of runs from that of all reports."""

import json
from pathlib import Path
from typing import Any

from evalkit.evidence import read_references, write_pages
from evalkit.evidence.site import MANIFEST, RUNS
from evalkit.io.read import read_json
from evalkit.io.sources import shown_paths
from evalkit.reports.records import places_of, read_records, write_file

_STORED = f"{RUNS}/.evalkit/reports"
_WRITTEN = f"{RUNS}/{MANIFEST}"


def keep_evidence(output: Path, work: Path, key: str, given: list[Any]) -> None:
    """Store the evidence of a report, in place of what it passed on before."""
    path = output / _STORED / f"{key}.json"
    if given:
        write_file(path, json.dumps(given), work)
    else:
        path.unlink(missing_ok=True)


def write_evidence(output: Path, *, mask: bool = True) -> int:
    """Write the pages of all runs that the reports of an output folder link to, each once; return how many changed."""
    stored = sorted((output / _STORED).glob("*/*.json"))
    if not stored and not (output / _WRITTEN).is_file():
        return 0
    runs, pairs, lists, sources = dict[str, Any](), dict[Any, Any](), list[Any](), set[str]()
    records = {record["key"]: record for record in read_records(output)}
    for path in stored:
        key = f"{path.parent.name}/{path.stem}"
        if (record := records.get(key)) is None:
            continue
        sources |= set(places_of(record))
        more_runs, more_pairs, more_lists = read_references(read_json(path), f"../{key}.html")
        runs |= more_runs
        pairs |= {pair.page: pair for pair in more_pairs}
        lists += more_lists
    return write_pages(output / RUNS, runs, list(pairs.values()), lists, mask=mask, shown=shown_paths(sorted(sources)))


def is_missing(output: Path) -> bool:
    """Return whether pages that reports link to are missing, as after a batch that was stopped."""
    return any((output / _STORED).glob("*/*.json")) and not (output / _WRITTEN).is_file()
