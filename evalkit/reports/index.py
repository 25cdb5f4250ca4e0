"""Write the index of an output folder, for people and programs, and the pages of the runs that its reports link to."""

import csv
import itertools
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from evalkit._html import asset, render_page
from evalkit._version import __version__
from evalkit.display.show import SORTING
from evalkit.evidence import RunList, RunRef, read_references, write_pages
from evalkit.evidence.references import RUNS
from evalkit.evidence.site import MANIFEST
from evalkit.io.sources import is_sample, shown_paths, without_projects
from evalkit.io.store import read_note
from evalkit.io.text import map_texts, plain, short_paths
from evalkit.io.write import from_spreadsheet
from evalkit.reports.notebooks import LAST
from evalkit.reports.report import Record, places_of, read_records, write_file

STANDINGS = "standings"  # name of a report's published table from which the index lists models
_NEEDED = {"kind", "outcome", "model_name", "n", "n_tasks", "estimate", "text", "task_set"}
_MOST_ROWS = 500  # maximum number of rows read from the table of one report
SAMPLES, OTHERS = "Sample data", "Other reports"
_WRITTEN = f"{RUNS}/{MANIFEST}"


def write_index(output: Path) -> tuple[Path, Path]:
    """Write ``index.html`` and ``manifest.json`` from the records of an output folder."""
    records = read_records(output)
    now = datetime.now(UTC)
    index, manifest = output / "index.html", output / "manifest.json"
    content = {
        "evalkit": __version__,
        "made": now.isoformat(timespec="seconds"),
        "reports": [map_texts(record, shown_paths(places_of(record))) for record in records],
    }
    write_file(manifest, json.dumps(content, indent=1))
    page = render_page(
        "reports.html.j2",
        SORTING + asset("reports.js"),
        "style.css",
        groups=_groups(records),
        models=_models(records, output),
        failed=sum(record["status"] == "failed" for record in records),
        total=len(records),
        made=f"{now:%Y-%m-%d %H:%M} UTC",
        version=__version__,
    )
    write_file(index, page)
    return index, manifest


def _groups(records: list[Record]) -> list[dict[str, Any]]:
    """Group reports by source, with samples last, and by question."""
    by_source: dict[str, list[Record]] = {}
    for record in records:
        sources = ", ".join(source.rstrip("/") for source in record["sources"])
        by_source.setdefault(SAMPLES if any(map(is_sample, record["sources"])) else sources, []).append(record)
    ends = short_paths(by_source.keys() - {SAMPLES})  # the shortest suffix of each path that is unique
    groups = []
    for sources, group in sorted(by_source.items(), key=lambda item: (item[0] == SAMPLES, item[0])):
        name = plain(without_projects(ends.get(sources, sources)))
        title = name.rpartition("/")[2]
        group.sort(key=itemgetter("title", "name"))
        group.sort(key=_question)
        rows = [_row(record, group) for record in group]
        questions = [(question, list(answers)) for (_, question), answers in itertools.groupby(rows, key=_question)]
        # how logs were read: once for the source if true for all its reports, else in each report
        shared = [line for line in rows[0]["chosen"] if all(line in row["chosen"] for row in rows)]
        for row in rows:
            row["chosen"] = [line for line in row["chosen"] if line not in shared]
        source = name if name != title else ""
        groups.append({"title": title or OTHERS, "source": source, "chosen": shared, "questions": questions})
    return groups


def _question(record: Mapping[str, Any]) -> tuple[float, str]:
    """Return the order and the text of the question that a report answers."""
    return record.get("order", LAST), record.get("question", "")


def _row(record: Record, group: list[Record]) -> dict[str, Any]:
    """Return a record with the texts that the index shows. `group` has all reports on the same sources."""
    others = [other["parameters"] for other in group if other["notebook"] == record["notebook"]]
    differing = [
        f"{plain(name)} = {plain(json.dumps(value, ensure_ascii=False, default=str), 120)}"
        for name, value in record["parameters"].items()
        if any(other.get(name) != value for other in others)
    ]
    headline = record["headline"] or {}
    params = Path(record["params_file"])
    row = {
        **record,
        "finding": record["findings"][0]["text"] if record["findings"] else "",
        "headline": headline if headline.get("estimate") is not None else {},
        "n": _count(headline),
        "differing": ", ".join(differing),
        "is_orphan": bool(record["params_file"]) and params.parent.is_dir() and not params.exists(),
        "change": change(record),
        "when": record["made"][:16].replace("T", " "),
    }
    return map_texts(row, shown_paths(places_of(record)))


def change(record: Record) -> str:
    """Describe how the headline differs from the headline of the replaced page; "" if they can't be compared."""
    new = record["headline"]
    old = (record["previous"] or {}).get("headline")
    if not new or not old or new.get("label") != old.get("label"):
        return ""
    if (new["text"], new.get("n")) == (old["text"], old.get("n")):
        return "as before"
    before = f"was {old['text']}, n = {_count(old) or '–'}"
    if new.get("estimate") is None or old.get("estimate") is None:
        return before
    difference = new["estimate"] - old["estimate"]
    return f"{before}: {difference * 100:+.1f} points" if new.get("percent") else f"{before}: {difference:+.2f}"


def _count(headline: dict[str, Any]) -> str:
    return "" if headline.get("n") is None else f"{headline['n']:,.0f}"


def _models(records: list[Record], output: Path) -> list[dict[str, Any]]:
    """List the models of all reports by kind of logs and outcome: per set of tasks, the estimate with the most runs."""
    section = itemgetter("kind", "outcome")
    rows = list[dict[str, Any]]()
    for record in records:
        name = next((table["file"] for table in record["tables"] if table["name"] == STANDINGS), "")
        path = output / record["notebook"] / name
        if record["status"] != "made" or not path.is_file():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            for row in itertools.islice(csv.DictReader(file), _MOST_ROWS):
                texts = {column: plain(from_spreadsheet(text or "")) for column, text in row.items()}
                if texts.keys() >= _NEEDED:
                    rows.append(texts | {"report": record})
    sections = []
    for (kind, outcome), members in itertools.groupby(sorted(rows, key=section), key=section):
        models = dict[tuple[str, str], list[dict[str, Any]]]()
        for row in members:
            tasks = row["task_set"] or str(row["report"]["sources"])
            models.setdefault((row["model_name"], tasks), []).append(row)
        best = [max(same, key=lambda row: _number(row["n"])) | {"all": same} for same in models.values()]
        best.sort(key=lambda row: _number(row["estimate"]), reverse=True)
        sets = enumerate(dict.fromkeys(row["task_set"] for row in best))
        letters = {tasks: f"{chr(65 + i % 26)}{i // 26 or ''}" if tasks else "–" for i, tasks in sets}
        best.sort(key=lambda row: letters[row["task_set"]])
        sections.append({"title": f"{kind}: {outcome}", "outcome": outcome, "rows": best, "letters": letters})
    return sections


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -math.inf


def write_evidence(output: Path, given: Mapping[str, list[Any]], *, mask: bool = True) -> None:
    """Write the pages of all runs that reports in an output folder link to, from data that is `given` or cached."""
    pages: dict[str, list[RunRef]] = {}
    lists: list[RunList] = []
    sources: set[str] = set()
    is_complete = True
    for record in read_records(output):
        key = record["key"]
        passed_on = given[key] if key in given else read_note(output, f"evidence/{key}")
        if passed_on is None:
            is_complete &= not record.get("links")
            continue
        sources |= set(places_of(record))
        pages_of_report, lists_of_report = read_references(passed_on, f"../{key}.html")
        for page, refs in pages_of_report.items():
            before = pages.get(page, [None] * len(refs))
            pages[page] = [ref.merged(other) for ref, other in zip(refs, before, strict=True)]
        lists += lists_of_report
    if pages or (output / _WRITTEN).is_file():
        shown = shown_paths(sorted(sources))
        write_pages(output / RUNS, pages, lists, mask=mask, shown=shown, is_complete=is_complete)


def is_missing(output: Path) -> bool:
    """Return whether pages of runs that reports link to are missing, such as after a stopped batch."""
    return not (output / _WRITTEN).is_file() and any(record.get("links") for record in read_records(output))
