"""Write the page with the results of all reports of an output folder for each model, by kind, without ranks."""

import csv
import itertools
import string
from pathlib import Path
from typing import Any

from jinja2 import Environment

from evalkit._version import __version__
from evalkit.io.text import plain
from evalkit.io.write import from_spreadsheet
from evalkit.reports.html.policy import policy_of, script
from evalkit.reports.records import Record, names_of_sources, write_file

PAGE = "leaderboard.html"
TABLE = "standings"  # the published table of a report that is read
_NEEDED = ("kind", "outcome", "model_name", "n", "n_tasks", "text", "task_set")
_MOST = 500  # rows of one report


def write_leaderboards(records: list[Record], output: Path, work: Path, environment: Environment) -> bool:
    """Write ``leaderboard.html``, or remove it if no report has published standings."""
    names = names_of_sources(records)
    rows = [row for record in records for row in _rows(record, output, names[record["source"]])]
    if not rows:
        (output / PAGE).unlink(missing_ok=True)
        return False
    code = script("tables.js")
    values = {"sections": _sections(rows), "version": __version__, "policy": policy_of(code), "script": code}
    write_file(output / PAGE, environment.get_template("leaderboard.html.j2").render(**values), work)
    return True


def _rows(record: Record, output: Path, source: str) -> list[dict[str, Any]]:
    """Read the standings of a report; empty if they are missing or unreadable."""
    name = next((table["file"] for table in record["tables"] if table["name"] == TABLE), "")
    if record["status"] != "made" or not name or Path(name).name != name:
        return []
    try:
        with (output / record["notebook"] / name).open(encoding="utf-8", newline="") as file:
            read = list(itertools.islice(csv.DictReader(file), _MOST))
    except (OSError, ValueError, csv.Error):
        return []
    complete = [row for row in read if all(isinstance(row.get(column), str) for column in _NEEDED)]
    about = {"page": record["page"], "report": f"{record['title']}: {record['name']}", "source": source}
    return [
        about | {column: plain(from_spreadsheet(value)) for column, value in row.items() if isinstance(value, str)}
        for row in complete
    ]


def _sections(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group rows by kind of logs and type of outcome, sorted by model and report."""
    sections = []
    keyed = sorted(rows, key=lambda row: (row["kind"], row["outcome"], row["model_name"], row["report"]))
    for (kind, outcome), group in itertools.groupby(keyed, key=lambda row: (row["kind"], row["outcome"])):
        members = list(group)
        sets = dict.fromkeys(row["task_set"] for row in members if row["task_set"])
        letters = dict(zip(sets, _letters(), strict=False))
        sources: dict[str, dict[str, None]] = {}
        for row in members:
            row["letter"] = letters.get(row["task_set"], "–")
            sources.setdefault(row["source"], {})[row["report"]] = None
        listed = [(plain(source) or "unknown", list(reports)) for source, reports in sources.items()]
        sections.append(
            {
                "kind": kind,
                "outcome": outcome,
                "rows": members,
                "sets": len(sets),
                "unknown": any(not row["task_set"] for row in members),
                "sources": listed,
            }
        )
    return sections


def _letters() -> Any:
    """Yield A to Z, then AA, AB and so on."""
    lengths = itertools.count(1)
    return ("".join(letters) for n in lengths for letters in itertools.product(string.ascii_uppercase, repeat=n))
