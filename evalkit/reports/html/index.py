"""The index of an output folder: one page for people, one JSON file for programs, both from the records."""

import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader

from evalkit._version import __version__
from evalkit.reports.html.policy import TEMPLATES, policy_of, script
from evalkit.reports.records import Record, read_records, write_file


def write_index(output: Path, work: Path) -> tuple[Path, Path]:
    """Write ``index.html`` and ``manifest.json`` from the records of an output folder.

    Parameters
    ----------
    output : Path
    work : Path
        A folder on the same disk, where files are written before they are moved into place.

    Returns
    -------
    index, manifest : Path
    """
    records = read_records(output)
    now = datetime.now(UTC)
    index, manifest = output / "index.html", output / "manifest.json"
    environment = Environment(loader=FileSystemLoader([TEMPLATES, TEMPLATES / "evalkit"]), autoescape=True)
    environment.filters["link"] = quote
    groups = [list(group) for _, group in itertools.groupby(records, key=lambda record: record["notebook"])]
    groups.sort(key=lambda group: (group[0]["title"], group[0]["notebook"]))
    page = environment.get_template("reports.html.j2").render(
        groups=[(group[0]["title"], group[0]["notebook"], [_row(record) for record in group]) for group in groups],
        failed=sum(record["status"] == "failed" for record in records),
        total=len(records),
        made=f"{now:%Y-%m-%d %H:%M} UTC",
        version=__version__,
        policy=policy_of(script("index.js")),
    )
    content = {"evalkit": __version__, "made": now.isoformat(timespec="seconds"), "reports": records}
    write_file(manifest, json.dumps(content, indent=1), work)
    write_file(index, page, work)
    return index, manifest


def change(record: Record) -> str:
    """Say how the headline differs from the one of the page it replaced; empty where there is nothing to compare."""
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


def _row(record: Record) -> dict[str, Any]:
    headline = record["headline"] or {}
    params = Path(record["params_file"])
    folder = record["notebook"]
    return {
        **record,
        "headline_text": headline.get("text", ""),
        "headline_label": headline.get("label", ""),
        "n": _count(headline),
        "is_orphan": bool(record["params_file"]) and params.parent.is_dir() and not params.exists(),
        "change": change(record),
        "when": record["made"][:16].replace("T", " "),
        "files": [(f"{folder}/{table['file']}", f"{table['name']}.csv") for table in record["tables"]],
    }


def _count(headline: dict[str, Any]) -> str:
    return "" if headline.get("n") is None else f"{headline['n']:,.0f}"
