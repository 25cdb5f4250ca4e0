"""Extract data from a notebook's outputs: findings, the headline, tables, named figures, evidence."""

import base64
import re
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from evalkit.io.paths import redacted
from evalkit.io.text import plain

HEADLINE = "application/vnd.evalkit.headline+json"  # as evalkit.display.HEADLINE, which would import pandas
TABLE = "application/vnd.evalkit.table+json"
FINDINGS = "application/vnd.evalkit.findings+json"
FIGURE = "application/vnd.evalkit.figure+json"
EVIDENCE = "application/vnd.evalkit.evidence+json"


def _outputs(nb: NotebookNode) -> Iterator[tuple[NotebookNode, dict[str, Any]]]:
    """Yield every output with its data by MIME type."""
    return ((output, output.get("data", {})) for cell in nb.cells for output in cell.get("outputs", []))


def extract_tables(nb: NotebookNode, name: str) -> tuple[dict | None, list[dict]]:
    """Extract headline and published tables from a notebook's outputs; a link to its file replaces each table."""
    headline, tables = None, {}
    for _, data in _outputs(nb):
        headline = _headline(data.get(HEADLINE)) or headline
        if _is_named(data.get(TABLE), csv=str, rows=int):
            table = dict(data.pop(TABLE))
            file = f"{name}.{table['name']}.csv"
            tables[file] = {**table, "file": file}
            rows = f"{table['rows']:,} row{'' if table['rows'] == 1 else 's'}"
            data["text/markdown"] = f"[{table['name']}.csv](<{file}>): {rows}"
    return headline, list(tables.values())


def extract_findings(nb: NotebookNode) -> list[dict[str, str]]:
    """Return the findings that a notebook begins with, each with the heading of its section."""
    given = (data[FINDINGS] for _, data in _outputs(nb) if isinstance(data.get(FINDINGS), list))
    findings: list[Any] = next(given, [])
    texts = (item for item in findings if isinstance(item, dict) and isinstance(item.get("text"), str))
    return [{"text": plain(item["text"]), "section": plain(item.get("section", ""))} for item in texts]


def extract_figures(nb: NotebookNode, name: str) -> dict[str, str | bytes]:
    """Extract named figures from a notebook's outputs: files with their contents, as SVG, PDF and PNG."""
    files: dict[str, str | bytes] = {}
    for output, data in _outputs(nb):
        about = output.get("metadata", {}).get("image/svg+xml")
        if isinstance(about, dict) and isinstance(data.get(FIGURE), dict) and "narrow" in data[FIGURE]:
            about["narrow"] = data[FIGURE].pop("narrow")  # until the page is rendered
        if not _is_named(data.get(FIGURE), pdf=str):
            continue
        figure = data.pop(FIGURE)
        pictures = {"pdf": _decoded(figure["pdf"]), "png": _decoded(data.get("image/png"))}
        formats = {"svg": data.get("image/svg+xml")} | pictures
        saved = {f"{name}.{figure['name']}.{suffix}": content for suffix, content in formats.items() if content}
        files |= saved
        for about in filter(lambda value: isinstance(value, dict), output.metadata.values()):
            about["files"] = list(saved)
    return files


def extract_evidence(nb: NotebookNode) -> list[Any]:
    """Extract the data of pages of runs from a notebook's outputs."""
    evidence = [data[EVIDENCE] for _, data in _outputs(nb) if EVIDENCE in data]
    for cell in nb.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if EVIDENCE not in output.get("data", {})]
    return evidence


def redact_errors(nb: NotebookNode) -> None:
    """Redact credentials in URLs in the errors that a notebook shows."""
    for output, _ in _outputs(nb):
        if output.output_type == "error":
            output.evalue = redacted(output.evalue)
            output.traceback = list(map(redacted, output.traceback))


def _is_named(given: Any, **types: type) -> bool:
    """Return whether this has a name that is safe in file names, and fields of these types."""
    name = given.get("name") if isinstance(given, dict) else None
    is_safe = isinstance(name, str) and bool(re.fullmatch(r"[A-Za-z0-9_-]{1,80}", name))
    return is_safe and all(isinstance(given.get(field), type_) for field, type_ in types.items())


def _decoded(given: Any) -> bytes:
    try:
        return base64.b64decode(given) if isinstance(given, str) else b""
    except ValueError:
        return b""


def _headline(given: Any) -> dict | None:
    """Select the fields of a headline for the index; None if it is malformed."""
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        return None
    numbers = {key: given.get(key) for key in ("estimate", "low", "high", "n")}
    return {
        "label": plain(given.get("label", "")),
        "text": plain(given["text"]),
        **{key: value if isinstance(value, (int, float)) else None for key, value in numbers.items()},
        "percent": bool(given.get("percent")),
    }
