"""What leads through an output folder: its index, for people and programs, its leaderboard, and the pages of runs."""

import csv
import itertools
import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader

from evalkit._version import __version__
from evalkit.evidence import read_references, write_pages
from evalkit.evidence.site import MANIFEST, RUNS
from evalkit.io.read import read_json
from evalkit.io.sources import is_sample, shown_paths
from evalkit.io.text import plain, short_paths
from evalkit.io.write import from_spreadsheet
from evalkit.reports.parts import TEMPLATES, clean_svg, policy_of, script
from evalkit.reports.records import mapped, places_of, read_records, write_file
from evalkit.reports.report import Record, short_hash

LEADERBOARD = "leaderboard.html"
STANDINGS = "standings"  # the published table of a report that the leaderboard shows
_NEEDED = {"kind", "outcome", "model_name", "n", "n_tasks", "text", "task_set"}
_MOST_ROWS = 500  # of one report
SAMPLES, OTHERS = "Sample data", "Other reports"
LARGEST_PICTURE = 60_000  # bytes of a figure that is shown in the index
_STORED = f"{RUNS}/.evalkit/reports"
_WRITTEN = f"{RUNS}/{MANIFEST}"


def write_index(output: Path, work: Path) -> tuple[Path, Path]:
    """Write ``index.html``, ``manifest.json`` and ``leaderboard.html`` from the records of an output folder."""
    records = read_records(output)
    names = _names_of_sources(records)
    now = datetime.now(UTC)
    index, manifest, leaderboard = output / "index.html", output / "manifest.json", output / LEADERBOARD
    environment = Environment(loader=FileSystemLoader([TEMPLATES, TEMPLATES / "evalkit"]), autoescape=True)
    environment.filters["link"] = quote

    def write(path: Path, template: str, code: str, **values: Any) -> None:
        about = {"version": __version__, "policy": policy_of(script(code)), "script": script(code)}
        write_file(path, environment.get_template(template).render(**about, **values), work)

    sections = _sections([row for record in records for row in _standings(record, output, names)])
    if sections:
        write(leaderboard, "leaderboard.html.j2", "tables.js", sections=sections)
    else:
        leaderboard.unlink(missing_ok=True)
    content = {
        "evalkit": __version__,
        "made": now.isoformat(timespec="seconds"),
        "reports": [mapped(record, shown_paths(places_of(record))) for record in records],
    }
    write_file(manifest, json.dumps(content, indent=1), work)
    write(
        index,
        "reports.html.j2",
        "index.js",
        groups=_groups(records, names, output),
        leaderboard=LEADERBOARD if sections else "",
        failed=sum(record["status"] == "failed" for record in records),
        total=len(records),
        made=f"{now:%Y-%m-%d %H:%M} UTC",
    )
    return index, manifest


def _names_of_sources(records: list[Record]) -> dict[tuple[str, ...], str]:
    """Return a name of the sources of each record, with no more of a path than tells it from the others."""
    texts = {tuple(record["sources"]): ", ".join(record["sources"]) for record in records}
    names = {sources: shown_paths(sources)(text) for sources, text in texts.items()}
    shared, ends = Counter(names.values()), short_paths(texts.values())
    return {sources: ends[texts[sources]] if shared[name] > 1 else name for sources, name in names.items()}


def _groups(records: list[Record], names: dict[tuple[str, ...], str], output: Path) -> list[dict[str, Any]]:
    """Group reports by their sources, those about samples last."""
    by_source: dict[tuple[str, ...], list[Record]] = {}
    for record in sorted(records, key=lambda record: (record["title"], record["name"])):
        is_about_samples = any(map(is_sample, record["sources"]))
        by_source.setdefault((SAMPLES,) if is_about_samples else tuple(record["sources"]), []).append(record)
    groups = []
    for sources, group in sorted(by_source.items(), key=lambda item: (item[0] == (SAMPLES,), item[0])):
        name = names.get(sources, SAMPLES)
        title = name.rstrip("/").rpartition("/")[2] or name or OTHERS
        rows = [_row(record, group, output) for record in group]
        groups.append({"title": title, "source": "" if title in (name, SAMPLES, OTHERS) else name, "rows": rows})
    return groups


def _row(record: Record, group: list[Record], output: Path) -> dict[str, Any]:
    """Return a record with what the index shows of it beside others of its group."""
    others = [other["parameters"] for other in group if other["notebook"] == record["notebook"]]
    differing = [
        f"{plain(name)} = {plain(json.dumps(value, ensure_ascii=False, default=str), 120)}"
        for name, value in record["parameters"].items()
        if any(other.get(name) != value for other in others)
    ]
    picture = ""
    for file in [file for file in record["figures"] if file.endswith(".svg")][:1]:
        path = output / record["notebook"] / file
        if path.is_file() and path.stat().st_size <= LARGEST_PICTURE:
            drawn = clean_svg(path.read_text(encoding="utf-8"), f"picture-{short_hash(record['key'])}-")
            picture = re.sub(r"<(/?)a\b[^>]*>", r"<\1g>", drawn)  # links are relative to the report's page
    headline, params = record["headline"] or {}, Path(record["params_file"])
    row = {
        **record,
        "finding": record["findings"][0]["text"] if record["findings"] else "",
        "headline": headline if headline.get("estimate") is not None else {},
        "n": _count(headline),
        "differing": ", ".join(differing),
        "picture": picture,
        "is_orphan": bool(record["params_file"]) and params.parent.is_dir() and not params.exists(),
        "change": change(record),
        "when": record["made"][:16].replace("T", " "),
    }
    return mapped(row, shown_paths(places_of(record)))


def change(record: Record) -> str:
    """Describe how the headline differs from that of the page it replaced; empty if they can't be compared."""
    new, old = record["headline"], (record["previous"] or {}).get("headline")
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


def _standings(record: Record, output: Path, names: dict[tuple[str, ...], str]) -> list[dict[str, Any]]:
    """Read the standings of a report; empty if it has published none."""
    name = next((table["file"] for table in record["tables"] if table["name"] == STANDINGS), "")
    path = output / record["notebook"] / name
    if record["status"] != "made" or not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(itertools.islice(csv.DictReader(file), _MOST_ROWS))
    report, source = f"{record['title']}: {record['name']}", names[tuple(record["sources"])]
    about = {"page": record["page"], "report": report, "source": source}
    return [
        about | {column: plain(from_spreadsheet(row[column] or "")) for column in row}
        for row in rows
        if row.keys() >= _NEEDED
    ]


def _sections(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group the standings of all reports by kind of logs and type of outcome, sorted by model and report, not ranked.

    Rows of the same set of tasks get the same letter.
    """
    sections = []
    keyed = sorted(rows, key=lambda row: (row["kind"], row["outcome"], row["model_name"], row["report"]))
    for (kind, outcome), group in itertools.groupby(keyed, key=lambda row: (row["kind"], row["outcome"])):
        members = list(group)
        sets = list(dict.fromkeys(row["task_set"] for row in members if row["task_set"]))
        letters = {name: f"{chr(65 + i % 26)}{i // 26 or ''}" for i, name in enumerate(sets)}  # A to Z, A1, …
        sources: dict[str, dict[str, None]] = {}
        for row in members:
            row["letter"] = letters.get(row["task_set"], "–")
            sources.setdefault(row["source"], {})[row["report"]] = None
        listed = [(plain(source) or "unknown", list(reports)) for source, reports in sources.items()]
        section = {"kind": kind, "outcome": outcome, "rows": members, "sets": len(sets), "sources": listed}
        sections.append(section | {"unknown": any(not row["task_set"] for row in members)})
    return sections


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
